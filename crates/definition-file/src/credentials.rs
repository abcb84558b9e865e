//! The `credentials` part of a tool file.

use exequatur_proto::definition::v1::{
    BasicInjection, BearerInjection, CredentialUse, HeaderInjection, PostgresLoginInjection, QueryInjection,
    SmtpPasswordInjection, credential_use::Injection,
};
use exequatur_yaml::{FileError, Kind, Node};

pub(crate) fn read(node: &Node) -> Result<Vec<CredentialUse>, FileError> {
    node.list()?
        .iter()
        .map(|item| {
            let mut map = item.map()?;
            let used = CredentialUse {
                credential: map.need("name")?.text()?.to_owned(),
                injection: Some(injection(map.need("as")?)?),
                attestation: crate::attestation(map.take("attestation"))?.into(),
            };
            map.done()?;
            Ok(used)
        })
        .collect()
}

fn injection(node: &Node) -> Result<Injection, FileError> {
    if let Kind::Text(text) = &node.kind
        && text == "bearer"
    {
        return Ok(Injection::Bearer(BearerInjection {}));
    }
    if let Kind::Text(text) = &node.kind
        && text == "postgres_login"
    {
        return Ok(Injection::PostgresLogin(PostgresLoginInjection::default()));
    }
    let forms = "`bearer`, `postgres_login`, `{postgres_login: USER}`, `{basic: USER}`, `{header: NAME}`, `{query: NAME}` or `{smtp_password: USER}`";
    let Kind::Map(entries) = &node.kind else { return Err(node.error(format!("must be {forms}"))) };
    let [(_, kind, value)] = entries.as_slice() else {
        return Err(node.error(format!("must be one of {forms}")));
    };
    let text = value.text()?.to_owned();
    match kind.as_str() {
        "basic" => Ok(Injection::Basic(BasicInjection { user: text })),
        "header" => Ok(Injection::Header(HeaderInjection { name: text })),
        "query" => Ok(Injection::Query(QueryInjection { name: text })),
        "postgres_login" => Ok(Injection::PostgresLogin(PostgresLoginInjection { user: text })),
        "smtp_password" => Ok(Injection::SmtpPassword(SmtpPasswordInjection { user: text })),
        _ => Err(node.error(format!("must be {forms}"))),
    }
}
