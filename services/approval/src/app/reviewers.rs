//! Who may review, enrolled by an operator and never by themselves. An empty list means nobody.

use async_trait::async_trait;
use exequatur_fault::{Fault, Reason};
use exequatur_identity::{Principal, SpiffeId};
use exequatur_proto::ledger::v1::RegisterChanged;
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_service::{Caller, Roles};
use exequatur_store::Tx;

use super::App;
use crate::store::ReviewerRow;

impl App {
    /// Enrols a person; a repeat changes nothing.
    ///
    /// # Errors
    /// `TENANT_NOT_ALLOWED`, `INVALID_FIELD`, or `SELF_APPROVAL` for an operator's own id.
    pub async fn put_reviewer(&self, caller: &Caller, tenant: &str, person: &str) -> Result<(), Fault> {
        let tenant = caller.tenant(tenant)?;
        let person = self.person(person)?;
        if person == caller.id {
            return Err(Fault::new(Reason::SelfApproval, "nobody enrols themselves; ask another operator"));
        }
        if !is_tenant(tenant) {
            return Err(Fault::field("tenant", "a tenant is `[a-z0-9][a-z0-9._-]{0,62}`"));
        }
        let mut tx = self.store.begin().await?;
        let now = tx.now();
        if self.rows.put_reviewer(&mut tx, tenant, &person, now).await? {
            self.register(&mut tx, caller, tenant, &person, "put").await?;
            self.commit(tx).await?;
        }
        Ok(())
    }

    /// Removes a person; a repeat changes nothing.
    ///
    /// # Errors
    /// `TENANT_NOT_ALLOWED` or `INVALID_FIELD`.
    pub async fn remove_reviewer(&self, caller: &Caller, tenant: &str, person: &str) -> Result<(), Fault> {
        let tenant = caller.tenant(tenant)?;
        let person = self.person(person)?;
        let mut tx = self.store.begin().await?;
        if self.rows.remove_reviewer(&mut tx, tenant, &person).await? {
            self.register(&mut tx, caller, tenant, &person, "remove").await?;
            self.commit(tx).await?;
            if self.rows.reviewers(tenant).await?.is_empty() {
                tracing::warn!(%tenant, reason = "NO_REVIEWERS", "the last reviewer is gone: nobody may approve");
            }
        }
        Ok(())
    }

    /// Reviewers of a tenant.
    ///
    /// # Errors
    /// `TENANT_NOT_ALLOWED`.
    pub async fn list_reviewers(&self, caller: &Caller, tenant: &str) -> Result<Vec<ReviewerRow>, Fault> {
        self.rows.reviewers(caller.tenant(tenant)?).await
    }

    /// Says at start where nobody may approve.
    ///
    /// # Errors
    /// The store's.
    pub async fn warn_unattended(&self) -> Result<(), Fault> {
        if !self.rows.any_reviewer().await? {
            tracing::warn!(reason = "NO_REVIEWERS", "no reviewer is enrolled: nobody may approve anything");
        }
        for tenant in self.rows.unattended_tenants().await? {
            tracing::warn!(%tenant, reason = "NO_REVIEWERS", "approvals wait and nobody may decide them: enrol a reviewer");
        }
        Ok(())
    }

    async fn register(
        &self,
        tx: &mut Tx,
        caller: &Caller,
        tenant: &str,
        person: &str,
        change: &str,
    ) -> Result<(), Fault> {
        let entry = RegisterChanged {
            register: "reviewer".to_owned(),
            name: person.to_owned(),
            change: change.to_owned(),
            actor: caller.id.clone(),
            ..RegisterChanged::default()
        };
        self.ledger.append(tx, tenant, Body::RegisterChanged(entry)).await.map(drop)
    }

    /// The one spelling of a person of this realm.
    fn person(&self, text: &str) -> Result<String, Fault> {
        let bad =
            || Fault::field("person", format!("a reviewer is `spiffe://{}/person/NAME`", self.zones.realm));
        let id: SpiffeId = text.parse().map_err(|_| bad())?;
        if !matches!(id.principal(), Principal::Person(_)) || id.trust_domain() != self.zones.realm {
            return Err(bad());
        }
        Ok(id.to_string())
    }
}

/// `[a-z0-9][a-z0-9._-]{0,62}`.
fn is_tenant(text: &str) -> bool {
    let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let mut bytes = text.bytes();
    text.len() <= 63
        && bytes.next().is_some_and(plain)
        && bytes.all(|b| plain(b) || matches!(b, b'.' | b'_' | b'-'))
}

#[async_trait]
impl Roles for App {
    async fn reviewer_tenants(&self, person: &str) -> Result<Vec<String>, Fault> {
        self.rows.reviewer_tenants(person).await
    }
}
