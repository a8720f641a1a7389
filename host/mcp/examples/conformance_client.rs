//! A client for the published conformance tests of the protocol.
//!
//! `conformance_client URL` lists the tools of a server and calls each once, with a number for each argument. It ends with an error if
//! the server does not answer.

use ironclaw_mcp::{CallLimits, Client, Limits};
use reqwest::header::HeaderMap;
use serde_json::{Map, Value, json};
use std::env;
use std::error::Error;
use std::time::Duration;

/// The number in the arguments.
const NUMBER: u64 = 2;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    // An error means that a provider is installed already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let url = env::args().next_back().ok_or("the URL of the server is missing")?.parse()?;
    let http = reqwest::Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).tls_certs_only([]);
    let http = http.retry(reqwest::retry::never()).build()?;
    let client = Client::over_http(url, HeaderMap::new(), http, Limits::default()).await?;
    for tool in client.list().await?.tools {
        let properties = tool.input_schema().get("properties").and_then(Value::as_object);
        let arguments: Map<_, _> =
            properties.into_iter().flat_map(Map::keys).map(|name| (name.clone(), json!(NUMBER))).collect();
        let limits = CallLimits { whole: Duration::from_secs(10), ..CallLimits::default() };
        client.call(&tool.name, arguments, limits).await?;
    }
    client.close().await;
    Ok(())
}
