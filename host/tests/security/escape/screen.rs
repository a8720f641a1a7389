//! Attempts on a person's terminal: control characters in every place where `ironctl` shows text of a sandbox.
//!
//! A new attempt is one entry of the table. See `forged` for text that imitates marks of the host.

use super::attack::{Attacked, generate, output, report};
use super::attempt::{Attempt, attempt, reply, ring, run_attempts};
use ironclaw_operator::LOG_FILE;
use serde_json::{Value, json};

/// Control sequences for a title, a cleared screen, a colour, a link, the clipboard, reversed text, invisible text and a bell.
const CONTROL_TEXT: &str = "owned\u{1b}]0;root\u{7}\u{1b}[2J\u{9b}31m\u{1b}]8;;http://evil.example\u{1b}\\here\u{1b}]8;;\u{1b}\\\
                        \u{1b}]52;c;b3duZWQ=\u{7}\u{202e}gnp.exe\u{2066}x\u{2069}\u{200b}\r\u{8}\u{7f}\u{85}end";

/// Returns whether a character must not reach the terminal of a person.
fn can_control_a_terminal(character: char) -> bool {
    let invisible =
        matches!(character, '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}');
    (character.is_control() && !matches!(character, '\n' | '\t')) || invisible
}

/// Checks that no output of `ironctl` has such a character, and that log and ledger have no text of the sandbox.
fn check_outputs(attacked: &Attacked) {
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
        let answer = attacked.host.ctl(&command);
        let found =
            answer.stdout.chars().chain(answer.stderr.chars()).find(|character| can_control_a_terminal(*character));
        assert_eq!(found, None, "ironctl {}: {:?} {:?}", command.join(" "), answer.stdout, answer.stderr);
    }
    let log = std::fs::read_to_string(attacked.host.home.join(LOG_FILE)).expect("the log");
    assert!(!log.contains("owned") && !log.contains("gnp.exe"), "the text of a sandbox is not in the log");
    let ledger = json!(attacked.host.ledger()).to_string();
    assert!(!ledger.contains("owned") && !ledger.contains("gnp.exe"), "the text of a sandbox is not in the ledger");
}

/// Makes an attempt with a check of every output.
fn checked(name: &'static str, script: impl Fn() -> Vec<Value> + 'static) -> Attempt {
    attempt(name, move |_| script()).check(|attacked, _, _| check_outputs(attacked))
}

/// Checks that `chat` prints the reply with escaped control characters.
fn check_chat(attacked: &Attacked, says: &str, script: &Value) {
    let file = attacked.host.home.join("paint.json");
    std::fs::write(&file, super::attack::escaped(script)).expect("written");
    attacked.give_script("a", script);
    let answer = attacked.host.ctl(&["chat", "a", says, "--file", &file.display().to_string()]).ok();
    assert!(answer.stdout.contains("\\u{1b}"), "the sequence is printed in escaped form: {}", answer.stdout);
    let found = answer.stdout.chars().chain(answer.stderr.chars()).find(|character| can_control_a_terminal(*character));
    assert_eq!(found, None, "{:?}", answer.stdout);
}

pub(crate) fn attempts() -> Vec<Attempt> {
    let quoted = CONTROL_TEXT.replace('\'', "''");
    let progress = format!(
        "PRAGMA ignore_check_constraints = ON; \
         INSERT INTO processing_ack VALUES ('{{message}}', '{quoted}', 9999999999999), ('{quoted}', 'x', 9999999999998);"
    );
    let table = format!("CREATE TABLE \"{quoted}\" (y);");
    vec![
        checked("escape_in_a_reported_result_is_not_printed_raw", || {
            vec![
                output(),
                report("$calls.0.call_id", CONTROL_TEXT),
                json!({ "ask": { "ask": "items", "after_seq": 0 } }),
                generate(json!("$items")),
                reply("$output.item"),
                ring(),
                json!("leave"),
            ]
        })
        .asks("read notes.txt")
        .answered("owned"),
        attempt("escape_in_a_result_is_not_printed_raw_in_a_chat", |_| Vec::new()).check(|attacked, _, _| {
            check_chat(attacked, "read notes.txt", &json!([output(), report("$calls.0.call_id", CONTROL_TEXT)]));
        }),
        attempt("escape_of_the_model_is_not_printed_raw_in_a_chat", |_| Vec::new())
            .check(|attacked, _, _| check_chat(attacked, "paint", &json!([]))),
        checked("escape_in_progress_of_a_sandbox_is_not_printed_raw", move || vec![json!({ "sql": progress }), ring()]),
        attempt("escape_in_a_table_name_is_not_printed_raw", move |_| {
            vec![json!({ "sql": table }), ring(), json!("hang")]
        })
        .quarantined("its schema is not the contract's")
        .check(|attacked, _, _| check_outputs(attacked)),
        checked("escape_in_a_tool_name_is_not_printed_raw", Vec::new)
            .asks("be clever")
            .answered("It did not run")
            .calls(&["call_tool_unknown"]),
        checked("escape_in_a_refused_request_is_not_printed_raw", || {
            vec![
                json!({ "ask": { "ask": CONTROL_TEXT } }),
                json!({ "ask": { "ask": "items", "after_seq": CONTROL_TEXT } }),
            ]
        })
        .requests(&["frame"; 2]),
        checked("escape_in_a_refused_row_is_not_printed_raw", || {
            vec![
                json!({ "row": { "content": CONTROL_TEXT } }),
                json!({ "row": { "content": { "call": CONTROL_TEXT } } }),
                ring(),
            ]
        })
        .rows(&["it names no reply, no end and no call"; 2]),
        checked("escape_in_a_file_name_is_not_printed_raw", || {
            let name = CONTROL_TEXT.replace('/', "_");
            vec![json!({ "put": { "path": format!("/workspace/{name}"), "text": CONTROL_TEXT } })]
        }),
    ]
}

#[test]
fn text_of_a_sandbox_cannot_control_a_terminal() {
    run_attempts("", attempts());
}

#[test]
fn fatal_message_of_a_sandbox_cannot_control_a_terminal() {
    let attacked = Attacked::new(super::attack::FAST_FAILURE);
    let id = attacked.make_sleeping_session();
    let fatal = json!({ "fatal": CONTROL_TEXT }).to_string();
    let bytes: Vec<u8> =
        u32::try_from(fatal.len()).expect("short").to_be_bytes().into_iter().chain(fatal.bytes()).collect();
    for (name, script) in [
        ("in place of its hello", json!([{ "link": bytes }, "exit"])),
        ("after its hello", json!([{ "hello": null }, "welcome", { "link": bytes }, "exit"])),
        ("as its fingerprint", json!([{ "hello": CONTROL_TEXT }, "exit"])),
        ("in reversed bytes", json!([{ "link": bytes.iter().rev().collect::<Vec<_>>() }, "exit"])),
    ] {
        attacked.set_launch_script(&id, &script);
        let answer = attacked.host.ctl(&["chat", "a", "hello"]);
        assert_eq!(answer.code, 1, "{name}: {}{}", answer.stdout, answer.stderr);
        check_outputs(&attacked);
        attacked.set_launch_script(&id, &Value::Null);
        attacked.host.ctl(&["session", "release", &id]).ok();
        assert!(attacked.host.say("a", "hello").contains("Hello."), "{name}");
        attacked.host.ctl(&["session", "stop", &id]).ok();
        attacked.check_other_agent();
    }
    assert!(attacked.host.ctl(&["audit", "verify"]).ok().stdout.starts_with("ok "));
}
