//! `reviewer`: who may approve, in approval's own store.

use clap::{Args as ClapArgs, Subcommand};
use exequatur_proto::approval::v1::{ListReviewersRequest, PutReviewerRequest, RemoveReviewerRequest};
use exequatur_reviewer_client::reviewer_service_client::ReviewerServiceClient;
use serde_json::{Value, json};

use super::App;
use crate::connect::{Plane, Zone, request};
use crate::failure::Failure;
use crate::text::{self, Table};

/// Arguments of `reviewer`.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Enrols a person.
    Put {
        /// A name, or a SPIFFE ID `spiffe://REALM/person/NAME`.
        person: String,
    },
    /// Reviewers of the tenant.
    List,
    /// Removes a person.
    Remove {
        /// A name or a SPIFFE ID.
        person: String,
    },
}

/// Runs the command.
pub(crate) async fn run(args: Args, app: &App) -> Result<u8, Failure> {
    let plane = Plane::operator(&app.global)?;
    let mut client = ReviewerServiceClient::new(plane.channel(Zone::Approval)?);
    let tenant = plane.tenant.clone();
    match args.command {
        Command::Put { person } => {
            let person = id(&plane, &person);
            client.put_reviewer(request(PutReviewerRequest { tenant, person: person.clone() })).await?;
            app.output.value(&json!({"person": person}), || format!("{} may approve", text::escape(&person)));
        }
        Command::Remove { person } => {
            let person = id(&plane, &person);
            client.remove_reviewer(request(RemoveReviewerRequest { tenant, person: person.clone() })).await?;
            app.output
                .value(&json!({"person": person}), || format!("{} may not approve", text::escape(&person)));
        }
        Command::List => {
            let reviewers =
                client.list_reviewers(request(ListReviewersRequest { tenant })).await?.into_inner().reviewers;
            let items: Vec<Value> = reviewers
                .iter()
                .map(|r| json!({"person": r.person, "enrolled_at": text::instant(r.enrolled_at.as_ref())}))
                .collect();
            app.output.list(&json!({"reviewers": items}), &items, || {
                let mut table = Table::new(&["person", "since"]);
                for reviewer in &reviewers {
                    table.row([
                        reviewer.person.clone(),
                        text::instant(reviewer.enrolled_at.as_ref()).unwrap_or_default(),
                    ]);
                }
                table.render("nobody may approve: enrol a person with `reviewer put NAME`")
            });
        }
    }
    Ok(0)
}

fn id(plane: &Plane, person: &str) -> String {
    if person.starts_with("spiffe://") {
        return person.to_owned();
    }
    format!("spiffe://{}/person/{person}", plane.realm)
}
