//! A plane with an agent in it: what most tests of executions begin with.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value as Json, json};

use crate::Plane;

/// One running plane, one run of an agent.
pub struct Scene {
    /// The plane.
    pub plane: Plane,
    /// File with the agent's run token.
    pub token: PathBuf,
    key: AtomicU32,
}

impl Default for Scene {
    fn default() -> Self {
        Self::new()
    }
}

impl Scene {
    /// The demo tenant's tools that an agent may call.
    #[must_use]
    pub fn new() -> Self {
        Self::with(&[])
    }

    /// The same with further arguments of `dev`.
    #[must_use]
    pub fn with(more: &[&str]) -> Self {
        let plane = Plane::start_with(more);
        let (_, token) = plane.run_token(&["crm.read", "sms.send", "mail.send", "db.query"]);
        Self { plane, token, key: AtomicU32::new(0) }
    }

    /// A plan of one action, under a key of its own.
    pub fn plan(&self, tool: &str, arguments: &Json) -> Json {
        let number = self.key.fetch_add(1, Ordering::SeqCst);
        json!({"context": "c", "idempotency_key": format!("k-{number}"), "actions":
            [{"tool": tool, "arguments": arguments, "rationale": "r"}]})
    }

    /// Proposes it; the plan's id.
    pub fn propose(&self, tool: &str, arguments: &Json) -> String {
        let answer = self.plane.propose(&self.token, &self.plan(tool, arguments), &[]);
        answer.json["plan"]
            .as_str()
            .unwrap_or_else(|| panic!("{} {}", answer.stdout, answer.stderr))
            .to_owned()
    }

    /// Says yes to all of a plan.
    pub fn approve(&self, plan: &str) {
        let approval = self.plane.approval_of(plan);
        let decided = self.plane.cli(&["inbox", "approve", &approval]);
        assert_eq!(decided.code, 0, "{} {}", decided.stdout, decided.stderr);
    }

    /// A text message, proposed and approved.
    pub fn sms(&self, to: &str) -> String {
        let plan = self.propose("sms.send", &json!({"to": to, "body": "Hello"}));
        self.approve(&plan);
        plan
    }

    /// The first action, once it is in one of these states.
    pub fn until(&self, plan: &str, states: &[&str]) -> Json {
        self.plane.until(&self.token, plan, 0, states)["actions"][0].clone()
    }

    /// How often a provider was sent this text.
    pub fn seen(&self, provider: &str, needle: &str) -> usize {
        let of = self.plane.providers().of(provider);
        of.iter().filter(|r| provider_body(r).contains(needle)).count()
    }

    /// A second operator of the tenant: certificate and key.
    pub fn another_operator(&self) -> (String, String) {
        let out = self.plane.folder().join("omar");
        let text = out.to_str().unwrap();
        if !out.join("tls.key").exists() {
            let issued =
                self.plane.cli(&["pki", "issue", "operator", "omar", "--tenant", "demo", "--out", text]);
            assert_eq!(issued.code, 0, "{}", issued.stderr);
            // Zones look at the trust bundle once a second.
            std::thread::sleep(Duration::from_millis(2500));
        }
        let path = |name: &str| out.join(name).to_str().unwrap().to_owned();
        (path("tls.crt"), path("tls.key"))
    }

    /// Exports the evidence and has it verified: exit code, standard output.
    pub fn verified(&self) -> (i32, String) {
        let file = self.plane.folder().join("evidence.jsonl");
        let (file, root) = (file.to_str().unwrap(), self.plane.ready().text("/root_key"));
        let exported = self.plane.cli(&["ledger", "export", "--out", file]);
        assert_eq!(exported.code, 0, "{}", exported.stderr);
        let verified = self.plane.cli(&["ledger", "verify", file, "--root-key", &root]);
        (verified.code, verified.stdout)
    }
}

/// What a provider's log says that it was sent.
#[must_use]
pub fn provider_body(request: &Json) -> String {
    let raw = request["body_b64"].as_str().or_else(|| request["data_b64"].as_str()).unwrap_or_default();
    String::from_utf8_lossy(&STANDARD.decode(raw).unwrap()).into_owned()
}
