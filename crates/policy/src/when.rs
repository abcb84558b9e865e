//! `when`: one CEL expression over the call. Bounded in length, depth and cost before it runs; what
//! it cannot say for sure is an error, never a no. Knows no verdict.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use cel::common::ast::{EntryExpr, Expr, IdedExpr, LiteralValue};
use cel::objects::{Key, Map};
use cel::{Context, Env, Program, Value as Cel};
use exequatur_canonical::{Object, Value};
use exequatur_yaml::nearest;

use crate::Call;
use crate::argument::{Fit, value_at};

/// Longest expression, bytes.
pub(crate) const MAX_WHEN: usize = 1024;
/// Deepest nesting of brackets, and most signs in a row.
const MAX_NESTING: usize = 24;
/// Most nested `all`, `exists`, `filter`, `map`.
const MAX_LOOPS: u32 = 2;
/// Most steps of one evaluation, estimated from the expression and the size of the arguments.
const MAX_COST: u64 = 1_000_000;

/// What an expression may name.
const VARIABLES: &[&str] = &["args", "tool", "agent", "tenant", "labels", "reversible", "time"];
/// What it may call, beside operators and macros.
const FUNCTIONS: &[&str] =
    &["size", "contains", "startsWith", "endsWith", "int", "uint", "double", "string", "bool", "type"];

static ENV: LazyLock<Arc<Env>> = LazyLock::new(|| Arc::new(Env::stdlib()));

/// A compiled expression.
#[derive(Debug)]
pub(crate) struct When {
    program: Program,
    shape: Shape,
}

#[derive(Debug, Default)]
struct Shape {
    nodes: u64,
    loops: u32,
    variables: Vec<String>,
    paths: Vec<Vec<String>>,
    /// Arguments that are compared with a literal: CEL calls values of two kinds just unequal.
    compared: Vec<(Vec<String>, Kind)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Null,
    Bool,
    Number,
    Text,
}

impl When {
    /// Compiles an expression.
    ///
    /// # Errors
    /// Says what is wrong, with the nearest word.
    pub(crate) fn compile(source: &str) -> Result<Self, String> {
        bounded(source)?;
        let program = Program::compile(source).map_err(|e| {
            let text = e.to_string();
            format!("is no CEL expression: {}", text.lines().next().unwrap_or_default())
        })?;
        let mut shape = Shape::default();
        shape.walk(program.expression(), 0, &mut Vec::new())?;
        Ok(Self { program, shape })
    }

    /// Whether it looks at this part of the call.
    pub(crate) fn uses(&self, variable: &str) -> bool {
        self.shape.variables.iter().any(|v| v == variable)
    }

    /// Whether it looks at nothing of the call.
    pub(crate) fn is_constant(&self) -> bool {
        self.shape.variables.is_empty()
    }

    /// The argument paths that it names.
    pub(crate) fn paths(&self) -> &[Vec<String>] {
        &self.shape.paths
    }

    /// Evaluates it. `approves`: what compares values of two kinds is an error even when true.
    pub(crate) fn fit(&self, call: &Call<'_>, approves: bool) -> Fit {
        let size = elements(call.arguments).saturating_add(self.shape.nodes);
        let rounds = (0..self.shape.loops).fold(1_u64, |n, _| n.saturating_mul(size));
        if self.shape.nodes.saturating_mul(rounds) > MAX_COST {
            return Fit::Unclear("`when` is too costly for so many arguments".to_owned());
        }
        let mut context = Context::with_env(Arc::clone(&ENV));
        if let Err(missing) = self.fill(&mut context, call) {
            return Fit::Unclear(format!("`when`: `{missing}` is not known for this call"));
        }
        let mixed = self.shape.compared.iter().find(|(path, kind)| {
            value_at(path, call.arguments).is_some_and(|value| self::kind(value) != Some(*kind))
        });
        let mixed = |fit: Fit| match mixed {
            Some((path, _)) => Fit::Unclear(format!(
                "`when` compares argument `{}` with a value of another kind",
                path.join(".")
            )),
            None => fit,
        };
        match self.program.execute(&context) {
            Ok(Cel::Bool(true)) if approves => mixed(Fit::Yes),
            Ok(Cel::Bool(true)) => Fit::Yes,
            Ok(Cel::Bool(false)) => mixed(Fit::No),
            Ok(other) => Fit::Unclear(format!("`when` is {}, not true or false", other.type_of())),
            Err(e) => Fit::Unclear(format!("`when` cannot be evaluated: {}", short(&e.to_string()))),
        }
    }

    fn fill<'v>(&self, context: &mut Context<'_, 'v>, call: &Call<'_>) -> Result<(), &'static str> {
        for name in VARIABLES {
            if !self.uses(name) {
                continue;
            }
            let text = |text: Option<&str>| text.map(|t| Cel::String(Arc::new(t.to_owned())));
            let value = match *name {
                "args" => Some(object(call.arguments)),
                "tool" => text(Some(call.tool)),
                "agent" => text(call.agent),
                "tenant" => text(call.tenant),
                "reversible" => Some(Cel::Bool(call.reversible)),
                "time" => call.time_s.map(Cel::Int),
                _ => call.labels.map(|labels| {
                    map(labels.iter().map(|(k, v)| (k.as_str(), Cel::String(Arc::new(v.clone())))))
                }),
            };
            context.add_variable_from_value(*name, value.ok_or(*name)?);
        }
        Ok(())
    }
}

/// Before anything is parsed: the parser recurses.
fn bounded(source: &str) -> Result<(), String> {
    if source.trim().is_empty() || source.len() > MAX_WHEN {
        return Err(format!("must hold 1 to {MAX_WHEN} bytes"));
    }
    let (mut depth, mut signs, mut questions) = (0_usize, 0_usize, 0_usize);
    let mut quote = None;
    let mut chars = source.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(_), '\\') => drop(chars.next()),
            (Some(q), c) if c == q => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth = depth.saturating_sub(1),
            (None, '?') => questions += 1,
            (None, _) => {}
        }
        signs = match c {
            '!' | '-' => signs + 1,
            c if c.is_whitespace() => signs,
            _ => 0,
        };
        if depth > MAX_NESTING || signs > MAX_NESTING || questions > MAX_NESTING {
            return Err(format!("is nested more than {MAX_NESTING} deep"));
        }
    }
    Ok(())
}

fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(160).collect()
}

/// All values in the arguments, names included.
fn elements(arguments: &Object) -> u64 {
    fn count(value: &Value) -> u64 {
        match value {
            Value::List(items) => 1 + items.iter().map(count).sum::<u64>(),
            Value::Object(object) => 1 + object.iter().map(|(_, v)| count(v)).sum::<u64>(),
            _ => 1,
        }
    }
    arguments.iter().map(|(_, v)| count(v)).sum()
}

fn kind(value: &Value) -> Option<Kind> {
    match value {
        Value::Null => Some(Kind::Null),
        Value::Bool(_) => Some(Kind::Bool),
        Value::Int(_) | Value::Uint(_) | Value::Double(_) => Some(Kind::Number),
        Value::String(_) => Some(Kind::Text),
        Value::Bytes(_) | Value::List(_) | Value::Object(_) => None,
    }
}

fn map<'a>(entries: impl Iterator<Item = (&'a str, Cel)>) -> Cel {
    let map: HashMap<Key, Cel> =
        entries.map(|(name, value)| (Key::String(Arc::new(name.to_owned())), value)).collect();
    Cel::Map(Map { map: Arc::new(map) })
}

fn object(object: &Object) -> Cel {
    map(object.iter().map(|(name, value)| (name, cel(value))))
}

fn cel(value: &Value) -> Cel {
    match value {
        Value::Null => Cel::Null,
        Value::Bool(b) => Cel::Bool(*b),
        Value::Int(n) => Cel::Int(*n),
        Value::Uint(n) => Cel::UInt(*n),
        Value::Double(n) => Cel::Float(*n),
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Bytes(bytes) => Cel::Bytes(Arc::new(bytes.clone())),
        Value::List(items) => Cel::List(Arc::new(items.iter().map(cel).collect())),
        Value::Object(inner) => object(inner),
    }
}

impl Shape {
    fn walk(&mut self, at: &IdedExpr, loops: u32, own: &mut Vec<String>) -> Result<(), String> {
        self.nodes = self.nodes.saturating_add(1);
        match &at.expr {
            Expr::Literal(_) => Ok(()),
            Expr::Ident(name) => self.variable(name, own),
            Expr::Select(select) => {
                if let Some(path) = argument(at) {
                    self.paths.push(path);
                }
                self.walk(&select.operand, loops, own)
            }
            Expr::List(list) => list.elements.iter().try_for_each(|e| self.walk(e, loops, own)),
            Expr::Map(map) => map.entries.iter().try_for_each(|entry| match &entry.expr {
                EntryExpr::MapEntry(entry) => {
                    self.walk(&entry.key, loops, own)?;
                    self.walk(&entry.value, loops, own)
                }
                EntryExpr::StructField(_) => Err("has no types of its own".to_owned()),
            }),
            Expr::Call(call) => {
                function(&call.func_name)?;
                self.comparison(&call.func_name, &call.args);
                call.target.iter().try_for_each(|t| self.walk(t, loops, own))?;
                call.args.iter().try_for_each(|a| self.walk(a, loops, own))
            }
            Expr::Comprehension(c) => {
                self.loops = self.loops.max(loops + 1);
                if loops >= MAX_LOOPS {
                    return Err(format!("nests more than {MAX_LOOPS} of all, exists, filter and map"));
                }
                self.walk(&c.iter_range, loops, own)?;
                let outer = own.len();
                own.extend([c.iter_var.clone(), c.accu_var.clone()]);
                own.extend(c.iter_var2.clone());
                let inner = [&c.accu_init, &c.loop_cond, &c.loop_step, &c.result];
                inner.into_iter().try_for_each(|e| self.walk(e, loops + 1, own))?;
                own.truncate(outer);
                Ok(())
            }
            Expr::Struct(_) | Expr::Unspecified => Err("has no types of its own".to_owned()),
        }
    }

    fn variable(&mut self, name: &str, own: &[String]) -> Result<(), String> {
        if own.iter().any(|o| o == name) {
            return Ok(());
        }
        // Names of types, for comparison with what `type` gives.
        if ["int", "uint", "double", "string", "bool", "list", "map", "null_type"].contains(&name) {
            return Ok(());
        }
        if !VARIABLES.contains(&name) {
            let hint = nearest(name, VARIABLES).map_or_else(
                || format!("; the names are {}", VARIABLES.join(", ")),
                |n| format!(", did you mean `{n}`?"),
            );
            return Err(format!("`{}` is not a name here{hint}", name.escape_debug()));
        }
        if !self.variables.iter().any(|v| v == name) {
            self.variables.push(name.to_owned());
        }
        Ok(())
    }

    fn comparison(&mut self, function: &str, args: &[IdedExpr]) {
        let [left, right] = args else { return };
        match function {
            "_==_" | "_!=_" => {
                for (path, literal) in [(left, right), (right, left)] {
                    if let (Some(path), Some(kind)) = (argument(path), literal_kind(literal)) {
                        self.compared.push((path, kind));
                    }
                }
            }
            "@in" | "_in_" => {
                if let (Some(path), Expr::List(list)) = (argument(left), &right.expr) {
                    let kinds = list.elements.iter().filter_map(literal_kind);
                    self.compared.extend(kinds.map(|kind| (path.clone(), kind)));
                }
            }
            _ => {}
        }
    }
}

fn function(name: &str) -> Result<(), String> {
    let operator = name.contains(['_', '@']) && !name.bytes().any(|b| b.is_ascii_uppercase());
    if operator || name.bytes().all(|b| b.is_ascii_punctuation()) || FUNCTIONS.contains(&name) {
        return Ok(());
    }
    let hint = nearest(name, FUNCTIONS).map_or_else(
        || format!("; the functions are {}", FUNCTIONS.join(", ")),
        |n| format!(", did you mean `{n}`?"),
    );
    Err(format!("`{}` is not a function here{hint}", name.escape_debug()))
}

/// The path of `args.a.b`.
fn argument(at: &IdedExpr) -> Option<Vec<String>> {
    let mut names = Vec::new();
    let mut expr = &at.expr;
    loop {
        match expr {
            Expr::Select(select) => {
                names.push(select.field.clone());
                expr = &select.operand.expr;
            }
            Expr::Ident(name) if name == "args" && !names.is_empty() => {
                names.reverse();
                return Some(names);
            }
            _ => return None,
        }
    }
}

fn literal_kind(at: &IdedExpr) -> Option<Kind> {
    match &at.expr {
        Expr::Literal(LiteralValue::Boolean(_)) => Some(Kind::Bool),
        Expr::Literal(LiteralValue::Double(_) | LiteralValue::Int(_) | LiteralValue::UInt(_)) => {
            Some(Kind::Number)
        }
        Expr::Literal(LiteralValue::String(_)) => Some(Kind::Text),
        Expr::Literal(LiteralValue::Null) => Some(Kind::Null),
        _ => None,
    }
}
