//! What every zone offers operators: the export of its log, and the acknowledgement of its clock.
//! Knows no zone.

mod clock;
mod export;

pub use clock::clock_service;
pub use export::ledger_service;
