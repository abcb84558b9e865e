//! Which kinds of caller each method takes, read from the descriptors once at start.

use std::collections::HashMap;

use exequatur_fault::{Fault, Reason};
use exequatur_proto::POOL;
use exequatur_proto::access::v1::Caller as Proto;
use prost_reflect::{DescriptorPool, Value};

use crate::caller::CallerKind;

const OPTION: &str = "exequatur.access.v1.access";

/// Who may call a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Rule {
    /// These kinds.
    Kinds(Vec<CallerKind>),
    /// Any authenticated peer of the realm with a certificate.
    AnyPeer,
}

/// Method path → who may call it.
#[derive(Debug)]
pub struct AccessTable {
    rules: HashMap<String, Rule>,
}

/// Foreign services stand here, under the same layer.
const FOREIGN: &[(&str, &[CallerKind])] = &[
    ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", &[CallerKind::Operator]),
    ("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &[CallerKind::Operator]),
];
const ANY_PEER: &[&str] = &["/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"];

impl AccessTable {
    /// The table of our own descriptors.
    ///
    /// # Errors
    /// `INTERNAL` when a method has no access option: then the service must not start.
    pub fn load() -> Result<Self, Fault> {
        Self::of(&POOL)
    }

    pub(crate) fn of(pool: &DescriptorPool) -> Result<Self, Fault> {
        let option = pool
            .get_extension_by_name(OPTION)
            .ok_or_else(|| Fault::internal("the access option is missing from the descriptors"))?;
        let mut rules = HashMap::new();
        for service in pool.services() {
            for method in service.methods() {
                let path = format!("/{}/{}", service.full_name(), method.name());
                let options = method.options();
                let kinds = if options.has_extension(&option) {
                    kinds(&options.get_extension(&option))
                } else {
                    Vec::new()
                };
                if kinds.is_empty() {
                    return Err(Fault::new(
                        Reason::Internal,
                        format!(
                            "`{path}` has no (exequatur.access.v1.access) option: say in the .proto who may call it"
                        ),
                    ));
                }
                rules.insert(path, Rule::Kinds(kinds));
            }
        }
        for (path, kinds) in FOREIGN {
            rules.insert((*path).to_owned(), Rule::Kinds(kinds.to_vec()));
        }
        for path in ANY_PEER {
            rules.insert((*path).to_owned(), Rule::AnyPeer);
        }
        Ok(Self { rules })
    }

    /// The rule of an exact path; anything else is no method.
    pub(crate) fn rule(&self, path: &str) -> Option<&Rule> {
        self.rules.get(path)
    }

    /// All paths, sorted; for tests that walk them.
    #[must_use]
    pub fn paths(&self) -> Vec<&str> {
        let mut paths: Vec<_> = self.rules.keys().map(String::as_str).collect();
        paths.sort_unstable();
        paths
    }
}

fn kinds(option: &Value) -> Vec<CallerKind> {
    let Some(access) = option.as_message() else { return Vec::new() };
    let Some(callers) = access.get_field_by_name("callers") else { return Vec::new() };
    let Some(list) = callers.as_list() else { return Vec::new() };
    list.iter()
        .filter_map(Value::as_enum_number)
        .filter_map(|n| match Proto::try_from(n).ok()? {
            Proto::Unspecified => None,
            Proto::Governance => Some(CallerKind::Governance),
            Proto::Approval => Some(CallerKind::Approval),
            Proto::CredentialVault => Some(CallerKind::CredentialVault),
            Proto::Connector => Some(CallerKind::Connector),
            Proto::Operator => Some(CallerKind::Operator),
            Proto::Reviewer => Some(CallerKind::Reviewer),
            Proto::InternalService => Some(CallerKind::InternalService),
            Proto::RunToken => Some(CallerKind::RunToken),
        })
        .collect()
}
