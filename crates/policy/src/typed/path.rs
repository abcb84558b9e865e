//! Paths of files.

use super::{Readings, fold};

/// Checks a pattern.
pub(super) fn pattern(text: &str) -> Result<(), String> {
    let starless = text.replace("\\*", "_").replace('*', "_");
    if fold::plain_path(&starless) {
        Ok(())
    } else {
        Err("a path is parts joined by `/`, without `.`, `..`, `//`, `%` or `\\`".to_owned())
    }
}

/// Every reading.
pub(super) fn read(text: &str) -> Readings {
    let home = text.starts_with('~') || text.contains(['$', ':', '\0']);
    let decoded = fold::decoded(text);
    // What follows a NUL, and a stream's name, some readers never see.
    let cut = decoded.split('\0').next().unwrap_or_default();
    let stream = cut.split("::").next().unwrap_or_default();
    let mut all = vec![
        text.to_owned(),
        fold::resolved(text),
        fold::resolved(&decoded),
        fold::resolved(&fold::case(&decoded)),
        fold::resolved(cut),
        fold::resolved(stream),
    ];
    // A folder is also meant without its last slash.
    let bare: Vec<String> = all.iter().filter_map(|p| p.strip_suffix('/')).map(ToOwned::to_owned).collect();
    all.extend(bare);
    all.dedup();
    Readings { plain: (fold::plain_path(text) && !home && !text.is_empty()).then(|| text.to_owned()), all }
}
