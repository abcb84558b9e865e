//! The offline verifier of ledger exports. Shares only messages, the transition table and signature
//! checks with the writers; hashes, trees and chains are computed anew here.

mod cross;
mod facts;
mod line;
mod report;
mod vault_audit;
mod zone;

use std::collections::BTreeMap;
use std::io::BufRead;

use exequatur_statement::{PublicRoot, Trust};

use cross::cross_check;
use facts::Facts;
use line::{First, Line};
pub use report::{CannotTell, Fault, Report, ZoneReport};
pub use vault_audit::{VaultReads, vault_reads};
use zone::Zones;

/// Bytes of one line; the largest body in base64, with room.
const MAX_LINE: u64 = 16 * 1024 * 1024;

/// Verifies an export against the operator's root key, which must come from elsewhere.
///
/// # Errors
/// [`CannotTell`] when the file cannot be read or is no export.
pub fn verify(mut reader: impl BufRead, root: &PublicRoot) -> Result<Report, CannotTell> {
    let fingerprint = root.fingerprint();
    let mut text = String::new();
    read_line(&mut reader, &mut text)?;
    let first = First::read(&text)?;
    let report = |zones: Vec<ZoneReport>, open, fault| Report {
        valid: fault_is_none(&fault),
        root_key_fingerprint: fingerprint.clone(),
        open,
        first_fault: fault,
        zones,
        tenant: first.tenant.clone(),
        vault_leases: BTreeMap::new(),
    };
    let trust = match Trust::from_json(&first.bundle.to_string(), root).map(Trust::historical) {
        Ok(trust) if trust.realm() == first.realm => trust,
        Ok(_) => {
            return Ok(report(Vec::new(), 0, Some(Fault::bundle("the trust bundle is of another realm"))));
        }
        Err(error) => return Ok(report(Vec::new(), 0, Some(Fault::bundle(&error.to_string())))),
    };
    let mut zones = Zones::new(&trust, &first.tenant);
    let mut facts = Facts::default();
    let mut number = 1_u64;
    while read_line(&mut reader, &mut text)? {
        number += 1;
        let taken = Line::read(&text)
            .ok_or_else(|| Fault::line(number))
            .and_then(|line| zones.take(line, &mut facts));
        if let Err(fault) = taken {
            let fault = if fault.zone.is_empty() { Fault { record: number, ..fault } } else { fault };
            return Ok(report(zones.report(), 0, Some(fault)));
        }
    }
    if let Err(fault) = zones.finish().and_then(|()| zones.bodies_of(&facts)) {
        return Ok(report(zones.report(), 0, Some(fault)));
    }
    let (open, fault) = cross_check(&facts, &zones);
    Ok(Report { vault_leases: facts.vault_leases(), ..report(zones.report(), open, fault) })
}

const fn fault_is_none(fault: &Option<Fault>) -> bool {
    fault.is_none()
}

/// False at the end of the file. An unfinished last line is read like any other.
fn read_line(reader: &mut impl BufRead, text: &mut String) -> Result<bool, CannotTell> {
    text.clear();
    let read = std::io::Read::take(reader, MAX_LINE).read_line(text);
    match read {
        Ok(0) => Ok(false),
        Ok(_) => {
            if text.ends_with('\n') {
                text.pop();
            }
            Ok(true)
        }
        // Text that is no text: a line that nobody can read.
        Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
            text.clear();
            text.push('?');
            Ok(true)
        }
        Err(error) => Err(CannotTell(error.to_string())),
    }
}
