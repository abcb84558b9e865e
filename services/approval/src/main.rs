//! The program of the zone `approval`.

use std::process::ExitCode;

fn main() -> ExitCode {
    exequatur_service::run("approval", exequatur_approval::run)
}
