//! A proposal: everything is frozen and decided, then plan, decisions and entries are one
//! transaction, and only then there is an answer.

use std::collections::{HashMap, HashSet};

use exequatur_canonical::display::{MAX_SHOWN_BYTES, action_text, plan_text};
use exequatur_canonical::{Digest, FrozenPlan, PlanHeader, Timestamp, freeze_plan};
use exequatur_clock::UnixMillis;
use exequatur_fault::{Fault, Reason};
use exequatur_ledger::outbox;
use exequatur_lifecycle::{Action as State, Machine as _};
use exequatur_policy::{Compiled, RuleSet, Verdict};
use exequatur_prepare::{Definition, request_text};
use exequatur_proto::approval::v1::{OpenAction, OpenApprovalRequest};
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_proto::ledger::v1::{PlanProposed, ProposedAction};
use exequatur_proto::plan::v1::{ProposePlanRequest, ToolCall};
use exequatur_proto::statement::v1::Envelope;
use exequatur_schema::Schema;
use exequatur_service::Caller;
use exequatur_store::Tx;
use prost::Message as _;

use super::drafts::{Draft, Proposer, Tool, draft, effects, unknown_tool};
use super::run::{caller_key, mismatch};
use super::{App, key, limit};
use crate::store::{ActionRow, CallKey, PlanRow, RunRow, Seen};

const MAX_ACTIONS: usize = 256;
const MAX_CONTEXT: usize = 16 * 1024;
const MAX_PLAN_BYTES: usize = 2 * 1024 * 1024;
const MAX_DEFINITION_BYTES: usize = 1024 * 1024;
const MAX_OPEN: usize = 64;

/// What a proposal gave.
#[derive(Debug, Clone)]
pub struct Proposal {
    /// The plan.
    pub plan: PlanRow,
    /// Whether it is an open plan that already proposed the same effects.
    pub duplicate: bool,
}

impl App {
    /// Freezes, decides and records a plan.
    ///
    /// # Errors
    /// What cannot be frozen makes no plan: `NOT_FREEZABLE`, `UNKNOWN_TOOL`, `SCHEMA_VIOLATION`,
    /// `VALUE_DOES_NOT_FIT`, `LIMIT_EXCEEDED`, `TOO_LARGE_TO_SHOW`, `IDEMPOTENCY_MISMATCH`.
    pub async fn propose(&self, caller: &Caller, request: &ProposePlanRequest) -> Result<Proposal, Fault> {
        let claims = caller.run.as_ref().ok_or_else(|| Fault::internal("a proposal without a run"))?;
        check_request(request)?;
        let mut tx = self.store.begin().await?;
        let body = Digest::sha256(&request.encode_to_vec());
        let call = CallKey {
            tenant: &claims.tenant,
            caller: &caller_key(caller),
            method: "ProposePlan",
            key: &request.idempotency_key,
            body: body.as_bytes(),
        };
        match self.rows.seen(&mut tx, call).await? {
            Seen::Other => return Err(mismatch()),
            Seen::Same(plan) => {
                let plan = self.rows.plan(&mut tx, &claims.tenant, &plan).await?;
                let plan = plan.ok_or_else(|| Fault::internal("a remembered plan went missing"))?;
                return Ok(Proposal { plan, duplicate: false });
            }
            Seen::New => {}
        }
        let run = self.rows.run(&mut tx, &claims.tenant, &claims.run).await?;
        let run = run.ok_or_else(|| Fault::not_found("run", &claims.run))?;
        let set = self.rules(&mut tx, &claims.tenant).await?;
        let drafts = self.drafts(&mut tx, &run, &request.actions, &set).await?;
        let effects = effects(&drafts);
        let open = self.rows.open_plans(&mut tx, Some(&run.run)).await?;
        if !request.allow_duplicate
            && let Some(plan) = self.same_effects(&mut tx, &open, &effects).await?
        {
            return Ok(Proposal { plan, duplicate: true });
        }
        limit("open plans of a run", open.len() + 1, MAX_OPEN)?;
        let plan = self.record(&mut tx, request, &run, drafts, &effects, &set).await?;
        self.rows.remember(&mut tx, call, &plan.plan).await?;
        self.commit(tx).await?;
        Ok(Proposal { plan, duplicate: false })
    }

    /// The rule set in force; without one nothing is decided.
    pub(crate) async fn rules(&self, tx: &mut Tx, tenant: &str) -> Result<RuleSet, Fault> {
        let none = || Fault::new(Reason::RuleError, "the tenant has no rule set; an operator must apply one");
        let (digest, bytes) = self.rows.rule_set(tx, tenant).await?.ok_or_else(none)?;
        let set = RuleSet::verify(&bytes).map_err(|e| {
            Fault::new(Reason::RuleError, "the stored rule set is not acceptable; apply it again")
                .caused_by(e)
        })?;
        if set.digest().as_bytes().as_slice() != digest {
            return Err(Fault::new(
                Reason::DigestMismatch,
                "the stored rule set is not the one that was applied",
            ));
        }
        Ok(set)
    }

    async fn drafts(
        &self,
        tx: &mut Tx,
        run: &RunRow,
        calls: &[ToolCall],
        set: &RuleSet,
    ) -> Result<Vec<Draft>, Fault> {
        let compiled = Compiled::new(set);
        let who = Proposer { tenant: &run.tenant, agent: &run.agent, now: tx.now(), scopes: &run.scopes };
        let mut tools: HashMap<String, Tool> = HashMap::new();
        let mut drafts = Vec::new();
        let (mut bytes, mut definitions) = (0, 0);
        for (index, call) in calls.iter().enumerate() {
            if !tools.contains_key(&call.tool) {
                let tool = self.registered(tx, &run.tenant, index, &call.tool).await?;
                definitions += tool.definition.bytes().len();
                limit("definition bytes of a plan", definitions, MAX_DEFINITION_BYTES)?;
                tools.insert(call.tool.clone(), tool);
            }
            let Some(tool) = tools.get(&call.tool) else {
                return Err(Fault::internal("a tool went missing"));
            };
            let draft = draft(index, call, tool, &who, &compiled)?;
            bytes += draft.action.bytes().len();
            limit("canonical bytes of a plan", bytes, MAX_PLAN_BYTES)?;
            drafts.push(draft);
        }
        Ok(drafts)
    }

    async fn registered(&self, tx: &mut Tx, tenant: &str, index: usize, tool: &str) -> Result<Tool, Fault> {
        let Some(row) = self.rows.tool(tx, tenant, tool).await? else {
            let known: Vec<String> =
                self.rows.tools(tx, tenant, "", 1000).await?.into_iter().map(|t| t.tool).collect();
            return Err(unknown_tool(index, tool, &known));
        };
        let envelope = Envelope::decode(row.definition.as_slice()).map_err(Fault::internal)?;
        // Checked again: the register's row is not trusted by itself.
        let definition: Definition =
            exequatur_door::signed_definition(&self.trust, tx.now().0, tenant, &envelope)?;
        let schema = Schema::compile(&definition.message().input_schema).map_err(Fault::internal)?;
        Ok(Tool { definition, envelope: row.definition, schema })
    }

    async fn same_effects(
        &self,
        tx: &mut Tx,
        open: &[(String, String)],
        effects: &Digest,
    ) -> Result<Option<PlanRow>, Fault> {
        for (tenant, plan) in open {
            let found = self.rows.plan(tx, tenant, plan).await?;
            if let Some(found) = found.filter(|p| p.effects == effects.as_bytes()) {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    async fn record(
        &self,
        tx: &mut Tx,
        request: &ProposePlanRequest,
        run: &RunRow,
        drafts: Vec<Draft>,
        effects: &Digest,
        set: &RuleSet,
    ) -> Result<PlanRow, Fault> {
        let header = header(request, run, &drafts, &self.zones.realm, tx.now());
        let frozen = freeze_plan(header).map_err(Fault::internal)?;
        check_shown(&frozen, &drafts)?;
        let entry = self.proposed_entry(&frozen, run, &drafts, set);
        let entry = self.ledger.append(tx, &run.tenant, Body::PlanProposed(entry)).await?;
        self.bodies(tx, &run.tenant, &frozen, &drafts).await?;
        let now = tx.now();
        let mut plan = PlanRow {
            plan: frozen.header().plan.clone(),
            tenant: run.tenant.clone(),
            run: run.run.clone(),
            digest: frozen.digest().to_vec(),
            header: frozen.bytes().to_vec(),
            effects: effects.to_vec(),
            entry: entry.sequence,
            sequence: 1,
            approval: String::new(),
            decision: None,
            actions: (0..).zip(&drafts).map(|(index, draft)| row(index, draft)).collect(),
        };
        // All or nothing: with one denied, the rest is skipped before anybody is asked.
        self.progress(tx, &mut plan).await?;
        if plan.actions.iter().any(|a| a.state == State::AwaitingApproval) {
            let open = open_request(&plan, &drafts, set, now);
            outbox::push(tx, "open", &format!("plan/{}", plan.plan), &open.encode_to_vec()).await?;
        }
        self.rows.put_plan(tx, &plan).await?;
        Ok(plan)
    }

    fn proposed_entry(
        &self,
        frozen: &FrozenPlan,
        run: &RunRow,
        drafts: &[Draft],
        set: &RuleSet,
    ) -> PlanProposed {
        let mode = drafts.iter().find_map(|d| d.evaluation.as_ref()).map_or("enforce", |e| e.mode.as_str());
        PlanProposed {
            plan_digest: frozen.digest().to_vec(),
            plan: frozen.header().plan.clone(),
            run: run.run.clone(),
            agent: run.agent.clone(),
            owner: run.owner.clone(),
            rule_set_digest: set.digest().to_vec(),
            mode: mode.to_owned(),
            actions: (0..).zip(drafts).map(|(index, draft)| proposed(index, draft)).collect(),
        }
    }

    async fn bodies(
        &self,
        tx: &mut Tx,
        tenant: &str,
        frozen: &FrozenPlan,
        drafts: &[Draft],
    ) -> Result<(), Fault> {
        self.ledger.put_body(tx, tenant, "plan_header", frozen.digest().as_bytes(), frozen.bytes()).await?;
        for draft in drafts {
            let action = &draft.action;
            self.ledger.put_body(tx, tenant, "action", action.digest().as_bytes(), action.bytes()).await?;
            self.ledger
                .put_body(
                    tx,
                    tenant,
                    "prepared_request",
                    draft.prepared.wire_digest().as_bytes(),
                    draft.prepared.bytes(),
                )
                .await?;
        }
        Ok(())
    }
}

fn check_request(request: &ProposePlanRequest) -> Result<(), Fault> {
    key(&request.idempotency_key)?;
    if request.actions.is_empty() {
        return Err(Fault::field("actions", "a plan has at least one action"));
    }
    limit("actions", request.actions.len(), MAX_ACTIONS)?;
    limit("context", request.context.len(), MAX_CONTEXT)
}

fn header(
    request: &ProposePlanRequest,
    run: &RunRow,
    drafts: &[Draft],
    realm: &str,
    now: UnixMillis,
) -> PlanHeader {
    let at = now.to_proto();
    PlanHeader {
        tenant: run.tenant.clone(),
        run: run.run.clone(),
        agent: run.agent.clone(),
        plan: uuid::Uuid::now_v7().to_string(),
        proposed_at: Timestamp { seconds: at.seconds, nanos: at.nanos },
        context: request.context.clone(),
        action_digests: drafts.iter().map(|d| d.action.digest()).collect(),
        continue_on_failure: request.continue_on_failure,
        allow_partial: request.allow_partial,
        realm: realm.to_owned(),
        owner: run.owner.clone(),
    }
}

/// What cannot be shown whole cannot be approved; a person reads the canonical text and the requests.
fn check_shown(frozen: &FrozenPlan, drafts: &[Draft]) -> Result<(), Fault> {
    if drafts.iter().all(|d| d.verdict != Verdict::RequireHuman) {
        return Ok(());
    }
    let shown = plan_text(frozen).len() + drafts.iter().map(|d| action_text(&d.action).len()).sum::<usize>();
    let requested = drafts.iter().map(|d| request_text(&d.prepared).len()).sum::<usize>();
    if shown <= MAX_SHOWN_BYTES && requested <= MAX_SHOWN_BYTES {
        return Ok(());
    }
    Err(Fault::new(
        Reason::TooLargeToShow,
        "a person must decide this plan and its text is too long to be shown; split it",
    )
    .with("maximum", MAX_SHOWN_BYTES.to_string()))
}

fn rule(draft: &Draft) -> String {
    draft.evaluation.as_ref().map(|e| e.rule.clone()).unwrap_or_default()
}

fn proposed(index: u32, draft: &Draft) -> ProposedAction {
    let enforce = draft
        .evaluation
        .as_ref()
        .filter(|e| e.enforce_verdict != e.verdict)
        .map(|e| e.enforce_verdict.as_str());
    ProposedAction {
        index,
        tool: draft.action.action().tool.clone(),
        action_digest: draft.action.digest().to_vec(),
        tool_digest: draft.action.action().tool_digest.map(|d| d.to_vec()).unwrap_or_default(),
        wire_digest: draft.prepared.wire_digest().to_vec(),
        verdict: draft.verdict.as_str().to_owned(),
        rule: rule(draft),
        state: draft.state.as_str().to_owned(),
        reason: draft.reason.clone(),
        enforce_verdict: enforce.unwrap_or_default().to_owned(),
    }
}

fn row(index: u32, draft: &Draft) -> ActionRow {
    ActionRow {
        index,
        tool: draft.action.action().tool.clone(),
        action: draft.action.bytes().to_vec(),
        definition: draft.envelope.clone(),
        digest: draft.action.digest().to_vec(),
        effect_digest: draft.action.effect_digest().to_vec(),
        wire_digest: draft.prepared.wire_digest().to_vec(),
        verdict: draft.verdict.as_str().to_owned(),
        state: draft.state,
        rule: rule(draft),
        reason: draft.reason.clone(),
        message: draft.message.clone(),
        instead: String::new(),
        filled: draft.filled.clone(),
        attempt: 1,
        asked: false,
        journal: String::new(),
        retry_at: UnixMillis(0),
        // Its deadline counts from when its turn comes.
        ready_at: UnixMillis(0),
        on_hold: false,
        previous_abort: Vec::new(),
        receipt: Vec::new(),
        result: Vec::new(),
    }
}

/// The shortest wait and window of the held actions bind the whole approval.
fn open_request(plan: &PlanRow, drafts: &[Draft], set: &RuleSet, now: UnixMillis) -> OpenApprovalRequest {
    let held: Vec<_> = plan
        .actions
        .iter()
        .zip(drafts)
        .filter(|(row, _)| row.state == State::AwaitingApproval)
        .filter_map(|(_, draft)| draft.evaluation.as_ref())
        .collect();
    let expires = held.iter().filter_map(|e| e.expires).min();
    let window = held.iter().map(|e| e.window).min().unwrap_or_default();
    let mut sent = HashSet::new();
    OpenApprovalRequest {
        header: plan.header.clone(),
        actions: plan
            .actions
            .iter()
            .map(|row| OpenAction {
                index: row.index,
                action: row.action.clone(),
                definition: sent
                    .insert(row.definition.as_slice())
                    .then(|| Envelope::decode(row.definition.as_slice()).ok())
                    .flatten(),
                wire_digest: row.wire_digest.clone(),
                held: row.state == State::AwaitingApproval,
                rule: row.rule.clone(),
                state: row.state.as_str().to_owned(),
            })
            .collect(),
        rule_set_digest: set.digest().to_vec(),
        expires_at: expires.map(|life| now.saturating_add(life).to_proto()),
        window_s: window.as_secs(),
        quorum: 1,
    }
}
