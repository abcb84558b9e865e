//! Attack case S39: the connector is killed again and again while it holds a dynamic credential. Nothing may
//! outlive its time to live: no lease at Vault, no user in the database.
//!
//! `KILLS` sets how often, `SEED` when; `cargo xtask lease-kills` runs the long campaign.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    reason = "tests may stop at once, and a campaign prints what it did"
)]

mod vault_world;

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use exequatur_testkit::eventually;
use nix::sys::signal::Signal;
use serde_json::{Value as Json, json};
use vault_world::World;

/// Given to the demo's database role here, so that the test need not wait a minute: as long as a wrapping
/// token lives, which has a lease of its own until it is opened.
const TIME_TO_LIVE: &str = "30s";
/// That, and five seconds for Vault to notice.
const GONE_WITHIN: Duration = Duration::from_secs(30 + 5);
/// The role as the demo writes it.
const ROLE: &str = include_str!("../../deploy/demo/vault/database-role.json");
const ENDS: [&str; 3] = ["SUCCEEDED", "FAILED", "IN_DOUBT"];

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// A tool whose statement takes eight seconds, by the same dynamic credential.
fn slow_tool(world: &World) {
    let plane = &world.scene.plane;
    let tenant = plane.data().join("tenant");
    let read = |name: &str| std::fs::read_to_string(tenant.join(name)).unwrap();
    let (before, rest) = read("db.query.yaml")
        .replace("tool: db.query", "tool: db.slow")
        .split_once("statement:")
        .map(|(a, b)| (a.to_owned(), b.to_owned()))
        .unwrap();
    let (_, after) = rest.split_once("parameters:").unwrap();
    let statement = "SELECT pg_sleep(8)::text AS slept WHERE $1 <> ''";
    let tool = format!("{before}statement: \"{statement}\"\n  parameters:{after}");
    let rules = read("rules.yaml").replace("tool: db.query", "tool: db.*");
    for (name, text, command) in [("slow.yaml", tool, "tool"), ("rules.yaml", rules, "policy")] {
        let file = plane.folder().join(name);
        std::fs::write(&file, text).unwrap();
        let said = plane.cli(&[command, "apply", file.to_str().unwrap()]);
        assert_eq!(said.code, 0, "{}", said.stdout);
    }
}

/// Numbers that look random and come again with the seed (xorshift, Marsaglia 2003).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

#[test]
fn a_killed_connector_leaves_no_lease_and_no_user_behind() {
    let (kills, seed) = (setting("KILLS", 6), setting("SEED", 1));
    let world = World::start();
    let plane = &world.scene.plane;
    let mut role: Json = serde_json::from_str(ROLE).unwrap();
    role["default_ttl"] = json!(TIME_TO_LIVE);
    world.write("database/roles/demo--orders-reader", &role);
    slow_tool(&world);
    let mut random = Random(seed.max(1));
    let (mut holding, mut in_flight) = (0, 0);
    let mut plans = Vec::new();
    let mut sleeping = BTreeSet::<String>::new();
    let mut killed = BTreeMap::from([("dispatched", 0_u64), ("anywhere", 0)]);
    for number in 0..kills {
        // Every second time at any moment of the hand-over, else while the statement runs.
        let anywhere = number % 2 == 1;
        let tool = if anywhere { "db.query" } else { "db.slow" };
        let started = plane.run_token(&[tool]).1;
        let plan = world.scene.plan(tool, &json!({"customer": "117"}));
        let before = world.user_names();
        let pid = plane.ready().pid("connector");
        let answer = plane.propose(&started, &plan, &[]);
        plans.push((started, answer.json["plan"].as_str().unwrap().to_owned()));
        if anywhere {
            std::thread::sleep(Duration::from_millis(random.below(120)));
        } else {
            let known = sleeping.clone();
            // Users that are made and ended at once may meet in the database; then the next attempt runs.
            eventually("the statement runs", Duration::from_secs(90), || {
                sleeping = world.sleeping();
                (!sleeping.is_subset(&known)).then_some(())
            });
        }
        plane.signal("connector", Signal::SIGKILL);
        // Older users come to their end meanwhile: it is the new one that counts.
        let is_held = !world.user_names().is_subset(&before);
        holding += u64::from(is_held);
        in_flight += u64::from(!is_held);
        *killed.get_mut(if anywhere { "anywhere" } else { "dispatched" }).unwrap() += 1;
        eventually("the connector is started again", Duration::from_secs(60), || {
            let again = plane.ready();
            (again.pid("connector") != pid)
                .then(|| std::net::TcpStream::connect(again.endpoint("connector")).ok())?
        });
    }
    // What lived when the last kill fell is gone in time; attempts that go on make users of their own.
    let (last, users, leases) = (Instant::now(), world.user_names(), world.live_leases());
    loop {
        let left: Vec<_> = world.user_names().intersection(&users).cloned().collect();
        let open: Vec<_> = world.live_leases().intersection(&leases).cloned().collect();
        if left.is_empty() && open.is_empty() {
            break;
        }
        if last.elapsed() >= GONE_WITHIN {
            let about = |lease: &String| {
                let id = format!("database/creds/demo--orders-reader/{lease}");
                world.write("sys/leases/lookup", &json!({"lease_id": id}))["data"].to_string()
            };
            let open: Vec<_> = open.iter().map(about).collect();
            panic!("outlive their time: {left:?} of {} users; {open:#?}", users.len());
        }
        std::thread::sleep(Duration::from_millis(200));
    }
    let gone = last.elapsed().as_secs();
    for (token, plan) in &plans {
        let ended = plane.until(token, plan, 0, &ENDS);
        assert!(ended["actions"][0]["receipt"].is_string(), "{ended}");
    }
    eventually("nothing is left", GONE_WITHIN, || {
        (world.user_names().is_empty() && world.live_leases().is_empty()).then_some(())
    });
    println!(
        "{kills} kills with seed {seed} ({killed:?}): {holding} while a user was live, {in_flight} before or after; \
         {gone} s after the last one 0 leases and 0 users were live"
    );
    assert!(holding * 2 >= kills, "the campaign hit what it aims at");
    let (code, said) = world.scene.verified();
    assert_eq!(code, 0, "{said}");
}
