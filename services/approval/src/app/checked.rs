//! What approval checks on top of what every door checks: the wire digest that was named beside the
//! bytes. Knows no store.

use exequatur_canonical::FrozenAction;
use exequatur_door::mismatch;
pub(crate) use exequatur_door::{action, definition, header};
use exequatur_fault::{Fault, Reason};
use exequatur_prepare::{Definition, Prepared, prepare};

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
