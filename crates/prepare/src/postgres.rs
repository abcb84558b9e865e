//! Builds the statement of an action: fixed text, typed values beside it. Knows no connection and no secret.

use exequatur_canonical::{Object, Value};
use exequatur_proto::definition::v1::{PostgresParameter, PostgresRequest, PostgresTemplate, Source};

use crate::{PrepareError, place};

/// Longest value, bytes.
const MAX_VALUE: usize = 256 * 1024;
/// What a statement may begin with; whatever steers the transaction or the session is not in it.
const VERBS: &[&str] = &["SELECT", "WITH", "VALUES", "TABLE", "INSERT", "UPDATE", "DELETE", "MERGE"];
/// Most parameters.
pub(crate) const MAX_PARAMETERS: usize = 64;

/// Builds the request.
pub(crate) fn build(
    template: &PostgresTemplate,
    timeout_ms: u32,
    arguments: &Object,
) -> Result<PostgresRequest, PrepareError> {
    Ok(PostgresRequest {
        host: template.host.clone(),
        port: template.port,
        security: template.security,
        database: template.database.clone(),
        statement: template.statement.clone(),
        parameters: template.parameters.iter().map(|s| parameter(s, arguments)).collect::<Result<_, _>>()?,
        read_only: template.read_only,
        max_rows: template.max_rows,
        statement_timeout_ms: timeout_ms,
    })
}

fn parameter(source: &Source, arguments: &Object) -> Result<PostgresParameter, PrepareError> {
    let placed = place::need(source, arguments)?;
    if matches!(placed.value.as_ref(), Value::Null) {
        return Ok(PostgresParameter { null: true, text: String::new() });
    }
    let text = placed.text()?;
    value(&text).map_err(|why| placed.does_not_fit(why))?;
    Ok(PostgresParameter { null: false, text })
}

/// Why text is no parameter.
pub(crate) fn value(text: &str) -> Result<(), &'static str> {
    if text.contains('\0') {
        Err("a value holds no NUL character")
    } else if text.len() > MAX_VALUE {
        Err("a value has at most 256 KiB")
    } else {
        Ok(())
    }
}

/// Why text is no statement that this connector runs.
pub(crate) fn statement(text: &str) -> Result<(), &'static str> {
    if text.is_empty() || text.len() > 16 * 1024 {
        return Err("a statement has 1 to 16384 bytes");
    }
    if text.chars().any(|c| c.is_control() && !matches!(c, '\n' | '\t')) {
        return Err("a statement holds no control characters but line feed and tab");
    }
    let verb: String = text.trim_start().chars().take_while(char::is_ascii_alphabetic).collect();
    if VERBS.contains(&verb.to_ascii_uppercase().as_str()) {
        Ok(())
    } else {
        Err("a statement begins with SELECT, WITH, VALUES, TABLE, INSERT, UPDATE, DELETE or MERGE")
    }
}
