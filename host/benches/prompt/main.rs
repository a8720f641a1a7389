//! The host's time for a prompt, from the refs of a sandbox to the composed parts, in a short and in a long conversation.
//!
//! Asserts no time: a noisy machine fails no bench, and only the ratios of one run are meaningful. See `docs/performance.md`.
#![allow(clippy::print_stdout, clippy::print_stderr, missing_docs)]

#[path = "../round/client.rs"]
mod client;
#[path = "../round/figures.rs"]
#[allow(dead_code)]
mod figures;
#[path = "../../tests/support/host_fixture.rs"]
#[allow(dead_code)]
mod host_fixture;
#[path = "../../tests/support/jail_fixture.rs"]
#[allow(dead_code)]
mod jail_fixture;

use client::Client;
use figures::{Report, Samples};
use host_fixture::TestHost;
use ironclaw_contract::ids::BootId;
use ironclaw_contract::seam::socket::Context;
use ironclaw_host::driven::context::{self, ItemCache, Reader};
use ironclaw_host::driven::sessions::{self, Session};
use ironclaw_host::driven::turn::{self, Turn};
use ironclaw_host::driven::{Agent, Room, find_agent, items};
use ironclaw_judge::egress::Loopback;
use ironclaw_model::Prompt;
use ironclaw_state::home::Home;
use ironclaw_state::keys::{ContentKey, MasterKey};
use ironclaw_state::seal::Sealer;
use ironclaw_state::{ReadTx, State};
use jiff::tz::TimeZone;
use serde_json::json;
use std::time::Instant;

/// Items of each conversation: a message and its answer are two.
const ITEMS: [usize; 2] = [20, 1_000];
/// Bytes of a message; its answer repeats it.
const MESSAGE_BYTES: usize = 200;
/// Measured prompts of each kind, and uncounted ones.
const TIMES: usize = 200;
const WARM_UP: usize = 10;
/// The bytes that one prompt may name.
const BYTES_MAX: u64 = 1 << 30;

fn main() {
    let mut report = Report::default();
    let user =
        if nix::unistd::geteuid().is_root() { jail_fixture::HostUser::Root } else { jail_fixture::HostUser::Ordinary };
    let host = TestHost::with(user, host_fixture::Build::Plain, None);
    host.up();
    let mut client = Client::connect(&host);
    for items in ITEMS {
        host.agent(&name(items));
        (0..items / 2).for_each(|number| say(&mut client, &name(items), number));
    }
    host.down();
    let home = Home::open(&host.home).expect("a home");
    let master = MasterKey::load(&home, &Default::default()).expect("a key");
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let state = State::open(&home.state_db(), &master.state_key()).expect("the state");
        for items in ITEMS {
            let wrapping = master.wrapping_key();
            let measured = state.read(move |tx| {
                let agent = find_agent(tx, &name(items))?.expect("an agent");
                let session = sessions::list_for_agent(tx, agent.id)?.pop().expect("a session");
                let key = session.content_key(&wrapping).expect("a key");
                Ok::<_, ironclaw_state::Error>(measure(tx, &agent, &session, &key, items))
            });
            let [first, next, json] = measured.await.expect("read");
            report.times(&format!("first_{items}"), &format!("{items} items: first prompt of a wake"), &first);
            report.times(&format!("next_{items}"), "  the next prompt", &next);
            report.times(&format!("json_{items}"), "  the same prompt, parsed → JSON text", &json);
            report.ratio(&format!("first_ratio_{items}"), "  first / JSON text", first.p50() / json.p50());
            report.ratio(&format!("next_ratio_{items}"), "  next / JSON text", next.p50() / json.p50());
        }
        state.close().await;
    });
    report.print();
}

fn name(items: usize) -> String {
    format!("a{items}")
}

/// Sends a message and waits for its answer.
fn say(client: &mut Client, agent: &str, number: usize) {
    let words = format!("{number} ").repeat(MESSAGE_BYTES).split_at(MESSAGE_BYTES).0.to_owned();
    let body = json!({ "text": format!("echo {words}") }).to_string();
    let sent = client.post(&format!("/v1/agents/{agent}/messages"), &body);
    let id = sent["message_id"].as_str().expect("an id");
    let view = client.get(&format!("/v1/messages/{id}?wait_ms=60000"));
    assert_eq!((&view["notice"], &view["status"]), (&json!(false), &json!("delivered")), "{view}");
}

/// Returns the times of first prompts, of the prompts after them, and of the JSON text of the same prompt.
fn measure(tx: &ReadTx<'_>, agent: &Agent, session: &Session, key: &ContentKey, count: usize) -> [Samples; 3] {
    let sealer = Sealer::new(BootId::new()).expect("random bytes");
    let named = items::live_after(tx, session.id, 0, 10_000).expect("read");
    assert_eq!(named.len(), count);
    let refs: Vec<Context> = named.iter().map(|item| Context::Ref(item.seal(&sealer))).collect();
    let last = named.iter().rev().find_map(|item| item.tuple.turn).expect("a turn");
    let turn = turn::find(tx, last).expect("read").expect("there");
    let mut found: [Samples; 3] = Default::default();
    for at in 0..WARM_UP + TIMES {
        let mut cache = ItemCache::default();
        // The host listed the items to the sandbox before.
        for (item, part) in named.iter().zip(&refs) {
            if let Context::Ref(reference) = part {
                cache.learn(reference, item.clone());
            }
        }
        let begun = Instant::now();
        compose(tx, (agent, session, &turn), &refs, &sealer, key, &mut cache);
        let first = begun.elapsed().as_secs_f64();
        let begun = Instant::now();
        let prompt = compose(tx, (agent, session, &turn), &refs, &sealer, key, &mut cache);
        let next = begun.elapsed().as_secs_f64();
        let [request, _] = ironclaw_model::requests(&prompt);
        let begun = Instant::now();
        let text = request.to_string();
        let json = begun.elapsed().as_secs_f64();
        assert!(text.len() > count * MESSAGE_BYTES);
        if at >= WARM_UP {
            found.iter_mut().zip([first, next, json]).for_each(|(samples, seconds)| samples.push(seconds));
        }
    }
    found
}

fn compose(
    tx: &ReadTx<'_>,
    (agent, session, turn): (&Agent, &Session, &Turn),
    refs: &[Context],
    sealer: &Sealer,
    key: &ContentKey,
    cache: &mut ItemCache,
) -> Prompt {
    let (checked, _) =
        context::check(tx, session.id, &[], refs, agent.mode, BYTES_MAX, sealer, cache).expect("a context");
    let reader = Reader {
        agent,
        turn,
        is_script: true,
        zone: &TimeZone::UTC,
        loopback: Loopback::Refused,
        room: Room::default(),
    };
    context::compose(tx, &reader, checked, key, cache).expect("a prompt")
}
