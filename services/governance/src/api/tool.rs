//! `ToolService`.

use std::sync::Arc;

use exequatur_fault::Fault;
use exequatur_proto::statement::v1::Envelope;
use exequatur_proto::tool::v1::{
    ApplyToolRequest, ApplyToolResponse, GetToolRequest, GetToolResponse, ListToolsRequest,
    ListToolsResponse, Tool,
};
use exequatur_service::{Caller, caller};
use exequatur_tool_server::tool_service_server::ToolService;
use prost::Message as _;
use tonic::{Request, Response, Status};

use super::{call, cut, page_size};
use crate::app::{App, covers};
use crate::store::ToolRow;

/// The service over the use cases.
pub struct Tools(pub Arc<App>);

#[tonic::async_trait]
impl ToolService for Tools {
    async fn apply_tool(
        &self,
        request: Request<ApplyToolRequest>,
    ) -> Result<Response<ApplyToolResponse>, Status> {
        let caller = caller(&request)?;
        let r = request.get_ref();
        let call = call("/exequatur.tool.v1.ToolService/ApplyTool", &caller, &r.tenant);
        let result =
            async { self.0.apply_tool(&caller.id, caller.tenant(&r.tenant)?, r.definition.as_ref()).await };
        let (tool, digest) = self.0.answer(&call, result.await).await?;
        Ok(Response::new(ApplyToolResponse { tool, digest: digest.to_vec() }))
    }

    async fn get_tool(&self, request: Request<GetToolRequest>) -> Result<Response<GetToolResponse>, Status> {
        let caller = caller(&request)?;
        let r = request.get_ref();
        let row = self.0.tool(caller.tenant(&r.tenant)?, &r.tool).await?;
        if !sees(&caller, &row) {
            return Err(Fault::not_found("tool", &r.tool).into());
        }
        Ok(Response::new(GetToolResponse { tool: Some(shown(row)?) }))
    }

    async fn list_tools(
        &self,
        request: Request<ListToolsRequest>,
    ) -> Result<Response<ListToolsResponse>, Status> {
        let caller = caller(&request)?;
        let r = request.get_ref();
        let size = page_size(r.page_size)?;
        let mut rows = self.0.tools(caller.tenant(&r.tenant)?, &r.page_token, size + 1).await?;
        let more = cut(&mut rows, size);
        let next_page_token = rows.last().filter(|_| more).map(|t| t.tool.clone()).unwrap_or_default();
        rows.retain(|row| sees(&caller, row));
        let tools = rows.into_iter().map(shown).collect::<Result<_, Fault>>()?;
        Ok(Response::new(ListToolsResponse { tools, next_page_token }))
    }
}

/// An agent sees what its run may call.
fn sees(caller: &Caller, row: &ToolRow) -> bool {
    caller.run.as_ref().is_none_or(|claims| covers(&claims.scopes, &row.tool))
}

fn shown(row: ToolRow) -> Result<Tool, Fault> {
    let definition = Envelope::decode(row.definition.as_slice()).map_err(Fault::internal)?;
    Ok(Tool { tool: row.tool, digest: row.digest, definition: Some(definition) })
}
