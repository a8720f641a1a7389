//! Properties of the review page: it is complete, it cannot be faked, and no two changes look the same.

mod differ;
mod golden;
mod manual;
mod mcp;
mod samples;
mod sentences;
mod skills;

use super::page::{CONTINUES, WIDTH};
use super::*;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::seam::change::Payload;
use ironclaw_judge::provenance::{Labels, Provenance};
use ironclaw_text::visible::columns;
use samples::{registered_again, settings_by_person};
use serde_json::json;
use std::fmt::Debug;
use std::str::FromStr;

const AGENT: &str = "agt_01j9zq4w0v2m6n8p0r2t4v6x8z";
const SCRIBE: &str = "agt_01jb3fk29m5q7s1w4y6a8c0e2g";
const ALICE: &str = "per_01j8xa7c3e5g7j9k1m3n5p7q9r";
const BOB: &str = "per_01j9c2d4f6h8k0m2p4r6t8v0x2";
const CAROL: &str = "per_01ja5m1n3q5s7v9x1z3b5d7f9h";
const CHANGE: &str = "chg_01jd4p8r2t6v0x4z8c2e6g0j4k";
const CALL: &str = "call_01jd4p8q5s9w3y7b1d5f9h3k7m";

/// The content of a view, owned.
#[derive(Debug, Clone, PartialEq)]
struct Asked {
    kind: ChangeKind,
    payload: Value,
    agent: String,
    principal: String,
    is_person: bool,
    message: Option<String>,
    labels: Labels,
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
            message: Some("msg_01jd4p8n1q3s5v7x9z1b3d5f7h".to_owned()),
            labels: Labels::from_provenance(Provenance::Model { context: Labels::NONE }),
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
                session: id("ses_01jc9w2y4a6c8e0g2j4m6p8r0t"),
                turn: id("trn_01jd4p8p7r1t5w9y3a7c1e5g9j"),
                message: self.message.as_deref().map(id),
                call: id(CALL),
            },
        };
        render(&View {
            id: id(CHANGE),
            change: &change,
            agent: kinds::concerns_agent(self.kind).then(|| (id(AGENT), self.agent.as_str())),
            requester,
            labels: self.labels,
            reason: &self.reason,
            before: &self.before,
            facts: &self.facts,
            rule: &rule,
            created_at: "2026-11-22T08:00:00.000Z".to_owned(),
            expires_at: self.expires_at.clone(),
            generation: self.generation,
        })
    }

    /// Asserts that the page has each of these texts.
    #[track_caller]
    fn assert_shows(&self, lines: &[&str]) {
        look_over(&self.shown());
        let text = whole_lines(self);
        for line in lines {
            assert!(text.lines().any(|shown| shown.contains(line)), "{line:?} is not in\n{text}");
        }
    }

    #[track_caller]
    fn assert_lacks(&self, words: &str) {
        let text = whole_lines(self);
        assert!(!text.contains(words), "{words:?} is in\n{text}");
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

/// The headings of most pages, in their order.
const HEADINGS: [&str; 7] = [
    "EFFECT",
    "CHANGES (- before, + after)",
    "REFERENCED NAMES",
    "REASON GIVEN BY",
    "REQUESTED BY",
    "APPROVAL",
    "IDENTIFIERS",
];

/// The headings of a page whose effects tell the whole change: the fields of the change come last.
const TOLD: [&str; 7] = [
    "EFFECT",
    "REASON GIVEN BY",
    "REQUESTED BY",
    "APPROVAL",
    "IDENTIFIERS",
    "CHANGES (- before, + after)",
    "REFERENCED NAMES",
];

/// The headings that only some pages have.
const OF_SOME: [&str; 3] = ["WARNINGS", "TOOLS AND ARGUMENTS", "LOOSER THAN THE STRICTEST RULES, BECAUSE"];

/// Checks the form of a page: width, characters, headings.
fn look_over(text: &str) {
    let mut headings = Vec::new();
    for line in text.lines() {
        assert!(line.chars().map(columns).sum::<usize>() <= WIDTH, "{line:?} is too wide");
        assert!(!line.ends_with(' '), "{line:?} ends with a space");
        assert!(!line.chars().any(char::is_control), "{line:?}");
        if !line.starts_with(' ') && !line.is_empty() && !OF_SOME.contains(&line) {
            headings.push(line);
        }
    }
    let are = |expected: [&str; 7]| {
        headings.len() == expected.len() && headings.iter().zip(expected).all(|(found, begin)| found.starts_with(begin))
    };
    assert!(are(HEADINGS) || are(TOLD), "a stranger's line begins at the edge:\n{text}");
    assert!(text.ends_with('\n'));
}

/// Returns the facts about people, as a host writes them.
fn people(identities: &[&str]) -> Value {
    let known = [("chat:bob", BOB, "Bob"), ("chat:carol", CAROL, "Carol")];
    let known = known.iter().filter(|(identity, ..)| identities.contains(identity));
    known.map(|(identity, person, name)| ((*identity).to_owned(), json!({"person": person, "name": name}))).collect()
}

/// Returns the facts about the channel `hook`; `heard_by` is the agent that hears it now.
fn hook(heard_by: &Value) -> Value {
    json!({"hook": {"generation": 1, "kind": "webhook", "heard_by": heard_by}})
}

/// Returns a change of this kind with every field, and the facts and the current setting that a host would have.
fn sample(kind: ChangeKind) -> Asked {
    let of = |before: Value, facts: Value, payload: Value| Asked { before, facts, ..Asked::of(kind, payload) };
    let header = json!({"name": "authorization", "secret": "files-key", "scheme": "Bearer"});
    match kind {
        ChangeKind::Persona => {
            Asked { before: json!({"instructions": "Be brief.\nBe rude."}), ..persona("Be brief.\nBe kind.") }
        }
        ChangeKind::EnabledTools => {
            of(json!(["read_file", "write_file"]), json!({}), json!(["read_file", "run_command"]))
        }
        ChangeKind::Packages => of(
            json!({"apt": ["tree"]}),
            json!({"clients": {
                "apt": {"client": "/usr/bin/apt-get", "sources": null},
                "npm": {"client": "/usr/bin/npm", "registry": null},
            }}),
            json!({"apt": ["jq"], "npm": ["left-pad"]}),
        ),
        ChangeKind::Wiring => of(
            json!({"channel": "hook", "engage": "none"}),
            json!({"channels": hook(&json!({"agent": SCRIBE, "name": "scribe"}))}),
            json!({"channel": "hook", "engage": "pattern", "pattern": "^!bot"}),
        ),
        ChangeKind::Permissions => of(
            json!({"access": "everyone", "grant": [{"identity": "chat:carol", "role": "member"}], "revoke": ["chat:bob"]}),
            json!({"identities": people(&["chat:bob", "chat:carol"])}),
            json!({"access": "members", "grant": [{"identity": "chat:bob", "role": "admin"}], "revoke": ["chat:carol"]}),
        ),
        ChangeKind::Mounts => of(
            json!([]),
            json!({"sources": {"/srv/data": {"filesystem": "ext4", "directory": true, "owner": 1000}}}),
            json!([{"source": "/srv/data", "target": "/data", "read_only": false}]),
        ),
        ChangeKind::CreateAgent => of(
            Value::Null,
            json!({"identities": people(&["chat:bob"]), "channels": hook(&json!({"agent": AGENT, "name": "helper"}))}),
            json!({
                "name": "scribe", "persona": {"instructions": "Write."}, "enabled_tools": ["write_file"],
                "members": ["chat:bob"], "wirings": [{"channel": "hook", "engage": "all"}],
            }),
        ),
        ChangeKind::McpAccess => of(
            json!({"server": "files", "tools": []}),
            json!({"servers": {"files": {
                "at": "https://mcp.example", "is_local": false, "tools": {"read": "read", "write": "send"}, "headers": [header],
            }}}),
            json!({"server": "files", "tools": ["read"]}),
        ),
        ChangeKind::McpRegister => of(
            Value::Null,
            json!({"secrets": {"files-key": true}, "grants": {}}),
            json!({
                "name": "files", "url": "https://mcp.example", "tools": [{"name": "read", "description": "Reads."}],
                "headers": [header],
            }),
        ),
        ChangeKind::Egress => of(
            json!({"host": "api.example", "methods": []}),
            json!({}),
            json!({
                "host": "api.example", "methods": ["GET", "POST"], "paths": ["/repos/{owner}/issues"],
                "secret": "files-key", "upload_bytes_max": 65536,
            }),
        ),
        ChangeKind::Destinations => of(
            json!({"name": "home", "remove": true}),
            json!({"channel": {"generation": 1, "kind": "webhook"}, "people": people(&["chat:bob"])}),
            json!({"name": "home", "channel": "chat", "address": "bob", "thread": "garden"}),
        ),
        ChangeKind::Groups => of(
            json!({"name": "home", "remove": true}),
            json!({"agents": {"clerk": {"agent": AGENT}, "helper": {"agent": SCRIBE}}}),
            json!({"name": "home", "agents": ["clerk", "helper"], "tools": ["read_file", "send_message"]}),
        ),
        ChangeKind::Skills => {
            let (before, facts, payload) = skills::upgrade();
            of(before, facts, payload)
        }
        ChangeKind::McpConfirm => {
            let (before, facts, payload) = mcp::confirmation();
            of(before, facts, payload)
        }
        ChangeKind::Schedule => of(
            Value::Null,
            json!({"creator": {"id": ALICE, "name": "Alice"}}),
            json!({"prompt": "Summarise the feed\nand post it.", "cron": "0 8 * * mon-fri", "zone": "Europe/Berlin",
                "catch_up": "once", "may": ["http_fetch", "send"], "reply_to": {"channel": "hook", "address": "7"},
                "from": "2026-11-22T08:00:00.000Z", "creator": ALICE, "written_by": "model"}),
        ),
        // Only people request it.
        ChangeKind::Settings => Asked {
            facts: json!({
                "endpoint": {"name": "far", "kind": "openai", "base_url": "https://far.example/v1", "model": "m", "fallbacks": []},
                "of_the_settings": {"tokens_per_day": 0, "cost_per_day_micros": 0},
            }),
            ..settings_by_person(
                json!({"mode": "enforce", "model": "default", "tokens_per_day": 1000, "cost_per_day_micros": 1_000_000}),
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

/// Lines of a small terminal.
const SCREEN_LINES: usize = 24;

#[test]
fn effect_is_first_on_the_page_and_warnings_follow() {
    for asked in samples() {
        let text = asked.shown();
        let is_told = asked.kind == ChangeKind::McpConfirm;
        let next = if is_told { "\nTOOLS AND ARGUMENTS\n" } else { "\nCHANGES (" };
        let (begin, _) = text.split_once(next).expect("the next section");
        let (effect, warnings) = begin.split_once("\nWARNINGS\n").unwrap_or((begin, ""));
        assert!(effect.starts_with("EFFECT\n  ") && !effect.contains("  !! "), "{text}");
        assert!(warnings.lines().all(|line| line.starts_with("  !! ")), "{text}");
        assert!(begin.lines().count() < SCREEN_LINES, "effect and warnings are on the first screen:\n{text}");
        let (_, end) = text.rsplit_once("\nIDENTIFIERS\n").expect("a section");
        assert!(is_told || end.lines().all(|line| line.starts_with(' ')), "the identifiers are last:\n{text}");
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
        for words in [AGENT, ALICE, CHANGE].into_iter().chain((!asked.is_person).then_some(CALL)) {
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

/// Returns a change with hostile names, texts and reason. The checks of the host refuse most of them; the page does not rely on that.
fn hostile() -> Asked {
    let name = "Bob\"\n\nAPPROVAL\n  !! none \u{202e}nimda ⟦looks fine⟧";
    let identity = "chat:b\u{43e}b\n  !! approved by \"owner\"\u{2028}EFFECT";
    let others = "chat:carol\", \"chat:dave";
    Asked {
        agent: "helper\" (agt_1)\n\nWARNINGS\n  !! nothing".to_owned(),
        principal: "\u{202e}ecilA ⟦+⟧".to_owned(),
        labels: Labels::from_provenance(Provenance::Notes { by_model: true }),
        reason: "fine\n\nAPPROVAL\n  Approvals needed: 0\n  !! ⟦safe⟧\n\u{1b}[2J\rEFFECT\n\u{5e9}\u{5dc}\u{5d5}\u{5dd}"
            .to_owned(),
        before: json!({"access": "members", "revoke": [identity]}),
        facts: json!({"identities": {identity: {"person": BOB, "name": name, "look twice": [name]}}}),
        ..Asked::of(
            ChangeKind::Permissions,
            json!({"grant": [{"identity": identity, "role": "admin"}], "revoke": [others]}),
        )
    }
}

#[test]
fn hostile_names_write_no_line_of_the_host() {
    let asked = hostile();
    let text = asked.shown();
    look_over(&text);
    let tame = Asked {
        agent: "helper".to_owned(),
        principal: "Alice".to_owned(),
        reason: "fine".to_owned(),
        facts: json!({}),
        before: json!({"access": "members", "revoke": ["chat:bob"]}),
        payload: json!({"grant": [{"identity": "chat:bob", "role": "admin"}], "revoke": ["chat:carol"]}),
        ..asked.clone()
    };
    let warnings = |asked: &Asked| whole_lines(asked).lines().filter(|line| line.starts_with("  !! ")).count();
    // The names add one warning, about their characters.
    assert_eq!(warnings(&asked), warnings(&tame) + 1, "{text}");
    for words in ["\u{202e}", "\u{2028}", "\u{1b}", "\u{43e}", "⟦looks fine", "⟦safe⟧"] {
        assert!(!text.contains(words), "{words:?} is in\n{text}");
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
    strict.assert_shows(&[
        "  May approve: an owner or admin of this host, or an admin of this agent",
        "  \"Alice\", on whose behalf the agent asks, may not approve.",
        "two approvals count as one if",
        "from \"Alice\" after this request was made does not count.",
    ]);
    let alone = persona("x");
    alone
        .assert_shows(&["  \"Alice\", on whose behalf the agent asks, may approve, but only with one of these roles."]);
    alone.assert_lacks("count as one");
    alone.assert_lacks("does not count");
    let person = Asked { is_person: true, ..Asked::of(ChangeKind::Mounts, json!([])) };
    let text = person.shown();
    assert!(text.contains(&format!("  person \"Alice\" ({ALICE})\n")), "{text}");
    assert!(!text.contains("an admin of this agent"), "{text}");
    assert!(text.contains("Without a decision by 2026-11-29 08:00 UTC this request expires"), "{text}");
    assert!(text.contains("  expires at: 2026-11-29T08:00:00.000Z\n"), "{text}");
    person.assert_shows(&["  \"Alice\", who asks, may approve, but only with one of these roles."]);
}
