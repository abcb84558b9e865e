//! What goes wrong in the world when a line is to fail: outages, other rules, a stolen credential, a careless log.
//! Nothing here touches a check, and no service has a switch for it.

use exequatur_proto::approval::v1::RemoveReviewerRequest;
use exequatur_reviewer_client::reviewer_service_client::ReviewerServiceClient;
use nix::sys::signal::Signal;

use super::story::Story;
use super::world::said;
use super::{Broken, processes, provider};
use crate::card::Card;
use crate::commands::policy;
use crate::connect::{Zone, request};

/// Governance dies and nobody starts it again.
pub(crate) async fn governance_gone(story: &mut Story<'_>) -> Result<(), Broken> {
    story.freeze()?;
    processes::end(story.world.pid(Zone::Governance)?, Signal::SIGKILL).await
}

/// An operator puts other rules in force.
pub(crate) async fn rules(story: &Story<'_>, rule: &str) -> Result<(), Broken> {
    let yaml = format!("mode: enforce\ndefault: deny\nrules:\n{rule}\n");
    let rules = exequatur_policy::file::read(&yaml).map_err(|e| e.to_string())?;
    policy::put(&story.world.operator()?, &rules).await.map_err(said)?;
    Ok(())
}

/// An operator removes the reviewer.
pub(crate) async fn no_reviewer(story: &Story<'_>) -> Result<(), Broken> {
    let plane = story.world.operator()?;
    let person = story.world.reviewer()?.id();
    let message = RemoveReviewerRequest { tenant: plane.tenant.clone(), person };
    ReviewerServiceClient::new(plane.channel(Zone::Approval).map_err(said)?)
        .remove_reviewer(request(message))
        .await
        .map(|_| ())
        .map_err(|status| said(status.into()))
}

/// Somebody who stole the credential sends a message past the plane.
pub(crate) async fn send_directly(story: &Story<'_>, to: &str, body: &str) -> Result<(), Broken> {
    let entries = story.world.provider()?;
    let seen = entries.iter().find(|entry| entry.provider == "sms").ok_or("no message was sent before")?;
    let authorization = seen.headers.get("authorization").ok_or("the credential was not seen")?;
    let host = seen.headers.get("host").ok_or("the provider's address was not seen")?;
    let encode = |text: &str| -> String {
        text.bytes()
            .map(|b| if b.is_ascii_alphanumeric() { char::from(b).to_string() } else { format!("%{b:02X}") })
            .collect()
    };
    let form = format!("To={}&From=%2B15550199&Body={}", encode(to), encode(body));
    let headers =
        format!("authorization: {authorization}\r\ncontent-type: application/x-www-form-urlencoded\r\n");
    let answer =
        provider::exchange(host, &format!("POST {}", seen.target), &headers, form.as_bytes()).await?;
    if answer.starts_with("HTTP/1.1 201") { Ok(()) } else { Err(format!("the provider refused: {answer}")) }
}

/// What the provider got is not what was approved.
pub(crate) fn change_in_the_providers_log(story: &Story<'_>) -> Result<(), Broken> {
    use base64::Engine as _;
    let engine = base64::engine::general_purpose::STANDARD;
    let log = story.world.context()?.provider_log.ok_or("the ready file names no provider log")?;
    let text = std::fs::read_to_string(&log).map_err(|e| e.to_string())?;
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut entry: serde_json::Value = serde_json::from_str(line).map_err(|e| e.to_string())?;
        let body = entry
            .get("body_b64")
            .and_then(|b| b.as_str())
            .and_then(|b| engine.decode(b).ok())
            .unwrap_or_default();
        if entry.get("provider").is_some_and(|p| p == "sms")
            && let Some(object) = entry.as_object_mut()
        {
            let body = String::from_utf8_lossy(&body).replace("15550100", "15550101");
            object.insert("body_b64".to_owned(), engine.encode(body).into());
        }
        lines.push(entry.to_string());
    }
    std::fs::write(&log, lines.join("\n") + "\n").map_err(|e| e.to_string())
}

/// Another reviewer is faster and says yes to all.
pub(crate) async fn somebody_approves_all(story: &Story<'_>, card: &Card) -> Result<(), Broken> {
    story.world.approve(card, &[]).await.map(|_| ()).map_err(said)
}

/// A careless program writes a credential into the connector's log.
pub(crate) fn leak_into_a_log(story: &Story<'_>) -> Result<(), Broken> {
    use base64::Engine as _;
    use std::io::Write as _;
    let entries = story.world.provider()?;
    let secret = entries.iter().find_map(provider::Entry::secret).ok_or("no credential was seen")?;
    let log = story.world.dev()?.data.join("connector").join("process.log");
    let mut file = std::fs::File::options().append(true).open(&log).map_err(|e| e.to_string())?;
    let text = base64::engine::general_purpose::STANDARD.encode(format!("token={secret}"));
    writeln!(file, "request header {text}").map_err(|e| e.to_string())
}
