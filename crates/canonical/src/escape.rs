//! The one escaper of untrusted text (specification section 6). What it shows can neither hide,
//! reorder nor imitate, and two different texts never look the same.

use unicode_general_category::{GeneralCategory, get_general_category};

/// Runs of spaces up to this length are shown as they are.
const SHOWN_SPACES: usize = 8;

/// `Default_Ignorable_Code_Point` of the Unicode Character Database (DerivedCoreProperties.txt,
/// version 16.0). Such a code point may be drawn as nothing.
const DEFAULT_IGNORABLE: &[(u32, u32)] = &[
    (0x00AD, 0x00AD),
    (0x034F, 0x034F),
    (0x061C, 0x061C),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFF8),
    (0x1_BCA0, 0x1_BCA3),
    (0x1_D173, 0x1_D17A),
    (0xE_0000, 0xE_0FFF),
];

/// Whether a character can hide, reorder or imitate and is therefore never shown raw.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    use GeneralCategory as G;
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    let code = u32::from(c);
    let ignorable = DEFAULT_IGNORABLE.iter().any(|(from, to)| (*from..=*to).contains(&code));
    let category = matches!(
        get_general_category(c),
        G::Control
            | G::Format
            | G::LineSeparator
            | G::ParagraphSeparator
            | G::SpaceSeparator
            | G::PrivateUse
            | G::Surrogate
            | G::Unassigned
    );
    ignorable || category
}

/// Text from outside as it may stand in quotes on any terminal or page: one line, nothing cut.
#[must_use]
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 8);
    let mut spaces = 0;
    for c in text.chars() {
        if c == ' ' {
            spaces += 1;
            continue;
        }
        flush(&mut out, &mut spaces);
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if is_hidden(c) => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    flush(&mut out, &mut spaces);
    out
}

/// `\s{12}` for twelve spaces; a backslash of the text itself is always doubled.
fn flush(out: &mut String, spaces: &mut usize) {
    if *spaces > SHOWN_SPACES {
        out.push_str(&format!("\\s{{{spaces}}}"));
    } else {
        out.extend(std::iter::repeat_n(' ', *spaces));
    }
    *spaces = 0;
}
