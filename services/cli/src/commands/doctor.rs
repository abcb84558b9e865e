//! `doctor`: looks at everything that the plane needs and says what is missing. Changes nothing.

use std::time::Duration;

use exequatur_catalog_client::catalog_service_client::CatalogServiceClient;
use exequatur_policy_client::policy_service_client::PolicyServiceClient;
use exequatur_proto::approval::v1::ListReviewersRequest;
use exequatur_proto::credential::v1::ListCredentialsRequest;
use exequatur_proto::policy::v1::GetRuleSetRequest;
use exequatur_reviewer_client::reviewer_service_client::ReviewerServiceClient;
use exequatur_vault::setup::Operator;
use exequatur_vault::{Client, Config, Health, Token};
use serde_json::{Value, json};

use super::App;
use super::dev::serves;
use crate::connect::{Plane, Zone, request};
use crate::context::{Pg, Vault};
use crate::failure::Failure;

/// Longest wait for an outside server.
const WAIT: Duration = Duration::from_secs(5);
/// What `deploy/vault/steps` puts in.
const STEPS: [(&str, &str); 5] = [
    ("vault policy credential-vault", "sys/policies/acl/credential-vault"),
    ("vault policy connector", "sys/policies/acl/connector"),
    ("vault token role", "auth/token/roles/exequatur-scoped"),
    ("vault role credential-vault", "auth/approle/role/credential-vault"),
    ("vault key/value engine", "secret/config"),
];

#[derive(Default)]
struct Report(Vec<Value>);

impl Report {
    fn add(&mut self, name: &str, result: Result<String, String>) {
        let (ok, detail) = match result {
            Ok(detail) => (true, detail),
            Err(detail) => (false, detail),
        };
        self.0.push(json!({"name": name, "ok": ok, "detail": detail}));
    }

    fn is_ok(&self) -> bool {
        self.0.iter().all(|check| check["ok"] == true)
    }
}

/// Runs the command; exit code 1 when anything is missing.
pub(crate) async fn run(app: &App) -> Result<u8, Failure> {
    let plane = Plane::operator(&app.global)?;
    let mut report = Report::default();
    report.add("trust bundle", Ok(format!("realm {}", plane.realm)));
    for zone in Zone::ALL {
        let said = if serves(&plane, zone).await {
            Ok("serving".to_owned())
        } else {
            Err("does not serve: is it running, and is its clock acknowledged?".to_owned())
        };
        report.add(zone.name(), said);
    }
    report.add("rule set", rule_set(&plane).await.map_err(|e| e.message));
    report.add("reviewers", reviewers(&plane).await.map_err(|e| e.message).and_then(|said| said));
    credentials(&plane, &mut report).await;
    if let Some(at) = &plane.context.vault {
        vault(at, &mut report).await;
    }
    if let Some(at) = &plane.context.pg {
        report.add("postgres", postgres(at).await);
    }
    let ok = report.is_ok();
    app.output.value(&json!({"ok": ok, "checks": report.0}), || text(&report));
    Ok(u8::from(!ok))
}

fn text(report: &Report) -> String {
    let line = |check: &Value| {
        let word = if check["ok"] == true { "ok     " } else { "MISSING" };
        let of = |key: &str| crate::text::escape(check[key].as_str().unwrap_or_default());
        format!("{word}  {:<28} {}", of("name"), of("detail"))
    };
    report.0.iter().map(line).collect::<Vec<_>>().join("\n")
}

async fn rule_set(plane: &Plane) -> Result<String, Failure> {
    let message = GetRuleSetRequest { tenant: plane.tenant.clone() };
    let mut client = PolicyServiceClient::new(plane.channel(Zone::Governance)?);
    client.get_rule_set(request(message)).await?;
    Ok("in force".to_owned())
}

async fn reviewers(plane: &Plane) -> Result<Result<String, String>, Failure> {
    let message = ListReviewersRequest { tenant: plane.tenant.clone() };
    let mut client = ReviewerServiceClient::new(plane.channel(Zone::Approval)?);
    let count = client.list_reviewers(request(message)).await?.into_inner().reviewers.len();
    Ok(if count == 0 {
        Err("nobody may decide: enrol one with `exequatur reviewer put`".to_owned())
    } else {
        Ok(format!("{count} enrolled"))
    })
}

/// Half entries: pinned without a value, or a value that serves nothing.
async fn credentials(plane: &Plane, report: &mut Report) {
    let listed = async {
        let mut client = CatalogServiceClient::new(plane.channel(Zone::CredentialVault)?);
        let message = ListCredentialsRequest {
            tenant: plane.tenant.clone(),
            page_size: 200,
            page_token: String::new(),
        };
        Ok::<_, Failure>(client.list_credentials(request(message)).await?.into_inner().credentials)
    };
    match listed.await {
        Err(failure) => report.add("credentials", Err(failure.message)),
        Ok(credentials) => {
            for credential in credentials {
                let said = match (credential.version, credential.pins.len()) {
                    (0, _) => Err("no value yet: `exequatur credential put`".to_owned()),
                    (_, 0) => Err("serves no tool: `exequatur tool apply`".to_owned()),
                    (version, tools) => Ok(format!("version {version}, {tools} tools")),
                };
                report.add(&format!("credential {}", credential.credential), said);
            }
        }
    }
}

async fn vault(at: &Vault, report: &mut Report) {
    let config = Config {
        address: at.address.clone(),
        ca: at.ca.clone(),
        namespace: None,
        auth: None,
        timeout_ms: u64::try_from(WAIT.as_millis()).unwrap_or(5_000),
        local_address: None,
        plain_loopback: false,
    };
    let health = match Client::new(config.clone()) {
        Ok(client) => client.health().await,
        Err(error) => Err(error),
    };
    report.add(
        "vault",
        match health {
            Ok(Health::Active) => Ok("unsealed and active".to_owned()),
            Ok(Health::Sealed) => Err("sealed: unseal it".to_owned()),
            Ok(Health::Standby) => Err("a standby: name the active server".to_owned()),
            Ok(Health::Uninitialized) => Err("never initialized".to_owned()),
            Err(error) => Err(error.to_string()),
        },
    );
    let readable = std::fs::File::open(&at.audit_log).map(|_| "written".to_owned());
    report.add("vault audit log", readable.map_err(|e| format!("`{}`: {e}", at.audit_log.display())));
    let token = std::fs::read_to_string(&at.root_token_file)
        .map_err(|e| e.to_string())
        .and_then(|text| Token::new(text.trim().to_owned()).map_err(|e| e.to_string()));
    let operator = token.and_then(|token| Operator::new(config, Some(token)).map_err(|e| e.to_string()));
    for (name, path) in STEPS {
        let said = match &operator {
            Ok(operator) => operator.read(path).await.map(|_| "there".to_owned()).map_err(|e| e.to_string()),
            Err(why) => Err(why.clone()),
        };
        report.add(name, said);
    }
}

/// Whether it listens; a session is the connector's business.
async fn postgres(at: &Pg) -> Result<String, String> {
    let address = at.dsn.rsplit_once('@').map_or("", |(_, rest)| rest);
    let address = address.split('/').next().unwrap_or_default().to_owned();
    let connect = tokio::net::TcpStream::connect(&address);
    match tokio::time::timeout(WAIT, connect).await {
        Ok(Ok(_)) => Ok(format!("listens at {address}")),
        Ok(Err(error)) => Err(format!("{address}: {error}")),
        Err(_) => Err(format!("{address} does not answer")),
    }
}
