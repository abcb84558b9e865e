//! The program of the zone `credential-vault`.

use std::process::ExitCode;

fn main() -> ExitCode {
    exequatur_service::run("credential-vault", exequatur_credential_vault::run)
}
