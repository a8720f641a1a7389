//! The addresses of the local network on a page: their sentences, and the facts that an approval is bound to.
//!
//! Never looks a name up. See [`crate::registry::local_network`].

use crate::gateway::review_page::effects::Effects;
use serde_json::{Value, json};
use std::net::IpAddr;

/// The name of the addresses among the facts.
const ADDRESSES: &str = "addresses";

/// Adds the addresses of a host to the facts of its change; a host of the public Internet has none.
pub(super) fn add(facts: &mut Value, addresses: &[IpAddr]) {
    if !addresses.is_empty() {
        facts[ADDRESSES] = json!(addresses);
    }
}

/// Returns the addresses among the facts of a change.
pub(in crate::gateway) fn addresses(facts: &Value) -> Vec<IpAddr> {
    serde_json::from_value(facts[ADDRESSES].clone()).unwrap_or_default()
}

/// Warns about a host of the local network; `host` is safe text, and `secrets` are those that its requests carry.
pub(super) fn put(page: &mut Effects<'_>, host: &str, is_plain: bool, secrets: &[&str]) {
    let shown: Vec<String> = addresses(page.facts).iter().map(ToString::to_string).collect();
    if shown.is_empty() {
        return;
    }
    let shown = shown.join(", ");
    page.warn(format!("LOCAL NETWORK: {host} has the private address {shown}. Requests go there alone."));
    if is_plain {
        page.warn("PLAIN HTTP: machines on the way can read and change each request and each answer.".to_owned());
        for secret in secrets {
            let secret = page.show(secret);
            page.warn(format!("SECRET {secret} goes over PLAIN HTTP: machines on the way can read it."));
        }
    }
}
