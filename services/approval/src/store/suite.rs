//! What every implementation of [`ApprovalStore`](super::ApprovalStore) must do.

use exequatur_clock::UnixMillis;
use exequatur_lifecycle::Item;
use exequatur_proto::approval::v1::{ApprovalState, WatchApprovalsResponse};
use exequatur_store::Store;

use super::{ActionRow, ApprovalRow, ApprovalStore, Card, ItemRow, MIGRATIONS, Page, Sqlite};

/// An approval of two actions of which the second is held.
fn card(approval: &str, tenant: &str, plan: u8) -> Card {
    let action = |index, held| ActionRow {
        index,
        action: vec![plan, 1],
        definition: vec![2],
        wire_digest: if held { vec![3; 32] } else { Vec::new() },
        tool: "sms.send".into(),
        held,
        rule: "sends".into(),
    };
    Card {
        approval: ApprovalRow {
            approval: approval.into(),
            tenant: tenant.into(),
            plan_digest: vec![plan; 32],
            agent: "mailer".into(),
            header: vec![plan],
            rule_set_digest: vec![9; 32],
            request_digest: vec![8; 32],
            opened_at: UnixMillis(10),
            expires_at: Some(UnixMillis(100)),
            window_s: 60,
            quorum: 1,
            state: ApprovalState::Pending,
            decision: None,
            window_ends_at: None,
        },
        actions: vec![action(0, false), action(1, true)],
        items: vec![ItemRow {
            index: 1,
            tool: "sms.send".into(),
            state: Item::Pending,
            reason: String::new(),
            attempt: 0,
            closed: 0,
            reservation: None,
            withdrawal: String::new(),
            approved_at: None,
            ends_at: None,
            opened_entry: 4,
            last_entry: 4,
        }],
    }
}

async fn approvals(store: &Store, rows: &dyn ApprovalStore) {
    let (first, second, foreign) =
        (card("a-1", "t-green", 1), card("a-2", "t-green", 2), card("a-3", "t-blue", 1));
    let mut tx = store.begin().await.unwrap();
    for card in [&first, &second, &foreign] {
        rows.insert(&mut tx, card).await.unwrap();
    }
    assert!(rows.insert(&mut tx, &card("a-4", "t-green", 1)).await.is_err(), "one approval a plan");
    drop(tx);
    assert!(rows.card("a-1").await.unwrap().is_none(), "nothing is there before the commit");

    let mut tx = store.begin().await.unwrap();
    for card in [&first, &second, &foreign] {
        rows.insert(&mut tx, card).await.unwrap();
    }
    assert_eq!(rows.by_plan(&mut tx, "t-green", &[1; 32]).await.unwrap().unwrap(), first);
    assert_eq!(rows.by_plan(&mut tx, "t-blue", &[1; 32]).await.unwrap().unwrap(), foreign);
    assert!(rows.by_plan(&mut tx, "t-blue", &[2; 32]).await.unwrap().is_none(), "no query crosses a tenant");
    assert_eq!(rows.by_id(&mut tx, "a-2").await.unwrap().unwrap(), second);
    tx.commit().await.unwrap();
    assert_eq!(rows.card("a-1").await.unwrap().unwrap(), first);

    let page = |tenants: &[&str], before: Option<&str>, limit| Page {
        tenants: tenants.iter().map(|t| (*t).to_owned()).collect(),
        state: None,
        before: before.map(str::to_owned),
        limit,
    };
    let ids = |cards: Vec<Card>| cards.into_iter().map(|c| c.approval.approval).collect::<Vec<_>>();
    assert_eq!(ids(rows.page(&page(&["t-green"], None, 9)).await.unwrap()), ["a-2", "a-1"]);
    assert_eq!(ids(rows.page(&page(&["t-green", "t-blue"], None, 2)).await.unwrap()), ["a-3", "a-2"]);
    assert_eq!(ids(rows.page(&page(&["t-green"], Some("a-2"), 9)).await.unwrap()), ["a-1"]);
    assert!(rows.page(&page(&[], None, 9)).await.unwrap().is_empty());
    let decided = Page { state: Some(ApprovalState::Decided), ..page(&["t-green"], None, 9) };
    assert!(rows.page(&decided).await.unwrap().is_empty());
}

async fn changes(store: &Store, rows: &dyn ApprovalStore) {
    assert_eq!(rows.due(UnixMillis(99), 9).await.unwrap(), Vec::<String>::new());
    assert_eq!(rows.due(UnixMillis(100), 9).await.unwrap().len(), 3);
    assert_eq!(rows.due(UnixMillis(100), 1).await.unwrap().len(), 1);

    let mut tx = store.begin().await.unwrap();
    let mut approval = rows.by_id(&mut tx, "a-1").await.unwrap().unwrap();
    let item = &mut approval.items[0];
    item.state = Item::Approved;
    item.approved_at = Some(UnixMillis(20));
    item.ends_at = Some(UnixMillis(80));
    item.last_entry = 5;
    let item = item.clone();
    assert!(!rows.change_item(&mut tx, "a-1", Item::Reserved, &item).await.unwrap(), "compare-and-set");
    assert!(rows.change_item(&mut tx, "a-1", Item::Pending, &item).await.unwrap());
    assert!(!rows.change_item(&mut tx, "a-1", Item::Pending, &item).await.unwrap());
    assert!(!rows.change_item(&mut tx, "a-9", Item::Pending, &item).await.unwrap());
    approval.approval.state = ApprovalState::Decided;
    approval.approval.decision = Some(vec![5]);
    approval.approval.window_ends_at = Some(UnixMillis(80));
    rows.update(&mut tx, &approval.approval).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(rows.card("a-1").await.unwrap().unwrap(), approval);
    assert_eq!(rows.card("a-2").await.unwrap().unwrap(), card("a-2", "t-green", 2), "no other changed");
    assert_eq!(rows.due(UnixMillis(80), 9).await.unwrap(), ["a-1"], "its window is over");

    let last = |tenant: &'static str, agent, tool, except| rows.last_approved(tenant, agent, tool, except);
    assert_eq!(last("t-green", "mailer", "sms.send", "a-2").await.unwrap().unwrap(), vec![1, 1]);
    for (tenant, agent, tool, except) in [
        ("t-blue", "mailer", "sms.send", "a-3"),
        ("t-green", "other", "sms.send", "a-2"),
        ("t-green", "mailer", "mail.send", "a-2"),
        ("t-green", "mailer", "sms.send", "a-1"),
    ] {
        assert!(last(tenant, agent, tool, except).await.unwrap().is_none());
    }
}

async fn events(store: &Store, rows: &dyn ApprovalStore) {
    let event = |approval: &str| WatchApprovalsResponse { approval: approval.into(), ..Default::default() };
    let mut tx = store.begin().await.unwrap();
    assert_eq!(rows.push_event(&mut tx, &event("a-1")).await.unwrap(), 1);
    assert_eq!(rows.push_event(&mut tx, &event("a-2")).await.unwrap(), 2);
    tx.commit().await.unwrap();
    let seen = rows.events_after(0, 9).await.unwrap();
    assert_eq!(
        seen.iter().map(|e| (e.sequence, e.approval.as_str())).collect::<Vec<_>>(),
        [(1, "a-1"), (2, "a-2")]
    );
    assert_eq!(rows.events_after(1, 9).await.unwrap().len(), 1);
    assert_eq!(rows.events_after(0, 1).await.unwrap().len(), 1);
    assert!(rows.events_after(u64::MAX, 9).await.unwrap().is_empty());
    let mut tx = store.begin().await.unwrap();
    rows.push_event(&mut tx, &event("never")).await.unwrap();
    drop(tx);
    let mut tx = store.begin().await.unwrap();
    assert_eq!(rows.push_event(&mut tx, &event("a-3")).await.unwrap(), 3, "without gaps");
    tx.commit().await.unwrap();
}

async fn reviewers(store: &Store, rows: &dyn ApprovalStore) {
    assert!(!rows.any_reviewer().await.unwrap());
    assert_eq!(rows.unattended_tenants().await.unwrap(), ["t-blue", "t-green"]);
    let mut tx = store.begin().await.unwrap();
    assert!(rows.put_reviewer(&mut tx, "t-green", "rita", UnixMillis(1)).await.unwrap());
    assert!(!rows.put_reviewer(&mut tx, "t-green", "rita", UnixMillis(2)).await.unwrap());
    assert!(rows.put_reviewer(&mut tx, "t-red", "rita", UnixMillis(3)).await.unwrap());
    assert!(rows.is_reviewer(&mut tx, "t-green", "rita").await.unwrap());
    assert!(!rows.is_reviewer(&mut tx, "t-blue", "rita").await.unwrap());
    tx.commit().await.unwrap();
    assert!(rows.any_reviewer().await.unwrap());
    assert_eq!(rows.unattended_tenants().await.unwrap(), ["t-blue"]);
    assert_eq!(rows.reviewers("t-green").await.unwrap()[0].enrolled_at, UnixMillis(1));
    assert!(rows.reviewers("t-blue").await.unwrap().is_empty());
    assert_eq!(rows.reviewer_tenants("rita").await.unwrap(), ["t-green", "t-red"]);
    let mut tx = store.begin().await.unwrap();
    assert!(rows.remove_reviewer(&mut tx, "t-green", "rita").await.unwrap());
    assert!(!rows.remove_reviewer(&mut tx, "t-green", "rita").await.unwrap());
    tx.commit().await.unwrap();
    assert_eq!(rows.reviewer_tenants("rita").await.unwrap(), ["t-red"]);
}

#[tokio::test]
async fn sqlite_behaves() {
    let folder = tempfile::tempdir().unwrap();
    let store = Store::open(&folder.path().join("zone.db"), &MIGRATIONS).await.unwrap();
    let rows = Sqlite::new(store.clone());
    approvals(&store, &rows).await;
    changes(&store, &rows).await;
    events(&store, &rows).await;
    reviewers(&store, &rows).await;
}
