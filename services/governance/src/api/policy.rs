//! `PolicyService`.

use std::sync::Arc;

use exequatur_policy_server::policy_service_server::PolicyService;
use exequatur_proto::policy::v1::{
    ApplyRuleSetRequest, ApplyRuleSetResponse, GetRuleSetRequest, GetRuleSetResponse,
};
use exequatur_service::caller;
use tonic::{Request, Response, Status};

use super::call;
use crate::app::App;

/// The service over the use cases.
pub struct Policies(pub Arc<App>);

#[tonic::async_trait]
impl PolicyService for Policies {
    async fn apply_rule_set(
        &self,
        request: Request<ApplyRuleSetRequest>,
    ) -> Result<Response<ApplyRuleSetResponse>, Status> {
        let caller = caller(&request)?;
        let r = request.get_ref();
        let call = call("/exequatur.policy.v1.PolicyService/ApplyRuleSet", &caller, &r.tenant);
        let result =
            async { self.0.apply_rule_set(&caller.id, caller.tenant(&r.tenant)?, &r.rule_set).await };
        let digest = self.0.answer(&call, result.await).await?;
        Ok(Response::new(ApplyRuleSetResponse { digest: digest.to_vec() }))
    }

    async fn get_rule_set(
        &self,
        request: Request<GetRuleSetRequest>,
    ) -> Result<Response<GetRuleSetResponse>, Status> {
        let caller = caller(&request)?;
        let (digest, rule_set) = self.0.rule_set(caller.tenant(&request.get_ref().tenant)?).await?;
        Ok(Response::new(GetRuleSetResponse { rule_set, digest }))
    }
}
