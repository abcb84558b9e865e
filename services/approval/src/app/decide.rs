//! A reviewer's answer: who may give it, over which bytes, and the signed decision that it becomes.
//! The first answer wins.

use std::time::Duration;

use exequatur_fault::{Fault, Reason};
use exequatur_lifecycle::{Event, Item};
use exequatur_proto::approval::v1::decide_request::Answer;
use exequatur_proto::approval::v1::{Approval, DecideRequest, ShownAction};
use exequatur_proto::statement::v1::{DecidedItem, Decision, Envelope, ItemVerdict, ReviewerProof};
use exequatur_service::Caller;
use exequatur_statement::sign;
use exequatur_store::Tx;
use prost::Message as _;

use super::change::{Cause, Changes};
use super::own::Stored;
use super::withdraw::over;
use super::{App, mismatch};
use crate::store::Card;

/// Bytes of a reason.
const MAX_REASON: usize = 1024;
/// A decision can be read for so long after its window, by a zone that was away.
const READABLE: Duration = Duration::from_secs(7 * 24 * 3600);

/// What the answer says about each held action.
struct Verdicts {
    items: Vec<(u32, ItemVerdict)>,
    reason: String,
}

impl App {
    /// Records an answer and gives the approval after it; a repeat of the same answer by the same
    /// person gives it again.
    ///
    /// # Errors
    /// `NOT_FOUND`, `SELF_APPROVAL`, `DIGEST_MISMATCH`, `INVALID_FIELD`, `EXPIRED`, or the reason of the
    /// state that the approval is in.
    pub async fn decide(&self, caller: &Caller, request: &DecideRequest) -> Result<Approval, Fault> {
        let mut tx = self.store.begin().await?;
        let mut card = self.rows.by_id(&mut tx, &request.approval).await?;
        if let Some(found) = &card
            && !self.rows.is_reviewer(&mut tx, &found.approval.tenant, &caller.id).await?
        {
            card = None;
        }
        let mut card = card.ok_or_else(|| Fault::not_found("approval", &request.approval))?;
        let about = |fault: Fault, card: &Card| {
            fault
                .with("tenant", &card.approval.tenant)
                .with("plan", super::reserve::hex(&card.approval.plan_digest))
        };
        let stored = self.check_decide(caller, request, &card, &tx).await.map_err(|f| about(f, &card))?;
        let partial = self.stored_plan(&card.approval)?.header().allow_partial;
        let verdicts = verdicts(request, &card, partial).map_err(|f| about(f, &card))?;

        if let Some((decided, _)) = self.own_decision(&card.approval, tx.now())? {
            if same_answer(&decided.statement, caller, &verdicts) {
                drop(tx);
                return self.show(&card).await;
            }
            return Err(about(
                Fault::new(Reason::WrongState, "another answer came first").with("state", "DECIDED"),
                &card,
            ));
        }
        if self.expire_card(&mut tx, &mut card).await? {
            self.commit(tx).await?;
            return Err(about(
                Fault::new(Reason::Expired, "the wait is over; the plan must be proposed again"),
                &card,
            ));
        }
        for (index, verdict) in &verdicts.items {
            let blocked = card.items.iter().find(|i| i.index == *index && i.state != Item::Pending);
            if let (Some(item), ItemVerdict::Approved) = (blocked, verdict) {
                return Err(about(over(item), &card));
            }
        }
        if let (None, Some(first)) =
            (card.items.iter().find(|i| i.state == Item::Pending), card.items.first())
        {
            return Err(about(over(first), &card));
        }
        self.record(&mut tx, caller, &mut card, &stored, verdicts).await?;
        self.commit(tx).await?;
        self.show(&card).await
    }

    async fn check_decide(
        &self,
        caller: &Caller,
        request: &DecideRequest,
        card: &Card,
        tx: &Tx,
    ) -> Result<Vec<Stored>, Fault> {
        let plan = self.stored_plan(&card.approval)?;
        let header = plan.header();
        // A person's name as agent or owner counts too: the answer must come from somebody else.
        let name = caller.id.rsplit('/').next().unwrap_or_default();
        let is_caller = |who: &str| who == caller.id || who == name;
        if is_caller(&header.owner) || is_caller(&header.agent) {
            return Err(Fault::new(
                Reason::SelfApproval,
                "who owns the run or is its agent cannot decide its plans; ask another reviewer",
            ));
        }
        let named = super::digest(&request.plan_digest, "plan_digest")?;
        if named != plan.digest() {
            return Err(mismatch("plan", &plan.digest(), &named));
        }
        let mut stored = Vec::with_capacity(card.actions.len());
        for row in &card.actions {
            let action = self.stored_action(&plan, row, tx.now())?;
            if let Some(item) = card.items.iter().find(|i| i.index == row.index) {
                self.check_entries(&card.approval, item, &action.action, tx.now()).await?;
            } else if row.held {
                return Err(Fault::internal("a held action has no item"));
            }
            stored.push(action);
        }
        if stored.len() != header.action_digests.len() {
            return Err(Fault::internal("an approval does not hold every action of its plan"));
        }
        check_shown(&request.shown, &stored)?;
        Ok(stored)
    }

    async fn record(
        &self,
        tx: &mut Tx,
        caller: &Caller,
        card: &mut Card,
        stored: &[Stored],
        verdicts: Verdicts,
    ) -> Result<(), Fault> {
        let window = Duration::from_secs(card.approval.window_s);
        let ends_at = tx.now().saturating_add(window);
        let items = verdicts
            .items
            .iter()
            .map(|(index, verdict)| {
                let of = usize::try_from(*index).ok().and_then(|i| stored.get(i));
                let of = of.ok_or_else(|| Fault::internal("an item stands beyond its plan"))?;
                Ok(DecidedItem {
                    index: *index,
                    action_digest: of.action.digest().to_vec(),
                    wire_digest: of.wire(),
                    verdict: (*verdict).into(),
                })
            })
            .collect::<Result<Vec<_>, Fault>>()?;
        let certificate = caller.certificate_digest.map(|d| d.to_vec()).unwrap_or_default();
        let decision = Decision {
            header: Some(self.header(
                tx,
                &self.zones.connector,
                &card.approval.tenant,
                window.saturating_add(READABLE),
            )),
            approval: card.approval.approval.clone(),
            plan_digest: card.approval.plan_digest.clone(),
            items,
            reviewers: vec![ReviewerProof { subject: caller.id.clone(), certificate_digest: certificate }],
            quorum: card.approval.quorum,
            rule_set_digest: card.approval.rule_set_digest.clone(),
            window_ends_at: Some(ends_at.to_proto()),
            reason: verdicts.reason.clone(),
        };
        let envelope = sign(&self.decision_key, &decision).map_err(Fault::internal)?;
        card.approval.decision = Some(envelope.encode_to_vec());
        card.approval.window_ends_at = Some(ends_at);
        self.apply(tx, caller, card, &verdicts, &envelope).await
    }

    async fn apply(
        &self,
        tx: &mut Tx,
        caller: &Caller,
        card: &mut Card,
        verdicts: &Verdicts,
        envelope: &Envelope,
    ) -> Result<(), Fault> {
        let mut changes = Changes::default();
        changes.decided(envelope);
        let approval = card.approval.clone();
        for (index, verdict) in &verdicts.items {
            let Some(item) = card.items.iter_mut().find(|i| i.index == *index && i.state == Item::Pending)
            else {
                continue;
            };
            let (event, reason) = match verdict {
                ItemVerdict::Approved => {
                    item.approved_at = Some(tx.now());
                    item.ends_at = approval.window_ends_at;
                    (Event::Approve, "")
                }
                ItemVerdict::Rejected => (Event::Reject, "REJECTED"),
                _ => (Event::PassOver, "NOT_SELECTED"),
            };
            let cause = Cause { actor: &caller.id, reason, statement: Some(envelope), relied_on: Vec::new() };
            self.transit(tx, &approval, item, event, cause, &mut changes).await?;
        }
        self.conclude(tx, card, changes).await
    }
}

fn check_shown(shown: &[ShownAction], stored: &[Stored]) -> Result<(), Fault> {
    if shown.len() != stored.len() {
        return Err(Fault::field("shown", "send the digests of every action of the plan, in order"));
    }
    for ((index, shown), stored) in (0_u32..).zip(shown).zip(stored) {
        let at = |fault: Fault| fault.with("index", index.to_string());
        if shown.index != index {
            return Err(Fault::field("shown", "send the digests of every action of the plan, in order"));
        }
        let named = super::digest(&shown.action_digest, "shown.action_digest").map_err(at)?;
        if named != stored.action.digest() {
            return Err(at(mismatch("action", &stored.action.digest(), &named)));
        }
        match &stored.prepared {
            None if shown.wire_digest.is_empty() => {}
            None => return Err(at(Fault::field("shown.wire_digest", "this action has no prepared request"))),
            Some(prepared) => {
                let named = super::digest(&shown.wire_digest, "shown.wire_digest").map_err(at)?;
                if named != prepared.wire_digest() {
                    return Err(at(mismatch("wire", &prepared.wire_digest(), &named)));
                }
            }
        }
    }
    Ok(())
}

fn verdicts(request: &DecideRequest, card: &Card, partial: bool) -> Result<Verdicts, Fault> {
    let held: Vec<u32> = card.items.iter().map(|i| i.index).collect();
    match &request.answer {
        None => Err(Fault::field("answer", "say `approve` or `reject`")),
        Some(Answer::Reject(reject)) => {
            if reject.reason.trim().is_empty() || reject.reason.len() > MAX_REASON {
                return Err(Fault::field(
                    "reject.reason",
                    format!("give a reason of at most {MAX_REASON} bytes"),
                ));
            }
            let items = held.into_iter().map(|i| (i, ItemVerdict::Rejected)).collect();
            Ok(Verdicts { items, reason: reject.reason.clone() })
        }
        Some(Answer::Approve(approve)) => {
            let chosen = &approve.indexes;
            for (nth, index) in chosen.iter().enumerate() {
                if !held.contains(index) {
                    return Err(Fault::field(
                        "approve.indexes",
                        format!("the plan has no held action {index}"),
                    ));
                }
                if chosen.iter().take(nth).any(|before| before == index) {
                    return Err(Fault::field("approve.indexes", format!("action {index} is named twice")));
                }
            }
            if !chosen.is_empty() && chosen.len() != held.len() && !partial {
                return Err(Fault::field(
                    "approve.indexes",
                    "this plan is all or nothing; approve all of it or reject it",
                ));
            }
            let verdict = |i: u32| {
                if chosen.is_empty() || chosen.contains(&i) {
                    ItemVerdict::Approved
                } else {
                    ItemVerdict::NotSelected
                }
            };
            Ok(Verdicts { items: held.into_iter().map(|i| (i, verdict(i))).collect(), reason: String::new() })
        }
    }
}

fn same_answer(decision: &Decision, caller: &Caller, verdicts: &Verdicts) -> bool {
    let answered: Vec<_> = decision.items.iter().map(|i| (i.index, i.verdict())).collect();
    decision.reviewers.iter().any(|r| r.subject == caller.id)
        && answered == verdicts.items
        && decision.reason == verdicts.reason
}
