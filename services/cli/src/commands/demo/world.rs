//! The demo's hands: an operator, a reviewer and an agent of one plane, each with only its own rights, and a record
//! of everything that the agent was told.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use exequatur_inbox_client::inbox_service_client::InboxServiceClient;
use exequatur_plan_client::plan_service_client::PlanServiceClient;
use exequatur_proto::approval::v1::{
    ApprovalState, Approve, DecideRequest, ListApprovalsRequest, ShownAction, decide_request::Answer,
};
use exequatur_proto::plan::v1::{Action, ActionState, GetPlanRequest, Plan, ProposePlanRequest, ToolCall};
use exequatur_proto::run::v1::StartRunRequest;
use exequatur_run_client::run_service_client::RunServiceClient;
use serde_json::{Value, json};

use super::provider::{self, Entry};
use super::{App, Broken};
use crate::card::Card;
use crate::commands::plan::plan_value;
use crate::connect::{Plane, Zone, request, with_token};
use crate::context::{Context, Dev};
use crate::failure::Failure;

/// How long the demo waits for anything that should happen.
pub(crate) const PATIENCE: Duration = Duration::from_secs(40);

/// A plane and its people.
pub(crate) struct World {
    ready_file: PathBuf,
    tenant: String,
    pub(crate) token: String,
    pub(crate) run: String,
    /// Everything that the agent got to read, as JSON text.
    pub(crate) told: Vec<String>,
}

impl World {
    /// Looks at a plane; nothing is started yet.
    pub(crate) fn open(ready_file: &Path, app: &App) -> Result<Self, Failure> {
        let context = Context::read(ready_file)?;
        Ok(Self {
            ready_file: ready_file.to_owned(),
            tenant: context.tenant(&app.global),
            token: String::new(),
            run: String::new(),
            told: Vec::new(),
        })
    }

    /// The plane as it is now: process ids change when something is killed.
    pub(crate) fn context(&self) -> Result<Context, Broken> {
        Context::read(&self.ready_file).map_err(|failure| failure.message)
    }

    /// What only a development plane has.
    pub(crate) fn dev(&self) -> Result<Dev, Broken> {
        self.context()?.dev.ok_or_else(|| "this is no development plane".to_owned())
    }

    /// The process of a zone.
    pub(crate) fn pid(&self, zone: Zone) -> Result<u32, Broken> {
        let context = self.context()?;
        context
            .pids
            .get(zone.name())
            .copied()
            .ok_or_else(|| format!("the ready file names no `{}`", zone.name()))
    }

    /// The process of a zone once it is another than before.
    pub(crate) async fn pid_after(&self, zone: Zone, before: u32) -> Result<u32, Broken> {
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            match self.pid(zone) {
                Ok(pid) if pid != before => return Ok(pid),
                _ => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
        Err(format!("`{}` was not started again", zone.name()))
    }

    /// The plane as the operator sees it.
    pub(crate) fn operator(&self) -> Result<Plane, Broken> {
        let context = self.context()?;
        let operator = context.operator.clone();
        Plane::with(context, Some(operator), &self.tenant).map_err(said)
    }

    /// The plane as the reviewer sees it.
    pub(crate) fn reviewer(&self) -> Result<Plane, Broken> {
        let context = self.context()?;
        let reviewer = context.reviewer.clone();
        Plane::with(context, reviewer, &self.tenant).map_err(said)
    }

    /// The plane as the agent sees it: no certificate.
    fn agent(&self) -> Result<Plane, Broken> {
        Plane::with(self.context()?, None, &self.tenant).map_err(said)
    }

    /// Starts the run.
    pub(crate) async fn start_run(&mut self) -> Result<String, Broken> {
        let plane = self.operator()?;
        let scopes = ["crm.read", "sms.send", "mail.send", "files.delete"].map(ToOwned::to_owned).to_vec();
        let message = StartRunRequest {
            tenant: self.tenant.clone(),
            agent: plane.context.agent.clone(),
            scopes,
            ttl: None,
            token_ttl: None,
            owner: String::new(),
            idempotency_key: uuid::Uuid::new_v4().to_string(),
        };
        let mut client = RunServiceClient::new(plane.channel(Zone::Governance).map_err(said)?);
        let response = client.start_run(request(message)).await.map_err(refused)?.into_inner();
        self.token = response.token;
        self.run = response.run.unwrap_or_default().run;
        Ok(crate::text::instant(response.token_expires_at.as_ref()).unwrap_or_default())
    }

    /// Proposes a plan as the agent.
    pub(crate) async fn propose(&mut self, plan: ProposePlanRequest) -> Result<Plan, Failure> {
        let plane = self.agent().map_err(|why| Failure::failed("UNAVAILABLE", why))?;
        let mut client = PlanServiceClient::new(plane.channel(Zone::Governance)?);
        let response = client.propose_plan(with_token(plan, Some(&self.token))?).await;
        match response {
            Ok(response) => {
                let plan = response.into_inner().plan.unwrap_or_default();
                self.told.push(plan_value(&plan).to_string());
                Ok(plan)
            }
            Err(status) => {
                let failure = Failure::from(status);
                self.told.push(failure.to_json().to_string());
                Err(failure)
            }
        }
    }

    /// The plan now, as the agent sees it.
    pub(crate) async fn plan(&mut self, plan: &str) -> Result<Plan, Failure> {
        let plane = self.agent().map_err(|why| Failure::failed("UNAVAILABLE", why))?;
        let mut client = PlanServiceClient::new(plane.channel(Zone::Governance)?);
        let message = GetPlanRequest { plan: plan.to_owned(), tenant: String::new() };
        let plan = client
            .get_plan(with_token(message, Some(&self.token))?)
            .await?
            .into_inner()
            .plan
            .unwrap_or_default();
        self.told.push(plan_value(&plan).to_string());
        Ok(plan)
    }

    /// Waits until a plan is as wanted; a zone that is away meanwhile is asked again.
    pub(crate) async fn until(
        &mut self,
        plan: &str,
        what: &str,
        wanted: impl Fn(&Plan) -> bool,
    ) -> Result<Plan, Broken> {
        let until = Instant::now() + PATIENCE;
        let mut last = String::from("nothing was answered");
        while Instant::now() < until {
            match self.plan(plan).await {
                Ok(plan) if wanted(&plan) => return Ok(plan),
                Ok(plan) => last = states(&plan),
                Err(failure) => last = format!("{}: {}", failure.reason, failure.message),
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err(format!("{what}: not within {} s; last seen: {last}", PATIENCE.as_secs()))
    }

    /// The reviewer's card of a plan's approval, computed from the bytes.
    pub(crate) async fn card(&self, plan: &Plan) -> Result<Card, Broken> {
        let reviewer = self.reviewer()?;
        let mut client = InboxServiceClient::new(reviewer.channel(Zone::Approval).map_err(said)?);
        // Governance opens the approval in its own time, so the inbox is looked at until it is there.
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            let message = ListApprovalsRequest {
                page_size: 100,
                page_token: String::new(),
                state: ApprovalState::Pending.into(),
            };
            if let Ok(page) = client.list_approvals(request(message)).await {
                for approval in page.into_inner().approvals {
                    let Ok(card) = Card::compute(approval, &reviewer.trust) else { continue };
                    if card.plan == plan.plan {
                        return Ok(card);
                    }
                }
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Err(format!("no approval of plan {} came into the inbox", plan.plan))
    }

    /// Says yes to what a card shows.
    pub(crate) async fn approve(&self, card: &Card, indexes: &[u32]) -> Result<Card, Failure> {
        self.decide(card, Answer::Approve(Approve { indexes: indexes.to_vec() })).await
    }

    /// Sends an answer over what a card shows.
    pub(crate) async fn decide(&self, card: &Card, answer: Answer) -> Result<Card, Failure> {
        let reviewer = self.reviewer().map_err(|why| Failure::failed("UNAVAILABLE", why))?;
        let mut client = InboxServiceClient::new(reviewer.channel(Zone::Approval)?);
        let shown = card
            .actions
            .iter()
            .map(|action| ShownAction {
                index: action.index,
                action_digest: action.digest.as_bytes().to_vec(),
                wire_digest: action.wire_digest.as_bytes().to_vec(),
            })
            .collect();
        let message = DecideRequest {
            approval: card.approval.clone(),
            plan_digest: card.digest.as_bytes().to_vec(),
            shown,
            answer: Some(answer),
        };
        let after = client.decide(request(message)).await?.into_inner().approval.unwrap_or_default();
        Card::compute(after, &reviewer.trust)
    }

    /// Everything that the providers got so far.
    pub(crate) fn provider(&self) -> Result<Vec<Entry>, Broken> {
        let log = self.context()?.provider_log.ok_or("the ready file names no provider log")?;
        provider::read(&log)
    }

    /// Messages that the phone provider got after an entry.
    pub(crate) fn messages_after(&self, seq: u64) -> Result<Vec<Entry>, Broken> {
        let mut entries = self.provider()?;
        entries.retain(|entry| entry.provider == "sms" && entry.seq > seq);
        Ok(entries)
    }

    /// Number of the providers' newest entry.
    pub(crate) fn last_seq(&self) -> Result<u64, Broken> {
        Ok(self.provider()?.last().map_or(0, |entry| entry.seq))
    }
}

/// A plan of calls; each has a rationale.
pub(crate) fn plan(context: &str, calls: &[(&str, Value)], allow_partial: bool) -> ProposePlanRequest {
    ProposePlanRequest {
        context: context.to_owned(),
        idempotency_key: uuid::Uuid::new_v4().to_string(),
        continue_on_failure: false,
        allow_partial,
        allow_duplicate: false,
        actions: calls
            .iter()
            .map(|(tool, arguments)| ToolCall {
                tool: (*tool).to_owned(),
                arguments_json: arguments.to_string().into_bytes(),
                rationale: "the demo asked for it".to_owned(),
            })
            .collect(),
    }
}

/// A text message.
pub(crate) fn sms(to: &str, body: &str) -> (&'static str, Value) {
    ("sms.send", json!({"to": to, "body": body}))
}

/// The state of one action.
pub(crate) fn state(plan: &Plan, index: usize) -> ActionState {
    plan.actions.get(index).map_or(ActionState::Unspecified, Action::state)
}

/// All states in words.
pub(crate) fn states(plan: &Plan) -> String {
    let words = plan.actions.iter().map(|action| {
        let state = crate::text::word(action.state().as_str_name(), "ACTION_STATE_");
        if action.reason.is_empty() { state } else { format!("{state} ({})", action.reason) }
    });
    words.collect::<Vec<_>>().join(", ")
}

/// A failure as the reason of a broken line.
#[allow(clippy::needless_pass_by_value, reason = "serves as a function of map_err")]
pub(crate) fn said(failure: Failure) -> Broken {
    format!("{}: {}", failure.reason, failure.message)
}

fn refused(status: tonic::Status) -> Broken {
    said(Failure::from(status))
}
