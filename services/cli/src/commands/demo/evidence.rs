//! What the demo searches, exports, changes and verifies: files, not services.

use std::path::{Path, PathBuf};

use super::provider::Entry;
use super::world::{World, said};
use super::{Broken, secrets};
use crate::commands::ledger;
use crate::connect::Zone;

/// What the offline verifier said.
pub(crate) struct Verdict {
    pub(crate) valid: bool,
    pub(crate) fault: String,
    pub(crate) summary: String,
    pub(crate) fingerprint: String,
}

/// The secrets, as the providers really got them; none found is a failure, because then a search means nothing.
pub(crate) fn planted(world: &World) -> Result<Vec<String>, Broken> {
    let entries = world.provider()?;
    let mut found: Vec<String> = Vec::new();
    for provider in ["crm", "sms"] {
        let secret =
            entries.iter().filter(|entry| entry.provider == provider).find_map(Entry::secret).ok_or_else(
                || format!("the provider `{provider}` never got its secret, so a search would prove nothing"),
            )?;
        found.push(secret);
    }
    found.dedup();
    Ok(found)
}

/// Everything that agents and logs saw: what the agent was told, each zone's log output and its whole folder.
pub(crate) fn places(world: &World) -> Result<Vec<(String, Vec<u8>)>, Broken> {
    let mut places: Vec<(String, Vec<u8>)> = world
        .told
        .iter()
        .map(|text| ("what the agent was told".to_owned(), text.clone().into_bytes()))
        .collect();
    let data = world.dev()?.data;
    for zone in Zone::ALL {
        for file in files(&data.join(zone.name()))? {
            let content =
                std::fs::read(&file).map_err(|e| format!("cannot read `{}`: {e}", file.display()))?;
            let name = file.strip_prefix(&data).unwrap_or(&file).display().to_string();
            places.push((name, content));
        }
    }
    Ok(places)
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Broken> {
    let entries =
        std::fs::read_dir(folder).map_err(|e| format!("cannot read `{}`: {e}", folder.display()))?;
    let mut files: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_file()).collect();
    files.sort();
    Ok(files)
}

/// Exports the evidence into the plane's folder.
pub(crate) async fn export(world: &World) -> Result<PathBuf, Broken> {
    let file = world.dev()?.data.join("evidence.jsonl");
    ledger::export(&world.operator()?, &file).await.map_err(said)?;
    Ok(file)
}

/// Verifies a file with the root key alone; no service is asked.
pub(crate) fn verify(world: &World, file: &Path) -> Result<Verdict, Broken> {
    let root_key = world.context()?.root_key;
    let report = ledger::check(file, &root_key).map_err(said)?;
    Ok(Verdict {
        valid: report.valid,
        summary: ledger::summary(&report),
        fault: report.first_fault.map(|fault| fault.to_string()).unwrap_or_default(),
        fingerprint: report.root_key_fingerprint,
    })
}

/// Flips the lowest bit of one byte inside a signed entry; the number is the byte's place.
pub(crate) fn flip(file: &Path) -> Result<usize, Broken> {
    let mut content = std::fs::read(file).map_err(|e| e.to_string())?;
    // In the middle of the first entry's signed payload: base64 text, where a flipped digit is another digit.
    let mut start = 0;
    for marker in [&b"\"entry\":"[..], &b"\"payload\":\""[..]] {
        let found = content.get(start..).and_then(|rest| secrets::find(rest, marker));
        start += found.ok_or("the export holds no entry")? + marker.len();
    }
    let length = content.get(start..).and_then(|rest| rest.iter().position(|b| *b == b'"')).unwrap_or(0);
    let mut at = start + length / 2;
    while let Some(byte) = content.get_mut(at) {
        let flipped = *byte ^ 1;
        if byte.is_ascii_alphanumeric() && flipped.is_ascii_alphanumeric() {
            *byte = flipped;
            break;
        }
        at += 1;
    }
    std::fs::write(file, content).map_err(|e| e.to_string())?;
    Ok(at)
}
