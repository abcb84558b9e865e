//! The table from reasons to gRPC codes, and the rich form of a fault on the wire.

use std::collections::HashMap;
use std::time::Duration;

use exequatur_proto::errors::v1::Reason;
use tonic::{Code, Status};
use tonic_types::{ErrorDetails, StatusExt as _};

use crate::{Effect, Fault, reason_from_str, reason_str};

/// `ErrorInfo.domain` of every error of the plane.
pub const DOMAIN: &str = "exequatur";
const RETRYABLE: &str = "retryable";
const EFFECT: &str = "effect";
/// Told to callers whose retry can help.
const RETRY_AFTER: Duration = Duration::from_secs(1);

const fn code(reason: Reason) -> Code {
    match reason {
        Reason::InvalidRequest
        | Reason::InvalidField
        | Reason::NotFreezable
        | Reason::UnknownTool
        | Reason::SchemaViolation
        | Reason::ValueDoesNotFit
        | Reason::NotCanonical
        | Reason::TooLargeToShow => Code::InvalidArgument,
        Reason::Unauthenticated | Reason::TokenInvalid | Reason::RunRevoked | Reason::RunExpired => {
            Code::Unauthenticated
        }
        Reason::CallerNotAllowed
        | Reason::TenantNotAllowed
        | Reason::NotASubset
        | Reason::ScopeMissing
        | Reason::TenantScope
        | Reason::DeniedByRule
        | Reason::SelfApproval
        | Reason::CredentialNotGranted
        | Reason::DestinationForbidden => Code::PermissionDenied,
        Reason::NotFound => Code::NotFound,
        Reason::LimitExceeded => Code::ResourceExhausted,
        Reason::IdempotencyMismatch => Code::AlreadyExists,
        Reason::RuleError
        | Reason::PolicyChanged
        | Reason::DefinitionChanged
        | Reason::DigestMismatch
        | Reason::StatementInvalid
        | Reason::Rejected
        | Reason::NotSelected
        | Reason::Expired
        | Reason::Withdrawn
        | Reason::Skipped
        | Reason::NoReviewers
        | Reason::WrongState
        | Reason::ApprovalSpent
        | Reason::TooLate
        | Reason::AttemptClosed
        | Reason::AttemptsExhausted
        | Reason::JournalMismatch
        | Reason::WarrantExpired
        | Reason::LeaseSpent
        | Reason::WrappingTokenUsed
        | Reason::ProviderRefused
        | Reason::OutputInvalid
        | Reason::OutputTooLarge
        | Reason::OperatorHold
        | Reason::Cancelled
        | Reason::LedgerGap => Code::FailedPrecondition,
        Reason::DestinationUnreachable
        | Reason::Unavailable
        | Reason::ClockUntrusted
        | Reason::StorageFailed => Code::Unavailable,
        Reason::Conflict => Code::Aborted,
        Reason::DeadlineExceeded => Code::DeadlineExceeded,
        Reason::ProviderUnclear => Code::Unknown,
        Reason::Internal | Reason::Unspecified => Code::Internal,
    }
}

impl Fault {
    /// The gRPC form: code, caller-safe text, `ErrorInfo`, and what fits of the other details.
    /// The cause goes to the log, here and only here.
    #[must_use]
    pub fn to_status(&self) -> Status {
        let mut metadata: HashMap<String, String> =
            self.metadata().iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        metadata.insert(RETRYABLE.to_owned(), self.is_retryable().to_string());
        metadata.insert(EFFECT.to_owned(), self.effect_known().as_str().to_owned());

        let mut details = ErrorDetails::new();
        details.set_error_info(reason_str(self.reason()), DOMAIN, metadata);
        if self.is_retryable() {
            details.set_retry_info(Some(RETRY_AFTER));
        }
        let code = code(self.reason());
        match code {
            Code::InvalidArgument => {
                let field = ["pointer", "field"].iter().find_map(|k| self.metadata().get(*k));
                if let Some(field) = field {
                    details.add_bad_request_violation(field, self.message());
                }
            }
            Code::FailedPrecondition => {
                details.add_precondition_failure_violation(reason_str(self.reason()), "", self.message());
            }
            Code::ResourceExhausted => {
                let subject = self.metadata().get("limit").map_or("", String::as_str);
                details.add_quota_failure_violation(subject, self.message());
            }
            _ => {}
        }
        if let Some(source) = std::error::Error::source(self) {
            tracing::warn!(reason = reason_str(self.reason()), cause = %chain(source), "call failed");
        }
        Status::with_error_details(code, self.message(), details)
    }

    /// Reads a status that a peer of the plane sent; a foreign one becomes UNAVAILABLE or INTERNAL.
    #[must_use]
    pub fn from_status(status: &Status) -> Self {
        if let Some(info) = status.get_error_details().error_info()
            && info.domain == DOMAIN
        {
            let mut fault = Self::new(reason_from_str(&info.reason), status.message());
            for (key, value) in &info.metadata {
                match key.as_str() {
                    RETRYABLE => fault = fault.retryable(value == "true"),
                    EFFECT => fault = fault.effect(effect_from_str(value)),
                    _ => fault = fault.with(key, value.clone()),
                }
            }
            return fault;
        }
        let reason = match status.code() {
            Code::InvalidArgument | Code::OutOfRange => Reason::InvalidRequest,
            Code::Unauthenticated => Reason::Unauthenticated,
            Code::PermissionDenied => Reason::CallerNotAllowed,
            Code::NotFound | Code::Unimplemented => Reason::NotFound,
            Code::ResourceExhausted => Reason::LimitExceeded,
            Code::DeadlineExceeded => Reason::DeadlineExceeded,
            Code::Ok | Code::Internal | Code::DataLoss => Reason::Internal,
            Code::Unavailable
            | Code::Cancelled
            | Code::Unknown
            | Code::Aborted
            | Code::AlreadyExists
            | Code::FailedPrecondition => Reason::Unavailable,
        };
        Self::new(reason, status.message()).caused_by(status.clone())
    }
}

impl From<Fault> for Status {
    fn from(fault: Fault) -> Self {
        fault.to_status()
    }
}

fn effect_from_str(word: &str) -> Effect {
    match word {
        "none" => Effect::None,
        "done" => Effect::Done,
        _ => Effect::Unknown,
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(error) = next {
        text.push_str(": ");
        text.push_str(&error.to_string());
        next = error.source();
    }
    text
}
