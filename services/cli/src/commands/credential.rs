//! `credential`: values are sealed to the connector before they leave this program; they are read from a file or
//! standard input, never from an argument.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::builder::PossibleValuesParser;
use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use exequatur_catalog_client::catalog_service_client::CatalogServiceClient;
use exequatur_proto::credential::v1::{
    AllowResealRequest, Credential, GetCredentialRequest, HandOver, ListCredentialsRequest,
    PutCredentialRequest, RemoveCredentialRequest, Reuse, SealContext, SealedValue, VaultEngine, VaultSource,
};
use exequatur_proto::definition::v1::Attestation;
use exequatur_proto::sealing::v1::ResealRequest;
use exequatur_proto::trust::v1::Purpose;
use exequatur_sealing_client::sealing_service_client::SealingServiceClient;
use exequatur_vault::engine_words;
use serde_json::{Value, json};
use tonic::Code;
use tonic::transport::Channel;
use zeroize::Zeroizing;

use super::App;
use super::plan::hex;
use crate::connect::{Plane, Zone, request};
use crate::failure::Failure;
use crate::text::{self, Table};

/// Largest value.
const LIMIT: usize = 64 * 1024 - 256;

/// Arguments of `credential`.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Adds a version.
    Put(Put),
    /// Adds a version to a credential that has one.
    Rotate(Put),
    /// Has the connector seal values to its newest key; all that are sealed to another when no name is given.
    Reseal {
        /// Its name.
        name: Option<String>,
    },
    /// The catalog; never a value.
    List,
    /// Removes a credential with all versions.
    Remove {
        /// Its name.
        name: String,
    },
}

#[derive(ClapArgs, Debug)]
struct Put {
    /// Its name.
    name: String,
    /// Where the value is; `-` is standard input. One line end at the end is not part of it.
    #[arg(long, value_name = "FILE", required_unless_present = "vault", conflicts_with = "vault")]
    file: Option<PathBuf>,
    /// Vault keeps the value, in this engine, at the path that follows from tenant and name.
    #[arg(long, value_name = "ENGINE", value_parser = PossibleValuesParser::new(engine_words()),
        requires = "hand_over")]
    vault: Option<String>,
    /// How it gets from Vault to the connector.
    #[arg(long, value_enum, requires = "vault")]
    hand_over: Option<Way>,
    /// Field of a key/value secret; `value` if not said.
    #[arg(long, requires = "vault")]
    field: Option<String>,
    /// Pinned version of a key/value secret; the newest if not said.
    #[arg(long, requires = "vault")]
    kv_version: Option<u64>,
    /// For how many actions the connector may keep it open; a key/value secret then needs a pinned version.
    #[arg(long, value_enum, default_value = "per-action", requires = "vault")]
    reuse: Serves,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum Serves {
    /// One.
    PerAction,
    /// Those of one run, for 15 minutes at most.
    PerRun,
    /// All of the tenant, until the lease ends, for 15 minutes at most.
    UntilExpiry,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum Way {
    /// A second reader is revealed.
    Wrapped,
    /// Only the connector's addresses can read.
    Scoped,
}

impl Put {
    /// What the next version is.
    fn material(&self) -> Result<Material, Failure> {
        if let (Some(engine), Some(way)) = (&self.vault, self.hand_over) {
            let engine = VaultEngine::from_str_name(&format!("VAULT_ENGINE_{}", engine.to_uppercase()))
                .ok_or_else(|| Failure::usage(format!("no engine `{engine}`")))?;
            let way = match way {
                Way::Wrapped => HandOver::Wrapped,
                Way::Scoped => HandOver::Scoped,
            };
            let reuse = match self.reuse {
                Serves::PerAction => Reuse::PerAction,
                Serves::PerRun => Reuse::PerRun,
                Serves::UntilExpiry => Reuse::UntilExpiry,
            };
            return Ok(Material::Vault(VaultSource {
                engine: engine.into(),
                hand_over: way.into(),
                field: self.field.clone().unwrap_or_default(),
                kv_version: self.kv_version.unwrap_or_default(),
                reuse: reuse.into(),
            }));
        }
        let file = self.file.as_ref().ok_or_else(|| Failure::usage("give `--file` or `--vault`"))?;
        read(file).map(Material::Sealed)
    }
}

/// A version: a value to be sealed, or where Vault keeps it.
pub(crate) enum Material {
    /// Bytes of the secret.
    Sealed(Zeroizing<Vec<u8>>),
    /// A place.
    Vault(VaultSource),
}

/// Runs the command.
pub(crate) async fn run(args: Args, app: &App) -> Result<u8, Failure> {
    let plane = Plane::operator(&app.global)?;
    match args.command {
        Command::Put(args) => {
            let version = put(&plane, &args.name, &args.material()?, false).await?;
            say(&args.name, version, app);
        }
        Command::Rotate(args) => {
            let version = put(&plane, &args.name, &args.material()?, true).await?;
            say(&args.name, version, app);
        }
        Command::Reseal { name } => reseal(&plane, name, app).await?,
        Command::List => list(&plane, app).await?,
        Command::Remove { name } => {
            let message = RemoveCredentialRequest { tenant: plane.tenant.clone(), credential: name.clone() };
            client(&plane)?.remove_credential(request(message)).await?;
            app.output.value(&json!({"credential": name}), || format!("{} removed", text::escape(&name)));
        }
    }
    Ok(0)
}

fn client(plane: &Plane) -> Result<CatalogServiceClient<Channel>, Failure> {
    Ok(CatalogServiceClient::new(plane.channel(Zone::CredentialVault)?))
}

fn say(name: &str, version: u64, app: &App) {
    app.output.value(&json!({"credential": name, "version": version}), || {
        format!("{} version {version}", text::escape(name))
    });
}

fn read(file: &Path) -> Result<Zeroizing<Vec<u8>>, Failure> {
    // Reserved at once, so that no growth leaves copies behind.
    let mut value = Zeroizing::new(Vec::with_capacity(LIMIT + 2));
    let limit = u64::try_from(LIMIT + 2).unwrap_or(u64::MAX);
    let read = if file == Path::new("-") {
        std::io::stdin().lock().take(limit).read_to_end(&mut value)
    } else {
        std::fs::File::open(file).and_then(|file| file.take(limit).read_to_end(&mut value))
    };
    read.map_err(|e| Failure::usage(format!("cannot read the value from `{}`: {e}", file.display())))?;
    if value.last() == Some(&b'\n') {
        value.pop();
        if value.last() == Some(&b'\r') {
            value.pop();
        }
    }
    if value.is_empty() {
        return Err(Failure::bad_input("the value is empty"));
    }
    if value.len() > LIMIT {
        return Err(Failure::bad_input(format!("the value is longer than {LIMIT} bytes")));
    }
    Ok(value)
}

/// Adds the next version; a value is sealed to the connector's key of the trust bundle first.
pub(crate) async fn put(
    plane: &Plane,
    name: &str,
    material: &Material,
    must_exist: bool,
) -> Result<u64, Failure> {
    let mut client = client(plane)?;
    let message = GetCredentialRequest { tenant: plane.tenant.clone(), credential: name.to_owned() };
    let newest = match client.get_credential(request(message)).await {
        Ok(response) => response.into_inner().credential.map_or(0, |credential| credential.version),
        Err(status) if status.code() == Code::NotFound && !must_exist => 0,
        Err(status) => return Err(status.into()),
    };
    if must_exist && newest == 0 {
        return Err(Failure::bad_input(format!("`{name}` has no version yet: use `credential put`")));
    }
    let version = newest.saturating_add(1);
    let (value, vault) = match material {
        Material::Sealed(value) => (Some(seal(plane, name, version, value)?), None),
        Material::Vault(source) => (None, Some(source.clone())),
    };
    let message = PutCredentialRequest {
        tenant: plane.tenant.clone(),
        credential: name.to_owned(),
        version,
        value,
        vault,
    };
    Ok(client.put_credential(request(message)).await?.into_inner().version)
}

fn seal(plane: &Plane, name: &str, version: u64, value: &[u8]) -> Result<SealedValue, Failure> {
    let connector = format!("spiffe://{}/zone/connector", plane.realm);
    let recipient = plane.trust.key(&connector, Purpose::Seal, None).ok_or_else(|| {
        Failure::failed("STATEMENT_INVALID", "the trust bundle holds no sealing key of the connector")
    })?;
    let context = SealContext {
        realm: plane.realm.clone(),
        tenant: plane.tenant.clone(),
        credential: name.to_owned(),
        version,
    };
    exequatur_seal::seal(&recipient, &context, value)
        .map_err(|e| Failure::failed("INTERNAL", format!("cannot seal the value: {e}")))
}

/// Moves sealed values to the newest key. What fails stays as it was, and the first failure is told.
async fn reseal(plane: &Plane, name: Option<String>, app: &App) -> Result<(), Failure> {
    let connector = format!("spiffe://{}/zone/connector", plane.realm);
    let newest = plane.trust.key(&connector, Purpose::Seal, None).ok_or_else(|| {
        Failure::failed("STATEMENT_INVALID", "the trust bundle holds no sealing key of the connector")
    })?;
    let (mut catalog, mut sealing) =
        (client(plane)?, SealingServiceClient::new(plane.channel(Zone::Connector)?));
    let mut moved = Vec::new();
    for entry in all(plane).await? {
        let wanted = name.as_ref().is_none_or(|name| *name == entry.credential);
        if !wanted || entry.kid.is_empty() || entry.kid == newest.kid {
            continue;
        }
        let (tenant, credential) = (plane.tenant.clone(), entry.credential.clone());
        let allow = AllowResealRequest {
            tenant: tenant.clone(),
            credential: credential.clone(),
            kid: newest.kid.clone(),
        };
        catalog.allow_reseal(request(allow)).await?;
        sealing.reseal(request(ResealRequest { tenant, credential })).await?;
        moved.push(entry.credential);
    }
    app.output.value(&json!({"kid": newest.kid, "resealed": moved}), || {
        format!("{} sealed to {}", text::escape(&moved.join(", ")), newest.kid)
    });
    Ok(())
}

/// Every entry of the tenant.
async fn all(plane: &Plane) -> Result<Vec<Credential>, Failure> {
    let mut client = client(plane)?;
    let mut credentials = Vec::new();
    let mut page_token = String::new();
    loop {
        let message = ListCredentialsRequest { tenant: plane.tenant.clone(), page_size: 200, page_token };
        let page = client.list_credentials(request(message)).await?.into_inner();
        credentials.extend(page.credentials);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            return Ok(credentials);
        }
    }
}

async fn list(plane: &Plane, app: &App) -> Result<(), Failure> {
    let credentials = all(plane).await?;
    let items: Vec<Value> = credentials.iter().map(value).collect();
    app.output.list(&json!({"credentials": items}), &items, || {
        let mut table = Table::new(&["credential", "version", "tools", "updated"]);
        for credential in &credentials {
            let tools: Vec<&str> = credential.pins.iter().map(|pin| pin.tool.as_str()).collect();
            let version = match credential.version {
                0 => "no value yet".to_owned(),
                version => version.to_string(),
            };
            let updated = text::instant(credential.updated_at.as_ref()).unwrap_or_default();
            table.row([credential.credential.clone(), version, tools.join(", "), updated]);
        }
        table.render("no credentials")
    });
    Ok(())
}

fn value(credential: &Credential) -> Value {
    let tools: Vec<&str> = credential.pins.iter().map(|pin| pin.tool.as_str()).collect();
    let pins: Vec<Value> = credential
        .pins
        .iter()
        .map(|pin| {
            let attestation = match pin.attestation() {
                Attestation::Auto => "auto",
                Attestation::Reservation => "reservation",
                Attestation::Unspecified => "unknown",
            };
            json!({"tool": pin.tool, "tool_digest": hex(&pin.tool_digest), "destination": pin.destination,
                "attestation": attestation})
        })
        .collect();
    json!({
        "credential": credential.credential,
        "version": credential.version,
        "tools": tools,
        "pins": pins,
        "updated_at": text::instant(credential.updated_at.as_ref()),
        "kid": credential.kid,
        "vault": credential.vault.as_ref().map(place),
    })
}

fn place(source: &VaultSource) -> Value {
    json!({
        "engine": text::word(source.engine().as_str_name(), "VAULT_ENGINE_").to_lowercase(),
        "hand_over": text::word(source.hand_over().as_str_name(), "HAND_OVER_").to_lowercase(),
        "field": source.field,
        "kv_version": source.kv_version,
        "reuse": match source.reuse() {
            Reuse::PerAction | Reuse::Unspecified => "per_action",
            Reuse::PerRun => "per_run",
            Reuse::UntilExpiry => "until_expiry",
        },
    })
}
