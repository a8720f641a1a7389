//! Properties of the review page: it is complete, it cannot be faked, and no two changes look the same.

mod differ;
mod golden;

use super::page::CONTINUES;
use super::*;
use ironclaw_contract::seam::change::{ChangeKind, Payload};
use ironclaw_text::visible::columns;
use serde_json::json;
use std::fmt::Debug;
use std::str::FromStr;

const AGENT: &str = "agt_01j9zq4w0v2m6n8p0r2t4v6x8z";
const ALICE: &str = "per_01j9zq4w0v2m6n8p0r2t4v6x8z";

/// The content of a view, owned.
#[derive(Debug, Clone, PartialEq)]
struct Asked {
    kind: ChangeKind,
    payload: Value,
    agent: String,
    principal: String,
    is_person: bool,
    message: Option<String>,
    labels: Vec<Label>,
    reason: String,
    before: Value,
    facts: Value,
    roles: Vec<Role>,
    approvals: u32,
    requester_may_approve: bool,
    expires_at: String,
    generation: u64,
}

impl Asked {
    fn of(kind: ChangeKind, payload: Value) -> Self {
        Self {
            kind,
            payload,
            agent: "helper".to_owned(),
            principal: "Alice".to_owned(),
            is_person: false,
            message: Some("msg_01j9zq4w0v2m6n8p0r2t4v6x8z".to_owned()),
            labels: vec![Label::LlmDerived],
            reason: "the user asked for it".to_owned(),
            before: Value::Null,
            facts: json!({}),
            roles: vec![Role::Owner, Role::Admin],
            approvals: 1,
            requester_may_approve: true,
            expires_at: "2026-11-29T08:00:00.000Z".to_owned(),
            generation: 1,
        }
    }

    /// Returns the page, without the bounds of the contract: the page does not rely on them.
    fn shown(&self) -> String {
        let read = |value: &Value| serde_json::from_value(value.clone());
        let read = match self.kind {
            ChangeKind::Persona => read(&self.payload).map(Change::Persona),
            _ => {
                let payload = Payload::try_from(self.payload.clone()).expect("an object or a list");
                Ok(Change::parse(self.kind, &payload).expect("a payload of its kind"))
            }
        };
        let change = read.expect("a payload of its kind");
        let rule = Rule {
            roles: self.roles.clone(),
            approvals: self.approvals,
            requester_may_approve: self.requester_may_approve,
            expires_hours: 168,
        };
        let requester = match self.is_person {
            true => PageRequester::Person(id(ALICE), &self.principal),
            false => PageRequester::Agent {
                agent: (id(AGENT), &self.agent),
                principal: (id(ALICE), &self.principal),
                session: id("ses_01j9zq4w0v2m6n8p0r2t4v6x8z"),
                turn: id("trn_01j9zq4w0v2m6n8p0r2t4v6x8z"),
                message: self.message.as_deref().map(id),
                call: id("call_01j9zq4w0v2m6n8p0r2t4v6x8z"),
            },
        };
        render(&View {
            id: id("chg_01j9zq4w0v2m6n8p0r2t4v6x8z"),
            change: &change,
            agent: Some((id(AGENT), &self.agent)),
            requester,
            labels: &self.labels,
            reason: &self.reason,
            before: &self.before,
            facts: &self.facts,
            rule: &rule,
            created_at: "2026-11-22T08:00:00.000Z".to_owned(),
            expires_at: self.expires_at.clone(),
            generation: self.generation,
        })
    }
}

fn id<T: FromStr<Err: Debug>>(text: &str) -> T {
    text.parse().expect("an id")
}

fn persona(instructions: &str) -> Asked {
    Asked::of(ChangeKind::Persona, json!({ "instructions": instructions }))
}

/// Returns a text without the characters and marks that wrapping adds.
fn plain(text: &str) -> String {
    let text = text.replace(CONTINUES, "").replace("⟦right to left⟧", "");
    text.chars().filter(|character| !" |+-!\n".contains(*character)).collect()
}

fn leaves(value: &Value) -> Vec<&str> {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
        Value::String(text) => vec![text],
        Value::Array(entries) => entries.iter().flat_map(leaves).collect(),
        Value::Object(fields) => fields.values().flat_map(leaves).collect(),
    }
}

/// The headings of every page, in their order. The page of a dangerous change also has `WARNINGS`.
const HEADINGS: [&str; 7] = [
    "EFFECT",
    "DIFF (- REMOVED, + ADDED)",
    "REFERENCED NAMES",
    "REASON GIVEN BY",
    "REQUESTED BY",
    "APPROVAL",
    "IDENTIFIERS",
];

/// Checks the form of a page: width, characters, headings.
fn look_over(text: &str) {
    let mut headings = Vec::new();
    for line in text.lines() {
        assert!(line.chars().map(columns).sum::<usize>() <= WIDTH, "{line:?} is too wide");
        assert!(!line.ends_with(' '), "{line:?} ends with a space");
        assert!(!line.chars().any(char::is_control), "{line:?}");
        if !line.starts_with(' ') && !line.is_empty() && line != "WARNINGS" {
            headings.push(line);
        }
    }
    let as_expected = headings.len() == HEADINGS.len()
        && headings.iter().zip(HEADINGS).all(|(found, expected)| found.starts_with(expected));
    assert!(as_expected, "a stranger's line begins at the edge:\n{text}");
    assert!(text.ends_with('\n'));
}

/// Returns a change of this kind with every field.
fn sample(kind: ChangeKind) -> Asked {
    let of = |payload| Asked::of(kind, payload);
    match kind {
        ChangeKind::Persona => {
            Asked { before: json!({"instructions": "Be brief.\nBe rude."}), ..persona("Be brief.\nBe kind.") }
        }
        ChangeKind::EnabledTools => {
            Asked { before: json!(["read_file", "write_file"]), ..of(json!(["read_file", "run_command"])) }
        }
        ChangeKind::Packages => of(json!({"apt": ["jq"], "npm": ["left-pad"]})),
        ChangeKind::Wiring => of(json!({"channel": "hook", "engage": "pattern", "pattern": "^!bot"})),
        ChangeKind::Permissions => Asked {
            facts: json!({"identities": {"chat:bob": {"person": ALICE, "name": "Bob"}}}),
            ..of(
                json!({"access": "members", "grant": [{"identity": "chat:bob", "role": "admin"}], "revoke": ["chat:carol"]}),
            )
        },
        ChangeKind::Mounts => of(json!([{"source": "/srv/data", "target": "/data", "read_only": false}])),
        ChangeKind::CreateAgent => of(json!({
            "name": "scribe", "persona": {"instructions": "Write."}, "enabled_tools": ["write_file"],
            "members": ["chat:bob"], "wirings": [{"channel": "hook", "engage": "all"}],
        })),
        ChangeKind::McpAccess => of(json!({"server": "files", "tools": ["read"]})),
        ChangeKind::McpRegister => of(json!({
            "name": "files", "url": "https://mcp.example", "tools": [{"name": "read", "description": "Reads."}],
            "headers": [{"name": "Authorization", "secret": "files-key", "scheme": "Bearer"}],
        })),
        ChangeKind::Settings => Asked {
            before: json!({"mode": "enforce", "model": "default", "tokens_per_day": 1000, "cost_per_day_micros": 1_000_000}),
            facts: json!({
                "endpoint": {"name": "far", "kind": "openai", "base_url": "https://far.example/v1", "model": "m", "fallbacks": []},
                "of_the_settings": {"tokens_per_day": 0, "cost_per_day_micros": 0},
            }),
            ..of(
                json!({"mode": "dangerous_off", "model": "far", "tokens_per_day": 0, "cost_per_day_micros": 9_000_000}),
            )
        },
    }
}

/// Returns a change of each kind.
fn samples() -> impl Iterator<Item = Asked> {
    ChangeKind::ALL.iter().copied().map(sample)
}

/// Returns the page with each sentence on one line.
fn whole_lines(asked: &Asked) -> String {
    let mut text = asked.shown();
    for indent in ["  !!   ", "    ", "  "] {
        text = text.replace(&format!("{CONTINUES}\n{indent}"), "");
    }
    text.replace("\n  !!   ", " ").replace("\n    ", " ")
}

/// Asserts that the page has each of these texts.
#[track_caller]
fn assert_shown(asked: &Asked, lines: &[&str]) {
    look_over(&asked.shown());
    let text = whole_lines(asked);
    for line in lines {
        assert!(text.lines().any(|shown| shown.contains(line)), "{line:?} is not in\n{text}");
    }
}

#[track_caller]
fn assert_not_shown(asked: &Asked, words: &str) {
    let text = whole_lines(asked);
    assert!(!text.contains(words), "{words:?} is in\n{text}");
}

/// Returns the replacement of a known server, with the grants of agents.
fn registered_again(headers: Value, grants: Value) -> Asked {
    let server = |headers: Value| {
        let tools = [json!({"name": "read"})];
        json!({"name": "files", "url": "https://mcp.example", "tools": tools, "headers": headers})
    };
    let mut asked = Asked::of(ChangeKind::McpRegister, server(headers));
    asked.before = server(json!([]));
    asked.facts = json!({"secrets": {"files-key": true}, "grants": grants});
    asked
}

/// Returns settings of an agent, asked for by a person.
fn settings_by_person(before: Value, payload: Value) -> Asked {
    Asked { before, is_person: true, labels: Vec::new(), ..Asked::of(ChangeKind::Settings, payload) }
}

#[test]
fn server_replacement_shows_what_its_agents_keep() {
    let header = json!([{"name": "Authorization", "secret": "files-key", "scheme": "Bearer"}]);
    let grants = json!({"scribe": {"agent": AGENT, "has": ["read", "write"], "keeps": ["read"]}});
    let kept = registered_again(header.clone(), grants.clone());
    assert_shown(
        &kept,
        &[
            "  !! MCP server \"files\" exists and is REPLACED: its address becomes \"https://mcp.example\" (as now).",
            "  !! Agent \"scribe\" (agt_01j9zq4w0v2m6n8p0r2t4v6x8z) KEEPS these tools of \"files\": \"read\" (it loses: \"write\")",
            "its requests then go to this address with the secrets named here.",
        ],
    );
    assert_not_shown(&kept, "No agent can use it yet");
    assert_not_shown(&kept, "Add MCP server");
    assert_shown(&registered_again(json!([]), grants), &["its requests then go to this address without a secret."]);

    let lost = json!({"scribe": {"agent": AGENT, "has": ["read"], "keeps": []}});
    let mut moved = registered_again(header.clone(), lost);
    moved.before["url"] = json!("https://old.example");
    assert_shown(
        &moved,
        &[
            "its address becomes \"https://mcp.example\" (now: \"https://old.example\")",
            "loses all its tools of \"files\": \"read\".",
            "No agent can use it yet. That needs another change.",
        ],
    );
    let mut new = registered_again(header, json!({}));
    new.before = Value::Null;
    assert_shown(&new, &["to the catalogue of this host.", "No agent can use it yet"]);
    assert_not_shown(&new, "REPLACED");
}

#[test]
fn member_access_names_owners_and_admins_of_the_host() {
    let members = Asked::of(ChangeKind::Permissions, json!({"access": "members"}));
    assert_shown(&members, &["only owners and admins of this host, and people with a role of this agent."]);
    let new = Asked::of(ChangeKind::CreateAgent, json!({"name": "scribe", "members": ["chat:bob"]}));
    assert_shown(&new, &["People who may talk to it, beside owners and admins of this host: \"chat:bob\"."]);
}

#[test]
fn agent_admin_is_a_decider_only_where_one_may_decide() {
    assert_shown(&persona("x"), &["owner, admin, or admin of this agent"]);
    assert_not_shown(&Asked { roles: vec![Role::Owner], ..persona("x") }, "admin of this agent");
    let access = Asked::of(ChangeKind::McpAccess, json!({"server": "files", "tools": ["read"]}));
    assert_not_shown(&access, "admin of this agent");
}

#[test]
fn removed_mcp_access_has_no_warning() {
    let none = Asked::of(ChangeKind::McpAccess, json!({"server": "files", "tools": []}));
    assert_shown(&none, &["Take all tools of MCP server \"files\" away from agent \"helper\"."]);
    assert_not_shown(&none, "LEAVES THIS MACHINE");
}

#[test]
fn page_names_the_source_of_software() {
    let mut asked = Asked::of(ChangeKind::Packages, json!({"apt": ["jq"], "npm": ["left-pad"]}));
    asked.facts = json!({"clients": {
        "apt": {"client": "/usr/bin/apt-get", "sources": null},
        "npm": {"client": "/usr/bin/npm", "registry": null},
    }});
    assert_shown(
        &asked,
        &[
            "Fetch apt packages with \"/usr/bin/apt-get\", from the sources of this machine.",
            "Fetch npm packages with \"/usr/bin/npm\", from npm's own registry.",
        ],
    );
    asked.facts["clients"]["apt"]["sources"] = json!("/srv/own.list");
    asked.facts["clients"]["npm"]["registry"] = json!("https://npm.example/");
    assert_shown(
        &asked,
        &[
            "\"/usr/bin/apt-get\", from the sources \"/srv/own.list\" of this host's settings.",
            "\"/usr/bin/npm\", from the registry \"https://npm.example/\" of this host's settings.",
        ],
    );
    asked.facts = json!({"clients": {"npm": {"client": "/usr/bin/npm", "registry": null}}});
    assert_not_shown(&asked, "Fetch apt");
}

#[test]
fn labels_of_the_request_are_shown_with_their_meaning() {
    let with = |labels: &[Label]| Asked { labels: labels.to_vec(), ..persona("x") };
    assert_shown(
        &with(&[Label::External, Label::LlmDerived]),
        &["Untrusted content in context: yes: its model had read", "labels of the request: External, LlmDerived"],
    );
    assert_shown(
        &with(&[Label::LlmDerived]),
        &["Untrusted content in context: none", "labels of the request: LlmDerived"],
    );
    assert_shown(&with(&[]), &["Untrusted content in context: unknown", "labels of the request: none"]);
    let person = Asked { is_person: true, labels: Vec::new(), ..persona("x") };
    assert_shown(&person, &["labels of the request: none"]);
    assert_not_shown(&person, "Untrusted content");
}

#[test]
fn each_danger_has_a_warning() {
    let warned = |kind: ChangeKind, words: &str| {
        let text = whole_lines(&sample(kind));
        let line =
            text.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("{words} is not in\n{text}"));
        assert!(line.starts_with("  !! "), "{line}");
    };
    warned(ChangeKind::EnabledTools, "The agent can RUN PROGRAMS in its isolated jail");
    warned(ChangeKind::Packages, "PUBLISHERS of this software decide its content");
    warned(ChangeKind::Permissions, "\"chat:bob\" becomes an ADMIN of this agent");
    warned(ChangeKind::Mounts, "The agent can WRITE to \"/srv/data\"");
    warned(ChangeKind::CreateAgent, "EVERY message that arrives in channel \"hook\"");
    warned(ChangeKind::McpAccess, "LEAVES THIS MACHINE");
    warned(ChangeKind::McpRegister, "The SECRET \"files-key\" goes to");
    warned(ChangeKind::Settings, "The agent is NOT guarded against forged text");
    warned(ChangeKind::Settings, "goes to \"https://far.example/v1\"");
    warned(ChangeKind::Settings, "NO ceiling of its own for tokens");
    warned(ChangeKind::Settings, "can use MORE than now: up to 9000000 millionths");
}

/// Lines of a small terminal.
const SCREEN_LINES: usize = 24;

#[test]
fn effect_is_first_on_the_page_and_warnings_follow() {
    for asked in samples() {
        let text = asked.shown();
        let (begin, _) = text.split_once("\nDIFF (").expect("a diff");
        let (effect, warnings) = begin.split_once("\nWARNINGS\n").unwrap_or((begin, ""));
        assert!(effect.starts_with("EFFECT\n  ") && !effect.contains("  !! "), "{text}");
        assert!(warnings.lines().all(|line| line.starts_with("  !! ")), "{text}");
        assert!(begin.lines().count() < SCREEN_LINES, "effect and warnings are on the first screen:\n{text}");
        let (_, end) = text.rsplit_once("\nIDENTIFIERS\n").expect("a section");
        assert!(end.lines().all(|line| line.starts_with(' ')), "no section is below the identifiers:\n{text}");
    }
}

#[test]
fn every_leaf_of_every_kind_is_on_the_page() {
    for asked in samples() {
        let text = asked.shown();
        look_over(&text);
        let found = plain(&text);
        for leaf in leaves(&asked.payload).into_iter().chain(leaves(&asked.before)).chain(leaves(&asked.facts)) {
            for line in leaf.split('\n') {
                assert!(found.contains(&plain(line)), "{line:?} is not in\n{text}");
            }
        }
        for words in [AGENT, ALICE, "chg_01j9zq4w0v2m6n8p0r2t4v6x8z", "call_01j9zq4w0v2m6n8p0r2t4v6x8z"] {
            assert!(text.contains(words), "{words} is not in\n{text}");
        }
    }
}

#[test]
fn persona_diff_shows_removed_added_and_kept_lines() {
    let text = sample(ChangeKind::Persona).shown();
    let wanted =
        "    persona:\n      instructions: text\n        | Be brief.\n  -     | Be rude.\n  +     | Be kind.\n";
    assert!(text.contains(wanted), "{text}");
}

#[test]
fn text_of_others_cannot_pass_for_the_hosts() {
    let faked = "fine\n\nAPPROVAL\n  no one has to\n  - | old\n  + | new\nIDENTIFIERS\napproved by owner\n\u{1b}[2J\u{1b}[H\rWHAT\n\
                 ⟦+⟧ ⟦right to left⟧\n    | a\n\u{85}WHO\u{2028}WHO\n  !! no\u{202e}\u{9b}31m";
    for asked in [persona(faked), Asked { reason: faked.to_owned(), ..persona("x") }] {
        let text = asked.shown();
        look_over(&text);
        for words in
            ["no one has to", "approved by owner", "⟦U+27E6⟧+⟦U+27E7⟧", "⟦U+001B⟧[2J", "⟦U+0085⟧WHO⟦U+2028⟧WHO"]
        {
            let line =
                text.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("{words} is not in\n{text}"));
            assert!(line[..line.find(words).expect("it is there")].contains("| "), "{line}");
        }
    }
    let names = ["x\", \"y", "read_file\nAPPROVAL", "x\u{1b}[2K", "* \"a\"", "none", "y⟦+⟧"];
    let asked = Asked { facts: json!({"APPROVAL\nnone": faked}), ..Asked::of(ChangeKind::EnabledTools, json!(names)) };
    let text = asked.shown();
    look_over(&text);
    assert!(text.contains("* \"x⟦U+0022⟧, ⟦U+0022⟧y\""), "{text}");
    assert!(text.contains("* \"none\""), "{text}");
    let named =
        Asked { agent: "a\" (agt_1)\nREQUESTED BY".to_owned(), principal: "\u{202e}ecilA".to_owned(), ..persona("x") };
    look_over(&named.shown());
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

#[test]
fn name_that_looks_like_another_has_a_mark() {
    let new = |name: &str| Asked::of(ChangeKind::CreateAgent, json!({ "name": name })).shown();
    for twin in ["heIper", "he1per", "HELPER", "h\u{435}lper", "hel\u{200b}per"] {
        let text = new(twin);
        assert!(
            text.replace(&format!("{CONTINUES}\n  "), "").contains("⟦looks like the name of agt_"),
            "{twin}\n{text}"
        );
    }
    assert!(!new("helper").contains("looks like"));
    assert!(!new("scribe").contains("looks like"));
    assert!(!new(ALICE).contains("is a digit"), "an id is read as a whole");
    let mut asked = Asked::of(ChangeKind::EnabledTools, json!(["read_fi1e"]));
    asked.before = json!(["read_file"]);
    assert!(asked.shown().contains("⟦looks like another name on this page⟧"));
    let twins = Asked::of(ChangeKind::EnabledTools, json!(["recall", "recaII"]));
    assert!(twins.shown().contains("⟦looks like another name on this page⟧"));
}

#[test]
fn page_names_requester_and_deciders() {
    let strict = Asked { approvals: 2, requester_may_approve: false, ..persona("x") };
    let text = strict.shown();
    assert!(text.contains("  Approvals needed: 2, from different people\n"), "{text}");
    assert!(text.contains("The person on whose behalf the agent asks cannot approve."), "{text}");
    assert!(text.contains("owner, admin, or admin of this agent"), "{text}");
    let person = Asked { is_person: true, ..Asked::of(ChangeKind::Mounts, json!([])) };
    let text = person.shown();
    assert!(text.contains(&format!("  person \"Alice\" ({ALICE})\n")), "{text}");
    assert!(!text.contains("admin of this agent"), "{text}");
    assert!(text.contains("Expires: 2026-11-29T08:00:00.000Z"), "{text}");
}
