//! Secrets that stay open between actions, in memory only. Which action may use one is decided by
//! credential-vault, each time anew. Knows no rule, no store and no Vault.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use exequatur_clock::UnixMillis;
use exequatur_vault::Opened;

/// Leases that one question names.
const OFFERED: usize = 16;

/// A secret in use by an attempt. While one lives, its lease is not given back.
pub(crate) type Holding = Arc<()>;

/// What an open secret is for.
#[derive(Debug, Clone)]
pub(crate) struct Purpose {
    pub(crate) tenant: String,
    pub(crate) credential: String,
    pub(crate) version: u64,
    /// `None`: any run of the tenant.
    pub(crate) run: Option<String>,
    /// Not used by what may last longer.
    pub(crate) until: UnixMillis,
}

/// An open secret that credential-vault may choose.
#[derive(Clone)]
pub(crate) struct Offer {
    pub(crate) lease: String,
    pub(crate) opened: Opened,
    pub(crate) holding: Holding,
}

/// A lease whose secret was closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Closed {
    pub(crate) tenant: String,
    pub(crate) lease: String,
    pub(crate) vault_lease: String,
}

struct Kept {
    purpose: Purpose,
    offer: Offer,
}

#[derive(Default)]
struct Secrets {
    open: HashMap<String, Kept>,
    /// Not offered any more; given back when no attempt uses it.
    closing: Vec<Kept>,
}

/// All that are open.
#[derive(Default)]
pub struct Held(Mutex<Secrets>);

impl Held {
    /// Keeps a secret open under the lease that it came with.
    pub(crate) fn keep(&self, lease: &str, purpose: Purpose, opened: &Opened) -> Holding {
        let holding = Holding::default();
        let offer = Offer { lease: lease.to_owned(), opened: opened.clone(), holding: Arc::clone(&holding) };
        self.lock().open.insert(lease.to_owned(), Kept { purpose, offer });
        holding
    }

    /// What may be offered for an action that ends by then, the longest lived first.
    pub(crate) fn offers(&self, tenant: &str, credential: &str, run: &str, by: UnixMillis) -> Vec<Offer> {
        let secrets = self.lock();
        let fits = |purpose: &Purpose| {
            purpose.tenant == tenant
                && purpose.credential == credential
                && purpose.run.as_deref().is_none_or(|of| of == run)
                && purpose.until >= by
        };
        let mut found: Vec<&Kept> = secrets.open.values().filter(|kept| fits(&kept.purpose)).collect();
        found.sort_by_key(|kept| std::cmp::Reverse(kept.purpose.until));
        found.into_iter().take(OFFERED).map(|kept| kept.offer.clone()).collect()
    }

    /// Whether a lease's secret is open, or closed and not yet taken out.
    pub(crate) fn has(&self, lease: &str) -> bool {
        let secrets = self.lock();
        secrets.open.contains_key(lease) || secrets.closing.iter().any(|kept| kept.offer.lease == lease)
    }

    /// Offers those for which this holds no more.
    pub(crate) fn close(&self, gone: impl Fn(&Purpose) -> bool) {
        self.close_kept(|kept| gone(&kept.purpose));
    }

    fn close_kept(&self, gone: impl Fn(&Kept) -> bool) {
        let mut secrets = self.lock();
        let out: Vec<Kept> = secrets.open.extract_if(|_, kept| gone(kept)).map(|(_, kept)| kept).collect();
        secrets.closing.extend(out);
    }

    /// Offers those that an attempt uses no more.
    pub(crate) fn close_used(&self, by: &[Holding]) {
        self.close_kept(|kept| by.iter().any(|holding| Arc::ptr_eq(holding, &kept.offer.holding)));
    }

    /// Takes out what is closed and no attempt uses.
    pub(crate) fn closed(&self) -> Vec<Closed> {
        let mut secrets = self.lock();
        let idle = |kept: &mut Kept| Arc::strong_count(&kept.offer.holding) == 1;
        let closed = |kept: Kept| Closed {
            tenant: kept.purpose.tenant,
            lease: kept.offer.lease,
            vault_lease: kept.offer.opened.lease,
        };
        secrets.closing.extract_if(.., idle).map(closed).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Secrets> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
