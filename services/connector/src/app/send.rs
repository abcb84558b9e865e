//! Connecting before the dispatch, sending after it, and what an answer means. Knows the egress
//! and the definition's words; writes nothing.

use std::time::Duration;

use exequatur_canonical::digest_with;
use exequatur_egress::redact::Redactor;
use exequatur_egress::{Sent, http, postgres, smtp};
use exequatur_fault::{Fault, Reason, reason_str};
use exequatur_proto::definition::v1::credential_use::Injection;
use exequatur_proto::definition::v1::prepared_request::Request;
use exequatur_proto::definition::v1::{HttpRequest, PostgresRequest, SmtpRequest, StatusOutcome, StatusRule};
use exequatur_proto::statement::v1::OutcomeKind;
use exequatur_schema::Schema;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc2822;

use super::attempt::Attempt;
use super::finish::{End, hex};
use super::secrets::Injected;
use super::{App, MAX_RESULT};

/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(10);

/// A connection on which everything but the request was spoken.
pub(crate) struct Open {
    way: Way,
    redactor: Redactor,
}

enum Way {
    Http(exequatur_egress::Link, Box<http::Ready>),
    Smtp(Box<smtp::Open>),
    Postgres(Box<postgres::Open>),
}

impl App {
    /// Name lookup, TCP, TLS, and for mail the conversation up to 354. The secrets go into the
    /// request and are wiped.
    pub(crate) async fn connect(&self, attempt: &Attempt, secrets: Vec<Injected>) -> Result<Open, Fault> {
        let redactor = Redactor::new(secrets.iter().map(|(_, secret)| secret));
        let limit = timeout(attempt).min(CONNECT);
        let prepared = attempt.checked.prepared.request();
        let way = match &prepared.request {
            Some(Request::Http(request)) => {
                let header = prepared.idempotency_header.as_str();
                self.connect_http(attempt, request, header, &secrets, limit).await
            }
            Some(Request::Smtp(request)) => self.connect_smtp(attempt, request, &secrets, limit).await,
            Some(Request::Postgres(request)) => {
                self.connect_postgres(attempt, request, &secrets, limit).await
            }
            None => Err(Fault::internal("a prepared request has no request")),
        };
        Ok(Open { way: way?, redactor })
    }

    async fn connect_http(
        &self,
        attempt: &Attempt,
        request: &HttpRequest,
        header: &str,
        secrets: &[Injected],
        limit: Duration,
    ) -> Result<Way, Fault> {
        let key = idempotency_key(attempt);
        let idempotency = Some((header, key.as_str())).filter(|(header, _)| !header.is_empty());
        let ready = http::ready(request, secrets, idempotency)?;
        let link = self.egress.connect(&http::destination(request)?, limit).await?;
        Ok(Way::Http(link, Box::new(ready)))
    }

    async fn connect_smtp(
        &self,
        attempt: &Attempt,
        request: &SmtpRequest,
        secrets: &[Injected],
        limit: Duration,
    ) -> Result<Way, Fault> {
        let login = secrets.iter().find_map(|(place, secret)| match &place.injection {
            Some(Injection::SmtpPassword(place)) => Some((place.user.as_str(), secret)),
            _ => None,
        });
        let date = OffsetDateTime::now_utc().format(&Rfc2822).map_err(Fault::internal)?;
        // The same over attempts, so that a reader may find a second copy.
        let id = format!("<{}@{}>", idempotency_key(attempt), self.trust.realm());
        let extra = format!("Date: {date}\r\nMessage-ID: {id}\r\n");
        let link = self.egress.connect(&smtp::destination(request)?, limit).await?;
        smtp::open(link, request, login, &extra, timeout(attempt)).await.map(|open| Way::Smtp(Box::new(open)))
    }

    async fn connect_postgres(
        &self,
        attempt: &Attempt,
        request: &PostgresRequest,
        secrets: &[Injected],
        limit: Duration,
    ) -> Result<Way, Fault> {
        let login = secrets.iter().find_map(|(place, secret)| match &place.injection {
            Some(Injection::PostgresLogin(place)) => Some((place.user.as_str(), secret)),
            _ => None,
        });
        if login.is_some_and(|(user, _)| user.is_empty()) {
            return Err(Fault::new(
                Reason::CredentialNotGranted,
                "the credential brings no user; name one in the definition or use a dynamic one",
            ));
        }
        let link = self.egress.connect(&postgres::destination(request)?, limit).await?;
        postgres::open(link, request, login, timeout(attempt)).await.map(|open| Way::Postgres(Box::new(open)))
    }

    /// Sends, and says how the attempt ended.
    pub(crate) async fn send(&self, attempt: &Attempt, open: Open) -> End {
        let limit = timeout(attempt);
        let definition = attempt.checked.definition.message();
        match open.way {
            Way::Http(link, ready) => {
                let max = usize::try_from(definition.max_response_bytes).unwrap_or(0);
                match http::send(link, *ready, limit, max).await {
                    Sent::NotSent(why) => not_sent(&why),
                    Sent::Unclear(why) => unclear(attempt, &why),
                    Sent::Answered(answer) => answered(attempt, &answer, &open.redactor),
                }
            }
            Way::Postgres(session) => {
                let max = usize::try_from(definition.max_response_bytes).unwrap_or(0).min(MAX_RESULT);
                match session.send(limit, max).await {
                    Sent::NotSent(why) => not_sent(&why),
                    Sent::Unclear(why) => unclear(attempt, &why),
                    Sent::Answered(answer) => settled(attempt, answer, &open.redactor),
                }
            }
            Way::Smtp(smtp) => match smtp.send(limit).await {
                Sent::NotSent(why) => not_sent(&why),
                Sent::Unclear(why) => unclear(attempt, &why),
                Sent::Answered(answer) => {
                    let result = open.redactor.clean(answer.text.as_bytes());
                    let kind = match answer.code {
                        200..=299 => OutcomeKind::Succeeded,
                        400..=599 => OutcomeKind::Failed,
                        _ => return unclear(attempt, "the answer to the message is no SMTP reply"),
                    };
                    ended(kind, u32::from(answer.code), Some(result))
                }
            },
        }
    }
}

fn timeout(attempt: &Attempt) -> Duration {
    Duration::from_millis(u64::from(attempt.checked.definition.message().timeout_ms))
}

/// Equal over all attempts of one action (design invariant 5).
fn idempotency_key(attempt: &Attempt) -> String {
    let index = attempt.row.key.index.to_be_bytes();
    let bytes = [attempt.row.key.plan_digest.as_slice(), &index].concat();
    hex(digest_with("exequatur.idem.v1", &bytes).as_bytes())
}

fn not_sent(why: &str) -> End {
    tracing::info!(why, "nothing was sent");
    End::aborted(&Fault::new(Reason::DestinationUnreachable, why.to_owned()).retryable(true))
}

fn unclear(attempt: &Attempt, why: &str) -> End {
    tracing::warn!(why, "nobody knows whether the effect is done");
    End::unclear(&attempt.row)
}

fn ended(kind: OutcomeKind, status: u32, result: Option<Vec<u8>>) -> End {
    let reason = match kind {
        OutcomeKind::Failed => reason_str(Reason::ProviderRefused),
        OutcomeKind::InDoubt => reason_str(Reason::ProviderUnclear),
        _ => "",
    };
    End { kind, reason: reason.to_owned(), retryable: false, status, result, resolved_by: String::new() }
}

/// A transaction that ended: done whole, or surely not at all.
fn settled(attempt: &Attempt, answer: postgres::Answer, redactor: &Redactor) -> End {
    match answer {
        postgres::Answer::Committed(result) => {
            let schema = &attempt.checked.definition.message().output_schema;
            if schema.is_empty() || Schema::compile(schema).is_ok_and(|s| s.validate_json(&result).is_ok()) {
                return ended(OutcomeKind::Succeeded, 0, Some(redactor.clean(&result)));
            }
            let reason = reason_str(Reason::OutputInvalid).to_owned();
            End { reason, ..ended(OutcomeKind::Succeeded, 0, None) }
        }
        postgres::Answer::RolledBack(sqlstate) => {
            tracing::info!(sqlstate, "the transaction was rolled back");
            let result = serde_json::json!({"sqlstate": sqlstate}).to_string().into_bytes();
            ended(OutcomeKind::Failed, 0, Some(result))
        }
        postgres::Answer::TooLarge => {
            let reason = reason_str(Reason::OutputTooLarge).to_owned();
            End { reason, ..ended(OutcomeKind::Failed, 0, None) }
        }
    }
}

fn answered(attempt: &Attempt, answer: &http::Answer, redactor: &Redactor) -> End {
    let definition = attempt.checked.definition.message();
    let mut kind = meaning(&definition.statuses, answer.status);
    if kind == OutcomeKind::InDoubt && attempt.row.reads {
        kind = OutcomeKind::Failed;
    }
    let status = u32::from(answer.status);
    let withheld =
        |reason: Reason| End { reason: reason_str(reason).to_owned(), ..ended(kind, status, None) };
    if answer.encoded {
        return withheld(Reason::OutputInvalid);
    }
    if answer.body.len() > MAX_RESULT {
        return withheld(Reason::OutputTooLarge);
    }
    if kind == OutcomeKind::Succeeded && !definition.output_schema.is_empty() {
        let fits =
            Schema::compile(&definition.output_schema).is_ok_and(|s| s.validate_json(&answer.body).is_ok());
        if !fits {
            return withheld(Reason::OutputInvalid);
        }
    }
    ended(kind, status, Some(redactor.clean(&answer.body)))
}

/// The definition's table, else 2xx done, 4xx surely not done, anything else nobody knows.
fn meaning(table: &[StatusRule], status: u16) -> OutcomeKind {
    let status = u32::from(status);
    if let Some(rule) = table.iter().find(|r| (r.from..=r.to).contains(&status)) {
        return match rule.outcome() {
            StatusOutcome::Succeeded => OutcomeKind::Succeeded,
            StatusOutcome::Failed => OutcomeKind::Failed,
            StatusOutcome::InDoubt | StatusOutcome::Unspecified => OutcomeKind::InDoubt,
        };
    }
    match status {
        200..=299 => OutcomeKind::Succeeded,
        400..=499 => OutcomeKind::Failed,
        _ => OutcomeKind::InDoubt,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_table_doubts_what_it_does_not_know() {
        let of = |status| meaning(&[], status);
        assert_eq!(of(200), OutcomeKind::Succeeded);
        assert_eq!(of(404), OutcomeKind::Failed);
        for status in [100, 302, 500, 503, 600] {
            assert_eq!(of(status), OutcomeKind::InDoubt, "{status}");
        }
        let rule = StatusRule { from: 409, to: 409, outcome: StatusOutcome::Succeeded.into() };
        assert_eq!(meaning(&[rule], 409), OutcomeKind::Succeeded);
    }
}
