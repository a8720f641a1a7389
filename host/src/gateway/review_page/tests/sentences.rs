//! The sentences of each kind: differences are named, dangers are warnings, and harmless changes have no warning.

use super::super::{Label, Role};
use super::{ALICE, Asked, SCRIBE, look_over, persona, plain, registered_again, sample, whole_lines};
use ironclaw_contract::seam::change::ChangeKind;
use ironclaw_judge::provenance::Labels;
use serde_json::{Value, json};

#[test]
fn server_replacement_shows_each_difference() {
    let header = json!([{"name": "authorization", "secret": "files-key", "scheme": "Bearer"}]);
    let grants = json!({"scribe": {"agent": SCRIBE, "has": ["read", "write"], "keeps": ["read"]}});
    let kept = registered_again(header.clone(), grants.clone());
    kept.assert_shows(&[
        "  The address stays \"https://mcp.example\".",
        "takes only these: \"read\".",
        &format!("  Agent \"scribe\" ({SCRIBE}) LOSES tools of \"files\": \"write\"; it keeps \"read\"."),
        "  !! ANOTHER SECRET \"files-key\": every request to \"https://mcp.example\" carries it, in the header \"authorization\" (before: none).",
        "the secret \"files-key\" is stored",
        "  !! The AGENT chose the address AND the secret: check that this address may get this secret.",
    ]);
    kept.assert_lacks("No agent can use it yet");
    kept.assert_lacks("Add MCP server");
    registered_again(json!([]), grants).assert_shows(&["  !! The AGENT chose the address: check it."]);

    let lost = json!({"scribe": {"agent": SCRIBE, "has": ["read"], "keeps": []}});
    let mut moved = registered_again(header.clone(), lost);
    moved.before["url"] = json!("https://old.example");
    moved.before["headers"] = json!([{"name": "x-key", "secret": "old-key"}]);
    moved.assert_shows(&[
        "  !! The address CHANGES from \"https://old.example\" to \"https://mcp.example\".",
        "LOSES all its tools of \"files\": \"read\".",
        "No agent can use it yet. That needs another change.",
        "Its requests no longer carry these secrets: \"old-key\".",
        "  !! ANOTHER SECRET \"files-key\": every request",
    ]);
    moved.before["headers"] = header.clone();
    moved.assert_shows(&["  !! SECRET \"files-key\" goes to ANOTHER address"]);
    let mut new = registered_again(header, json!({}));
    new.before = Value::Null;
    new.assert_shows(&[
        "to the catalogue of this host.",
        "No agent can use it yet",
        "  !! SECRET \"files-key\": every request",
    ]);
    new.assert_lacks("Replace");
    let by_person = Asked { is_person: true, labels: Labels::NONE, ..new };
    by_person.assert_lacks("The AGENT chose");
}

#[test]
fn channel_that_another_agent_hears_is_lost_by_it() {
    let wired = sample(ChangeKind::Wiring);
    wired.assert_shows(&[&format!(
        "Agent \"scribe\" ({SCRIBE}) gets the messages of this channel now, and LOSES the channel."
    )]);
    let own = Asked { before: json!({"channel": "hook", "engage": "all"}), ..wired };
    own.assert_lacks("LOSES");
}

#[test]
fn mounts_name_the_directories_that_end() {
    let mount = |source: &str, is_read_only: bool| json!({"source": source, "target": "/x", "read_only": is_read_only});
    let with = |before: Value, payload: Value| Asked { before, ..Asked::of(ChangeKind::Mounts, payload) };
    let both = json!([mount("/srv/a", true), mount("/srv/b", false)]);
    with(json!([]), both.clone()).assert_shows(&["The agent has no directory of this machine now."]);
    with(both.clone(), json!([mount("/srv/a", false)])).assert_shows(&[
        "Its access to these directories ENDS: \"/srv/b\".",
        "READ and WRITE \"/srv/a\" (now: read); the agent",
    ]);
    with(json!([mount("/srv/a", true)]), both.clone()).assert_shows(&["It keeps all directories that it has now."]);
    with(both, json!([])).assert_shows(&["to all directories of this machine: \"/srv/a\", \"/srv/b\"."]);
}

#[test]
fn agent_that_asks_for_another_admin_is_a_danger() {
    const WORDS: &str = "  !! The AGENT asks to change the people who decide on its own changes.";
    let granted = sample(ChangeKind::Permissions);
    granted.assert_shows(&[WORDS]);
    Asked { is_person: true, labels: Labels::NONE, ..granted.clone() }.assert_lacks(WORDS);
    let mut member = granted.clone();
    member.payload["grant"][0]["role"] = json!("member");
    member.assert_lacks(WORDS);
    let mut revoked = member;
    revoked.before["grant"][0]["role"] = json!("admin");
    revoked.assert_shows(&[WORDS]);
}

#[test]
fn revoked_role_says_if_the_person_can_still_talk() {
    let with = |access: Value, before: &str| {
        let payload = json!({"access": access, "revoke": ["chat:carol"]});
        Asked { before: json!({"access": before}), ..Asked::of(ChangeKind::Permissions, payload) }
    };
    with(json!("members"), "everyone")
        .assert_shows(&["they can no longer talk to it", "can talk to it now, and LOSE this access."]);
    with(Value::Null, "everyone").assert_shows(&["they can still talk to it"]);
    with(Value::Null, "members").assert_shows(&["they can no longer talk to it"]);
    with(Value::Null, "members").assert_lacks("-   access");
}

#[test]
fn member_access_names_owners_and_admins_of_the_host() {
    let members = Asked::of(ChangeKind::Permissions, json!({"access": "members"}));
    members.assert_shows(&["owners and admins of this host, and people with a role of this agent."]);
    let new = Asked::of(ChangeKind::CreateAgent, json!({"name": "scribe", "members": ["chat:bob"]}));
    new.assert_shows(&["People who may talk to it, besides owners and admins of this host: \"chat:bob\"."]);
}

#[test]
fn agent_admin_is_a_decider_only_where_one_may_decide() {
    persona("x").assert_shows(&["May approve: an owner or admin of this host, or an admin of this agent"]);
    Asked { roles: vec![Role::Owner], ..persona("x") }.assert_lacks("admin of this agent");
    let access = Asked::of(ChangeKind::McpAccess, json!({"server": "files", "tools": ["read"]}));
    access.assert_lacks("admin of this agent");
}

#[test]
fn removed_mcp_access_has_no_warning() {
    let none = Asked::of(ChangeKind::McpAccess, json!({"server": "files", "tools": []}));
    none.assert_shows(&["Take all tools of MCP server \"files\" away from agent \"helper\": none."]);
    none.assert_lacks("LEAVES THIS HOST");
    none.assert_lacks("SECRETS");
}

#[test]
fn page_names_the_source_of_software() {
    let mut asked = Asked::of(ChangeKind::Packages, json!({"apt": ["jq"], "npm": ["left-pad"]}));
    asked.facts = json!({"clients": {
        "apt": {"client": "/usr/bin/apt-get", "sources": null},
        "npm": {"client": "/usr/bin/npm", "registry": null},
    }});
    asked.assert_shows(&[
        "Fetch apt packages with \"/usr/bin/apt-get\", from the sources of this machine.",
        "Fetch npm packages with \"/usr/bin/npm\", from npm's own registry.",
    ]);
    asked.facts["clients"]["apt"]["sources"] = json!("/srv/own.list");
    asked.facts["clients"]["npm"]["registry"] = json!("https://npm.example/");
    asked.assert_shows(&[
        "\"/usr/bin/apt-get\", from the sources \"/srv/own.list\" of this host's settings.",
        "\"/usr/bin/npm\", from the registry \"https://npm.example/\" of this host's settings.",
    ]);
    asked.facts = json!({"clients": {"npm": {"client": "/usr/bin/npm", "registry": null}}});
    asked.assert_lacks("Fetch apt");
}

#[test]
fn labels_of_the_request_are_shown_with_their_meaning() {
    let with = |labels: &[Label]| Asked { labels: Labels::recorded(labels), ..persona("x") };
    with(&[Label::External, Label::LlmDerived]).assert_shows(&[
        "  !! Before the agent asked, its model read, or may have read, text of other people or of tools.",
        "Text of other people or of tools in this conversation: yes; its model read it",
        "labels of the request: External, LlmDerived",
    ]);
    let none = with(&[Label::LlmDerived]);
    none.assert_shows(&["or of tools in this conversation: none in the record", "labels of the request: LlmDerived"]);
    none.assert_lacks("  !! ");
    with(&[]).assert_shows(&[
        "  !! The host does not know",
        "in this conversation: unknown",
        "labels of the request: none",
    ]);
    let person = Asked { is_person: true, labels: Labels::NONE, ..persona("x") };
    person.assert_shows(&["labels of the request: none"]);
    person.assert_lacks("text of other people");
    person.assert_lacks("Text of other people");
}

#[test]
fn each_danger_has_a_warning() {
    let warned = |kind: ChangeKind, words: &str| {
        let text = whole_lines(&sample(kind));
        let line =
            text.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("{words} is not in\n{text}"));
        assert!(line.starts_with("  !! "), "{line}");
    };
    warned(ChangeKind::EnabledTools, "The agent can RUN PROGRAMS: run_command runs programs in the jail of the agent");
    Asked { agent: "he\u{202e}lper".to_owned(), ..persona("x") }
        .assert_shows(&["  !! A name above contains unusual characters"]);
    persona("x").assert_lacks("unusual characters");
    warned(ChangeKind::Packages, "PUBLISHERS of these packages decide their content");
    warned(
        ChangeKind::Wiring,
        "EVERY message in channel \"hook\" from people who may talk to the agent can reach its model, also a message that it does not answer",
    );
    warned(ChangeKind::Permissions, "\"Bob\" (\"chat:bob\") becomes an ADMIN of this agent");
    warned(ChangeKind::Mounts, "The agent can WRITE to \"/srv/data\"");
    warned(ChangeKind::Mounts, "The agent can READ everything in \"/srv/data\"");
    warned(
        ChangeKind::CreateAgent,
        "EVERY message in channel \"hook\" from people who may talk to the agent reaches its model and gets an answer",
    );
    warned(ChangeKind::McpAccess, "LEAVES THIS HOST");
    warned(ChangeKind::McpAccess, "these SECRETS of this host to the server: \"files-key\"");
    warned(ChangeKind::McpAccess, "can contain INSTRUCTIONS");
    warned(ChangeKind::McpRegister, "SECRET \"files-key\": every request to");
    warned(ChangeKind::Schedule, "A MODEL wrote the prompt");
    warned(ChangeKind::Schedule, "can act OUTSIDE of the conversation");
    warned(ChangeKind::Settings, "NO LONGER CHECKS the origin of text");
    warned(ChangeKind::Settings, "goes to \"https://far.example/v1\"");
    warned(ChangeKind::Settings, "NO LIMIT for tokens per day");
    warned(ChangeKind::Settings, "can use MORE cost than now: 9.00 per day, now 1.00");
}

#[test]
fn grant_for_pushes_says_so_and_any_other_says_that_it_has_none() {
    let paths = |services: &[&str]| -> Vec<String> {
        let of = |service: &&str| [format!("/ada/tulip/info/refs?service={service}"), format!("/ada/tulip/{service}")];
        services.iter().flat_map(of).collect()
    };
    let grant = |services: &[&str]| {
        let methods = json!(["GET", "POST"]);
        Asked::of(
            ChangeKind::Egress,
            json!({"host": "git.example", "methods": methods, "paths": paths(services), "upload_bytes_max": 65536, "commands": "git"}),
        )
    };
    let pushes = grant(&["git-upload-pack", "git-receive-pack"]);
    pushes.assert_shows(&[
        "  !! PUSHES of agent \"helper\" may change any branch of these repositories: \"/ada/tulip\".",
    ]);
    let fetches = grant(&["git-upload-pack"]);
    fetches.assert_shows(&[
        "It may fetch these repositories, where each word in braces is one free part: \"/ada/tulip\".",
        "It may push nothing.",
    ]);
    fetches.assert_lacks("PUSH");
    for asked in [&pushes, &fetches] {
        let text = whole_lines(asked);
        assert_eq!(text.matches("/ada/tulip/info/refs?service=git-upload-pack").count(), 1, "{text}");
    }
}

#[test]
fn schedule_shows_its_flow_and_what_its_prompt_lacks() {
    let with = |more: Value| {
        let mut asked = sample(ChangeKind::Schedule);
        asked.payload = json!({"prompt": "Summarise the notes and send them to Ana.", "every": "1w", "zone": "UTC",
            "from": "2026-11-22T08:00:00.000Z", "creator": ALICE, "written_by": "person", "may": []});
        let fields = asked.payload.as_object_mut().expect("an object");
        fields.extend(more.as_object().expect("an object").clone());
        asked
    };
    let bare = with(json!({}));
    bare.assert_shows(&[
        "  Each run begins anew: it sees the prompt, and nothing of an earlier run.",
        "  !! The prompt seems to ask for calls of the class send, and a run MAY NOT make them: add --send-to DESTINATION",
    ]);
    let source = json!({"directory": "/notes", "source": "/home/ana/notes"});
    let flow = json!({"to": "me", "from": [source], "tool": "send_message", "recipient": "hook:7"});
    let sends = with(json!({ "flows": [flow] }));
    sends.assert_shows(&[
        "  WITHOUT A QUESTION a run may send to \"me\" by \"send_message\": to the address \"hook:7\".",
        "  Text of these directories may go there: \"/notes\" (\"/home/ana/notes\"). After it read any other text",
    ]);
    sends.assert_lacks("seems to ask");
    with(json!({ "context": "continue" }))
        .assert_shows(&["  Its runs continue one conversation: each sees the earlier ones."]);
    let mut lacking = with(json!({ "may": ["send"] }));
    lacking.facts["lacking"] = json!(["http_fetch", "send_message"]);
    lacking.assert_shows(&["DOES NOT HAVE: \"http_fetch\", \"send_message\"."]);
    lacking.assert_lacks("seems to ask");
}

#[test]
fn heading_in_a_payload_is_behind_a_bar() {
    let own = persona("x").shown();
    let text = persona(&own).shown();
    look_over(&text);
    for heading in own.lines().filter(|line| !line.starts_with(' ') && !line.is_empty()) {
        assert!(text.lines().any(|shown| shown.ends_with(&format!("  | {heading}"))), "{heading:?} is not in\n{text}");
    }
}

#[test]
fn text_of_a_hundred_kilobytes_is_shown_whole() {
    for piece in ["word ", "x", "\u{1b}", " ", "\n", "e\u{301}\u{301}", "語", "\u{202e}", "\u{430}"] {
        let long = piece.repeat(100_000 / piece.len());
        let text = persona(&format!("BEGIN{long}END")).shown();
        look_over(&text);
        let found = plain(&text);
        assert!(found.contains("BEGIN") && found.contains("END"), "{piece:?}");
        if piece == "x" {
            let shown =
                text.lines().filter_map(|line| line.split_once("| ")).map(|(_, line)| line.matches('x').count());
            assert_eq!(shown.sum::<usize>(), long.len());
        }
    }
}
