//! Attack case S10, with credentials from Vault: a process is killed around the reservation, and killed again
//! and again while it recovers. In the end it is as if it had recovered once.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

mod vault_world;

use std::time::Duration;

use exequatur_testkit::eventually;
use nix::sys::signal::Signal;
use vault_world::World;

const ENDS: [&str; 3] = ["SUCCEEDED", "FAILED", "IN_DOUBT"];
const AGAIN: u64 = 3;

/// `kill -9` as soon as a zone runs again, a little later each time, so that recovery is hit at other steps.
fn kill_while_recovering(world: &World, zone: &str) {
    let plane = &world.scene.plane;
    for time in 0..=AGAIN {
        let pid = plane.ready().pid(zone);
        plane.signal(zone, Signal::SIGKILL);
        // From the process table: the ready file names a process only once it answers.
        let child = eventually("the zone is started again", Duration::from_secs(60), || {
            let again = newest(zone, plane.data().to_str().unwrap())?;
            (again != pid).then_some(again)
        });
        if time < AGAIN {
            std::thread::sleep(Duration::from_millis(40 * time));
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(child), Signal::SIGKILL).ok();
        }
        eventually("the zone answers again", Duration::from_secs(60), || {
            let ready = plane.ready();
            let alive = nix::sys::signal::kill(nix::unistd::Pid::from_raw(ready.pid(zone)), None).is_ok();
            (alive && ready.pid(zone) != pid)
                .then(|| std::net::TcpStream::connect(ready.endpoint(zone)).ok())?
        });
    }
}

/// The youngest process of a zone of this plane.
fn newest(zone: &str, data: &str) -> Option<i32> {
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let pid: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
        let line = String::from_utf8_lossy(&line).into_owned();
        let program = line.split('\0').next()?;
        (program.ends_with(&format!("/{zone}")) && line.contains(data)).then_some(pid)
    });
    processes.max()
}

#[test]
fn killed_again_while_it_recovers_an_approved_action_is_done_once_or_not_at_all() {
    let world = World::start();
    for (number, zone) in ["connector", "governance", "approval", "credential-vault"].iter().enumerate() {
        let to = format!("155501610{number}");
        let plan = world.scene.sms(&format!("+{to}"));
        kill_while_recovering(&world, zone);
        let ended = world.scene.until(&plan, &ENDS);
        let seen = world.scene.seen("sms", &to);
        match ended["state"].as_str().unwrap() {
            "SUCCEEDED" => assert_eq!(seen, 1, "{zone} {ended}"),
            "FAILED" => assert_eq!(seen, 0, "{zone} {ended}"),
            _ => assert!(seen <= 1, "{zone} {ended}"),
        }
        assert!(ended["receipt"].is_string() || ended["state"] == "IN_DOUBT", "{zone} {ended}");
        // Nothing is left of it: the next one goes through.
        let next = world.scene.sms(&format!("+155501620{number}"));
        assert_eq!(world.scene.until(&next, &ENDS)["state"], "SUCCEEDED", "{zone}");
    }
    let (code, said) = world.scene.verified();
    assert_eq!(code, 0, "{said}");
}
