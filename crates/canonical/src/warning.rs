//! Warnings beside the text, computed and never part of it (specification section 6, UTS 39).
//! Bounded in number and size, whatever was sent.

use std::collections::BTreeMap;

use unicode_normalization::is_nfc;
use unicode_security::MixedScript as _;
use unicode_security::confusable_detection::skeleton;

use crate::action::FrozenAction;
use crate::escape::{escape, is_hidden};
use crate::plan::FrozenPlan;
use crate::value::{Object, Value, pointer_token};

/// What is suspicious.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WarningCode {
    /// A control that reorders text.
    BidiControl,
    /// A character that would not be seen.
    HiddenCharacter,
    /// A word of several scripts.
    MixedScript,
    /// A word that looks like an ASCII word, or a name that looks like another one.
    Confusable,
    /// Not in Unicode's composed form.
    NotNfc,
    /// An argument that the tool's schema does not name.
    UnknownArgument,
    /// There is more than is listed.
    MoreWarnings,
}

impl WarningCode {
    /// The stable word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::BidiControl => "BIDI_CONTROL",
            Self::HiddenCharacter => "HIDDEN_CHARACTER",
            Self::MixedScript => "MIXED_SCRIPT",
            Self::Confusable => "CONFUSABLE",
            Self::NotNfc => "NOT_NFC",
            Self::UnknownArgument => "UNKNOWN_ARGUMENT",
            Self::MoreWarnings => "MORE_WARNINGS",
        }
    }
}

/// One warning.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Warning {
    /// What is suspicious.
    pub code: WarningCode,
    /// JSON Pointer into the action or header, or to the nearest member above that has a pointer of at
    /// most [`MAX_PLACE`] bytes. Raw: escape it before showing it.
    pub place: String,
    /// One sentence for a person, escaped.
    pub message: String,
}

/// Warnings that are listed; one more says that there are more.
pub const MAX_WARNINGS: usize = 100;

/// Bytes that a warning's place may have.
pub const MAX_PLACE: usize = 1024;

/// Characters of a word that a message shows.
const SHOWN_WORD: usize = 40;

/// Warnings of an action. `known` are the argument names of the tool's schema, top level only.
#[must_use]
pub fn warnings_for_action(frozen: &FrozenAction, known: Option<&[String]>) -> Vec<Warning> {
    let action = frozen.action();
    let mut walk = Walk::default();
    walk.named("rationale", |walk| walk.text(&action.rationale));
    walk.named("arguments", |walk| {
        if let Some(known) = known {
            walk.unknown(&action.arguments, known);
        }
        walk.object(&action.arguments);
    });
    walk.finish()
}

/// Warnings of a header.
#[must_use]
pub fn warnings_for_plan(frozen: &FrozenPlan) -> Vec<Warning> {
    let header = frozen.header();
    let mut walk = Walk::default();
    for (name, value) in [
        ("realm", &header.realm),
        ("tenant", &header.tenant),
        ("run", &header.run),
        ("agent", &header.agent),
        ("plan", &header.plan),
        ("owner", &header.owner),
        ("context", &header.context),
    ] {
        walk.named(name, |walk| walk.text(value));
    }
    walk.finish()
}

/// Warnings of any text, with a place of the caller's choice.
#[must_use]
pub fn warnings_for_text(place: &str, value: &str) -> Vec<Warning> {
    let mut walk = Walk::default();
    walk.text(value);
    let mut out = walk.finish();
    for warning in &mut out {
        place.clone_into(&mut warning.place);
    }
    out
}

#[derive(Clone, Copy)]
enum Token<'a> {
    Name(&'a str),
    Index(usize),
}

/// A walk over values. The path is kept as tokens and written out only for a warning, so that a long
/// name above many values costs nothing.
#[derive(Default)]
struct Walk<'a> {
    path: Vec<Token<'a>>,
    found: BTreeMap<(String, WarningCode), String>,
    more: bool,
}

impl<'a> Walk<'a> {
    fn finish(self) -> Vec<Warning> {
        let mut out: Vec<Warning> =
            self.found.into_iter().map(|((place, code), message)| Warning { code, place, message }).collect();
        if self.more {
            let message = format!("there are more than the {MAX_WARNINGS} warnings listed here");
            out.push(Warning { code: WarningCode::MoreWarnings, place: String::new(), message });
        }
        out
    }

    fn below(&mut self, token: Token<'a>, visit: impl FnOnce(&mut Self)) {
        self.path.push(token);
        visit(self);
        self.path.pop();
    }

    fn named(&mut self, name: &'a str, visit: impl FnOnce(&mut Self)) {
        self.below(Token::Name(name), visit);
    }

    fn place(&self) -> String {
        let mut place = String::new();
        for token in &self.path {
            let token = match token {
                // Escaping can double a name, never shorten it.
                Token::Name(name) if name.len() > MAX_PLACE => break,
                Token::Name(name) => pointer_token(name),
                Token::Index(index) => index.to_string(),
            };
            if place.len() + token.len() >= MAX_PLACE {
                break;
            }
            place.push('/');
            place.push_str(&token);
        }
        place
    }

    fn warn(&mut self, code: WarningCode, message: impl FnOnce() -> String) {
        if self.found.len() < MAX_WARNINGS {
            self.found.entry((self.place(), code)).or_insert_with(message);
        } else if !self.more {
            self.more = !self.found.contains_key(&(self.place(), code));
        }
    }

    fn unknown(&mut self, members: &'a Object, known: &[String]) {
        for (name, _) in members.iter().filter(|(name, _)| !known.iter().any(|k| k == name)) {
            self.named(name, |walk| {
                walk.warn(WarningCode::UnknownArgument, || {
                    let like = known.iter().find(|k| skeleton(k).eq(skeleton(name)));
                    let like = like.map(|k| format!("; it looks like {}", word(k))).unwrap_or_default();
                    format!("the tool's schema does not name {}{like}", word(name))
                });
            });
        }
    }

    fn object(&mut self, members: &'a Object) {
        let mut looks = BTreeMap::new();
        for (name, member) in members.iter() {
            let twin = looks.insert(skeleton(name).collect::<String>(), name);
            self.named(name, |walk| {
                if let Some(twin) = twin {
                    walk.warn(WarningCode::Confusable, || {
                        format!("the name {} looks like {} beside it", word(name), word(twin))
                    });
                }
                walk.text(name);
                walk.value(member);
            });
        }
    }

    fn value(&mut self, shown: &'a Value) {
        match shown {
            Value::String(content) => self.text(content),
            Value::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.below(Token::Index(index), |walk| walk.value(item));
                }
            }
            Value::Object(members) => self.object(members),
            _ => {}
        }
    }

    fn text(&mut self, content: &str) {
        if content.bytes().all(|b| (0x20..0x7f).contains(&b)) {
            return;
        }
        if let Some(c) = content.chars().find(|c| is_bidi_control(*c)) {
            self.warn(WarningCode::BidiControl, || {
                format!("{} changes the order in which text is read", code_point(c))
            });
        }
        if let Some(c) = content.chars().find(|c| is_unseen(*c)) {
            self.warn(WarningCode::HiddenCharacter, || format!("{} would not be seen", code_point(c)));
        }
        if !is_nfc(content) {
            self.warn(WarningCode::NotNfc, || {
                "the same text can be written with other characters (not NFC)".to_owned()
            });
        }
        for part in content.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_ascii()) {
            if !part.is_single_script() {
                self.warn(WarningCode::MixedScript, || format!("{} mixes scripts", word(part)));
            }
            if skeleton(part).all(|c| c.is_ascii()) {
                self.warn(WarningCode::Confusable, || {
                    format!("{} looks like {}", word(part), word(&skeleton(part).collect::<String>()))
                });
            }
        }
    }
}

fn code_point(c: char) -> String {
    format!("U+{:04X}", u32::from(c))
}

/// A word in quotes, its end left out where it is long: the text beside has it whole.
fn word(text: &str) -> String {
    let shown: String = text.chars().take(SHOWN_WORD).collect();
    let more = if shown.len() < text.len() { "…" } else { "" };
    format!("\"{}\"{more}", escape(&shown))
}

const fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Escaped because it would not be seen, or shown by the rule though most fonts draw nothing. A line
/// break or a tab is shown as an escape and deceives nobody.
fn is_unseen(c: char) -> bool {
    const BLANK_SYMBOLS: [char; 2] = ['\u{2800}', '\u{1d159}'];
    (is_hidden(c) && !matches!(c, '\n' | '\t' | '\r')) || BLANK_SYMBOLS.contains(&c)
}
