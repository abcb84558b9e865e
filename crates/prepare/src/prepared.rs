//! From definition and action to the request's bytes and digest. Knows no service.

use exequatur_canonical::{Digest, FrozenAction, wire_digest};
use exequatur_proto::definition::v1::{
    PreparedRequest, prepared_request::Request, tool_definition::Template,
};
use prost::Message as _;

use crate::{Definition, PrepareError, check, definition, http, mail, postgres};

/// Largest prepared request, bytes: what one message between zones may hold.
const MAX_PREPARED_BYTES: usize = 3_500_000;

/// A request without secrets, its exact bytes and their wire digest.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    request: PreparedRequest,
    bytes: Vec<u8>,
    wire_digest: Digest,
}

impl Prepared {
    fn new(request: PreparedRequest) -> Result<Self, PrepareError> {
        let bytes = request.encode_to_vec();
        if bytes.len() > MAX_PREPARED_BYTES {
            return Err(PrepareError::TooLarge {
                what: "the prepared request",
                bytes: bytes.len(),
                limit: MAX_PREPARED_BYTES,
            });
        }
        let wire_digest = wire_digest(&bytes);
        Ok(Self { request, bytes, wire_digest })
    }

    /// The decoded request.
    #[must_use]
    pub const fn request(&self) -> &PreparedRequest {
        &self.request
    }

    /// The `PreparedRequest` bytes.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The digest that decision, warrant and receipt carry.
    #[must_use]
    pub const fn wire_digest(&self) -> Digest {
        self.wire_digest
    }

    /// Where the request goes, `host:port`.
    #[must_use]
    pub fn destination(&self) -> String {
        match &self.request.request {
            Some(Request::Http(http)) => definition::destination(&http.host, http.port),
            Some(Request::Smtp(smtp)) => definition::destination(&smtp.host, smtp.port),
            Some(Request::Postgres(postgres)) => definition::destination(&postgres.host, postgres.port),
            // Unreachable: both ways to make a `Prepared` demand a request.
            None => String::new(),
        }
    }
}

/// Prepares the request that an action becomes. Equal bytes in, equal bytes out.
///
/// # Errors
/// [`PrepareError::WrongTool`], [`PrepareError::WrongDefinition`], and for arguments
/// [`PrepareError::Missing`], [`PrepareError::DoesNotFit`] or [`PrepareError::TooLarge`].
pub fn prepare(definition: &Definition, action: &FrozenAction) -> Result<Prepared, PrepareError> {
    let message = definition.message();
    let proposed = action.action();
    if proposed.tool != message.tool {
        return Err(PrepareError::WrongTool {
            action: proposed.tool.clone(),
            definition: message.tool.clone(),
        });
    }
    if proposed.tool_digest != Some(definition.digest()) {
        return Err(PrepareError::WrongDefinition);
    }
    let request = match &message.template {
        Some(Template::Http(template)) => Request::Http(http::build(template, &proposed.arguments)?),
        Some(Template::Smtp(template)) => Request::Smtp(mail::build(template, &proposed.arguments)?),
        Some(Template::Postgres(template)) => {
            Request::Postgres(postgres::build(template, message.timeout_ms, &proposed.arguments)?)
        }
        None => return Err(PrepareError::NotCanonical("the definition")),
    };
    Prepared::new(PreparedRequest {
        request: Some(request),
        credentials: message.credentials.clone(),
        idempotency_header: message.idempotency.as_ref().map_or_else(String::new, |i| i.header.clone()),
    })
}

/// Reads prepared bytes again: canonical, and of a shape that `prepare` could have made. It does
/// not prove that they belong to an action; only preparing again does.
///
/// # Errors
/// [`PrepareError::TooLarge`], [`PrepareError::NotCanonical`] or [`PrepareError::Invalid`].
pub fn verify_prepared(bytes: &[u8]) -> Result<Prepared, PrepareError> {
    if bytes.len() > MAX_PREPARED_BYTES {
        return Err(PrepareError::TooLarge {
            what: "the prepared request",
            bytes: bytes.len(),
            limit: MAX_PREPARED_BYTES,
        });
    }
    let not_canonical = || PrepareError::NotCanonical("the prepared request");
    let request = PreparedRequest::decode(bytes).map_err(|_| not_canonical())?;
    if request.encode_to_vec() != bytes {
        return Err(not_canonical());
    }
    check::prepared(&request)?;
    Prepared::new(request)
}
