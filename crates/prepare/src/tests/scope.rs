//! Attack row S52: the tenant an action reaches into.

use exequatur_proto::definition::v1::{TenantScope, tool_definition::Template};

use super::*;
use crate::tenant_scope;

fn scoped(pattern: &str) -> Result<Definition, PrepareError> {
    let mut d = around(Template::Http(http()));
    d.tenant_scope = Some(TenantScope { argument: "/account".to_owned(), pattern: pattern.to_owned() });
    verify(&d)
}

fn allowed(pattern: &str, arguments: &str, tenant: &str) -> bool {
    let definition = scoped(pattern).unwrap();
    tenant_scope(&definition, &action(&definition, arguments), tenant).is_ok()
}

#[test]
fn s52_another_tenants_argument_is_refused() {
    let pattern = "{tenant}/*";
    assert!(allowed(pattern, r#"{"account":"t-green/117"}"#, "t-green"));
    assert!(allowed(pattern, r#"{"account":"t-green/a/b.c..d"}"#, "t-green"));
    assert!(allowed(pattern, r#"{"account":"t-green/50% off"}"#, "t-green"));
    for arguments in [
        r#"{"account":"t-blue/117"}"#,
        r#"{"account":"t-green"}"#,
        r#"{"account":"t-green/"}"#,
        r#"{"account":"t-green2/117"}"#,
        r#"{"account":"T-green/117"}"#,
        r#"{"account":" t-green/117"}"#,
        r#"{"account":"t-green/../t-blue/117"}"#,
        r#"{"account":"t-green/..\\t-blue"}"#,
        r#"{"account":"t-green/%2e%2e/t-blue/117"}"#,
        r#"{"account":"t-green/1\nt-blue/2"}"#,
        r#"{"account":"{tenant}/117"}"#,
        r#"{"account":["t-green/117"]}"#,
        r#"{"account":117}"#,
        r#"{"account":null}"#,
        r#"{"Account":"t-green/117"}"#,
        "{}",
    ] {
        assert!(!allowed(pattern, arguments, "t-green"), "{arguments}");
    }
}

#[test]
fn s32_a_tenant_is_one_plain_name() {
    for tenant in ["t-green\nt-blue", "t-green/117", "t green", "", "T-green", "t-green "] {
        assert!(!allowed("{tenant}/*", r#"{"account":"t-green/117"}"#, tenant), "{tenant:?}");
    }
}

#[test]
fn a_closed_pattern_matches_exactly() {
    assert!(allowed("acct:{tenant}", r#"{"account":"acct:t1"}"#, "t1"));
    assert!(!allowed("acct:{tenant}", r#"{"account":"acct:t1x"}"#, "t1"));
    assert!(!allowed("acct:{tenant}", r#"{"account":"xacct:t1"}"#, "t1"));
}

#[test]
fn a_pattern_that_cannot_tell_tenants_apart_is_refused() {
    for pattern in [
        "",
        "*",
        "x/*",
        "{tenant}*",
        "a{tenant}/*",
        "{tenant}x/*",
        "{tenant}/*/x",
        "{tenant}/{tenant}",
        "{}/{tenant}/*",
        "{tenant}-*",
    ] {
        assert!(scoped(pattern).is_err(), "{pattern}");
    }
    for pattern in ["{tenant}", "{tenant}/*", "x/{tenant}/y/*", "acct:{tenant}:*"] {
        assert!(scoped(pattern).is_ok(), "{pattern}");
    }
}

#[test]
fn a_tool_without_scope_fits_any_tenant() {
    let definition = verify(&around(Template::Http(http()))).unwrap();
    assert!(tenant_scope(&definition, &action(&definition, "{}"), "t1").is_ok());
}
