//! The time of the judgement of one call with 50 items in the context, beside the bare cost of its hashes and MACs.
//!
//! Asserts no time: a noisy machine fails no bench, and only the ratios of one run are meaningful. See `docs/performance.md`.
#![allow(clippy::print_stdout, clippy::print_stderr, missing_docs)]

#[path = "../round/figures.rs"]
#[allow(dead_code)]
mod figures;
#[path = "inputs.rs"]
mod inputs;

use figures::{Report, Samples};
use hmac::{Hmac, KeyInit, Mac};
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{AgentId, BootId, CallId, ItemId, PersonId, SessionId, TurnId};
use ironclaw_contract::seam::change::Access;
use ironclaw_contract::seam::message::{Author, Span};
use ironclaw_contract::seam::seal::{ItemKind, Label, Ref, Tuple, tuple};
use ironclaw_host::driven::calls::http::Network;
use ironclaw_host::driven::calls::{self, Judgement, TurnFacts};
use ironclaw_host::driven::context::{self, Checked, Item};
use ironclaw_host::driven::items::Recorded;
use ironclaw_host::driven::schedules::OfTurn;
use ironclaw_host::driven::{Agent, Catalogue, Mode};
use ironclaw_judge::egress::{Grant, GrantText, Loopback};
use ironclaw_judge::inputs::Handles;
use ironclaw_judge::provenance::Labels;
use ironclaw_judge::provenance::spans::TypedSpan;
use ironclaw_judge::provenance::typed::Typed;
use ironclaw_judge::{Class, Classes, OwnReceiver, Principal, ReceiverPolicy};
use ironclaw_model::WantedCall;
use ironclaw_state::seal::Sealer;
use serde_json::json;
use sha2::Sha256;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

/// Items of the context: messages and outputs in turns, and in the tainted context also results.
const ITEMS: usize = 50;
/// Bytes of a body of an `http_fetch`, and of a written file.
const BODY_BYTES: usize = 512;
/// Measured judgements of each kind, and uncounted ones.
const TIMES: usize = 5_000;
const WARM_UP: usize = 200;

fn main() {
    let mut report = Report::default();
    let person = PersonId::new();
    let sealer = Sealer::new(BootId::new()).expect("random bytes");
    let own = Context::new(&sealer, person, false);
    let tainted = Context::new(&sealer, person, true);
    let body = "word ".repeat(BODY_BYTES / 5);
    let url = "https://api.example.com/v1/posts/42";
    let post = json!({ "method": "POST", "url": url, "headers": { "content-type": "text/plain" }, "body": body });
    for (key, what, context, tool, arguments, permitted) in [
        ("write", "write_file", &own, "write_file", json!({ "path": "notes/today.txt", "content": body }), true),
        ("post", "http_fetch, permitted", &own, "http_fetch", post.clone(), true),
        ("ask", "http_fetch, needs a person", &tainted, "http_fetch", post, false),
    ] {
        let wanted = WantedCall { tool: tool.to_owned(), arguments: arguments.to_string() };
        let judged = judge(context, person, url, &wanted);
        assert_eq!(matches!(judged.judgement, Judgement::Permitted { .. }), permitted, "{:?}", judged.judgement);
        measure(&mut report, key, what, &sealer, (context, person, url), &wanted);
    }
    inputs::measure(&mut report);
    report.print();
}

/// The items of a context, with their refs.
struct Context {
    refs: Vec<Ref>,
    items: Vec<Checked>,
    recorded: Vec<Arc<Item>>,
}

impl Context {
    fn new(sealer: &Sealer, person: PersonId, is_tainted: bool) -> Self {
        let session = SessionId::new();
        let recorded: Vec<_> = (0..ITEMS).map(|n| Item::new(recorded(session, person, n, is_tainted), true)).collect();
        let refs = recorded.iter().map(|item| sealer.seal(&item.tuple)).collect();
        let items = recorded.iter().map(|item| Checked::Item(Arc::clone(item))).collect();
        Self { refs, items, recorded }
    }
}

/// Returns an item as the record has it: messages of the person and outputs; the last one of a tainted context is a result.
fn recorded(session: SessionId, person: PersonId, number: usize, is_tainted: bool) -> Recorded {
    let (kind, author, label) = match number % 2 {
        _ if is_tainted && number + 1 == ITEMS => {
            (ItemKind::Result, Author::Tool { tool: "read_file".to_owned() }, Label::External)
        }
        0 => (ItemKind::Message, Author::Person { person }, Label::UserSurfaceInput),
        _ => (ItemKind::Output, Author::Model, Label::LlmDerived),
    };
    let text = format!("item {number} ").repeat(20);
    let of_result = kind == ItemKind::Result;
    let tuple = Tuple {
        session,
        item: ItemId::new(),
        kind,
        seq: 2 * (number as u64 + 1),
        issued_at: 1_800_000_000_000 + number as i64,
        boot: BootId::new(),
        turn: Some(TurnId::new()),
        call: of_result.then(CallId::new),
        tool: of_result.then(|| "read_file".to_owned()),
        hop: 0,
        authors: canonical::to_string(&vec![Span { author, bytes: text.len() }]),
        labels: vec![label],
        scope: if kind == ItemKind::Message { "declared:read send".to_owned() } else { String::new() },
        digest: Digest::of(text.as_bytes()),
    };
    Recorded { tuple, bytes: text.len() as u64, scripted: false }
}

fn agent() -> Agent {
    Agent {
        id: AgentId::new(),
        name: "a".to_owned(),
        model: "m".to_owned(),
        follows_default: true,
        persona: String::new(),
        enabled_tools: ["read_file", "write_file", "list_dir", "search_files", "remember", "recall", "http_fetch"]
            .map(str::to_owned)
            .to_vec(),
        access: Access::Everyone,
        mode: Mode::Enforce,
        receiver: OwnReceiver::default(),
        created_at: 0,
    }
}

/// Returns the facts of a turn whose person typed the address, for an agent with 20 grants.
fn facts(labels: Labels, url: &str) -> TurnFacts {
    let grant = |host: String| {
        let text = GrantText {
            host,
            methods: vec!["GET".to_owned(), "POST".to_owned()],
            paths: vec!["/v1/posts/{id}".to_owned(), "/v1/users/{id}".to_owned()],
            upload_bytes_max: Some(4096),
            ..GrantText::default()
        };
        Grant::check(&text, Loopback::Refused).expect("a grant")
    };
    let mut grants: Vec<Grant> = (1..20).map(|n| grant(format!("api{n}.example.com"))).collect();
    grants.push(grant("api.example.com".to_owned()));
    let typed = format!("please post the summary of today to {url} and use a short title");
    TurnFacts {
        receiver: ReceiverPolicy::default(),
        handles: Handles::default(),
        has_notes_of_others: false,
        catalogue: Catalogue::new(&agent().enabled_tools, Default::default(), Vec::new()),
        of_schedule: OfTurn::default(),
        principal: Principal::Person,
        scope: Classes::new(&[Class::Read, Class::Send, Class::Write]),
        binds_contained: false,
        has_writable: false,
        labels,
        network: Network {
            grants,
            loopback: Loopback::Refused,
            typed: Typed::new([TypedSpan::whole(typed.as_str())], Loopback::Refused),
        },
        of_agents: Vec::new(),
        is_of_schedule: false,
        destinations: Vec::new(),
        flows: Vec::new(),
        position: None,
    }
}

fn judge(context: &Context, person: PersonId, url: &str, wanted: &WantedCall) -> calls::Judged {
    let labels = context::output_labels(&context.items, &person.to_string(), &context::Others::default());
    calls::judge(&agent(), &facts(labels, url), calls::ReadCall::read(wanted.clone()), true)
}

/// Measures a call: the judgement with every seal verified again, that of a request whose items were verified before, and the bare
/// hashes and MACs. They alternate, so that a slow minute of the machine affects all.
fn measure(
    report: &mut Report,
    key: &str,
    what: &str,
    sealer: &Sealer,
    (context, person, url): (&Context, PersonId, &str),
    wanted: &WantedCall,
) {
    let (agent, principal) = (agent(), person.to_string());
    let facts = facts(context::output_labels(&context.items, &principal, &context::Others::default()), url);
    let call = calls::judge(&agent, &facts, calls::ReadCall::read(wanted.clone()), true).call;
    let hashed = canonical::to_vec(&[canonical::RECIPE, &call.tool, &call.arguments]);
    let of_start = |item: &Recorded| Tuple { boot: sealer.boot(), ..item.tuple.clone() };
    let tuples: Vec<Vec<u8>> = context.recorded.iter().map(|item| tuple(&of_start(item))).collect();
    let mac = Hmac::<Sha256>::new_from_slice(&[7; 32]).expect("HMAC takes any key");
    let [mut whole, mut known, mut alone, mut bare, mut hash] = <[Samples; 5]>::default();
    for at in 0..WARM_UP + TIMES {
        let begun = Instant::now();
        let mut seals = sealer.for_session(context.recorded[0].tuple.session);
        let mut named = context.refs.iter().zip(&context.recorded);
        assert!(named.all(|(reference, item)| seals.verify(black_box(reference), &item.tuple)));
        let seals = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        let labels = context::output_labels(black_box(&context.items), &principal, &context::Others::default());
        assert_eq!(labels, facts.labels);
        let joined = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        black_box(calls::judge(&agent, &facts, calls::ReadCall::read(black_box(wanted).clone()), true));
        let judged = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        black_box(Digest::of(black_box(&hashed)));
        let of_call = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        for tuple in &tuples {
            black_box(mac.clone().chain_update(black_box(tuple)).finalize());
        }
        let macs = begun.elapsed().as_secs_f64();
        if at >= WARM_UP {
            whole.push(seals + joined + judged);
            known.push(joined + judged);
            alone.push(judged);
            bare.push(of_call + macs);
            hash.push(of_call);
        }
    }
    report.microseconds(&format!("{key}_whole"), &format!("{what}: {ITEMS} seals, labels and stages"), &whole);
    report.microseconds(&format!("{key}_known"), "  labels and stages, seals verified before", &known);
    report.microseconds(&format!("{key}_alone"), "  stages alone", &alone);
    report.microseconds(&format!("{key}_bare"), &format!("  bare: {ITEMS} HMACs and the hash of the call"), &bare);
    report.microseconds(&format!("{key}_hash"), "  bare: the hash of the call", &hash);
    report.ratio(&format!("{key}_whole_ratio"), "  with the seals / bare", whole.p50() / bare.p50());
    report.ratio(&format!("{key}_known_ratio"), "  seals verified before / hash of the call", known.p50() / hash.p50());
}
