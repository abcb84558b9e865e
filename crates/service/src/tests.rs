//! The access table and the configuration refuse what is not written down.
#![allow(clippy::unwrap_used, reason = "tests may stop at once")]

use std::io::Write as _;

use serde::Deserialize;

use crate::caller::Tenants;
use crate::config::{self, SectionNames};
use crate::table::AccessTable;

#[test]
fn every_method_of_the_contract_says_who_may_call_it() {
    let table = AccessTable::load().unwrap();
    assert!(table.paths().len() > 40, "the descriptors were walked");
    assert!(table.rule("/exequatur.approval.v1.InboxService/Decide").is_some());
}

#[test]
fn only_exact_paths_are_methods() {
    let table = AccessTable::load().unwrap();
    for path in [
        "exequatur.approval.v1.InboxService/Decide",
        "//exequatur.approval.v1.InboxService/Decide",
        "/exequatur.approval.v1.inboxservice/Decide",
        "/exequatur.approval.v1.InboxService/Decide/",
        "/exequatur.approval.v1.InboxService/decide",
        "",
    ] {
        assert!(table.rule(path).is_none(), "{path}");
    }
}

#[test]
fn a_method_without_the_option_stops_the_service() {
    let file = prost_types::FileDescriptorProto {
        name: Some("x.proto".into()),
        package: Some("x".into()),
        syntax: Some("proto3".into()),
        message_type: vec![prost_types::DescriptorProto { name: Some("M".into()), ..Default::default() }],
        service: vec![prost_types::ServiceDescriptorProto {
            name: Some("S".into()),
            method: vec![prost_types::MethodDescriptorProto {
                name: Some("Open".into()),
                input_type: Some(".x.M".into()),
                output_type: Some(".x.M".into()),
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    };
    let mut pool = exequatur_proto::POOL.clone();
    pool.add_file_descriptor_proto(file).unwrap();
    let fault = AccessTable::of(&pool).unwrap_err();
    assert!(fault.message().contains("/x.S/Open"), "{fault}");
}

#[test]
fn a_star_means_all_only_alone() {
    assert_eq!(Tenants::of(&["*".into()]), Tenants::All);
    assert!(!Tenants::of(&["*".into(), "a".into()]).contains("b"));
    assert!(!Tenants::of(&[]).contains(""));
}

#[derive(Debug, Deserialize)]
struct Own {
    peers: Peers,
}
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Peers {
    approval: String,
}
impl SectionNames for Own {
    const NAMES: &'static [&'static str] = &["peers"];
}

const GOOD: &str = r#"
mode = "development"
realm = "dev.exequatur"
listen = "127.0.0.1:0"
data = "/tmp/x"
[tls]
certificate = "a"
key = "b"
ca = "c"
[trust]
bundle = "d"
root_key = "e"
[keys]
directory = "f"
[peers]
approval = "127.0.0.1:1"
"#;

fn read(text: &str) -> Result<Own, String> {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    config::read::<Own>(file.path()).map(|(_, own)| own)
}

#[test]
fn configuration_reads_and_refuses() {
    assert_eq!(read(GOOD).unwrap().peers.approval, "127.0.0.1:1");
    let typo = read(&GOOD.replace("realm =", "relam =")).unwrap_err();
    assert!(typo.contains("did you mean `realm`"), "{typo}");
    assert!(read(&GOOD.replace("approval =", "aproval =")).unwrap_err().contains("aproval"));
    assert!(read(&GOOD.replace("\"development\"", "\"dev\"")).is_err());
    assert!(read(&GOOD.replace("mode = \"development\"", "")).is_err(), "nothing is assumed");
    let open = read(&GOOD.replace("127.0.0.1:0", "0.0.0.0:7443")).unwrap_err();
    assert!(open.contains("loopback only"), "{open}");
}
