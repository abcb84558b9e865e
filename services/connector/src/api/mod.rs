//! gRPC in, domain values through, gRPC out.

mod execution;
mod sealing;

pub use execution::Execution;
pub use sealing::Sealing;
