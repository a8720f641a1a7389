//! Growth of the record: a bound on items also bounds the record, and `why` still explains a removed message.
//!
//! Each run prints its seed, and `IRONCLAW_SEED` repeats the run. `IRONCLAW_GROWTH` sets its length. See `soak`.

use crate::chaos::kill::{answered, retry, run_settings};
use crate::support::client::{Client, Raw};
use crate::support::host_fixture::{Build, TestHost};
use crate::support::record;
use fastrand::Rng;

/// The number of messages in one round without `IRONCLAW_GROWTH`.
const MESSAGES: u64 = 12;

/// The limit of items in one conversation.
const ITEMS_MAX: i64 = 8;

/// The limit of rows in each table: the rows of the kept items, and the newest ones.
const ROWS_MAX: i64 = 2 * ITEMS_MAX + 2;

/// Sends each message after the answer to the previous one. Returns their ids.
fn send_messages(host: &TestHost, rng: &mut Rng, messages: u64) -> Vec<String> {
    let (client, raw) = (Client::of(host), Raw::of(host));
    let say = |number: u64, rng: &mut Rng| {
        let text = match rng.u64(..3) {
            0 => format!("write file-{}.txt: content", rng.u64(..4)),
            1 => "hello".to_owned(),
            _ => format!("echo word-{number}"),
        };
        let id = raw.send("a", &text);
        retry("answer a message", || answered(&client, &id));
        id
    };
    (0..messages).map(|number| say(number, rng)).collect()
}

/// Counts the rows of messages, turns, deliveries and archived entries while the host is stopped.
fn rows(host: &TestHost) -> [i64; 4] {
    let db = record::open(&host.home);
    ["messages", "turns", "deliveries", "ledger_archived"]
        .map(|table| record::count(&db, &format!("SELECT count(*) FROM {table}")))
}

#[test]
fn record_does_not_grow_with_old_messages() {
    let (seed, messages) = run_settings("IRONCLAW_GROWTH", MESSAGES);
    let mut rng = Rng::with_seed(seed);
    let host = TestHost::own(Build::Plain)
        .configured(&format!("[items]\nsession_items_max = {ITEMS_MAX}\n"))
        .started_with("a");
    let mut first = None;
    for round in 0..2 {
        let said = send_messages(&host, &mut rng, messages);
        first.get_or_insert_with(|| said[0].clone());
        // A sandbox is not at fault if it names an item that the host just dropped. With refusals it would be quarantined after 64 turns.
        assert_eq!(host.entries("model.refused"), Vec::<serde_json::Value>::new(), "seed {seed}, round {round}");
        host.ctl(&["audit", "rotate"]).ok();
        // A host removes old rows while it serves requests, so it may stop before the last removal.
        retry("remove old rows", || {
            host.restart();
            let (status, _) = Raw::of(&host).get(&format!("/v1/messages/{}", first.as_deref().expect("said")));
            host.down();
            let rows = rows(&host);
            host.up();
            let is_bounded = rows[..3].iter().all(|rows| *rows <= ROWS_MAX) && rows[3] <= 4 * ROWS_MAX;
            let still = || std::io::Error::new(std::io::ErrorKind::WouldBlock, format!("{status}, {rows:?}"));
            (status == 404 && is_bounded).then_some(()).ok_or_else(still)
        });
    }
    let why = host.ctl(&["--json", "why", &first.expect("said")]).ok().json();
    let stages: Vec<&str> =
        why["stages"].as_array().expect("a list").iter().filter_map(|stage| stage["stage"].as_str()).collect();
    for stage in ["message.recorded", "turn.opened", "delivery.received"] {
        assert!(stages.contains(&stage), "seed {seed}: {why}");
    }
    assert_eq!(why["message"]["status"], "delivered", "{why}");
    assert!(host.say("a", "echo after").contains("after"), "the conversation continues");
    host.ctl(&["why", "msg_01arz3ndektsv4rrffq69g5fav"]).refused("you have no message");
    assert!(host.ctl(&["audit", "verify"]).ok().stdout.starts_with("ok "));
}
