//! Attempts on turns: answers to closed, foreign or future turns, second answers and invalid answers.
//!
//! A new attempt is one entry of the table. See `calls`.

use super::attack::{output, report};
use super::attempt::{Attempt, LATER_OUTPUT, ask, attempt, reply, ring, row, run_attempts};
use serde_json::{Value, json};

const NO_TURN: &str = "it belongs to no open turn";
const ANOTHER_TURN: &str = "it names an item of another turn";
const FUTURE_TURN: &str = "trn_7zzzzzzzzzzzzzzzzzzzzzzzzz";

/// Returns a row under another turn than the open one.
fn under(turn: &Value, content: Value) -> Value {
    row(json!({ "content": content, "turn": turn }))
}

fn end(reason: &str) -> Value {
    row(json!({ "content": { "end": reason } }))
}

pub(crate) fn attempts() -> Vec<Attempt> {
    vec![
        attempt("reply_to_a_closed_turn_is_refused", |known| {
            vec![under(&known.earlier["turn"], json!({ "reply": known.earlier["output"]["item"] })), ring()]
        })
        .rows(&[NO_TURN])
        .check(|attacked, _, _| {
            let texts = attacked.texts("a");
            let notice = texts.iter().rfind(|text| text.contains("The host refused outbound row"));
            assert!(notice.is_some_and(|notice| notice.contains(NO_TURN)), "the agent gets a notice: {texts:?}");
        }),
        attempt("reply_to_a_closed_turn_with_a_new_output_is_refused", |known| {
            vec![output(), under(&known.earlier["turn"], json!({ "reply": "$output.item" })), ring()]
        })
        .answered(LATER_OUTPUT)
        .rows(&[NO_TURN]),
        attempt("reply_to_another_sessions_turn_is_refused", |known| {
            vec![under(&known.foreign["turn"], json!({ "reply": known.foreign["output"]["item"] })), ring()]
        })
        .rows(&[NO_TURN]),
        attempt("reply_to_a_future_turn_is_refused", |_| {
            vec![output(), under(&json!(FUTURE_TURN), json!({ "reply": "$output.item" })), ring()]
        })
        .answered(LATER_OUTPUT)
        .rows(&[NO_TURN]),
        attempt("end_of_a_closed_turn_is_refused", |known| {
            vec![under(&known.earlier["turn"], json!({ "end": "failed" })), ring()]
        })
        .rows(&[NO_TURN]),
        attempt("reply_with_an_earlier_turns_output_is_refused", |known| {
            vec![reply(known.earlier["output"]["item"].clone()), ring()]
        })
        .rows(&[ANOTHER_TURN]),
        attempt("reply_with_another_sessions_output_is_refused", |known| {
            vec![reply(known.foreign["output"]["item"].clone()), ring()]
        })
        .rows(&[ANOTHER_TURN]),
        attempt("reply_with_an_output_from_before_a_restart_is_refused", |known| {
            vec![reply(known.before_boot["output"]["item"].clone()), ring()]
        })
        .rows(&[ANOTHER_TURN]),
        attempt("message_of_the_person_as_reply_is_refused", |_| vec![reply("$own.0.item"), ring()])
            .rows(&[ANOTHER_TURN]),
        attempt("unrecorded_item_as_reply_is_refused", |_| vec![reply("itm_00000000000000000000000000"), ring()])
            .rows(&["it names an output that is not in the record"]),
        attempt("output_with_calls_as_reply_is_refused", |_| vec![output(), reply("$output.item"), ring()])
            .asks("read notes.txt")
            .answered("could not read notes.txt")
            .rows(&["it names an output that has calls"]),
        attempt("reported_result_as_reply_is_refused", |_| {
            vec![output(), report("$calls.0.call_id", "I am the answer"), reply("$result.item"), ring()]
        })
        .asks("read notes.txt")
        .answered("I am the answer")
        .rows(&["it names an item that is no output"]),
        attempt("empty_output_as_reply_is_refused", |_| vec![output(), reply("$output.item"), ring()])
            .asks("say nothing")
            .answered(LATER_OUTPUT)
            .rows(&["it names an empty output"]),
        attempt("second_reply_in_one_turn_is_refused", |_| {
            vec![output(), reply("$output.item"), reply("$output.item"), ring(), json!("leave")]
        })
        .rows(&[NO_TURN]),
        attempt("end_after_a_reply_is_refused", |_| {
            vec![output(), reply("$output.item"), end("failed"), ring(), json!("leave")]
        })
        .rows(&[NO_TURN]),
        attempt("reply_after_an_end_is_refused", |_| {
            vec![output(), end("empty"), reply("$output.item"), ring(), json!("leave")]
        })
        .ended("an empty answer")
        .rows(&[NO_TURN]),
        attempt("end_for_an_unknown_reason_is_refused", |_| vec![end("obeyed"), ring()])
            .rows(&["it names no reply, no end and no call"]),
        attempt("reply_with_text_instead_of_an_output_is_refused", |_| {
            vec![row(json!({ "content": { "reply": "I was hacked" } })), ring()]
        })
        .rows(&["it names no reply, no end and no call"]),
        attempt("model_request_for_a_closed_turn_is_refused", |known| {
            vec![ask(json!({ "ask": "generate", "turn": known.earlier["turn"], "purpose": "reply", "refs": ["$own"] }))]
        })
        .requests(&["turn"]),
        attempt("model_request_for_a_foreign_turn_is_refused", |known| {
            vec![ask(json!({ "ask": "generate", "turn": known.foreign["turn"], "purpose": "reply", "refs": ["$own"] }))]
        })
        .requests(&["turn"]),
        attempt("model_request_for_a_future_turn_is_refused", |_| {
            vec![ask(json!({ "ask": "generate", "turn": FUTURE_TURN, "purpose": "reply", "refs": ["$own"] }))]
        })
        .requests(&["turn"]),
        attempt("model_request_after_the_end_is_refused", |_| {
            vec![output(), reply("$output.item"), ring(), json!("await_answered"), output(), json!("leave")]
        })
        .requests(&["turn"]),
        attempt("output_of_a_crashed_turn_is_no_reply_of_the_next", |_| {
            let crash = json!({ "once": [output(), "keep", "exit"] });
            vec![crash, reply("$kept.output.item"), ring()]
        })
        .relaunched()
        .rows(&[ANOTHER_TURN]),
        attempt("reply_to_a_crashed_turn_is_refused", |_| {
            let crash = json!({ "once": [output(), "keep", "exit"] });
            vec![crash, row(json!({ "content": { "reply": "$kept.output.item" }, "turn": "$kept.turn" })), ring()]
        })
        .relaunched()
        .rows(&[NO_TURN]),
    ]
}

#[test]
fn turn_is_answered_once_by_its_own_output() {
    run_attempts("", attempts());
}
