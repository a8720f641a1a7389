//! The sample of a confirmation of the tools of an MCP server, and its sentences.

use super::*;

/// Returns the present setting, the facts and the payload of a confirmation.
pub(super) fn confirmation() -> (Value, Value, Value) {
    (
        json!({"server": "files", "digest": Digest::of(b"earlier")}),
        json!({
            "at": "https://mcp.example",
            "instructions": null,
            "has_network": true,
            "held": ["copy"],
            "tools": [
                {
                    "name": "read", "offered_as": "files__read", "description": "Reads.", "class": "read",
                    "always_ask": false, "arguments": {"limit": "free", "path": "free, leaves"}, "listed": "changed",
                    "looser": {
                        "class": "its name says that it only reads",
                        "rules": {"limit": "it is a number", "path": "the tool only reads"},
                        "others": {"reversible": "the request chose it"},
                    },
                },
                {
                    "name": "write", "offered_as": "files__write", "description": "Writes. Then more.", "class": "send",
                    "always_ask": true, "arguments": {"path": "control path, leaves", "text": "control, leaves"},
                    "looser": {"class": null, "rules": {}, "others": {}}, "listed": "new", "effect": "writes {path}", "also": ["exec"],
                },
            ],
            "gone": ["list"],
            "agents": ["helper"],
        }),
        json!({"server": "files", "digest": Digest::of(b"listing"), "manifest": "[[tool]]\nname = \"read\"\n"}),
    )
}

#[test]
fn confirmation_has_each_rule_and_the_reason_of_a_looser_one() {
    let asked = sample(ChangeKind::McpConfirm);
    asked.assert_shows(&[
        "  Accept 2 tools of MCP server \"files\" (\"https://mcp.example\") with the rules",
        "  Unchanged, with the rules that people confirmed: \"copy\".",
        "  The server no longer lists: \"list\".",
        "  !! LOOSER than the strictest rules: 1 tool.",
        "  !! CHANGED since people confirmed them: \"read\".",
        "  !! NEW since then: \"write\".",
        "  !! These agents may call tools of it at once: \"helper\".",
        "TOOLS AND ARGUMENTS",
        "  \"read\": read [1]. \"Reads.\" free [2]: \"limit\"; free, leaves [3]: \"path\" looser [4]: \"reversible\"",
        "  \"write\": send and exec, asks at each call. \"writes {path}\" control path, leaves: \"path\"; control, leaves",
        "LOOSER THAN THE STRICTEST RULES, BECAUSE", "  [1] its name says that it only reads",
    ]);
    let first = Asked { before: Value::Null, ..asked };
    first.assert_lacks("NEW since");
}

#[test]
fn looser_part_of_an_argument_called_class_is_shown() {
    let mut asked = sample(ChangeKind::McpConfirm);
    let tool = &mut asked.facts["tools"][1];
    tool["arguments"] = json!({"class": "control, leaves", "class x": "free"});
    tool["looser"]["rules"] = json!({"class x": "it is yes or no"});
    tool["looser"]["others"] = json!({"class from External": "the request chose it"});
    asked.assert_shows(&["free [5]: \"class x\"", "looser [4]: \"class from External\"", "[5] it is yes or no"]);
}

#[test]
fn confirmation_without_a_network_says_that_nothing_leaves() {
    let mut asked = sample(ChangeKind::McpConfirm);
    asked.facts["has_network"] = json!(false);
    asked.facts["tools"] = json!([]);
    asked.assert_shows(&[
        "  Accept the listing of MCP server \"files\" (\"https://mcp.example\"), with the",
        "  The server reaches no network: no value of a call leaves this machine.",
    ]);
    asked.assert_lacks("TOOLS AND ARGUMENTS");
    asked.assert_lacks("LOOSER");
}

#[test]
fn confirmation_names_unfit_tools_and_remarks() {
    let mut asked = sample(ChangeKind::McpConfirm);
    asked.facts["unfit"] = json!([
        {"name": "twin\u{202e}", "why": {"reason": "twice", "words": "the server lists its name twice"}},
        {"name": "", "why": {"reason": "entry", "words": "the entry of the listing is not an object"}},
    ]);
    asked.facts["remarks"] = json!(["page 2 has only tools of earlier pages, so the host read no further"]);
    asked.assert_shows(&[
        "  NOT accepted is \"twin⟦U+202E⟧\", which no agent can get:",
        "  NOT accepted is \"\", which no agent can get:",
        "  The listing is perhaps not whole:",
    ]);
    asked.assert_lacks("\u{202e}");
}

#[test]
fn login_is_named_with_its_issuer_and_a_move_of_it() {
    let server = |oauth: Value| json!({"name": "files", "url": "https://mcp.example", "oauth": oauth});
    let of = |before: Value, oauth: Value| {
        let mut asked = Asked::of(ChangeKind::McpRegister, server(oauth));
        asked.before = before;
        asked.facts = json!({"secrets": {}, "grants": {}});
        asked
    };
    let issuer = |issuer: &str| json!({"issuer": issuer, "scopes": ["events"]});
    let first = of(Value::Null, issuer("https://login.example"));
    first.assert_shows(&[
        "  !! LOGIN at \"https://login.example\": check",
        "The login asks for these scopes: \"events\".",
    ]);
    let again = of(server(issuer("https://login.example")), issuer("https://login.example"));
    again.assert_shows(&["  !! As now, people log in at \"https://login.example\"."]);
    let moved = of(server(issuer("https://old.example")), issuer("https://login.example"));
    moved.assert_shows(&["  !! The LOGIN moves from \"https://old.example\" to"]);
    let accepted = issuer("https://login.example#s256-unannounced");
    let first = of(server(issuer("https://login.example")), accepted.clone());
    first.assert_shows(&[
        "  !! As now, people log in at \"https://login.example\".",
        "  !! The host logs in although \"https://login.example\" does NOT ANNOUNCE S256",
    ]);
    of(server(accepted.clone()), accepted).assert_shows(&["  !! As now, the host logs in although"]);
    let client = |issuer: &str| json!({"issuer": issuer, "client_id": "ironclaw", "client_secret": "client"});
    let (old, new) = (client("https://old.example"), client("https://login.example"));
    let first = of(server(old), new.clone());
    first.assert_shows(&["  !! SECRET \"client\": the issuer gets its value"]);
    let again = of(server(new.clone()), new);
    again.assert_shows(&["  !! As now, the issuer gets secret \"client\""]);
}

#[test]
fn access_names_the_login_that_each_call_uses() {
    let mut asked = sample(ChangeKind::McpAccess);
    asked.assert_lacks("LOGIN");
    asked.facts["servers"]["files"]["issuer"] = json!("https://login.example");
    asked.assert_shows(&["  !! Each call carries the token of a LOGIN at \"https://login.example\""]);
}
