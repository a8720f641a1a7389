//! Properties of the page of generated changes: different changes have different pages, and nothing is left out.

use super::super::{Label, Role};
use super::{Asked, leaves, look_over, plain};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::seam::change::{Change, ChangeKind, GuardMode, Payload};
use ironclaw_judge::provenance::Labels;
use ironclaw_text::visible::{self, name};
use proptest::prelude::*;
use serde_json::{Value, json};

fn words() -> impl Strategy<Value = String> {
    let odd = prop::sample::select(vec![
        "⟦", "⟧", "\"", " ", "\n", "\u{1b}", "\u{202e}", "\u{430}", "a", "b", "|", "- ", "+ ", "APPROVAL", "none",
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

fn payload(kind: ChangeKind) -> BoxedStrategy<Value> {
    match kind {
        ChangeKind::Persona => words().prop_map(|text| json!({ "instructions": text })).boxed(),
        ChangeKind::EnabledTools => list().prop_map(|tools| json!(tools)).boxed(),
        ChangeKind::Packages => (list(), list()).prop_map(|(apt, npm)| json!({"apt": apt, "npm": npm})).boxed(),
        ChangeKind::Wiring => (words(), words())
            .prop_map(|(channel, pattern)| json!({"channel": channel, "engage": "pattern", "pattern": pattern}))
            .boxed(),
        ChangeKind::Permissions => (prop::sample::select(vec!["everyone", "members"]), list(), any::<bool>(), list())
            .prop_map(|(access, identities, is_admin, mut revoke)| {
                revoke.retain(|identity| !identities.contains(identity));
                let role = if is_admin { "admin" } else { "member" };
                let grant: Vec<Value> = identities.iter().map(|id| json!({"identity": id, "role": role})).collect();
                json!({"access": access, "grant": grant, "revoke": revoke})
            })
            .boxed(),
        ChangeKind::Mounts => {
            let mount = (words(), words(), any::<bool>())
                .prop_map(|(source, target, only)| json!({"source": source, "target": target, "read_only": only}));
            prop::collection::vec(mount, 0..3).prop_map(|mounts| json!(mounts)).boxed()
        }
        ChangeKind::CreateAgent => (words(), words(), list())
            .prop_map(
                |(name, text, tools)| json!({"name": name, "persona": {"instructions": text}, "enabled_tools": tools}),
            )
            .boxed(),
        ChangeKind::McpAccess => {
            (words(), list()).prop_map(|(server, tools)| json!({"server": server, "tools": tools})).boxed()
        }
        ChangeKind::McpRegister => (words(), words(), list(), words(), (words(), words(), words()))
            .prop_map(|(name, url, tools, description, (header, secret, scheme))| {
                let tools: Vec<Value> =
                    tools.iter().map(|tool| json!({"name": tool, "description": description})).collect();
                let headers = [json!({"name": header, "secret": secret, "scheme": scheme})];
                json!({"name": name, "url": url, "tools": tools, "headers": headers})
            })
            .boxed(),
        ChangeKind::McpConfirm => (words(), words(), words())
            .prop_map(|(server, listing, manifest)| {
                json!({"server": server, "digest": Digest::of(listing.as_bytes()), "manifest": manifest})
            })
            .boxed(),
        ChangeKind::Egress => (words(), prop::collection::btree_set(words(), 1..3), list(), words())
            .prop_map(|(host, methods, paths, secret)| {
                json!({"host": host, "methods": methods, "paths": paths, "secret": secret})
            })
            .boxed(),
        ChangeKind::Destinations => ("[a-z]{1,6}", words(), words(), words())
            .prop_map(|(name, channel, address, thread)| {
                json!({"name": name, "channel": channel, "address": address, "thread": thread})
            })
            .boxed(),
        ChangeKind::Groups => ("[a-z]{1,6}", prop::collection::btree_set(words(), 2..4), list())
            .prop_map(|(name, agents, tools)| json!({"name": name, "agents": agents, "tools": tools}))
            .boxed(),
        ChangeKind::Skills => ("[a-z]{1,6}", "[0-9]\\.[0-9]\\.[0-9]", words(), words(), list())
            .prop_map(|(name, version, bytes, persona, tools)| {
                let digest = Digest::of(bytes.as_bytes());
                let parts = [json!({"kind": "enabled_tools", "payload": tools})];
                json!({"name": name, "version": version, "digest": digest, "persona": persona, "parts": parts})
            })
            .boxed(),
        ChangeKind::Schedule => (words(), words(), words(), list())
            .prop_map(|(prompt, every, zone, may)| {
                // Only spaces are no prompt.
                json!({"prompt": format!("p{prompt}"), "every": every, "zone": zone, "may": may})
            })
            .boxed(),
        ChangeKind::Settings => {
            let modes = GuardMode::ALL.iter().map(|mode| mode.name()).collect::<Vec<_>>();
            (prop::sample::select(modes), words(), 0_u64..100)
                .prop_map(|(mode, model, tokens)| json!({"mode": mode, "model": model, "tokens_per_day": tokens}))
                .boxed()
        }
    }
}

fn asked() -> impl Strategy<Value = Asked> {
    let change = prop::sample::select(ChangeKind::ALL)
        .prop_flat_map(|kind| payload(kind).prop_map(move |payload| (kind, payload)));
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

/// Returns a request with one part of another one.
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
        11 => asked.labels = Labels::recorded(&[Label::External, Label::LlmDerived]),
        12 => asked.roles = vec![Role::Owner],
        _ => asked.expires_at = "2026-11-30T08:00:00.000Z".to_owned(),
    }
    asked
}

/// Returns the shown part of a request: one of a person has no message, and may concern no agent.
fn shown_part(asked: &Asked) -> Asked {
    let message = asked.message.clone().filter(|_| !asked.is_person);
    let names_agent = !asked.is_person || super::kinds::concerns_agent(asked.kind);
    let agent = if names_agent { asked.agent.clone() } else { String::new() };
    let change = Payload::try_from(asked.payload.clone()).expect("an object or a list");
    let payload = Change::parse(asked.kind, &change).expect("a payload").payload().value().clone();
    Asked { message, agent, payload, ..asked.clone() }
}

/// Returns a page without its digests, which always differ.
fn without_digests(text: &str) -> String {
    let mut lines = text.lines();
    let mut kept = String::new();
    while let Some(line) = lines.next() {
        // The digest is on the next line.
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
    fn changes_that_differ_in_one_part_have_different_pages(one in asked(), other in asked(), which in 0_usize..14) {
        let two = with_one_of(&one, &other, which);
        prop_assume!(shown_part(&one) != shown_part(&two));
        prop_assert_ne!(without_digests(&one.shown()), without_digests(&two.shown()));
    }

    #[test]
    fn every_page_is_complete_and_well_formed(asked in asked()) {
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
