//! Statements: fixed text, values beside it.

use exequatur_proto::definition::v1::{PostgresLoginInjection, PostgresRequest};

use super::*;
use crate::request_text;

fn of(prepared: &Prepared) -> &PostgresRequest {
    match &prepared.request().request {
        Some(Request::Postgres(postgres)) => postgres,
        _ => panic!("no statement"),
    }
}

fn path(message: &ToolDefinition) -> String {
    match verify(message) {
        Err(PrepareError::Invalid { path, .. }) => path,
        other => panic!("{other:?}"),
    }
}

#[test]
fn values_never_reach_the_statement() {
    let hostile = r#"{"v":"x'; DROP TABLE customer; --"}"#;
    let prepared = run(Template::Postgres(postgres()), hostile).unwrap();
    assert_eq!(of(&prepared).statement, postgres().statement);
    assert_eq!(of(&prepared).parameters[0].text, "x'; DROP TABLE customer; --");
    assert_eq!(prepared.destination(), "db.example.com:5432");
    let null = run(Template::Postgres(postgres()), r#"{"v":null}"#).unwrap();
    let text = run(Template::Postgres(postgres()), r#"{"v":"null"}"#).unwrap();
    assert!(of(&null).parameters[0].null && !of(&text).parameters[0].null);
    assert_ne!(request_text(&null), request_text(&text));
    let exact = run(Template::Postgres(postgres()), r#"{"v":9007199254740993}"#).unwrap();
    assert_eq!(of(&exact).parameters[0].text, "9007199254740993");
    for unfit in [r#"{"v":[1]}"#, r#"{"v":{}}"#, r#"{"v":"a\u0000b"}"#] {
        let refused = run(Template::Postgres(postgres()), unfit).unwrap_err();
        assert!(matches!(refused, PrepareError::DoesNotFit { .. }), "{unfit}: {refused:?}");
    }
    assert!(matches!(run(Template::Postgres(postgres()), "{}"), Err(PrepareError::Missing { .. })));
}

#[test]
fn what_is_shown_is_what_is_sent() {
    let mut d = around(Template::Postgres(postgres()));
    d.credentials = vec![CredentialUse {
        credential: "crm-reader".to_owned(),
        injection: Some(Injection::PostgresLogin(PostgresLoginInjection::default())),
        attestation: Attestation::Auto.into(),
    }];
    let definition = verify(&d).unwrap();
    let prepared = prepare(&definition, &action(&definition, r#"{"v":"a\n$2 is NULL"}"#)).unwrap();
    let wanted = "PostgreSQL at db.example.com:5432, database crm, TLS\n\
        login with user and password of ‹crm-reader›\n\
        one transaction, read only, at most 10 rows, at most 1000 ms\n\
        statement, 39 bytes:\n| SELECT id FROM customer WHERE name = $1\n\
        $1, 12 bytes:\n| a\n| $2 is NULL";
    assert_eq!(request_text(&prepared), wanted);
}

#[test]
fn a_definition_says_one_checked_statement() {
    let broken = |change: &dyn Fn(&mut PostgresTemplate)| {
        let mut template = postgres();
        change(&mut template);
        path(&around(Template::Postgres(template)))
    };
    for statement in ["", "COMMIT", "BEGIN", "SET role = x", "DROP TABLE a", "SELECT 1\0", " -- x\nSELECT 1"]
    {
        assert_eq!(
            broken(&|t| statement.clone_into(&mut t.statement)),
            "postgres.statement",
            "{statement:?}"
        );
    }
    assert_eq!(broken(&|t| t.max_rows = 0), "postgres.max_rows");
    assert_eq!(broken(&|t| t.database.clear()), "postgres.database");
    assert_eq!(broken(&|t| t.security = 0), "postgres.security");
    assert_eq!(broken(&|t| t.host = "Db".to_owned()), "postgres.host");
    assert_eq!(broken(&|t| t.parameters = vec![arg("/v"); 65]), "postgres.parameters");
    let mut d = around(Template::Postgres(PostgresTemplate { read_only: false, ..postgres() }));
    verify(&d).unwrap();
    d.effect = Effect::Read.into();
    assert_eq!(path(&d), "postgres.read_only");
    d.effect = Effect::Write.into();
    d.credentials = vec![bearer("x")];
    assert_eq!(path(&d), "credentials[0]");
}
