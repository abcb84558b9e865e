//! Values that the operator's CLI sealed to the connector. Knows no key that opens one.

use async_trait::async_trait;
use exequatur_fault::Fault;
use exequatur_proto::credential::v1::SealedValue;
use prost::Message as _;

use super::{Backend, Handed, Order, Value};

/// Ciphertext out of the catalog.
#[derive(Debug, Clone, Copy, Default)]
pub struct Sealed;

#[async_trait]
impl Backend for Sealed {
    async fn hand_over(&self, order: Order<'_>) -> Result<Handed, Fault> {
        let value = SealedValue::decode(order.version).map_err(Fault::internal)?;
        Ok(Handed { value: Value::Sealed(value), path: String::new(), accessor: String::new() })
    }

    fn is_lease_of(&self, _: &str, _: &str, _: &str) -> bool {
        false
    }

    /// Nothing here is dynamic.
    async fn revoke(&self, _: &str) -> Result<(), Fault> {
        Ok(())
    }
}
