//! One proposed call on its way to a decided action: schema, defaults, freezing, request, scope, rules.
//! Pure but for what it is given: reads no store and no clock.

use exequatur_canonical::{
    Action, CanonicalError, Digest, FrozenAction, freeze_value_action, is_tool_name, read_arguments,
};
use exequatur_clock::UnixMillis;
use exequatur_fault::{Fault, Reason, reason_str};
use exequatur_lifecycle::{Action as State, Event, next};
use exequatur_policy::{Call, Compiled, Evaluation, Verdict, evaluate};
use exequatur_prepare::{Definition, PrepareError, Prepared, prepare, tenant_scope};
use exequatur_proto::definition::v1::{Attestation, Reversibility};
use exequatur_proto::plan::v1::ToolCall;
use exequatur_schema::Schema;

use super::run::covers;

const MAX_RATIONALE: usize = 4 * 1024;

/// A tool in force, read once per plan.
pub(crate) struct Tool {
    pub(crate) definition: Definition,
    pub(crate) envelope: Vec<u8>,
    pub(crate) schema: Schema,
}

/// An action that is frozen and decided.
pub(crate) struct Draft {
    pub(crate) action: FrozenAction,
    pub(crate) envelope: Vec<u8>,
    pub(crate) prepared: Prepared,
    pub(crate) filled: Vec<String>,
    pub(crate) state: State,
    pub(crate) verdict: Verdict,
    pub(crate) evaluation: Option<Evaluation>,
    pub(crate) reason: String,
    pub(crate) message: String,
}

/// Who proposes.
pub(crate) struct Proposer<'a> {
    pub(crate) tenant: &'a str,
    pub(crate) agent: &'a str,
    pub(crate) now: UnixMillis,
    pub(crate) scopes: &'a [String],
}

/// Freezes and decides one call.
///
/// # Errors
/// What cannot be frozen makes no plan; the fault names the index and the place.
pub(crate) fn draft(
    index: usize,
    call: &ToolCall,
    tool: &Tool,
    who: &Proposer<'_>,
    rules: &Compiled,
) -> Result<Draft, Fault> {
    let at = |fault: Fault| fault.with("index", index.to_string()).with("tool", call.tool.clone());
    super::limit("rationale", call.rationale.len(), MAX_RATIONALE).map_err(at)?;
    let (action, filled) = freeze(call, tool).map_err(at)?;
    let prepared = prepare(&tool.definition, &action).map_err(|e| at(unfit(&e)))?;
    let mut draft = Draft {
        envelope: tool.envelope.clone(),
        prepared,
        filled,
        state: State::Denied,
        verdict: Verdict::Deny,
        evaluation: None,
        reason: String::new(),
        message: String::new(),
        action,
    };
    decide(&mut draft, tool, who, rules);
    Ok(draft)
}

fn freeze(call: &ToolCall, tool: &Tool) -> Result<(FrozenAction, Vec<String>), Fault> {
    let arguments = read_arguments(&call.arguments_json).map_err(|e| not_freezable(&e))?;
    let (arguments, filled) = tool.schema.fill_defaults(&arguments);
    tool.schema.validate(&arguments).map_err(|v| {
        Fault::new(
            Reason::SchemaViolation,
            format!("the arguments break the tool's schema at `{}`: {}", v.pointer, v.message),
        )
        .with("pointer", v.pointer)
    })?;
    let action = Action {
        tool: call.tool.clone(),
        arguments,
        rationale: call.rationale.clone(),
        tool_digest: Some(tool.definition.digest()),
    };
    Ok((freeze_value_action(action).map_err(|e| not_freezable(&e))?, filled))
}

fn not_freezable(error: &CanonicalError) -> Fault {
    let fault = Fault::new(Reason::NotFreezable, format!("the arguments cannot be frozen: {error}"))
        .with("code", error.code.to_string());
    match &error.pointer {
        Some(pointer) => fault.with("pointer", pointer.clone()),
        None => fault,
    }
}

fn unfit(error: &PrepareError) -> Fault {
    let fault = Fault::new(Reason::ValueDoesNotFit, format!("the request cannot be built: {error}"));
    match error.pointer() {
        Some(pointer) => fault.with("pointer", pointer),
        None => fault,
    }
}

/// Scope, tenant scope and rules make a DENIED action, not an error.
fn decide(draft: &mut Draft, tool: &Tool, who: &Proposer<'_>, rules: &Compiled) {
    let mut deny = |reason: Reason, message: String| {
        draft.reason = reason_str(reason).to_owned();
        draft.message = message;
    };
    if !covers(who.scopes, tool.definition.tool()) {
        return deny(
            Reason::ScopeMissing,
            "the run's scopes do not cover this tool; start a run that names it".to_owned(),
        );
    }
    if let Err(error) = tenant_scope(&tool.definition, &draft.action, who.tenant) {
        return deny(Reason::TenantScope, format!("the action reaches outside the run's tenant: {error}"));
    }
    let evaluation = judge(
        &tool.definition,
        &draft.action,
        &Caller { tenant: who.tenant, agent: who.agent, now: who.now },
        rules,
    );
    let event = match evaluation.verdict {
        Verdict::Deny => Event::Deny,
        Verdict::RequireHuman => Event::Hold,
        Verdict::AutoApprove => Event::Allow,
    };
    draft.state = next(Some(State::Proposed), event).unwrap_or(State::Denied);
    draft.verdict = evaluation.verdict;
    if evaluation.verdict == Verdict::Deny {
        draft.reason = reason_str(Reason::DeniedByRule).to_owned();
        draft.message = format!("rule `{}` denies it: {}", evaluation.rule, evaluation.reason);
    } else if evaluation.verdict == Verdict::RequireHuman {
        draft.message = format!("rule `{}` asks a person: {}", evaluation.rule, evaluation.reason);
    }
    draft.evaluation = Some(evaluation);
}

/// Who calls and when, as rules see it.
pub(crate) struct Caller<'a> {
    pub(crate) tenant: &'a str,
    pub(crate) agent: &'a str,
    pub(crate) now: UnixMillis,
}

/// What the rules say; a definition that wants a person is never allowed by a rule alone.
pub(crate) fn judge(
    definition: &Definition,
    action: &FrozenAction,
    caller: &Caller<'_>,
    rules: &Compiled,
) -> Evaluation {
    let message = definition.message();
    let call = Call {
        reversible: message.reversibility() == Reversibility::Reversible,
        agent: Some(caller.agent),
        tenant: Some(caller.tenant),
        time_s: Some(caller.now.0.div_euclid(1000)),
        ..Call::new(definition.tool(), &action.action().arguments)
    };
    let mut evaluation = evaluate(rules, &call);
    if evaluation.verdict == Verdict::AutoApprove && message.attestation() != Attestation::Auto {
        evaluation.verdict = Verdict::RequireHuman;
        "the tool's definition demands a person".clone_into(&mut evaluation.reason);
    }
    evaluation
}

/// The registered name that is nearest to an unknown one.
pub(crate) fn unknown_tool(index: usize, tool: &str, known: &[String]) -> Fault {
    let nearest =
        known.iter().min_by_key(|k| strsim::damerau_levenshtein(k, tool)).cloned().unwrap_or_default();
    let shown: String = if is_tool_name(tool) { tool.to_owned() } else { String::new() };
    let hint = if nearest.is_empty() { String::new() } else { format!("; did you mean `{nearest}`?") };
    Fault::new(Reason::UnknownTool, format!("no such tool{hint}"))
        .with("index", index.to_string())
        .with("tool", shown)
        .with("nearest", nearest)
}

/// Two plans with the same effects in the same order do the same.
pub(crate) fn effects(drafts: &[Draft]) -> Digest {
    let all: Vec<u8> = drafts.iter().flat_map(|d| d.action.effect_digest().to_vec()).collect();
    Digest::sha256(&all)
}
