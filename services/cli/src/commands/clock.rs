//! `clock acknowledge`: says that a zone's system clock is right although it jumped.

use clap::{Args as ClapArgs, Subcommand};
use exequatur_clock_client::clock_service_client::ClockServiceClient;
use exequatur_proto::clock::v1::AcknowledgeClockRequest;
use serde_json::json;

use super::App;
use crate::connect::{Plane, Zone, request};
use crate::failure::Failure;
use crate::text;

/// Arguments of `clock`.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Says that the clock is right; the zone records who said so.
    Acknowledge {
        /// governance, approval, credential-vault or connector.
        zone: String,
    },
}

/// Runs the command.
pub(crate) async fn run(args: Args, app: &App) -> Result<u8, Failure> {
    let Command::Acknowledge { zone } = args.command;
    let zone = Zone::ALL.into_iter().find(|known| known.name() == zone).ok_or_else(|| {
        Failure::usage(format!("`{zone}` is no zone: governance, approval, credential-vault or connector"))
    })?;
    let plane = Plane::operator(&app.global)?;
    let mut client = ClockServiceClient::new(plane.channel(zone)?);
    let now = client.acknowledge_clock(request(AcknowledgeClockRequest {})).await?.into_inner().now;
    let now = text::instant(now.as_ref()).unwrap_or_default();
    app.output
        .value(&json!({"zone": zone.name(), "now": now}), || format!("{} goes on at {now}", zone.name()));
    Ok(0)
}
