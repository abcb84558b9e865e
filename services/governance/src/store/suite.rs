//! What every implementation of [`GovernanceStore`](super::GovernanceStore) must do.

use exequatur_clock::UnixMillis;
use exequatur_lifecycle::{Action as State, Plan as PlanState, Run as RunState};
use exequatur_store::Store;

use super::{ActionRow, CallKey, GovernanceStore, MIGRATIONS, PlanRow, RunRow, Seen, Sqlite, ToolRow};

fn run(run: &str, tenant: &str, parent: &str) -> RunRow {
    RunRow {
        run: run.into(),
        tenant: tenant.into(),
        agent: "mailer".into(),
        owner: "spiffe://dev.exequatur/person/olga".into(),
        starter: "spiffe://dev.exequatur/internal/jobs".into(),
        scopes: vec!["crm.*".into(), "sms.send".into()],
        state: RunState::Active,
        started_at: UnixMillis(1),
        expires_at: UnixMillis(100),
        token_ttl: 900_000,
        parent: parent.into(),
    }
}

fn action(index: u32, state: State) -> ActionRow {
    ActionRow {
        index,
        tool: "sms.send".into(),
        action: vec![1, 2],
        definition: vec![3],
        digest: vec![4; 32],
        effect_digest: vec![5; 32],
        wire_digest: vec![6; 32],
        verdict: "require_human".into(),
        state,
        rule: "sends".into(),
        reason: String::new(),
        message: "asks a person".into(),
        instead: String::new(),
        filled: vec!["/limit".into()],
        attempt: 1,
        asked: false,
        journal: String::new(),
        retry_at: UnixMillis(0),
        ready_at: UnixMillis(0),
        on_hold: false,
        previous_abort: Vec::new(),
        receipt: Vec::new(),
        result: Vec::new(),
    }
}

fn plan(plan: &str, tenant: &str, run: &str, digest: u8) -> PlanRow {
    PlanRow {
        plan: plan.into(),
        tenant: tenant.into(),
        run: run.into(),
        digest: vec![digest; 32],
        header: vec![digest],
        effects: vec![7; 32],
        entry: 3,
        sequence: 1,
        approval: String::new(),
        decision: None,
        actions: vec![action(0, State::AwaitingApproval), action(1, State::Denied)],
    }
}

async fn runs(store: &Store, rows: &dyn GovernanceStore) {
    let mut tx = store.begin().await.unwrap();
    let mut first = run("r-1", "t-green", "");
    rows.put_run(&mut tx, &first).await.unwrap();
    for other in [run("r-2", "t-green", "r-1"), run("r-3", "t-blue", ""), run("r-4", "t-green", "")] {
        rows.put_run(&mut tx, &other).await.unwrap();
    }
    assert_eq!(rows.run(&mut tx, "t-green", "r-1").await.unwrap().unwrap(), first);
    assert!(rows.run(&mut tx, "t-blue", "r-1").await.unwrap().is_none(), "no query crosses a tenant");
    let names = |found: Vec<RunRow>| found.into_iter().map(|r| r.run).collect::<Vec<_>>();
    assert_eq!(names(rows.children(&mut tx, "t-green", "r-1").await.unwrap()), ["r-2"]);
    assert!(rows.children(&mut tx, "t-blue", "r-1").await.unwrap().is_empty());
    assert!(rows.children(&mut tx, "t-green", "").await.unwrap().is_empty(), "no parent is nobody's parent");
    assert_eq!(names(rows.runs(&mut tx, "t-green", "", 2).await.unwrap()), ["r-4", "r-2"]);
    assert_eq!(names(rows.runs(&mut tx, "t-green", "r-2", 2).await.unwrap()), ["r-1"]);
    // Only the state of a run ever changes: its authority is what it was.
    first.state = RunState::Revoked;
    let wider = RunRow { scopes: vec!["files.*".into()], expires_at: UnixMillis(900), ..first.clone() };
    rows.put_run(&mut tx, &wider).await.unwrap();
    assert_eq!(rows.run(&mut tx, "t-green", "r-1").await.unwrap().unwrap(), first);
    tx.commit().await.unwrap();
}

async fn registers(store: &Store, rows: &dyn GovernanceStore) {
    let mut tx = store.begin().await.unwrap();
    let tool = |name: &str, digest: u8| ToolRow {
        tool: name.into(),
        digest: vec![digest; 32],
        definition: vec![digest],
    };
    assert!(rows.put_tool(&mut tx, "t-green", &tool("crm.read", 1)).await.unwrap());
    assert!(!rows.put_tool(&mut tx, "t-green", &tool("crm.read", 1)).await.unwrap(), "a repeat");
    assert!(rows.put_tool(&mut tx, "t-green", &tool("crm.read", 2)).await.unwrap());
    assert!(rows.put_tool(&mut tx, "t-green", &tool("sms.send", 3)).await.unwrap());
    assert_eq!(rows.tool(&mut tx, "t-green", "crm.read").await.unwrap().unwrap(), tool("crm.read", 2));
    assert!(rows.tool(&mut tx, "t-green", "CRM.read").await.unwrap().is_none(), "names are exact");
    assert!(rows.tool(&mut tx, "t-blue", "crm.read").await.unwrap().is_none());
    let after = rows.tools(&mut tx, "t-green", "crm.read", 10).await.unwrap();
    assert_eq!(after, [tool("sms.send", 3)]);
    assert_eq!(rows.tools(&mut tx, "t-green", "", 1).await.unwrap(), [tool("crm.read", 2)]);

    assert!(rows.put_rule_set(&mut tx, "t-green", &[1; 32], b"one").await.unwrap());
    assert!(!rows.put_rule_set(&mut tx, "t-green", &[1; 32], b"one").await.unwrap());
    assert!(rows.put_rule_set(&mut tx, "t-green", &[2; 32], b"two").await.unwrap());
    assert_eq!(rows.rule_set(&mut tx, "t-green").await.unwrap(), Some((vec![2; 32], b"two".to_vec())));
    assert_eq!(rows.rule_set(&mut tx, "t-blue").await.unwrap(), None);
}

/// S49.
async fn repeats(store: &Store, rows: &dyn GovernanceStore) {
    let mut tx = store.begin().await.unwrap();
    let call =
        CallKey { tenant: "t-green", caller: "run/r-1", method: "ProposePlan", key: "k", body: &[1; 32] };
    assert_eq!(rows.seen(&mut tx, call).await.unwrap(), Seen::New);
    rows.remember(&mut tx, call, "p-1").await.unwrap();
    assert_eq!(rows.seen(&mut tx, call).await.unwrap(), Seen::Same("p-1".into()));
    assert_eq!(rows.seen(&mut tx, CallKey { body: &[2; 32], ..call }).await.unwrap(), Seen::Other);
    for other in [
        CallKey { tenant: "t-blue", ..call },
        CallKey { caller: "run/r-2", ..call },
        CallKey { method: "StartRun", ..call },
        CallKey { key: "K", ..call },
    ] {
        assert_eq!(rows.seen(&mut tx, other).await.unwrap(), Seen::New, "{other:?}");
    }
    assert!(rows.remember(&mut tx, call, "p-2").await.is_err(), "an answer is remembered once");
}

async fn plans(store: &Store, rows: &dyn GovernanceStore) {
    let mut tx = store.begin().await.unwrap();
    let mut one = plan("p-1", "t-green", "r-1", 1);
    rows.put_plan(&mut tx, &one).await.unwrap();
    rows.put_plan(&mut tx, &plan("p-2", "t-green", "r-4", 2)).await.unwrap();
    assert_eq!(rows.plan(&mut tx, "t-green", "p-1").await.unwrap().unwrap(), one);
    assert!(rows.plan(&mut tx, "t-blue", "p-1").await.unwrap().is_none(), "no query crosses a tenant");
    assert_eq!(rows.plan_by_digest(&mut tx, &[1; 32]).await.unwrap().unwrap().plan, "p-1");
    assert!(rows.plan_by_digest(&mut tx, &[9; 32]).await.unwrap().is_none());
    assert!(rows.put_plan(&mut tx, &plan("p-3", "t-green", "r-1", 1)).await.is_err(), "one plan per digest");

    let name = |plan: &str| ("t-green".to_owned(), plan.to_owned());
    assert_eq!(rows.open_plans(&mut tx, None).await.unwrap(), [name("p-1"), name("p-2")]);
    assert_eq!(rows.open_plans(&mut tx, Some("r-1")).await.unwrap(), [name("p-1")]);

    // What was frozen stays; what moves, moves.
    let mut moved = action(0, State::Executing);
    moved.reason = "UNAVAILABLE".into();
    moved.message = "waits".into();
    moved.attempt = 2;
    moved.asked = true;
    moved.journal = "j-1".into();
    moved.retry_at = UnixMillis(8);
    moved.ready_at = UnixMillis(7);
    moved.on_hold = true;
    moved.previous_abort = vec![1];
    moved.receipt = vec![2];
    moved.result = vec![3];
    one.actions = vec![moved.clone(), one.actions[1].clone()];
    one.sequence = 2;
    one.approval = "a-1".into();
    one.decision = Some(vec![4]);
    rows.put_plan(&mut tx, &one).await.unwrap();
    let frozen = PlanRow {
        header: vec![99],
        effects: vec![98; 32],
        entry: 97,
        actions: vec![ActionRow { action: vec![96], verdict: "auto_approve".into(), ..moved }],
        ..one.clone()
    };
    rows.put_plan(&mut tx, &frozen).await.unwrap();
    assert_eq!(rows.plan(&mut tx, "t-green", "p-1").await.unwrap().unwrap(), one);
    assert_eq!(one.state(), PlanState::Running);

    one.actions[0].state = State::Succeeded;
    rows.put_plan(&mut tx, &one).await.unwrap();
    assert!(rows.open_plans(&mut tx, Some("r-1")).await.unwrap().is_empty(), "all have ended");

    assert_eq!(rows.cursor(&mut tx).await.unwrap(), 0);
    rows.set_cursor(&mut tx, 7).await.unwrap();
    rows.set_cursor(&mut tx, 8).await.unwrap();
    assert_eq!(rows.cursor(&mut tx).await.unwrap(), 8);
    drop(tx);
    let mut tx = store.begin().await.unwrap();
    assert!(rows.plan(&mut tx, "t-green", "p-1").await.unwrap().is_none(), "what was not committed is gone");
    assert_eq!(rows.cursor(&mut tx).await.unwrap(), 0);
}

#[tokio::test]
async fn sqlite_behaves() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("zone.db"), &MIGRATIONS).await.unwrap();
    runs(&store, &Sqlite).await;
    registers(&store, &Sqlite).await;
    repeats(&store, &Sqlite).await;
    plans(&store, &Sqlite).await;
}
