//! The demo tenant, put in through the same doors that every operator uses; a repeat changes nothing.

use exequatur_clock_client::clock_service_client::ClockServiceClient;
use exequatur_proto::approval::v1::PutReviewerRequest;
use exequatur_proto::clock::v1::AcknowledgeClockRequest;
use exequatur_proto::credential::v1::{Credential, ListCredentialsRequest};
use exequatur_reviewer_client::reviewer_service_client::ReviewerServiceClient;

use zeroize::Zeroizing;

use super::accounts::Accounts;
use super::outside::{ORDERS, Outside};
use super::{Layout, REVIEWER, configure};
use crate::commands::credential::Material;
use crate::commands::{App, credential, policy, tool};
use crate::connect::{Plane, Zone, request};
use crate::context::Context;
use crate::failure::Failure;

/// Seeds the tenant.
pub(crate) async fn seed(
    layout: &Layout,
    context: &Context,
    accounts: &Accounts,
    outside: &Outside,
    fresh: bool,
    app: &App,
) -> Result<(), Failure> {
    let plane = Plane::with(context.clone(), Some(context.operator.clone()), &context.tenant)?;
    if !fresh {
        for zone in Zone::ALL {
            ClockServiceClient::new(plane.channel(zone)?)
                .acknowledge_clock(request(AcknowledgeClockRequest {}))
                .await?;
        }
        app.output
            .note("the clocks of the zones were acknowledged, because this plane was stopped for a while");
    }
    let person = format!("spiffe://{}/person/{REVIEWER}", plane.realm);
    ReviewerServiceClient::new(plane.channel(Zone::Approval)?)
        .put_reviewer(request(PutReviewerRequest { tenant: plane.tenant.clone(), person }))
        .await?;
    for name in configure::tool_files(outside) {
        let definition = tool::read(&layout.tenant().join(name))?;
        tool::put(&plane, &definition).await?;
    }
    let known = credentials(&plane).await?;
    let mut wanted: Vec<(&str, Material)> = Vec::new();
    for (name, value) in accounts.credentials() {
        let sealed = || Material::Sealed(Zeroizing::new(value.as_bytes().to_vec()));
        wanted.push((name, outside.source(name).map_or_else(sealed, Material::Vault)));
    }
    wanted.extend(outside.source(ORDERS).map(|source| (ORDERS, Material::Vault(source))));
    for (name, material) in wanted {
        let at_vault = matches!(material, Material::Vault(_));
        let is = |c: &Credential| c.credential == name && c.version > 0 && c.vault.is_some() == at_vault;
        if !known.iter().any(is) {
            credential::put(&plane, name, &material, false).await?;
        }
    }
    let rules = policy::read(&layout.tenant().join("rules.yaml"))?;
    policy::put(&plane, &rules).await?;
    Ok(())
}

async fn credentials(plane: &Plane) -> Result<Vec<Credential>, Failure> {
    let mut client = exequatur_catalog_client::catalog_service_client::CatalogServiceClient::new(
        plane.channel(Zone::CredentialVault)?,
    );
    let message =
        ListCredentialsRequest { tenant: plane.tenant.clone(), page_size: 200, page_token: String::new() };
    Ok(client.list_credentials(request(message)).await?.into_inner().credentials)
}
