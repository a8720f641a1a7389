//! Attempts on the file of the outbound queue: other schemas, journals, keys, pages or files.
//!
//! A new attempt is one entry of the table. See `hostile` for attacks over several turns.

use super::attack::output;
use super::attempt::{Attempt, attempt, reply, ring, run_attempts};
use serde_json::{Value, json};

const DB: &str = "/out/outbound.db";

/// Makes an attempt with this step and a bell. Then the attacker stays silent.
fn fatal(name: &'static str, step: Value, words: &'static str) -> Attempt {
    attempt(name, move |_| vec![step.clone(), ring(), json!("hang")]).quarantined(words)
}

fn sql(name: &'static str, statements: &str, words: &'static str) -> Attempt {
    fatal(name, json!({ "sql": statements }), words)
}

/// Makes an attempt whose change of the file the next launch detects.
fn found_later(name: &'static str, step: Value, words: &'static str) -> Attempt {
    attempt(name, move |_| vec![json!({ "once": [step, "exit"] })]).quarantined_later(words)
}

/// Makes an attempt with this step once, after which another launch answers.
fn relaunched(name: &'static str, step: Value) -> Attempt {
    attempt(name, move |_| vec![json!({ "once": [step, "exit"] })]).relaunched()
}

pub(crate) fn attempts() -> Vec<Attempt> {
    let endless = "DROP TABLE messages_out; CREATE VIEW messages_out AS WITH RECURSIVE n(seq) AS (SELECT 1 UNION ALL SELECT seq + 2 FROM n) \
                   SELECT seq, 't' AS turn, '{}' AS content FROM n;";
    let swapped = "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = \
                   (SELECT rootpage FROM sqlite_schema WHERE name = 'messages_out') WHERE name = 'processing_ack'; PRAGMA schema_version = 99;";
    let wal = "PRAGMA journal_mode = WAL; INSERT INTO processing_ack VALUES ('a', 'completed', 0);";
    vec![
        sql(
            "additional_view_quarantines_the_session",
            "CREATE VIEW v AS SELECT * FROM messages_out;",
            "unexpected: CREATE VIEW v",
        ),
        sql("infinite_view_instead_of_a_table_quarantines", endless, "unexpected: CREATE VIEW messages_out"),
        sql(
            "additional_trigger_quarantines_the_session",
            "CREATE TRIGGER t AFTER INSERT ON processing_ack BEGIN DELETE FROM messages_out; END;",
            "unexpected: CREATE TRIGGER t",
        ),
        sql(
            "additional_virtual_table_quarantines_the_session",
            "CREATE VIRTUAL TABLE f USING fts5(x);",
            "its schema is not the contract's",
        ),
        sql("additional_table_quarantines_the_session", "CREATE TABLE x (y);", "unexpected: CREATE TABLE x"),
        sql(
            "additional_index_quarantines_the_session",
            "CREATE INDEX i ON messages_out (turn);",
            "unexpected: CREATE INDEX i",
        ),
        sql("missing_table_quarantines_the_session", "DROP TABLE processing_ack;", "a table is missing"),
        sql(
            "additional_column_quarantines_the_session",
            "ALTER TABLE messages_out ADD COLUMN approved TEXT;",
            "its schema is not the contract's",
        ),
        sql("table_on_the_pages_of_another_quarantines", swapped, "outbound queue"),
        sql("write_ahead_log_instead_of_a_journal_quarantines", wal, "outbound queue"),
        fatal("write_ahead_log_that_is_kept_open_quarantines", json!({ "sql_held": wal }), "outbound.db-wal"),
        fatal(
            "invalid_write_ahead_log_quarantines",
            json!({ "put": { "path": "/out/outbound.db-wal", "text": "x" } }),
            "outbound.db-wal",
        ),
        fatal(
            "shared_memory_file_without_a_log_quarantines",
            json!({ "size": { "path": "/out/outbound.db-shm", "length": 32768 } }),
            "outbound.db-shm",
        ),
        fatal(
            "directory_as_write_ahead_log_quarantines",
            json!({ "directory": "/out/outbound.db-wal" }),
            "outbound.db-wal",
        ),
        fatal(
            "flipped_bits_in_the_first_page_quarantine",
            json!({ "poke": { "path": DB, "at": 16, "length": 512 } }),
            "wrong key or damaged file",
        ),
        fatal(
            "queue_truncated_to_zero_bytes_quarantines",
            json!({ "size": { "path": DB, "length": 0 } }),
            "outbound queue",
        ),
        fatal("queue_of_half_a_page_quarantines", json!({ "size": { "path": DB, "length": 2000 } }), "outbound queue"),
        found_later(
            "flipped_bits_in_later_pages_quarantine",
            json!({ "poke": { "path": DB, "at": 4200, "length": 8192 } }),
            "outbound queue",
        ),
        found_later(
            "queue_under_another_key_quarantines",
            json!({ "remake": { "key": "a5".repeat(32), "page": 4096 } }),
            "wrong key or damaged file",
        ),
        found_later(
            "queue_of_another_page_size_quarantines",
            json!({ "remake": { "key": null, "page": 8192 } }),
            "wrong key or damaged file",
        ),
        found_later(
            "garbage_as_outbound_queue_quarantines",
            json!({ "plant": "garbage" }),
            "wrong key or damaged file",
        ),
        found_later("directory_as_outbound_queue_quarantines", json!({ "plant": "directory" }), "it is a directory"),
        relaunched(
            "new_outbound_queue_adds_no_words_to_the_answer",
            json!({ "remake": { "key": null, "page": 4096 } }),
        ),
        relaunched("removed_outbound_queue_is_made_again", json!({ "remove": DB })),
        relaunched("sparse_outbound_queue_is_still_read", json!({ "size": { "path": DB, "length": 200 << 20 } })),
        attempt("symbolic_link_beside_the_queue_cannot_be_made", |_| {
            vec![json!({ "symlink": { "to": "/in/inbound.db", "path": "/out/outbound.db-journal" } })]
        })
        .fails("Operation not permitted"),
        attempt("hard_link_to_the_inbound_queue_cannot_be_made", |_| {
            vec![json!({ "hardlink": { "to": "/in/inbound.db", "path": "/out/other.db" } })]
        })
        .fails("os error"),
        attempt("pipe_beside_the_queue_cannot_be_made", |_| vec![json!({ "fifo": "/out/outbound.db-journal" })])
            .fails("EPERM"),
        attempt("read_lock_on_the_queue_blocks_no_row", |_| {
            let held = json!({ "sql_held": "BEGIN; CREATE TEMP TABLE t AS SELECT * FROM messages_out;" });
            vec![output(), reply("$output.item"), held, ring(), json!("leave")]
        }),
        attempt("write_lock_on_the_queue_disturbs_only_its_session", |_| {
            vec![json!({ "once": [{ "sql_held": "BEGIN IMMEDIATE" }, ring(), "exit"] })]
        })
        .relaunched(),
    ]
}

#[test]
fn invalid_outbound_queue_halts_its_session() {
    run_attempts("[turn]\nseconds_max = 20\n", attempts());
}
