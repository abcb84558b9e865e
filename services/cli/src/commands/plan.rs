//! `plan`: propose, follow, take back, settle. Knows the plan file's form; what an action means it does not.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::{Args as ClapArgs, Subcommand, ValueEnum};
use exequatur_fault::{Fault, Reason};
use exequatur_plan_client::plan_service_client::PlanServiceClient;
use exequatur_proto::plan::v1::{
    Action, ActionState, CancelPlanRequest, GetPlanRequest, Plan, PlanState, ProposePlanRequest,
    ReleaseActionRequest, Resolution, ResolveActionRequest, ToolCall, WatchPlanRequest,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use tonic::transport::Channel;

use super::App;
use crate::connect::{self, Plane, Zone, request, with_token};
use crate::failure::{self, Failure};
use crate::text::{self, Table};

/// Arguments of `plan`.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Proposes a plan under a run token.
    Propose(Propose),
    /// One plan; without a token, as an operator.
    Get(Get),
    /// Follows a plan until all its actions have ended.
    Watch(Get),
    /// Takes back what has not started.
    Cancel(Get),
    /// Settles an action that is in doubt; nothing is sent.
    Resolve(Resolve),
    /// Lifts an operator's hold.
    Release {
        /// Id of the plan.
        plan: String,
        /// Position of the action.
        index: u32,
    },
}

#[derive(ClapArgs, Debug)]
struct Propose {
    /// The run's token.
    #[arg(long, value_name = "FILE")]
    token_file: PathBuf,
    /// The plan, JSON; `-` is standard input.
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    #[command(flatten)]
    wait: Wait,
}

#[derive(ClapArgs, Debug)]
struct Wait {
    /// Waits until every action has ended or is in doubt.
    #[arg(long)]
    wait: bool,
    /// Ends the wait: 30s, 15m, 24h.
    #[arg(long, value_parser = text::duration)]
    timeout: Option<Duration>,
}

#[derive(ClapArgs, Debug)]
struct Get {
    /// Id of the plan.
    plan: String,
    /// The run's token.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    wait: Wait,
}

#[derive(ClapArgs, Debug)]
struct Resolve {
    /// Id of the plan.
    plan: String,
    /// Position of the action.
    index: u32,
    /// What became of the effect.
    #[arg(long, value_enum)]
    outcome: Outcome,
    /// How you know.
    #[arg(long)]
    reason: String,
}

#[derive(ValueEnum, Clone, Copy, Debug)]
enum Outcome {
    /// The effect is done.
    Succeeded,
    /// The effect is not done.
    Failed,
}

/// A plan file.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    #[serde(default)]
    context: String,
    idempotency_key: String,
    #[serde(default)]
    continue_on_failure: bool,
    #[serde(default)]
    allow_partial: bool,
    #[serde(default)]
    allow_duplicate: bool,
    actions: Vec<ActionFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ActionFile {
    tool: String,
    /// Kept as the exact text that stands in the file.
    #[serde(default)]
    arguments: Option<Box<RawValue>>,
    #[serde(default)]
    arguments_json: Option<String>,
    #[serde(default)]
    rationale: String,
}

/// Runs the command.
pub(crate) async fn run(args: Args, app: &App) -> Result<u8, Failure> {
    match args.command {
        Command::Propose(args) => propose(args, app).await,
        Command::Get(args) => get(args, app).await,
        Command::Watch(mut args) => {
            args.wait.wait = true;
            get(args, app).await
        }
        Command::Cancel(args) => cancel(args, app).await,
        Command::Resolve(args) => resolve(args, app).await,
        Command::Release { plan, index } => release(plan, index, app).await,
    }
}

/// The plane, a client and, with a token, an empty tenant.
struct Door {
    client: PlanServiceClient<Channel>,
    token: Option<String>,
    tenant: String,
}

impl Door {
    fn open(token_file: Option<&Path>, app: &App) -> Result<Self, Failure> {
        let token = token_file.map(connect::token).transpose()?;
        let plane = if token.is_some() { Plane::agent(&app.global)? } else { Plane::operator(&app.global)? };
        let client = PlanServiceClient::new(plane.channel(Zone::Governance)?);
        let tenant = if token.is_some() { String::new() } else { plane.tenant };
        Ok(Self { client, token, tenant })
    }

    /// Waits for the end of a plan; a governance that restarts meanwhile is called again.
    async fn wait(&mut self, mut plan: Plan, timeout: Option<Duration>) -> Result<Plan, Failure> {
        let until = timeout.map(|timeout| Instant::now() + timeout);
        loop {
            if settled(&plan) {
                return Ok(plan);
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(plan);
            }
            let step = left.unwrap_or(connect::CALL).min(connect::CALL);
            match tokio::time::timeout(step, self.follow(&mut plan)).await {
                Ok(Err(status)) => {
                    let fault = Fault::from_status(&status);
                    if !matches!(
                        fault.reason(),
                        Reason::Unavailable | Reason::DeadlineExceeded | Reason::Internal
                    ) {
                        return Err(fault.into());
                    }
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                Ok(Ok(())) | Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    }

    /// Keeps `plan` up to date until it is settled or the stream ends.
    async fn follow(&mut self, plan: &mut Plan) -> Result<(), tonic::Status> {
        let message = WatchPlanRequest {
            plan: plan.plan.clone(),
            tenant: self.tenant.clone(),
            after_sequence: plan.sequence,
        };
        let request = with_token(message, self.token.as_deref())
            .map_err(|failure| tonic::Status::unauthenticated(failure.message))?;
        let mut stream = self.client.watch_plan(request).await?.into_inner();
        while let Some(update) = stream.message().await? {
            if let Some(newer) = update.plan {
                *plan = newer;
            }
            if settled(plan) {
                break;
            }
        }
        Ok(())
    }
}

async fn propose(args: Propose, app: &App) -> Result<u8, Failure> {
    let message = read(&args.file)?;
    let mut door = Door::open(Some(&args.token_file), app)?;
    let request = with_token(message, door.token.as_deref())?;
    let plan = door.client.propose_plan(request).await?.into_inner().plan.unwrap_or_default();
    let plan = finish(&mut door, plan, &args.wait).await?;
    Ok(show(&plan, app))
}

async fn get(args: Get, app: &App) -> Result<u8, Failure> {
    let mut door = Door::open(args.token_file.as_deref(), app)?;
    let message = GetPlanRequest { plan: args.plan, tenant: door.tenant.clone() };
    let request = with_token(message, door.token.as_deref())?;
    let plan = door.client.get_plan(request).await?.into_inner().plan.unwrap_or_default();
    let plan = finish(&mut door, plan, &args.wait).await?;
    Ok(show(&plan, app))
}

async fn finish(door: &mut Door, plan: Plan, wait: &Wait) -> Result<Plan, Failure> {
    if !wait.wait {
        return Ok(plan);
    }
    let duplicate_of = plan.duplicate_of.clone();
    let mut plan = door.wait(plan, wait.timeout).await?;
    // Only the answer to the proposal says this.
    if plan.duplicate_of.is_empty() {
        plan.duplicate_of = duplicate_of;
    }
    Ok(plan)
}

async fn cancel(args: Get, app: &App) -> Result<u8, Failure> {
    let mut door = Door::open(args.token_file.as_deref(), app)?;
    let message = CancelPlanRequest { plan: args.plan, tenant: door.tenant.clone() };
    let request = with_token(message, door.token.as_deref())?;
    let plan = door.client.cancel_plan(request).await?.into_inner().plan.unwrap_or_default();
    show(&plan, app);
    Ok(0)
}

async fn resolve(args: Resolve, app: &App) -> Result<u8, Failure> {
    let mut door = Door::open(None, app)?;
    let resolution = match args.outcome {
        Outcome::Succeeded => Resolution::Succeeded,
        Outcome::Failed => Resolution::Failed,
    };
    let message = ResolveActionRequest {
        tenant: door.tenant.clone(),
        plan: args.plan,
        index: args.index,
        resolution: resolution.into(),
        reason: args.reason,
    };
    let plan = door.client.resolve_action(request(message)).await?.into_inner().plan.unwrap_or_default();
    show(&plan, app);
    Ok(0)
}

async fn release(plan: String, index: u32, app: &App) -> Result<u8, Failure> {
    let mut door = Door::open(None, app)?;
    let message = ReleaseActionRequest { tenant: door.tenant.clone(), plan, index };
    let plan = door.client.release_action(request(message)).await?.into_inner().plan.unwrap_or_default();
    show(&plan, app);
    Ok(0)
}

/// Reads a plan file; arguments keep their exact text.
fn read(file: &Path) -> Result<ProposePlanRequest, Failure> {
    let name = file.display();
    let bytes = if file == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut std::io::stdin().lock(), &mut bytes).map(|_| bytes)
    } else {
        std::fs::read(file)
    };
    let bytes = bytes.map_err(|e| Failure::usage(format!("cannot read the plan file `{name}`: {e}")))?;
    parse(&bytes).map_err(|message| Failure::bad_input(format!("plan file `{name}`: {message}")))
}

fn parse(bytes: &[u8]) -> Result<ProposePlanRequest, String> {
    let plan: PlanFile = serde_json::from_slice(bytes).map_err(|e| e.to_string())?;
    let mut actions = Vec::with_capacity(plan.actions.len());
    for (index, action) in plan.actions.into_iter().enumerate() {
        let arguments_json = match (action.arguments, action.arguments_json) {
            (Some(raw), None) => raw.get().as_bytes().to_vec(),
            (None, Some(text)) => text.into_bytes(),
            _ => return Err(format!("action {index} needs `arguments` or `arguments_json`, and not both")),
        };
        actions.push(ToolCall { tool: action.tool, arguments_json, rationale: action.rationale });
    }
    Ok(ProposePlanRequest {
        context: plan.context,
        idempotency_key: plan.idempotency_key,
        continue_on_failure: plan.continue_on_failure,
        allow_partial: plan.allow_partial,
        allow_duplicate: plan.allow_duplicate,
        actions,
    })
}

/// Whether a wait for this plan is over.
fn settled(plan: &Plan) -> bool {
    plan.state() == PlanState::InDoubt
        || plan.actions.iter().all(|a| terminal(a.state()) || a.state() == ActionState::InDoubt)
}

const fn terminal(state: ActionState) -> bool {
    !matches!(
        state,
        ActionState::Unspecified
            | ActionState::Proposed
            | ActionState::AwaitingApproval
            | ActionState::Ready
            | ActionState::Executing
            | ActionState::InDoubt
    )
}

/// Writes the plan; the number is the exit code of its states.
pub(crate) fn show(plan: &Plan, app: &App) -> u8 {
    app.output.value(&plan_value(plan), || plan_text(plan));
    exit_of(plan)
}

fn exit_of(plan: &Plan) -> u8 {
    use ActionState as S;
    let any = |states: &[S]| plan.actions.iter().any(|action| states.contains(&action.state()));
    if any(&[S::Denied, S::Rejected, S::Refused, S::Expired, S::Revoked, S::Withdrawn]) {
        failure::DENIED
    } else if any(&[S::Proposed, S::AwaitingApproval, S::Ready, S::Executing]) {
        failure::PENDING
    } else if any(&[S::InDoubt]) {
        failure::IN_DOUBT
    } else if any(&[S::Failed]) {
        failure::FAILED
    } else {
        0
    }
}

/// A plan as `--output json` writes it.
pub(crate) fn plan_value(plan: &Plan) -> Value {
    let mut value = Map::new();
    value.insert("plan".into(), plan.plan.clone().into());
    value.insert("digest".into(), hex(&plan.digest).into());
    value.insert("words".into(), plan.words.clone().into());
    value.insert("state".into(), text::word(plan.state().as_str_name(), "PLAN_STATE_").into());
    if !plan.duplicate_of.is_empty() {
        value.insert("duplicate_of".into(), plan.duplicate_of.clone().into());
    }
    value.insert("actions".into(), plan.actions.iter().map(action_value).collect());
    Value::Object(value)
}

fn action_value(action: &Action) -> Value {
    let mut value = json!({
        "index": action.index,
        "digest": hex(&action.digest),
        "effect_digest": hex(&action.effect_digest),
        "wire_digest": hex(&action.wire_digest),
        "tool": action.tool,
        "state": action_state(action),
        "rule": action.rule,
        "reason": action.reason,
        "message": action.message,
        "retryable": action.retryable,
    });
    if let Some(value) = value.as_object_mut() {
        let mut put = |name: &str, content: Value| value.insert(name.to_owned(), content);
        if !action.instead.is_empty() {
            put("instead", action.instead.clone().into());
        }
        if !action.filled.is_empty() {
            put("filled", action.filled.clone().into());
        }
        if !action.receipt.is_empty() {
            put("receipt", hex(&action.receipt).into());
        }
        if !action.result.is_empty() {
            put("result", result_value(&action.result));
        }
        if !action.approval.is_empty() {
            put("approval", action.approval.clone().into());
        }
    }
    value
}

/// The exact text of a result; what is no text is base64 in an object.
fn result_value(result: &[u8]) -> Value {
    use base64::Engine as _;
    match std::str::from_utf8(result) {
        Ok(text) => text.into(),
        Err(_) => json!({"base64": base64::engine::general_purpose::STANDARD.encode(result)}),
    }
}

fn action_state(action: &Action) -> String {
    text::word(action.state().as_str_name(), "ACTION_STATE_")
}

fn plan_text(plan: &Plan) -> String {
    let mut text = text::pairs(&[
        ("plan", plan.plan.clone()),
        ("digest", hex(&plan.digest)),
        ("words", plan.words.clone()),
        ("state", text::word(plan.state().as_str_name(), "PLAN_STATE_")),
    ]);
    if !plan.duplicate_of.is_empty() {
        text.push_str(&text::pairs(&[("duplicate of", plan.duplicate_of.clone())]));
    }
    text.push('\n');
    let mut table = Table::new(&["#", "tool", "state", "rule", "reason", "digest"]);
    for action in &plan.actions {
        let digest = hex(&action.digest);
        let digest = digest.get(..16).unwrap_or_default();
        table.row([
            action.index.to_string().as_str(),
            &action.tool,
            &action_state(action),
            &action.rule,
            &action.reason,
            digest,
        ]);
    }
    text.push_str(&table.render(""));
    for action in &plan.actions {
        for (label, content) in [("says", action.message.as_str()), ("instead", action.instead.as_str())] {
            if !content.is_empty() {
                text.push_str(&format!("\n{} {label}: {}", action.index, text::escape(content)));
            }
        }
        if !action.result.is_empty() {
            let result = String::from_utf8_lossy(&action.result);
            text.push_str(&format!("\n{} result: {}", action.index, text::escape(&result)));
        }
    }
    text
}

/// Lower-case hex.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_keep_their_exact_text() {
        let text = br#"{"idempotency_key":"k","actions":[
            {"tool":"a.b","arguments":{"n":18446744073709551616,"x":1.0,"x":2},"rationale":"r"},
            {"tool":"a.b","arguments_json":"{\"y\": 1e2}"}]}"#;
        let plan = parse(text).unwrap();
        assert_eq!(plan.actions[0].arguments_json, br#"{"n":18446744073709551616,"x":1.0,"x":2}"#);
        assert_eq!(plan.actions[1].arguments_json, br#"{"y": 1e2}"#);
    }

    #[test]
    fn a_wrong_plan_file_is_refused() {
        for text in [
            r#"{"actions":[]}"#,
            r#"{"idempotency_key":"k","actions":[{"tool":"a"}]}"#,
            r#"{"idempotency_key":"k","actions":[{"tool":"a","arguments":{},"arguments_json":"{}"}]}"#,
            r#"{"idempotency_key":"k","actions":[],"extra":1}"#,
            r#"{"idempotency_key":"k","idempotency_key":"l","actions":[]}"#,
        ] {
            assert!(parse(text.as_bytes()).is_err(), "{text}");
        }
    }

    #[test]
    fn exit_codes_in_their_order() {
        let plan = |states: &[ActionState]| Plan {
            actions: states.iter().map(|s| Action { state: (*s).into(), ..Action::default() }).collect(),
            ..Plan::default()
        };
        use ActionState as S;
        assert_eq!(exit_of(&plan(&[S::Succeeded, S::NotSelected, S::Skipped])), 0);
        assert_eq!(exit_of(&plan(&[S::Failed, S::Succeeded])), 1);
        assert_eq!(exit_of(&plan(&[S::Failed, S::InDoubt])), 7);
        assert_eq!(exit_of(&plan(&[S::InDoubt, S::Ready])), 4);
        assert_eq!(exit_of(&plan(&[S::Ready, S::Denied])), 3);
    }
}
