//! `RunService`.

use std::sync::Arc;

use exequatur_canonical::Digest;
use exequatur_clock::UnixMillis;
use exequatur_lifecycle::Run as State;
use exequatur_proto::run::v1::{
    GetJwksRequest, GetJwksResponse, GetRunRequest, GetRunResponse, ListRunsRequest, ListRunsResponse,
    RenewRunTokenRequest, RenewRunTokenResponse, RevokeRunRequest, RevokeRunResponse, Run, RunState,
    StartRunRequest, StartRunResponse,
};
use exequatur_run_server::run_service_server::RunService;
use exequatur_service::caller;
use prost::Message as _;
use tonic::{Request, Response, Status};

use super::{call, cut, duration, page_size};
use crate::app::{App, Start};
use crate::store::RunRow;

/// The service over the use cases.
pub struct Runs(pub Arc<App>);

#[tonic::async_trait]
impl RunService for Runs {
    async fn start_run(
        &self,
        request: Request<StartRunRequest>,
    ) -> Result<Response<StartRunResponse>, Status> {
        let caller = caller(&request)?;
        let r = request.get_ref();
        let call = call("/exequatur.run.v1.RunService/StartRun", &caller, &r.tenant);
        let result = async {
            let start = Start {
                tenant: caller.tenant(&r.tenant)?.to_owned(),
                agent: r.agent.clone(),
                scopes: r.scopes.clone(),
                ttl: duration("ttl", r.ttl.as_ref())?,
                token_ttl: duration("token_ttl", r.token_ttl.as_ref())?,
                owner: r.owner.clone(),
                idempotency_key: r.idempotency_key.clone(),
                body: Digest::sha256(&r.encode_to_vec()),
            };
            self.0.start_run(&caller, start).await
        };
        let minted = self.0.answer(&call, result.await).await?;
        Ok(Response::new(StartRunResponse {
            run: Some(shown(&minted.run)),
            token: minted.token,
            token_expires_at: Some(minted.expires_at.to_proto()),
        }))
    }

    async fn renew_run_token(
        &self,
        request: Request<RenewRunTokenRequest>,
    ) -> Result<Response<RenewRunTokenResponse>, Status> {
        let caller = caller(&request)?;
        let r = request.get_ref();
        let call = call("/exequatur.run.v1.RunService/RenewRunToken", &caller, &r.tenant);
        let result = async {
            let tenant = caller.tenant(&r.tenant)?;
            self.0.renew(&caller, tenant, &r.run, duration("token_ttl", r.token_ttl.as_ref())?).await
        };
        let minted = self.0.answer(&call, result.await).await?;
        Ok(Response::new(RenewRunTokenResponse {
            token: minted.token,
            token_expires_at: Some(minted.expires_at.to_proto()),
        }))
    }

    async fn revoke_run(
        &self,
        request: Request<RevokeRunRequest>,
    ) -> Result<Response<RevokeRunResponse>, Status> {
        let caller = caller(&request)?;
        let r = request.get_ref();
        let call = call("/exequatur.run.v1.RunService/RevokeRun", &caller, &r.tenant);
        let result = async { self.0.revoke(&caller, caller.tenant(&r.tenant)?, &r.run, &r.reason).await };
        let revoked = self.0.answer(&call, result.await).await?;
        Ok(Response::new(RevokeRunResponse { revoked }))
    }

    async fn get_run(&self, request: Request<GetRunRequest>) -> Result<Response<GetRunResponse>, Status> {
        let caller = caller(&request)?;
        let r = request.get_ref();
        let run = self.0.run(caller.tenant(&r.tenant)?, &r.run).await?;
        Ok(Response::new(GetRunResponse { run: Some(shown(&run)) }))
    }

    async fn list_runs(
        &self,
        request: Request<ListRunsRequest>,
    ) -> Result<Response<ListRunsResponse>, Status> {
        let caller = caller(&request)?;
        let r = request.get_ref();
        let size = page_size(r.page_size)?;
        let mut runs = self.0.runs(caller.tenant(&r.tenant)?, &r.page_token, size + 1).await?;
        let more = cut(&mut runs, size);
        let next_page_token = runs.last().filter(|_| more).map(|r| r.run.clone()).unwrap_or_default();
        Ok(Response::new(ListRunsResponse { runs: runs.iter().map(shown).collect(), next_page_token }))
    }

    async fn get_jwks(&self, _request: Request<GetJwksRequest>) -> Result<Response<GetJwksResponse>, Status> {
        Ok(Response::new(GetJwksResponse { jwks: self.0.jwks() }))
    }
}

fn shown(run: &RunRow) -> Run {
    let state = match run.state {
        State::Active => RunState::Active,
        State::Completed => RunState::Completed,
        State::Cancelled => RunState::Cancelled,
        State::Expired => RunState::Expired,
        State::Revoked => RunState::Revoked,
    };
    let at = |t: UnixMillis| Some(t.to_proto());
    Run {
        run: run.run.clone(),
        tenant: run.tenant.clone(),
        agent: run.agent.clone(),
        owner: run.owner.clone(),
        scopes: run.scopes.clone(),
        state: state.into(),
        expires_at: at(run.expires_at),
        parent: run.parent.clone(),
        started_at: at(run.started_at),
    }
}
