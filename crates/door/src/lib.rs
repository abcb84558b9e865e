//! The check that every door makes: from the bytes of a header, an action and a signed definition
//! to what they mean, every digest recomputed. Knows no store and no transport.

use exequatur_canonical::{Digest, FrozenAction, FrozenPlan, verify_action, verify_plan};
use exequatur_fault::{Fault, Reason};
use exequatur_prepare::{Definition, Prepared, prepare};
use exequatur_proto::definition::v1::ToolDefinition;
use exequatur_proto::statement::v1::{Envelope, Warrant};
use exequatur_proto::trust::v1::Role;
use exequatur_statement::{Expect, StatementError, Trust, Verified};

/// What one action is, recomputed from bytes.
#[derive(Debug, Clone)]
pub struct Checked {
    /// The header.
    pub plan: FrozenPlan,
    /// Position in the plan.
    pub index: u32,
    /// The action that the header lists there.
    pub action: FrozenAction,
    /// The definition that the action was proposed against.
    pub definition: Definition,
    /// The request that the action becomes.
    pub prepared: Prepared,
}

/// Checks header, action and definition against one another.
///
/// # Errors
/// `NOT_CANONICAL`, `DIGEST_MISMATCH`, `STATEMENT_INVALID`, `VALUE_DOES_NOT_FIT` or `INVALID_FIELD`.
pub fn check(
    trust: &Trust,
    now: i64,
    header: &[u8],
    index: u32,
    action: &[u8],
    definition: Option<&Envelope>,
) -> Result<Checked, Fault> {
    let plan = self::header(&trust.realm(), header)?;
    // From here on a refusal names what it is about, so that its record lands in the tenant's log.
    let (tenant, digest) = (plan.header().tenant.clone(), plan.digest());
    of_plan(trust, now, plan, index, action, definition).map_err(|fault| {
        fault.with("tenant", tenant).with("plan", digest.to_string()).with("index", index.to_string())
    })
}

fn of_plan(
    trust: &Trust,
    now: i64,
    plan: FrozenPlan,
    index: u32,
    action: &[u8],
    definition: Option<&Envelope>,
) -> Result<Checked, Fault> {
    let action = self::action(&plan, index, action)?;
    let definition =
        self::definition(trust, now, &plan.header().tenant, &action, present(definition, "definition")?)?;
    let prepared = prepare(&definition, &action)
        .map_err(|e| Fault::new(Reason::ValueDoesNotFit, format!("the request cannot be prepared: {e}")))?;
    Ok(Checked { plan, index, action, definition, prepared })
}

/// A header that belongs to this realm.
///
/// # Errors
/// `NOT_CANONICAL` or `INVALID_FIELD`.
pub fn header(realm: &str, bytes: &[u8]) -> Result<FrozenPlan, Fault> {
    let plan = verify_plan(bytes).map_err(|_| {
        Fault::new(Reason::NotCanonical, "the plan header is not canonical; send the frozen bytes")
    })?;
    let h = plan.header();
    if h.realm != realm {
        return Err(Fault::field("header", "the plan header is of another realm"));
    }
    for (name, value) in [("tenant", &h.tenant), ("run", &h.run), ("agent", &h.agent), ("owner", &h.owner)] {
        if value.is_empty() {
            return Err(Fault::field("header", format!("the plan header names no {name}")));
        }
    }
    Ok(plan)
}

/// An action that the header lists at `index`.
///
/// # Errors
/// `NOT_CANONICAL`, `INVALID_FIELD` or `DIGEST_MISMATCH`.
pub fn action(plan: &FrozenPlan, index: u32, bytes: &[u8]) -> Result<FrozenAction, Fault> {
    let at = |fault: Fault| fault.with("index", index.to_string());
    let frozen = verify_action(bytes).map_err(|_| {
        at(Fault::new(Reason::NotCanonical, "the action is not canonical; send the frozen bytes"))
    })?;
    let listed = usize::try_from(index).ok().and_then(|i| plan.header().action_digests.get(i));
    let listed = listed.ok_or_else(|| at(Fault::field("index", "the plan has no action at this index")))?;
    if *listed == frozen.digest() {
        Ok(frozen)
    } else {
        Err(at(mismatch("action", listed, &frozen.digest())))
    }
}

/// A definition that an operator of the tenant signed and that the action was proposed against.
///
/// # Errors
/// `STATEMENT_INVALID`, `NOT_CANONICAL` or `DIGEST_MISMATCH`.
pub fn definition(
    trust: &Trust,
    now: i64,
    tenant: &str,
    action: &FrozenAction,
    envelope: &Envelope,
) -> Result<Definition, Fault> {
    let definition = signed_definition(trust, now, tenant, envelope)?;
    match action.action().tool_digest {
        Some(pinned) if pinned == definition.digest() => Ok(definition),
        pinned => Err(mismatch("tool", &pinned.unwrap_or(Digest::new([0; 32])), &definition.digest())),
    }
}

/// A definition that an operator of the tenant signed.
///
/// # Errors
/// `STATEMENT_INVALID` or `NOT_CANONICAL`.
pub fn signed_definition(
    trust: &Trust,
    now: i64,
    tenant: &str,
    envelope: &Envelope,
) -> Result<Definition, Fault> {
    let expect = Expect { issuer: None, audience: None, tenant: None, now, check_expiry: false };
    let verified = trust.verify::<ToolDefinition>(envelope, expect).map_err(|e| refused("definition", &e))?;
    let operates = trust.principal(&verified.issuer).is_some_and(|p| {
        p.role == i32::from(Role::Operator) && (p.tenants == ["*"] || p.tenants.iter().any(|t| t == tenant))
    });
    if !operates {
        return Err(Fault::new(
            Reason::StatementInvalid,
            "the definition is signed by no operator of this tenant; apply the tool again as one",
        ));
    }
    Definition::verify(&envelope.payload)
        .map_err(|e| Fault::new(Reason::NotCanonical, format!("the definition is not acceptable: {e}")))
}

/// Governance's warrant for exactly what was checked.
///
/// # Errors
/// `STATEMENT_INVALID` or `DIGEST_MISMATCH`.
pub fn warrant(
    trust: &Trust,
    now: i64,
    checked: &Checked,
    envelope: Option<&Envelope>,
) -> Result<Verified<Warrant>, Fault> {
    let zone = |name: &str| format!("spiffe://{}/zone/{name}", trust.realm());
    let (governance, connector) = (zone("governance"), zone("connector"));
    let expect = Expect {
        issuer: Some(&governance),
        audience: Some(&connector),
        tenant: Some(&checked.plan.header().tenant),
        now,
        check_expiry: true,
    };
    let verified =
        trust.verify::<Warrant>(present(envelope, "warrant")?, expect).map_err(|e| refused("warrant", &e))?;
    let w = &verified.statement;
    named("plan", &w.plan_digest, &checked.plan.digest())?;
    named("action", &w.action_digest, &checked.action.digest())?;
    named("tool", &w.tool_digest, &checked.definition.digest())?;
    named("wire", &w.wire_digest, &checked.prepared.wire_digest())?;
    if w.index != checked.index || w.run != checked.plan.header().run {
        return Err(Fault::new(Reason::StatementInvalid, "the warrant is for another action or run"));
    }
    Ok(verified)
}

/// A digest that a statement names must be that of the bytes.
///
/// # Errors
/// `DIGEST_MISMATCH`.
pub fn named(what: &str, named: &[u8], found: &Digest) -> Result<(), Fault> {
    if named == found.as_bytes() {
        return Ok(());
    }
    Err(mismatch(what, &Digest::from_slice(named).unwrap_or(Digest::new([0; 32])), found))
}

/// A statement that must be there.
///
/// # Errors
/// `INVALID_FIELD`.
pub fn present<'a>(envelope: Option<&'a Envelope>, field: &str) -> Result<&'a Envelope, Fault> {
    envelope.ok_or_else(|| Fault::field(field, format!("`{field}` is missing; send the signed statement")))
}

/// A statement that is not acceptable, as a fault that names it.
#[must_use]
pub fn refused(what: &str, error: &StatementError) -> Fault {
    Fault::new(error.reason(), format!("the {what} is not acceptable: {error}")).with("statement", what)
}

/// Bytes and digest that do not belong together.
#[must_use]
pub fn mismatch(what: &str, expected: &Digest, found: &Digest) -> Fault {
    Fault::new(
        Reason::DigestMismatch,
        format!(
            "the {what} digest is not that of the bytes; read them again and compute it from what was read"
        ),
    )
    .with("expected", expected.to_string())
    .with("found", found.to_string())
}
