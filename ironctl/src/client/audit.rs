//! The requests about the ledger.
//!
//! Verifies nothing; `ironclaw-host` does that offline. See `commands::audit`.

use super::{Client, parse, to_body};
use crate::failure::Error;
use hyper::Method;
use ironclaw_contract::operator::{AcceptBreak, BreakAccepted, LedgerHead, Rotated};
use std::time::Duration;

/// Time for the archive of a chain of millions of entries.
const ROTATE_TIMEOUT: Duration = Duration::from_secs(300);

impl Client {
    /// Returns the signed head of the ledger.
    pub async fn ledger_head(&self) -> Result<LedgerHead, Error> {
        self.get("audit/head").await
    }

    /// Closes the chain of the ledger and begins the next.
    pub async fn rotate_ledger(&self) -> Result<Rotated, Error> {
        parse(&self.ask(Method::POST, "audit/rotate", None, ROTATE_TIMEOUT).await?)
    }

    /// Accepts that the ledger differs from heads or archives.
    pub async fn accept_break(&self, reason: String) -> Result<BreakAccepted, Error> {
        let body = to_body(&AcceptBreak { reason })?;
        parse(&self.ask(Method::POST, "audit/accept", Some(body), ROTATE_TIMEOUT).await?)
    }
}
