//! One statement in one transaction over one fresh connection, which knows whether COMMIT was sent.
//! The session is opened and the statement checked before the dispatch. Never logs a statement or a value.

use std::error::Error as _;
use std::time::Duration;

use bytes::BytesMut;
use exequatur_fault::{Fault, Reason};
use exequatur_proto::definition::v1::{PostgresParameter, PostgresRequest, PostgresSecurity};
use exequatur_secret::Secret;
use futures::TryStreamExt as _;
use serde_json::{Map, Value as Json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_postgres::config::{ChannelBinding, SslMode};
use tokio_postgres::types::{Format, IsNull, ToSql, Type};
use tokio_postgres::{Client, Config, NoTls, Row, Statement};

use crate::Sent;
use crate::link::{Destination, Link, Security};

/// A session that asks for TLS (PostgreSQL documentation, "Message Formats", `SSLRequest`).
const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
/// How long the session may say nothing between our own messages.
const IDLE_MS: u32 = 15_000;

/// What the server did.
#[derive(Debug)]
pub enum Answer {
    /// Committed; the result as JSON, not yet redacted: `{"row_count":n,"rows":[{…}]}`.
    Committed(Vec<u8>),
    /// Rolled back: nothing was done. The server's SQLSTATE; empty when the session ended first.
    RolledBack(String),
    /// Rolled back because the result is larger than the definition allows.
    TooLarge,
}

/// A session with its transaction begun and its statement understood.
pub struct Open {
    client: Client,
    statement: Statement,
    parameters: Vec<PostgresParameter>,
    max_rows: usize,
    written: crate::counted::Written,
    began_at: u64,
}

/// Where a prepared statement goes.
///
/// # Errors
/// `DESTINATION_FORBIDDEN` for an unknown security or a port out of range.
pub fn destination(request: &PostgresRequest) -> Result<Destination, Fault> {
    let security = match request.security() {
        PostgresSecurity::Tls => Security::StartTls,
        PostgresSecurity::None => Security::Plain,
        PostgresSecurity::Unspecified => {
            return Err(Fault::new(Reason::DestinationForbidden, "the transport security is unknown"));
        }
    };
    let port = u16::try_from(request.port)
        .map_err(|_| Fault::new(Reason::DestinationForbidden, "the port is out of range"))?;
    Ok(Destination { host: request.host.clone(), port, security })
}

/// Opens the session, begins the transaction and has the statement checked. Nothing of it runs yet.
///
/// # Errors
/// `PROVIDER_REFUSED` for what no retry mends, `DESTINATION_UNREACHABLE` else. Nothing was done either way.
pub async fn open(
    link: Link,
    request: &PostgresRequest,
    login: Option<(&str, &Secret)>,
    limit: Duration,
) -> Result<Open, Fault> {
    tokio::time::timeout(limit, open_now(link, request, login))
        .await
        .map_err(|_| unreachable("the server was silent before the statement"))?
}

async fn open_now(
    link: Link,
    request: &PostgresRequest,
    login: Option<(&str, &Secret)>,
) -> Result<Open, Fault> {
    let link = if link.destination.security == Security::StartTls { secure(link).await? } else { link };
    let mut config = Config::new();
    config
        .dbname(&request.database)
        .application_name("exequatur")
        .ssl_mode(SslMode::Disable)
        .channel_binding(ChannelBinding::Disable);
    if let Some((user, secret)) = login {
        config.user(user).password(secret.expose());
    }
    let Link { stream, written, .. } = link;
    let (client, session) = config.connect_raw(stream, NoTls).await.map_err(|e| early(&e))?;
    // Ends when the client is dropped; its error reaches the caller through the client.
    tokio::spawn(async move { drop(session.await) });
    let access = if request.read_only { "READ ONLY" } else { "READ WRITE" };
    let begin = format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED {access}; \
         SET LOCAL statement_timeout = {}; SET LOCAL idle_in_transaction_session_timeout = {IDLE_MS}",
        request.statement_timeout_ms
    );
    client.batch_execute(&begin).await.map_err(|e| early(&e))?;
    let statement = client.prepare(&request.statement).await.map_err(|e| early(&e))?;
    if statement.params().len() != request.parameters.len() {
        return Err(refused("the statement takes another number of parameters than the definition gives"));
    }
    if let Some(column) = statement.columns().iter().find(|c| !readable(c.type_())) {
        return Err(refused("a column has a type that cannot be read; cast it to text")
            .with("column", column.name())
            .with("type", column.type_().name()));
    }
    let began_at = written.count();
    Ok(Open {
        client,
        statement,
        parameters: request.parameters.clone(),
        max_rows: usize::try_from(request.max_rows).unwrap_or(0),
        written,
        began_at,
    })
}

/// Asks for TLS; a server without it is refused.
async fn secure(mut link: Link) -> Result<Link, Fault> {
    let io = async {
        link.stream.write_all(&SSL_REQUEST).await?;
        link.stream.flush().await?;
        link.stream.read_u8().await
    };
    match io.await {
        Ok(b'S') => link.upgrade().await,
        Ok(_) => Err(refused("the server does not offer TLS")),
        Err(_) => Err(unreachable("the connection closed")),
    }
}

impl Open {
    /// Runs the statement and commits; `max_bytes` bounds the result.
    pub async fn send(self, limit: Duration, max_bytes: usize) -> Sent<Answer> {
        let deadline = tokio::time::Instant::now() + limit;
        let result = match tokio::time::timeout_at(deadline, self.run(max_bytes)).await {
            Ok(Ok(Some(result))) => result,
            Ok(Ok(None)) => return Sent::Answered(Answer::TooLarge),
            // Without COMMIT the server rolls back, whatever became of the session.
            Ok(Err(error)) if self.written.count() > self.began_at => {
                return Sent::Answered(Answer::RolledBack(sqlstate(&error)));
            }
            Ok(Err(_)) => return Sent::NotSent("the session ended before the statement".to_owned()),
            Err(_) => return Sent::Answered(Answer::RolledBack(String::new())),
        };
        match tokio::time::timeout_at(deadline, self.client.batch_execute("COMMIT")).await {
            Ok(Ok(())) => Sent::Answered(Answer::Committed(result)),
            // A deferred constraint, for one, is checked now.
            Ok(Err(error)) if error.as_db_error().is_some() => {
                Sent::Answered(Answer::RolledBack(sqlstate(&error)))
            }
            Ok(Err(_)) => Sent::Unclear("the session ended before an answer to COMMIT".to_owned()),
            Err(_) => Sent::Unclear("no answer to COMMIT in time".to_owned()),
        }
    }

    /// `None`: more than is allowed.
    async fn run(&self, max_bytes: usize) -> Result<Option<Vec<u8>>, tokio_postgres::Error> {
        let parameters: Vec<Text<'_>> = self.parameters.iter().map(Text).collect();
        let stream = self
            .client
            .query_raw(&self.statement, parameters.iter().map(|p| p as &(dyn ToSql + Sync)))
            .await?;
        tokio::pin!(stream);
        let mut rows = Vec::new();
        let mut bytes = 0_usize;
        while let Some(row) = stream.try_next().await? {
            let object = object(&row);
            bytes = bytes.saturating_add(object.to_string().len());
            if rows.len() >= self.max_rows || bytes > max_bytes {
                return Ok(None);
            }
            rows.push(object);
        }
        let count = stream.rows_affected().unwrap_or(0);
        let result = serde_json::json!({"row_count": count, "rows": rows}).to_string().into_bytes();
        Ok((result.len() <= max_bytes).then_some(result))
    }
}

/// A parameter in text form, read by the server as the type that the statement gives it.
#[derive(Debug)]
struct Text<'a>(&'a PostgresParameter);

impl ToSql for Text<'_> {
    fn to_sql(
        &self,
        _: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        if self.0.null {
            return Ok(IsNull::Yes);
        }
        out.extend_from_slice(self.0.text.as_bytes());
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    fn encode_format(&self, _: &Type) -> Format {
        Format::Text
    }

    tokio_postgres::types::to_sql_checked!();
}

fn readable(kind: &Type) -> bool {
    [
        Type::BOOL,
        Type::INT2,
        Type::INT4,
        Type::INT8,
        Type::FLOAT4,
        Type::FLOAT8,
        Type::TEXT,
        Type::VARCHAR,
        Type::BPCHAR,
        Type::NAME,
        Type::JSON,
        Type::JSONB,
        Type::UUID,
    ]
    .contains(kind)
}

fn object(row: &Row) -> Json {
    let cells = row.columns().iter().enumerate();
    Json::Object(cells.map(|(at, c)| (c.name().to_owned(), cell(row, at, c.type_()))).collect::<Map<_, _>>())
}

/// Exact or null; the types are those of [`readable`].
fn cell(row: &Row, at: usize, kind: &Type) -> Json {
    fn of<'a, T: tokio_postgres::types::FromSql<'a> + Into<Json>>(row: &'a Row, at: usize) -> Json {
        row.try_get::<_, Option<T>>(at).ok().flatten().map_or(Json::Null, Into::into)
    }
    match *kind {
        Type::BOOL => of::<bool>(row, at),
        Type::INT2 => of::<i16>(row, at),
        Type::INT4 => of::<i32>(row, at),
        Type::INT8 => of::<i64>(row, at),
        Type::FLOAT4 => of::<f32>(row, at),
        Type::FLOAT8 => of::<f64>(row, at),
        Type::JSON | Type::JSONB => of::<Json>(row, at),
        Type::UUID => row
            .try_get::<_, Option<uuid::Uuid>>(at)
            .ok()
            .flatten()
            .map_or(Json::Null, |id| Json::String(id.to_string())),
        _ => of::<String>(row, at),
    }
}

fn sqlstate(error: &tokio_postgres::Error) -> String {
    error.code().map(|code| code.code().to_owned()).unwrap_or_default()
}

/// Before the dispatch. The server's own text may echo what it was sent, so only its code is told.
fn early(error: &tokio_postgres::Error) -> Fault {
    let code = sqlstate(error);
    match code.get(..2) {
        // Class 57 operator intervention, 53 resources, 08 connection (PostgreSQL documentation, appendix A).
        Some("57" | "53" | "08") => unreachable("the server asks to come back later").with("sqlstate", code),
        Some(_) => refused("the server refused login or statement").with("sqlstate", code),
        None if error.is_closed() || error.source().is_some_and(|s| s.is::<std::io::Error>()) => {
            unreachable("the connection closed")
        }
        None => refused("the session cannot be opened"),
    }
}

fn unreachable(why: &str) -> Fault {
    Fault::new(Reason::DestinationUnreachable, format!("{why}; nothing was done")).retryable(true)
}

fn refused(why: &str) -> Fault {
    Fault::new(Reason::ProviderRefused, format!("{why}; nothing was done"))
}
