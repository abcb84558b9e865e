//! Text as the one who acts on it reads it. A rule that approves looks at the one plain reading; a
//! rule that denies or asks looks at every reading. Knows no rule.

mod email;
mod fold;
mod host;
mod path;
mod url;

use crate::glob::{Glob, Reach};

/// How text is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextType {
    Text,
    Url,
    Host,
    Path,
    Email,
}

/// What a text can be taken for.
#[derive(Debug, Default)]
pub(crate) struct Readings {
    /// The one reading of text that is written plainly; nothing when it has several.
    pub(crate) plain: Option<String>,
    /// Every reading.
    pub(crate) all: Vec<String>,
}

/// A pattern over text of a type.
#[derive(Debug)]
pub(crate) struct TypedPattern {
    plain: Glob,
    folded: Glob,
}

impl TextType {
    /// The word in rule files and messages.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Url => "url",
            Self::Host => "host",
            Self::Path => "path",
            Self::Email => "email",
        }
    }

    /// Compiles a pattern.
    ///
    /// # Errors
    /// Says what to write instead.
    pub(crate) fn pattern(self, text: &str) -> Result<TypedPattern, String> {
        let normal = match self {
            Self::Text | Self::Path => text.to_owned(),
            Self::Url => url::pattern(text)?,
            Self::Host => host::pattern(text)?,
            Self::Email => email::pattern(text)?,
        };
        if self == Self::Path {
            path::pattern(text)?;
        }
        Ok(TypedPattern { plain: Glob::compile(&normal)?, folded: Glob::compile(&self.fold(&normal))? })
    }

    /// Every reading of a text.
    pub(crate) fn read(self, text: &str) -> Readings {
        match self {
            Self::Text => Readings {
                plain: (!text.chars().any(exequatur_canonical::display::is_hidden)).then(|| text.to_owned()),
                all: vec![text.to_owned()],
            },
            Self::Url => url::read(text),
            Self::Host => host::read(text),
            Self::Path => path::read(text),
            Self::Email => email::read(text),
        }
    }

    fn fold(self, text: &str) -> String {
        if self == Self::Text { fold::look(text) } else { fold::case(text) }
    }

    /// The readings as a rule that denies or asks compares them.
    pub(crate) fn folded(self, readings: &Readings) -> Vec<String> {
        readings.all.iter().map(|text| self.fold(text)).collect()
    }
}

impl TypedPattern {
    /// Whether the plain reading matches.
    pub(crate) fn plain(&self, text: &str) -> bool {
        self.plain.matches(text, Reach::Narrow)
    }

    /// Whether a folded reading matches.
    pub(crate) fn folded(&self, readings: &[String]) -> bool {
        readings.iter().any(|text| self.folded.matches(text, Reach::Wide))
    }
}
