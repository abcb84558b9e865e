//! The tenants that this realm serves, from an operator's YAML file. Knows nothing of what they do.

use std::collections::BTreeSet;
use std::path::Path;

use exequatur_yaml::{FileError, read};

use crate::app::is_name;

/// The tenants of a file.
///
/// # Errors
/// What is wrong with the file and where: a bad file is refused whole.
pub(crate) fn load(file: &Path) -> Result<BTreeSet<String>, String> {
    let text =
        std::fs::read_to_string(file).map_err(|e| format!("tenants file `{}`: {e}", file.display()))?;
    parse(&text).map_err(|e| format!("tenants file `{}`: {e}", file.display()))
}

fn parse(text: &str) -> Result<BTreeSet<String>, FileError> {
    let document = read(text)?;
    let mut top = document.map()?;
    let list = top.need("tenants")?;
    top.done()?;
    let mut tenants = BTreeSet::new();
    for entry in list.list()? {
        let mut map = entry.map()?;
        let name = map.need("name")?;
        map.done()?;
        let word = name.text()?;
        if !is_name(word) {
            return Err(name.error("a tenant's name must be [a-z0-9][a-z0-9._-]{0,62}"));
        }
        if !tenants.insert(word.to_owned()) {
            return Err(name.error(format!("`{word}` is there twice")));
        }
    }
    if tenants.is_empty() {
        return Err(list.error("name at least one tenant"));
    }
    Ok(tenants)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bad_file_is_refused_whole_and_with_its_place() {
        let good = parse("tenants:\n  - name: demo\n  - {name: t-green}\n").unwrap();
        assert_eq!(good.into_iter().collect::<Vec<_>>(), ["demo", "t-green"]);
        for (text, line) in [
            ("tenants: []\n", 1),
            ("tenant:\n  - name: demo\n", 1),
            ("tenants:\n  - name: demo\n  - name: demo\n", 3),
            ("tenants:\n  - name: Demo\n", 2),
            ("tenants:\n  - name: \"a b\"\n", 2),
            ("tenants:\n  - name: demo\n    quota: 3\n", 3),
            ("tenants:\n  - demo\n", 2),
        ] {
            assert_eq!(parse(text).unwrap_err().line, line, "{text}");
        }
    }
}
