//! From SQLite rows to the contract's and back. Knows columns and nothing else.

use exequatur_clock::UnixMillis;
use exequatur_fault::Fault;
use exequatur_lifecycle::{Action as State, Machine, Run as RunState};
use exequatur_store::fault;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::{ActionRow, PlanRow, RunRow};

pub(super) fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

fn state<M: Machine>(word: &str) -> Result<M, Fault> {
    M::parse(word).ok_or_else(|| Fault::internal("a stored row is in no known state"))
}

/// Lists are kept as JSON text: names may hold any character that is not split on by accident.
pub(super) fn list(text: &str) -> Result<Vec<String>, Fault> {
    serde_json::from_str(text).map_err(Fault::internal)
}

pub(super) fn text(list: &[String]) -> String {
    serde_json::Value::from(list).to_string()
}

pub(super) fn run(row: &SqliteRow) -> Result<RunRow, Fault> {
    let word: String = row.try_get("state").map_err(fault)?;
    let scopes: String = row.try_get("scopes").map_err(fault)?;
    Ok(RunRow {
        run: row.try_get("run").map_err(fault)?,
        tenant: row.try_get("tenant").map_err(fault)?,
        agent: row.try_get("agent").map_err(fault)?,
        owner: row.try_get("owner").map_err(fault)?,
        starter: row.try_get("starter").map_err(fault)?,
        scopes: list(&scopes)?,
        state: state::<RunState>(&word)?,
        started_at: UnixMillis(row.try_get("started_at").map_err(fault)?),
        expires_at: UnixMillis(row.try_get("expires_at").map_err(fault)?),
        token_ttl: row.try_get("token_ttl").map_err(fault)?,
        parent: row.try_get("parent").map_err(fault)?,
    })
}

pub(super) fn plan(row: &SqliteRow, actions: Vec<ActionRow>) -> Result<PlanRow, Fault> {
    Ok(PlanRow {
        plan: row.try_get("plan").map_err(fault)?,
        tenant: row.try_get("tenant").map_err(fault)?,
        run: row.try_get("run").map_err(fault)?,
        digest: row.try_get("digest").map_err(fault)?,
        header: row.try_get("header").map_err(fault)?,
        effects: row.try_get("effects").map_err(fault)?,
        entry: unsigned(row.try_get("entry").map_err(fault)?),
        sequence: unsigned(row.try_get("sequence").map_err(fault)?),
        approval: row.try_get("approval").map_err(fault)?,
        decision: row.try_get("decision").map_err(fault)?,
        actions,
    })
}

pub(super) fn action(row: &SqliteRow) -> Result<ActionRow, Fault> {
    let word: String = row.try_get("state").map_err(fault)?;
    let filled: String = row.try_get("filled").map_err(fault)?;
    Ok(ActionRow {
        index: row.try_get("position").map_err(fault)?,
        tool: row.try_get("tool").map_err(fault)?,
        action: row.try_get("action").map_err(fault)?,
        definition: row.try_get("definition").map_err(fault)?,
        digest: row.try_get("digest").map_err(fault)?,
        effect_digest: row.try_get("effect_digest").map_err(fault)?,
        wire_digest: row.try_get("wire_digest").map_err(fault)?,
        verdict: row.try_get("verdict").map_err(fault)?,
        state: state::<State>(&word)?,
        rule: row.try_get("rule").map_err(fault)?,
        reason: row.try_get("reason").map_err(fault)?,
        message: row.try_get("message").map_err(fault)?,
        instead: row.try_get("instead").map_err(fault)?,
        filled: list(&filled)?,
        attempt: row.try_get("attempt").map_err(fault)?,
        asked: row.try_get("asked").map_err(fault)?,
        journal: row.try_get("journal").map_err(fault)?,
        retry_at: UnixMillis(row.try_get("retry_at").map_err(fault)?),
        ready_at: UnixMillis(row.try_get("ready_at").map_err(fault)?),
        on_hold: row.try_get("on_hold").map_err(fault)?,
        previous_abort: row.try_get("previous_abort").map_err(fault)?,
        receipt: row.try_get("receipt").map_err(fault)?,
        result: row.try_get("result").map_err(fault)?,
    })
}
