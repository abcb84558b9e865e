//! Whether an action stays within its run's tenant (invariant 9). Knows no store of tenants.

use exequatur_canonical::{FrozenAction, Value};

use crate::{Definition, ScopeError, names};

/// The word in a pattern that stands for the run's tenant.
pub(crate) const TENANT: &str = "{tenant}";

/// Checks the argument that confines the tool to a tenant. A tool without scope fits any tenant.
///
/// # Errors
/// [`ScopeError`] when the argument is missing, is no text, or is not the tenant's.
pub fn tenant_scope(definition: &Definition, action: &FrozenAction, tenant: &str) -> Result<(), ScopeError> {
    let Some(scope) = &definition.message().tenant_scope else { return Ok(()) };
    let refuse = |why: &str| Err(ScopeError { pointer: scope.argument.clone(), why: why.to_owned() });
    if !names::plain_id(tenant) {
        return refuse("the run's tenant has no usable name");
    }
    let value = match action.action().arguments.pointer(&scope.argument) {
        Some(Value::String(value)) => value,
        Some(_) => return refuse("must be text that names a resource of the run's tenant"),
        None => return refuse("is missing, and it confines the action to the run's tenant"),
    };
    let other = "names something outside of the run's tenant";
    let (pattern, open) = match scope.pattern.strip_suffix('*') {
        Some(pattern) => (pattern, true),
        None => (scope.pattern.as_str(), false),
    };
    let wanted = pattern.replace(TENANT, tenant);
    match value.strip_prefix(wanted.as_str()) {
        Some("") if !open => Ok(()),
        Some(rest) if open && !rest.is_empty() => {
            // `t-green/../t-blue/117` begins as the tenant's and ends elsewhere.
            let walks = rest.split(['/', '\\']).any(|part| matches!(part, "." | ".."));
            let hidden = rest.chars().any(char::is_control);
            let encoded = percent_encoded(rest);
            if walks || hidden || encoded { refuse(other) } else { Ok(()) }
        }
        _ => refuse(other),
    }
}

/// A `%XX` that a provider might decode into another path.
fn percent_encoded(text: &str) -> bool {
    text.as_bytes()
        .windows(3)
        .any(|w| matches!(w, [b'%', a, b] if a.is_ascii_hexdigit() && b.is_ascii_hexdigit()))
}

/// Whether a pattern can tell tenants apart: `{tenant}` once, and neither end of it touches a
/// character that could continue a tenant's name.
pub(crate) fn pattern(pattern: &str) -> Result<(), &'static str> {
    let fixed = pattern.strip_suffix('*').unwrap_or(pattern);
    if fixed.contains('*') {
        return Err("`*` may stand at the end only");
    }
    let Some((before, after)) = fixed.split_once(TENANT) else {
        return Err("must hold `{tenant}`");
    };
    if after.contains(TENANT) || before.contains(['{', '}']) || after.contains(['{', '}']) {
        return Err("`{tenant}` must stand once, and no other braces");
    }
    if before.bytes().next_back().is_some_and(names::id_byte) {
        return Err("the character before `{tenant}` could belong to a tenant's name");
    }
    let open = fixed.len() < pattern.len();
    match after.bytes().next() {
        None if open => {
            Err("`{tenant}*` would match every tenant whose name begins the same; write `{tenant}/*`")
        }
        Some(b) if names::id_byte(b) => Err("the character after `{tenant}` could belong to a tenant's name"),
        _ => Ok(()),
    }
}
