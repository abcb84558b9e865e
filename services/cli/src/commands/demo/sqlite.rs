//! What an intruder with the database file can do: change bytes in place and make the write-ahead log's checksums
//! fit again, so that the database itself notices nothing.

use std::path::Path;

use super::{Broken, secrets};

/// Replaces a byte string by one of equal length in a zone's database; the number is how often.
pub(crate) fn replace(folder: &Path, from: &[u8], to: &[u8]) -> Result<usize, Broken> {
    let failed = |e: std::io::Error| format!("the database in `{}`: {e}", folder.display());
    let mut count = 0;
    for (name, is_log) in [("zone.db", false), ("zone.db-wal", true)] {
        let file = folder.join(name);
        let mut content = match std::fs::read(&file) {
            Ok(content) => content,
            Err(e) if is_log && e.kind() == std::io::ErrorKind::NotFound => continue,
            Err(e) => return Err(failed(e)),
        };
        let here = replace_all(&mut content, from, to);
        if here > 0 {
            if is_log {
                seal(&mut content);
            }
            std::fs::write(&file, content).map_err(failed)?;
            count += here;
        }
    }
    Ok(count)
}

fn replace_all(content: &mut [u8], from: &[u8], to: &[u8]) -> usize {
    let (mut at, mut count) = (0, 0);
    while let Some(found) = content.get(at..).and_then(|rest| secrets::find(rest, from)) {
        let start = at + found;
        if let Some(place) = content.get_mut(start..start + to.len()) {
            place.copy_from_slice(to);
        }
        at = start + from.len();
        count += 1;
    }
    count
}

/// Length of the log's own header and of a frame's.
const HEADER: usize = 32;
const FRAME: usize = 24;

/// Computes the checksums of all frames of the log's present generation anew (SQLite file format, section 4.1).
fn seal(log: &mut [u8]) {
    let word = |bytes: &[u8], at: usize| -> Option<u32> {
        Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
    };
    let (Some(magic), Some(page)) = (word(log, 0), word(log, 8)) else { return };
    let big_endian = magic & 1 == 1;
    let page = usize::try_from(page).unwrap_or(0);
    let Some(salt) = log.get(16..24).map(<[u8]>::to_vec) else { return };
    let mut sum = checksum((0, 0), log.get(..24).unwrap_or_default(), big_endian);
    let mut at = HEADER;
    while let Some(frame) = log.get_mut(at..at + FRAME + page) {
        if frame.get(8..16) != Some(salt.as_slice()) {
            break;
        }
        sum = checksum(sum, frame.get(..8).unwrap_or_default(), big_endian);
        sum = checksum(sum, frame.get(FRAME..).unwrap_or_default(), big_endian);
        if let Some(place) = frame.get_mut(16..24) {
            let bytes: Vec<u8> = [sum.0.to_be_bytes(), sum.1.to_be_bytes()].concat();
            place.copy_from_slice(&bytes);
        }
        at += FRAME + page;
    }
}

fn checksum(start: (u32, u32), bytes: &[u8], big_endian: bool) -> (u32, u32) {
    let (mut first, mut second) = start;
    for pair in bytes.chunks_exact(8) {
        let (Some(x), Some(y)) = (half(pair, 0, big_endian), half(pair, 4, big_endian)) else { break };
        first = first.wrapping_add(x).wrapping_add(second);
        second = second.wrapping_add(y).wrapping_add(first);
    }
    (first, second)
}

fn half(pair: &[u8], at: usize, big_endian: bool) -> Option<u32> {
    let bytes = pair.get(at..at + 4)?.try_into().ok()?;
    Some(if big_endian { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replaced_log_keeps_checksums_that_fit() {
        // A log of one generation with two frames of 512 bytes, sealed by `seal` itself and then changed.
        let mut log = vec![0_u8; HEADER + 2 * (FRAME + 512)];
        log[..4].copy_from_slice(&0x377f_0682_u32.to_be_bytes());
        log[8..12].copy_from_slice(&512_u32.to_be_bytes());
        log[16..24].copy_from_slice(b"saltsalt");
        for frame in 0..2 {
            let at = HEADER + frame * (FRAME + 512);
            log[at + 8..at + 16].copy_from_slice(b"saltsalt");
        }
        log[HEADER + FRAME + 10..HEADER + FRAME + 15].copy_from_slice(b"digit");
        seal(&mut log);
        let before = log.clone();
        assert_eq!(replace_all(&mut log, b"digit", b"other"), 1);
        seal(&mut log);
        // The first frame differs, and so does the checksum of the second, which continues the first.
        let second = HEADER + FRAME + 512;
        assert_ne!(before[HEADER + 16..HEADER + 24], log[HEADER + 16..HEADER + 24]);
        assert_ne!(before[second + 16..second + 24], log[second + 16..second + 24]);
        assert_eq!(replace_all(&mut log, b"other", b"digit"), 1);
        seal(&mut log);
        assert_eq!(before, log);
    }
}
