//! gRPC in, domain values through, gRPC out.

mod execution;

pub use execution::Execution;
