//! Attempts on rows and their columns: values of wrong types, impossible sequence numbers and foreign ids.
//!
//! A new attempt is one entry of the table. See `queue` for the file of the queue.

use super::attack::{generate, output};
use super::attempt::{Attempt, LATER_OUTPUT, attempt, reply, ring, row, run_attempts};
use serde_json::{Value, json};

const ROW: &str = "INSERT INTO messages_out (id, seq, timestamp, kind, content, turn)";
/// An id that no other row has.
const NEW_ID: &str = "('msg_01kagq8t' || lower(hex(randomblob(9))))";
const ID: &str = "msg_01kagq8t000000000000000001";

/// Returns steps that run SQL on the outbound queue and ring.
fn sql(statements: impl Into<String>) -> Vec<Value> {
    vec![json!({ "sql": statements.into() }), ring()]
}

/// Returns steps that reply in a row with this id.
fn named(id: &Value) -> Vec<Value> {
    vec![output(), row(json!({ "id": id, "content": { "reply": "$output.item" } })), ring(), json!("leave")]
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
fn unchecked(id: &str, seq: &str, kind: &str, content: &str, turn: &str) -> String {
    format!("PRAGMA ignore_check_constraints = ON; {ROW} VALUES ({id}, {seq}, 0, {kind}, {content}, {turn});")
}

/// Returns SQL that changes the schema for one row with these values, which the table does not accept.
fn smuggled(values: &str) -> String {
    format!(
        "CREATE TEMP TABLE kept AS SELECT sql FROM sqlite_schema WHERE name = 'messages_out'; PRAGMA writable_schema = ON; \
         UPDATE sqlite_schema SET sql = replace(replace(sql, 'NOT NULL', ''), ') STRICT', ')') WHERE name = 'messages_out'; \
         PRAGMA writable_schema = RESET; PRAGMA ignore_check_constraints = ON; {ROW} VALUES ({values}); \
         PRAGMA writable_schema = ON; \
         UPDATE sqlite_schema SET sql = (SELECT sql FROM temp.kept) WHERE name = 'messages_out';"
    )
}

const NO_REPLY: &str = "it is no reply and no end";
const NO_TURN: &str = "it belongs to no open turn";
const TYPE: &str = "a row holds a value of a type that its table does not allow";

pub(crate) fn attempts() -> Vec<Attempt> {
    let id = NEW_ID;
    let chat = |content: &str| unchecked(id, "{next}", "'chat'", content, "'{turn}'");
    let end_of = |turn: &str| unchecked(id, "{next}", "'chat'", "'{\"end\":\"failed\"}'", turn);
    let deep = "'{\"reply\":' || replace(hex(zeroblob(9000)), '00', '[')";
    vec![
        refused(
            "unknown_kind_of_row_is_refused",
            unchecked(id, "{next}", "'exec'", "'{}'", "'{turn}'"),
            "its kind is unknown",
        ),
        refused("row_with_a_nul_in_it_is_refused", chat("'{\"reply\":\"' || char(0) || '\"}'"), NO_REPLY),
        attempt("row_that_names_two_outputs_is_refused", {
            let rows = chat("'{\"reply\":\"{output}\",\"reply\":\"{output}\"}'");
            move |_| [vec![output()], sql(rows.clone())].concat()
        })
        .answered(LATER_OUTPUT)
        .rows(&[NO_REPLY]),
        refused("row_of_extreme_depth_is_refused", chat(deep), NO_REPLY),
        refused("row_with_an_invalid_turn_is_refused", end_of("'{turn}' || char(0)"), NO_TURN),
        refused("row_with_its_turn_in_capitals_is_refused", end_of("upper('{turn}')"), NO_TURN),
        refused(
            "gap_in_row_numbers_does_not_matter",
            unchecked(id, "{next} + 100", "'chat'", "'hello'", "'{turn}'"),
            NO_REPLY,
        ),
        attempt("row_with_a_reused_id_is_refused_for_its_content", |_| {
            vec![row(json!({ "id": ID, "content": { "reply": "itm_00000000000000000000000000" } })), ring()]
        })
        .rows(&["is not in the record"]),
        attempt("row_with_the_id_of_a_refused_row_is_delivered_once", |_| named(&json!(ID))),
        attempt("row_with_the_id_of_a_delivered_row_is_delivered", |_| named(&json!(ID))),
        attempt("row_with_the_id_of_a_foreign_message_does_not_change_it", |known| {
            named(&known.foreign["message"])
        })
        .check(|attacked, known, _| {
            let message = known.foreign["message"].as_str().expect("an id");
            let why = attacked.host.ctl(&["--json", "why", message]).ok().json();
            assert_eq!(why["message"]["session_id"], known.other.as_str(), "{why}");
            assert_eq!(why["message"]["status"], "delivered", "{why}");
        }),
        attempt("progress_for_a_foreign_message_is_not_shown", |known| {
            let message = known.foreign["message"].as_str().expect("an id");
            sql(format!(
                "INSERT INTO processing_ack VALUES ('{message}', 'processing', 9999999999999); \
                 INSERT INTO session_state VALUES ('turn', '{message} is mine', 9999999999999);"
            ))
        })
        .check(|attacked, known, _| {
            let why = attacked.host.ctl(&["why", known.foreign["message"].as_str().expect("an id")]).ok().stdout;
            assert!(!why.contains("processing") && !why.contains("mine"), "{why}");
        }),
        attempt("excess_rows_of_progress_are_ignored", |_| {
            sql("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) \
                 INSERT INTO session_state SELECT 'k' || i, hex(zeroblob(1000)), i FROM n;")
        }),
        attempt("rows_in_a_copy_of_the_inbound_queue_are_ignored", |_| {
            let forged = "UPDATE messages_in SET content = 'echo I was forged', sender = 'loopback:owner';";
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
                json!({ "sql_at": { "path": "/workspace/in.db", "sql": "UPDATE messages_in SET seq = seq + 2, trigger = 1;" } }),
                generate(json!(["$own", forged])),
            ]
        })
        .requests(&["unknown"]),
        attempt("write_to_the_inbound_queue_is_refused", |_| {
            vec![json!({ "sql_at": { "path": "/in/inbound.db", "sql": "UPDATE messages_in SET content = 'x';" } })]
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
        fatal("row_of_the_hosts_parity_quarantines", unchecked(id, "{next} + 1", "'chat'", "'{}'", "'t'"), "is not odd"),
        fatal("row_with_a_negative_number_quarantines", unchecked(id, "-1", "'chat'", "'{}'", "'t'"), "is not odd"),
        fatal(
            "number_above_the_range_of_the_queue_quarantines",
            unchecked(id, "4611686018427387905", "'chat'", "'{}'", "'t'"),
            "a row has a number that its queue could not have given it",
        ),
        fatal(
            "row_with_the_largest_number_quarantines",
            unchecked(id, "9223372036854775807", "'chat'", "'{}'", "'t'"),
            "a row has a number that its queue could not have given it",
        ),
        fatal("row_without_a_messages_id_quarantines", unchecked("'unknown'", "{next}", "'chat'", "'{}'", "'t'"), "a row has no id of a message"),
        fatal("row_with_an_items_id_quarantines", unchecked("'itm_01kagq8t000000000000000001'", "{next}", "'chat'", "'{}'", "'t'"), "a row has no id of a message"),
        fatal("row_with_a_nul_in_its_id_quarantines", unchecked(&format!("{id} || char(0)"), "{next}", "'chat'", "'{}'", "'t'"), "a row has no id of a message"),
        fatal("name_over_its_limit_quarantines", unchecked(id, "{next}", "'chat'", "'{}'", "hex(zeroblob(300))"), "has a value over its limit"),
        fatal("row_of_ten_megabytes_quarantines", chat("hex(zeroblob(5000000))"), "outbound queue"),
        fatal("row_over_its_size_limit_quarantines", chat("hex(zeroblob(131073))"), "has a value over its limit"),
        fatal("invalid_utf_in_a_text_column_quarantines", chat("CAST(x'ff00fe' AS TEXT)"), TYPE),
        fatal("partial_character_in_a_text_column_quarantines", chat("CAST(x'7b22f09f9822' AS TEXT)"), TYPE),
        fatal("blob_in_a_text_column_quarantines", smuggled(&format!("{id}, {{next}}, 0, 'chat', x'7b7d', 't'")), TYPE),
        fatal("null_in_a_required_column_quarantines", smuggled(&format!("{id}, {{next}}, 0, 'chat', NULL, 't'")), TYPE),
        fatal("row_without_a_kind_quarantines", smuggled(&format!("{id}, {{next}}, 0, NULL, '{{}}', 't'")), TYPE),
        fatal("text_in_an_integer_column_quarantines", smuggled(&format!("{id}, 'seven', 0, 'chat', '{{}}', 't'")), TYPE),
        fatal("fraction_in_an_integer_column_quarantines", smuggled(&format!("{id}, 7.5, 0, 'chat', '{{}}', 't'")), TYPE),
        fatal("time_as_text_quarantines_the_session", smuggled(&format!("{id}, {{next}}, 'now', 'chat', '{{}}', 't'")), TYPE),
        fatal(
            "ten_thousand_rows_quarantine_the_session",
            format!(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) \
                 {ROW} SELECT 'msg_' || i, 1001 + 2 * i, 0, 'chat', '{{}}', 't' FROM n;"
            ),
            "more than 256 rows are in the queue",
        ),
        fatal("change_of_an_accepted_row_quarantines", "UPDATE messages_out SET content = '{\"reply\":\"other\"}';", "was changed after it was taken"),
        fatal("change_of_an_accepted_rows_time_quarantines", "UPDATE messages_out SET timestamp = timestamp + 1;", "was changed after it was taken"),
        fatal(
            "row_below_the_accepted_rows_quarantines",
            format!("{ROW} SELECT 'msg_1', max(seq) - 2, 0, 'chat', '{{}}', 't' FROM messages_out;"),
            "was changed after it was taken",
        ),
    ]
}

#[test]
fn row_is_accepted_unchanged_or_refused() {
    run_attempts("", attempts());
}
