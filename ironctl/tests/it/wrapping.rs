//! Tests of sentences on a terminal of 80 columns: results, refusals, the inbox and answers end their lines between words.
//!
//! A pipe gets each sentence on one line. See [`crate::lists`] for tables.

use crate::chat::conversation;
use crate::fake_host::{Answer, FakeHost, view};
use crate::terminal::Terminal;
use crate::waiting::{Held, ID, change};
use serde_json::{Value, json};

const COLUMNS: u16 = 80;
const ROWS: u16 = 24;

const REPLY: &str = "The papers are about tulips, their bulbs, the weeks in which each of them comes up, and the gardener \
                     who wrote all of it down in a notebook that no other person may read.";

const MESSAGE: &str = "schedule sch_01j9zq4w0v2m6n8p0r2t4v6x8z: no run of it may start: flow_writable, since yesterday";

const HINT: &str =
    "agent b may write to /srv/notes: `ironctl agent revoke-dir b /srv/notes/of/the/garden`, and resume it then";

fn schedule() -> Value {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../contract/tests/it/golden");
    let text = std::fs::read_to_string(path.join("operator.schedule_view.json")).expect("a sample");
    serde_json::from_str(&text).expect("JSON")
}

/// Starts a host with a change of this person that other people decide on.
fn host() -> FakeHost {
    let mut own = change("pending");
    (own["yours"], own["may_reject"]) = (json!(false), json!(true));
    let held = Held::new([own]);
    FakeHost::new(move |line, asked| match line {
        "POST /v1/schedules/monday/resume" => Answer::refusal("schedule_state", MESSAGE, HINT),
        "POST /v1/schedules/monday/pause" => Answer::json(schedule()),
        other => held.answer(asked).unwrap_or_else(|| conversation(other, REPLY)),
    })
}

/// Returns the lines of a terminal that end inside of a word, or that are too wide; a command to copy may be.
fn faults(shown: &str, expected: &str) -> Vec<String> {
    let lines = || shown.split("\r\n");
    let whole: Vec<&str> = lines().flat_map(str::split_whitespace).collect();
    let lost = expected.split_whitespace().filter(|word| !whole.contains(word)).map(str::to_owned);
    let wide = lines().filter(|line| line.chars().count() > usize::from(COLUMNS) && !line.starts_with("`ironctl "));
    lost.chain(wide.map(str::to_owned)).collect()
}

#[test]
fn sentences_end_their_lines_between_words() {
    let host = host();
    for (words, expected) in [
        (&["schedule", "resume", "monday"][..], format!("error: {MESSAGE} hint: {HINT}")),
        (&["schedule", "pause", "monday"], "schedule water-the-plants of clerk is active; next:".to_owned()),
        (&["inbox"], format!("{ID} waits for other people (`ironctl reject {ID}` ends it): change: Make agent")),
    ] {
        let shown = Terminal::sized(&host, words, COLUMNS, ROWS).end_with_screen();
        assert_eq!(faults(&shown, &expected), Vec::<String>::new(), "{words:?}: {shown}");
    }
    let (_, out, err) = host.ironctl(&["schedule", "resume", "monday"]);
    assert_eq!((out.as_str(), err), ("", format!("error: {MESSAGE}\nhint: {HINT}\n")), "in a pipe");
}

#[test]
fn answer_ends_its_lines_between_words_while_it_comes() {
    let host = FakeHost::new(|line, _| match line {
        line if line.starts_with("GET /v1/messages/msg_00000000000000000000000001/events") => {
            let (mut from, mut events) = (0, Vec::new());
            // The parts end inside of words.
            for part in REPLY.as_bytes().chunks(7) {
                let text = String::from_utf8(part.to_vec()).expect("ASCII");
                events.push(("draft", json!({ "attempt": 1, "from": from, "text": text })));
                from += part.len();
            }
            events.push(("message", view(Some(REPLY), None)));
            Answer::events(&events)
        }
        other => conversation(other, REPLY),
    });
    let mut terminal = Terminal::sized(&host, &["chat", "assistant"], COLUMNS, ROWS);
    terminal.say("hello");
    terminal.wait_for("may read.");
    let shown = terminal.lines().join("\r\n");
    assert_eq!(faults(&shown, REPLY), Vec::<String>::new(), "{shown}");
    terminal.leave();
}
