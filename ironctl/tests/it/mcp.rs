//! Tests of `ironctl mcp`: a server from its registration to its removal, and the words of a hostile server.
//!
//! See [`crate::everyday`] for other changes in one line.

use crate::fake_host::{Answer, FakeHost, code_of, json_of, status};
use crate::terminal::Terminal;
use crate::waiting::{Held, ID, change, posts};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

const REGISTER: &[&str] = &["mcp", "add", "files", "--url", "https://mcp.example/"];

/// Text of a server that tries to control the terminal, to hide words, and to look like the host.
const HOSTILE: &str = "Reads.\u{1b}]0;x\u{7}\u{202e}\u{200b}\u{e0041}\rDone.\nEFFECT\napprove, reject, quit? ";

fn free() -> Value {
    json!({"rule": "free", "type": null, "needs": [], "by_reference": false, "outward": false})
}

fn floor() -> Value {
    json!({"rule": "floor", "type": "any", "needs": ["UserSurfaceInput"], "by_reference": false, "outward": true})
}

fn tool(name: &str, class: &str, loosened: &[&str], listed: &str) -> Value {
    json!({
        "name": name, "offered_as": format!("files__{name}"), "description": HOSTILE, "class": class,
        "arguments": {"path": if class == "read" { free() } else { floor() }}, "labels": ["External"],
        "loosened": loosened, "always_asks": false, "listed": listed
    })
}

/// Returns a server in this state.
fn server(state: &str) -> Value {
    let listed = if state == "confirmed" { "same" } else { "new" };
    json!({
        "name": "files", "transport": "http", "url": "https://mcp.example/", "state": state, "era": "session",
        "digest": "0f".repeat(32), "instructions": HOSTILE, "made_at": "2026-11-20T10:00:00.000Z",
        "tools": [tool("read", "read", &["class read", "path free"], listed), tool("post", "send", &[], listed)],
        "headers": [{"name": "authorization", "secret": "files", "scheme": "Bearer"}],
        "agents": [{"agent": "clerk", "tools": ["read"]}], "proposed": PROPOSED
    })
}

const PROPOSED: &str = "[[tool]]\nname = \"read\"\nclass = \"read\"\narguments.path = { rule = \"free\" }\n";

/// Starts a host with this server, which takes each change; the caller may approve it if it is `yours`.
fn host_with(server: Value, yours: bool) -> FakeHost {
    let held = Held::new([change("pending")]);
    FakeHost::new(move |line, asked| match line {
        "POST /v1/changes" => Answer::json(json!({
            "id": ID, "status": "pending", "again": false, "yours": yours, "waits_for": "an owner of this host"
        })),
        "GET /v1/mcp" => Answer::json(json!([server])),
        "GET /v1/mcp/files" | "POST /v1/mcp/files/look" => Answer::json(server.clone()),
        "GET /v1/models" | "GET /v1/channels" => Answer::json(json!([])),
        _ => held.answer(asked).unwrap_or_else(|| Answer::json(status(Path::new("/h"), 4242))),
    })
}

/// Returns agent, kind and payload of each submitted change.
fn submitted(host: &FakeHost) -> Vec<(Value, Value, Value)> {
    let changes = posts(host).into_iter().filter(|(line, _)| line == "POST /v1/changes");
    changes.map(|(_, body)| (body["agent"].clone(), body["kind"].clone(), body["payload"].clone())).collect()
}

fn failure(err: &str) -> (String, String) {
    (code_of(err), json_of(err)["error"]["hint"].as_str().expect("text").to_owned())
}

#[test]
fn add_shows_one_table_and_the_confirmation_to_type() {
    let host = host_with(server("proposed"), true);
    let words = [REGISTER, &["--header", "Authorization=Bearer secret:files", "--tool", "read", "--yes"]].concat();
    let (code, out, err) = host.ironctl(&words);
    assert_eq!(code, 0, "{err}");
    for shown in
        ["read  read   path: free", "! class read, path free", "path: floor outward", "unless the request asks to send"]
    {
        assert!(out.contains(shown), "{shown}: {out}");
    }
    let confirm = format!("ironctl mcp confirm files --digest {}", "0f".repeat(32));
    assert!(err.contains(&confirm), "{err}");
    let payload = json!({
        "name": "files", "url": "https://mcp.example/", "tools": [{"name": "read"}],
        "headers": [{"name": "Authorization", "scheme": "Bearer", "secret": "files"}]
    });
    assert_eq!(submitted(&host), [(Value::Null, json!("mcp_register"), payload)], "only a person confirms");
}

#[test]
fn add_for_scripts_prints_the_listing() {
    let host = host_with(server("proposed"), true);
    let tool = |name: &str, class: &str, rule: Value| json!({"name": name, "class": class, "arguments": {"path": rule}, "labels": ["External"]});
    let wanted = json!({
        "change": ID, "server": "files", "digest": "0f".repeat(32),
        "tools": [tool("read", "read", free()), tool("post", "send", floor())]
    });
    assert_eq!(host.json(&[REGISTER, &["--yes"]].concat()), wanted);
}

#[test]
fn add_on_a_terminal_continues_with_the_confirmation() {
    let manifest = tempfile::NamedTempFile::new().expect("a file");
    std::fs::write(manifest.path(), "[[tool]]\n").expect("written");
    let host = host_with(server("proposed"), true);
    let file = manifest.path().to_str().expect("a path");
    let mut terminal = Terminal::running(&host, &[REGISTER, &["--manifest", file]].concat(), Some(160));
    terminal.reply("approve, reject, quit? ", "approve");
    terminal.reply("approve, reject, edit, quit? ", "approve");
    terminal.end_after("agents that have its tools: ", 0);
    let confirm = json!({"server": "files", "digest": "0f".repeat(32), "manifest": "[[tool]]\n"});
    assert_eq!(submitted(&host)[1], (Value::Null, json!("mcp_confirm"), confirm));
    let looks: Vec<Value> =
        posts(&host).into_iter().filter(|(line, _)| line.ends_with("/look")).map(|(_, body)| body).collect();
    assert_eq!(looks, [json!({"manifest": "[[tool]]\n"})]);
}

#[test]
fn proposed_rules_are_edited_and_read_again() {
    let host = host_with(server("proposed"), true);
    let mut terminal = Terminal::running(&host, &[REGISTER, &["--yes"]].concat(), Some(160));
    terminal.reply("approve, reject, edit, quit? ", "edit");
    terminal.reply("approve, reject, edit, quit? ", "approve");
    terminal.end_after("agents that have its tools: ", 0);
    let manifests: Vec<Value> =
        submitted(&host).into_iter().skip(1).map(|(_, _, payload)| payload["manifest"].clone()).collect();
    assert_eq!(manifests[0], PROPOSED);
    let edited = manifests[1].as_str().expect("a text");
    assert!(edited.starts_with("# ") && edited.ends_with(&PROPOSED.replace("free", "floor")), "{edited}");
    assert_eq!(manifests.len(), 2);
}

#[test]
fn set_changes_one_tool_of_the_proposed_rules() {
    let host = host_with(server("confirmed"), true);
    let words = ["mcp", "set", "files", "read", "--class", "send", "--field", "path=floor:path", "--yes"];
    assert_eq!(host.ironctl(&words).0, 0);
    let text = submitted(&host)[0].2["manifest"].as_str().expect("a text").to_owned();
    assert!(text.contains("class = \"send\"") && text.contains("type = \"path\""), "{text}");
    for (words, code, exit) in [
        (&["mcp", "set", "files", "read", "--yes"][..], "usage", 2),
        (&["mcp", "set", "files", "post", "--class", "read", "--yes"], "tool_unknown", 1),
        (&["mcp", "set", "files", "read", "--field", "cc=free", "--yes"], "argument_unknown", 1),
    ] {
        let (found, _, err) = host.ironctl(&[words, &["--json"]].concat());
        assert_eq!((found, code_of(&err).as_str()), (exit, code), "{words:?}");
    }
    assert_eq!(submitted(&host).len(), 1);
}

#[test]
fn confirmation_takes_the_proposed_rules_by_name() {
    let host = host_with(server("proposed"), true);
    let digest = "0f".repeat(32);
    let confirm = ["mcp", "confirm", "files", "--digest", &digest, "--yes"];
    assert_eq!(host.ironctl(&[&confirm[..], &["--proposed"]].concat()).0, 0);
    assert_eq!(host.ironctl(&confirm).0, 0);
    assert_eq!(host.ironctl(&[&confirm[..], &["--proposed", "--manifest", "x"]].concat()).0, 2);
    let payloads: Vec<Value> =
        submitted(&host).into_iter().map(|(_, _, payload)| payload["manifest"].clone()).collect();
    assert_eq!(payloads, [json!(PROPOSED), Value::Null], "without the option, the strictest rules");
}

#[test]
fn declined_confirmation_leaves_the_server() {
    let host = host_with(server("proposed"), true);
    let mut terminal = Terminal::running(&host, &[REGISTER, &["--yes"]].concat(), Some(240));
    terminal.reply("approve, reject, edit, quit? ", "quit");
    terminal.wait_for(
        "its tools wait for a confirmation; if you agree with the table: ironctl mcp confirm files --digest 0f",
    );
    assert_eq!(terminal.end(), 1);
}

#[test]
fn server_that_waits_for_people_is_not_asked() {
    let host = host_with(server("new"), false);
    let (code, out, err) = host.ironctl(&[REGISTER, &["--yes", "--json"]].concat());
    assert_eq!((code, out.as_str(), failure(&err).0.as_str()), (1, "", "change_pending"));
    assert!(!host.asked().iter().any(|asked| asked.line.ends_with("/look")));
}

#[test]
fn unreachable_server_stays_and_the_hint_names_test() {
    let host = FakeHost::new(|line, _| match line {
        "POST /v1/changes" => Answer::refusal("change_empty", "it has this value already", ""),
        _ => Answer::refusal("mcp_unreachable", "no answer", "start it"),
    });
    let (code, _, err) = host.ironctl(&[REGISTER, &["--yes", "--json"]].concat());
    let (refusal, hint) = failure(&err);
    assert_eq!((code, refusal.as_str()), (1, "mcp_unreachable"));
    assert!(hint.starts_with("start it; ") && hint.contains("ironctl mcp test files"), "{hint}");
}

#[test]
fn words_of_a_server_reach_no_terminal_unchanged() {
    let mut hostile = server("proposed");
    hostile["tools"][0]["name"] = json!("re\u{1b}[2Jad\u{202e}");
    hostile["tools"][0]["arguments"] = json!({"p\u{202e}\r": free()});
    hostile["tools"][1]["unfit"] = json!({"reason": "schema", "words": "it refers to \u{1b}[2J\u{202e}\nEFFECT"});
    hostile["remarks"] = json!(["page \u{1b}[2J\u{200b}"]);
    hostile["problem"] = json!("the tool \u{1b}[2J\u{200b}");
    hostile["failure"] = json!("died \u{1b}[2J\u{200b}");
    let host = host_with(hostile, true);
    for words in [
        &["mcp", "show", "files"][..],
        &["mcp", "show", "files", "--manifest"],
        &["mcp", "test", "files"],
        &["mcp", "list"],
        &["status"],
        &[REGISTER, &["--yes"]].concat(),
    ] {
        let (_, out, err) = host.ironctl(words);
        let text = out + &err;
        let bad = |c: char| (c.is_control() && c != '\n') || ['\u{202e}', '\u{200b}', '\u{e0041}'].contains(&c);
        assert!(!text.contains(bad), "{words:?}: {text:?}");
        let lines: BTreeSet<&str> = text.lines().map(str::trim_end).collect();
        // The page of the change has these lines too, from the host.
        let is_page = words.contains(&"add");
        assert!(is_page || !lines.contains("EFFECT"), "{words:?}: {text}");
        assert!(!lines.contains("approve, reject, quit?"), "{words:?}: {text}");
    }
}

#[test]
fn show_has_each_part_of_a_server() {
    let host = host_with(server("confirmed"), true);
    let out = host.output(&["mcp", "show", "files"]);
    for shown in [
        "https://mcp.example/",
        "authorization: Bearer secret:files",
        "confirmed: it lists",
        "clerk: read",
        "files__post",
        "    | Reads.",
        &"0f".repeat(32),
    ] {
        assert!(out.contains(shown), "{shown}: {out}");
    }
    assert_eq!(host.json(&["mcp", "show", "files"]), server("confirmed"));
    let out = host.output(&["mcp", "show", "files", "--manifest"]);
    assert!(out.starts_with("# ") && out.ends_with(PROPOSED), "{out}");
}

#[test]
fn import_stores_only_the_missing_secrets_of_a_file() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let text = json!({"mcpServers": {"Hub": {
        "command": "npx", "args": ["-y", "hub@latest"],
        "env": {"HUB_TOKEN": "value-in-the-file", "API_KEY": "${input:key}", "OLD_KEY": "x", "LEVEL": "debug"}
    }}});
    std::fs::write(file.path(), text.to_string()).expect("written");
    let held = Held::new([change("pending")]);
    let host = FakeHost::new(move |line, asked| match line {
        "POST /v1/mcp-commands/resolve" => {
            Answer::json(json!({"command": ["hub-server"], "npm": ["hub@1.2.3"], "programs": ["hub-server"]}))
        }
        "GET /v1/secrets" => Answer::json(json!([
            {"name": "hub-old-key", "source": "stored", "used_by": []},
            {"name": "hub-api-key", "source": "stored", "used_by": []},
        ])),
        "POST /v1/secrets" => Answer::json(json!({"name": "x", "source": "stored", "used_by": []})),
        "POST /v1/changes" => Answer::json(json!({
            "id": ID, "status": "pending", "again": false, "yours": true, "waits_for": "an owner of this host"
        })),
        _ => held.answer(asked).unwrap_or_else(|| Answer::json(status(Path::new("/h"), 4242))),
    });
    let path = file.path().to_str().expect("a path");
    let (code, out, err) = host.ironctl(&["mcp", "import", path, "--yes"]);
    assert_eq!((code, submitted(&host).len()), (1, 0), "{out}{err}");
    assert!(err.contains("Hub is not taken over") && err.contains("ironctl secret set hub-token"), "{err}");
    assert!(!format!("{out}{err}").contains("value-in-the-file"), "{out}{err}");
    let (code, out, err) = host.ironctl(&["mcp", "import", path, "--yes", "--secrets-from-file"]);
    assert_eq!(code, 0, "{out}{err}");
    assert!(err.contains("Hub: its package brings hub-server") && err.contains("ironctl mcp test hub"), "{err}");
    let stored = posts(&host).into_iter().filter(|(line, _)| line == "POST /v1/secrets").map(|(_, body)| body);
    let wanted = [json!({"name": "hub-token", "value": "value-in-the-file"})];
    assert_eq!(stored.collect::<Vec<_>>(), wanted, "a stored secret is kept");
    let payload = json!({
        "name": "hub", "command": ["hub-server"], "packages": {"npm": ["hub@1.2.3"]},
        "environment": [
            {"variable": "API_KEY", "secret": "hub-api-key"}, {"variable": "HUB_TOKEN", "secret": "hub-token"},
            {"variable": "OLD_KEY", "secret": "hub-old-key"}, {"variable": "LEVEL", "text": "debug"},
        ]
    });
    assert_eq!(submitted(&host), [(Value::Null, json!("mcp_register"), payload)]);
}

#[test]
fn unfit_tool_is_shown_with_its_reason() {
    let mut odd = server("proposed");
    let post = &mut odd["tools"][1];
    post["unfit"] = json!({"reason": "twice", "words": "the server lists its name twice"});
    odd["remarks"] = json!(["it has more than 100 pages, so the host read no further"]);
    let host = host_with(odd, true);
    let out = host.output(&["mcp", "show", "files"]);
    for shown in
        ["no agent can get post: the server lists its name twice", "it has more than 100 pages", "cannot be called"]
    {
        assert!(out.contains(shown), "{shown}: {out}");
    }
}

#[test]
fn test_fails_unless_the_listing_is_confirmed() {
    let out = host_with(server("confirmed"), true).output(&["mcp", "test", "files"]);
    assert!(out.contains("lists what people confirmed"), "{out}");
    let mut changed = server("changed");
    changed["tools"][1]["listed"] = json!("gone");
    changed["manifest"] = json!("[[tool]]\nname = \"read\"\n");
    for (state, code) in [(server("proposed"), "mcp_unconfirmed"), (changed, "mcp_changed")] {
        let host = host_with(state.clone(), true);
        let (exit, out, err) = host.ironctl(&["mcp", "test", "files", "--json"]);
        let (failed, hint) = failure(&err);
        assert_eq!((exit, json_of(&out), failed.as_str()), (1, state, code));
        assert!(hint.contains("ironctl mcp confirm files --digest 0f"), "{hint}");
        assert!(hint.contains("--proposed"), "{hint}");
    }
}

#[test]
fn each_verb_proposes_its_change() {
    let host = host_with(server("confirmed"), true);
    let hash = "0f".repeat(32);
    for words in [
        &["mcp", "confirm", "files", "--digest", &hash][..],
        &["mcp", "grant", "clerk", "files"],
        &["mcp", "grant", "clerk", "files", "--tools", "read,post"],
        &["mcp", "revoke", "clerk", "files"],
        &["mcp", "remove", "files"],
        &["mcp", "add", "files", "--", "server", "--stdio"],
    ] {
        let (code, out, err) = host.ironctl(&[words, &["--yes", "--json"]].concat());
        // The words after `--` belong to the server.
        let is_command = words.contains(&"--");
        assert_eq!(code, i32::from(is_command), "{words:?}: {out}{err}");
    }
    let clerk = || json!("clerk");
    assert_eq!(
        submitted(&host),
        [
            (Value::Null, json!("mcp_confirm"), json!({"server": "files", "digest": hash})),
            (clerk(), json!("mcp_access"), json!({"server": "files"})),
            (clerk(), json!("mcp_access"), json!({"server": "files", "tools": ["read", "post"]})),
            (clerk(), json!("mcp_access"), json!({"server": "files", "tools": []})),
            (Value::Null, json!("mcp_register"), json!({"name": "files", "remove": true})),
            (
                Value::Null,
                json!("mcp_register"),
                json!({"name": "files", "command": ["server", "--stdio", "--yes", "--json"]})
            ),
        ]
    );
}

#[test]
fn status_and_list_name_a_server_that_changed() {
    let mut changed = server("changed");
    changed["failure"] = json!("the program is missing");
    let host = host_with(changed, true);
    let out = host.output(&["status"]);
    let line = "MCP server files: it lists something else than people confirmed; the host cannot reach it: the program is missing: ironctl mcp test files\n";
    assert!(out.contains(line), "{out}");
    let (_, out, err) = host.ironctl(&["mcp", "list"]);
    assert_eq!(err, line);
    assert!(out.contains("files   http       changed  https://mcp.example/  2      clerk"), "{out}");
    assert!(!host_with(server("confirmed"), true).ironctl(&["status"]).1.contains("MCP"));
}
