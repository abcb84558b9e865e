//! How a command fails: the plane's fault or one of its own, with the exit code that scripts rely on.

use std::collections::BTreeMap;

use exequatur_fault::{Fault, Reason};
use serde_json::{Value, json};

/// 1: failed.
pub(crate) const FAILED: u8 = 1;
/// 2: wrong usage.
pub(crate) const USAGE: u8 = 2;
/// 3: denied or rejected.
pub(crate) const DENIED: u8 = 3;
/// 4: still pending.
pub(crate) const PENDING: u8 = 4;
/// 5: not authenticated.
pub(crate) const UNAUTHENTICATED: u8 = 5;
/// 6: unavailable.
pub(crate) const UNAVAILABLE: u8 = 6;
/// 7: in doubt.
pub(crate) const IN_DOUBT: u8 = 7;
/// 65: bad input data.
pub(crate) const BAD_INPUT: u8 = 65;

/// A failed command.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) retryable: bool,
    pub(crate) effect: &'static str,
    pub(crate) metadata: BTreeMap<String, String>,
    pub(crate) exit: u8,
}

impl Failure {
    fn new(reason: &str, message: impl Into<String>, exit: u8) -> Self {
        Self {
            reason: reason.to_owned(),
            message: message.into(),
            retryable: false,
            effect: "none",
            metadata: BTreeMap::new(),
            exit,
        }
    }

    /// Wrong usage.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self::new("USAGE", message, USAGE)
    }

    /// Data that cannot be used.
    pub(crate) fn bad_input(message: impl Into<String>) -> Self {
        Self::new("BAD_INPUT", message, BAD_INPUT)
    }

    /// Something failed on this side.
    pub(crate) fn failed(reason: &str, message: impl Into<String>) -> Self {
        Self::new(reason, message, FAILED)
    }

    /// Adds a pair for machines.
    pub(crate) fn with(mut self, key: &str, value: impl Into<String>) -> Self {
        self.metadata.insert(key.to_owned(), value.into());
        self
    }

    /// The object that `--output json` writes.
    pub(crate) fn to_json(&self) -> Value {
        json!({"error": {
            "reason": self.reason,
            "message": self.message,
            "retryable": self.retryable,
            "effect": self.effect,
            "metadata": self.metadata,
        }})
    }
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        Self {
            reason: fault.reason_str().to_owned(),
            message: fault.message().to_owned(),
            retryable: fault.is_retryable(),
            effect: fault.effect_known().as_str(),
            metadata: fault.metadata().clone(),
            exit: exit_of(fault.reason()),
        }
    }
}

impl From<tonic::Status> for Failure {
    fn from(status: tonic::Status) -> Self {
        let fault = Fault::from_status(&status);
        let local = std::error::Error::source(&status).is_some();
        let mut failure = Self::from(fault);
        if local && failure.exit == UNAVAILABLE {
            failure.message = format!(
                "a zone of the context cannot be reached ({}); is the plane running?",
                failure.message
            );
        }
        failure
    }
}

/// The exit code of a reason.
pub(crate) const fn exit_of(reason: Reason) -> u8 {
    match reason {
        Reason::InvalidRequest
        | Reason::InvalidField
        | Reason::NotFreezable
        | Reason::UnknownTool
        | Reason::SchemaViolation
        | Reason::ValueDoesNotFit
        | Reason::LimitExceeded
        | Reason::TooLargeToShow
        | Reason::NotCanonical => BAD_INPUT,
        Reason::Unauthenticated | Reason::TokenInvalid | Reason::RunRevoked | Reason::RunExpired => {
            UNAUTHENTICATED
        }
        Reason::CallerNotAllowed
        | Reason::TenantNotAllowed
        | Reason::NotASubset
        | Reason::ScopeMissing
        | Reason::TenantScope
        | Reason::DeniedByRule
        | Reason::PolicyChanged
        | Reason::DefinitionChanged
        | Reason::Rejected
        | Reason::NotSelected
        | Reason::Expired
        | Reason::Withdrawn
        | Reason::SelfApproval
        | Reason::NoReviewers
        | Reason::CredentialNotGranted
        | Reason::DestinationForbidden => DENIED,
        Reason::Unavailable
        | Reason::ClockUntrusted
        | Reason::StorageFailed
        | Reason::DeadlineExceeded
        | Reason::DestinationUnreachable => UNAVAILABLE,
        Reason::ProviderUnclear => IN_DOUBT,
        _ => FAILED,
    }
}
