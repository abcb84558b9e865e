//! The lines themselves. Each does something as agent, reviewer or operator, then looks at the world: the plan, the
//! reviewer's card, the providers' own log, processes.

use std::path::Path;
use std::time::Duration;

use exequatur_proto::approval::v1::{Reject, decide_request::Answer};
use exequatur_proto::plan::v1::{ActionState, Plan, ProposePlanRequest};
use nix::sys::signal::Signal;
use serde_json::json;

use super::world::{World, plan, said, sms, state, states};
use super::{App, Broken, Decider, Seen, evidence, processes, provider, sabotage, secrets, sqlite};
use crate::card::Card;
use crate::commands::plan::hex;
use crate::connect::Zone;
use crate::failure::Failure;

/// What the story knows so far.
pub(crate) struct Story<'a> {
    pub(crate) world: World,
    decides: Decider,
    sabotage: Option<u8>,
    app: &'a App,
    first: Option<First>,
    /// A supervisor that this story froze.
    frozen: Option<u32>,
}

/// The message of lines 3 to 7.
struct First {
    proposal: ProposePlanRequest,
    plan: Plan,
    card: Card,
    /// The providers' newest entry before it.
    before: u64,
}

impl<'a> Story<'a> {
    /// A story that has not begun.
    pub(crate) fn open(
        ready_file: &Path,
        decides: Decider,
        sabotage: Option<u8>,
        app: &'a App,
    ) -> Result<Self, Failure> {
        Ok(Self { world: World::open(ready_file, app)?, decides, sabotage, app, first: None, frozen: None })
    }

    /// Tells one line.
    pub(crate) async fn line(&mut self, number: u8) -> Result<Seen, Broken> {
        match number {
            1 => self.run_started().await,
            2 => self.read_allowed().await,
            3 => self.message_held().await,
            4 => self.approved().await,
            5 => self.executed().await,
            6 => self.one_digit().await,
            7 => self.twice().await,
            8 => self.three_of_five().await,
            9 => self.broker_killed().await,
            10 => self.no_secrets().await,
            11 => self.evidence().await,
            12 => self.flipped_bit().await,
            _ => Err("there is no such line".to_owned()),
        }
    }

    /// Whether this line is the one to break.
    pub(crate) fn breaks(&self, line: u8) -> bool {
        self.sabotage == Some(line)
    }

    /// Lets a frozen supervisor go on.
    pub(crate) fn repair(&mut self) {
        if let Some(pid) = self.frozen.take() {
            let _ = processes::signal(pid, Signal::SIGCONT);
        }
    }

    /// Freezes the supervisor, so that what dies stays dead.
    pub(crate) fn freeze(&mut self) -> Result<(), Broken> {
        let pid = self.world.dev()?.pid;
        processes::signal(pid, Signal::SIGSTOP)?;
        self.frozen = Some(pid);
        Ok(())
    }

    async fn run_started(&mut self) -> Result<Seen, Broken> {
        if self.breaks(1) {
            sabotage::governance_gone(self).await?;
        }
        let ends = self.world.start_run().await?;
        let run = &self.world.run;
        if run.is_empty() || self.world.token.split('.').count() != 3 {
            return Err("no run with a token was started".to_owned());
        }
        let pid = self.world.pid(Zone::Governance)?;
        Ok(Seen::new(
            format!("run {run}, token until {ends}, governance is process {pid}"),
            json!({"run": run, "token_expires_at": ends, "governance_pid": pid}),
        ))
    }

    async fn read_allowed(&mut self) -> Result<Seen, Broken> {
        if self.breaks(2) {
            sabotage::rules(self, "  - {id: everything-needs-a-person, tool: \"*\", action: require_human}")
                .await?;
        }
        let before = self.world.last_seq()?;
        // The provider puts the credential that it got into its answer, in every encoding.
        let echo = json!({"provider": "crm", "body": "contact Ada Example\n", "echo": [
            "plain", "base64", "base64_shift1", "base64_shift2", "base64url", "hex", "percent", "json", "header"]});
        provider::order(&self.world.dev()?.provider_admin, &echo).await?;
        let proposed = self
            .world
            .propose(plan("look a contact up", &[("crm.read", json!({"id": "117"}))], false))
            .await
            .map_err(said)?;
        let done = self
            .world
            .until(&proposed.plan, "the read ends", |plan| {
                plan_settled(plan) || state(plan, 0) == ActionState::AwaitingApproval
            })
            .await?;
        let action = done.actions.first().ok_or("the plan has no action")?;
        if action.state() != ActionState::Succeeded {
            return Err(format!("the read is {}", states(&done)));
        }
        let result = String::from_utf8_lossy(&action.result).into_owned();
        if !result.contains("Ada Example") {
            return Err("the provider's answer did not come back".to_owned());
        }
        let entries: Vec<_> = self.world.provider()?.into_iter().filter(|e| e.seq > before).collect();
        let [entry] = entries.as_slice() else {
            return Err(format!("the providers saw {} requests in place of one", entries.len()));
        };
        if entry.method != "GET" || entry.target != "/contacts/117" {
            return Err(format!("the provider saw {} {}", entry.method, entry.target));
        }
        Ok(Seen::new(
            format!(
                "rule {} allowed {}; provider entry {}: GET {}",
                action.rule, action.tool, entry.seq, entry.target
            ),
            json!({"plan": done.plan, "rule": action.rule, "provider_seq": entry.seq, "target": entry.target}),
        ))
    }

    async fn message_held(&mut self) -> Result<Seen, Broken> {
        if self.breaks(3) {
            sabotage::rules(self, "  - {id: nothing-is-sent, tool: \"*\", action: deny}").await?;
        }
        let before = self.world.last_seq()?;
        let proposal = plan("tell Ada the new time", &[sms("+15550100", "Shift moved to 09:00")], false);
        let proposed = self.world.propose(proposal.clone()).await.map_err(said)?;
        if state(&proposed, 0) != ActionState::AwaitingApproval {
            return Err(format!("the message is {}", states(&proposed)));
        }
        let card = self.world.card(&proposed).await?;
        if card.digest.as_bytes().as_slice() != proposed.digest {
            return Err("the agent and the reviewer see different digests".to_owned());
        }
        let action = card.actions.first().ok_or("the card shows no action")?;
        if !action.text.contains("+15550100") || !action.text.contains("Shift moved to 09:00") {
            return Err("the card does not show what would be sent".to_owned());
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        let sent = self.world.messages_after(before)?.len();
        if sent != 0 {
            return Err(format!("{sent} messages were sent before anybody decided"));
        }
        let seen = Seen::new(
            format!("digest {} ({}), rule {}, phone saw 0 messages", card.digest, card.words, action.rule),
            json!({"plan": proposed.plan, "digest": card.digest.to_string(), "words": card.words,
                "approval": card.approval, "rule": action.rule, "messages": 0}),
        );
        self.first = Some(First { proposal, plan: proposed, card, before });
        Ok(seen)
    }

    async fn approved(&mut self) -> Result<Seen, Broken> {
        if self.breaks(4) {
            sabotage::no_reviewer(self).await?;
        }
        let first = self.first.as_ref().ok_or("no message waits")?;
        if self.decides == Decider::Person && !self.person_agrees(&first.card)? {
            return Err("you said no".to_owned());
        }
        let after = self.world.approve(&first.card, &[]).await.map_err(said)?;
        if after.state != "DECIDED" {
            return Err(format!("the approval is {}", after.state));
        }
        let item = after.actions.first().map(|action| action.state.clone()).unwrap_or_default();
        if !["APPROVED", "RESERVED", "CONSUMED"].contains(&item.as_str()) {
            return Err(format!("the item is {item}"));
        }
        let reviewer = self.world.reviewer()?.id();
        Ok(Seen::new(
            format!("{reviewer} decided over digest {}", after.digest),
            json!({"reviewer": reviewer, "digest": after.digest.to_string(), "approval": after.approval}),
        ))
    }

    fn person_agrees(&self, card: &Card) -> Result<bool, Broken> {
        self.app.output.note(&card.to_text());
        let answer = self
            .app
            .output
            .ask(&format!("approve plan {}? [y/N] ", card.words))
            .map_err(|e| e.to_string())?;
        Ok(answer.eq_ignore_ascii_case("y") || answer.eq_ignore_ascii_case("yes"))
    }

    async fn executed(&mut self) -> Result<Seen, Broken> {
        let first = self.first.as_ref().ok_or("no message waits")?;
        let (id, before) = (first.plan.plan.clone(), first.before);
        let done = self.world.until(&id, "the message is sent", plan_settled).await?;
        if self.breaks(5) {
            sabotage::change_in_the_providers_log(self)?;
        }
        if state(&done, 0) != ActionState::Succeeded {
            return Err(format!("the message is {}", states(&done)));
        }
        let first = self.first.as_ref().ok_or("no message waits")?;
        let action = first.card.actions.first().ok_or("the card shows no action")?;
        let sent = self.world.messages_after(before)?;
        let [entry] = sent.as_slice() else {
            return Err(format!("the phone saw {} messages in place of one", sent.len()));
        };
        let (target, body) = action.http().ok_or("the card holds no HTTP request")?;
        if entry.target != target || entry.body() != body {
            return Err(format!(
                "the phone got other bytes than were approved: {} {}",
                entry.target,
                String::from_utf8_lossy(&entry.body())
            ));
        }
        let receipt = done.actions.first().map(|action| hex(&action.receipt)).unwrap_or_default();
        if receipt.is_empty() {
            return Err("no receipt was recorded".to_owned());
        }
        Ok(Seen::new(
            format!(
                "provider entry {}: {} bytes, equal to the approved request (wire digest {}); receipt {receipt}",
                entry.seq,
                body.len(),
                action.wire_digest
            ),
            json!({"provider_seq": entry.seq, "body": String::from_utf8_lossy(&body),
                "wire_digest": action.wire_digest.to_string(), "receipt": receipt}),
        ))
    }

    /// Approves a message while the connector is dead and nobody starts it again; then stops governance cleanly.
    async fn approved_but_stuck(&mut self, to: &str, body: &str) -> Result<(Plan, u64), Broken> {
        let before = self.world.last_seq()?;
        self.freeze()?;
        processes::end(self.world.pid(Zone::Connector)?, Signal::SIGKILL).await?;
        let proposed =
            self.world.propose(plan("one more message", &[sms(to, body)], false)).await.map_err(said)?;
        let card = self.world.card(&proposed).await?;
        self.world.approve(&card, &[]).await.map_err(said)?;
        self.world
            .until(&proposed.plan, "the yes reaches governance", |plan| {
                matches!(state(plan, 0), ActionState::Ready | ActionState::Executing)
            })
            .await?;
        Ok((proposed, before))
    }

    async fn one_digit(&mut self) -> Result<Seen, Broken> {
        let (proposed, before) = self.approved_but_stuck("+15550142", "Your code is 4711").await?;
        let governance = self.world.pid(Zone::Governance)?;
        processes::end(governance, Signal::SIGTERM).await?;
        let database = self.world.dev()?.data.join("governance");
        let changed = sqlite::replace(&database, b"+15550142", b"+15550143")?;
        if changed == 0 {
            return Err("the digit was not found in governance's database".to_owned());
        }
        if self.breaks(6) {
            sabotage::send_directly(self, "+15550143", "Your code is 4711").await?;
        }
        self.repair();
        let id = proposed.plan.clone();
        let (verdict, plan_after) = self.refusal(&id).await?;
        let sent = self.world.messages_after(before)?;
        if let Some(entry) = sent.first() {
            return Err(format!("the phone got {}", String::from_utf8_lossy(&entry.body())));
        }
        // The intruder hides his traces again; the refusal stays recorded.
        let again = self.world.pid_after(Zone::Governance, governance).await?;
        self.freeze()?;
        processes::end(again, Signal::SIGTERM).await?;
        sqlite::replace(&database, b"+15550143", b"+15550142")?;
        self.repair();
        self.world.until(&id, "governance is back", |_| true).await?;
        Ok(Seen::new(
            format!("{changed} places changed while governance was down; {verdict}; phone saw 0 messages"),
            json!({"places": changed, "verdict": verdict, "state": plan_after, "messages": 0}),
        ))
    }

    /// Waits until governance, back with changed bytes, refuses to go on.
    async fn refusal(&mut self, plan: &str) -> Result<(String, String), Broken> {
        const REASONS: [&str; 3] = ["DIGEST_MISMATCH", "NOT_CANONICAL", "STATEMENT_INVALID"];
        let until = std::time::Instant::now() + super::world::PATIENCE;
        let mut last = String::new();
        while std::time::Instant::now() < until {
            match self.world.plan(plan).await {
                Ok(plan) => {
                    last = states(&plan);
                    let action = plan.actions.first();
                    let refused = action.is_some_and(|a| {
                        REASONS.contains(&a.reason.as_str())
                            && matches!(a.state(), ActionState::Refused | ActionState::Failed)
                    });
                    if refused {
                        return Ok((format!("the action is {last}"), last));
                    }
                    if state(&plan, 0) == ActionState::Succeeded {
                        return Err("the changed message was sent".to_owned());
                    }
                }
                Err(failure) if REASONS.contains(&failure.reason.as_str()) => {
                    return Ok((format!("governance refuses the plan: {}", failure.reason), failure.reason));
                }
                Err(failure) => last = said(failure),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err(format!("nothing refused the changed bytes; last seen: {last}"))
    }

    async fn twice(&mut self) -> Result<Seen, Broken> {
        let first = self.first.as_ref().ok_or("no message was sent")?;
        let (proposal, plan_before, before) = (first.proposal.clone(), first.plan.clone(), first.before);
        // The reviewer changes their mind after the fact.
        let no = Answer::Reject(Reject { reason: "changed my mind".to_owned() });
        let late = match self.world.decide(&first.card, no).await {
            Ok(_) => return Err("a second, different decision was taken".to_owned()),
            Err(failure) => failure.reason,
        };
        // The agent repeats its call: the same plan, nothing new.
        let again = self.world.propose(proposal.clone()).await.map_err(said)?;
        if again.plan != plan_before.plan {
            return Err("a repeated call made a second plan".to_owned());
        }
        // The same key with one digit changed.
        let mut other = proposal.clone();
        if let Some(action) = other.actions.first_mut() {
            let (_, arguments) = sms("+15550101", "Shift moved to 09:00");
            action.arguments_json = arguments.to_string().into_bytes();
        }
        let mismatch = match self.world.propose(other).await {
            Ok(_) => return Err("the same key with other bytes was taken".to_owned()),
            Err(failure) => failure.reason,
        };
        // The agent proposes the same message anew: it has a digest of its own and waits for a yes of its own.
        let mut anew = proposal;
        anew.idempotency_key = uuid::Uuid::new_v4().to_string();
        let held = self.world.propose(anew).await.map_err(said)?;
        if held.plan == plan_before.plan || state(&held, 0) != ActionState::AwaitingApproval {
            return Err(format!("the same message anew is {}", states(&held)));
        }
        if self.breaks(7) {
            sabotage::send_directly(self, "+15550100", "Shift moved to 09:00").await?;
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        let sent = self.world.messages_after(before)?.len();
        if sent != 1 {
            return Err(format!("the phone saw the message {sent} times"));
        }
        Ok(Seen::new(
            format!(
                "late rejection: {late}; other bytes under the same key: {mismatch}; the same anew waits with digest {}; phone saw it once",
                hex(&held.digest)
            ),
            json!({"late_rejection": late, "changed_digit": mismatch, "held_anew": hex(&held.digest), "messages": 1}),
        ))
    }

    async fn three_of_five(&mut self) -> Result<Seen, Broken> {
        let before = self.world.last_seq()?;
        let calls: Vec<_> = (1..=5).map(|n| sms("+15550100", &format!("Reminder {n} of 5"))).collect();
        let proposed = self.world.propose(plan("five reminders", &calls, true)).await.map_err(said)?;
        let card = self.world.card(&proposed).await?;
        if self.breaks(8) {
            sabotage::somebody_approves_all(self, &card).await?;
        }
        let _ = self.world.approve(&card, &[0, 2, 4]).await;
        let done = self.world.until(&proposed.plan, "the three are sent", plan_settled).await?;
        use ActionState::{NotSelected, Succeeded};
        let wanted = [Succeeded, NotSelected, Succeeded, NotSelected, Succeeded];
        if !(0..5).zip(wanted).all(|(index, wanted)| state(&done, index) == wanted) {
            return Err(format!("the actions are {}", states(&done)));
        }
        let bodies: Vec<Vec<u8>> =
            self.world.messages_after(before)?.iter().map(provider::Entry::body).collect();
        let approved: Vec<Vec<u8>> =
            [0, 2, 4].iter().filter_map(|i| card.actions.get(*i)?.http().map(|(_, body)| body)).collect();
        if bodies != approved || approved.len() != 3 {
            return Err(format!("the phone saw {} messages, not exactly the three in order", bodies.len()));
        }
        Ok(Seen::new(
            format!("{}; phone saw reminders 1, 3 and 5 in this order", states(&done)),
            json!({"plan": done.plan, "digest": hex(&done.digest), "states": states(&done), "messages": 3}),
        ))
    }

    async fn broker_killed(&mut self) -> Result<Seen, Broken> {
        let (proposed, before) = self.approved_but_stuck("+15550177", "The gate opens at 6").await?;
        let governance = self.world.pid(Zone::Governance)?;
        processes::end(governance, Signal::SIGKILL).await?;
        let early = self.world.messages_after(before)?.len();
        if early != 0 {
            return Err(format!("{early} messages were sent before the kill"));
        }
        if self.breaks(9) {
            sabotage::send_directly(self, "+15550177", "The gate opens at 6").await?;
        }
        self.repair();
        let done =
            self.world.until(&proposed.plan, "the message is sent after the restart", plan_settled).await?;
        if state(&done, 0) != ActionState::Succeeded {
            return Err(format!("the message is {}", states(&done)));
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
        let sent = self.world.messages_after(before)?.len();
        if sent != 1 {
            return Err(format!("the phone saw the message {sent} times"));
        }
        let new = self.world.pid_after(Zone::Governance, governance).await?;
        Ok(Seen::new(
            format!(
                "governance {governance} ended by SIGKILL, now process {new}; digest {}; phone saw 1 message",
                hex(&done.digest)
            ),
            json!({"killed": governance, "signal": "SIGKILL", "now": new, "messages": 1, "digest": hex(&done.digest)}),
        ))
    }

    async fn no_secrets(&mut self) -> Result<Seen, Broken> {
        if self.breaks(10) {
            sabotage::leak_into_a_log(self)?;
        }
        let planted = evidence::planted(&self.world)?;
        let places = evidence::places(&self.world)?;
        let mut bytes = 0;
        for secret in &planted {
            let forms = secrets::forms(secret);
            for (place, text) in &places {
                bytes += text.len();
                let hits = secrets::hits(&forms, text);
                if let Some(form) = hits.first() {
                    return Err(format!("a secret stands in {place} ({form})"));
                }
            }
        }
        Ok(Seen::new(
            format!(
                "{} secrets that the providers really got, searched in {} places and {} encodings: 0 hits",
                planted.len(),
                places.len(),
                secrets::forms("x").len()
            ),
            json!({"secrets": planted.len(), "places": places.len(), "bytes": bytes, "hits": 0}),
        ))
    }

    async fn evidence(&mut self) -> Result<Seen, Broken> {
        let file = evidence::export(&self.world).await?;
        if self.breaks(11) {
            evidence::flip(&file)?;
        }
        let verdict = evidence::verify(&self.world, &file)?;
        if !verdict.valid {
            return Err(format!("the evidence is not valid: {}", verdict.fault));
        }
        Ok(Seen::new(
            format!("{}; root key {}", verdict.summary, verdict.fingerprint),
            json!({"valid": true, "root_key_fingerprint": verdict.fingerprint, "file": file.display().to_string()}),
        ))
    }

    async fn flipped_bit(&mut self) -> Result<Seen, Broken> {
        let file = evidence::export(&self.world).await?;
        let whole = std::fs::read(&file).map_err(|e| e.to_string())?;
        let at = evidence::flip(&file)?;
        if self.breaks(12) {
            // Somebody puts the whole file back.
            std::fs::write(&file, whole).map_err(|e| e.to_string())?;
        }
        let verdict = evidence::verify(&self.world, &file)?;
        if verdict.valid {
            return Err(format!("the verifier did not see that a bit of byte {at} was flipped"));
        }
        if verdict.fault.is_empty() {
            return Err("the verifier names no place".to_owned());
        }
        Ok(Seen::new(
            format!("bit 0 of byte {at} flipped: {}", verdict.fault),
            json!({"byte": at, "valid": false, "first_fault": verdict.fault}),
        ))
    }
}

/// Whether nothing of a plan can still happen by itself.
fn plan_settled(plan: &Plan) -> bool {
    use ActionState::{AwaitingApproval, Executing, Proposed, Ready, Unspecified};
    !plan.actions.is_empty()
        && !plan
            .actions
            .iter()
            .any(|a| matches!(a.state(), Unspecified | Proposed | Ready | Executing | AwaitingApproval))
}
