//! What is executed and what is not: attack rows S01, S04–S07, S34, S36, S50 and revocation, with the
//! providers' own log as the judge, through real processes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests may stop at once"
)]

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use exequatur_testkit::{Output, Scene, eventually, provider_body};
use nix::sys::signal::Signal;
use serde_json::json;

#[test]
fn answers_of_providers() {
    let scene = Scene::new();
    let providers = scene.plane.providers();

    // A server that reads and closes counts one request, and nobody knows.
    providers.fault(&json!({"provider": "sms", "close": true}));
    let plan = scene.sms("+15550110");
    let action = scene.until(&plan, &["IN_DOUBT", "SUCCEEDED", "FAILED"]);
    assert_eq!(action["state"], "IN_DOUBT");
    assert_eq!(scene.seen("sms", "15550110"), 1);
    settle(&scene, &plan);

    // 4xx is a refusal, 5xx is a doubt, a redirect is not followed.
    providers.fault(&json!({"provider": "sms", "status": 400, "body": "{}"}));
    let plan = scene.sms("+15550111");
    assert_eq!(scene.until(&plan, &["FAILED", "SUCCEEDED", "IN_DOUBT"])["state"], "FAILED");
    providers.fault(&json!({"provider": "sms", "status": 503, "body": "{}"}));
    let plan = scene.sms("+15550112");
    assert_eq!(scene.until(&plan, &["FAILED", "SUCCEEDED", "IN_DOUBT"])["state"], "IN_DOUBT");
    let before = providers.seen().len();
    providers.fault(&json!({"provider": "sms", "redirect": "http://127.0.0.1:9000/admin"}));
    let plan = scene.sms("+15550113");
    assert_eq!(scene.until(&plan, &["FAILED", "SUCCEEDED", "IN_DOUBT"])["state"], "IN_DOUBT");
    assert_eq!(providers.seen().len(), before + 1, "S34: one request, not followed");

    // What only reads never ends in doubt.
    providers.fault(&json!({"provider": "crm", "close": true}));
    let plan = scene.propose("crm.read", &json!({"id": "117"}));
    assert_eq!(scene.until(&plan, &["FAILED", "SUCCEEDED", "IN_DOUBT"])["state"], "FAILED");

    // And the harmless one is done, once.
    let plan = scene.sms("+15550114");
    assert_eq!(scene.until(&plan, &["SUCCEEDED", "FAILED", "IN_DOUBT"])["state"], "SUCCEEDED");
    assert_eq!(scene.seen("sms", "15550114"), 1);
    mail(&scene);
    echoes(&scene);
}

/// An operator who does not own the run settles a doubt; nothing is sent.
fn settle(scene: &Scene, plan: &str) {
    let plane = &scene.plane;
    let own = plane.cli(&[
        "plan",
        "resolve",
        plan,
        "0",
        "--outcome",
        "succeeded",
        "--reason",
        "asked the phone company",
    ]);
    assert_eq!(own.reason(), "SELF_APPROVAL", "the owner may not");
    let settled = resolve_as_another(scene, plan, "asked the phone company");
    assert_eq!(settled.code, 0, "{} {}", settled.stdout, settled.stderr);
    assert_eq!(scene.until(plan, &["SUCCEEDED"])["state"], "SUCCEEDED");
    assert_eq!(scene.seen("sms", "15550110"), 1, "settling sends nothing");
}

/// S50: a body arrives as it was approved, a line with a dot and all; exactly one recipient.
fn mail(scene: &Scene) {
    let arguments = json!({"to": "a@example.org", "subject": "Weekly", "body": "one\r\n.\r\ntwo\r\n"});
    let plan = scene.propose("mail.send", &arguments);
    scene.approve(&plan);
    assert_eq!(scene.until(&plan, &["SUCCEEDED", "FAILED", "IN_DOUBT"])["state"], "SUCCEEDED");
    let mails = scene.plane.providers().of("mail");
    assert_eq!(mails.len(), 1);
    assert_eq!(mails[0]["to"], json!(["a@example.org"]));
    let data = provider_body(&mails[0]);
    assert!(data.contains("Message-ID: <") && data.contains("Date: "), "{data}");
    assert!(data.contains("Content-Transfer-Encoding: base64"), "{data}");
    let (_, sent) = data.split_once("\r\n\r\n").unwrap();
    let sent = STANDARD.decode(sent.replace("\r\n", "")).unwrap();
    assert_eq!(sent, b"one\r\n.\r\ntwo\r\n", "the body arrives as it was approved");
}

/// S36: a provider that echoes the credential in every encoding gives none of them to anybody.
fn echoes(scene: &Scene) {
    let providers = scene.plane.providers();
    let all = [
        "plain",
        "base64",
        "base64_shift1",
        "base64_shift2",
        "base64url",
        "base64url_no_pad",
        "hex",
        "hex_upper",
        "percent",
        "percent_all",
        "json",
        "json_unicode",
    ];
    for encoding in all {
        providers.fault(&json!({"provider": "crm", "status": 401, "echo": [encoding]}));
        let plan = scene.propose("crm.read", &json!({"id": format!("echo-{encoding}")}));
        assert_eq!(scene.until(&plan, &["FAILED", "SUCCEEDED"])["state"], "FAILED", "{encoding}");
    }
    let request = providers.of("crm").pop().unwrap();
    let header =
        request["headers"]["authorization"].as_str().or_else(|| request["headers"]["Authorization"].as_str());
    let secret = header.unwrap_or_else(|| panic!("{request}")).trim_start_matches("Bearer ").to_owned();
    assert!(secret.len() >= 8, "the secret was really used");
    let forms =
        [secret.clone(), STANDARD.encode(&secret), secret.bytes().map(|b| format!("{b:02x}")).collect()];
    let mut looked = 0;
    for zone in ["governance", "approval", "connector"] {
        for entry in std::fs::read_dir(scene.plane.data().join(zone)).unwrap() {
            let path = entry.unwrap().path();
            let Ok(content) = std::fs::read(&path) else { continue };
            looked += 1;
            for form in &forms {
                let found = content.windows(form.len()).any(|w| w == form.as_bytes());
                assert!(!found, "a form of the secret is in {}", path.display());
            }
        }
    }
    assert!(looked >= 3, "there was something to look into");
}

/// S04: the connector dies after the provider took the message.
#[test]
fn the_connector_dies_after_the_send() {
    let scene = Scene::new();
    scene.plane.providers().fault(&json!({"provider": "sms", "hang": true}));
    let plan = scene.sms("+15550120");
    eventually("the provider has it", Duration::from_secs(20), || {
        (scene.seen("sms", "15550120") == 1).then_some(())
    });
    scene.plane.kill("connector");
    scene.plane.providers().heal();
    let action = scene.until(&plan, &["IN_DOUBT", "SUCCEEDED", "FAILED"]);
    assert_eq!(action["state"], "IN_DOUBT");
    std::thread::sleep(Duration::from_secs(3));
    assert_eq!(scene.seen("sms", "15550120"), 1, "no automatic second send");
    let settled = resolve_as_another(&scene, &plan, "the provider's log shows it");
    assert_eq!(settled.code, 0, "{}", settled.stderr);
    let (code, said) = scene.verified();
    assert_eq!(code, 0, "{said}");
}

/// Another operator than the run's owner says that it was done.
fn resolve_as_another(scene: &Scene, plan: &str, reason: &str) -> Output {
    let (cert, key) = scene.another_operator();
    let identity = ["--cert", &cert, "--key", &key];
    let settle = ["plan", "resolve", plan, "0", "--outcome", "succeeded", "--reason", reason];
    scene.plane.cli(&[identity.as_slice(), settle.as_slice()].concat())
}

/// S03, S05: outages between the yes and the sending burn nothing.
#[test]
fn outages_burn_no_approval() {
    let scene = Scene::new();
    scene.plane.signal("connector", Signal::SIGSTOP);
    let plan = scene.sms("+15550130");
    scene.plane.kill("governance");
    std::thread::sleep(Duration::from_secs(2));
    assert_eq!(scene.seen("sms", "15550130"), 0);
    scene.plane.signal("connector", Signal::SIGCONT);
    assert_eq!(scene.until(&plan, &["SUCCEEDED", "FAILED", "IN_DOUBT"])["state"], "SUCCEEDED");
    assert_eq!(scene.seen("sms", "15550130"), 1);

    scene.plane.signal("approval", Signal::SIGSTOP);
    let plan = scene.propose("sms.send", &json!({"to": "+15550131", "body": "Hello"}));
    std::thread::sleep(Duration::from_secs(1));
    scene.plane.signal("approval", Signal::SIGCONT);
    scene.approve(&plan);
    assert_eq!(scene.until(&plan, &["SUCCEEDED", "FAILED", "IN_DOUBT"])["state"], "SUCCEEDED");

    scene.plane.kill("credential-vault");
    let plan = scene.sms("+15550132");
    assert_eq!(scene.until(&plan, &["SUCCEEDED", "FAILED", "IN_DOUBT"])["state"], "SUCCEEDED");
    assert_eq!(scene.seen("sms", "15550132"), 1);
}

/// S06, S07 and revocation.
#[test]
fn who_may_say_yes_and_how_long_it_lasts() {
    let scene = Scene::new();
    let plane = &scene.plane;

    // S07: the owner, enrolled as reviewer, may not decide their own.
    let operator = plane.ready();
    let (cert, key) = (operator.text("/operator/cert"), operator.text("/operator/key"));
    let name = Path::new(&cert).parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    let person = format!("spiffe://dev.exequatur/person/{name}");
    assert_eq!(
        plane.cli(&["reviewer", "put", &person]).reason(),
        "SELF_APPROVAL",
        "nobody enrols themselves"
    );
    let (other, other_key) = scene.another_operator();
    let put = plane.cli(&["--cert", &other, "--key", &other_key, "reviewer", "put", &person]);
    assert_eq!(put.code, 0, "{} {}", put.stdout, put.stderr);
    let plan = scene.propose("sms.send", &json!({"to": "+15550140", "body": "Hello"}));
    let approval = plane.approval_of(&plan);
    let own = plane.cli(&["--cert", &cert, "--key", &key, "inbox", "approve", &approval]);
    assert_eq!(own.reason(), "SELF_APPROVAL");
    assert_eq!(scene.until(&plan, &["AWAITING_APPROVAL"])["state"], "AWAITING_APPROVAL");

    // Rejected is another word than denied.
    let rejected = plane.cli(&["inbox", "reject", &approval, "--reason", "not today"]);
    assert_eq!(rejected.code, 0, "{}", rejected.stdout);
    assert_eq!(scene.until(&plan, &["REJECTED"])["reason"], "REJECTED");
    assert_eq!(scene.seen("sms", "15550140"), 0);

    // S06: a yes that is older than its window is spent on nothing.
    let rules = plane.folder().join("short.yaml");
    let text = std::fs::read_to_string(plane.data().join("tenant/rules.yaml")).unwrap();
    std::fs::write(&rules, text.replace("window: 15m", "window: 2s")).unwrap();
    assert_eq!(plane.cli(&["policy", "apply", rules.to_str().unwrap()]).code, 0);
    let plan = scene.propose("sms.send", &json!({"to": "+15550141", "body": "Hello"}));
    let approval = plane.approval_of(&plan);
    plane.signal("connector", Signal::SIGSTOP);
    assert_eq!(plane.cli(&["inbox", "approve", &approval]).code, 0);
    std::thread::sleep(Duration::from_secs(4));
    plane.signal("connector", Signal::SIGCONT);
    let state = scene.until(&plan, &["EXPIRED", "SUCCEEDED", "FAILED", "REFUSED", "REVOKED"]);
    assert_ne!(state["state"], "SUCCEEDED", "{state}");
    assert_eq!(scene.seen("sms", "15550141"), 0);

    // A revoked run has nothing open any more.
    let (run, token) = plane.run_token(&["sms.send"]);
    let plan = json!({"context": "c", "idempotency_key": "revoke", "actions":
        [{"tool": "sms.send", "arguments": {"to": "+15550142", "body": "Hello"}, "rationale": "r"}]});
    let plan = plane.propose(&token, &plan, &[]).json["plan"].as_str().unwrap().to_owned();
    assert_eq!(plane.cli(&["run", "revoke", &run]).code, 0);
    let state = eventually("the action is withdrawn", Duration::from_secs(10), || {
        let seen = plane.cli(&["plan", "get", &plan]).json["actions"][0].clone();
        (seen["state"] != "AWAITING_APPROVAL").then_some(seen)
    });
    assert!(["WITHDRAWN", "REVOKED"].contains(&state["state"].as_str().unwrap()), "{state}");
    assert_eq!(scene.seen("sms", "15550142"), 0);
}
