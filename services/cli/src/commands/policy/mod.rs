//! `policy`: rules from a YAML file, checked here and put in force at governance.

mod author;
mod decide;
mod input;

use std::io::Read as _;
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

/// Longest call that `explain` reads, bytes.
const MAX_LINE: u64 = 64 * 1024 * 1024;

/// Arguments of `policy`.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Reads a rule file and says what is wrong or most likely not meant; exit 1 then. Offline.
    Check {
        /// Rules, YAML.
        file: PathBuf,
        /// Tool definitions that the rules are held against.
        #[arg(long, value_name = "DIR")]
        tools: Option<PathBuf>,
    },
    /// Decides calls, a line each. Offline.
    Decide(decide::Args),
    /// Runs the cases of a test file; exit 1 when one does not hold. Offline.
    Test {
        /// Cases, YAML.
        file: PathBuf,
        /// Rules in place of those that the test file names.
        #[arg(long, value_name = "FILE")]
        rules: Option<PathBuf>,
    },
    /// Holds rules against recorded decisions and says what would change. Offline.
    Replay(decide::Args),
    /// What is different between two rule files; exit 1 when something is. Offline.
    Diff {
        /// Rules, YAML.
        old: PathBuf,
        /// Rules, YAML.
        new: PathBuf,
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
    /// Rules, YAML; without it, the first word.
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// The tool and its arguments as JSON; without them, one call as `policy decide` reads it is read
    /// from standard input.
    #[arg(value_name = "TOOL ARGUMENTS", num_args = 0..=3)]
    words: Vec<String>,
    /// The tool cannot be undone.
    #[arg(long)]
    irreversible: bool,
}

/// Runs the command.
pub(crate) async fn run(args: Args, app: &App) -> Result<u8, Failure> {
    match args.command {
        Command::Check { file, tools } => author::check(&file, tools.as_deref(), app),
        Command::Decide(args) => decide::run(&args),
        Command::Test { file, rules } => author::test(&file, rules.as_deref(), app),
        Command::Replay(args) => decide::replay(&args, app),
        Command::Diff { old, new } => author::diff(&old, &new, app),
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
    let mut words = args.words.iter();
    let rules = match &args.rules {
        Some(rules) => rules.clone(),
        None => PathBuf::from(words.next().ok_or_else(|| Failure::usage("no rules: use `--rules FILE`"))?),
    };
    let Some(tool) = words.next() else {
        let mut line = Vec::new();
        std::io::stdin()
            .take(MAX_LINE)
            .read_to_end(&mut line)
            .map_err(|e| Failure::failed("INPUT_FAILED", format!("cannot read the input: {e}")))?;
        let call =
            input::Owned::read(&line, &[]).map_err(|why| Failure::bad_input(format!("the call {why}")))?;
        return author::explain(&rules, &call, app);
    };
    let text = words.next().map_or("{}", String::as_str);
    if words.next().is_some() {
        return Err(Failure::usage("too many words: a tool and its arguments"));
    }
    let arguments = exequatur_canonical::read_arguments(text.as_bytes())
        .map_err(|e| Failure::bad_input(format!("arguments: {e}")))?;
    let call = input::Owned {
        tool: tool.clone(),
        arguments,
        reversible: !args.irreversible,
        ..input::Owned::default()
    };
    author::explain(&rules, &call, app)
}
