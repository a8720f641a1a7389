//! Webhook messages in many groups of one channel, in turns with requests that write one row.
//!
//! Each message has a connection of its own, as the requests have. The tenth message of each group mentions the agent, and the others are
//! context.

use crate::client::Raw;
use crate::figures::{Report, Samples};
use crate::hooks::{Hook, Receiver};
use crate::{home, record, settle};
use serde_json::json;
use std::time::Instant;

const GROUPS: usize = 100;
const MESSAGES: usize = 10_000;
const BLOCKS: usize = 10;
/// Of this number of messages of a group, one mentions the agent.
const MENTIONS_OF: usize = 10;
/// Requests in one block.
const REQUESTS: usize = 100;

pub(crate) fn measure(report: &mut Report) {
    let host = home("[webhook]\nlisten = \"127.0.0.1:0\"\nrequests_per_minute = 1000000\n");
    host.agent("a");
    let receiver = Receiver::accepting();
    let hook = Hook::add(&host, "shop", &receiver, &[]);
    host.ctl(&["agent", "connect", "a", "shop", "--sharing", "shared", "--engage", "mention"]).ok();
    let raw = Raw::of(&host);
    let (mut messages, mut rows) = (Samples::default(), Samples::default());
    let (mut posted, mut answered) = (0.0, 0.0);
    for block in 0..BLOCKS {
        let begun = Instant::now();
        for number in block * (MESSAGES / BLOCKS)..(block + 1) * (MESSAGES / BLOCKS) {
            let mentions = if number / GROUPS % MENTIONS_OF == MENTIONS_OF - 1 { json!(["a"]) } else { json!([]) };
            let group = format!("g{}", number % GROUPS);
            let body = json!({ "sender": "ann", "text": "hello", "group": group, "mentions": mentions });
            let one = Instant::now();
            let (status, answer) = hook.send(&format!("e{number}"), &body.to_string());
            messages.push(one.elapsed().as_secs_f64());
            assert_eq!(status, 200, "{answer}");
        }
        posted += begun.elapsed().as_secs_f64();
        settle(&host.home);
        answered += begun.elapsed().as_secs_f64();
        for _ in 0..REQUESTS {
            let one = Instant::now();
            let (status, answer) = raw.ask("POST", "/v1/agents/a/mode", r#"{"mode":"enforce"}"#);
            rows.push(one.elapsed().as_secs_f64());
            assert!((200..300).contains(&status), "{answer}");
        }
    }
    let db = record::open(&host.home);
    assert_eq!(record::count(&db, "SELECT count(*) FROM messages"), MESSAGES as i64, "each message is recorded");
    let what = format!("{MESSAGES} webhook messages in {GROUPS} groups, one sender");
    report.rate("webhooks", &what, MESSAGES as f64 / posted);
    report.rate("webhooks_answered", "  until all mentions are answered", MESSAGES as f64 / answered);
    report.times("webhook", "  signed request → recorded", &messages);
    report.times("row", "  a request that writes one row", &rows);
    report.ratio("webhook_ratio", "  webhook message / one row", messages.p50() / rows.p50());
    let replies = receiver.replies().len();
    println!("{replies} replies");
    host.ctl(&["audit", "verify"]).ok();
    host.down();
}
