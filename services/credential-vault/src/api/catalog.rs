//! `CatalogService`, the operators' door.

use std::sync::Arc;

use exequatur_catalog_server::catalog_service_server::CatalogService;
use exequatur_fault::Fault;
use exequatur_proto::credential::v1::{
    AllowResealRequest, AllowResealResponse, Credential, GetCredentialRequest, GetCredentialResponse,
    ListCredentialsRequest, ListCredentialsResponse, Pin as ProtoPin, PinToolRequest, PinToolResponse,
    PutCredentialRequest, PutCredentialResponse, RemoveCredentialRequest, RemoveCredentialResponse,
    SealedValue, VaultSource,
};
use exequatur_service::{Caller, caller};
use prost::Message as _;
use tonic::{Request, Response, Status};

use crate::app::{App, Call};
use crate::store::{Backend, Entry};

/// The service over the use cases.
pub struct Catalog(pub Arc<App>);

const DEFAULT_PAGE: u32 = 50;
const MAX_PAGE: u32 = 200;

fn call(method: &'static str, caller: &Caller) -> Call {
    Call { method, caller: caller.id.clone() }
}

#[tonic::async_trait]
impl CatalogService for Catalog {
    async fn get_credential(
        &self,
        request: Request<GetCredentialRequest>,
    ) -> Result<Response<GetCredentialResponse>, Status> {
        let caller = caller(&request)?;
        let call = call("/exequatur.credential.v1.CatalogService/GetCredential", &caller);
        let r = request.get_ref();
        let tenant = self.0.answer(&call, caller.tenant(&r.tenant)).await?;
        // Whether there is an entry is an ordinary question before the first put: no refusal to record.
        let entry = self.0.entry(tenant, &r.credential).await?;
        Ok(Response::new(GetCredentialResponse { credential: Some(shown(entry)) }))
    }

    async fn put_credential(
        &self,
        request: Request<PutCredentialRequest>,
    ) -> Result<Response<PutCredentialResponse>, Status> {
        let caller = caller(&request)?;
        let call = call("/exequatur.credential.v1.CatalogService/PutCredential", &caller);
        let r = request.get_ref();
        let result = match caller.tenant(&r.tenant) {
            Ok(tenant) => {
                let (value, vault) = (r.value.as_ref(), r.vault.as_ref());
                self.0.put(&caller.id, tenant, &r.credential, r.version, value, vault).await
            }
            Err(fault) => Err(fault),
        };
        self.0.answer(&call, result).await?;
        Ok(Response::new(PutCredentialResponse { version: r.version }))
    }

    async fn allow_reseal(
        &self,
        request: Request<AllowResealRequest>,
    ) -> Result<Response<AllowResealResponse>, Status> {
        let caller = caller(&request)?;
        let call = call("/exequatur.credential.v1.CatalogService/AllowReseal", &caller);
        let r = request.get_ref();
        let result = match caller.tenant(&r.tenant) {
            Ok(tenant) => self.0.allow_reseal(&caller.id, tenant, &r.credential, &r.kid).await,
            Err(fault) => Err(fault),
        };
        let expires_at = self.0.answer(&call, result).await?;
        Ok(Response::new(AllowResealResponse { expires_at: Some(expires_at.to_proto()) }))
    }

    async fn list_credentials(
        &self,
        request: Request<ListCredentialsRequest>,
    ) -> Result<Response<ListCredentialsResponse>, Status> {
        let caller = caller(&request)?;
        let call = call("/exequatur.credential.v1.CatalogService/ListCredentials", &caller);
        let r = request.get_ref();
        let tenant = self.0.answer(&call, caller.tenant(&r.tenant)).await?;
        let size = match r.page_size {
            0 => DEFAULT_PAGE,
            size @ 1..=MAX_PAGE => size,
            _ => {
                let bad = Err(Fault::field("page_size", "a page has 1..200 entries"));
                return Ok(self.0.answer(&call, bad).await?);
            }
        };
        // The token is the last name: names of another tenant cannot be reached with it.
        let mut entries = self.0.entries(tenant, &r.page_token, size.saturating_add(1)).await?;
        let more = entries.len() > usize::try_from(size).unwrap_or(usize::MAX);
        if more {
            entries.pop();
        }
        let next_page_token =
            entries.last().filter(|_| more).map(|e| e.credential.clone()).unwrap_or_default();
        let credentials = entries.into_iter().map(shown).collect();
        Ok(Response::new(ListCredentialsResponse { credentials, next_page_token }))
    }

    async fn remove_credential(
        &self,
        request: Request<RemoveCredentialRequest>,
    ) -> Result<Response<RemoveCredentialResponse>, Status> {
        let caller = caller(&request)?;
        let call = call("/exequatur.credential.v1.CatalogService/RemoveCredential", &caller);
        let r = request.get_ref();
        let result = match caller.tenant(&r.tenant) {
            Ok(tenant) => self.0.remove(&caller.id, tenant, &r.credential).await,
            Err(fault) => Err(fault),
        };
        self.0.answer(&call, result).await?;
        Ok(Response::new(RemoveCredentialResponse {}))
    }

    async fn pin_tool(&self, request: Request<PinToolRequest>) -> Result<Response<PinToolResponse>, Status> {
        let caller = caller(&request)?;
        let call = call("/exequatur.credential.v1.CatalogService/PinTool", &caller);
        let r = request.get_ref();
        let result = match caller.tenant(&r.tenant) {
            Ok(tenant) => self.0.pin(&caller.id, tenant, r.definition.as_ref()).await,
            Err(fault) => Err(fault),
        };
        let digest = self.0.answer(&call, result).await?;
        Ok(Response::new(PinToolResponse { digest: digest.to_vec() }))
    }
}

fn shown(entry: Entry) -> Credential {
    let pin = |pin: crate::store::Pin| ProtoPin {
        tool: pin.tool,
        tool_digest: pin.tool_digest,
        destination: pin.destination,
        attestation: pin.attestation,
    };
    // Written by this zone, so it reads back.
    let (vault, kid) = match &entry.newest {
        Some((Backend::Vault, bytes)) => (VaultSource::decode(bytes.as_slice()).ok(), String::new()),
        Some((Backend::Sealed, bytes)) => {
            (None, SealedValue::decode(bytes.as_slice()).map(|value| value.kid).unwrap_or_default())
        }
        None => (None, String::new()),
    };
    Credential {
        credential: entry.credential,
        version: entry.version,
        pins: entry.pins.into_iter().map(pin).collect(),
        updated_at: Some(entry.updated_at.to_proto()),
        vault,
        kid,
    }
}
