//! A person settles what nobody knew. Nothing is sent.

use exequatur_fault::{Fault, Reason};
use exequatur_lifecycle::{Journal, Machine as _};
use exequatur_proto::statement::v1::{Envelope, OutcomeKind};

use super::App;
use super::finish::End;
use crate::store::Key;

impl App {
    /// Settles an attempt that is in doubt; the same answer again gives the same outcome.
    ///
    /// # Errors
    /// `NOT_FOUND`, or `WRONG_STATE` when it is not in doubt.
    pub async fn resolve(&self, key: &Key, succeeded: bool, operator: &str) -> Result<Envelope, Fault> {
        let mut tx = self.store.begin().await?;
        let row = self.journal.get(&mut tx, key).await?;
        let row = row.ok_or_else(|| Fault::not_found("attempt", &key.index.to_string()))?;
        let kind = if succeeded { OutcomeKind::Succeeded } else { OutcomeKind::Failed };
        if row.state != Journal::InDoubt {
            let stored = super::execute::stored(&row).ok();
            let same = stored.filter(|f| is_resolution(&f.outcome, kind, operator));
            return same.map(|f| f.outcome).ok_or_else(|| {
                Fault::new(Reason::WrongState, "only an attempt that is in doubt can be settled")
                    .with("state", row.state.as_str())
            });
        }
        let end = End {
            kind,
            reason: String::new(),
            retryable: false,
            status: 0,
            result: None,
            resolved_by: operator.to_owned(),
        };
        let finished = self.end(&mut tx, &row, end, row.outcome.iter().cloned().collect()).await?;
        let finished =
            finished.ok_or_else(|| Fault::new(Reason::Conflict, "it changed meanwhile; read again"))?;
        tx.commit().await?;
        Ok(finished.outcome)
    }
}

fn is_resolution(outcome: &Envelope, kind: OutcomeKind, operator: &str) -> bool {
    use prost::Message as _;
    exequatur_proto::statement::v1::Outcome::decode(outcome.payload.as_slice())
        .is_ok_and(|o| o.kind() == kind && o.resolved_by == operator)
}
