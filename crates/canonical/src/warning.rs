//! Warnings beside the text, computed and never part of it (specification section 6, UTS 39).

use unicode_normalization::is_nfc;
use unicode_security::MixedScript as _;
use unicode_security::confusable_detection::skeleton;

use crate::action::FrozenAction;
use crate::escape::is_hidden;
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
    /// A word that looks like an ASCII word.
    Confusable,
    /// Not in Unicode's composed form.
    NotNfc,
    /// An argument that the tool's schema does not name.
    UnknownArgument,
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
        }
    }
}

/// One warning.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Warning {
    /// What is suspicious.
    pub code: WarningCode,
    /// JSON Pointer into the action or header.
    pub place: String,
}

/// Warnings of an action. `known` are the argument names of the tool's schema.
#[must_use]
pub fn warnings_for_action(frozen: &FrozenAction, known: Option<&[String]>) -> Vec<Warning> {
    let action = frozen.action();
    let mut out = Vec::new();
    text(&mut out, "/rationale", &action.rationale);
    object(&mut out, "/arguments", &action.arguments);
    if let Some(known) = known {
        for (name, _) in action.arguments.iter().filter(|(name, _)| !known.iter().any(|k| k == name)) {
            let place = format!("/arguments/{}", pointer_token(name));
            out.push(Warning { code: WarningCode::UnknownArgument, place });
        }
    }
    sorted(out)
}

/// Warnings of a header.
#[must_use]
pub fn warnings_for_plan(frozen: &FrozenPlan) -> Vec<Warning> {
    let header = frozen.header();
    let mut out = Vec::new();
    for (place, value) in [
        ("/realm", &header.realm),
        ("/tenant", &header.tenant),
        ("/run", &header.run),
        ("/agent", &header.agent),
        ("/plan", &header.plan),
        ("/owner", &header.owner),
        ("/context", &header.context),
    ] {
        text(&mut out, place, value);
    }
    sorted(out)
}

/// Warnings of any text, with a place of the caller's choice.
#[must_use]
pub fn warnings_for_text(place: &str, value: &str) -> Vec<Warning> {
    let mut out = Vec::new();
    text(&mut out, place, value);
    sorted(out)
}

fn sorted(mut out: Vec<Warning>) -> Vec<Warning> {
    out.sort_by(|a, b| (&a.place, a.code).cmp(&(&b.place, b.code)));
    out.dedup();
    out
}

fn object(out: &mut Vec<Warning>, place: &str, members: &Object) {
    for (name, member) in members.iter() {
        let place = format!("{place}/{}", pointer_token(name));
        text(out, &place, name);
        value(out, &place, member);
    }
}

fn value(out: &mut Vec<Warning>, place: &str, shown: &Value) {
    match shown {
        Value::String(content) => text(out, place, content),
        Value::List(items) => {
            for (index, item) in items.iter().enumerate() {
                value(out, &format!("{place}/{index}"), item);
            }
        }
        Value::Object(members) => object(out, place, members),
        _ => {}
    }
}

fn text(out: &mut Vec<Warning>, place: &str, content: &str) {
    if content.is_ascii() && content.bytes().all(|b| (0x20..0x7f).contains(&b)) {
        return;
    }
    let mut warn = |code| out.push(Warning { code, place: place.to_owned() });
    if content.chars().any(is_bidi_control) {
        warn(WarningCode::BidiControl);
    }
    // A line break or a tab is shown as an escape and deceives nobody.
    if content.chars().any(|c| is_hidden(c) && !matches!(c, '\n' | '\t' | '\r')) {
        warn(WarningCode::HiddenCharacter);
    }
    if !is_nfc(content) {
        warn(WarningCode::NotNfc);
    }
    for word in content.split(|c: char| !c.is_alphanumeric()).filter(|w| !w.is_ascii()) {
        if !word.is_single_script() {
            warn(WarningCode::MixedScript);
        }
        if skeleton(word).all(|c| c.is_ascii()) {
            warn(WarningCode::Confusable);
        }
    }
}

const fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
