//! `policy`: rules from a YAML file, checked here and put in force at governance.

use std::path::{Path, PathBuf};

use clap::{Args as ClapArgs, Subcommand};
use exequatur_policy::RuleSet;
use exequatur_policy_client::policy_service_client::PolicyServiceClient;
use exequatur_proto::policy::v1::{ApplyRuleSetRequest, GetRuleSetRequest};
use serde_json::json;

use super::App;
use super::plan::hex;
use crate::connect::{Plane, Zone, request};
use crate::failure::Failure;
use crate::text;

/// Arguments of `policy`.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Reads a rule file and says whether it is right. Offline.
    Check {
        /// Rules, YAML.
        file: PathBuf,
    },
    /// Puts a rule file in force for the tenant.
    Apply {
        /// Rules, YAML.
        file: PathBuf,
    },
    /// Digest of the rules in force.
    Get,
    /// What the rules of a file say about one call. Offline.
    Explain(Explain),
}

#[derive(ClapArgs, Debug)]
struct Explain {
    /// Rules, YAML.
    file: PathBuf,
    /// The tool.
    tool: String,
    /// Arguments, JSON.
    #[arg(default_value = "{}")]
    arguments: String,
    /// The tool cannot be undone.
    #[arg(long)]
    irreversible: bool,
}

/// Runs the command.
pub(crate) async fn run(args: Args, app: &App) -> Result<u8, Failure> {
    match args.command {
        Command::Check { file } => {
            let rules = read(&file)?;
            let digest = exequatur_canonical::rule_set_digest(rules.bytes()).to_string();
            let warnings = rules.warnings();
            for warning in &warnings {
                app.output.note(&format!("warning: {}", text::escape(warning)));
            }
            let value = json!({"valid": true, "digest": digest, "warnings": warnings});
            app.output.value(&value, || format!("valid, digest {digest}"));
            Ok(0)
        }
        Command::Apply { file } => apply(&file, app).await,
        Command::Get => get(app).await,
        Command::Explain(args) => explain(&args, app),
    }
}

/// The rule set of a file.
pub(crate) fn read(file: &Path) -> Result<RuleSet, Failure> {
    let name = file.display();
    let yaml =
        std::fs::read_to_string(file).map_err(|e| Failure::usage(format!("cannot read `{name}`: {e}")))?;
    exequatur_policy::file::read(&yaml).map_err(|e| Failure::bad_input(format!("rule file `{name}`: {e}")))
}

async fn apply(file: &Path, app: &App) -> Result<u8, Failure> {
    let rule_set = read(file)?;
    let plane = Plane::operator(&app.global)?;
    let digest = put(&plane, &rule_set).await?;
    app.output.value(&json!({"digest": digest}), || format!("in force, digest {digest}"));
    Ok(0)
}

/// Puts rule set bytes in force; the digest that governance answers must be the one computed here.
pub(crate) async fn put(plane: &Plane, rules: &RuleSet) -> Result<String, Failure> {
    let expected = exequatur_canonical::rule_set_digest(rules.bytes());
    let mut client = PolicyServiceClient::new(plane.channel(Zone::Governance)?);
    let message = ApplyRuleSetRequest { tenant: plane.tenant.clone(), rule_set: rules.bytes().to_vec() };
    let digest = client.apply_rule_set(request(message)).await?.into_inner().digest;
    if digest != expected.as_bytes().as_slice() {
        return Err(Failure::failed(
            "DIGEST_MISMATCH",
            "governance put other rules in force than this file's",
        )
        .with("expected", expected.to_string())
        .with("found", hex(&digest)));
    }
    Ok(expected.to_string())
}

async fn get(app: &App) -> Result<u8, Failure> {
    let plane = Plane::operator(&app.global)?;
    let mut client = PolicyServiceClient::new(plane.channel(Zone::Governance)?);
    let message = GetRuleSetRequest { tenant: plane.tenant.clone() };
    let digest = hex(&client.get_rule_set(request(message)).await?.into_inner().digest);
    app.output.value(&json!({"digest": digest}), || format!("digest {digest}"));
    Ok(0)
}

fn explain(args: &Explain, app: &App) -> Result<u8, Failure> {
    let rules = read(&args.file)?;
    let compiled = exequatur_policy::Compiled::new(&rules);
    let arguments = exequatur_canonical::read_arguments(args.arguments.as_bytes())
        .map_err(|e| Failure::bad_input(format!("arguments: {e}")))?;
    let call = exequatur_policy::Call {
        reversible: !args.irreversible,
        ..exequatur_policy::Call::new(&args.tool, &arguments)
    };
    let said = exequatur_policy::evaluate(&compiled, &call);
    let verdict = said.verdict.as_str();
    let value = json!({"verdict": verdict, "rule": said.rule, "reason": said.reason, "error": said.error});
    app.output.value(&value, || {
        text::pairs(&[
            ("verdict", verdict.to_owned()),
            ("rule", said.rule.clone()),
            ("reason", said.reason.clone()),
            ("error", said.error.clone().unwrap_or_default()),
        ])
    });
    Ok(0)
}
