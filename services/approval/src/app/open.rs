//! Opening an approval: everything is recomputed from the bytes before a person may see it.
//! Knows no reviewer's answer.

use std::collections::HashMap;

use exequatur_canonical::{Digest, FrozenAction, FrozenPlan, display};
use exequatur_clock::UnixMillis;
use exequatur_fault::{Fault, Reason};
use exequatur_lifecycle::{Event, Item, Machine as _};
use exequatur_prepare::request_text;
use exequatur_proto::approval::v1::{ApprovalState, OpenAction, OpenApprovalRequest};
use exequatur_proto::ledger::v1::Transition;
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_proto::statement::v1::Envelope;
use exequatur_store::Tx;
use prost::Message as _;

use super::{App, checked, digest, present};
use crate::store::{ActionRow, ApprovalRow, Card, ItemRow};

/// Bytes of canonical text that a person can be asked to read; as many again for the prepared requests.
pub const MAX_SHOWN_BYTES: usize = 64 * 1024;
/// Longest window of a yes, seconds.
const MAX_WINDOW_S: u64 = 30 * 24 * 3600;

/// An opened approval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// UUIDv7.
    pub approval: String,
    /// The tenant has no reviewer: nobody can decide it.
    pub unattended: bool,
}

struct Checked {
    plan: FrozenPlan,
    actions: Vec<(ActionRow, FrozenAction)>,
}

impl App {
    /// Opens the approval of a plan; the same request gives the same approval.
    ///
    /// # Errors
    /// `NOT_CANONICAL`, `DIGEST_MISMATCH`, `STATEMENT_INVALID`, `INVALID_FIELD`, `TOO_LARGE_TO_SHOW`,
    /// or `IDEMPOTENCY_MISMATCH` where the plan was opened with another request.
    pub async fn open(&self, request: &OpenApprovalRequest) -> Result<Opened, Fault> {
        let mut tx = self.store.begin().await?;
        let now = tx.now();
        let checked = self.check_open(request, now)?;
        let tenant = checked.plan.header().tenant.clone();
        let request_digest = Digest::sha256(&request.encode_to_vec()).to_vec();
        let plan_digest = checked.plan.digest().to_vec();
        if let Some(card) = self.rows.by_plan(&mut tx, &tenant, &plan_digest).await? {
            if card.approval.request_digest != request_digest {
                return Err(Fault::new(
                    Reason::IdempotencyMismatch,
                    "this plan was opened with another request; read the approval that it has",
                )
                .with("approval", card.approval.approval));
            }
            drop(tx);
            return self.opened(card.approval.approval, &tenant).await;
        }
        if request.expires_at.as_ref().is_some_and(|t| UnixMillis::from_proto(t) <= now) {
            return Err(Fault::new(
                Reason::Expired,
                "the wait is over before it began; propose the plan again",
            ));
        }
        let approval = self.insert(&mut tx, request, &checked, request_digest).await?;
        self.commit(tx).await?;
        self.opened(approval, &tenant).await
    }

    async fn opened(&self, approval: String, tenant: &str) -> Result<Opened, Fault> {
        let unattended = self.rows.reviewers(tenant).await?.is_empty();
        if unattended {
            tracing::warn!(%tenant, %approval, reason = "NO_REVIEWERS", "nobody may decide this approval: enrol a reviewer");
        }
        Ok(Opened { approval, unattended })
    }

    fn check_open(&self, request: &OpenApprovalRequest, now: UnixMillis) -> Result<Checked, Fault> {
        let plan = checked::header(&self.zones.realm, &request.header)?;
        digest(&request.rule_set_digest, "rule_set_digest")?;
        if request.quorum != 1 {
            return Err(Fault::field("quorum", "only a quorum of 1 can be asked for"));
        }
        if request.window_s == 0 || request.window_s > MAX_WINDOW_S {
            return Err(Fault::field("window_s", format!("the window must be 1..{MAX_WINDOW_S} seconds")));
        }
        if request.actions.len() != plan.header().action_digests.len() {
            return Err(Fault::field("actions", "send every action that the plan header lists"));
        }
        if !request.actions.iter().any(|a| a.held) {
            return Err(Fault::field("actions", "no action is held; there is nothing to decide"));
        }
        let mut definitions: HashMap<Digest, &Envelope> = HashMap::new();
        let mut shown = display::plan_text(&plan).len();
        let mut requested = 0;
        let mut actions = Vec::with_capacity(request.actions.len());
        for (expected, open) in (0_u32..).zip(&request.actions) {
            if open.index != expected {
                return Err(Fault::field("actions", "send the actions in the order of the plan"));
            }
            let (row, frozen, text) = self.check_action(&plan, open, &mut definitions, now)?;
            shown += display::action_text(&frozen).len();
            requested += text;
            actions.push((row, frozen));
        }
        if shown > MAX_SHOWN_BYTES || requested > MAX_SHOWN_BYTES {
            return Err(Fault::new(
                Reason::TooLargeToShow,
                format!("the plan is too long for a person to read: at most {MAX_SHOWN_BYTES} bytes of text can be shown"),
            )
            .with("limit", "shown_text")
            .with("maximum", MAX_SHOWN_BYTES.to_string()));
        }
        Ok(Checked { plan, actions })
    }

    fn check_action<'a>(
        &self,
        plan: &FrozenPlan,
        open: &'a OpenAction,
        definitions: &mut HashMap<Digest, &'a Envelope>,
        now: UnixMillis,
    ) -> Result<(ActionRow, FrozenAction, usize), Fault> {
        let index = open.index;
        let at = |fault: Fault| fault.with("index", index.to_string());
        let frozen = checked::action(plan, index, &open.action)?;
        // A definition that several actions share needs to be sent once.
        let envelope = match (&open.definition, frozen.action().tool_digest) {
            (Some(envelope), Some(tool_digest)) => {
                definitions.insert(tool_digest, envelope);
                envelope
            }
            (None, Some(tool_digest)) if definitions.contains_key(&tool_digest) => {
                definitions.get(&tool_digest).copied().ok_or_else(|| Fault::field("definition", "missing"))?
            }
            (definition, _) => present(definition.as_ref(), "definition").map_err(at)?,
        };
        let definition =
            checked::definition(&self.trust, now.0, &plan.header().tenant, &frozen, envelope).map_err(at)?;
        // What a rule denied need not have been prepared; what is held must have been.
        let text = if !open.held && open.wire_digest.is_empty() {
            0
        } else {
            request_text(&checked::request(&definition, &frozen, &open.wire_digest).map_err(at)?).len()
        };
        let row = ActionRow {
            index,
            action: open.action.clone(),
            definition: envelope.encode_to_vec(),
            wire_digest: open.wire_digest.clone(),
            tool: frozen.action().tool.clone(),
            held: open.held,
            rule: open.rule.clone(),
        };
        Ok((row, frozen, text))
    }

    async fn insert(
        &self,
        tx: &mut Tx,
        request: &OpenApprovalRequest,
        checked: &Checked,
        request_digest: Vec<u8>,
    ) -> Result<String, Fault> {
        let header = checked.plan.header();
        let plan_digest = checked.plan.digest().to_vec();
        let approval = uuid::Uuid::now_v7().to_string();
        self.ledger.put_body(tx, &header.tenant, "plan_header", &plan_digest, &request.header).await?;
        let mut items = Vec::new();
        for (row, frozen) in &checked.actions {
            self.ledger
                .put_body(tx, &header.tenant, "action", frozen.digest().as_bytes(), &row.action)
                .await?;
            if !row.held {
                continue;
            }
            let entry = Body::Transition(Transition {
                machine: Item::NAME.to_owned(),
                plan_digest: plan_digest.clone(),
                index: row.index,
                event: Event::Hold.as_str().to_owned(),
                to: Item::Pending.as_str().to_owned(),
                actor: self.zones.governance.clone(),
                action_digest: frozen.digest().to_vec(),
                ..Transition::default()
            });
            let entry = self.ledger.append(tx, &header.tenant, entry).await?;
            items.push(ItemRow {
                index: row.index,
                tool: row.tool.clone(),
                state: Item::Pending,
                reason: String::new(),
                attempt: 0,
                closed: 0,
                reservation: None,
                withdrawal: String::new(),
                approved_at: None,
                ends_at: None,
                opened_entry: entry.sequence,
                last_entry: entry.sequence,
            });
        }
        let row = ApprovalRow {
            approval: approval.clone(),
            tenant: header.tenant.clone(),
            plan_digest,
            agent: header.agent.clone(),
            header: request.header.clone(),
            rule_set_digest: request.rule_set_digest.clone(),
            request_digest,
            opened_at: tx.now(),
            expires_at: request.expires_at.as_ref().map(UnixMillis::from_proto),
            window_s: request.window_s,
            quorum: request.quorum,
            state: ApprovalState::Pending,
            decision: None,
            window_ends_at: None,
        };
        let actions = checked.actions.iter().map(|(row, _)| row.clone()).collect();
        self.rows.insert(tx, &Card { approval: row, actions, items }).await?;
        Ok(approval)
    }
}
