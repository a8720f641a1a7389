//! The shapes of MCP servers.

use super::{Shape, shape, shape_by_bytes};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::seam::seal::Label;
use ironclaw_operator::{
    AgentMount, AgentPackages, ArgumentRule, Class, McpCommand, McpHolder, McpListed, McpLoginAnswer, McpLoginBegun,
    McpLoginState, McpLook, McpResolvedCommand, McpServer, McpServerHeader, McpServerHost, McpServerLogin,
    McpServerState, McpServerTool, McpServerVariable, McpTransport, McpUnfit, McpUnfitReason, NewMcpLogin, OwnSource,
    ToolArgument,
};
use std::collections::BTreeMap;

const AT: &str = "2026-11-20T10:00:00.000Z";

fn free() -> ToolArgument {
    let (kind, needs) = (None, Vec::new());
    ToolArgument { rule: ArgumentRule::Free, kind, needs, by_reference: false, outward: false }
}

fn tool() -> McpServerTool {
    McpServerTool {
        name: "read".to_owned(),
        offered_as: Some("files__read".to_owned()),
        description: "Reads a file.".to_owned(),
        class: Some(Class::Read),
        arguments: BTreeMap::from([("path".to_owned(), free())]),
        labels: vec![Label::External],
        loosened: vec!["class read".to_owned(), "path free".to_owned()],
        always_asks: false,
        mine: Some(OwnSource { person: "Alice".to_owned(), lost: None }),
        listed: McpListed::Same,
        unfit: None,
    }
}

fn unfit() -> McpServer {
    let why = McpUnfit { reason: McpUnfitReason::Twice, words: "the server lists its name twice".to_owned() };
    let unfit = McpServerTool {
        offered_as: None,
        class: None,
        arguments: BTreeMap::new(),
        loosened: Vec::new(),
        mine: None,
        listed: McpListed::Changed,
        unfit: Some(why),
        ..tool()
    };
    let remark = "page 2 names a cursor that an earlier page named, so the host read no further";
    McpServer { tools: vec![unfit], remarks: vec![remark.to_owned()], ..server() }
}

fn server() -> McpServer {
    McpServer {
        name: "files".to_owned(),
        transport: McpTransport::Http,
        url: "https://mcp.example/".to_owned(),
        command: Vec::new(),
        packages: None,
        environment: Vec::new(),
        mounts: Vec::new(),
        hosts: Vec::new(),
        state: McpServerState::Confirmed,
        era: Some("session".to_owned()),
        digest: Some(Digest::of(b"listing")),
        instructions: Some("Read first.".to_owned()),
        tools: vec![tool()],
        remarks: Vec::new(),
        problem: None,
        headers: vec![McpServerHeader {
            name: "authorization".to_owned(),
            secret: "files".to_owned(),
            scheme: Some("Bearer".to_owned()),
        }],
        login: None,
        agents: vec![McpHolder { agent: "clerk".to_owned(), tools: vec!["read".to_owned()] }],
        manifest: Some("[[tool]]\nname = \"read\"\n".to_owned()),
        proposed: "[[tool]]\nname = \"read\"\n".to_owned(),
        made_at: AT.to_owned(),
        seen_at: Some(AT.to_owned()),
        confirmed_at: Some(AT.to_owned()),
        failure: None,
    }
}

fn with_login() -> McpServer {
    McpServer {
        headers: Vec::new(),
        login: Some(McpServerLogin {
            accepts_unannounced_s256: true,
            issuer: "https://login.example".to_owned(),
            scopes: vec!["files".to_owned()],
            client_id: Some("ironclaw".to_owned()),
            client_secret: Some("ironclaw-client".to_owned()),
            state: McpLoginState::Needed,
            reason: Some("the issuer refused to renew it: invalid_grant".to_owned()),
            expires_at: Some(AT.to_owned()),
        }),
        ..server()
    }
}

fn command() -> McpServer {
    McpServer {
        transport: McpTransport::Stdio,
        url: String::new(),
        command: vec!["files-server".to_owned()],
        packages: Some(AgentPackages {
            apt: Vec::new(),
            npm: vec!["files-server@1.2.3".to_owned()],
            pypi: Vec::new(),
            layer: Digest::of(b"layer"),
            made_at: AT.to_owned(),
        }),
        environment: vec![McpServerVariable {
            variable: "API_KEY".to_owned(),
            secret: Some("files".to_owned()),
            text: None,
        }],
        hosts: vec![McpServerHost { host: "forge.example".to_owned(), port: Some(8443), upload_bytes_max: 65_536 }],
        mounts: vec![AgentMount {
            source: "/srv/papers".to_owned(),
            target: "/papers".to_owned(),
            read_only: true,
            mine: None,
        }],
        state: McpServerState::New,
        era: None,
        digest: None,
        instructions: None,
        tools: Vec::new(),
        problem: Some("MCP server files lists no tool that an agent can get".to_owned()),
        headers: Vec::new(),
        agents: Vec::new(),
        manifest: None,
        proposed: String::new(),
        seen_at: None,
        confirmed_at: None,
        failure: Some("the program is missing".to_owned()),
        ..server()
    }
}

pub(super) fn shapes() -> Vec<Shape> {
    vec![
        shape_by_bytes("operator.mcp_server", &server()),
        shape_by_bytes("operator.mcp_server.command", &command()),
        shape(
            "operator.mcp_server.host",
            McpServerHost { host: "forge.example".to_owned(), port: None, upload_bytes_max: 65_536 },
        ),
        shape(
            "operator.mcp_server.variable",
            McpServerVariable { variable: "LEVEL".to_owned(), secret: None, text: Some("debug".to_owned()) },
        ),
        shape_by_bytes("operator.mcp_server.unfit", &unfit()),
        shape_by_bytes("operator.mcp_server.login", &with_login()),
        shape("operator.new_mcp_login", NewMcpLogin { redirect_uri: "http://127.0.0.1:8931/callback".to_owned() }),
        shape(
            "operator.mcp_login_begun",
            McpLoginBegun {
                issuer: "https://login.example".to_owned(),
                url: "https://login.example/authorize?state=s".to_owned(),
                expires_at: AT.to_owned(),
            },
        ),
        shape(
            "operator.mcp_login_answer",
            McpLoginAnswer { address: "http://127.0.0.1:8931/callback?code=c&state=s".to_owned() },
        ),
        shape("operator.mcp_look", McpLook { manifest: Some("[[tool]]\nname = \"read\"\n".to_owned()) }),
        shape("operator.mcp_look.bare", McpLook::default()),
        shape(
            "operator.mcp_command",
            McpCommand { command: ["npx", "-y", "@scope/name@latest"].map(str::to_owned).to_vec() },
        ),
        shape(
            "operator.mcp_resolved_command",
            McpResolvedCommand {
                command: vec!["name".to_owned()],
                npm: vec!["@scope/name@1.2.3".to_owned()],
                pypi: vec!["name==1.2.3".to_owned()],
                programs: vec!["name".to_owned(), "name-admin".to_owned()],
            },
        ),
    ]
}
