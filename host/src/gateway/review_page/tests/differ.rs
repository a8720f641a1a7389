//! Properties of what is shown, over generated changes: two that differ are shown differently, and nothing is left out.

use super::super::{Label, Role};
use super::{Asked, leaves, look_over, plain};
use ironclaw_contract::seam::change::{Change, ChangeKind, Payload};
use ironclaw_text::visible::{self, name};
use proptest::prelude::*;
use serde_json::json;

fn words() -> impl Strategy<Value = String> {
    let odd = prop::sample::select(vec![
        "⟦", "⟧", "\"", " ", "\n", "\u{1b}", "\u{202e}", "\u{430}", "a", "b", "|", "- ", "+ ", "WHO ASKS", "none",
        ": text", ", ", "\u{301}", "é", "ש", "1 space",
    ]);
    prop::collection::vec(
        prop_oneof![4 => odd.prop_map(str::to_owned), 1 => any::<char>().prop_map(String::from)],
        1..8,
    )
    .prop_map(|pieces| pieces.concat())
}

fn list() -> impl Strategy<Value = Vec<String>> {
    prop::collection::btree_set(words(), 0..4).prop_map(|set| set.into_iter().collect())
}

fn asked() -> impl Strategy<Value = Asked> {
    let mount =
        (words(), words(), any::<bool>()).prop_map(|(s, t, r)| json!({"source": s, "target": t, "read_only": r}));
    let change = prop_oneof![
        words().prop_map(|text| (ChangeKind::Persona, json!({ "instructions": text }))),
        list().prop_map(|tools| (ChangeKind::EnabledTools, json!(tools))),
        (list(), list()).prop_map(|(apt, npm)| (ChangeKind::Packages, json!({"apt": apt, "npm": npm}))),
        (words(), words())
            .prop_map(|(c, p)| (ChangeKind::Wiring, json!({"channel": c, "engage": "pattern", "pattern": p}))),
        prop::collection::vec(mount, 0..3).prop_map(|mounts| (ChangeKind::Mounts, json!(mounts))),
        (words(), words(), list()).prop_map(|(name, text, tools)| {
            (ChangeKind::CreateAgent, json!({"name": name, "persona": {"instructions": text}, "enabled_tools": tools}))
        }),
        (words(), list())
            .prop_map(|(server, tools)| (ChangeKind::McpAccess, json!({"server": server, "tools": tools}))),
    ];
    (change, words(), words(), words(), any::<bool>(), words(), words()).prop_map(
        |((kind, payload), reason, agent, principal, is_person, before, fact)| {
            let before = match kind {
                ChangeKind::Persona => json!({ "instructions": before }),
                _ => json!([before]),
            };
            let facts = json!({ fact: [reason.clone()] });
            Asked { reason, agent, principal, is_person, before, facts, ..Asked::of(kind, payload) }
        },
    )
}

/// The same with one thing taken from another.
fn with_one_of(asked: &Asked, other: &Asked, which: usize) -> Asked {
    let mut asked = asked.clone();
    match which {
        0 => (asked.kind, asked.payload) = (other.kind, other.payload.clone()),
        1 => asked.agent.clone_from(&other.agent),
        2 => asked.principal.clone_from(&other.principal),
        3 => asked.is_person = other.is_person,
        4 => asked.message = None,
        5 => asked.reason.clone_from(&other.reason),
        6 => asked.before = other.before.clone(),
        7 => asked.facts = other.facts.clone(),
        8 => asked.approvals = 2,
        9 => asked.requester_may_approve = false,
        10 => asked.generation = 2,
        11 => asked.labels = vec![Label::External, Label::LlmDerived],
        12 => asked.roles = vec![Role::Owner],
        _ => asked.expires_at = "2026-11-30T08:00:00.000Z".to_owned(),
    }
    asked
}

/// What of a change is shown where: a person who asks has no message.
fn means(asked: &Asked) -> Asked {
    let message = asked.message.clone().filter(|_| !asked.is_person);
    let change = Payload::try_from(asked.payload.clone()).expect("an object or a list");
    let payload = Change::parse(asked.kind, &change).expect("a payload").payload().value().clone();
    Asked { message, payload, ..asked.clone() }
}

/// The text without digests, which would tell any two apart.
fn without_digests(text: &str) -> String {
    let mut lines = text.lines();
    let mut kept = String::new();
    while let Some(line) = lines.next() {
        // Its value is alone on the next line.
        if line.starts_with("  digest of") {
            lines.next();
        } else {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

proptest! {
    #[test]
    fn two_changes_that_differ_in_one_thing_are_never_shown_alike(one in asked(), other in asked(), which in 0_usize..14) {
        let two = with_one_of(&one, &other, which);
        prop_assume!(means(&one) != means(&two));
        prop_assert_ne!(without_digests(&one.shown()), without_digests(&two.shown()));
    }

    #[test]
    fn every_text_keeps_its_promises(asked in asked()) {
        let text = asked.shown();
        look_over(&text);
        let found = plain(&text);
        for leaf in leaves(&asked.payload).into_iter().filter(|leaf| !leaf.contains('\n') && leaf.is_ascii()) {
            let quoted = name(leaf);
            let shown = &quoted[1..quoted.rfind('"').expect("quotes")];
            prop_assert!(found.contains(&plain(shown)) || found.contains(&plain(&visible::line(leaf).text)), "{:?}\n{}", leaf, text);
        }
    }
}
