//! The `postgres` part of a tool file.

use exequatur_proto::definition::v1::{PostgresSecurity, PostgresTemplate};
use exequatur_yaml::{FileError, Node};

use crate::{http::host_port, source, units};

/// Rows of a result where the file says nothing.
const MAX_ROWS: u32 = 100;

/// `reads`: the tool only reads, so its statement is read only where nothing is said.
pub(crate) fn read(node: &Node, reads: bool) -> Result<PostgresTemplate, FileError> {
    let mut map = node.map()?;
    let server = map.need("server")?;
    let (host, port) =
        host_port(server.text()?, Some(5432)).ok_or_else(|| server.error("must be `host` or `host:port`"))?;
    let security =
        map.need("security")?.word(&[("tls", PostgresSecurity::Tls), ("none", PostgresSecurity::None)])?;
    let out = PostgresTemplate {
        host,
        port,
        security: security.into(),
        database: map.need("database")?.text()?.to_owned(),
        statement: map.need("statement")?.text()?.to_owned(),
        parameters: map.take("parameters").map_or_else(
            || Ok(Vec::new()),
            |node| node.list()?.iter().map(source::required).collect::<Result<_, _>>(),
        )?,
        read_only: map.take("read_only").map_or(Ok(reads), Node::bool)?,
        max_rows: map.take("max_rows").map_or(Ok(MAX_ROWS), units::count)?,
    };
    map.done()?;
    Ok(out)
}
