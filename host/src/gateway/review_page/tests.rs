//! Promises about what a person is shown: nothing is left out, nothing is faked, and no two changes look the same.

mod differ;

use super::page::GOES_ON;
use super::*;
use ironclaw_contract::seam::change::{ChangeKind, Payload};
use ironclaw_text::visible::columns;
use serde_json::json;
use std::fmt::Debug;
use std::str::FromStr;

const AGENT: &str = "agt_01j9zq4w0v2m6n8p0r2t4v6x8z";
const ALICE: &str = "per_01j9zq4w0v2m6n8p0r2t4v6x8z";

/// What a view is made of, owned.
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

    /// As it is shown, without the bounds of the contract: what is shown does not rely on them.
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
            true => Asker::Person(id(ALICE), &self.principal),
            false => Asker::Agent {
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

/// The text without what breaking lines and marking them adds.
fn plain(text: &str) -> String {
    let text = text.replace(GOES_ON, "").replace("⟦right to left⟧", "");
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

/// What every text promises, whatever it is about.
fn look_over(text: &str) {
    let mut headings = 0;
    for line in text.lines() {
        assert!(line.chars().map(columns).sum::<usize>() <= WIDTH, "{line:?} is too wide");
        assert!(!line.ends_with(' '), "{line:?} ends with a space");
        assert!(!line.chars().any(char::is_control), "{line:?}");
        headings += usize::from(!line.starts_with(' ') && !line.is_empty());
    }
    assert_eq!(headings, 7, "a stranger's line begins at the edge:\n{text}");
    assert!(text.ends_with('\n'));
}

/// One of this kind, with every field.
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

/// One of each kind.
fn samples() -> impl Iterator<Item = Asked> {
    ChangeKind::ALL.iter().copied().map(sample)
}

/// As it is shown, with each sentence on one line.
fn whole_lines(asked: &Asked) -> String {
    let text = asked.shown();
    text.replace(&format!("{GOES_ON}\n  !! "), "").replace(&format!("{GOES_ON}\n  "), "")
}

/// Whether each of these is said, in what would happen and who asks and decides.
#[track_caller]
fn says(asked: &Asked, lines: &[&str]) {
    look_over(&asked.shown());
    let text = whole_lines(asked);
    for line in lines {
        assert!(text.lines().any(|shown| shown.contains(line)), "{line:?} is not in\n{text}");
    }
}

#[track_caller]
fn says_nothing_of(asked: &Asked, words: &str) {
    let text = whole_lines(asked);
    assert!(!text.contains(words), "{words:?} is in\n{text}");
}

/// A server in the place of one that is there, with what agents have of it.
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

#[test]
fn server_replacement_shows_what_its_agents_keep() {
    let header = json!([{"name": "Authorization", "secret": "files-key", "scheme": "Bearer"}]);
    let grants = json!({"scribe": {"agent": AGENT, "has": ["read", "write"], "keeps": ["read"]}});
    let kept = registered_again(header.clone(), grants.clone());
    says(
        &kept,
        &[
            "  !! MCP server \"files\", which this host knows already, would be REPLACED: it would be at \"https://mcp.example\" (as now).",
            "  !! Agent \"scribe\" (agt_01j9zq4w0v2m6n8p0r2t4v6x8z) has tools of \"files\" and would KEEP these: \"read\". It would lose: \"write\".",
            "would go out as is said here, with the secrets that are named below.",
        ],
    );
    says_nothing_of(&kept, "No agent could use it yet");
    says_nothing_of(&kept, "would be known to this host");
    says(&registered_again(json!([]), grants), &["would go out as is said here, without a secret."]);

    let lost = json!({"scribe": {"agent": AGENT, "has": ["read"], "keeps": []}});
    let mut moved = registered_again(header.clone(), lost);
    moved.before["url"] = json!("https://old.example");
    says(
        &moved,
        &[
            "at \"https://mcp.example\" (now: \"https://old.example\")",
            "would lose every tool that it has of \"files\": \"read\".",
            "No agent could use it yet: that is a change of its own.",
        ],
    );
    let mut new = registered_again(header, json!({}));
    new.before = Value::Null;
    says(&new, &["would be known to this host.", "No agent could use it yet"]);
    says_nothing_of(&new, "REPLACED");
}

#[test]
fn member_access_names_owners_and_admins_of_the_host() {
    let members = Asked::of(ChangeKind::Permissions, json!({"access": "members"}));
    says(&members, &["only by owners and admins of this host and by those with a role of this agent."]);
    let new = Asked::of(ChangeKind::CreateAgent, json!({"name": "scribe", "members": ["chat:bob"]}));
    says(&new, &["Beside owners and admins of this host, these could talk to it: \"chat:bob\"."]);
}

#[test]
fn agent_admin_is_a_decider_only_where_one_may_decide() {
    says(&persona("x"), &["owner, admin, or admin of this agent"]);
    says_nothing_of(&Asked { roles: vec![Role::Owner], ..persona("x") }, "admin of this agent");
    let access = Asked::of(ChangeKind::McpAccess, json!({"server": "files", "tools": ["read"]}));
    says_nothing_of(&access, "admin of this agent");
}

#[test]
fn access_that_is_taken_away_lets_nothing_leave() {
    let none = Asked::of(ChangeKind::McpAccess, json!({"server": "files", "tools": []}));
    says(&none, &["would not be allowed to call any tool of MCP server \"files\" any more."]);
    says_nothing_of(&none, "leave this machine");
}

#[test]
fn from_where_software_would_be_fetched_is_said() {
    let mut asked = Asked::of(ChangeKind::Packages, json!({"apt": ["jq"], "npm": ["left-pad"]}));
    asked.facts = json!({"clients": {
        "apt": {"client": "/usr/bin/apt-get", "sources": null},
        "npm": {"client": "/usr/bin/npm", "registry": null},
    }});
    says(
        &asked,
        &[
            "What is of apt would be fetched with \"/usr/bin/apt-get\", from the sources of this machine.",
            "What is of npm would be fetched with \"/usr/bin/npm\", from npm's own registry.",
        ],
    );
    asked.facts["clients"]["apt"]["sources"] = json!("/srv/own.list");
    asked.facts["clients"]["npm"]["registry"] = json!("https://npm.example/");
    says(
        &asked,
        &[
            "\"/usr/bin/apt-get\", from the sources \"/srv/own.list\" of this host's settings.",
            "\"/usr/bin/npm\", from the registry \"https://npm.example/\" of this host's settings.",
        ],
    );
    asked.facts = json!({"clients": {"npm": {"client": "/usr/bin/npm", "registry": null}}});
    says_nothing_of(&asked, "What is of apt");
}

#[test]
fn labels_of_the_request_are_shown_with_their_meaning() {
    let with = |labels: &[Label]| Asked { labels: labels.to_vec(), ..persona("x") };
    says(
        &with(&[Label::External, Label::LlmDerived]),
        &["held words of strangers, or may have", "labels of the request: External, LlmDerived"],
    );
    says(&with(&[Label::LlmDerived]), &["held no words of strangers", "labels of the request: LlmDerived"]);
    says(&with(&[]), &["when it asked is not known", "labels of the request: none"]);
    let person = Asked { is_person: true, labels: Vec::new(), ..persona("x") };
    says(&person, &["labels of the request: none"]);
    says_nothing_of(&person, "its model");
}

#[test]
fn what_can_do_harm_is_said_clearly() {
    let said = |kind: ChangeKind, words: &str| {
        let text = whole_lines(&sample(kind));
        let line =
            text.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("{words} is not in\n{text}"));
        assert!(line.starts_with("  !! "), "{line}");
    };
    said(ChangeKind::EnabledTools, "would be allowed to run programs in its jail: run_command");
    said(ChangeKind::Packages, "publishers of this software decide what comes");
    said(ChangeKind::Permissions, "\"chat:bob\" would be an ADMIN of this agent");
    said(ChangeKind::Mounts, "It could WRITE to \"/srv/data\"");
    said(ChangeKind::CreateAgent, "answer EVERY message");
    said(ChangeKind::McpAccess, "leave this machine");
    said(ChangeKind::McpRegister, "would carry the SECRET \"files-key\"");
    said(ChangeKind::Settings, "would NOT be guarded");
    said(ChangeKind::Settings, "would go to \"https://far.example/v1\"");
    said(ChangeKind::Settings, "NO ceiling of its own for tokens");
    said(ChangeKind::Settings, "could use up to 9000000 millionths");
}

#[test]
fn effect_is_last_on_the_page_and_warnings_end_it() {
    for asked in samples() {
        let text = asked.shown();
        assert!(text.starts_with("WHICH CHANGE\n"), "{text}");
        let (_, effect) = text.rsplit_once("\nWHAT WOULD HAPPEN\n").expect("it is said");
        assert!(effect.lines().all(|line| line.starts_with(' ')), "no section behind it: {text}");
        let first = effect.lines().position(|line| line.starts_with("  !! "));
        let mildest = effect.lines().skip(first.unwrap_or(0)).filter(|line| !line.starts_with("  !! "));
        assert!(first.is_none() || mildest.count() == 0, "{effect}");
    }
}

#[test]
fn every_leaf_of_every_kind_can_be_found_again() {
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
fn a_text_cannot_pass_for_the_hosts_words() {
    let faked = "fine\n\nWHO DECIDES\n  nobody has to\n  - | old\n  + | new\nWHICH CHANGE\napproved by owner\n\u{1b}[2J\u{1b}[H\rWHAT\n\
                 ⟦+⟧ ⟦right to left⟧\n    | a\n\u{85}WHO\u{2028}WHO\n  !! no\u{202e}\u{9b}31m";
    for asked in [persona(faked), Asked { reason: faked.to_owned(), ..persona("x") }] {
        let text = asked.shown();
        look_over(&text);
        for words in
            ["nobody has to", "approved by owner", "⟦U+27E6⟧+⟦U+27E7⟧", "⟦U+001B⟧[2J", "⟦U+0085⟧WHO⟦U+2028⟧WHO"]
        {
            let line =
                text.lines().find(|line| line.contains(words)).unwrap_or_else(|| panic!("{words} is not in\n{text}"));
            assert!(line[..line.find(words).expect("it is there")].contains("| "), "{line}");
        }
    }
    let names = ["x\", \"y", "read_file\nWHO DECIDES", "x\u{1b}[2K", "* \"a\"", "none", "y⟦+⟧"];
    let asked =
        Asked { facts: json!({"WHO DECIDES\nnobody": faked}), ..Asked::of(ChangeKind::EnabledTools, json!(names)) };
    let text = asked.shown();
    look_over(&text);
    assert!(text.contains("* \"x⟦U+0022⟧, ⟦U+0022⟧y\""), "{text}");
    assert!(text.contains("* \"none\""), "{text}");
    let named =
        Asked { agent: "a\" (agt_1)\nWHO ASKS".to_owned(), principal: "\u{202e}ecilA".to_owned(), ..persona("x") };
    look_over(&named.shown());
}

#[test]
fn a_line_of_the_hosts_own_as_a_payload_is_behind_a_bar_there() {
    let own = persona("x").shown();
    let text = persona(&own).shown();
    look_over(&text);
    for heading in own.lines().filter(|line| !line.starts_with(' ') && !line.is_empty()) {
        assert!(text.lines().any(|shown| shown.ends_with(&format!("  | {heading}"))), "{heading:?} is not in\n{text}");
    }
}

#[test]
fn a_hundred_kilobytes_are_shown_whole() {
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
fn a_name_that_looks_like_another_says_so() {
    let new = |name: &str| Asked::of(ChangeKind::CreateAgent, json!({ "name": name })).shown();
    for twin in ["heIper", "he1per", "HELPER", "h\u{435}lper", "hel\u{200b}per"] {
        let text = new(twin);
        assert!(text.replace(&format!("{GOES_ON}\n  "), "").contains("⟦looks like the name of agt_"), "{twin}\n{text}");
    }
    assert!(!new("helper").contains("looks like"));
    assert!(!new("scribe").contains("looks like"));
    assert!(!new(ALICE).contains("is a digit"), "an id is read as a whole");
    let mut asked = Asked::of(ChangeKind::EnabledTools, json!(["read_fi1e"]));
    asked.before = json!(["read_file"]);
    assert!(asked.shown().contains("⟦looks like another one that is shown here⟧"));
    let twins = Asked::of(ChangeKind::EnabledTools, json!(["recall", "recaII"]));
    assert!(twins.shown().contains("⟦looks like another one that is shown here⟧"));
}

#[test]
fn who_decides_and_who_asks_is_said() {
    let strict = Asked { approvals: 2, requester_may_approve: false, ..persona("x") };
    let text = strict.shown();
    assert!(text.contains("  2 different people have to say yes\n"), "{text}");
    assert!(text.contains("the person on whose behalf the agent asks does not count"), "{text}");
    assert!(text.contains("owner, admin, or admin of this agent"), "{text}");
    let person = Asked { is_person: true, ..Asked::of(ChangeKind::Mounts, json!([])) };
    let text = person.shown();
    assert!(text.contains(&format!("  person \"Alice\" ({ALICE})\n")), "{text}");
    assert!(!text.contains("admin of this agent"), "{text}");
    assert!(text.contains("until 2026-11-29T08:00:00.000Z; then it is over"), "{text}");
}
