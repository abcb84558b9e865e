//! Conditions on who calls and when: agent, tenant, run labels, input labels, reversibility, time.
//! Knows no argument and no verdict.

use exequatur_proto::definition::v1::Reversibility;
use exequatur_proto::policy::v1 as proto;

use crate::Call;
use crate::argument::Fit;
use crate::glob::{Glob, Reach};
use crate::window::Window;

/// The compiled conditions of one rule.
#[derive(Debug, Default)]
pub(crate) struct Context {
    agents: Vec<Glob>,
    tenants: Vec<Glob>,
    labels: Vec<(String, Vec<Glob>)>,
    inputs: Vec<String>,
    reversible: Option<bool>,
    window: Option<Window>,
    any: bool,
}

impl Context {
    pub(crate) fn compile(rule: &proto::Rule) -> Result<Self, (&'static str, String)> {
        let globs = |field, texts: &[String]| -> Result<Vec<Glob>, (&'static str, String)> {
            texts.iter().map(|t| Glob::compile(t).map_err(|why| (field, why))).collect()
        };
        let reversible = match Reversibility::try_from(rule.reversibility) {
            Ok(Reversibility::Unspecified) => None,
            Ok(Reversibility::Reversible) => Some(true),
            Ok(Reversibility::Irreversible) => Some(false),
            Err(_) => return Err(("reversibility", "must be reversible or irreversible".to_owned())),
        };
        let labels = rule
            .labels
            .iter()
            .map(|l| Ok((l.name.clone(), globs("labels", &l.any_of)?)))
            .collect::<Result<Vec<_>, _>>()?;
        let window = rule.time.as_ref().map(Window::compile).transpose().map_err(|why| ("time", why))?;
        let mut out = Self {
            agents: globs("agents", &rule.agents)?,
            tenants: globs("tenants", &rule.tenants)?,
            labels,
            inputs: rule.inputs.clone(),
            reversible,
            window,
            any: false,
        };
        out.any = !(out.agents.is_empty()
            && out.tenants.is_empty()
            && out.labels.is_empty()
            && out.inputs.is_empty()
            && out.reversible.is_none()
            && out.window.is_none());
        Ok(out)
    }

    /// Whether there is no condition.
    pub(crate) const fn is_empty(&self) -> bool {
        !self.any
    }

    /// Tries every condition; tells each one that did not say yes to `tell`.
    pub(crate) fn fit(&self, call: &Call<'_>, reach: Reach, mut tell: impl FnMut(&'static str, Fit)) {
        if !self.any {
            return;
        }
        if let Some(wanted) = self.reversible
            && wanted != call.reversible
        {
            tell("reversibility", Fit::No);
        }
        for (field, globs, value) in
            [("agents", &self.agents, call.agent), ("tenants", &self.tenants, call.tenant)]
        {
            if !globs.is_empty() {
                tell(field, value.map_or_else(|| unknown(field), |v| any(globs, v, reach)));
            }
        }
        for (name, globs) in &self.labels {
            let value = call.labels.and_then(|l| l.get(name));
            let fit = value.map_or_else(
                || Fit::Unclear(format!("label `{name}` of the run is missing")),
                |v| any(globs, v, reach),
            );
            tell("labels", fit);
        }
        if !self.inputs.is_empty() {
            let fit = match call.inputs {
                None => unknown("inputs"),
                Some(inputs) if self.inputs.iter().any(|i| inputs.contains(i)) => Fit::Yes,
                Some(_) => Fit::No,
            };
            tell("inputs", fit);
        }
        if let Some(window) = &self.window {
            let holds = |s| if window.contains(s) { Fit::Yes } else { Fit::No };
            tell("time", call.time_s.map_or_else(|| unknown("time"), holds));
        }
    }
}

fn unknown(what: &str) -> Fit {
    Fit::Unclear(format!("`{what}` is not known for this call"))
}

fn any(globs: &[Glob], text: &str, reach: Reach) -> Fit {
    if text.len() > crate::glob::MAX_TEXT {
        return Fit::Unclear("a name is too long for a pattern".to_owned());
    }
    if globs.iter().any(|g| g.matches(text, reach)) { Fit::Yes } else { Fit::No }
}
