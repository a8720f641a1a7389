//! The requests about allowances.
//!
//! Adds one only with the digest of its page. See `commands::allowance`.

use super::{Client, REQUEST_TIMEOUT, parse, segment};
use crate::failure::Error;
use hyper::Method;
use ironclaw_contract::operator::{Allowance, AllowanceDraft, AllowanceOffer, AllowancePage, NewAllowance};

impl Client {
    /// Returns the allowances that the caller may see, optionally of one agent.
    pub async fn allowances(&self, agent: Option<&str>) -> Result<Vec<Allowance>, Error> {
        let agent = agent.map(|agent| format!("?agent={}", segment(agent))).unwrap_or_default();
        self.get(&format!("allowances{agent}")).await
    }

    /// Returns one allowance.
    pub async fn allowance(&self, id: &str) -> Result<Allowance, Error> {
        self.get(&format!("allowances/{}", segment(id))).await
    }

    /// Returns the allowances that the caller's own decisions suggest.
    pub async fn allowance_offers(&self) -> Result<Vec<AllowanceOffer>, Error> {
        self.get("allowances/offers").await
    }

    /// Returns the page of a new allowance. Records nothing.
    pub async fn review_allowance(&self, draft: &AllowanceDraft) -> Result<AllowancePage, Error> {
        self.post("allowances/review", draft).await
    }

    /// Adds an allowance exactly as shown.
    pub async fn add_allowance(&self, new: &NewAllowance) -> Result<Allowance, Error> {
        self.post("allowances", new).await
    }

    /// Removes an allowance.
    pub async fn remove_allowance(&self, id: &str) -> Result<Allowance, Error> {
        let path = format!("allowances/{}", segment(id));
        parse(&self.ask(Method::DELETE, &path, None, REQUEST_TIMEOUT).await?)
    }
}
