//! Growth of the record: bounded items bound the record too, and `why` still explains a removed message.
//!
//! `IRONCLAW_SEED` repeats a run with the seed that it prints, and `IRONCLAW_GROWTH` makes it longer. See `soak`.

use crate::chaos::kill::{answered, insist, run_of};
use crate::support::client::{self, Client, Raw};
use crate::support::host_fixture::{Build, World};
use crate::support::record;
use fastrand::Rng;

/// Messages of one round without `IRONCLAW_GROWTH`.
const MESSAGES: u64 = 12;

/// Items of one conversation.
const ITEMS_MAX: i64 = 8;

/// Rows of each table: those of the kept items, and the newest.
const ROWS_MAX: i64 = 2 * ITEMS_MAX + 2;

/// Sends messages one after another, each after the previous answer. Returns their ids.
fn talk(world: &World, chance: &mut Rng, messages: u64) -> Vec<String> {
    let (client, raw) = (Client::of(world), Raw::of(world));
    let say = |number: u64, chance: &mut Rng| {
        let text = match chance.u64(..3) {
            0 => format!("write file-{}.txt: content", chance.u64(..4)),
            1 => "hello".to_owned(),
            _ => format!("echo word-{number}"),
        };
        let (status, taken) = raw.say("a", &text, None);
        assert_eq!(status, 202, "{taken}");
        let id = taken["message_id"].as_str().expect("an id").to_owned();
        insist("answer a message", || answered(&client, &id));
        id
    };
    (0..messages).map(|number| say(number, chance)).collect()
}

/// Counts the rows of messages, turns, deliveries and archived entries while the host is stopped.
fn rows(world: &World) -> [i64; 4] {
    let db = record::open(&world.home);
    ["messages", "turns", "deliveries", "ledger_archived"]
        .map(|table| record::count(&db, &format!("SELECT count(*) FROM {table}")))
}

#[test]
fn record_does_not_grow_with_old_messages() {
    let (seed, messages) = run_of("IRONCLAW_GROWTH", MESSAGES);
    let mut chance = Rng::with_seed(seed);
    let world = World::with(client::own(), Build::Plain, None);
    world.configure(&format!("[items]\nsession_items_max = {ITEMS_MAX}\n"));
    world.up();
    world.agent("a");
    let mut first = None;
    for round in 0..2 {
        let said = talk(&world, &mut chance, messages);
        first.get_or_insert_with(|| said[0].clone());
        // A sandbox that names an item just dropped by the host is not at fault; it would be quarantined after 64 turns.
        assert_eq!(world.entries("model.refused"), Vec::<serde_json::Value>::new(), "seed {seed}, round {round}");
        world.ctl(&["audit", "rotate"]).ok();
        // Each start removes rows while it serves requests, so a stop may precede the last removal.
        insist("forget old rows", || {
            world.down();
            world.up();
            let (status, _) = Raw::of(&world).get(&format!("/v1/messages/{}", first.as_deref().expect("said")));
            world.down();
            let rows = rows(&world);
            world.up();
            let is_bounded = rows[..3].iter().all(|rows| *rows <= ROWS_MAX) && rows[3] <= 4 * ROWS_MAX;
            let still = || std::io::Error::new(std::io::ErrorKind::WouldBlock, format!("{status}, {rows:?}"));
            (status == 404 && is_bounded).then_some(()).ok_or_else(still)
        });
    }
    let why = world.ctl(&["--json", "why", &first.expect("said")]).ok().json();
    let stages: Vec<&str> =
        why["stages"].as_array().expect("a list").iter().filter_map(|stage| stage["stage"].as_str()).collect();
    for stage in ["message.recorded", "turn.opened", "delivery.received"] {
        assert!(stages.contains(&stage), "seed {seed}: {why}");
    }
    assert_eq!(why["message"]["status"], "delivered", "{why}");
    assert!(world.say("a", "echo after").contains("after"), "it goes on");
    world.ctl(&["why", "msg_01arz3ndektsv4rrffq69g5fav"]).refused("you have no message");
    assert!(world.ctl(&["audit", "verify"]).ok().stdout.starts_with("ok "));
}
