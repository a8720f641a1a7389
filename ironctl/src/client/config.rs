//! The request that makes the host read its settings again.
//!
//! Never reads the files itself. See `commands::config`.

use super::{Client, REQUEST_TIMEOUT, parse};
use crate::failure::Error;
use hyper::Method;
use ironclaw_contract::operator::Reloaded;

impl Client {
    /// Makes the host read its settings and its policy again.
    pub async fn reload_config(&self) -> Result<Reloaded, Error> {
        parse(&self.ask(Method::POST, "config/reload", None, REQUEST_TIMEOUT).await?)
    }
}
