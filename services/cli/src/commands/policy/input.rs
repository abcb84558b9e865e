//! Calls as they stand in files of decisions and cases, and the tools that they name.

use std::collections::BTreeMap;
use std::path::Path;

use exequatur_canonical::{Object, Value, read_arguments};
use exequatur_policy::{Call, KnownTool};
use exequatur_schema::Schema;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::failure::Failure;

/// A call that owns its parts.
#[derive(Debug, Default)]
pub(super) struct Owned {
    pub(super) tool: String,
    pub(super) arguments: Object,
    pub(super) reversible: bool,
    pub(super) agent: Option<String>,
    pub(super) tenant: Option<String>,
    pub(super) labels: Option<BTreeMap<String, String>>,
    pub(super) inputs: Option<Vec<String>>,
    pub(super) time_s: Option<i64>,
}

/// A tool of a folder of definitions.
pub(super) struct Tool {
    pub(super) known: KnownTool,
    schema: Schema,
}

impl Owned {
    pub(super) fn call(&self) -> Call<'_> {
        Call {
            tool: &self.tool,
            arguments: &self.arguments,
            reversible: self.reversible,
            agent: self.agent.as_deref(),
            tenant: self.tenant.as_deref(),
            labels: self.labels.as_ref(),
            inputs: self.inputs.as_deref(),
            time_s: self.time_s,
        }
    }

    /// From one JSON object; members named in `also` are left to the caller.
    ///
    /// # Errors
    /// Says what is wrong.
    pub(super) fn read(line: &[u8], also: &[&str]) -> Result<Self, String> {
        let object = read_arguments(line).map_err(|e| format!("is no JSON object: {e}"))?;
        let mut out = Self::default();
        let mut given = 0;
        for (name, value) in object.iter() {
            match (name, value) {
                ("tool", Value::String(text)) => text.clone_into(&mut out.tool),
                ("arguments", Value::Object(arguments)) => {
                    given += 1;
                    out.arguments = arguments.clone();
                }
                ("arguments_json", Value::String(text)) => {
                    given += 1;
                    out.arguments =
                        read_arguments(text.as_bytes()).map_err(|e| format!("`arguments_json`: {e}"))?;
                }
                ("agent", Value::String(text)) => out.agent = Some(text.clone()),
                ("tenant", Value::String(text)) => out.tenant = Some(text.clone()),
                ("reversible", Value::Bool(reversible)) => out.reversible = *reversible,
                // A list labels the inputs, an object the run.
                ("labels" | "inputs", Value::List(items)) => out.inputs = Some(texts(name, items)?),
                ("labels", Value::Object(labels)) => out.labels = Some(pairs(labels)?),
                ("time", value) => out.time_s = Some(moment(value)?),
                (name, _) if also.contains(&name) => {}
                (name, value) => {
                    return Err(format!("`{}` cannot be {} here", name.escape_debug(), value.kind()));
                }
            }
        }
        if out.tool.is_empty() {
            return Err("`tool` is missing".to_owned());
        }
        if given != 1 {
            return Err("either `arguments` or `arguments_json` must be there".to_owned());
        }
        Ok(out)
    }

    /// Checks and completes the arguments as the plane does before it asks the rules.
    ///
    /// # Errors
    /// A word for machines and what is wrong.
    pub(super) fn completed(
        mut self,
        tools: Option<&BTreeMap<String, Tool>>,
    ) -> Result<Self, (&'static str, String)> {
        let Some(tools) = tools else { return Ok(self) };
        let tool = tools.get(&self.tool).ok_or(("UNKNOWN_TOOL", "no such tool".to_owned()))?;
        self.arguments = tool.schema.fill_defaults(&self.arguments).0;
        tool.schema.validate(&self.arguments).map_err(|v| ("SCHEMA_VIOLATION", v.to_string()))?;
        self.reversible = tool.known.reversible;
        Ok(self)
    }
}

fn texts(name: &str, items: &[Value]) -> Result<Vec<String>, String> {
    let texts: Option<Vec<String>> = items.iter().map(|i| i.as_str().map(ToOwned::to_owned)).collect();
    texts.ok_or_else(|| format!("`{name}` holds text alone"))
}

fn pairs(labels: &Object) -> Result<BTreeMap<String, String>, String> {
    let pairs = labels.iter().map(|(name, v)| Some((name.to_owned(), v.as_str()?.to_owned())));
    pairs.collect::<Option<_>>().ok_or_else(|| "`labels` holds text alone".to_owned())
}

fn moment(value: &Value) -> Result<i64, String> {
    match value {
        Value::Int(seconds) => Ok(*seconds),
        Value::String(text) => OffsetDateTime::parse(text, &Rfc3339)
            .map(OffsetDateTime::unix_timestamp)
            .map_err(|_| "`time` must be a moment such as `2030-01-31T09:00:00Z`".to_owned()),
        _ => Err("`time` must be text or whole seconds since 1970".to_owned()),
    }
}

/// The definitions of a folder, by name.
pub(super) fn tools(folder: &Path) -> Result<BTreeMap<String, Tool>, Failure> {
    let shown = folder.display();
    let entries =
        std::fs::read_dir(folder).map_err(|e| Failure::usage(format!("cannot read `{shown}`: {e}")))?;
    let mut out = BTreeMap::new();
    for entry in entries {
        let path = entry.map_err(|e| Failure::usage(format!("cannot read `{shown}`: {e}")))?.path();
        if !path.extension().is_some_and(|e| e == "yaml" || e == "yml") {
            continue;
        }
        let wrong = |why: String| Failure::bad_input(format!("tool file `{}`: {why}", path.display()));
        let text = std::fs::read_to_string(&path).map_err(|e| wrong(e.to_string()))?;
        let definition = exequatur_definition_file::read(&text).map_err(|e| wrong(e.to_string()))?;
        let message = definition.message();
        let schema = Schema::compile(&message.input_schema).map_err(|e| wrong(e.to_string()))?;
        let object = read_arguments(message.input_schema.as_bytes()).map_err(|e| wrong(e.to_string()))?;
        let reversible =
            message.reversibility() == exequatur_proto::definition::v1::Reversibility::Reversible;
        let name = definition.tool().to_owned();
        let known = KnownTool { name: name.clone(), reversible, schema: object };
        if out.insert(name, Tool { known, schema }).is_some() {
            return Err(wrong("another file defines the same tool".to_owned()));
        }
    }
    Ok(out)
}

/// The tools of a folder, if one is named.
pub(super) fn some_tools(folder: Option<&Path>) -> Result<Option<BTreeMap<String, Tool>>, Failure> {
    folder.map(tools).transpose()
}
