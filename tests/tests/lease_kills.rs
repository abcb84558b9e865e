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

use std::collections::BTreeMap;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use exequatur_testkit::eventually;
use nix::sys::signal::Signal;
use serde_json::{Value as Json, json};
use vault_world::World;

/// Given to the demo's database role here, so that the test need not wait a minute.
const TIME_TO_LIVE: &str = "15s";
/// That, and five seconds for Vault to notice.
const GONE_WITHIN: Duration = Duration::from_secs(15 + 5);
/// The role as the demo writes it.
const ROLE: &str = include_str!("../../deploy/demo/vault/database-role.json");
const ENDS: [&str; 3] = ["SUCCEEDED", "FAILED", "IN_DOUBT"];

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().expect("a number"))
}

/// A table lock, so that the query hangs with its user logged in.
struct Lock<'a>(&'a World, Child);

impl<'a> Lock<'a> {
    fn take(world: &'a World) -> Self {
        let dsn = world.scene.plane.ready().text("/pg/dsn");
        let sql = "BEGIN; LOCK TABLE orders IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(3600);";
        let child = Command::new("psql")
            .args([&dsn, "-X", "-q", "-c", sql])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lock = Self(world, child);
        let held = "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND granted
            AND relation = 'orders'::regclass";
        eventually("the table is locked", Duration::from_secs(10), || (world.sql(held) == "1").then_some(()));
        lock
    }
}

impl Drop for Lock<'_> {
    fn drop(&mut self) {
        // A server that sleeps does not notice that its client is gone.
        self.0.sql(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE query LIKE 'BEGIN; LOCK TABLE%'",
        );
        self.1.wait().ok();
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
    let mut random = Random(seed.max(1));
    let (mut holding, mut in_flight) = (0, 0);
    let mut plans = Vec::new();
    let mut killed = BTreeMap::from([("dispatched", 0_u64), ("anywhere", 0)]);
    for number in 0..kills {
        let started = plane.run_token(&["db.query"]).1;
        let plan = world.scene.plan("db.query", &json!({"customer": "117"}));
        // Every second time at any moment of the hand-over, else while the statement runs.
        let anywhere = number % 2 == 1;
        let lock = (!anywhere).then(|| Lock::take(&world));
        let before: u64 = world.dynamic_users().parse().unwrap();
        let pid = plane.ready().pid("connector");
        let answer = plane.propose(&started, &plan, &[]);
        plans.push((started, answer.json["plan"].as_str().unwrap().to_owned()));
        if anywhere {
            std::thread::sleep(Duration::from_millis(random.below(120)));
        } else {
            let waiting =
                "SELECT count(*) FROM pg_stat_activity WHERE usename LIKE 'v-%' AND wait_event_type = 'Lock'";
            eventually("the statement waits", Duration::from_secs(20), || {
                (world.sql(waiting) != "0").then_some(())
            });
        }
        plane.signal("connector", Signal::SIGKILL);
        let after: u64 = world.dynamic_users().parse().unwrap();
        holding += u64::from(after > before);
        in_flight += u64::from(after == before);
        *killed.get_mut(if anywhere { "anywhere" } else { "dispatched" }).unwrap() += 1;
        drop(lock);
        eventually("the connector is started again", Duration::from_secs(60), || {
            let again = plane.ready();
            (again.pid("connector") != pid)
                .then(|| std::net::TcpStream::connect(again.endpoint("connector")).ok())?
        });
    }
    // What lived when the last kill fell is gone in time; attempts that go on make users of their own.
    let (last, users, leases) = (Instant::now(), world.user_names(), world.live_leases());
    eventually("nothing outlives its time to live", GONE_WITHIN, || {
        let gone = world.user_names().is_disjoint(&users) && world.live_leases().is_disjoint(&leases);
        gone.then_some(())
    });
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
