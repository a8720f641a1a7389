//! The hosts of the network that the command of an MCP server reaches.
//!
//! Each is a tunnel: the gateway passes the connections of the command on, and cannot read them. See [`crate::reach::jail_network`].

use ironclaw_contract::seam::change::McpHost;
use ironclaw_judge::egress::{Commands, Grant, GrantError, GrantText, Loopback};

/// Returns the grant of each host.
///
/// # Errors
/// The first host that no jail may reach.
pub fn grants(hosts: &[McpHost], loopback: Loopback) -> Result<Vec<Grant>, GrantError> {
    let grant = |one: &McpHost| {
        let McpHost { host, port, upload_bytes_max } = one.clone();
        let text = GrantText { host, port, upload_bytes_max, commands: Some(Commands::Tunnel), ..GrantText::default() };
        Grant::check(&text, loopback)
    };
    hosts.iter().map(grant).collect()
}

/// Writes the hosts in full: the canonical name, the port unless it is 443, and the bound. They are sorted.
///
/// # Errors
/// The same as [`grants`].
pub fn complete(hosts: &[McpHost], loopback: Loopback) -> Result<Vec<McpHost>, GrantError> {
    let written = |grant: &Grant| {
        let GrantText { host, port, upload_bytes_max, .. } = grant.text();
        McpHost { host, port, upload_bytes_max }
    };
    let mut all: Vec<McpHost> = grants(hosts, loopback)?.iter().map(written).collect();
    all.sort_by(|one, other| (&one.host, one.port).cmp(&(&other.host, other.port)));
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(name: &str, port: Option<u16>) -> McpHost {
        McpHost { host: name.to_owned(), port, upload_bytes_max: None }
    }

    #[test]
    fn hosts_are_written_in_full_and_sorted() {
        let hosts = [host("B.example", Some(443)), host("a.example", Some(8443))];
        let complete = complete(&hosts, Loopback::Refused).expect("hosts");
        let bound = Some(64 << 10);
        assert_eq!(
            complete,
            [
                McpHost { host: "a.example".to_owned(), port: Some(8443), upload_bytes_max: bound },
                McpHost { host: "b.example".to_owned(), port: None, upload_bytes_max: bound },
            ]
        );
    }

    #[test]
    fn host_that_no_jail_may_reach_is_refused() {
        for (name, port) in [
            ("*.example", None),
            ("192.0.2.1", None),
            ("localhost", Some(8443)),
            ("a.example", Some(53)),
            ("a b", None),
        ] {
            assert!(grants(&[host(name, port)], Loopback::Refused).is_err(), "{name}");
        }
    }
}
