//! `run`: an agent's bounded authority. `run -- COMMAND` starts a run for one program and revokes it after.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args as ClapArgs, Subcommand};
use exequatur_proto::run::v1::{
    GetRunRequest, ListRunsRequest, RenewRunTokenRequest, RevokeRunRequest, Run, StartRunRequest,
    StartRunResponse,
};
use exequatur_proto::tool::v1::ListToolsRequest;
use exequatur_run_client::run_service_client::RunServiceClient;
use exequatur_tool_client::tool_service_client::ToolServiceClient;
use serde_json::{Value, json};
use tonic::transport::Channel;

use super::App;
use crate::connect::{self, Plane, Zone, request, with_token};
use crate::failure::Failure;
use crate::text::{self, Table};

/// Arguments of `run`.
#[derive(ClapArgs, Debug)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    with: With,
}

/// `run -- COMMAND`.
#[derive(ClapArgs, Debug)]
struct With {
    /// Agent that the run is for; the context's when not said.
    #[arg(long)]
    agent: Option<String>,
    /// Tools that the run may propose; all registered ones when not said.
    #[arg(long, num_args = 1.., value_name = "SCOPE")]
    scope: Vec<String>,
    /// Program with its arguments; it finds EXEQUATUR_RUN_TOKEN, EXEQUATUR_ENDPOINT and EXEQUATUR_CA.
    #[arg(last = true, value_name = "COMMAND")]
    program: Vec<String>,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Starts a run and prints its first token.
    Start(Start),
    /// A fresh token for a run; never wider.
    Renew(Renew),
    /// Runs of the tenant, newest first.
    List,
    /// One run.
    Get {
        /// Id of the run.
        run: String,
    },
    /// Revokes a run and its children at once.
    Revoke {
        /// Id of the run.
        run: String,
        /// Why.
        #[arg(long, default_value = "revoked by an operator")]
        reason: String,
    },
}

#[derive(ClapArgs, Debug)]
struct Start {
    /// Agent that the run is for; the context's when not said.
    #[arg(long)]
    agent: Option<String>,
    /// Exact tool names, or prefixes ending in `.*`.
    #[arg(long, required = true, num_args = 1.., value_name = "SCOPE")]
    scope: Vec<String>,
    /// Life of the run: 30s, 15m, 24h, 30d.
    #[arg(long, value_parser = text::duration)]
    ttl: Option<Duration>,
    /// Life of each token, at most 1h.
    #[arg(long, value_parser = text::duration)]
    token_ttl: Option<Duration>,
    /// Starts a child of this token's run.
    #[arg(long, value_name = "FILE")]
    parent_token_file: Option<PathBuf>,
    /// Person that an internal service acts for, as a SPIFFE ID.
    #[arg(long)]
    owner: Option<String>,
    /// The same key and arguments give the same run.
    #[arg(long)]
    idempotency_key: Option<String>,
}

#[derive(ClapArgs, Debug)]
struct Renew {
    /// Id of the run; with --token-file it is the token's.
    run: Option<String>,
    /// A valid token of the run.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Life of the token, at most the run's own.
    #[arg(long, value_parser = text::duration)]
    token_ttl: Option<Duration>,
}

/// Runs the command.
pub(crate) async fn run(args: Args, app: &App) -> Result<u8, Failure> {
    match args.command {
        Some(Command::Start(start)) => self::start(start, app).await,
        Some(Command::Renew(renew)) => self::renew(renew, app).await,
        Some(Command::List) => list(app).await,
        Some(Command::Get { run }) => get(run, app).await,
        Some(Command::Revoke { run, reason }) => revoke(run, reason, app).await,
        None if args.with.program.is_empty() => {
            Err(Failure::usage("say `run start`, `run list`, `run revoke`, or `run -- COMMAND`"))
        }
        None => execute(args.with, app).await,
    }
}

fn client(plane: &Plane) -> Result<RunServiceClient<Channel>, Failure> {
    Ok(RunServiceClient::new(plane.channel(Zone::Governance)?))
}

async fn start(args: Start, app: &App) -> Result<u8, Failure> {
    let parent = args.parent_token_file.as_deref().map(connect::token).transpose()?;
    let plane = if parent.is_some() { Plane::agent(&app.global)? } else { Plane::operator(&app.global)? };
    let message = StartRunRequest {
        tenant: if parent.is_some() { String::new() } else { plane.tenant.clone() },
        agent: args.agent.unwrap_or_else(|| plane.context.agent.clone()),
        scopes: args.scope,
        ttl: args.ttl.map(proto_duration),
        token_ttl: args.token_ttl.map(proto_duration),
        owner: args.owner.unwrap_or_default(),
        idempotency_key: args.idempotency_key.unwrap_or_else(|| uuid::Uuid::new_v4().to_string()),
    };
    let request = with_token(message, parent.as_deref())?;
    let response = client(&plane)?.start_run(request).await?.into_inner();
    let value = started(&response);
    app.output.value(&value, || {
        let run = response.run.clone().unwrap_or_default();
        text::pairs(&[
            ("run", run.run),
            ("agent", run.agent),
            ("scopes", run.scopes.join(" ")),
            ("ends", text::instant(run.expires_at.as_ref()).unwrap_or_default()),
            ("token ends", text::instant(response.token_expires_at.as_ref()).unwrap_or_default()),
            ("token", response.token.clone()),
        ])
    });
    Ok(0)
}

/// The answer of `run start`.
fn started(response: &StartRunResponse) -> Value {
    let run = response.run.clone().unwrap_or_default();
    json!({
        "run": run.run,
        "token": response.token,
        "token_expires_at": text::instant(response.token_expires_at.as_ref()),
        "run_expires_at": text::instant(run.expires_at.as_ref()),
    })
}

async fn renew(args: Renew, app: &App) -> Result<u8, Failure> {
    let token = args.token_file.as_deref().map(connect::token).transpose()?;
    let plane = if token.is_some() { Plane::agent(&app.global)? } else { Plane::operator(&app.global)? };
    let (run, tenant) = match (&token, args.run) {
        (Some(_), _) => (String::new(), String::new()),
        (None, Some(run)) => (run, plane.tenant.clone()),
        (None, None) => return Err(Failure::usage("say the run, or --token-file FILE")),
    };
    let message = RenewRunTokenRequest { run, tenant, token_ttl: args.token_ttl.map(proto_duration) };
    let response =
        client(&plane)?.renew_run_token(with_token(message, token.as_deref())?).await?.into_inner();
    let ends = text::instant(response.token_expires_at.as_ref());
    app.output.value(&json!({"token": response.token, "token_expires_at": ends}), || {
        text::pairs(&[("token", response.token.clone()), ("token ends", ends.clone().unwrap_or_default())])
    });
    Ok(0)
}

async fn list(app: &App) -> Result<u8, Failure> {
    let plane = Plane::operator(&app.global)?;
    let mut client = client(&plane)?;
    let mut runs = Vec::new();
    let mut page_token = String::new();
    loop {
        let message = ListRunsRequest { tenant: plane.tenant.clone(), page_size: 200, page_token };
        let page = client.list_runs(request(message)).await?.into_inner();
        runs.extend(page.runs);
        page_token = page.next_page_token;
        if page_token.is_empty() {
            break;
        }
    }
    let items: Vec<Value> = runs.iter().map(run_value).collect();
    app.output.list(&json!({"runs": items}), &items, || {
        let mut table = Table::new(&["run", "agent", "state", "owner", "scopes", "ends"]);
        for run in &runs {
            table.row([
                run.run.clone(),
                run.agent.clone(),
                state(run),
                run.owner.clone(),
                run.scopes.join(" "),
                text::instant(run.expires_at.as_ref()).unwrap_or_default(),
            ]);
        }
        table.render("no runs")
    });
    Ok(0)
}

async fn get(run: String, app: &App) -> Result<u8, Failure> {
    let plane = Plane::operator(&app.global)?;
    let message = GetRunRequest { tenant: plane.tenant.clone(), run };
    let run = client(&plane)?.get_run(request(message)).await?.into_inner().run.unwrap_or_default();
    app.output.value(&run_value(&run), || {
        text::pairs(&[
            ("run", run.run.clone()),
            ("state", state(&run)),
            ("agent", run.agent.clone()),
            ("owner", run.owner.clone()),
            ("scopes", run.scopes.join(" ")),
            ("ends", text::instant(run.expires_at.as_ref()).unwrap_or_default()),
        ])
    });
    Ok(0)
}

async fn revoke(run: String, reason: String, app: &App) -> Result<u8, Failure> {
    let plane = Plane::operator(&app.global)?;
    let message = RevokeRunRequest { tenant: plane.tenant.clone(), run, reason };
    let revoked = client(&plane)?.revoke_run(request(message)).await?.into_inner().revoked;
    app.output.value(&json!({"revoked": revoked}), || {
        if revoked.is_empty() {
            "was revoked before".to_owned()
        } else {
            format!("revoked {}", text::escape(&revoked.join(" ")))
        }
    });
    Ok(0)
}

/// Runs a program with a run of its own.
async fn execute(with: With, app: &App) -> Result<u8, Failure> {
    let plane = Plane::operator(&app.global)?;
    let Some((program, arguments)) = with.program.split_first() else {
        return Err(Failure::usage("say a program after `--`"));
    };
    let scopes = if with.scope.is_empty() { all_tools(&plane).await? } else { with.scope };
    let mut client = client(&plane)?;
    let message = StartRunRequest {
        tenant: plane.tenant.clone(),
        agent: with.agent.unwrap_or_else(|| plane.context.agent.clone()),
        scopes,
        ttl: None,
        token_ttl: Some(proto_duration(Duration::from_secs(3_600))),
        owner: String::new(),
        idempotency_key: uuid::Uuid::new_v4().to_string(),
    };
    let response = client.start_run(request(message)).await?.into_inner();
    let run = response.run.unwrap_or_default().run;
    app.output.note(&format!("run {run} started, its token ends in an hour"));
    let status = tokio::process::Command::new(program)
        .args(arguments)
        .env("EXEQUATUR_RUN_TOKEN", &response.token)
        .env("EXEQUATUR_ENDPOINT", &plane.context.endpoints.governance)
        .env("EXEQUATUR_CA", &plane.context.ca)
        .status()
        .await;
    let message = RevokeRunRequest {
        tenant: plane.tenant.clone(),
        run: run.clone(),
        reason: "its program ended".to_owned(),
    };
    client.revoke_run(request(message)).await?;
    app.output.note(&format!("run {run} revoked"));
    let status =
        status.map_err(|e| Failure::failed("PROGRAM_FAILED", format!("cannot run `{program}`: {e}")))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(crate::failure::FAILED))
}

async fn all_tools(plane: &Plane) -> Result<Vec<String>, Failure> {
    let mut client = ToolServiceClient::new(plane.channel(Zone::Governance)?);
    let message = ListToolsRequest { tenant: plane.tenant.clone(), page_size: 64, page_token: String::new() };
    let tools = client.list_tools(request(message)).await?.into_inner().tools;
    Ok(tools.into_iter().map(|tool| tool.tool).collect())
}

fn run_value(run: &Run) -> Value {
    json!({
        "run": run.run,
        "tenant": run.tenant,
        "agent": run.agent,
        "owner": run.owner,
        "scopes": run.scopes,
        "state": state(run),
        "run_expires_at": text::instant(run.expires_at.as_ref()),
        "started_at": text::instant(run.started_at.as_ref()),
        "parent": run.parent,
    })
}

fn state(run: &Run) -> String {
    text::word(run.state().as_str_name(), "RUN_STATE_")
}

pub(crate) fn proto_duration(duration: Duration) -> prost_types::Duration {
    prost_types::Duration {
        seconds: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        nanos: i32::try_from(duration.subsec_nanos()).unwrap_or(0),
    }
}
