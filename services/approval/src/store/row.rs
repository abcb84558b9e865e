//! From database rows to the contract's types, with every narrowing checked.

use exequatur_clock::UnixMillis;
use exequatur_fault::Fault;
use exequatur_lifecycle::{Item, Machine as _};
use exequatur_proto::approval::v1::ApprovalState;
use sqlx::Row as _;
use sqlx::sqlite::SqliteRow;

use super::{ActionRow, ApprovalRow, ItemRow};

/// Numbers of the database that the contract keeps unsigned.
pub(super) fn unsigned<T: TryFrom<i64>>(number: i64) -> Result<T, Fault> {
    T::try_from(number).map_err(|_| Fault::internal(format!("a stored number is out of range: {number}")))
}

/// Numbers of the contract that the database keeps signed.
pub(super) fn signed(number: u64) -> Result<i64, Fault> {
    i64::try_from(number).map_err(|_| Fault::internal(format!("a number does not fit the store: {number}")))
}

fn millis(value: Option<i64>) -> Option<UnixMillis> {
    value.map(UnixMillis)
}

pub(super) fn approval(row: &SqliteRow) -> Result<ApprovalRow, Fault> {
    let get = exequatur_store::fault;
    let state: i64 = row.try_get("state").map_err(get)?;
    Ok(ApprovalRow {
        approval: row.try_get("approval").map_err(get)?,
        tenant: row.try_get("tenant").map_err(get)?,
        plan_digest: row.try_get("plan_digest").map_err(get)?,
        agent: row.try_get("agent").map_err(get)?,
        header: row.try_get("header").map_err(get)?,
        rule_set_digest: row.try_get("rule_set_digest").map_err(get)?,
        request_digest: row.try_get("request_digest").map_err(get)?,
        opened_at: UnixMillis(row.try_get("opened_at").map_err(get)?),
        expires_at: millis(row.try_get("expires_at").map_err(get)?),
        window_s: unsigned(row.try_get("window_s").map_err(get)?)?,
        quorum: unsigned(row.try_get("quorum").map_err(get)?)?,
        state: ApprovalState::try_from(unsigned::<i32>(state)?).map_err(Fault::internal)?,
        decision: row.try_get("decision").map_err(get)?,
        window_ends_at: millis(row.try_get("window_ends_at").map_err(get)?),
    })
}

pub(super) fn action(row: &SqliteRow) -> Result<ActionRow, Fault> {
    let get = exequatur_store::fault;
    Ok(ActionRow {
        index: unsigned(row.try_get("position").map_err(get)?)?,
        action: row.try_get("action").map_err(get)?,
        definition: row.try_get("definition").map_err(get)?,
        wire_digest: row.try_get("wire_digest").map_err(get)?,
        tool: row.try_get("tool").map_err(get)?,
        held: row.try_get("held").map_err(get)?,
        rule: row.try_get("rule").map_err(get)?,
    })
}

pub(super) fn item(row: &SqliteRow) -> Result<ItemRow, Fault> {
    let get = exequatur_store::fault;
    let word: String = row.try_get("state").map_err(get)?;
    Ok(ItemRow {
        index: unsigned(row.try_get("position").map_err(get)?)?,
        tool: row.try_get("tool").map_err(get)?,
        state: Item::parse(&word)
            .ok_or_else(|| Fault::internal(format!("a stored item state is unknown: {word}")))?,
        reason: row.try_get("reason").map_err(get)?,
        attempt: unsigned(row.try_get("attempt").map_err(get)?)?,
        closed: unsigned(row.try_get("closed").map_err(get)?)?,
        reservation: row.try_get("reservation").map_err(get)?,
        withdrawal: row.try_get("withdrawal").map_err(get)?,
        approved_at: millis(row.try_get("approved_at").map_err(get)?),
        ends_at: millis(row.try_get("ends_at").map_err(get)?),
        opened_entry: unsigned(row.try_get("opened_entry").map_err(get)?)?,
        last_entry: unsigned(row.try_get("last_entry").map_err(get)?)?,
    })
}
