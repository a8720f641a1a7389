//! Attempts on the model socket and the link: wrong lengths, partial frames, pairs, silence, many connections, and wrong bells.
//!
//! To add one, add an entry. See `floods`.

use super::attack::generate;
use super::attempt::{Attempt, ask, attempt, hold, reply, ring};
use serde_json::{Value, json};

/// Returns a frame of this text with this length, on a connection of its own.
fn raw(length: usize, text: &str) -> Value {
    json!({ "raw": { "length": length, "text": text } })
}

/// Makes an attempt with a frame that is no request.
fn no_request(name: &'static str, text: impl Into<String>) -> Attempt {
    let text = text.into();
    attempt(name, move |_| vec![raw(text.len(), &text)]).requests(&["frame"])
}

/// Makes an attempt with a frame that is cut: it gets no answer.
fn cut(name: &'static str, length: usize, text: &'static str) -> Attempt {
    attempt(name, move |_| vec![raw(length, text)])
        .look(|_, _, played| assert_eq!(played.answers[0]["closed"], true, "{:?}", played.answers))
}

const ITEMS: &str = r#"{"ask":"items","after_seq":0}"#;

pub(crate) fn attempts() -> Vec<Attempt> {
    vec![
        attempt("a_frame_one_byte_over_the_limit_is_refused", |_| vec![raw(1024 * 1024 + 1, "")]).requests(&["frame"]),
        attempt("a_frame_of_four_gigabytes_is_refused", |_| vec![raw(u32::MAX as usize, "")]).requests(&["frame"]),
        cut("half_a_frame_has_no_answer", 100, r#"{"ask""#),
        cut("a_frame_that_never_begins_has_no_answer", 1, ""),
        no_request("a_frame_of_nothing_is_refused", ""),
        no_request("a_frame_that_is_no_json_is_refused", "garbage"),
        no_request("a_frame_of_nuls_is_refused", "\0".repeat(64)),
        no_request("a_list_of_endless_depth_is_refused", "[".repeat(2000)),
        no_request("an_object_of_endless_depth_is_refused", r#"{"a":"#.repeat(2000)),
        no_request(
            "a_field_with_a_long_name_is_refused",
            format!(r#"{{"ask":"items","after_seq":0,"{}":1}}"#, "x".repeat(20_000)),
        ),
        no_request("a_repeated_question_is_refused", r#"{"ask":"items","ask":"items","after_seq":0}"#),
        no_request("a_repeated_field_is_refused", r#"{"ask":"items","after_seq":0,"after_seq":0}"#),
        no_request("a_request_after_a_number_below_zero_is_refused", r#"{"ask":"items","after_seq":-1}"#),
        no_request("two_requests_in_one_frame_are_refused", format!("{ITEMS}{ITEMS}")),
        no_request("an_unknown_question_is_refused", r#"{"ask":"approve","turn":"trn_01kagq8t000000000000000001"}"#),
        no_request("no_question_is_refused", "{}"),
        no_request("the_hosts_own_answer_is_no_request", r#"{"answer":"items","items":[],"more":false}"#),
        no_request(
            "a_hello_on_the_model_socket_is_refused",
            format!(r#"{{"fingerprint":"{}","version":"0"}}"#, "0".repeat(64)),
        ),
        attempt("bytes_behind_a_frame_are_the_next_frame_and_cut", |_| {
            // The length is that of the request, followed by four bytes of a length only.
            vec![raw(ITEMS.len(), &format!("{ITEMS}\0\0\0\u{9}"))]
        })
        .look(|_, _, played| assert_eq!(played.answers[0]["answer"], "items", "{:?}", played.answers)),
        attempt("two_requests_in_one_write_are_answered_one_after_the_other", |_| {
            let approve = json!({ "ask": "approve" });
            vec![json!({ "pipelined": [{ "ask": "items", "after_seq": 0 }, approve] })]
        })
        .look(|_, _, played| {
            let answers: Vec<&Value> = played.answers.iter().map(|answer| &answer["answer"]).collect();
            assert_eq!(answers[..2], ["items", "refused"], "{:?}", played.answers);
        })
        .requests(&["frame"]),
        attempt("too_many_connections_are_not_accepted", |_| {
            vec![generate(json!(["$own"])), json!({ "dial": 8 }), reply("$output.item"), ring(), json!("leave")]
        })
        .look(|_, _, played| assert_eq!(played.answers[1]["held"], 4, "{:?}", played.answers))
        .requests(&["budget"; 4]),
        attempt("a_connection_that_says_nothing_keeps_no_other_waiting", |_| {
            vec![
                json!({ "dial": 1 }),
                json!({ "say": [0, 0] }),
                ask(json!({ "ask": "items", "after_seq": 0 })),
                json!("hang_up"),
            ]
        })
        .look(|_, _, played| assert_eq!(played.answers[1]["answer"], "items", "{:?}", played.answers)),
        attempt("descriptors_beside_the_bytes_are_not_taken", |_| vec![json!({ "descriptors": 100 })]).look(
            |attacked, _, played| {
                assert_eq!(played.answers[0]["answer"], "items", "{:?}", played.answers);
                let host = attacked.world.pid().expect("it runs");
                let open = std::fs::read_dir(format!("/proc/{host}/fd")).expect("the host is ours").count();
                assert!(open < 100, "the host has {open} descriptors open");
            },
        ),
        attempt("a_second_hello_quarantines", |_| vec![json!({ "hello": null }), json!("hang")])
            .quarantined("something other than a bell"),
        attempt("a_byte_other_than_a_bell_quarantines", |_| vec![json!({ "link": [33, 33, 0] }), json!("hang")])
            .quarantined("something other than a bell"),
        attempt("a_key_on_the_link_quarantines", |_| {
            vec![json!({ "link": [123, 34, 107, 34, 58, 48, 125] }), json!("hang")]
        })
        .quarantined("something other than a bell"),
        attempt("a_thousand_bells_are_one", |_| vec![json!({ "ring": 1000 })]),
        attempt("a_closed_link_ends_a_running_sandbox", |_| vec![json!({ "once": ["close_link", "hang"] })])
            .relaunched(),
        attempt("a_thread_that_outlives_the_first_is_no_sandbox", |_| {
            vec![json!({ "once": ["close_link", "linger"] })]
        })
        .relaunched(),
        attempt("a_sandbox_that_dies_before_its_bell_is_heard_is_replaced", |_| {
            vec![json!({ "once": [ring(), "exit"] })]
        })
        .relaunched(),
    ]
}

#[test]
fn invalid_frames_and_bells_are_refused() {
    hold("", attempts());
}
