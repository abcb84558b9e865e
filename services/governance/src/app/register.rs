//! The register of a tenant: signed tool definitions and the rule set in force.

use exequatur_canonical::Digest;
use exequatur_fault::{Fault, Reason};
use exequatur_policy::RuleSet;
use exequatur_proto::ledger::v1::RegisterChanged;
use exequatur_proto::ledger::v1::log_entry::Body;
use exequatur_proto::statement::v1::Envelope;
use prost::Message as _;

use super::App;
use crate::store::ToolRow;

impl App {
    /// Puts a signed definition in force; a repeat changes nothing.
    ///
    /// # Errors
    /// `STATEMENT_INVALID` or `NOT_CANONICAL`.
    pub async fn apply_tool(
        &self,
        actor: &str,
        tenant: &str,
        envelope: Option<&Envelope>,
    ) -> Result<(String, Digest), Fault> {
        self.served(tenant)?;
        let envelope = exequatur_door::present(envelope, "definition")?;
        let now = self.store.clock().now()?.0;
        let definition = exequatur_door::signed_definition(&self.trust, now, tenant, envelope)?;
        exequatur_schema::Schema::compile(&definition.message().input_schema)
            .map_err(|e| Fault::field("definition", format!("the input schema does not compile: {e}")))?;
        let row = ToolRow {
            tool: definition.tool().to_owned(),
            digest: definition.digest().to_vec(),
            definition: envelope.encode_to_vec(),
        };
        let mut tx = self.store.begin().await?;
        if self.rows.put_tool(&mut tx, tenant, &row).await? {
            let digest = definition.digest();
            self.ledger
                .put_body(&mut tx, tenant, "definition", digest.as_bytes(), definition.bytes())
                .await?;
            let entry = RegisterChanged {
                register: "tool".to_owned(),
                name: row.tool.clone(),
                change: "put".to_owned(),
                digest: row.digest.clone(),
                actor: actor.to_owned(),
                statement: row.definition.clone(),
            };
            self.ledger.append(&mut tx, tenant, Body::RegisterChanged(entry)).await?;
            self.commit(tx).await?;
        }
        Ok((row.tool, definition.digest()))
    }

    /// A tool in force.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub async fn tool(&self, tenant: &str, tool: &str) -> Result<ToolRow, Fault> {
        let mut tx = self.store.begin().await?;
        self.rows.tool(&mut tx, tenant, tool).await?.ok_or_else(|| Fault::not_found("tool", tool))
    }

    /// Tools after a name, in order.
    ///
    /// # Errors
    /// `STORAGE_FAILED`.
    pub async fn tools(&self, tenant: &str, after: &str, limit: u32) -> Result<Vec<ToolRow>, Fault> {
        let mut tx = self.store.begin().await?;
        self.rows.tools(&mut tx, tenant, after, limit).await
    }

    /// Puts a rule set in force; a repeat changes nothing, a bad one leaves the last good one.
    ///
    /// # Errors
    /// `NOT_CANONICAL`; `INVALID_FIELD` for what the language has and nothing enforces yet.
    pub async fn apply_rule_set(&self, actor: &str, tenant: &str, bytes: &[u8]) -> Result<Digest, Fault> {
        self.served(tenant)?;
        let set = RuleSet::verify(bytes)
            .map_err(|e| Fault::new(Reason::NotCanonical, format!("the rule set is refused whole: {e}")))?;
        if let Some((rule, field)) = set.not_enforced().first() {
            let why = format!("`{field}` in rule `{rule}` is not enforced by this plane yet; leave it out");
            return Err(Fault::field(field, why).with("rule", *rule));
        }
        let digest = set.digest();
        let mut tx = self.store.begin().await?;
        if self.rows.put_rule_set(&mut tx, tenant, digest.as_bytes(), set.bytes()).await? {
            self.ledger.put_body(&mut tx, tenant, "rule_set", digest.as_bytes(), set.bytes()).await?;
            let entry = RegisterChanged {
                register: "rule_set".to_owned(),
                name: tenant.to_owned(),
                change: "put".to_owned(),
                digest: digest.to_vec(),
                actor: actor.to_owned(),
                statement: Vec::new(),
            };
            self.ledger.append(&mut tx, tenant, Body::RegisterChanged(entry)).await?;
            self.commit(tx).await?;
        }
        Ok(digest)
    }

    /// Digest and bytes of the rule set in force.
    ///
    /// # Errors
    /// `NOT_FOUND`.
    pub async fn rule_set(&self, tenant: &str) -> Result<(Vec<u8>, Vec<u8>), Fault> {
        let mut tx = self.store.begin().await?;
        self.rows.rule_set(&mut tx, tenant).await?.ok_or_else(|| Fault::not_found("rule set", tenant))
    }
}
