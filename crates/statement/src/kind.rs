//! Which key may sign which message. One row per statement; nothing else binds a type to a purpose.

use exequatur_proto::definition::v1::ToolDefinition;
use exequatur_proto::ledger::v1::{Head, LogEntry};
use exequatur_proto::statement::v1::{Decision, Header, Outcome, Reservation, Warrant};
use exequatur_proto::trust::v1::Purpose;

/// A message that travels signed.
pub trait Statement: prost::Message + Default {
    /// The DSSE payload type.
    const TYPE: &'static str;
    /// The only purpose whose keys may sign it.
    const PURPOSE: Purpose;
    /// Whether it must carry a header.
    const HEADED: bool = false;
    /// What it says of itself.
    fn header(&self) -> Option<&Header> {
        None
    }
    /// The tenant that it names.
    fn tenant(&self) -> Option<&str> {
        self.header().map(|h| h.tenant.as_str())
    }
    /// The holder that it names by itself, where it has no header.
    fn issuer(&self) -> Option<&str> {
        self.header().map(|h| h.issuer.as_str())
    }
}

macro_rules! headed {
    ($($message:ident $name:literal $purpose:ident;)*) => {
        $(impl Statement for $message {
            const TYPE: &'static str = concat!("application/vnd.exequatur.", $name, ".v1+protobuf");
            const PURPOSE: Purpose = Purpose::$purpose;
            const HEADED: bool = true;
            fn header(&self) -> Option<&Header> {
                self.header.as_ref()
            }
        })*
    };
}

headed! {
    Warrant "warrant" Warrant;
    Decision "decision" Decision;
    Reservation "reservation" Reservation;
    Outcome "outcome" Outcome;
}

impl Statement for LogEntry {
    const TYPE: &'static str = "application/vnd.exequatur.log-entry.v1+protobuf";
    const PURPOSE: Purpose = Purpose::Ledger;
    fn issuer(&self) -> Option<&str> {
        Some(&self.zone)
    }
    fn tenant(&self) -> Option<&str> {
        Some(&self.tenant)
    }
}

impl Statement for Head {
    const TYPE: &'static str = "application/vnd.exequatur.head.v1+protobuf";
    const PURPOSE: Purpose = Purpose::Ledger;
    fn issuer(&self) -> Option<&str> {
        Some(&self.zone)
    }
    fn tenant(&self) -> Option<&str> {
        Some(&self.tenant)
    }
}

impl Statement for ToolDefinition {
    const TYPE: &'static str = "application/vnd.exequatur.definition.v1+protobuf";
    const PURPOSE: Purpose = Purpose::Definition;
}
