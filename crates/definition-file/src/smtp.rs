//! The `smtp` part of a tool file.

use exequatur_proto::definition::v1::{SmtpSecurity, SmtpTemplate};
use exequatur_yaml::{FileError, Kind, Node};

use crate::{http::host_port, source};

pub(crate) fn read(node: &Node) -> Result<SmtpTemplate, FileError> {
    let mut map = node.map()?;
    let server = map.need("server")?;
    let (host, port) = host_port(server.text()?, None).ok_or_else(|| server.error("must be `host:port`"))?;
    let security = map.need("security")?.word(&[
        ("tls", SmtpSecurity::Tls),
        ("starttls", SmtpSecurity::Starttls),
        ("none", SmtpSecurity::None),
    ])?;
    let to = map.need("to")?;
    let out = SmtpTemplate {
        host,
        port,
        security: security.into(),
        from: map.need("from")?.text()?.to_owned(),
        to: match &to.kind {
            Kind::List(items) => items.iter().map(source::required).collect::<Result<_, _>>()?,
            _ => vec![source::required(to)?],
        },
        subject: Some(source::required(map.need("subject")?)?),
        body: Some(source::required(map.need("body")?)?),
    };
    map.done()?;
    Ok(out)
}
