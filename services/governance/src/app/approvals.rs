//! Following approval: a stream held open from the last event that was taken in. A yes counts only
//! with approval's signature over exactly the stored digests.

use std::sync::Arc;
use std::time::Duration;

use exequatur_fault::{Fault, Reason, reason_from_str};
use exequatur_lifecycle::Event;
use exequatur_proto::approval::v1::{ItemChange, ItemState, WatchApprovalsRequest, WatchApprovalsResponse};
use exequatur_proto::statement::v1::{Decision, ItemVerdict};
use exequatur_store::Tx;
use prost::Message as _;
use tokio::sync::watch;

use super::App;
use super::change::Cause;
use crate::store::PlanRow;

const PAUSE: Duration = Duration::from_millis(500);

impl App {
    /// Follows approval until told to stop; reconnects and resumes.
    pub async fn follow_approvals(self: Arc<Self>, mut shutdown: watch::Receiver<bool>) {
        loop {
            let ended = tokio::select! {
                ended = self.follow() => ended,
                _ = shutdown.wait_for(|stop| *stop) => return,
            };
            if let Err(fault) = ended {
                tracing::info!(reason = fault.reason_str(), "approval cannot be followed just now");
            }
            tokio::select! {
                () = tokio::time::sleep(PAUSE) => {}
                _ = shutdown.wait_for(|stop| *stop) => return,
            }
        }
    }

    async fn follow(&self) -> Result<(), Fault> {
        let mut tx = self.store.begin().await?;
        let after_sequence = self.rows.cursor(&mut tx).await?;
        drop(tx);
        let request = WatchApprovalsRequest { after_sequence };
        let mut events = self
            .approval
            .clone()
            .watch_approvals(request)
            .await
            .map_err(|s| Fault::from_status(&s))?
            .into_inner();
        while let Some(event) = events.message().await.map_err(|s| Fault::from_status(&s))? {
            self.take_in(&event).await?;
        }
        Ok(())
    }

    async fn take_in(&self, event: &WatchApprovalsResponse) -> Result<(), Fault> {
        let mut tx = self.store.begin().await?;
        if event.sequence <= self.rows.cursor(&mut tx).await? {
            return Ok(());
        }
        if let Some(mut plan) = self.rows.plan_by_digest(&mut tx, &event.plan_digest).await?
            && plan.tenant == event.tenant
        {
            self.apply(&mut tx, &mut plan, event).await?;
            self.progress(&mut tx, &mut plan).await?;
            self.rows.put_plan(&mut tx, &plan).await?;
        }
        self.rows.set_cursor(&mut tx, event.sequence).await?;
        self.commit(tx).await
    }

    async fn apply(
        &self,
        tx: &mut Tx,
        plan: &mut PlanRow,
        event: &WatchApprovalsResponse,
    ) -> Result<(), Fault> {
        plan.approval.clone_from(&event.approval);
        plan.sequence += 1;
        let mut decided = None;
        if let Some(envelope) = &event.decision {
            match self.decision(envelope, &plan.tenant, tx.now().0) {
                Ok(decision) => {
                    plan.decision = Some(envelope.encode_to_vec());
                    decided = Some(decision);
                }
                Err(fault) => tracing::error!(
                    reason = fault.reason_str(),
                    "a decision was refused: {}",
                    fault.message()
                ),
            }
        }
        for item in &event.items {
            self.apply_item(tx, plan, item, decided.as_ref()).await?;
        }
        Ok(())
    }

    async fn apply_item(
        &self,
        tx: &mut Tx,
        plan: &mut PlanRow,
        item: &ItemChange,
        decision: Option<&Decision>,
    ) -> Result<(), Fault> {
        let (event, verdict) = match item.state() {
            ItemState::Approved => (Event::Approve, Some(ItemVerdict::Approved)),
            ItemState::Rejected => (Event::Reject, Some(ItemVerdict::Rejected)),
            ItemState::NotSelected => (Event::PassOver, Some(ItemVerdict::NotSelected)),
            ItemState::Expired => (Event::Expire, None),
            ItemState::Withdrawn => (Event::Withdraw, None),
            // Reserved, spent or given up: the connector's outcomes and our own withdrawals tell.
            _ => return Ok(()),
        };
        if let Some(verdict) = verdict
            && !decision.is_some_and(|d| says(d, plan, item.index, verdict))
        {
            // An item that came back from an aborted attempt brings no new decision.
            return Ok(());
        }
        let (reason, message) = words(item, decision);
        let statement =
            if verdict.is_some() { plan.decision.clone().unwrap_or_default() } else { Vec::new() };
        let asked = plan.actions.iter().any(|a| a.index == item.index && a.asked);
        // What may be at the connector is ended by its answer, not by a deadline.
        if !(event == Event::Expire && asked) {
            let cause = Cause::of(&self.zones.approval, reason, message).with(statement);
            self.step(tx, plan, item.index, event, cause).await?;
        }
        Ok(())
    }
}

/// The signed decision says this of exactly the stored digests.
fn says(decision: &Decision, plan: &PlanRow, index: u32, verdict: ItemVerdict) -> bool {
    let stored = plan.actions.iter().find(|a| a.index == index);
    let item = decision.items.iter().find(|i| i.index == index);
    match (stored, item) {
        (Some(stored), Some(item)) => {
            decision.plan_digest == plan.digest
                && item.verdict() == verdict
                && item.action_digest == stored.digest
                && item.wire_digest == stored.wire_digest
        }
        _ => false,
    }
}

fn words(item: &ItemChange, decision: Option<&Decision>) -> (Reason, String) {
    let given = decision.map(|d| d.reason.clone()).unwrap_or_default();
    match item.state() {
        ItemState::Approved => (Reason::Unspecified, String::new()),
        ItemState::Rejected => (Reason::Rejected, format!("a reviewer said no: {given}")),
        ItemState::NotSelected => (Reason::NotSelected, "a reviewer chose others of the plan".to_owned()),
        ItemState::Expired => (Reason::Expired, "nobody decided, or nothing started, in time".to_owned()),
        _ => {
            let reason = reason_from_str(&item.reason);
            (
                if reason == Reason::Unspecified { Reason::Withdrawn } else { reason },
                "it was taken back".to_owned(),
            )
        }
    }
}
