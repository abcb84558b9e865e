//! `tool`: definitions from YAML files, signed here as the operator, pinned at credential-vault and put in force
//! at governance.

use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Subcommand};
use exequatur_catalog_client::catalog_service_client::CatalogServiceClient;
use exequatur_prepare::Definition;
use exequatur_proto::credential::v1::PinToolRequest;
use exequatur_proto::definition::v1::ToolDefinition;
use exequatur_proto::statement::v1::Envelope;
use exequatur_proto::tool::v1::{ApplyToolRequest, GetToolRequest, ListToolsRequest, Tool};
use exequatur_statement::{SigningKey, Statement as _};
use exequatur_tool_client::tool_service_client::ToolServiceClient;
use serde_json::{Value, json};

use super::App;
use super::plan::hex;
use crate::connect::{Plane, Zone, request};
use crate::failure::Failure;
use crate::text::{self, Table};

/// Arguments of `tool`.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Signs a definition and puts it in force; pins it at credential-vault first.
    Apply {
        /// Definition, YAML.
        file: PathBuf,
    },
    /// Reads a definition and says whether it is right. Offline.
    Check {
        /// Definition, YAML.
        file: PathBuf,
    },
    /// Registered tools.
    List,
    /// One tool.
    Get {
        /// Its name.
        tool: String,
    },
}

/// Runs the command.
pub(crate) async fn run(args: Args, app: &App) -> Result<u8, Failure> {
    match args.command {
        Command::Apply { file } => {
            let definition = read(&file)?;
            let plane = Plane::operator(&app.global)?;
            put(&plane, &definition).await?;
            say(&definition, "in force", app);
            Ok(0)
        }
        Command::Check { file } => {
            say(&read(&file)?, "valid", app);
            Ok(0)
        }
        Command::List => list(app).await,
        Command::Get { tool } => get(tool, app).await,
    }
}

fn say(definition: &Definition, what: &str, app: &App) {
    let digest = definition.digest().to_string();
    app.output.value(&json!({"tool": definition.tool(), "digest": digest}), || {
        format!("{} {what}, digest {digest}", definition.tool())
    });
}

/// A definition file.
pub(crate) fn read(file: &Path) -> Result<Definition, Failure> {
    let name = file.display();
    let yaml =
        std::fs::read_to_string(file).map_err(|e| Failure::usage(format!("cannot read `{name}`: {e}")))?;
    exequatur_definition_file::read(&yaml).map_err(|e| Failure::bad_input(format!("tool file `{name}`: {e}")))
}

/// Signs as the operator, pins, applies. Both calls are repeatable; a new digest replaces the pin.
pub(crate) async fn put(plane: &Plane, definition: &Definition) -> Result<(), Failure> {
    let envelope = sign(plane, definition)?;
    let tenant = plane.tenant.clone();
    let mut vault = CatalogServiceClient::new(plane.channel(Zone::CredentialVault)?);
    let pin = PinToolRequest { tenant: tenant.clone(), definition: Some(envelope.clone()) };
    let pinned = vault.pin_tool(request(pin)).await?.into_inner().digest;
    same(definition, &pinned, "credential-vault")?;
    let mut governance = ToolServiceClient::new(plane.channel(Zone::Governance)?);
    let apply = ApplyToolRequest { tenant, definition: Some(envelope) };
    let applied = governance.apply_tool(request(apply)).await?.into_inner().digest;
    same(definition, &applied, "governance")
}

fn sign(plane: &Plane, definition: &Definition) -> Result<Envelope, Failure> {
    let path = plane.identity()?.definition_key();
    let key = SigningKey::load(&path).map_err(|e| {
        Failure::usage(format!(
            "the key that signs definitions, `{}`, beside the certificate: {e}",
            path.display()
        ))
    })?;
    Ok(exequatur_statement::sign_bytes(&key, ToolDefinition::TYPE, definition.bytes().to_vec()))
}

fn same(definition: &Definition, found: &[u8], who: &str) -> Result<(), Failure> {
    if found == definition.digest().as_bytes().as_slice() {
        return Ok(());
    }
    Err(Failure::failed("DIGEST_MISMATCH", format!("{who} took another definition than this file's"))
        .with("expected", definition.digest().to_string())
        .with("found", hex(found)))
}

async fn list(app: &App) -> Result<u8, Failure> {
    let plane = Plane::operator(&app.global)?;
    let mut client = ToolServiceClient::new(plane.channel(Zone::Governance)?);
    let mut tools = Vec::new();
    let mut page_token = String::new();
    loop {
        let message = ListToolsRequest { tenant: plane.tenant.clone(), page_size: 200, page_token };
        let page = client.list_tools(request(message)).await?.into_inner();
        tools.extend(page.tools);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    let items = tools.iter().map(tool_value).collect::<Result<Vec<Value>, Failure>>()?;
    app.output.list(&json!({"tools": items}), &items, || {
        let mut table = Table::new(&["tool", "effect", "destination", "digest"]);
        for item in &items {
            let cell = |name: &str| item.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
            table.row([cell("tool"), cell("effect"), cell("destination"), cell("digest")]);
        }
        table.render("no tools")
    });
    Ok(0)
}

async fn get(tool: String, app: &App) -> Result<u8, Failure> {
    let plane = Plane::operator(&app.global)?;
    let mut client = ToolServiceClient::new(plane.channel(Zone::Governance)?);
    let message = GetToolRequest { tenant: plane.tenant.clone(), tool };
    let tool = client.get_tool(request(message)).await?.into_inner().tool.unwrap_or_default();
    let value = tool_value(&tool)?;
    app.output.value(&value, || {
        let pairs: Vec<(&str, String)> = ["tool", "summary", "effect", "destination", "digest"]
            .into_iter()
            .map(|name| (name, value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()))
            .collect();
        text::pairs(&pairs)
    });
    Ok(0)
}

fn tool_value(tool: &Tool) -> Result<Value, Failure> {
    let payload = tool.definition.as_ref().map(|envelope| envelope.payload.as_slice()).unwrap_or_default();
    let definition = Definition::verify(payload)
        .map_err(|e| Failure::failed("STATEMENT_INVALID", format!("definition of `{}`: {e}", tool.tool)))?;
    let message = definition.message();
    let credentials: Vec<&str> =
        definition.credentials().iter().map(|use_| use_.credential.as_str()).collect();
    Ok(json!({
        "tool": definition.tool(),
        "digest": definition.digest().to_string(),
        "summary": message.summary,
        "effect": text::word(message.effect().as_str_name(), "EFFECT_").to_lowercase(),
        "risk": text::word(message.risk().as_str_name(), "RISK_").to_lowercase(),
        "destination": definition.destination(),
        "credentials": credentials,
    }))
}
