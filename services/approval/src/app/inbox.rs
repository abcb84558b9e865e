//! What a reviewer sees: approvals of their tenants with all frozen bytes. Others do not exist for them.

use std::collections::HashSet;

use exequatur_fault::Fault;
use exequatur_proto::approval::v1::{Approval, ApprovalAction, ApprovalState, ItemState};
use exequatur_proto::statement::v1::Envelope;
use exequatur_service::{Caller, Tenants};
use prost::Message as _;

use super::App;
use super::change::item_state;
use crate::store::{Card, Page};

/// Bytes of a page; one approval is always in.
const MAX_PAGE_BYTES: usize = 3 * 1024 * 1024;

/// Which page.
#[derive(Debug, Clone, Default)]
pub struct ListRequest {
    /// 1..100; 0: 20.
    pub page_size: u32,
    /// From the answer before.
    pub page_token: String,
    /// Only this state.
    pub state: Option<ApprovalState>,
}

impl App {
    /// A page of approvals, newest first, and the token of the next page.
    ///
    /// # Errors
    /// `INVALID_FIELD`.
    pub async fn list(
        &self,
        caller: &Caller,
        request: &ListRequest,
    ) -> Result<(Vec<Approval>, String), Fault> {
        let size = match request.page_size {
            0 => 20,
            size @ 1..=100 => size,
            _ => return Err(Fault::field("page_size", "use 1..100")),
        };
        let before = match request.page_token.as_str() {
            "" => None,
            token if uuid::Uuid::parse_str(token).is_ok() => Some(token.to_owned()),
            _ => return Err(Fault::field("page_token", "use the token of the answer before, or none")),
        };
        self.expire_due().await?;
        let Tenants::Only(tenants) = caller.tenants.clone() else {
            return Err(Fault::internal("a reviewer's tenants are always listed"));
        };
        let page = Page { tenants, state: request.state, before, limit: size + 1 };
        let cards = self.rows.page(&page).await?;
        let mut approvals = Vec::new();
        let mut bytes = 0;
        let wanted = usize::try_from(size).map_err(Fault::internal)?;
        let mut more = false;
        for card in &cards {
            let approval = self.show(card).await?;
            bytes += approval.encoded_len();
            if approvals.len() == wanted || (bytes > MAX_PAGE_BYTES && !approvals.is_empty()) {
                more = true;
                break;
            }
            approvals.push(approval);
        }
        let last = approvals.last().map(|a: &Approval| a.approval.clone()).unwrap_or_default();
        Ok((approvals, if more { last } else { String::new() }))
    }

    /// One approval.
    ///
    /// # Errors
    /// `NOT_FOUND`, also where it is another tenant's.
    pub async fn get(&self, caller: &Caller, approval: &str) -> Result<Approval, Fault> {
        self.expire_due().await?;
        let card = self.rows.card(approval).await?.filter(|c| caller.tenants.contains(&c.approval.tenant));
        match card {
            Some(card) => self.show(&card).await,
            None => Err(Fault::not_found("approval", approval)),
        }
    }

    /// The card as it goes to a reviewer's client, which computes every digest itself.
    pub(crate) async fn show(&self, card: &Card) -> Result<Approval, Fault> {
        let a = &card.approval;
        let mut actions = Vec::with_capacity(card.actions.len());
        let (mut definitions, mut tools) = (HashSet::new(), HashSet::new());
        for row in &card.actions {
            let item = card.items.iter().find(|i| i.index == row.index);
            let last = if row.held && tools.insert(&row.tool) {
                self.rows.last_approved(&a.tenant, &a.agent, &row.tool, &a.approval).await?
            } else {
                None
            };
            let definition = definitions
                .insert(&row.definition)
                .then(|| Envelope::decode(row.definition.as_slice()))
                .transpose()
                .map_err(Fault::internal)?;
            actions.push(ApprovalAction {
                index: row.index,
                action: row.action.clone(),
                definition,
                wire_digest: row.wire_digest.clone(),
                held: row.held,
                rule: row.rule.clone(),
                state: item.map_or(ItemState::Unspecified, |i| item_state(i.state)).into(),
                last_approved: last.unwrap_or_default(),
            });
        }
        Ok(Approval {
            approval: a.approval.clone(),
            state: a.state.into(),
            header: a.header.clone(),
            actions,
            opened_at: Some(a.opened_at.to_proto()),
            expires_at: a.expires_at.map(exequatur_clock::UnixMillis::to_proto),
            quorum: a.quorum,
            rule_set_digest: a.rule_set_digest.clone(),
        })
    }
}
