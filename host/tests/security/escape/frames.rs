//! Attempts on the model socket and the link: wrong lengths, partial or paired frames, silence, many connections and wrong bells.
//!
//! A new attempt is one entry of the table. See `floods`.

use super::attack::output;
use super::attempt::{Attempt, ask, attempt, reply, ring, run_attempts};
use serde_json::{Value, json};

/// Returns a step that sends this text with this frame length on a new connection.
fn raw(length: usize, text: &str) -> Value {
    json!({ "raw": { "length": length, "text": text } })
}

/// Makes an attempt with a frame that is not a valid request.
fn invalid_request(name: &'static str, text: impl Into<String>) -> Attempt {
    let text = text.into();
    attempt(name, move |_| vec![raw(text.len(), &text)]).requests(&["frame"])
}

/// Makes an attempt with a partial frame, which gets no answer.
fn partial_frame(name: &'static str, length: usize, text: &'static str) -> Attempt {
    attempt(name, move |_| vec![raw(length, text)])
        .check(|_, _, played| assert_eq!(played.answers[0]["closed"], true, "{:?}", played.answers))
}

const ITEMS: &str = r#"{"ask":"items","after_seq":0}"#;

pub(crate) fn attempts() -> Vec<Attempt> {
    vec![
        attempt("frame_one_byte_over_the_limit_is_refused", |_| vec![raw(1024 * 1024 + 1, "")]).requests(&["frame"]),
        attempt("frame_of_four_gigabytes_is_refused", |_| vec![raw(u32::MAX as usize, "")]).requests(&["frame"]),
        partial_frame("partial_frame_body_gets_no_answer", 100, r#"{"ask""#),
        partial_frame("missing_frame_body_gets_no_answer", 1, ""),
        invalid_request("frame_of_zero_bytes_is_refused", ""),
        invalid_request("frame_without_valid_json_is_refused", "garbage"),
        invalid_request("frame_of_nuls_is_refused", "\0".repeat(64)),
        invalid_request("list_of_extreme_depth_is_refused", "[".repeat(2000)),
        invalid_request("object_of_extreme_depth_is_refused", r#"{"a":"#.repeat(2000)),
        invalid_request(
            "field_with_a_long_name_is_refused",
            format!(r#"{{"ask":"items","after_seq":0,"{}":1}}"#, "x".repeat(20_000)),
        ),
        invalid_request("repeated_field_ask_is_refused", r#"{"ask":"items","ask":"items","after_seq":0}"#),
        invalid_request("repeated_field_is_refused", r#"{"ask":"items","after_seq":0,"after_seq":0}"#),
        invalid_request("request_for_items_after_a_negative_number_is_refused", r#"{"ask":"items","after_seq":-1}"#),
        invalid_request("two_requests_in_one_frame_are_refused", format!("{ITEMS}{ITEMS}")),
        invalid_request(
            "request_of_an_unknown_kind_is_refused",
            r#"{"ask":"approve","turn":"trn_01kagq8t000000000000000001"}"#,
        ),
        invalid_request("request_without_a_kind_is_refused", "{}"),
        invalid_request("answer_of_the_host_as_request_is_refused", r#"{"answer":"items","items":[],"more":false}"#),
        invalid_request(
            "hello_on_the_model_socket_is_refused",
            format!(r#"{{"fingerprint":"{}","version":"0"}}"#, "0".repeat(64)),
        ),
        attempt("bytes_after_a_frame_are_a_partial_next_frame", |_| {
            // After the request follow the four bytes of another length, and no body.
            vec![raw(ITEMS.len(), &format!("{ITEMS}\0\0\0\u{9}"))]
        })
        .check(|_, _, played| assert_eq!(played.answers[0]["answer"], "items", "{:?}", played.answers)),
        attempt("two_requests_in_one_write_are_answered_in_order", |_| {
            let approve = json!({ "ask": "approve" });
            vec![json!({ "pipelined": [{ "ask": "items", "after_seq": 0 }, approve] })]
        })
        .check(|_, _, played| {
            let answers: Vec<&Value> = played.answers.iter().map(|answer| &answer["answer"]).collect();
            assert_eq!(answers[..2], ["items", "refused"], "{:?}", played.answers);
        })
        .requests(&["frame"]),
        attempt("connections_over_the_limit_are_refused", |_| {
            vec![output(), json!({ "dial": 8 }), reply("$output.item"), ring(), json!("leave")]
        })
        .check(|_, _, played| assert_eq!(played.answers[1]["held"], 4, "{:?}", played.answers))
        .requests(&["budget"; 4]),
        attempt("silent_connection_does_not_block_other_connections", |_| {
            vec![
                json!({ "dial": 1 }),
                json!({ "say": [0, 0] }),
                ask(json!({ "ask": "items", "after_seq": 0 })),
                json!("hang_up"),
            ]
        })
        .check(|_, _, played| assert_eq!(played.answers[1]["answer"], "items", "{:?}", played.answers)),
        attempt("descriptors_sent_with_a_frame_are_not_accepted", |_| vec![json!({ "descriptors": 100 })]).check(
            |attacked, _, played| {
                assert_eq!(played.answers[0]["answer"], "items", "{:?}", played.answers);
                let host_pid = attacked.host.pid().expect("it runs");
                let open = std::fs::read_dir(format!("/proc/{host_pid}/fd")).expect("the host is ours").count();
                assert!(open < 100, "the host has {open} descriptors open");
            },
        ),
        attempt("second_hello_quarantines_the_session", |_| vec![json!({ "hello": null }), json!("hang")])
            .quarantined("something other than a bell"),
        attempt("unknown_byte_on_the_link_quarantines", |_| vec![json!({ "link": [33, 33, 0] }), json!("hang")])
            .quarantined("something other than a bell"),
        attempt("json_text_on_the_link_quarantines", |_| {
            vec![json!({ "link": [123, 34, 107, 34, 58, 48, 125] }), json!("hang")]
        })
        .quarantined("something other than a bell"),
        attempt("thousand_bells_count_as_one", |_| vec![json!({ "ring": 1000 })]),
        attempt("sandbox_that_closes_its_link_is_ended", |_| vec![json!({ "once": ["close_link", "hang"] })])
            .relaunched(),
        attempt("thread_that_outlives_the_main_thread_is_ended", |_| vec![json!({ "once": ["close_link", "linger"] })])
            .relaunched(),
        attempt("sandbox_that_dies_after_its_bell_is_replaced", |_| vec![json!({ "once": [ring(), "exit"] })])
            .relaunched(),
    ]
}

#[test]
fn invalid_frames_and_bells_are_refused() {
    run_attempts("", attempts());
}
