//! One condition on one argument: yes, no, or cannot be decided. Knows no verdict.

use exequatur_canonical::{Object, Value};
use exequatur_proto::action::v1::value::Kind;
use exequatur_proto::policy::v1::{ArgumentMatch, pattern::Pattern};

use crate::glob::{Glob, MAX_TEXT, Reach};

/// Whether a condition holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fit {
    Yes,
    No,
    /// The argument is missing or of a shape that the condition does not speak of.
    Unclear(String),
}

#[derive(Debug)]
enum Alternative {
    Null,
    Bool(bool),
    Whole(i128),
    Double(f64),
    Text(String),
    Glob(Glob),
}

/// A compiled condition.
#[derive(Debug)]
pub(crate) struct Condition {
    path: String,
    names: Vec<String>,
    any_of: Vec<Alternative>,
}

/// Names joined by dots; `\.` and `\\` for a dot or backslash within a name.
///
/// # Errors
/// Says what to write instead.
pub(crate) fn path(text: &str) -> Result<Vec<String>, &'static str> {
    if text.len() > 512 {
        return Err("a path has at most 512 bytes");
    }
    let mut names = vec![String::new()];
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let next = match c {
            '.' => {
                names.push(String::new());
                continue;
            }
            '\\' => match chars.next() {
                Some(next @ ('.' | '\\')) => next,
                _ => return Err("`\\` stands before `.` or `\\` only"),
            },
            other => other,
        };
        if let Some(name) = names.last_mut() {
            name.push(next);
        }
    }
    if names.iter().any(String::is_empty) {
        return Err("a path is names joined by dots, none empty");
    }
    Ok(names)
}

impl Condition {
    /// Compiles a condition that was checked.
    pub(crate) fn compile(condition: &ArgumentMatch) -> Option<Self> {
        let any_of = condition
            .any_of
            .iter()
            .map(|pattern| match pattern.pattern.as_ref()? {
                Pattern::Glob(glob) => Some(Alternative::Glob(Glob::compile(glob).ok()?)),
                Pattern::Scalar(scalar) => Some(match scalar.kind.as_ref()? {
                    Kind::NullValue(_) => Alternative::Null,
                    Kind::BoolValue(b) => Alternative::Bool(*b),
                    Kind::IntValue(n) => Alternative::Whole(i128::from(*n)),
                    Kind::UintValue(n) => Alternative::Whole(i128::from(*n)),
                    Kind::DoubleValue(n) => Alternative::Double(*n),
                    Kind::StringValue(text) => Alternative::Text(text.clone()),
                    _ => return None,
                }),
            })
            .collect::<Option<Vec<_>>>()?;
        Some(Self { path: condition.path.clone(), names: path(&condition.path).ok()?, any_of })
    }

    /// Tries the condition on arguments.
    pub(crate) fn fit(&self, arguments: &Object, reach: Reach) -> Fit {
        let mut object = arguments;
        let mut names = self.names.iter().peekable();
        while let Some(name) = names.next() {
            let Some(value) = object.get(name) else {
                return Fit::Unclear(format!("argument `{}` is missing", self.path));
            };
            match value {
                value if names.peek().is_none() => return self.value(value, reach),
                Value::Object(inner) => object = inner,
                other => return self.unclear(other),
            }
        }
        Fit::Unclear(format!("argument `{}` is missing", self.path))
    }

    fn unclear(&self, value: &Value) -> Fit {
        Fit::Unclear(format!(
            "argument `{}` is {}, which the rule does not speak of",
            self.path,
            value.kind()
        ))
    }

    fn value(&self, value: &Value, reach: Reach) -> Fit {
        let mut spoken_of = false;
        for alternative in &self.any_of {
            let (same_kind, equal) = match (alternative, value) {
                (Alternative::Null, Value::Null) => (true, true),
                (Alternative::Bool(a), Value::Bool(b)) => (true, a == b),
                (Alternative::Whole(a), Value::Int(b)) => (true, *a == i128::from(*b)),
                (Alternative::Whole(a), Value::Uint(b)) => (true, *a == i128::from(*b)),
                (Alternative::Double(a), Value::Double(b)) => (true, a.to_bits() == b.to_bits()),
                (Alternative::Text(a), Value::String(b)) => (true, a == b),
                (Alternative::Glob(glob), Value::String(b)) if b.len() <= MAX_TEXT => {
                    (true, glob.matches(b, reach))
                }
                (Alternative::Glob(_), Value::String(_)) => {
                    return Fit::Unclear(format!("argument `{}` is too long for a pattern", self.path));
                }
                _ => (false, false),
            };
            if equal {
                return Fit::Yes;
            }
            spoken_of |= same_kind;
        }
        if spoken_of { Fit::No } else { self.unclear(value) }
    }
}
