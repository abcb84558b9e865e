//! A definition that was checked, with its exact bytes. Knows no action.

use exequatur_canonical::{Digest, tool_digest};
use exequatur_proto::definition::v1::{CredentialUse, ToolDefinition, tool_definition::Template};
use prost::Message as _;

use crate::PrepareError;
use crate::check;

/// Largest definition, bytes.
pub const MAX_DEFINITION_BYTES: usize = 256 * 1024;

/// A tool definition whose bytes are canonical and whose content passed every check.
#[derive(Debug, Clone, PartialEq)]
pub struct Definition {
    message: ToolDefinition,
    bytes: Vec<u8>,
    digest: Digest,
}

impl Definition {
    /// Decodes and checks definition bytes.
    ///
    /// # Errors
    /// [`PrepareError::TooLarge`], [`PrepareError::NotCanonical`] or [`PrepareError::Invalid`].
    pub fn verify(bytes: &[u8]) -> Result<Self, PrepareError> {
        if bytes.len() > MAX_DEFINITION_BYTES {
            return Err(PrepareError::TooLarge {
                what: "the definition",
                bytes: bytes.len(),
                limit: MAX_DEFINITION_BYTES,
            });
        }
        let not_canonical = || PrepareError::NotCanonical("the definition");
        let message = ToolDefinition::decode(bytes).map_err(|_| not_canonical())?;
        if message.encode_to_vec() != bytes {
            return Err(not_canonical());
        }
        check::definition(&message)?;
        Ok(Self { message, bytes: bytes.to_vec(), digest: tool_digest(bytes) })
    }

    /// The decoded definition.
    #[must_use]
    pub const fn message(&self) -> &ToolDefinition {
        &self.message
    }

    /// The exact bytes it was made from.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The tool digest of the bytes.
    #[must_use]
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// The tool's name.
    #[must_use]
    pub fn tool(&self) -> &str {
        &self.message.tool
    }

    /// Where the tool's requests go, `host:port`; an IPv6 address stands in brackets.
    #[must_use]
    pub fn destination(&self) -> String {
        match &self.message.template {
            Some(Template::Http(http)) => destination(&http.host, http.port),
            Some(Template::Smtp(smtp)) => destination(&smtp.host, smtp.port),
            Some(Template::Postgres(postgres)) => destination(&postgres.host, postgres.port),
            // Unreachable: `verify` refuses a definition without template.
            None => String::new(),
        }
    }

    /// Which credentials go into a request, and where.
    #[must_use]
    pub fn credentials(&self) -> &[CredentialUse] {
        &self.message.credentials
    }
}

pub(crate) fn destination(host: &str, port: u32) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}
