//! Attempts on the reader: text that steers a terminal, in every place where `ironctl` shows a sandbox's text.
//!
//! To add one, add an entry. See `forged` for text that steers a model.

use super::attack::{Attacked, generate, report};
use super::attempt::{Attempt, attempt, hold, reply, ring};
use ironclaw_contract::operator::LOG_FILE;
use serde_json::{Value, json};

/// A title, a cleared screen, a colour in one byte, a link, the clipboard, a reversal, an invisible name, and a bell.
const STEERING: &str = "owned\u{1b}]0;root\u{7}\u{1b}[2J\u{9b}31m\u{1b}]8;;http://evil.example\u{1b}\\here\u{1b}]8;;\u{1b}\\\
                        \u{1b}]52;c;b3duZWQ=\u{7}\u{202e}gnp.exe\u{2066}x\u{2069}\u{200b}\r\u{8}\u{7f}\u{85}end";

/// Returns whether a character must not reach a person's terminal.
fn steers(character: char) -> bool {
    let invisible =
        matches!(character, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}');
    (character.is_control() && !matches!(character, '\n' | '\t')) || invisible
}

/// Checks every output that a person can read.
fn nothing_steers(attacked: &Attacked) {
    let id = attacked.id("a");
    for command in [
        vec!["why"],
        vec!["why", "last"],
        vec!["status"],
        vec!["session", "list"],
        vec!["session", "show", &id],
        vec!["agent", "list"],
        vec!["audit", "tail", "-n", "60"],
        vec!["logs", "-n", "200"],
        vec!["chat", "a", "hello"],
    ] {
        let answer = attacked.world.ctl(&command);
        let found = answer.stdout.chars().chain(answer.stderr.chars()).find(|character| steers(*character));
        assert_eq!(found, None, "ironctl {}: {:?} {:?}", command.join(" "), answer.stdout, answer.stderr);
    }
    let log = std::fs::read_to_string(attacked.world.home.join(LOG_FILE)).expect("the log");
    assert!(!log.contains("owned") && !log.contains("gnp.exe"), "the text of a sandbox is in no log");
    let ledger = json!(attacked.world.ledger()).to_string();
    assert!(!ledger.contains("owned") && !ledger.contains("gnp.exe"), "nor in the ledger");
}

/// Makes an attempt after which every output is checked.
fn shown(name: &'static str, script: impl Fn() -> Vec<Value> + 'static) -> Attempt {
    attempt(name, move |_| script()).look(|attacked, _, _| nothing_steers(attacked))
}

/// Checks that the terminal shows the reply of this turn, without control characters.
fn printed(attacked: &Attacked, says: &str, script: &Value) {
    let file = attacked.world.home.join("paint.json");
    std::fs::write(&file, super::attack::escaped(script)).expect("written");
    let answer = attacked.world.ctl(&["chat", "a", says, "--file", &file.display().to_string()]).ok();
    assert!(answer.stdout.contains("\\u{1b}"), "it is shown, and not obeyed: {}", answer.stdout);
    let found = answer.stdout.chars().chain(answer.stderr.chars()).find(|character| steers(*character));
    assert_eq!(found, None, "{:?}", answer.stdout);
}

pub(crate) fn attempts() -> Vec<Attempt> {
    let quoted = STEERING.replace('\'', "''");
    let progress = format!(
        "INSERT INTO session_state VALUES ('turn', '{quoted}', 9999999999999), ('{quoted}', 'x', 9999999999998); \
         INSERT INTO processing_ack VALUES ('{{message}}', 'processing', 9999999999999);"
    );
    let table = format!("CREATE TABLE \"{quoted}\" (y);");
    vec![
        shown("escape_in_a_reported_result_is_not_printed_raw", || {
            vec![
                generate(json!(["$own"])),
                report("$calls.0.call_id", STEERING),
                json!({ "ask": { "ask": "items", "after_seq": 0 } }),
                generate(json!("$items")),
                reply("$output.item"),
                ring(),
                json!("leave"),
            ]
        })
        .asks("read notes.txt")
        .answered("owned"),
        attempt("escape_in_a_result_is_not_printed_raw_in_a_chat", |_| Vec::new()).look(|attacked, _, _| {
            printed(
                attacked,
                "read notes.txt",
                &json!([generate(json!(["$own"])), report("$calls.0.call_id", STEERING)]),
            );
        }),
        attempt("escape_of_the_model_is_not_printed_raw_in_a_chat", |_| Vec::new())
            .look(|attacked, _, _| printed(attacked, "paint", &json!([]))),
        shown("escape_in_progress_of_a_sandbox_is_not_printed_raw", move || vec![json!({ "sql": progress }), ring()]),
        attempt("escape_in_a_table_name_is_not_printed_raw", move |_| {
            vec![json!({ "sql": table }), ring(), json!("hang")]
        })
        .quarantined("its schema is not the contract's")
        .look(|attacked, _, _| nothing_steers(attacked)),
        shown("escape_in_a_tool_name_is_not_printed_raw", Vec::new)
            .asks("be clever")
            .answered("It did not run")
            .calls(&["there is no such tool"]),
        shown("escape_in_a_refused_request_is_not_printed_raw", || {
            vec![json!({ "ask": { "ask": STEERING } }), json!({ "ask": { "ask": "items", "after_seq": STEERING } })]
        })
        .requests(&["frame"; 2]),
        shown("escape_in_a_refused_row_is_not_printed_raw", || {
            vec![
                json!({ "row": { "content": STEERING } }),
                json!({ "row": { "kind": "system", "content": { "action": STEERING } } }),
                ring(),
            ]
        })
        .rows(&["it is no reply, end or send", "it names an unknown action"]),
        shown("escape_in_an_address_is_not_printed_raw", || {
            vec![
                json!({ "row": { "content": { "end": "failed" }, "channel": STEERING, "platform": STEERING } }),
                ring(),
            ]
        })
        .rows(&["it is addressed to another place than its session's origin"]),
        shown("escape_in_a_file_name_is_not_printed_raw", || {
            let name = STEERING.replace('/', "_");
            vec![json!({ "put": { "path": format!("/workspace/{name}"), "text": STEERING } })]
        }),
    ]
}

#[test]
fn text_of_a_sandbox_cannot_control_a_terminal() {
    hold("", attempts());
}

#[test]
fn fatal_message_of_a_sandbox_cannot_control_a_terminal() {
    let attacked = Attacked::new(super::attack::FAST_FAILURE);
    let id = attacked.asleep();
    let fatal = json!({ "fatal": STEERING }).to_string();
    let bytes: Vec<u8> =
        u32::try_from(fatal.len()).expect("short").to_be_bytes().into_iter().chain(fatal.bytes()).collect();
    for (name, script) in [
        ("in place of its hello", json!([{ "link": bytes }, "exit"])),
        ("behind its hello", json!([{ "hello": null }, "welcome", { "link": bytes }, "exit"])),
        ("as its fingerprint", json!([{ "hello": STEERING }, "exit"])),
        ("as its version, and more", json!([{ "link": bytes.iter().rev().collect::<Vec<_>>() }, "exit"])),
    ] {
        attacked.at_launch(&id, &script);
        let answer = attacked.world.ctl(&["chat", "a", "hello"]);
        assert_eq!(answer.code, 1, "{name}: {}{}", answer.stdout, answer.stderr);
        nothing_steers(&attacked);
        attacked.at_launch(&id, &Value::Null);
        attacked.world.ctl(&["session", "release", &id]).ok();
        assert!(attacked.world.say("a", "hello").contains("Hello."), "{name}");
        attacked.world.ctl(&["session", "stop", &id]).ok();
        attacked.other_answers();
    }
    assert!(attacked.world.ctl(&["audit", "verify"]).ok().stdout.starts_with("ok "));
}
