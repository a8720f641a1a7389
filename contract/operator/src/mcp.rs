//! MCP servers over the API: the catalogue, and the table of a server's tools that people confirm.

use super::agents::{AgentMount, AgentPackages, OwnSource};
use super::calls::ToolArgument;
use super::judgement::Class;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::seam::seal::Label;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The effect of a tool in the strictest manifest. No word of the server is part of it.
pub const MCP_EFFECT: &str = "gives the server every argument below";

/// The end of the name of an issuer in a registration that accepts an issuer which does not announce S256. The name of an issuer has no
/// fragment (RFC 8414, section 2), so this end is part of no name.
pub const UNANNOUNCED_S256: &str = "#s256-unannounced";

ironclaw_contract::words! {
    /// The way to an MCP server.
    pub enum McpTransport {
        /// The host asks it at a URL.
        Http = "http",
        /// The host starts its command.
        Stdio = "stdio",
    }

    /// The place of a server between its registration and the calls of its tools.
    pub enum McpServerState {
        /// The host has no listing of it.
        New = "new",
        /// People did not confirm its listing.
        Proposed = "proposed",
        /// It lists what people confirmed.
        Confirmed = "confirmed",
        /// It lists something else than people confirmed.
        Changed = "changed",
    }

    /// The listing of a tool beside the confirmed one.
    pub enum McpListed {
        /// The two are equal.
        Same = "same",
        /// People did not confirm the tool.
        New = "new",
        /// The two differ.
        Changed = "changed",
        /// The server no longer lists the tool.
        Gone = "gone",
    }

    /// The reason why no agent can get a tool that a server lists.
    pub enum McpUnfitReason {
        /// Its entry of the listing is no object.
        Entry = "entry",
        /// Its name is missing, too long, or has control characters.
        Name = "name",
        /// The server lists its name twice.
        Twice = "twice",
        /// A model would know it by the name of another tool.
        NameTaken = "name_taken",
        /// The schema of its arguments cannot be used.
        Schema = "schema",
        /// Its description is too long.
        Description = "description",
        /// The host cannot read its entry: it is too large, nested too deeply, or no JSON.
        Unreadable = "unreadable",
    }

    /// The state of a login at an MCP server.
    pub enum McpLoginState {
        /// The host has a token.
        Active = "active",
        /// A person has to log in.
        Needed = "needed",
    }
}

/// One server of the catalogue: `GET /v1/mcp`, `GET /v1/mcp/{server}`, and the answer of `POST /v1/mcp/{server}/look`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct McpServer {
    /// Its name.
    pub name: String,
    /// The way to it.
    pub transport: McpTransport,
    /// Its URL; empty for a command.
    pub url: String,
    /// Program and arguments of a server that the host starts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Software in the jail of the command, with its layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packages: Option<AgentPackages>,
    /// Variables of the command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<McpServerVariable>,
    /// Directories of the host in the jail of the command.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<AgentMount>,
    /// Hosts of the network that the command reaches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<McpServerHost>,
    /// `new`: the host has no listing of it. `proposed`: people did not confirm the listing. `confirmed`: it lists what people confirmed.
    /// `changed`: it lists something else than people confirmed.
    pub state: McpServerState,
    /// The form of its protocol, from its last listing: `session stateless`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub era: Option<String>,
    /// Digest of its last listing, for a confirmation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<Digest>,
    /// Its instructions to clients, from its last listing. No model gets them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// The tools of its last listing, and confirmed ones that it no longer lists.
    pub tools: Vec<McpServerTool>,
    /// Remarks of the host about its last listing, such as pages that it could not read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// The reason why no tool of the last listing can be confirmed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Headers of each request to it.
    pub headers: Vec<McpServerHeader>,
    /// The login at it, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub login: Option<McpServerLogin>,
    /// The agents that may call some of its tools.
    pub agents: Vec<McpHolder>,
    /// The confirmed manifests, TOML.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<String>,
    /// Manifests for its last listing that people may confirm, TOML: those of unchanged tools are the confirmed ones. Empty without a tool
    /// that agents can get.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub proposed: String,
    /// The time of its last registration, RFC 3339.
    pub made_at: String,
    /// The time of its last listing, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seen_at: Option<String>,
    /// The time of the last confirmation, RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confirmed_at: Option<String>,
    /// The reason why the host cannot reach it now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// A tool of an MCP server, with the rules for its calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct McpServerTool {
    /// Its name on the server; empty if it has none.
    pub name: String,
    /// Its name for a model; absent if it cannot be offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offered_as: Option<String>,
    /// Its description, which the server wrote.
    pub description: String,
    /// The class of its calls; null without a manifest.
    pub class: Option<Class>,
    /// The rule of each argument, by name.
    pub arguments: BTreeMap<String, ToolArgument>,
    /// Labels of its results.
    pub labels: Vec<Label>,
    /// The parts of its manifest that are less strict than the strictest one.
    pub loosened: Vec<String>,
    /// True if every call needs a person.
    pub always_asks: bool,
    /// The declaration of a person that texts in its answers are theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mine: Option<OwnSource>,
    /// Its listing beside the confirmed one.
    pub listed: McpListed,
    /// The reason why no agent can get it; absent if agents can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfit: Option<McpUnfit>,
}

/// The reason why no agent can get a tool. The other tools of its server are not concerned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct McpUnfit {
    /// The kind of the reason.
    pub reason: McpUnfitReason,
    /// The reason in words, which can quote the server.
    pub words: String,
}

/// A header whose value is a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct McpServerHeader {
    /// Name of the header.
    pub name: String,
    /// Name of the secret, never its value.
    pub secret: String,
    /// The word before the value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scheme: Option<String>,
}

/// A host of the network that the command of a server reaches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct McpServerHost {
    /// Its name.
    pub host: String,
    /// The port; absent: 443.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// Bytes that the command sends there in the time of one call.
    pub upload_bytes_max: u64,
}

/// The login at an MCP server with OAuth.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct McpServerLogin {
    /// The issuer that people approved.
    pub issuer: String,
    /// True if people accepted that the issuer does not announce S256.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub accepts_unannounced_s256: bool,
    /// The scopes that a login asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub scopes: Vec<String>,
    /// Id of the host as a client of the issuer; absent: the host registers itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Name of the secret of this client; absent: it has none of the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_secret: Option<String>,
    /// `active`: the host has a token. `needed`: a person has to log in.
    pub state: McpLoginState,
    /// The reason why the last login ended, or why the last renewal of its token failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The end of the present token, RFC 3339; absent if the issuer names none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<String>,
}

/// `POST /v1/mcp/{server}/login`: begins a login.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewMcpLogin {
    /// The address to which the issuer sends the browser: `http://127.0.0.1:PORT/callback`.
    pub redirect_uri: String,
}

/// A login that waits for a person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct McpLoginBegun {
    /// The issuer that people approved.
    pub issuer: String,
    /// The page of the issuer, for a browser.
    pub url: String,
    /// The end of the wait, RFC 3339.
    pub expires_at: String,
}

/// `POST /v1/mcp/{server}/login/finish`: completes a login.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct McpLoginAnswer {
    /// The whole address to which the issuer sent the browser.
    pub address: String,
}

impl fmt::Debug for McpLoginAnswer {
    /// Never shows the address, which has a code.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("McpLoginAnswer").finish_non_exhaustive()
    }
}

/// `POST /v1/mcp-commands/resolve`: a command of a configuration file of another host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct McpCommand {
    /// Program and arguments, such as `npx -y NAME@latest`.
    pub command: Vec<String>,
}

/// A command in the form of a registration.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct McpResolvedCommand {
    /// Program and arguments in the jail of the server.
    pub command: Vec<String>,
    /// Packages of npm, each `NAME@VERSION`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub npm: Vec<String>,
    /// Packages of pypi, each `NAME==VERSION`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pypi: Vec<String>,
    /// The programs of the package, if its program has another name than the package.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
}

/// A variable of the environment: with a secret, or with a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct McpServerVariable {
    /// Name of the variable.
    pub variable: String,
    /// Name of the secret, never its value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// The value, which is no secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// An agent that may call tools of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct McpHolder {
    /// Name of the agent.
    pub agent: String,
    /// Names of the tools.
    pub tools: Vec<String>,
}

/// `POST /v1/mcp/{server}/look`: asks the server for its listing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct McpLook {
    /// Manifests in TOML for the table of the answer; absent: the proposed ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub manifest: Option<String>,
}
