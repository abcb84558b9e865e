//! The reviewer's card: everything that a person decides about, computed from the frozen bytes and the signed
//! definitions. A difference to what the service claims is an error, never a choice.

use std::collections::HashMap;

use exequatur_canonical::display::{self, Warning};
use exequatur_canonical::{Digest, FrozenAction, FrozenPlan, verify_action, verify_plan};
use exequatur_prepare::{Definition, Prepared, prepare, request_text};
use exequatur_proto::approval::v1::{Approval, ApprovalAction};
use exequatur_proto::definition::v1::prepared_request::Request;
use exequatur_proto::definition::v1::{Effect, Reversibility, Risk, ToolDefinition};
use exequatur_proto::statement::v1::Envelope;
use exequatur_statement::{Expect, Trust};
use serde_json::{Value, json};

use crate::failure::Failure;
use crate::text;

#[cfg(test)]
mod tests;

/// One approval, computed.
pub(crate) struct Card {
    pub(crate) approval: String,
    pub(crate) plan: String,
    pub(crate) digest: Digest,
    pub(crate) words: String,
    pub(crate) tenant: String,
    pub(crate) run: String,
    pub(crate) agent: String,
    pub(crate) owner: String,
    pub(crate) header_text: String,
    pub(crate) header_warnings: Vec<Warning>,
    pub(crate) actions: Vec<CardAction>,
    pub(crate) state: String,
    pub(crate) expires_at: Option<String>,
    pub(crate) quorum: u32,
}

/// One action of it.
pub(crate) struct CardAction {
    pub(crate) index: u32,
    pub(crate) digest: Digest,
    pub(crate) wire_digest: Digest,
    pub(crate) tool: String,
    pub(crate) summary: String,
    pub(crate) nature: String,
    pub(crate) text: String,
    pub(crate) request: String,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) rule: String,
    pub(crate) held: bool,
    pub(crate) state: String,
    pub(crate) last_approved: Option<String>,
    high: bool,
    prepared: Prepared,
}

impl Card {
    /// Computes a card; fails if any byte is not what it claims to be.
    pub(crate) fn compute(approval: Approval, trust: &Trust) -> Result<Self, Failure> {
        let plan = verify_plan(&approval.header).map_err(|e| broken("the plan header", &e.to_string()))?;
        let header = plan.header();
        if header.action_digests.len() != approval.actions.len() {
            return Err(broken("the plan", "the header lists another number of actions"));
        }
        let mut actions = Vec::with_capacity(approval.actions.len());
        // Each definition comes once, with the first action of its tool.
        let mut definitions = HashMap::new();
        let mut last_approved = HashMap::new();
        for (action, listed) in approval.actions.iter().zip(&header.action_digests) {
            let mut computed = CardAction::compute(action, &mut definitions, trust)?;
            if let Some(last) = &computed.last_approved {
                last_approved.insert(computed.tool.clone(), last.clone());
            } else if computed.held {
                computed.last_approved = last_approved.get(&computed.tool).cloned();
            }
            if computed.digest != *listed {
                return Err(broken(
                    &format!("action {}", action.index),
                    "its bytes are not those that the header lists",
                ));
            }
            actions.push(computed);
        }
        let high = actions.iter().any(|action| action.high);
        Ok(Self {
            approval: approval.approval.clone(),
            plan: header.plan.clone(),
            digest: plan.digest(),
            words: exequatur_canonical::words(&plan.digest(), high),
            tenant: header.tenant.clone(),
            run: header.run.clone(),
            agent: header.agent.clone(),
            owner: header.owner.clone(),
            header_text: display::plan_text(&plan),
            header_warnings: plan_warnings(&plan),
            actions,
            state: text::word(approval.state().as_str_name(), "APPROVAL_STATE_"),
            expires_at: text::instant(approval.expires_at.as_ref()),
            quorum: approval.quorum,
        })
    }

    /// As `--output json` writes it.
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "approval": self.approval,
            "plan": self.plan,
            "digest": self.digest.to_string(),
            "words": self.words,
            "tenant": self.tenant,
            "run": self.run,
            "agent": self.agent,
            "owner": self.owner,
            "header_text": self.header_text,
            "header_warnings": warnings_json(&self.header_warnings),
            "actions": self.actions.iter().map(CardAction::to_json).collect::<Vec<_>>(),
            "state": self.state,
            "expires_at": self.expires_at,
        })
    }

    /// The whole card for a terminal. Canonical texts are escaped by their renderer and not once more.
    pub(crate) fn to_text(&self) -> String {
        let mut card = text::pairs(&[
            ("Approval", self.approval.clone()),
            ("State", self.state.clone()),
            ("Asked by", format!("{} in run {}", self.agent, self.run)),
            ("Owner", self.owner.clone()),
            ("Decide by", self.expires_at.clone().unwrap_or_else(|| "no deadline".to_owned())),
            ("Needed", format!("{} of the tenant's reviewers", self.quorum.max(1))),
            ("Plan", format!("{}  {}", self.words, self.digest)),
        ]);
        card.push_str("\nPlan header (canonical text)\n");
        card.push_str(&indent(&self.header_text));
        card.push_str(&warnings_text(&self.header_warnings));
        for action in &self.actions {
            card.push('\n');
            card.push_str(&action.to_text());
        }
        card.push_str("\nEffect: approve = exactly these held actions run, each at most once.\n");
        card
    }
}

impl CardAction {
    fn compute(
        action: &ApprovalAction,
        definitions: &mut HashMap<Digest, Definition>,
        trust: &Trust,
    ) -> Result<Self, Failure> {
        let what = format!("action {}", action.index);
        let frozen = verify_action(&action.action).map_err(|e| broken(&what, &e.to_string()))?;
        if let Some(envelope) = &action.definition {
            let definition = definition(envelope, trust).map_err(|why| broken(&what, &why))?;
            definitions.insert(definition.digest(), definition);
        }
        let definition = frozen
            .action()
            .tool_digest
            .and_then(|digest| definitions.get(&digest))
            .ok_or_else(|| broken(&what, "the definition that it names is missing"))?;
        let prepared = prepare(definition, &frozen).map_err(|e| broken(&what, &e.to_string()))?;
        if prepared.wire_digest().as_bytes().as_slice() != action.wire_digest {
            return Err(broken(&what, "the request that it becomes is not the one that was decided on"));
        }
        let message = definition.message();
        let last_approved = match action.last_approved.as_slice() {
            [] => None,
            bytes => {
                Some(display::action_text(&verify_action(bytes).map_err(|e| broken(&what, &e.to_string()))?))
            }
        };
        Ok(Self {
            index: action.index,
            digest: frozen.digest(),
            wire_digest: prepared.wire_digest(),
            tool: definition.tool().to_owned(),
            summary: message.summary.clone(),
            nature: nature(message),
            text: display::action_text(&frozen),
            request: request_text(&prepared),
            warnings: action_warnings(&frozen, message),
            rule: action.rule.clone(),
            held: action.held,
            state: if action.held {
                text::word(action.state().as_str_name(), "ITEM_STATE_")
            } else {
                "NOT_HELD".to_owned()
            },
            last_approved,
            high: message.risk() == Risk::High,
            prepared,
        })
    }

    /// Target and body of the request that the action becomes, where it is an HTTP request.
    pub(crate) fn http(&self) -> Option<(String, Vec<u8>)> {
        match self.prepared.request().request.as_ref()? {
            Request::Http(http) => Some((http.target.clone(), http.body.clone())),
            Request::Smtp(_) | Request::Postgres(_) => None,
        }
    }

    fn to_json(&self) -> Value {
        json!({
            "index": self.index,
            "digest": self.digest.to_string(),
            "wire_digest": self.wire_digest.to_string(),
            "tool": self.tool,
            "text": self.text,
            "request": self.request,
            "warnings": warnings_json(&self.warnings),
            "rule": self.rule,
            "held": self.held,
            "state": self.state,
            "last_approved": self.last_approved,
        })
    }

    fn to_text(&self) -> String {
        let mut card = format!(
            "{} {}  {}  [{}]\n",
            self.index,
            text::escape(&self.tool),
            text::escape(&self.summary),
            text::escape(&self.nature),
        );
        let held = if self.held { "held by rule" } else { "not held, rule" };
        card.push_str(&text::pairs(&[
            ("  State", self.state.clone()),
            ("  Why", format!("{held} {}", self.rule)),
            ("  Digest", self.digest.to_string()),
        ]));
        card.push_str("  Canonical text (the rationale is the agent's claim)\n");
        card.push_str(&indent(&indent(&self.text)));
        card.push_str("  Request\n");
        card.push_str(&indent(&indent(&self.request)));
        if let Some(last) = &self.last_approved {
            let same = if *last == self.text {
                "  Same as last approved\n"
            } else {
                "  Last approved of this tool\n"
            };
            card.push_str(same);
            if *last != self.text {
                card.push_str(&indent(&indent(last)));
            }
        }
        card.push_str(&warnings_text(&self.warnings));
        card
    }
}

/// The definition, if an operator of the trust bundle signed it.
fn definition(envelope: &Envelope, trust: &Trust) -> Result<Definition, String> {
    let now = time::OffsetDateTime::now_utc().unix_timestamp_nanos() / 1_000_000;
    let expect = Expect {
        issuer: None,
        audience: None,
        tenant: None,
        now: i64::try_from(now).unwrap_or(i64::MAX),
        check_expiry: false,
    };
    trust.verify::<ToolDefinition>(envelope, expect).map_err(|e| format!("its definition: {e}"))?;
    Definition::verify(&envelope.payload).map_err(|e| format!("its definition: {e}"))
}

fn nature(definition: &ToolDefinition) -> String {
    let risk = match definition.risk() {
        Risk::Low => "low risk",
        Risk::Medium => "medium risk",
        Risk::High => "HIGH RISK",
        Risk::Unspecified => "risk unknown",
    };
    let effect = if definition.effect() == Effect::Read { "only reads" } else { "changes something" };
    let undo = match definition.reversibility() {
        Reversibility::Reversible => "can be undone",
        Reversibility::Irreversible => "cannot be undone",
        Reversibility::Unspecified => "nobody knows if it can be undone",
    };
    format!("{risk}, {effect}, {undo}")
}

fn action_warnings(action: &FrozenAction, definition: &ToolDefinition) -> Vec<Warning> {
    let names = exequatur_schema::Schema::compile(&definition.input_schema)
        .ok()
        .map(|schema| schema.property_names());
    display::warnings_for_action(action, names.as_deref())
}

fn plan_warnings(plan: &FrozenPlan) -> Vec<Warning> {
    display::warnings_for_plan(plan)
}

fn warnings_json(warnings: &[Warning]) -> Value {
    warnings
        .iter()
        .map(|warning| json!({"code": warning.code.as_str(), "place": warning.place, "message": warning.message}))
        .collect()
}

fn warnings_text(warnings: &[Warning]) -> String {
    warnings
        .iter()
        .map(|w| {
            format!("  ! {} {}: {}\n", w.code.as_str(), text::escape(&w.place), text::escape(&w.message))
        })
        .collect()
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("  {line}\n")).collect()
}

fn broken(what: &str, why: &str) -> Failure {
    Failure::failed("DIGEST_MISMATCH", format!("{what} cannot be trusted and must not be decided: {why}"))
}
