//! Attempts on rows and their columns: values of wrong types, impossible sequence numbers and foreign ids.
//!
//! A new attempt is one entry of the table. See `queue` for the file of the queue.

use super::attack::{generate, output};
use super::attempt::{Attempt, LATER_OUTPUT, attempt, reply, ring, run_attempts};
use serde_json::{Value, json};

const ROW: &str = "INSERT INTO messages_out (seq, content, turn)";

/// Returns steps that run SQL on the outbound queue and ring.
fn sql(statements: impl Into<String>) -> Vec<Value> {
    vec![json!({ "sql": statements.into() }), ring()]
}

/// Makes an attempt with SQL for a row that the host refuses.
fn refused(name: &'static str, rows: String, reason: &'static str) -> Attempt {
    attempt(name, move |_| sql(rows.clone())).rows(&[reason])
}

/// Makes an attempt with SQL. Then the attacker stays silent.
fn fatal(name: &'static str, statements: impl Into<String>, words: &'static str) -> Attempt {
    let statements = statements.into();
    let script = move |_: &_| {
        let mut steps = sql(statements.clone());
        steps.push(json!("hang"));
        steps
    };
    attempt(name, script).quarantined(words)
}

/// Returns SQL for a row with these values, without the check constraints of the table.
fn unchecked(seq: &str, content: &str, turn: &str) -> String {
    format!("PRAGMA ignore_check_constraints = ON; {ROW} VALUES ({seq}, {content}, {turn});")
}

/// Returns SQL that changes the schema for one statement, whose values the tables do not accept.
fn smuggled(statement: &str) -> String {
    let tables = "name IN ('messages_out', 'processing_ack')";
    format!(
        "CREATE TEMP TABLE kept AS SELECT name, sql FROM sqlite_schema WHERE {tables}; PRAGMA writable_schema = ON; \
         UPDATE sqlite_schema SET sql = replace(replace(sql, 'NOT NULL', ''), ') STRICT', ')') WHERE {tables}; \
         PRAGMA writable_schema = RESET; PRAGMA ignore_check_constraints = ON; {statement}; PRAGMA writable_schema = ON; \
         UPDATE sqlite_schema SET sql = (SELECT sql FROM temp.kept WHERE kept.name = sqlite_schema.name) WHERE {tables};"
    )
}

const NO_CONTENT: &str = "it names no reply, no end and no call";
const NO_TURN: &str = "it belongs to no open turn";
const TYPE: &str = "a row holds a value of a type that its table does not allow";

pub(crate) fn attempts() -> Vec<Attempt> {
    let with = |content: &str| unchecked("{next}", content, "'{turn}'");
    let end_of = |turn: &str| unchecked("{next}", "'{\"end\":\"failed\"}'", turn);
    let deep = "'{\"reply\":' || replace(hex(zeroblob(900)), '00', '[')";
    let value = |values: &str| smuggled(&format!("{ROW} VALUES ({values})"));
    let note = |values: &str| smuggled(&format!("INSERT INTO processing_ack VALUES ({values})"));
    vec![
        refused("row_with_a_nul_in_it_is_refused", with("'{\"reply\":\"' || char(0) || '\"}'"), NO_CONTENT),
        attempt("row_that_names_two_outputs_is_refused", {
            let rows = with("'{\"reply\":\"{output}\",\"reply\":\"{output}\"}'");
            move |_| [vec![output()], sql(rows.clone())].concat()
        })
        .answered(LATER_OUTPUT)
        .rows(&[NO_CONTENT]),
        refused("row_of_extreme_depth_is_refused", with(deep), NO_CONTENT),
        refused("row_with_an_invalid_turn_is_refused", end_of("'{turn}' || char(0)"), NO_TURN),
        refused("row_with_its_turn_in_capitals_is_refused", end_of("upper('{turn}')"), NO_TURN),
        refused("gap_in_row_numbers_does_not_matter", unchecked("{next} + 100", "'hello'", "'{turn}'"), NO_CONTENT),
        attempt("progress_for_a_foreign_message_is_not_shown", |known| {
            let message = known.foreign["message"].as_str().expect("an id");
            sql(format!(
                "INSERT INTO processing_ack VALUES ('{message}', 'processing', 9999999999999), \
                 ('{message} is mine', 'processing', 9999999999998);"
            ))
        })
        .check(|attacked, known, _| {
            let why = attacked.host.ctl(&["why", known.foreign["message"].as_str().expect("an id")]).ok().stdout;
            assert!(!why.contains("processing") && !why.contains("mine"), "{why}");
        }),
        attempt("excess_rows_of_progress_are_ignored", |_| {
            sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) \
                 INSERT INTO processing_ack SELECT 'k' || i || hex(zeroblob(1000)), 'processing', i FROM n;")
        }),
        attempt("rows_in_a_copy_of_the_inbound_queue_are_ignored", |_| {
            let forged = "UPDATE messages_in SET bytes = 0, seal = '{}'; UPDATE turns SET deadline = 0, cursor = 90;";
            vec![
                json!({ "copy": { "from": "/in/inbound.db", "to": "/workspace/in.db" } }),
                json!({ "sql_at": { "path": "/workspace/in.db", "sql": forged } }),
                output(),
                reply("$output.item"),
                ring(),
                json!("leave"),
            ]
        }),
        attempt("message_added_to_an_inbound_copy_has_no_seal", |_| {
            let forged = json!({ "$of": "$own.0", "with": { "item": "itm_01kagq8t000000000000000001", "seq": 90 } });
            vec![
                json!({ "copy": { "from": "/in/inbound.db", "to": "/workspace/in.db" } }),
                json!({ "sql_at": { "path": "/workspace/in.db", "sql": "UPDATE messages_in SET seq = seq + 2;" } }),
                generate(json!(["$own", forged])),
            ]
        })
        .requests(&["unknown"]),
        attempt("write_to_the_inbound_queue_is_refused", |_| {
            vec![json!({ "sql_at": { "path": "/in/inbound.db", "sql": "UPDATE messages_in SET bytes = 0;" } })]
        })
        .fails("readonly"),
        attempt("file_beside_the_inbound_queue_cannot_be_made", |_| {
            vec![
                json!({ "put": { "path": "/in/inbound.db-journal", "text": "x" } }),
                json!({ "put": { "path": "/run/other.sock", "text": "x" } }),
                json!({ "remove": "/run/model.sock" }),
                json!({ "rename": { "from": "/in/inbound.db", "to": "/in/other.db" } }),
            ]
        })
        .fails("os error"),
        fatal("row_of_the_hosts_parity_quarantines", unchecked("{next} + 1", "'{}'", "'t'"), "is not odd"),
        fatal("row_with_a_negative_number_quarantines", unchecked("-1", "'{}'", "'t'"), "is not odd"),
        fatal(
            "number_above_the_range_of_the_queue_quarantines",
            unchecked("4611686018427387905", "'{}'", "'t'"),
            "a row has a number that its queue could not have given it",
        ),
        fatal(
            "row_with_the_largest_number_quarantines",
            unchecked("9223372036854775807", "'{}'", "'t'"),
            "a row has a number that its queue could not have given it",
        ),
        fatal(
            "name_over_its_limit_quarantines",
            unchecked("{next}", "'{}'", "hex(zeroblob(300))"),
            "has a value over its limit",
        ),
        fatal("row_of_ten_megabytes_quarantines", with("hex(zeroblob(5000000))"), "outbound queue"),
        fatal("row_over_its_size_limit_quarantines", with("hex(zeroblob(513))"), "has a value over its limit"),
        fatal("invalid_utf_in_a_text_column_quarantines", with("CAST(x'ff00fe' AS TEXT)"), TYPE),
        fatal("partial_character_in_a_text_column_quarantines", with("CAST(x'7b22f09f9822' AS TEXT)"), TYPE),
        fatal("blob_in_a_text_column_quarantines", value("{next}, x'7b7d', 't'"), TYPE),
        fatal("null_in_a_required_column_quarantines", value("{next}, NULL, 't'"), TYPE),
        fatal("row_without_a_turn_quarantines", value("{next}, '{}', NULL"), TYPE),
        fatal("text_in_an_integer_column_quarantines", note("'m', 'processing', 'now'"), TYPE),
        fatal("fraction_in_an_integer_column_quarantines", note("'m', 'processing', 7.5"), TYPE),
        fatal("status_as_a_blob_quarantines_the_session", note("'m', x'7b7d', 7"), TYPE),
        fatal(
            "ten_thousand_rows_quarantine_the_session",
            format!(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) \
                 {ROW} SELECT 1001 + 2 * i, '{{}}', 't' FROM n;"
            ),
            "more than 256 rows are in the queue",
        ),
        fatal(
            "change_of_an_accepted_row_quarantines",
            "UPDATE messages_out SET content = '{\"reply\":\"other\"}';",
            "was changed after it was taken",
        ),
        fatal(
            "change_of_an_accepted_rows_turn_quarantines",
            "UPDATE messages_out SET turn = 't';",
            "was changed after it was taken",
        ),
        fatal(
            "row_below_the_accepted_rows_quarantines",
            format!("{ROW} SELECT max(seq) - 2, '{{}}', 't' FROM messages_out;"),
            "was changed after it was taken",
        ),
    ]
}

#[test]
fn row_is_accepted_unchanged_or_refused() {
    run_attempts("", attempts());
}
