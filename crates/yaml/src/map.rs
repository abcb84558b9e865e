//! Taking a mapping apart so that no key is overlooked. Knows no key by name.

use crate::{FileError, Node, Place};

/// A mapping of which every key must be taken.
#[derive(Debug)]
pub struct Map<'a> {
    place: Place,
    entries: &'a [(Place, String, Node)],
    known: Vec<&'static str>,
}

impl<'a> Map<'a> {
    pub(crate) const fn new(place: Place, entries: &'a [(Place, String, Node)]) -> Self {
        Self { place, entries, known: Vec::new() }
    }

    /// Where the mapping begins.
    #[must_use]
    pub const fn place(&self) -> Place {
        self.place
    }

    /// The value of a key, if it is there.
    pub fn take(&mut self, key: &'static str) -> Option<&'a Node> {
        self.known.push(key);
        self.entries.iter().find(|(_, name, _)| name == key).map(|(_, _, node)| node)
    }

    /// The value of a key that must be there.
    ///
    /// # Errors
    /// When it is not; a key that looks like it is named first.
    pub fn need(&mut self, key: &'static str) -> Result<&'a Node, FileError> {
        match self.take(key) {
            Some(node) => Ok(node),
            None => {
                let message = format!("`{key}` is missing");
                let close = self.entries.iter().find(|(_, name, _)| close(name, key));
                Err(match close {
                    Some((place, name, _)) => place
                        .error(format!("`{}` is not a key here, did you mean `{key}`?", name.escape_debug())),
                    None => self.place.error(message),
                })
            }
        }
    }

    /// All entries, for mappings whose keys are free names.
    #[must_use]
    pub const fn entries(&self) -> &'a [(Place, String, Node)] {
        self.entries
    }

    /// Ends the taking.
    ///
    /// # Errors
    /// When a key was never asked for: it is named with its place and the nearest known one.
    pub fn done(self) -> Result<(), FileError> {
        for (place, name, _) in self.entries {
            if !self.known.contains(&name.as_str()) {
                let hint = nearest(name, &self.known).map_or_else(
                    || format!("; the keys are {}", self.known.join(", ")),
                    |near| format!(", did you mean `{near}`?"),
                );
                return Err(place.error(format!("`{}` is not a key here{hint}", name.escape_debug())));
            }
        }
        Ok(())
    }
}

fn close(a: &str, b: &str) -> bool {
    let fold = |s: &str| s.to_lowercase().replace(['-', ' '], "_");
    a != b && strsim::damerau_levenshtein(&fold(a), &fold(b)) * 2 <= b.len().max(2)
}

/// The candidate that a mistyped word most likely meant.
#[must_use]
pub fn nearest<'a>(word: &str, candidates: &[&'a str]) -> Option<&'a str> {
    let fold = |s: &str| s.to_lowercase().replace(['-', ' '], "_");
    // Long nonsense is no typing error, and the distance is quadratic.
    if word.len() > 128 {
        return None;
    }
    candidates
        .iter()
        .map(|c| (strsim::damerau_levenshtein(&fold(word), &fold(c)), *c))
        .filter(|(distance, c)| distance * 2 <= c.len().max(2))
        .min()
        .map(|(_, c)| c)
}
