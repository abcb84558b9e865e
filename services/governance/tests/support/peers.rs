//! The two peers: a connector that follows a script and signs what it says, and an approval whose
//! reviewer is the test.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use exequatur_approval_server::approval_service_server::{ApprovalService, ApprovalServiceServer};
use exequatur_canonical::Digest;
use exequatur_execution_server::execution_service_server::{ExecutionService, ExecutionServiceServer};
use exequatur_fault::{Fault, Reason, reason_str};
use exequatur_proto::approval::v1::{
    ItemChange, ItemState, OpenApprovalRequest, OpenApprovalResponse, WatchApprovalsRequest,
    WatchApprovalsResponse, WithdrawApprovalRequest, WithdrawApprovalResponse,
};
use exequatur_proto::execution::v1::execute_response::Event;
use exequatur_proto::execution::v1::{
    Accepted, CancelRequest, CancelResponse, ExecuteRequest, ExecuteResponse, Finished, ResolveRequest,
    ResolveResponse,
};
use exequatur_proto::statement::v1::{
    DecidedItem, Decision, Envelope, Header, ItemVerdict, Outcome, OutcomeKind, Warrant,
};
use exequatur_statement::{SigningKey, sign};
use prost::Message as _;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::transport::{Channel, Endpoint, Server};
use tonic::{Request, Response, Status};

use super::{Outcomes, Script, TENANT, zones};

/// What the connector does with the next question.
#[derive(Debug, Clone)]
pub enum Play {
    Outcome(OutcomeKind, Reason),
    /// ABORTED, and another attempt is allowed.
    Abort,
    /// ABORTED because somebody else opened the wrapping token.
    Stolen,
    Refuse(Reason),
    /// Says PREPARED and goes away.
    Vanish,
    /// Signs with another key than its own.
    Forge,
}

#[derive(Clone)]
pub struct Connector(Arc<Played>);

struct Played {
    key: Arc<SigningKey>,
    script: Mutex<Script>,
    asked: Mutex<Vec<ExecuteRequest>>,
    cancelled: Mutex<Vec<CancelRequest>>,
    done: Mutex<Outcomes>,
    forger: SigningKey,
}

async fn listen() -> (TcpListener, Channel) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    (listener, Endpoint::from_shared(address).unwrap().connect_lazy())
}

fn header(issuer: &str, audience: &str, now: i64) -> Header {
    let at = |millis: i64| Some(prost_types::Timestamp { seconds: millis / 1000, nanos: 0 });
    Header {
        issuer: issuer.to_owned(),
        audience: audience.to_owned(),
        tenant: TENANT.to_owned(),
        id: uuid::Uuid::now_v7().to_string(),
        issued_at: at(now),
        expires_at: at(now + 3_600_000),
    }
}

impl Connector {
    pub fn new(key: Arc<SigningKey>) -> Self {
        let forger = SigningKey::generate(key.holder(), key.purpose(), key.kid()).unwrap();
        Self(Arc::new(Played {
            key,
            script: Mutex::default(),
            asked: Mutex::default(),
            cancelled: Mutex::default(),
            done: Mutex::default(),
            forger,
        }))
    }

    pub async fn serve(&self) -> Channel {
        let (listener, channel) = listen().await;
        let service = ExecutionServiceServer::new(self.clone());
        tokio::spawn(
            Server::builder().add_service(service).serve_with_incoming(TcpListenerStream::new(listener)),
        );
        channel
    }

    pub fn plays(&self, plays: &[Play]) {
        self.0.script.lock().unwrap().extend(plays.iter().cloned());
    }

    /// From here on everything succeeds.
    pub fn recovers(&self) {
        self.0.script.lock().unwrap().clear();
    }

    /// How many actions really ended at the connector.
    pub fn effects(&self) -> usize {
        self.0.done.lock().unwrap().len()
    }

    pub fn warrants(&self) -> Vec<Warrant> {
        let asked = self.0.asked.lock().unwrap();
        asked
            .iter()
            .map(|r| Warrant::decode(r.warrant.as_ref().unwrap().payload.as_slice()).unwrap())
            .collect()
    }

    pub fn asked(&self) -> Vec<ExecuteRequest> {
        self.0.asked.lock().unwrap().clone()
    }

    pub fn cancelled(&self) -> Vec<CancelRequest> {
        self.0.cancelled.lock().unwrap().clone()
    }

    fn outcome(&self, warrant: &Warrant, kind: OutcomeKind, reason: Reason, key: &SigningKey) -> Envelope {
        let issued = warrant.header.as_ref().unwrap().issued_at.as_ref().unwrap().seconds * 1000;
        let outcome = Outcome {
            header: Some(header(&zones().connector, &zones().own, issued)),
            plan_digest: warrant.plan_digest.clone(),
            index: warrant.index,
            action_digest: warrant.action_digest.clone(),
            wire_digest: warrant.wire_digest.clone(),
            attempt: warrant.attempt,
            warrant: warrant.header.as_ref().unwrap().id.clone(),
            warrant_digest: vec![6; 32],
            kind: kind.into(),
            reason: if reason == Reason::Unspecified { String::new() } else { reason_str(reason).to_owned() },
            result_digest: Digest::sha256(b"done").to_vec(),
            leases: vec!["l-1".to_owned()],
            journal: warrant.journal.clone(),
            retryable: kind == OutcomeKind::Aborted && warrant.attempt < 5,
            ..Outcome::default()
        };
        sign(key, &outcome).unwrap()
    }
}

#[tonic::async_trait]
impl ExecutionService for Connector {
    type ExecuteStream = ReceiverStream<Result<ExecuteResponse, Status>>;

    async fn execute(
        &self,
        request: Request<ExecuteRequest>,
    ) -> Result<Response<Self::ExecuteStream>, Status> {
        let request = request.into_inner();
        let warrant = Warrant::decode(request.warrant.as_ref().unwrap().payload.as_slice()).unwrap();
        self.0.asked.lock().unwrap().push(request);
        let key = (warrant.plan_digest.clone(), warrant.index);
        let (sender, receiver) = mpsc::channel(4);
        let send = |event| sender.try_send(Ok(ExecuteResponse { event: Some(event) })).unwrap();
        // The journal: what has ended is answered again.
        let stored = self.0.done.lock().unwrap().get(&key).cloned();
        if let Some(outcome) = stored {
            send(Event::Finished(Finished { outcome: Some(outcome), result: b"done".to_vec() }));
            return Ok(Response::new(ReceiverStream::new(receiver)));
        }
        let play = self.0.script.lock().unwrap().pop_front();
        let play = play.unwrap_or(Play::Outcome(OutcomeKind::Succeeded, Reason::Unspecified));
        if let Play::Refuse(reason) = play {
            return Err(Fault::new(reason, "refused by the script").into());
        }
        send(Event::Accepted(Accepted { attempt: warrant.attempt }));
        let outcome = match play {
            Play::Outcome(kind, reason) => self.outcome(&warrant, kind, reason, &self.0.key),
            Play::Abort => self.outcome(&warrant, OutcomeKind::Aborted, Reason::Unavailable, &self.0.key),
            Play::Stolen => {
                self.outcome(&warrant, OutcomeKind::Aborted, Reason::WrappingTokenUsed, &self.0.key)
            }
            Play::Forge => {
                self.outcome(&warrant, OutcomeKind::Succeeded, Reason::Unspecified, &self.0.forger)
            }
            Play::Vanish | Play::Refuse(_) => return Ok(Response::new(ReceiverStream::new(receiver))),
        };
        if !matches!(play, Play::Abort | Play::Stolen | Play::Forge) {
            self.0.done.lock().unwrap().insert(key, outcome.clone());
        }
        send(Event::Finished(Finished { outcome: Some(outcome), result: b"done".to_vec() }));
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn cancel(&self, request: Request<CancelRequest>) -> Result<Response<CancelResponse>, Status> {
        self.0.cancelled.lock().unwrap().push(request.into_inner());
        Ok(Response::new(CancelResponse::default()))
    }

    async fn resolve(&self, request: Request<ResolveRequest>) -> Result<Response<ResolveResponse>, Status> {
        let request = request.into_inner();
        let asked = self.asked();
        let last = asked.iter().rev().find_map(|r| {
            let warrant = Warrant::decode(r.warrant.as_ref()?.payload.as_slice()).ok()?;
            (warrant.plan_digest == request.plan_digest && warrant.index == request.index).then_some(warrant)
        });
        let kind = if request.succeeded { OutcomeKind::Succeeded } else { OutcomeKind::Failed };
        let envelope = self.outcome(&last.unwrap(), kind, Reason::Unspecified, &self.0.key);
        let mut outcome = Outcome::decode(envelope.payload.as_slice()).unwrap();
        outcome.resolved_by = request.operator;
        Ok(Response::new(ResolveResponse { outcome: Some(sign(&self.0.key, &outcome).unwrap()) }))
    }
}

#[derive(Clone)]
pub struct Approval(Arc<Kept>);

struct Kept {
    key: Arc<SigningKey>,
    opened: Mutex<Vec<OpenApprovalRequest>>,
    withdrawn: Mutex<Vec<WithdrawApprovalRequest>>,
    events: watch::Sender<Vec<WatchApprovalsResponse>>,
}

impl Approval {
    pub fn new(key: Arc<SigningKey>) -> Self {
        Self(Arc::new(Kept {
            key,
            opened: Mutex::default(),
            withdrawn: Mutex::default(),
            events: watch::Sender::new(Vec::new()),
        }))
    }

    pub async fn serve(&self) -> Channel {
        let (listener, channel) = listen().await;
        let service = ApprovalServiceServer::new(self.clone());
        tokio::spawn(
            Server::builder().add_service(service).serve_with_incoming(TcpListenerStream::new(listener)),
        );
        channel
    }

    /// What was opened for a plan, once it is.
    pub async fn opened(&self, plan_digest: &[u8]) -> OpenApprovalRequest {
        for _ in 0..100 {
            let found = self.0.opened.lock().unwrap().iter().find(|r| is_of(r, plan_digest)).cloned();
            if let Some(found) = found {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("no approval was opened");
    }

    pub fn withdrawn(&self) -> Vec<WithdrawApprovalRequest> {
        self.0.withdrawn.lock().unwrap().clone()
    }

    /// The reviewer answers: a signed decision over what was opened, and its event.
    pub async fn decide(&self, plan_digest: &[u8], now: i64, verdicts: &[(u32, ItemVerdict)]) {
        self.decide_with(plan_digest, now, verdicts, |_| {}).await;
    }

    pub async fn decide_with(
        &self,
        plan_digest: &[u8],
        now: i64,
        verdicts: &[(u32, ItemVerdict)],
        change: impl FnOnce(&mut Decision),
    ) {
        let opened = self.opened(plan_digest).await;
        let item = |(index, verdict): &(u32, ItemVerdict)| {
            let action = &opened.actions[usize::try_from(*index).unwrap()];
            DecidedItem {
                index: *index,
                action_digest: exequatur_canonical::verify_action(&action.action).unwrap().digest().to_vec(),
                wire_digest: action.wire_digest.clone(),
                verdict: (*verdict).into(),
            }
        };
        let mut decision = Decision {
            header: Some(header(&zones().approval, &zones().connector, now)),
            approval: "a-1".to_owned(),
            plan_digest: plan_digest.to_vec(),
            items: verdicts.iter().map(item).collect(),
            quorum: 1,
            ..Decision::default()
        };
        change(&mut decision);
        let state = |verdict: ItemVerdict| match verdict {
            ItemVerdict::Approved => ItemState::Approved,
            ItemVerdict::Rejected => ItemState::Rejected,
            _ => ItemState::NotSelected,
        };
        let items = verdicts
            .iter()
            .map(|(index, verdict)| ItemChange {
                index: *index,
                state: state(*verdict).into(),
                reason: String::new(),
            })
            .collect();
        self.event(plan_digest, items, Some(sign(&self.0.key, &decision).unwrap()));
    }

    pub fn event(&self, plan_digest: &[u8], items: Vec<ItemChange>, decision: Option<Envelope>) {
        self.0.events.send_modify(|events| {
            events.push(WatchApprovalsResponse {
                sequence: u64::try_from(events.len()).unwrap() + 1,
                tenant: TENANT.to_owned(),
                approval: "a-1".to_owned(),
                plan_digest: plan_digest.to_vec(),
                items,
                decision,
            });
        });
    }
}

fn is_of(request: &OpenApprovalRequest, plan_digest: &[u8]) -> bool {
    exequatur_canonical::verify_plan(&request.header).is_ok_and(|p| p.digest().as_bytes() == plan_digest)
}

#[tonic::async_trait]
impl ApprovalService for Approval {
    type WatchApprovalsStream = ReceiverStream<Result<WatchApprovalsResponse, Status>>;

    async fn open_approval(
        &self,
        request: Request<OpenApprovalRequest>,
    ) -> Result<Response<OpenApprovalResponse>, Status> {
        self.0.opened.lock().unwrap().push(request.into_inner());
        Ok(Response::new(OpenApprovalResponse { approval: "a-1".to_owned() }))
    }

    async fn watch_approvals(
        &self,
        request: Request<WatchApprovalsRequest>,
    ) -> Result<Response<Self::WatchApprovalsStream>, Status> {
        let mut after = request.get_ref().after_sequence;
        let mut events = self.0.events.subscribe();
        let (sender, receiver) = mpsc::channel(16);
        tokio::spawn(async move {
            loop {
                let fresh: Vec<_> =
                    events.borrow_and_update().iter().filter(|e| e.sequence > after).cloned().collect();
                for event in fresh {
                    after = event.sequence;
                    if sender.send(Ok(event)).await.is_err() {
                        return;
                    }
                }
                if events.changed().await.is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn withdraw_approval(
        &self,
        request: Request<WithdrawApprovalRequest>,
    ) -> Result<Response<WithdrawApprovalResponse>, Status> {
        self.0.withdrawn.lock().unwrap().push(request.into_inner());
        Ok(Response::new(WithdrawApprovalResponse::default()))
    }
}
