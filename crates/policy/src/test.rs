//! What a value must be: one of some alternatives, all read in one way. Knows no path.

use exequatur_canonical::Value;
use exequatur_proto::action::v1::value::Kind;
use exequatur_proto::policy::v1::{ArgumentMatch, Range, ValueType, pattern::Pattern};

use crate::argument::{Fit, unclear};
use crate::glob::{Glob, MAX_TEXT, Reach};
use crate::number::Number;
use crate::typed::{TextType, TypedPattern};

/// A value that is compared by type and exact value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Scalar {
    Null,
    Bool(bool),
    Whole(i128),
    Double(u64),
    Text(String),
}

#[derive(Debug)]
pub(crate) enum Exact {
    Scalar(Scalar),
    Glob(Glob),
}

#[derive(Debug)]
enum Numeric {
    Equal(Number),
    Within(Range),
}

/// A compiled test.
#[derive(Debug)]
pub(crate) enum Test {
    Exact(Vec<Exact>),
    Typed(TextType, Vec<TypedPattern>),
    Number(NumberTest),
}

/// Numbers by value.
#[derive(Debug)]
pub(crate) struct NumberTest(Vec<Numeric>);

impl Test {
    /// Compiles the alternatives of a condition.
    ///
    /// # Errors
    /// Says what to write instead.
    pub(crate) fn compile(condition: &ArgumentMatch) -> Result<Self, String> {
        if condition.any_of.is_empty() {
            return Err("no value is given, so nothing could match".to_owned());
        }
        let kind = ValueType::try_from(condition.r#type)
            .map_err(|_| format!("{} is no way to read a value", condition.r#type))?;
        let patterns = condition.any_of.iter().map(|p| p.pattern.as_ref().ok_or("the value is empty"));
        let text_type = match kind {
            ValueType::Unspecified => {
                return Ok(Self::Exact(patterns.map(|p| exact(p?)).collect::<Result<_, String>>()?));
            }
            ValueType::Number => {
                let tests = patterns.map(|p| numeric(p?)).collect::<Result<_, String>>()?;
                return Ok(Self::Number(NumberTest(tests)));
            }
            ValueType::Text => TextType::Text,
            ValueType::Url => TextType::Url,
            ValueType::Host => TextType::Host,
            ValueType::Path => TextType::Path,
            ValueType::Email => TextType::Email,
        };
        let typed = patterns.map(|p| match p? {
            Pattern::Glob(glob) => text_type.pattern(glob),
            Pattern::Scalar(value) => match &value.kind {
                // Text without a star means itself.
                Some(Kind::StringValue(text)) => text_type.pattern(text),
                _ => Err(format!("a value of `{}` is text", text_type.as_str())),
            },
            Pattern::Range(_) => Err("a range is for numbers".to_owned()),
        });
        Ok(Self::Typed(text_type, typed.collect::<Result<_, String>>()?))
    }

    /// Tries a value.
    pub(crate) fn fit(&self, value: &Value, reach: Reach, path: &str) -> Fit {
        match self {
            Self::Exact(any_of) => fit_exact(any_of, value, reach, path),
            Self::Number(test) => match Number::of(value) {
                Some(number) if test.0.iter().any(|t| t.holds(number)) => Fit::Yes,
                Some(_) => Fit::No,
                None => unclear(path, value),
            },
            Self::Typed(kind, patterns) => match value {
                Value::String(text) if text.len() <= MAX_TEXT => typed(*kind, patterns, text, reach, path),
                Value::String(_) => too_long(path),
                other => unclear(path, other),
            },
        }
    }
}

fn exact(pattern: &Pattern) -> Result<Exact, String> {
    match pattern {
        Pattern::Glob(glob) => Ok(Exact::Glob(Glob::compile(glob)?)),
        Pattern::Scalar(value) => match &value.kind {
            Some(Kind::NullValue(0)) => Ok(Scalar::Null),
            Some(Kind::BoolValue(b)) => Ok(Scalar::Bool(*b)),
            Some(Kind::IntValue(n)) => Ok(Scalar::Whole(i128::from(*n))),
            Some(Kind::UintValue(n)) => Ok(Scalar::Whole(i128::from(*n))),
            Some(Kind::DoubleValue(n)) => Ok(Scalar::Double(n.to_bits())),
            Some(Kind::StringValue(text)) => Ok(Scalar::Text(text.clone())),
            _ => Err("must be a scalar".to_owned()),
        }
        .map(Exact::Scalar),
        Pattern::Range(_) => Err("a range is for numbers: write `number:` before it".to_owned()),
    }
}

fn numeric(pattern: &Pattern) -> Result<Numeric, String> {
    match pattern {
        Pattern::Range(range) => {
            let bounds = [range.min, range.max];
            let missing =
                (range.above_min && range.min.is_none()) || (range.below_max && range.max.is_none());
            let open = range.above_min || range.below_max;
            let empty = match (range.min, range.max) {
                (Some(min), Some(max)) => min > max || (open && min >= max),
                (None, None) => return Err("a range has `min`, `max`, `above` or `below`".to_owned()),
                _ => false,
            };
            if missing || empty || bounds.iter().flatten().any(|n| !n.is_finite()) {
                return Err("the range is empty".to_owned());
            }
            Ok(Numeric::Within(*range))
        }
        Pattern::Scalar(value) => match &value.kind {
            Some(Kind::IntValue(n)) => Ok(Numeric::Equal(Number::Whole(i128::from(*n)))),
            Some(Kind::UintValue(n)) => Ok(Numeric::Equal(Number::Whole(i128::from(*n)))),
            Some(Kind::DoubleValue(n)) => Ok(Numeric::Equal(Number::Double(*n))),
            _ => Err("a value of `number` is a number or a range".to_owned()),
        },
        Pattern::Glob(_) => Err("a value of `number` is a number or a range".to_owned()),
    }
}

impl Numeric {
    fn holds(&self, number: Number) -> bool {
        match self {
            Self::Equal(wanted) => number.compare(*wanted).is_eq(),
            Self::Within(range) => {
                let above = range.min.is_none_or(|min| {
                    let order = number.compare(Number::Double(min));
                    order.is_gt() || (order.is_eq() && !range.above_min)
                });
                let below = range.max.is_none_or(|max| {
                    let order = number.compare(Number::Double(max));
                    order.is_lt() || (order.is_eq() && !range.below_max)
                });
                above && below
            }
        }
    }
}

fn too_long(path: &str) -> Fit {
    Fit::Unclear(format!("argument `{path}` is too long for a pattern"))
}

fn fit_exact(any_of: &[Exact], value: &Value, reach: Reach, path: &str) -> Fit {
    let mut spoken_of = false;
    for alternative in any_of {
        let (same_kind, equal) = match (alternative, value) {
            (Exact::Scalar(Scalar::Null), Value::Null) => (true, true),
            (Exact::Scalar(Scalar::Bool(a)), Value::Bool(b)) => (true, a == b),
            (Exact::Scalar(Scalar::Whole(a)), Value::Int(b)) => (true, *a == i128::from(*b)),
            (Exact::Scalar(Scalar::Whole(a)), Value::Uint(b)) => (true, *a == i128::from(*b)),
            (Exact::Scalar(Scalar::Double(a)), Value::Double(b)) => (true, *a == b.to_bits()),
            (Exact::Scalar(Scalar::Text(a)), Value::String(b)) => (true, a == b),
            (Exact::Glob(glob), Value::String(b)) if b.len() <= MAX_TEXT => (true, glob.matches(b, reach)),
            (Exact::Glob(_), Value::String(_)) => return too_long(path),
            _ => (false, false),
        };
        if equal {
            return Fit::Yes;
        }
        spoken_of |= same_kind;
    }
    if spoken_of { Fit::No } else { unclear(path, value) }
}

/// A rule that approves looks at the plain reading alone; for the others any reading is enough, and
/// what is not written plainly is never surely something else.
fn typed(kind: TextType, patterns: &[TypedPattern], text: &str, reach: Reach, path: &str) -> Fit {
    let readings = kind.read(text);
    let matches = if reach == Reach::Narrow {
        readings.plain.as_ref().is_some_and(|plain| patterns.iter().any(|p| p.plain(plain)))
    } else {
        let folded = kind.folded(&readings);
        patterns.iter().any(|p| p.folded(&folded))
    };
    match (matches, readings.plain) {
        (true, _) => Fit::Yes,
        (false, Some(_)) => Fit::No,
        (false, None) => Fit::Unclear(format!(
            "argument `{path}` is not written plainly as `{}`, so it could mean several",
            kind.as_str()
        )),
    }
}
