//! Where a credential's value comes from. One backend today; another kind of store is another
//! implementation of [`Backend`] and touches no rule.

use std::sync::Arc;

use async_trait::async_trait;
use exequatur_fault::{Fault, Reason};
use exequatur_proto::credential::v1::SealedValue;
use exequatur_store::Tx;
use prost::Message as _;

use crate::store::CatalogStore;

/// A source of values that this zone hands over and cannot use itself.
#[async_trait]
pub trait Backend: Send + Sync {
    /// The value of a credential at a version, closed to this zone. Called once per lease, inside
    /// the transaction that records the lease.
    ///
    /// # Errors
    /// `CREDENTIAL_NOT_GRANTED` when there is none.
    async fn value(
        &self,
        tx: &mut Tx,
        tenant: &str,
        credential: &str,
        version: u64,
    ) -> Result<SealedValue, Fault>;
}

/// Values that the operator's CLI sealed to the connector.
pub struct Sealed(pub Arc<dyn CatalogStore>);

#[async_trait]
impl Backend for Sealed {
    async fn value(
        &self,
        tx: &mut Tx,
        tenant: &str,
        credential: &str,
        version: u64,
    ) -> Result<SealedValue, Fault> {
        let none = || {
            Fault::new(
                Reason::CredentialNotGranted,
                "the credential has no value yet; an operator must put one",
            )
            .with("credential", credential)
        };
        let bytes = self.0.value(tx, tenant, credential, version).await?.ok_or_else(none)?;
        SealedValue::decode(bytes.as_slice()).map_err(Fault::internal)
    }
}
