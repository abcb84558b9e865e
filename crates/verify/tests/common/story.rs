//! What honest zones record of two actions: 0 approved by a person, 1 allowed by a rule.

use std::collections::HashMap;

use exequatur_canonical::Digest;
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_proto::ledger::v1::{LeaseEvent, PlanProposed, ProposedAction, Receipt, Transition};
use exequatur_proto::statement::v1::{
    DecidedItem, Decision, DecisionKind, ItemVerdict, Outcome, OutcomeKind, Reservation, Warrant,
};

use super::{Beside, NOW, Realm, Story, header};

/// Everything frozen of one action.
struct Action {
    index: u32,
    frozen: Beside,
    wire: Beside,
    tool: Vec<u8>,
}

impl Action {
    fn new(index: u32) -> Self {
        Self {
            index,
            frozen: Beside::new("action", "exequatur.action.v1", format!("action {index}").as_bytes()),
            wire: Beside::new("prepared_request", "exequatur.wire.v1", format!("wire {index}").as_bytes()),
            tool: Digest::sha256(b"tool").to_vec(),
        }
    }

    fn proposed(&self, verdict: &str, state: &str) -> ProposedAction {
        ProposedAction {
            index: self.index,
            tool: "sms.send".into(),
            action_digest: self.frozen.digest.clone(),
            tool_digest: self.tool.clone(),
            wire_digest: self.wire.digest.clone(),
            verdict: verdict.into(),
            state: state.into(),
            ..ProposedAction::default()
        }
    }

    fn warrant(&self, plan: &[u8], kind: DecisionKind, seconds: i64) -> Warrant {
        Warrant {
            header: header("governance", &format!("warrant-{}", self.index), seconds),
            plan_digest: plan.to_vec(),
            index: self.index,
            action_digest: self.frozen.digest.clone(),
            tool_digest: self.tool.clone(),
            wire_digest: self.wire.digest.clone(),
            decision_kind: kind.into(),
            attempt: 1,
            journal: "journal-1".into(),
            ..Warrant::default()
        }
    }

    fn decision(&self, plan: &[u8]) -> Decision {
        let item = DecidedItem {
            index: self.index,
            action_digest: self.frozen.digest.clone(),
            wire_digest: self.wire.digest.clone(),
            verdict: ItemVerdict::Approved.into(),
        };
        Decision {
            header: header("approval", "decision-0", NOW + 20),
            plan_digest: plan.to_vec(),
            items: vec![item],
            quorum: 1,
            ..Decision::default()
        }
    }

    fn reservation(&self, plan: &[u8]) -> Reservation {
        Reservation {
            header: header("approval", "reservation-0", NOW + 40),
            plan_digest: plan.to_vec(),
            index: self.index,
            action_digest: self.frozen.digest.clone(),
            wire_digest: self.wire.digest.clone(),
            attempt: 1,
            ..Reservation::default()
        }
    }

    fn outcome(&self, plan: &[u8], result: &Beside) -> Outcome {
        Outcome {
            header: header("connector", &format!("outcome-{}", self.index), NOW + 60),
            plan_digest: plan.to_vec(),
            index: self.index,
            action_digest: self.frozen.digest.clone(),
            wire_digest: self.wire.digest.clone(),
            attempt: 1,
            kind: OutcomeKind::Succeeded.into(),
            result_digest: result.digest.clone(),
            leases: vec![format!("lease-{}", self.index)],
            journal: "journal-1".into(),
            ..Outcome::default()
        }
    }

    /// A move of one of the machines.
    fn moved(&self, plan: &[u8], machine: &str, from: &str, event: &str, to: &str) -> Transition {
        Transition {
            machine: machine.into(),
            plan_digest: plan.to_vec(),
            index: self.index,
            attempt: u32::from(machine == "journal"),
            from: from.into(),
            event: event.into(),
            to: to.into(),
            action_digest: self.frozen.digest.clone(),
            ..Transition::default()
        }
    }
}

impl Story {
    /// Only what a realm without any action records: nothing, in four signed heads.
    pub(crate) fn empty() -> Self {
        Self { realm: Realm::new(), told: HashMap::new(), beside: HashMap::new() }
    }

    pub(crate) fn new() -> Self {
        let mut story = Self::empty();
        let header = Beside::new("plan_header", "exequatur.plan.v1", b"header");
        let plan = header.digest.clone();
        let actions = [Action::new(0), Action::new(1)];
        let mut beside = vec![header];
        beside.extend(actions.iter().flat_map(|a| [a.frozen.clone(), a.wire.clone()]));
        story.beside.insert("governance", beside);
        let proposed = PlanProposed {
            plan_digest: plan.clone(),
            plan: "plan-1".into(),
            actions: vec![
                actions[0].proposed("require_human", "AWAITING_APPROVAL"),
                actions[1].proposed("allow", "READY"),
            ],
            ..PlanProposed::default()
        };
        story.of("governance").push((NOW, Body::PlanProposed(proposed)));
        story.held(&plan, &actions[0]);
        story.by_rule(&plan, &actions[1]);
        story
    }

    fn held(&mut self, plan: &[u8], action: &Action) {
        let decision = self.realm.sign("approval", &action.decision(plan));
        let reservation = self.realm.sign("approval", &action.reservation(plan));
        let warrant = self.realm.sign("governance", &action.warrant(plan, DecisionKind::Person, NOW + 30));
        let mut item = |seconds, from: &str, event: &str, to: &str, statement: &[u8]| {
            let moved = action.moved(plan, "item", from, event, to);
            let moved = Transition { statement: statement.to_vec(), ..moved };
            self.of("approval").push((NOW + seconds, Body::Transition(moved)));
        };
        item(5, "", "hold", "PENDING", &[]);
        item(20, "PENDING", "approve", "APPROVED", &decision);
        item(40, "APPROVED", "reserve", "RESERVED", &reservation);
        item(62, "RESERVED", "commit", "CONSUMED", &[]);
        let mut approve = action.moved(plan, "action", "AWAITING_APPROVAL", "approve", "READY");
        approve.statement.clone_from(&decision);
        self.of("governance").push((NOW + 21, Body::Transition(approve)));
        self.execute(plan, action, &warrant, &reservation, &Digest::sha256(&decision).to_vec());
    }

    fn by_rule(&mut self, plan: &[u8], action: &Action) {
        let warrant = self.realm.sign("governance", &action.warrant(plan, DecisionKind::Rule, NOW + 30));
        self.execute(plan, action, &warrant, &[], &[]);
    }

    fn execute(&mut self, plan: &[u8], action: &Action, warrant: &[u8], reservation: &[u8], decision: &[u8]) {
        let result = Beside::new("result", "", format!("result {}", action.index).as_bytes());
        let outcome =
            Outcome { warrant_digest: Digest::sha256(warrant).to_vec(), ..action.outcome(plan, &result) };
        let lease = outcome.leases[0].clone();
        let signed = self.realm.sign("connector", &outcome);
        self.beside.entry("connector").or_default().push(result);

        let mut journal = |seconds, from: &str, event: &str, to: &str, relied: &[u8], statement: &[u8]| {
            let moved = action.moved(plan, "journal", from, event, to);
            let relied_on = if relied.is_empty() { Vec::new() } else { vec![relied.to_vec()] };
            let moved = Transition { relied_on, statement: statement.to_vec(), ..moved };
            self.of("connector").push((NOW + seconds, Body::Transition(moved)));
        };
        journal(35, "", "prepare", "PREPARED", warrant, &[]);
        journal(45, "PREPARED", "dispatch", "DISPATCHED", reservation, &[]);
        journal(60, "DISPATCHED", "complete", "COMPLETED", &[], &signed);

        for (seconds, event) in [(42, "granted"), (61, "returned")] {
            let lease = LeaseEvent {
                event: event.into(),
                lease: lease.clone(),
                credential: "token".into(),
                plan_digest: plan.to_vec(),
                index: action.index,
                attempt: 1,
                ..LeaseEvent::default()
            };
            self.of("credential-vault").push((NOW + seconds, Body::Lease(lease)));
        }

        let governance = self.of("governance");
        for (seconds, from, event, to) in
            [(34, "READY", "start", "EXECUTING"), (63, "EXECUTING", "succeed", "SUCCEEDED")]
        {
            let moved = action.moved(plan, "action", from, event, to);
            governance.push((NOW + seconds, Body::Transition(moved)));
        }
        let receipt = Receipt {
            plan_digest: plan.to_vec(),
            index: action.index,
            action_digest: action.frozen.digest.clone(),
            wire_digest: action.wire.digest.clone(),
            state: "SUCCEEDED".into(),
            decision_digest: decision.to_vec(),
            outcome_digest: Digest::sha256(&signed).to_vec(),
            leases: vec![lease],
            outcome: signed,
            warrant_digest: outcome.warrant_digest.clone(),
        };
        governance.push((NOW + 63, Body::Receipt(receipt)));
    }
}
