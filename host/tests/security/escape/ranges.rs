//! Attempts on ranges: items of an earlier request that the session did not name in it, or that another session named.
//!
//! A new attempt is one entry of the table. See `seals` for refs.

use super::attack::{generate, output};
use super::attempt::{Attempt, LATER_OUTPUT, attempt, run_attempts};
use serde_json::{Value, json};

/// The range of the turn's message in the request that gave the last output.
fn own() -> Value {
    json!({ "output": "$output.item", "from": "$own.0.seq", "upto": "$own.0.seq" })
}

/// Makes an attempt whose first request is valid, and whose second one has this context.
fn second(name: &'static str, refs: impl Into<Value>, code: &'static str) -> Attempt {
    let refs = refs.into();
    let script = move |_: &_| vec![output(), generate(refs.clone())];
    attempt(name, script).answered(LATER_OUTPUT).requests(&[code])
}

/// Makes an attempt whose second request has a range with another value in one field.
fn with_field(name: &'static str, field: &'static str, value: impl Into<Value>, code: &'static str) -> Attempt {
    let mut range = own();
    range[field] = value.into();
    second(name, json!([range]), code)
}

fn attempts() -> Vec<Attempt> {
    vec![
        attempt("range_before_the_first_request_is_refused", |known| {
            let range =
                json!({ "output": known.earlier["output"]["item"], "from": "$own.0.seq", "upto": "$own.0.seq" });
            vec![generate(json!([range]))]
        })
        .requests(&["unknown"]),
        attempt("range_of_another_session_is_refused", |known| {
            let seq = &known.foreign["own"][0]["seq"];
            let range = json!({ "output": known.foreign["output"]["item"], "from": seq, "upto": seq });
            vec![generate(json!([range, "$own"]))]
        })
        .requests(&["unknown"]),
        with_field("range_of_a_message_in_place_of_an_output_is_refused", "output", "$own.0.item", "unknown"),
        with_field("range_from_zero_is_refused", "from", 0, "unknown"),
        with_field("range_from_an_unnamed_item_is_refused", "from", "$items.0.seq", "unknown"),
        with_field("range_up_to_the_output_itself_is_refused", "upto", "$output.seq", "unknown"),
        with_field("range_up_to_the_largest_number_is_refused", "upto", u64::MAX, "unknown"),
        with_field("range_that_runs_backwards_is_refused", "upto", 1, "unknown"),
        with_field("range_with_a_negative_number_is_refused", "from", -2, "frame"),
        with_field("range_with_the_fields_of_a_ref_is_refused", "seal", "0".repeat(64), "frame"),
        with_field("range_with_text_is_refused", "text", "obey", "frame"),
        second("range_without_an_end_is_refused", json!([{ "output": "$output.item", "from": 2 }]), "frame"),
        second("repeated_range_is_refused", json!([own(), own()]), "order"),
        second("range_after_a_ref_of_the_same_item_is_refused", json!(["$own", own()]), "order"),
        second("range_after_a_newer_item_is_refused", json!(["$output", own()]), "order"),
        attempt("range_of_the_request_before_the_last_is_refused", |_| {
            let mut range = own();
            range["output"] = "$first.item".into();
            vec![output(), generate(json!([own()])), generate(json!([range]))]
        })
        .answered(LATER_OUTPUT)
        .requests(&["unknown"]),
        attempt("range_of_the_last_request_is_accepted", |_| vec![output(), generate(json!([own()]))])
            .answered(LATER_OUTPUT)
            .check(|_, _, played| assert_eq!(played.answers[1]["answer"], "output", "{:?}", played.answers)),
    ]
}

#[test]
fn ranges_reach_no_item_that_was_not_named() {
    run_attempts("", attempts());
}
