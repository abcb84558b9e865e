//! One condition on one argument: yes, no, or cannot be decided. Knows no verdict.

use exequatur_canonical::{Object, Value};
use exequatur_proto::policy::v1::{ArgumentMatch, Elements, Presence};

use crate::glob::Reach;
use crate::test::Test;

/// Whether a condition holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Fit {
    Yes,
    No,
    /// The argument is missing or of a shape that the condition does not speak of.
    Unclear(String),
}

/// What is asked about the argument.
#[derive(Debug)]
enum Asked {
    Present(bool),
    Value(Test),
    Any(Test),
    All(Test),
}

/// A compiled condition.
#[derive(Debug)]
pub(crate) struct Condition {
    path: String,
    names: Vec<String>,
    asked: Asked,
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

/// Where a path leads.
enum Found<'a> {
    Value(&'a Value),
    Missing,
    /// Something that is no object stands on the way.
    Blocked(&'a Value),
}

fn find<'a>(names: &[String], arguments: &'a Object) -> Found<'a> {
    let mut object = arguments;
    let mut names = names.iter().peekable();
    while let Some(name) = names.next() {
        match object.get(name) {
            None => return Found::Missing,
            Some(value) if names.peek().is_none() => return Found::Value(value),
            Some(Value::Object(inner)) => object = inner,
            Some(other) => return Found::Blocked(other),
        }
    }
    Found::Missing
}

/// The value at a path, if it is there.
pub(crate) fn value_at<'a>(names: &[String], arguments: &'a Object) -> Option<&'a Value> {
    match find(names, arguments) {
        Found::Value(value) => Some(value),
        Found::Missing | Found::Blocked(_) => None,
    }
}

impl Condition {
    /// Compiles a condition.
    ///
    /// # Errors
    /// Says what to write instead.
    pub(crate) fn compile(condition: &ArgumentMatch) -> Result<Self, String> {
        let names = path(&condition.path)?;
        let number = |n: i32, name: &str| format!("{n} is no {name}");
        let presence =
            Presence::try_from(condition.presence).map_err(|_| number(condition.presence, "presence"))?;
        let elements =
            Elements::try_from(condition.elements).map_err(|_| number(condition.elements, "elements"))?;
        let asked = match (presence, elements) {
            (Presence::Unspecified, Elements::Unspecified) => Asked::Value(Test::compile(condition)?),
            (Presence::Unspecified, Elements::Any) => Asked::Any(Test::compile(condition)?),
            (Presence::Unspecified, Elements::All) => Asked::All(Test::compile(condition)?),
            (presence, Elements::Unspecified) if condition.any_of.is_empty() && condition.r#type == 0 => {
                Asked::Present(presence == Presence::Present)
            }
            _ => return Err("`present` stands alone".to_owned()),
        };
        Ok(Self { path: condition.path.clone(), names, asked })
    }

    /// The path as it is written.
    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    /// The names of the path.
    pub(crate) fn names(&self) -> &[String] {
        &self.names
    }

    /// The test, if it is a plain one on the whole value.
    pub(crate) const fn test(&self) -> Option<&Test> {
        match &self.asked {
            Asked::Value(test) => Some(test),
            _ => None,
        }
    }

    /// Tries the condition on arguments.
    pub(crate) fn fit(&self, arguments: &Object, reach: Reach) -> Fit {
        let found = find(&self.names, arguments);
        if let Asked::Present(wanted) = self.asked {
            return match found {
                Found::Value(Value::Null) => self.unclear(&Value::Null),
                Found::Blocked(value) => self.unclear(value),
                Found::Value(_) if wanted => Fit::Yes,
                Found::Missing if !wanted => Fit::Yes,
                Found::Value(_) | Found::Missing => Fit::No,
            };
        }
        let value = match found {
            Found::Value(value) => value,
            Found::Missing => return Fit::Unclear(format!("argument `{}` is missing", self.path)),
            Found::Blocked(value) => return self.unclear(value),
        };
        match (&self.asked, value) {
            (Asked::Value(test), value) => test.fit(value, reach, &self.path),
            (Asked::Any(test), Value::List(items)) => self.any(test, items, reach),
            (Asked::All(test), Value::List(items)) => self.all(test, items, reach),
            (_, other) => self.unclear(other),
        }
    }

    fn any(&self, test: &Test, items: &[Value], reach: Reach) -> Fit {
        let mut out = Fit::No;
        for item in items {
            match test.fit(item, reach, &self.path) {
                Fit::Yes => return Fit::Yes,
                Fit::No => {}
                unclear @ Fit::Unclear(_) => out = unclear,
            }
        }
        out
    }

    fn all(&self, test: &Test, items: &[Value], reach: Reach) -> Fit {
        if items.is_empty() {
            return Fit::Unclear(format!("argument `{}` is an empty list", self.path));
        }
        let mut out = Fit::Yes;
        for item in items {
            match test.fit(item, reach, &self.path) {
                Fit::No => return Fit::No,
                Fit::Yes => {}
                unclear @ Fit::Unclear(_) => out = unclear,
            }
        }
        out
    }

    fn unclear(&self, value: &Value) -> Fit {
        unclear(&self.path, value)
    }
}

/// The argument is of a shape that the condition does not speak of.
pub(crate) fn unclear(path: &str, value: &Value) -> Fit {
    Fit::Unclear(format!("argument `{path}` is {}, which the rule does not speak of", value.kind()))
}
