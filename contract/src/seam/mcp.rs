//! The payloads of the changes `mcp_register`, `mcp_access` and `mcp_confirm`: MCP servers, and their tools for agents.
//!
//! Never contacts a server: the host does. See [`crate::seam::change`] and [`crate::seam::bounds`].

use super::change::{Mount, Packages};
use super::field::{names, text};
use super::limits::{
    ENTRIES_MAX, MANIFEST_BYTES_MAX, NAME_BYTES_MAX, PATH_BYTES_MAX, REASON_BYTES_MAX, UPLOAD_BYTES_MAX,
};
use crate::canonical::Digest;
use serde::{Deserialize, Serialize};

/// Tools of a known MCP server for one agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpAccess {
    /// Name of the server.
    pub server: String,
    /// The complete list of its tools for the agent; absent: the tools that people confirmed at the time of the proposal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
}

/// An MCP server for the catalogue: at a URL, or as a command that the host starts in a jail. People confirm its tools with an
/// `mcp_confirm`, and an agent needs an `mcp_access` to use them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpRegister {
    /// Its name.
    pub name: String,
    /// Its URL: https, or http on the loopback. Excludes `command`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Program and arguments of a server on its standard input and output. Never a line for a shell.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Software in the jail of the command.
    #[serde(default, skip_serializing_if = "Packages::is_empty")]
    pub packages: Packages,
    /// Variables of the command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<McpVariable>,
    /// Directories of the host in the jail of the command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    /// Hosts of the network that the command reaches, over connections that the host of IronClaw cannot read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<McpHost>,
    /// The only tools that people may confirm; empty: all that the server lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<McpTool>,
    /// Headers of each request to the URL; every value is a secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub headers: Vec<McpHeader>,
    /// The login of people at the URL. Excludes a header `authorization`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oauth: Option<Box<McpOauth>>,
    /// True to remove the server with all access to it. Excludes all other fields but the name.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remove: bool,
}

/// A host of the network for the command of an MCP server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpHost {
    /// Name of the host. Never a wildcard, never an address.
    pub host: String,
    /// The port; absent: 443.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Bytes that the command sends there in the time of one call; absent: the bound of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upload_bytes_max: Option<u64>,
}

/// A tool of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpTool {
    /// Its name.
    pub name: String,
    /// A description of its function.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
}

/// A header whose value is a secret of the operator.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpHeader {
    /// Name of the header, e.g. `Authorization`.
    pub name: String,
    /// Name of the secret, never its value.
    pub secret: String,
    /// A word before the value, e.g. `Bearer`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
}

/// The login at an MCP server with OAuth.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpOauth {
    /// The issuer of tokens: a URL. The host accepts no other one.
    pub issuer: String,
    /// The scopes that a login asks for; empty: those that the issuer chooses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// Id of the host as a client of the issuer; absent: the host registers itself at each login.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Name of the secret of this client, never its value; absent: the client has none. It needs a `client_id`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
}

/// A variable of the environment: with a secret of the operator, or with a text that people see.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpVariable {
    /// Name of the variable, e.g. `API_KEY`.
    pub variable: String,
    /// Name of the secret, never its value. Excludes `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The value, which is no secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// The tools that a server lists, confirmed by a person with their manifests. No call goes to a server that differs from it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpConfirm {
    /// Name of the server.
    pub server: String,
    /// Digest of the listing that the person saw.
    pub digest: Digest,
    /// Manifests in TOML for tools whose rules differ from the strictest ones; absent: the strictest for every tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<String>,
}

impl McpAccess {
    pub(super) fn within_bounds(&self) -> Result<(), String> {
        text("server", &self.server, NAME_BYTES_MAX)?;
        names("a tool", self.tools.as_deref().unwrap_or_default())
    }
}

impl McpRegister {
    pub(super) fn within_bounds(&self) -> Result<(), String> {
        let Self { name, url, command, packages, environment, mounts, hosts, tools, headers, oauth, remove } = self;
        text("name", name, NAME_BYTES_MAX)?;
        let has_of_jail = !packages.is_empty() || !environment.is_empty() || !mounts.is_empty() || !hosts.is_empty();
        let has_lists = has_of_jail || !tools.is_empty() || !headers.is_empty() || oauth.is_some();
        match (url, command.is_empty(), remove) {
            (None, true, true) if !has_lists => return Ok(()),
            (_, _, true) => return Err("remove excludes all other fields but the name".to_owned()),
            (Some(url), true, false) => text("url", url, PATH_BYTES_MAX)?,
            (None, false, false) => {}
            (Some(_), false, false) => return Err("url excludes command: name one of them".to_owned()),
            (None, true, false) => return Err("url or command is missing".to_owned()),
        }
        self.lists_within_bounds()
    }

    fn lists_within_bounds(&self) -> Result<(), String> {
        let Self { url, command, packages, environment, mounts, hosts, tools, headers, oauth, .. } = self;
        if command.len() > ENTRIES_MAX || command.iter().any(|word| word.len() > PATH_BYTES_MAX) {
            return Err(format!("command has at most {ENTRIES_MAX} words of at most {PATH_BYTES_MAX} bytes"));
        }
        if url.is_some() && !mounts.is_empty() {
            return Err("mounts need a command: a server at a URL has no jail".to_owned());
        }
        if url.is_some() && !(packages.is_empty() && environment.is_empty()) {
            return Err("packages and environment need a command: a server at a URL has no jail".to_owned());
        }
        if url.is_some() && !hosts.is_empty() {
            return Err("hosts need a command: a server at a URL has no jail".to_owned());
        }
        if url.is_none() && !headers.is_empty() {
            return Err("headers need a url: a command gets no request".to_owned());
        }
        if url.is_none() && oauth.is_some() {
            return Err("oauth needs a url: a command gets no request".to_owned());
        }
        oauth.as_ref().map_or(Ok(()), |oauth| oauth.within_bounds())?;
        super::bounds::mounts_within_bounds(mounts)?;
        packages.within_bounds()?;
        let variables: Vec<_> = environment.iter().map(|one| one.variable.clone()).collect();
        names("a variable", &variables)?;
        environment.iter().try_for_each(McpVariable::within_bounds)?;
        let host_names: Vec<_> =
            hosts.iter().map(|one| format!("{}:{}", one.host.to_lowercase(), one.port.unwrap_or(443))).collect();
        names("a host", &host_names)?;
        hosts.iter().try_for_each(McpHost::within_bounds)?;
        let tool_names: Vec<_> = tools.iter().map(|tool| tool.name.clone()).collect();
        names("a tool", &tool_names)?;
        if tools.iter().any(|tool| tool.description.len() > REASON_BYTES_MAX) {
            return Err(format!("description has at most {REASON_BYTES_MAX} bytes"));
        }
        let header_names: Vec<_> = headers.iter().map(|header| header.name.to_lowercase()).collect();
        names("a header", &header_names)?;
        headers.iter().try_for_each(|header| {
            text("secret", &header.secret, NAME_BYTES_MAX)?;
            text("scheme", header.scheme.as_deref().unwrap_or("-"), NAME_BYTES_MAX)
        })
    }
}

impl McpOauth {
    fn within_bounds(&self) -> Result<(), String> {
        text("issuer", &self.issuer, PATH_BYTES_MAX)?;
        text("client_id", self.client_id.as_deref().unwrap_or("-"), PATH_BYTES_MAX)?;
        text("client_secret", self.client_secret.as_deref().unwrap_or("-"), NAME_BYTES_MAX)?;
        names("a scope", &self.scopes)
    }
}

impl McpHost {
    fn within_bounds(&self) -> Result<(), String> {
        text("host", &self.host, NAME_BYTES_MAX)?;
        match (self.port, self.upload_bytes_max) {
            (Some(0), _) => Err("port must be 1 to 65535".to_owned()),
            (_, Some(bytes)) if !(1..=UPLOAD_BYTES_MAX).contains(&bytes) => {
                Err(format!("upload_bytes_max must be 1 to {UPLOAD_BYTES_MAX}"))
            }
            _ => Ok(()),
        }
    }
}

impl McpVariable {
    fn within_bounds(&self) -> Result<(), String> {
        match (&self.secret, &self.text) {
            (Some(secret), None) => text("secret", secret, NAME_BYTES_MAX),
            (None, Some(value)) if value.len() <= PATH_BYTES_MAX => Ok(()),
            (None, Some(_)) => Err(format!("text has at most {PATH_BYTES_MAX} bytes")),
            (None, None) | (Some(_), Some(_)) => Err("a variable has either a secret or a text".to_owned()),
        }
    }
}

impl McpConfirm {
    pub(super) fn within_bounds(&self) -> Result<(), String> {
        text("server", &self.server, NAME_BYTES_MAX)?;
        text("manifest", self.manifest.as_deref().unwrap_or("-"), MANIFEST_BYTES_MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::super::change::{Change, ChangeKind, Payload};
    use serde_json::{Value, json};

    fn register(payload: Value) -> Result<Change, String> {
        let payload = Payload::try_from(payload).expect("an object");
        Change::parse(ChangeKind::McpRegister, &payload).map_err(|error| error.to_string())
    }

    #[test]
    fn server_has_either_an_address_or_a_command() {
        assert!(register(json!({"name": "n", "url": "https://x"})).is_ok());
        assert!(register(json!({"name": "n", "command": ["server", "--stdio"]})).is_ok());
        assert!(register(json!({"name": "n", "remove": true})).is_ok());
        for (payload, word) in [
            (json!({"name": "n"}), "missing"),
            (json!({"name": "n", "url": "https://x", "command": ["server"]}), "excludes"),
            (json!({"name": "n", "url": "https://x", "remove": true}), "remove"),
            (json!({"name": "n", "remove": true, "tools": [{"name": "t"}]}), "remove"),
            (json!({"name": "n", "url": "https://x", "mounts": [{"source": "/srv"}]}), "mounts"),
            (json!({"name": "n", "command": ["s"], "headers": [{"name": "a", "secret": "b"}]}), "headers"),
            (json!({"name": "n", "url": "https://x", "packages": {"npm": ["s"]}}), "packages"),
            (
                json!({"name": "n", "url": "https://x", "environment": [{"variable": "A", "secret": "b"}]}),
                "environment",
            ),
            (json!({"name": "n", "url": "https://x", "hosts": [{"host": "a.example"}]}), "hosts"),
            (
                json!({"name": "n", "command": ["s"], "hosts": [{"host": "a.example"}, {"host": "A.example", "port": 443}]}),
                "twice",
            ),
            (json!({"name": "n", "command": ["s"], "hosts": [{"host": "a.example", "port": 0}]}), "port"),
            (json!({"name": "n", "command": ["s"], "hosts": [{"host": "a.example", "upload_bytes_max": 0}]}), "upload"),
            (json!({"name": "n", "command": ["s"], "environment": [{"variable": "A", "value": "b"}]}), "value"),
            (json!({"name": "n", "command": ["s"], "environment": [{"variable": "A"}]}), "either"),
            (
                json!({"name": "n", "command": ["s"], "environment": [{"variable": "A", "secret": "b", "text": "c"}]}),
                "either",
            ),
            (json!({"name": "n", "remove": true, "packages": {"apt": ["s"]}}), "remove"),
            (json!({"name": "n", "remove": true, "oauth": {"issuer": "https://i"}}), "remove"),
            (json!({"name": "n", "command": ["s"], "oauth": {"issuer": "https://i"}}), "oauth"),
            (json!({"name": "n", "url": "https://x", "oauth": {}}), "issuer"),
            (json!({"name": "n", "url": "https://x", "oauth": {"issuer": "https://i", "secret": "s"}}), "secret"),
            (json!({"name": "n", "command": "server --stdio"}), "sequence"),
        ] {
            let error = register(payload.clone()).expect_err("refused");
            assert!(error.contains(word), "{payload}: {error}");
        }
    }
}
