//! The card over real frozen bytes and a real signed definition.

use exequatur_canonical::{PlanHeader, Timestamp, freeze_action, freeze_plan};
use exequatur_pki::{Kind, Pki};
use exequatur_statement::{SigningKey, Statement as _, sign_bytes};

use super::*;

/// An approval of one text message as the service would send it, and the trust that it is checked with.
fn approval(folder: &std::path::Path, arguments: &str, rationale: &str) -> (Approval, Trust) {
    let pki = Pki::init(&folder.join("pki"), "test.example").unwrap();
    pki.issue(Kind::Operator, "olivia", &["*".to_owned()], &folder.join("olivia")).unwrap();
    let trust = Trust::load(&folder.join("pki/bundle.json"), &folder.join("pki/root.pub")).unwrap();
    let yaml = include_str!("../../../../deploy/demo/tools/sms.send.yaml")
        .replace("${HTTP_PORT}", "9001")
        .replace("${SMS_ACCOUNT}", "AC1");
    let definition = exequatur_definition_file::read(&yaml).unwrap();
    let key = SigningKey::load(&folder.join("olivia/definition.key")).unwrap();
    let envelope = sign_bytes(&key, ToolDefinition::TYPE, definition.bytes().to_vec());
    let digest = definition.digest();
    let action = freeze_action("sms.send", arguments.as_bytes(), rationale, Some(digest.as_bytes())).unwrap();
    let prepared = prepare(&definition, &action).unwrap();
    let plan = freeze_plan(PlanHeader {
        tenant: "demo".to_owned(),
        run: "run".to_owned(),
        agent: "bot".to_owned(),
        plan: "plan".to_owned(),
        proposed_at: Timestamp { seconds: 1, nanos: 0 },
        context: "why".to_owned(),
        action_digests: vec![action.digest()],
        continue_on_failure: false,
        allow_partial: false,
        realm: "test.example".to_owned(),
        owner: "spiffe://test.example/person/olivia".to_owned(),
    })
    .unwrap();
    let item = ApprovalAction {
        index: 0,
        action: action.bytes().to_vec(),
        definition: Some(envelope),
        wire_digest: prepared.wire_digest().as_bytes().to_vec(),
        held: true,
        rule: "outbound".to_owned(),
        ..ApprovalAction::default()
    };
    let approval = Approval { header: plan.bytes().to_vec(), actions: vec![item], ..Approval::default() };
    (approval, trust)
}

const SMS: &str = r#"{"to":"+15550100","body":"Shift moved to 09:00"}"#;

#[test]
fn a_card_is_computed_from_the_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let (approval, trust) = approval(folder.path(), SMS, "roster changed");
    let card = Card::compute(approval.clone(), &trust).unwrap();
    let action = &card.actions[0];
    assert_eq!(card.digest, verify_plan(&approval.header).unwrap().digest());
    assert_eq!(card.words.split('-').count(), 8, "high risk shows eight words");
    assert!(action.text.contains("+15550100") && action.request.contains("Messages.json"));
    assert_eq!(
        action.http().unwrap().1,
        b"To=%2B15550100&From=%2B15550199&Body=Shift%20moved%20to%2009%3A00".to_vec()
    );
}

#[test]
fn whatever_was_changed_there_is_no_card() {
    let folder = tempfile::tempdir().unwrap();
    let (approval, trust) = approval(folder.path(), SMS, "roster changed");
    let change = |what: &dyn Fn(&mut Approval)| {
        let mut changed = approval.clone();
        what(&mut changed);
        Card::compute(changed, &trust).err().map(|failure| failure.reason)
    };
    assert_eq!(change(&|_| {}), None);
    let mismatch = Some("DIGEST_MISMATCH".to_owned());
    // One digit of the number, with everything else as it was.
    let digit = |a: &mut Approval| {
        let bytes = &mut a.actions[0].action;
        let at = bytes.windows(9).position(|w| w == b"+15550100").unwrap();
        bytes[at + 8] = b'1';
    };
    assert_eq!(change(&digit), mismatch);
    assert_eq!(change(&|a| a.header.push(0)), mismatch);
    assert_eq!(change(&|a| a.actions[0].wire_digest[0] ^= 1), mismatch);
    assert_eq!(change(&|a| a.actions[0].definition = None), mismatch);
    assert_eq!(change(&|a| a.actions.clear()), mismatch);
    assert_eq!(change(&|a| a.actions[0].definition.as_mut().unwrap().signatures[0].sig[0] ^= 1), mismatch);
    assert_eq!(change(&|a| a.actions[0].definition.as_mut().unwrap().payload[5] ^= 1), mismatch);
}

#[test]
fn nothing_hidden_reaches_the_terminal() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = "{\"to\":\"+15550100\",\"body\":\"ops\u{202e}gro\"}";
    let (approval, trust) =
        approval(folder.path(), arguments, "routine\u{1b}[2J\u{1b}[1;1HApproved by policy");
    let card = Card::compute(approval, &trust).unwrap();
    let text = card.to_text();
    for hidden in ['\u{202e}', '\u{1b}', '\u{9b}'] {
        assert!(!text.contains(hidden), "{hidden:?}");
    }
    assert!(text.contains("\\u{202e}") && text.contains("\\u{1b}"));
    assert!(!card.actions[0].warnings.is_empty(), "a bidirectional control is warned of");
    assert!(text.contains("BIDI_CONTROL"));
}
