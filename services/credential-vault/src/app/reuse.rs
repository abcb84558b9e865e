//! Whether a secret that the connector holds open may serve another action. Decided here, from this zone's
//! own rows, for every action anew; the connector only says what it holds.

use std::time::Duration;

use exequatur_clock::UnixMillis;
use exequatur_fault::{Fault, Reason};
use exequatur_proto::credential::v1::{GiveBackRequest, Reuse, VaultSource};
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_store::Tx;
use prost::Message as _;

use super::App;
use super::lease::event;
use crate::store::{Backend, Lease};

/// A lease that serves several actions ends after this, whatever its dynamic secret would allow.
pub(super) const LIFE: Duration = Duration::from_secs(15 * 60);
/// Leases that a connector may name.
const MAX_HELD: usize = 16;
/// A reused secret outlives the tool's time-out by this: the time to send, and for clocks that differ.
const MARGIN: Duration = Duration::from_secs(15);

/// For how many actions a version serves.
pub(super) fn of_version(backend: Backend, version: &[u8]) -> Result<Reuse, Fault> {
    match backend {
        Backend::Sealed => Ok(Reuse::PerAction),
        Backend::Vault => {
            let source = VaultSource::decode(version).map_err(Fault::internal)?;
            Ok(if is_shared(&source) { source.reuse() } else { Reuse::PerAction })
        }
    }
}

/// Whether more than one action may use one hand-over.
pub(super) fn is_shared(source: &VaultSource) -> bool {
    matches!(source.reuse(), Reuse::PerRun | Reuse::UntilExpiry)
}

/// Whether `held` may serve what `wanted` is for, until then.
fn serves(held: &Lease, wanted: &Lease, until: UnixMillis) -> bool {
    !held.returned
        && held.reuse_of.is_empty()
        && held.credential == wanted.credential
        && held.version == wanted.version
        && held.reuse == wanted.reuse
        && held.expires_at >= until
        && match wanted.reuse {
            Reuse::PerRun => held.run == wanted.run,
            Reuse::UntilExpiry => true,
            Reuse::PerAction | Reuse::Unspecified => false,
        }
}

impl App {
    /// The first of the connector's open leases that may serve this one; empty: none.
    pub(super) async fn open_lease(
        &self,
        tx: &mut Tx,
        held: &[String],
        wanted: &Lease,
        timeout: Duration,
    ) -> Result<String, Fault> {
        if held.len() > MAX_HELD {
            return Err(Fault::field("held", "at most 16 leases may be named"));
        }
        if wanted.reuse == Reuse::PerAction {
            return Ok(String::new());
        }
        let until = tx.now().saturating_add(timeout + MARGIN);
        for id in held {
            let held = self.catalog.find_lease(tx, &wanted.tenant, id).await?;
            if held.is_some_and(|held| serves(&held, wanted, until)) {
                return Ok(id.clone());
            }
        }
        Ok(String::new())
    }

    /// Ends a lease, and the dynamic secret at Vault that the connector got by it; or notes that the
    /// connector keeps it open, where the catalog allows it. A repeat changes nothing.
    ///
    /// # Errors
    /// `INVALID_FIELD` for a lease at Vault that is none of this credential; `STORAGE_FAILED`.
    pub async fn give_back(&self, request: &GiveBackRequest) -> Result<(), Fault> {
        let GiveBackRequest { tenant, lease: id, vault_lease, keep } = request;
        let mut tx = self.store.begin().await?;
        let Some(lease) = self.catalog.find_lease(&mut tx, tenant, id).await? else { return Ok(()) };
        let is_own =
            |vault: &dyn crate::backend::Backend| vault.is_lease_of(tenant, &lease.credential, vault_lease);
        if !vault_lease.is_empty() && !self.vault.as_deref().is_some_and(is_own) {
            return Err(Fault::new(Reason::InvalidField, "the lease at Vault is none of this credential")
                .with("field", "vault_lease"));
        }
        // The lease at Vault belongs to the one that handed it over.
        let vault_lease = if lease.reuse_of.is_empty() { vault_lease } else { "" };
        let may_stay = lease.reuse != Reuse::PerAction
            && lease.reuse_of.is_empty()
            && !lease.returned
            && lease.expires_at > tx.now();
        if *keep && may_stay {
            if self.catalog.keep(&mut tx, tenant, id, vault_lease).await? {
                let mut kept = event("kept", &lease, Vec::new(), Vec::new());
                vault_lease.clone_into(&mut kept.vault_lease);
                self.ledger.append(&mut tx, tenant, Body::Lease(kept)).await?;
                tx.commit().await?;
            }
            return Ok(());
        }
        drop(tx);
        self.end_lease(tenant, id, vault_lease, "returned").await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(reuse: Reuse) -> Lease {
        Lease {
            lease: "l".to_owned(),
            tenant: "t".to_owned(),
            credential: "c".to_owned(),
            version: 3,
            plan_digest: vec![1; 32],
            index: 0,
            attempt: 1,
            expires_at: UnixMillis(1_000),
            returned: false,
            vault_lease: String::new(),
            run: "r".to_owned(),
            reuse,
            kept: false,
            reuse_of: String::new(),
        }
    }

    #[test]
    fn an_open_secret_serves_only_what_the_catalog_lets_it() {
        let until = UnixMillis(1_000);
        for reuse in [Reuse::PerRun, Reuse::UntilExpiry] {
            let (held, wanted) = (lease(reuse), lease(reuse));
            assert!(serves(&held, &wanted, until));
            assert!(!serves(&held, &wanted, UnixMillis(1_001)), "it would end before the action");
            assert!(!serves(&Lease { returned: true, ..held.clone() }, &wanted, until));
            assert!(!serves(&Lease { credential: "d".to_owned(), ..held.clone() }, &wanted, until));
            assert!(!serves(&Lease { version: 2, ..held.clone() }, &wanted, until), "rotated");
            assert!(!serves(&Lease { reuse_of: "k".to_owned(), ..held.clone() }, &wanted, until));
            assert!(!serves(&lease(Reuse::PerAction), &wanted, until), "the catalog was wider later");
            let other_run = Lease { run: "s".to_owned(), ..held };
            assert_eq!(serves(&other_run, &wanted, until), reuse == Reuse::UntilExpiry);
        }
        let once = lease(Reuse::PerAction);
        assert!(!serves(&once, &once, until));
    }
}
