//! One door's check: from the bytes of a header, an action and a signed definition to what they
//! mean, every digest recomputed. Knows no store.

use exequatur_canonical::{Digest, FrozenAction, FrozenPlan, verify_action, verify_plan};
use exequatur_clock::UnixMillis;
use exequatur_fault::{Fault, Reason};
use exequatur_prepare::{Definition, Prepared, prepare};
use exequatur_proto::definition::v1::ToolDefinition;
use exequatur_proto::statement::v1::Envelope;
use exequatur_proto::trust::v1::Role;
use exequatur_service::Tenants;
use exequatur_statement::{Expect, Trust};

use super::{mismatch, refused};

/// A header that belongs to this realm.
pub(crate) fn header(realm: &str, bytes: &[u8]) -> Result<FrozenPlan, Fault> {
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
pub(crate) fn action(plan: &FrozenPlan, index: u32, bytes: &[u8]) -> Result<FrozenAction, Fault> {
    let at = |fault: Fault| fault.with("index", index.to_string());
    let frozen = verify_action(bytes).map_err(|_| {
        at(Fault::new(Reason::NotCanonical, "the action is not canonical; send the frozen bytes"))
    })?;
    let listed = usize::try_from(index).ok().and_then(|i| plan.header().action_digests.get(i));
    let listed = listed.ok_or_else(|| at(Fault::field("index", "the plan has no action at this index")))?;
    if *listed != frozen.digest() {
        return Err(at(mismatch("action", listed, &frozen.digest())));
    }
    Ok(frozen)
}

/// A definition that an operator of the tenant signed and that the action was proposed against.
pub(crate) fn definition(
    trust: &Trust,
    now: UnixMillis,
    tenant: &str,
    action: &FrozenAction,
    envelope: &Envelope,
) -> Result<Definition, Fault> {
    let expect = Expect { issuer: None, audience: None, tenant: None, now: now.0, check_expiry: false };
    let verified = trust.verify::<ToolDefinition>(envelope, expect).map_err(|e| refused("definition", &e))?;
    let operates = trust
        .principal(&verified.issuer)
        .is_some_and(|p| p.role == i32::from(Role::Operator) && Tenants::of(&p.tenants).contains(tenant));
    if !operates {
        return Err(Fault::new(
            Reason::StatementInvalid,
            "the definition is signed by no operator of this tenant; apply the tool again as one",
        ));
    }
    let definition = Definition::verify(&envelope.payload)
        .map_err(|e| Fault::new(Reason::NotCanonical, format!("the definition is not acceptable: {e}")))?;
    match action.action().tool_digest {
        Some(pinned) if pinned == definition.digest() => Ok(definition),
        pinned => Err(mismatch("tool", &pinned.unwrap_or(Digest::new([0; 32])), &definition.digest())),
    }
}

/// The request that the action becomes; its digest must be the one that was named.
pub(crate) fn request(
    definition: &Definition,
    action: &FrozenAction,
    wire_digest: &[u8],
) -> Result<Prepared, Fault> {
    let prepared = prepare(definition, action)
        .map_err(|e| Fault::new(Reason::ValueDoesNotFit, format!("the request cannot be prepared: {e}")))?;
    let named = super::digest(wire_digest, "wire_digest")?;
    if named != prepared.wire_digest() {
        return Err(mismatch("wire", &named, &prepared.wire_digest()));
    }
    Ok(prepared)
}
