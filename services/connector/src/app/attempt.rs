//! One attempt from PREPARED to its end: reserve, lease, connect, DISPATCHED, send, outcome.
//! Runs in a task of its own; whoever asked may go away.

use std::sync::Arc;
use std::time::{Duration, Instant};

use exequatur_door::Checked;
use exequatur_fault::{Fault, Reason};
use exequatur_lifecycle::{Event, Journal, next};
use exequatur_proto::approval::v1::ReserveRequest;
use exequatur_proto::execution::v1::ExecuteRequest;
use exequatur_proto::statement::v1::{Envelope, OutcomeKind};
use prost::Message as _;
use tokio::sync::watch;

use super::execute::subjects;
use super::finish::End;
use super::opening::Holding;
use super::{App, Finished, GRACE, SEND_WITHIN, Stage};
use crate::store::Row;

/// Everything of one attempt.
pub(crate) struct Attempt {
    pub(crate) row: Row,
    pub(crate) checked: Checked,
    pub(crate) request: ExecuteRequest,
    /// Open secrets that it uses.
    pub(crate) holding: Vec<Holding>,
    /// One of them was opened for an earlier action, and may have ended since.
    pub(crate) reuses: bool,
    pub(crate) stage: watch::Sender<Stage>,
}

/// A peer's answer is awaited for this long.
const PEER: Duration = Duration::from_secs(10);

impl App {
    /// Runs an attempt to its end and says so to whoever watches.
    pub(crate) async fn run(self: Arc<Self>, mut attempt: Attempt) {
        let ended = self.steps(&mut attempt).await;
        self.attempts().remove(&attempt.row.key);
        self.wake.notify_one();
        match ended {
            Ok(finished) => drop(attempt.stage.send_replace(Stage::Finished(Box::new(finished)))),
            Err(fault) => {
                // The journal could not be written: the sweeper or the next caller settles the row.
                tracing::error!(reason = fault.reason_str(), "an attempt's end could not be recorded");
                attempt.stage.send_replace(Stage::Lost);
            }
        }
    }

    async fn steps(&self, attempt: &mut Attempt) -> Result<Finished, Fault> {
        let reservation = match self.reserve(attempt).await {
            Ok(reservation) => reservation,
            Err(fault) => return self.abort(attempt, &fault, None).await,
        };
        attempt.stage.send_replace(Stage::Step("reserved"));
        let secrets = match self.secrets(attempt, reservation.as_ref()).await {
            Ok(secrets) => secrets,
            Err(fault) => return self.abort(attempt, &fault, reservation.as_ref()).await,
        };
        attempt.stage.send_replace(Stage::Step("leased"));
        let open = match self.connect(attempt, secrets).await {
            Ok(open) => open,
            Err(fault) => {
                // The next attempt has a secret of its own.
                let again = fault.is_retryable() || attempt.reuses;
                return self.abort(attempt, &fault.retryable(again), reservation.as_ref()).await;
            }
        };
        attempt.stage.send_replace(Stage::Step("connected"));
        let dispatched = match self.dispatch(attempt, reservation.as_ref()).await {
            Ok(dispatched) => dispatched,
            Err(fault) => return self.abort(attempt, &fault, reservation.as_ref()).await,
        };
        attempt.stage.send_replace(Stage::Step("dispatched"));
        // A process that slept since then does not send.
        let end = if dispatched.elapsed() > SEND_WITHIN {
            End::aborted(&Fault::new(Reason::DeadlineExceeded, "it woke too late to send"))
        } else {
            self.send(attempt, open).await
        };
        attempt.stage.send_replace(Stage::Step("answered"));
        self.conclude(attempt, end, reservation.as_ref()).await
    }

    /// The item's reservation, for held actions.
    async fn reserve(&self, attempt: &Attempt) -> Result<Option<Envelope>, Fault> {
        if !attempt.row.held {
            return Ok(None);
        }
        let warrant = exequatur_door::present(attempt.request.warrant.as_ref(), "warrant")?;
        let abort = self.previous_abort(warrant);
        let mut request = tonic::Request::new(ReserveRequest {
            warrant: Some(warrant.clone()),
            attempt: attempt.row.attempt,
            previous_abort: abort,
        });
        request.set_timeout(PEER);
        let response = self.approval.clone().reserve(request).await.map_err(|s| Fault::from_status(&s))?;
        response
            .into_inner()
            .reservation
            .map(Some)
            .ok_or_else(|| Fault::internal("approval answered without a reservation"))
    }

    fn previous_abort(&self, warrant: &Envelope) -> Option<Envelope> {
        let warrant = exequatur_proto::statement::v1::Warrant::decode(warrant.payload.as_slice()).ok()?;
        if warrant.previous_abort.is_empty() {
            return None;
        }
        Envelope::decode(warrant.previous_abort.as_slice()).ok()
    }

    /// Writes DISPATCHED; from here on something may have been sent.
    async fn dispatch(
        &self,
        attempt: &mut Attempt,
        reservation: Option<&Envelope>,
    ) -> Result<Instant, Fault> {
        let mut tx = self.store.begin().await?;
        let row = &attempt.row;
        if self.journal.is_cancelled(&mut tx, &row.key.tenant, &subjects(row)).await? {
            return Err(Fault::new(Reason::Cancelled, "the run, plan, action, tool or tenant was cancelled"));
        }
        let mut dispatched = row.clone();
        dispatched.state = next(Some(row.state), Event::Dispatch)
            .ok_or_else(|| Fault::internal("a journal row cannot be dispatched from its state"))?;
        let limit = Duration::from_millis(u64::from(attempt.checked.definition.message().timeout_ms));
        dispatched.settle_at = tx.now().saturating_add(SEND_WITHIN + limit + GRACE);
        let since = Instant::now();
        if !self.journal.advance(&mut tx, &dispatched, Journal::Prepared).await? {
            return Err(Fault::new(Reason::Cancelled, "the attempt was aborted meanwhile"));
        }
        let relied_on = reservation.iter().map(|e| e.encode_to_vec()).collect();
        self.note(&mut tx, &dispatched, Some(Journal::Prepared), Event::Dispatch, None, relied_on).await?;
        tx.commit().await?;
        attempt.row = dispatched;
        Ok(since)
    }

    async fn abort(
        &self,
        attempt: &Attempt,
        fault: &Fault,
        reservation: Option<&Envelope>,
    ) -> Result<Finished, Fault> {
        tracing::info!(
            reason = fault.reason_str(),
            cause = std::error::Error::source(fault).map(ToString::to_string).unwrap_or_default(),
            "attempt aborted; nothing was sent"
        );
        self.conclude(attempt, End::aborted(fault), reservation).await
    }

    /// Records the end; retried for a while, because what is not recorded ends in doubt.
    async fn conclude(
        &self,
        attempt: &Attempt,
        end: End,
        reservation: Option<&Envelope>,
    ) -> Result<Finished, Fault> {
        if end.kind != OutcomeKind::Succeeded {
            // Whatever the reason, a secret that did not lead to success is not offered again.
            self.held.close_used(&attempt.holding);
        }
        let relied_on: Vec<Vec<u8>> =
            [attempt.request.warrant.as_ref(), attempt.request.decision.as_ref(), reservation]
                .into_iter()
                .flatten()
                .map(Envelope::encode_to_vec)
                .collect();
        let mut pause = Duration::from_millis(50);
        loop {
            match self.try_conclude(attempt, end.clone(), relied_on.clone()).await {
                Err(fault) if fault.is_retryable() && pause < Duration::from_secs(10) => {
                    tokio::time::sleep(pause).await;
                    pause *= 2;
                }
                other => return other,
            }
        }
    }

    async fn try_conclude(
        &self,
        attempt: &Attempt,
        end: End,
        relied_on: Vec<Vec<u8>>,
    ) -> Result<Finished, Fault> {
        let mut tx = self.store.begin().await?;
        match self.end(&mut tx, &attempt.row, end, relied_on).await? {
            Some(finished) => {
                tx.commit().await?;
                Ok(finished)
            }
            // Cancelled or settled meanwhile: what is stored counts.
            None => {
                let row = self.journal.get(&mut tx, &attempt.row.key).await?;
                super::execute::stored(&row.ok_or_else(|| Fault::internal("a journal row went missing"))?)
            }
        }
    }
}
