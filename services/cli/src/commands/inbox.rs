//! `inbox`: what waits for a person. Every digest and every text shown is computed here from the frozen bytes;
//! what the service says about them is only compared.

use std::io::IsTerminal as _;

use clap::{Args as ClapArgs, Subcommand};
use exequatur_inbox_client::inbox_service_client::InboxServiceClient;
use exequatur_proto::approval::v1::{
    Approval, ApprovalState, Approve, DecideRequest, GetApprovalRequest, ListApprovalsRequest, Reject,
    ShownAction, decide_request::Answer,
};
use serde_json::{Value, json};
use tonic::transport::Channel;

use super::App;
use crate::card::Card;
use crate::connect::{Plane, Zone, request};
use crate::failure::{self, Failure};
use crate::text::{self, Table};

/// Arguments of `inbox`.
#[derive(ClapArgs, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Approvals of your tenants, newest first.
    List(List),
    /// One approval with everything that would run.
    Show {
        /// Id of the approval.
        approval: String,
    },
    /// Says yes to all held actions, or to some.
    Approve(ApproveArgs),
    /// Says no to all held actions.
    Reject(RejectArgs),
    /// Writes every approval that comes to wait, until interrupted.
    Watch,
}

#[derive(ClapArgs, Debug)]
struct List {
    /// 1..100.
    #[arg(long, default_value_t = 20)]
    page_size: u32,
    /// From the page before.
    #[arg(long, default_value = "")]
    page_token: String,
    /// Also what is decided, expired or withdrawn.
    #[arg(long)]
    all: bool,
}

#[derive(ClapArgs, Debug)]
struct ApproveArgs {
    /// Id of the approval.
    approval: String,
    /// Only these actions, where the plan allows it.
    #[arg(long, num_args = 1.., value_name = "INDEX")]
    actions: Vec<u32>,
    #[command(flatten)]
    sure: Sure,
}

#[derive(ClapArgs, Debug)]
struct RejectArgs {
    /// Id of the approval.
    approval: String,
    /// Why; the agent sees it.
    #[arg(long)]
    reason: String,
    #[command(flatten)]
    sure: Sure,
}

#[derive(ClapArgs, Debug)]
struct Sure {
    /// Decides only if the plan has this digest or these words.
    #[arg(long, value_name = "DIGEST|WORDS")]
    plan_digest: Option<String>,
    /// Does not ask on a terminal.
    #[arg(long)]
    yes: bool,
}

/// Runs the command.
pub(crate) async fn run(args: Args, app: &App) -> Result<u8, Failure> {
    let mut desk = Desk::open(app)?;
    match args.command {
        Command::List(args) => desk.list(args, app).await,
        Command::Show { approval } => {
            let card = desk.card(approval).await?;
            app.output.value(&card.to_json(), || card.to_text());
            Ok(0)
        }
        Command::Approve(args) => {
            let answer = Answer::Approve(Approve { indexes: args.actions });
            desk.decide(args.approval, answer, &args.sure, app).await
        }
        Command::Reject(args) => {
            let answer = Answer::Reject(Reject { reason: args.reason });
            desk.decide(args.approval, answer, &args.sure, app).await
        }
        Command::Watch => desk.watch(app).await,
    }
}

/// A reviewer's view of the approval service.
struct Desk {
    plane: Plane,
    client: InboxServiceClient<Channel>,
}

impl Desk {
    fn open(app: &App) -> Result<Self, Failure> {
        let plane = Plane::reviewer(&app.global)?;
        let client = InboxServiceClient::new(plane.channel(Zone::Approval)?);
        Ok(Self { plane, client })
    }

    async fn list(&mut self, args: List, app: &App) -> Result<u8, Failure> {
        let state = if args.all { ApprovalState::Unspecified } else { ApprovalState::Pending };
        let message = ListApprovalsRequest {
            page_size: args.page_size,
            page_token: args.page_token,
            state: state.into(),
        };
        let page = self.client.list_approvals(request(message)).await?.into_inner();
        let (cards, refused) = self.cards(page.approvals, app);
        let items: Vec<Value> = cards.iter().map(Card::to_json).collect();
        let whole = json!({"items": items, "refused": refused, "next_page_token": page.next_page_token});
        app.output.list(&whole, &items, || list_text(&cards, &page.next_page_token));
        Ok(0)
    }

    /// Cards of what can be trusted. What cannot is named and never shown as if it could be decided.
    fn cards(&self, approvals: Vec<Approval>, app: &App) -> (Vec<Card>, Vec<Value>) {
        let (mut cards, mut refused) = (Vec::new(), Vec::new());
        for approval in approvals {
            let id = approval.approval.clone();
            match Card::compute(approval, &self.plane.trust) {
                Ok(card) => cards.push(card),
                Err(failure) => {
                    app.output.note(&format!("{}: {}", text::escape(&id), text::escape(&failure.message)));
                    refused
                        .push(json!({"approval": id, "reason": failure.reason, "message": failure.message}));
                }
            }
        }
        (cards, refused)
    }

    async fn card(&mut self, approval: String) -> Result<Card, Failure> {
        let message = GetApprovalRequest { approval };
        let approval = self.client.get_approval(request(message)).await?.into_inner().approval;
        let approval = approval.ok_or_else(|| Failure::failed("INTERNAL", "the service sent no approval"))?;
        Card::compute(approval, &self.plane.trust)
    }

    /// Sends an answer over the digests of what was shown.
    async fn decide(
        &mut self,
        approval: String,
        answer: Answer,
        sure: &Sure,
        app: &App,
    ) -> Result<u8, Failure> {
        let card = self.card(approval).await?;
        if let Some(expected) = &sure.plan_digest
            && *expected != card.digest.to_string()
            && *expected != card.words
        {
            return Err(Failure::failed("DIGEST_MISMATCH", "this is another plan than the one you named")
                .with("expected", expected)
                .with("found", card.digest.to_string()));
        }
        confirm(&card, &answer, sure, app)?;
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
        let after = self.client.decide(request(message)).await?.into_inner().approval;
        let after = after.ok_or_else(|| Failure::failed("INTERNAL", "the service sent no approval"))?;
        let card = Card::compute(after, &self.plane.trust)?;
        let value = json!({
            "approval": card.approval,
            "state": card.state,
            "actions": card.actions.iter()
                .map(|action| json!({"index": action.index, "state": action.state})).collect::<Vec<_>>(),
        });
        app.output.value(&value, || decided_text(&card));
        Ok(0)
    }

    /// Polls, because the inbox has no stream; writes what was not there before.
    async fn watch(&mut self, app: &App) -> Result<u8, Failure> {
        let mut seen = std::collections::HashSet::new();
        loop {
            let message = ListApprovalsRequest {
                page_size: 100,
                page_token: String::new(),
                state: ApprovalState::Pending.into(),
            };
            let page = self.client.list_approvals(request(message)).await?.into_inner();
            for card in self.cards(page.approvals, app).0 {
                if seen.insert(card.approval.clone()) {
                    app.output.line(&card.to_text(), &card.to_json());
                }
            }
            tokio::select! {
                () = tokio::time::sleep(std::time::Duration::from_secs(1)) => {}
                _ = tokio::signal::ctrl_c() => return Ok(0),
            }
        }
    }
}

/// On a terminal a person sees the whole card before the question; scripts say their answer by calling.
fn confirm(card: &Card, answer: &Answer, sure: &Sure, app: &App) -> Result<(), Failure> {
    let asked = app.output.is_table() && !sure.yes && !app.global.no_input && std::io::stdin().is_terminal();
    if !asked {
        return Ok(());
    }
    app.output.note(&card.to_text());
    let what = if matches!(answer, Answer::Approve(_)) { "approve" } else { "reject" };
    let reply = app
        .output
        .ask(&format!("{what} plan {}? [y/N] ", card.words))
        .map_err(|e| Failure::failed("INPUT_FAILED", e.to_string()))?;
    if reply.eq_ignore_ascii_case("y") || reply.eq_ignore_ascii_case("yes") {
        return Ok(());
    }
    let mut failure = Failure::failed("NOT_CONFIRMED", "nothing was decided");
    failure.exit = failure::PENDING;
    Err(failure)
}

fn list_text(cards: &[Card], next: &str) -> String {
    let mut table = Table::new(&["approval", "state", "agent", "actions", "words", "expires"]);
    for card in cards {
        let tools: Vec<&str> = card.actions.iter().map(|action| action.tool.as_str()).collect();
        table.row([
            card.approval.as_str(),
            card.state.as_str(),
            card.agent.as_str(),
            tools.join(", ").as_str(),
            card.words.as_str(),
            card.expires_at.as_deref().unwrap_or("never"),
        ]);
    }
    let mut text = table.render("nothing waits");
    if !next.is_empty() {
        text.push_str(&format!("\nmore: --page-token {}", text::escape(next)));
    }
    text
}

fn decided_text(card: &Card) -> String {
    let mut table = Table::new(&["#", "tool", "state"]);
    for action in &card.actions {
        table.row([action.index.to_string().as_str(), action.tool.as_str(), action.state.as_str()]);
    }
    format!("{} {}\n{}", card.approval, card.state, table.render(""))
}
