//! The versions of the schema of `state.db`, and their migrations, which only go forward.
//!
//! Never changes a released version, and never migrates a file without a snapshot. A file with a newer schema is refused. See
//! [`crate::snapshot`].

use super::sql::{self, Mark};
use super::{Error, WriteTx, snapshot};
use ironclaw_contract::seam::crypt::SessionKey;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// One script for each version. `user_version` of the file is the number of scripts that have run.
///
/// A version adds to the schema where it can. One that has to rebuild a table makes the new table, copies the rows, drops the old table
/// and renames the new one. Foreign keys are off meanwhile, so that the rows that refer to the table stay. A version that leaves
/// a broken reference is rolled back.
///
/// A new kind of channel needs such a version: `channels.kind` has a CHECK with the names of the kinds, and a host that does not know a
/// name refuses the row when it reads it. The test `rebuilt_channels_keep_their_wirings` has the script for it, which also keeps the
/// counter of generations. `fresh_record_takes_a_channel_of_each_kind` fails until it is there.
///
/// The numbers of deliveries (their rowids) and of ledger entries are in blocks of 256 since version 29, and an index has the complete
/// blocks only. A version that rebuilds `deliveries` keeps the rowids, and one that changes the size of a block fills the index again.
pub const VERSIONS: &[&str] = &[
    include_str!("v1.sql"),
    include_str!("v2.sql"),
    include_str!("v3.sql"),
    include_str!("v4.sql"),
    include_str!("v5.sql"),
    include_str!("v6.sql"),
    include_str!("v7.sql"),
    include_str!("v8.sql"),
    include_str!("v9.sql"),
    include_str!("v10.sql"),
    include_str!("v11.sql"),
    include_str!("v12.sql"),
    include_str!("v13.sql"),
    include_str!("v14.sql"),
    include_str!("v15.sql"),
    include_str!("v16.sql"),
    include_str!("v17.sql"),
    include_str!("v18.sql"),
    include_str!("v19.sql"),
    include_str!("v20.sql"),
    include_str!("v21.sql"),
    include_str!("v22.sql"),
    include_str!("v23.sql"),
    include_str!("v24.sql"),
    include_str!("v25.sql"),
    include_str!("v26.sql"),
    include_str!("v27.sql"),
    include_str!("v28.sql"),
    include_str!("v29.sql"),
    include_str!("v30.sql"),
    include_str!("v31.sql"),
    include_str!("v32.sql"),
];

/// A migration of the schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migrated {
    /// The earlier version.
    pub from: i64,
    /// The new version.
    pub to: i64,
    /// File name of the snapshot of the earlier version.
    pub snapshot: String,
}

/// Runs the missing versions in one transaction, after a snapshot of the file.
///
/// # Errors
/// [`Error::Migration`], and then the file is unchanged; the errors of [`check`] and [`snapshot::take`].
pub fn run(db: &Connection, path: &Path, key: &SessionKey) -> Result<(), Error> {
    run_these(VERSIONS, db, path, key)
}

fn run_these(versions: &[&str], db: &Connection, path: &Path, key: &SessionKey) -> Result<(), Error> {
    let found = check(db, path, key)?;
    let to = versions.len() as i64;
    if found >= to {
        return Ok(());
    }
    let note = match found {
        // A new file has no earlier content.
        0 => None,
        _ => {
            let taken = snapshot::take(db, path, key, found + 1)?;
            let name = taken.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            tracing::info!(from = found, to, snapshot = name, "migrating the schema of the state");
            Some(Migrated { from: found, to, snapshot: name })
        }
    };
    let change = || -> rusqlite::Result<()> {
        sql::begin_to_write(db)?;
        let broken = sql::broken_references(db)?;
        for script in &versions[found as usize..] {
            db.execute_batch(script)?;
        }
        if sql::broken_references(db)? > broken {
            let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CONSTRAINT_FOREIGNKEY);
            let words = "rows would refer to rows that are not there".to_owned();
            return Err(rusqlite::Error::SqliteFailure(code, Some(words)));
        }
        if let Some(note) = &note {
            let text = serde_json::to_string(note).expect("three plain fields");
            sql::set_mark(db, Mark::Migrated, &text)?;
        }
        db.execute_batch(&format!("PRAGMA user_version = {to}; COMMIT;"))
    };
    let enforced = sql::has_foreign_keys(db)?;
    // Dropping a table deletes its rows first, which would also delete the rows that refer to them.
    sql::set_foreign_keys(db, false)?;
    let changed = change();
    if changed.is_err() && !db.is_autocommit() {
        // An error means that it was rolled back already.
        let _ = sql::roll_back(db);
    }
    sql::set_foreign_keys(db, enforced)?;
    changed.map_err(|source| {
        let kept = note.map_or_else(String::new, |note| format!(", and its snapshot is {}", note.snapshot));
        Error::Migration { path: path.display().to_string(), from: found, to, kept, source: Box::new(source) }
    })
}

/// Returns the migration that the ledger does not name yet, and removes its mark.
///
/// # Errors
/// The errors of SQLite.
pub fn take_note(tx: &mut WriteTx<'_>) -> Result<Option<Migrated>, Error> {
    take_note_from(tx.db)
}

fn take_note_from(db: &Connection) -> Result<Option<Migrated>, Error> {
    let text = sql::take_mark(db, Mark::Migrated)?;
    text.map(|text| serde_json::from_str(&text).map_err(|_| Error::Stored("meta: migrated".to_owned()))).transpose()
}

/// Returns the version of the file.
///
/// # Errors
/// [`Error::Newer`] for a version that this program does not know.
pub fn check(db: &Connection, path: &Path, key: &SessionKey) -> Result<i64, Error> {
    let found: i64 = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    let known = VERSIONS.len() as i64;
    if found > known {
        let way_back = snapshot::way_back(path, key, found, known);
        return Err(Error::Newer { path: path.display().to_string(), found, known, way_back });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{connect, create, open_to_look};
    use std::path::PathBuf;
    use tempfile::TempDir;

    /// Makes a record without a version.
    fn empty() -> (TempDir, PathBuf, SessionKey, Connection) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (path, key) = (directory.path().join("state.db"), SessionKey::new([3; 32]));
        create(&path).expect("made");
        let db = connect(&path, &key).expect("opened");
        (directory, path, key, db)
    }

    /// Makes the record of version 5. Foreign keys are off.
    fn oldest() -> (TempDir, PathBuf, SessionKey, Connection) {
        let (directory, path, key, db) = empty();
        run_these(&VERSIONS[..5], &db, &path, &key).expect("version 5");
        db.execute_batch("PRAGMA foreign_keys = OFF;").expect("off");
        db.execute_batch(OLDEST_ROWS).expect("rows of version 5");
        (directory, path, key, db)
    }

    #[test]
    fn rebuilt_deliveries_table_keeps_every_index() {
        let (_directory, path, key, db) = empty();
        let indexes = |db: &Connection| -> Vec<String> {
            let sql =
                "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = 'deliveries' AND sql IS NOT NULL";
            let mut statement = db.prepare(sql).expect("it is SQL");
            statement.query_map([], |row| row.get(0)).expect("read").collect::<Result<_, _>>().expect("names")
        };
        run_these(&VERSIONS[..7], &db, &path, &key).expect("version 7");
        let before = indexes(&db);
        run_these(&VERSIONS[..8], &db, &path, &key).expect("version 8");
        let after = indexes(&db);
        assert!(!before.is_empty() && before.iter().all(|name| after.contains(name)), "{before:?} {after:?}");
    }

    /// Makes a record with all versions before the one whose script has these words, and returns the number of that version.
    fn before_version(words: &str, db: &Connection, path: &Path, key: &SessionKey) -> usize {
        let at = VERSIONS.iter().position(|script| script.contains(words)).expect("a version");
        run_these(&VERSIONS[..at], db, path, key).expect("the versions before");
        at + 1
    }

    #[test]
    fn agents_keep_the_tools_that_they_had_implicitly() {
        let (_directory, path, key, db) = empty();
        let version = before_version("request_capability_change", &db, &path, &key);
        for (name, tools) in [("a", r#"["write_file","read_file"]"#), ("b", r#"["send_message"]"#), ("c", "[]")] {
            let sql = "INSERT INTO agents (id, name, model, persona, enabled_tools, mode, created_at) \
                       VALUES (?1, ?1, 'scripted', '', ?2, 'enforce', 1)";
            db.execute(sql, [name, tools]).expect("an agent");
        }
        run_these(&VERSIONS[..version], &db, &path, &key).expect("the version");
        let mut statement = db.prepare("SELECT enabled_tools FROM agents ORDER BY name").expect("it is SQL");
        let found: Vec<String> =
            statement.query_map([], |row| row.get(0)).expect("read").collect::<Result<_, _>>().expect("lists");
        let asks = r#"["request_capability_change"]"#;
        assert_eq!(found, [r#"["write_file","read_file","request_capability_change"]"#, asks, asks]);
    }

    #[test]
    fn messages_that_inform_keep_the_turn_that_showed_them() {
        let (_directory, path, key, db) = empty();
        let version = before_version("moved_seq", &db, &path, &key);
        db.execute_batch(
            "PRAGMA foreign_keys = OFF;
             INSERT INTO turns (id, session_id, principal, scope, state, opened_at, deadline, model_calls, tool_calls, result_bytes)
               VALUES ('t1','s','p','read','closed',100,1,0,0,0), ('other','x','p','read','closed',150,1,0,0,0),
                      ('t2','s','p','read','closed',200,1,0,0,0);
             INSERT INTO messages (id, session_id, seq, kind, status, trigger, sender, principal, channel, received_at, attempts)
               VALUES ('m1','s',2,'chat','completed',0,'a','p','desk',50,0), ('m2','s',4,'system','completed',0,'host','host','host',120,0),
                      ('m3','s',6,'chat','queued',0,'a','p','loopback',250,0);",
        )
        .expect("a conversation");
        run_these(&VERSIONS[..version], &db, &path, &key).expect("the version");
        let mut statement = db.prepare("SELECT first_ordinal, kind FROM messages ORDER BY seq").expect("it is SQL");
        let found: Vec<(Option<i64>, String)> = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
            .expect("read")
            .collect::<Result<_, _>>()
            .expect("places");
        let expected = [(Some(1), "webhook"), (Some(3), "system"), (None, "chat")];
        assert_eq!(found, expected.map(|(place, kind)| (place, kind.to_owned())));
    }

    #[test]
    fn uids_from_before_grants_were_noted_are_not_reused() {
        let (_directory, path, key, db) = empty();
        let version = before_version("uid_shared", &db, &path, &key);
        let session = "PRAGMA foreign_keys = OFF; \
            INSERT INTO sessions (id, agent_id, channel, platform_id, thread_id, uid_offset, state, last_seq, cursor, failures, \
            created_at, last_active_at) VALUES ('s','a','loopback','x','',0,'live',0,0,0,1,1); \
            INSERT INTO uids_free (uid_offset, usable) VALUES (1, 1);";
        db.execute_batch(session).expect("a session and a free uid");
        run_these(&VERSIONS[..version], &db, &path, &key).expect("the version");
        let sql = "SELECT (SELECT uid_shared FROM sessions), (SELECT usable FROM uids_free)";
        let found: (bool, bool) = db.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?))).expect("read");
        assert_eq!(found, (true, false));
    }

    #[test]
    fn messages_between_agents_keep_their_chain() {
        let (_directory, path, key, db) = empty();
        let version = before_version("DROP COLUMN source_turn", &db, &path, &key);
        db.execute_batch(
            "PRAGMA foreign_keys = OFF;
             INSERT INTO agent_messages (message_id, kind, source_agent, source_session, source_turn, source_message, hop, chain, answers, answered, delivery)
               VALUES ('m1','request','a','s','t','m0',1,'m0',NULL,1,NULL), ('m2','answer','b','r','u','m0',2,'m0','m1',0,'d');",
        )
        .expect("a request and its answer");
        run_these(&VERSIONS[..version], &db, &path, &key).expect("the version");
        let sql = "SELECT message_id || kind || source_agent || source_session || source_message || hop || chain || answered \
                   || coalesce(delivery, '') FROM agent_messages WHERE chain = 'm0' ORDER BY hop";
        let mut statement = db.prepare(sql).expect("it is SQL");
        let found: Vec<String> =
            statement.query_map([], |row| row.get(0)).expect("read").collect::<Result<_, _>>().expect("rows");
        assert_eq!(found, ["m1requestasm01m01", "m2answerbrm02m00d"]);
        let sql = "SELECT count(*) FROM pragma_table_info('agent_messages') WHERE name IN ('source_turn','answers')";
        assert_eq!(db.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("read"), 0);
    }

    /// Rows of version 28 beside those of the oldest home: messages in each state, and a ledger and deliveries of more than one block.
    const ROWS_OF_28: &str = "
        CREATE TEMP TABLE s AS SELECT min(id) AS id FROM sessions;
        INSERT INTO turns (id, session_id, principal, scope, state, opened_at, deadline, model_calls, tool_calls, result_bytes)
          SELECT 't1', id, 'p', 'read', 'closed', 1, 2, 1, 0, 0 FROM s UNION ALL SELECT 't2', id, 'p', 'read', 'open', 3, 4, 1, 0, 0 FROM s;
        INSERT INTO messages (id, session_id, seq, kind, status, trigger, sender, principal, channel, event_id, received_at, turn_id,
            attempts, first_ordinal, bytes, images, root)
          SELECT 'done', id, 1002, 'chat', 'delivered', 1, 'a', 'p', 'loopback', 'e1', 5, 't1', 1, 7, 3, x'00ff', NULL FROM s
          UNION ALL SELECT 'open', id, 1004, 'webhook', 'processing', 1, 'a', 'p', 'desk', 'e2', 6, 't2', 1, 8, 3, NULL, 'done' FROM s
          UNION ALL SELECT 'next', id, 1006, 'chat', 'queued', 1, 'a', 'p', 'loopback', NULL, 7, NULL, 0, NULL, 3, NULL, NULL FROM s
          UNION ALL SELECT 'context', id, 1008, 'system', 'queued', 0, 'host', 'host', 'host', NULL, 8, NULL, 0, NULL, 0, NULL, NULL FROM s
          UNION ALL SELECT 'given up', id, 1010, 'chat', 'completed', 1, 'a', 'p', 'loopback', NULL, 9, NULL, 0, NULL, 3, NULL, NULL FROM s;
        INSERT INTO chain_tokens (chain, tokens) VALUES ('done', 9);
        INSERT INTO outbound_rows (session_id, seq, digest, at) SELECT id, 2001, 'd', 5 FROM s;
        WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 600)
          INSERT INTO deliveries (id, session_id, turn_id, item, channel, platform_id, thread_id, state, attempts, created_at,
            over_network)
          SELECT 'd' || n, id, iif(n = 600, 't1', NULL), 'i', 'loopback', 'x', '', 'received', 1, n, 0 FROM n, s;
        WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 600)
          INSERT INTO ledger (type, data, hash, at, message_id, turn_id) SELECT 'META', n, 'h', n, 'done', iif(n > 300, 't1', NULL) FROM n;";

    #[test]
    fn rows_are_the_same_after_version_29() {
        let (_directory, path, key, db) = oldest();
        let version = before_version("messages_of_29", &db, &path, &key);
        db.execute_batch(ROWS_OF_28).expect("rows of version 28");
        let list = |sql: &str| -> Vec<String> {
            let mut statement = db.prepare(sql).expect("it is SQL");
            statement.query_map([], |row| row.get(0)).expect("read").collect::<Result<_, _>>().expect("texts")
        };
        let tables = list(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'meta' AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name",
        );
        let columns = |table: &String| {
            list(&format!("SELECT 'quote(' || name || ')' FROM pragma_table_info('{table}')")).join(" || '|' || ")
        };
        let reads: Vec<String> =
            tables.iter().map(|table| format!("SELECT {} FROM {table} ORDER BY 1", columns(table))).collect();
        let rows = || reads.iter().map(|sql| list(sql)).collect::<Vec<_>>();
        let before = rows();
        run_these(&VERSIONS[..version], &db, &path, &key).expect("the version");
        for ((table, before), after) in tables.iter().zip(before).zip(rows()) {
            assert_eq!(before, after, "{table}");
        }
        let waiting =
            "SELECT id || of_another FROM messages WHERE waits = 1 AND session_id = (SELECT id FROM s) ORDER BY seq";
        assert_eq!(list(waiting), ["open1", "next1", "context1"]);
        assert_eq!(list("SELECT message_ids || delivery_ids FROM turns WHERE id = 't1'"), [r#"["done"]["d600"]"#]);
        let numbers = "SELECT (SELECT count(*) FROM deliveries WHERE unseen = 1 AND id GLOB 'd[0-9]*') || ' ' || \
                       (SELECT max(seq) FROM ledger_subjects) || ' ' || \
                       (SELECT count(*) FROM ledger_subjects WHERE subject IN ('done','t1'))";
        let first: i64 =
            db.query_row("SELECT min(seq) FROM ledger WHERE message_id = 'done'", [], |row| row.get(0)).expect("read");
        let last = (first + 600) / 256 * 256 - 1;
        let earlier = "SELECT count(*) FROM deliveries WHERE id NOT GLOB 'd[0-9]*'";
        let earlier: i64 = db.query_row(earlier, [], |row| row.get(0)).expect("read");
        let named = (last - first + 1) + (last - (first + 300) + 1);
        assert_eq!(list(numbers), [format!("{} {last} {named}", 512 - earlier)]);
        let turn = "INSERT INTO turns (id, session_id, principal, scope, state, opened_at, deadline, model_calls, tool_calls, \
                    result_bytes) SELECT 't3', id, 'p', 'read', ?1, 1, 2, 1, 0, 0 FROM s";
        let twice = db.execute(turn, ["open"]);
        assert!(twice.is_err(), "a session has one open turn");
        db.execute(turn, ["closed"]).expect("another turn");
        let inconsistent = db.execute("UPDATE messages SET status = 'completed' WHERE id = 'next'", []);
        assert!(inconsistent.is_err(), "`waits` follows the status");
    }

    #[test]
    fn version_31_names_the_open_turns() {
        let (_directory, path, key, db) = oldest();
        let version = before_version("ADD COLUMN open_turn", &db, &path, &key);
        db.execute_batch(
            "INSERT INTO turns (ordinal, id, session_id, principal, scope, state, opened_at, deadline, model_calls, tool_calls, result_bytes)
               SELECT 1001, 't1', min(id), 'p', 'read', 'open', 1, 2, 1, 0, 0 FROM sessions
               UNION ALL SELECT 1002, 't2', min(id), 'p', 'read', 'closed', 3, 4, 1, 0, 0 FROM sessions;",
        )
        .expect("turns of version 30");
        run_these(&VERSIONS[..version], &db, &path, &key).expect("the version");
        let open = "SELECT count(*), sum(open_turn) FROM sessions WHERE open_turn IS NOT NULL";
        let found = db.query_row(open, [], |row| Ok((row.get(0)?, row.get(1)?))).expect("read");
        assert_eq!(found, (1_i64, 1001_i64));
    }

    /// Rows of a home of version 5, the oldest one that the tests keep.
    const OLDEST_ROWS: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/ops/migration/v5.sql"));

    /// Rebuilds `channels` with its current columns and one more kind.
    const REBUILD_OF_CHANNELS: &str = "
        CREATE TABLE rebuilt (
          generation INTEGER PRIMARY KEY AUTOINCREMENT,
          name TEXT NOT NULL UNIQUE,
          kind TEXT NOT NULL CHECK (kind IN ('webhook','another')),
          url TEXT NOT NULL,
          idempotent INTEGER NOT NULL,
          wrapped BLOB NOT NULL,
          created_at INTEGER NOT NULL
        ) STRICT;
        INSERT INTO rebuilt SELECT * FROM channels;
        DELETE FROM sqlite_sequence WHERE name = 'rebuilt';
        INSERT INTO sqlite_sequence (name, seq) SELECT 'rebuilt', seq FROM sqlite_sequence WHERE name = 'channels';
        DROP TABLE channels;
        ALTER TABLE rebuilt RENAME TO channels;";

    #[test]
    fn rebuilt_channels_keep_their_wirings() {
        let (_directory, path, key, db) = oldest();
        db.execute_batch("PRAGMA foreign_keys = ON;").expect("on");
        let wired = VERSIONS.iter().position(|script| script.contains("CREATE TABLE wirings")).expect("a version");
        run_these(&VERSIONS[..=wired], &db, &path, &key).expect("the version with channels");
        let channel = "INSERT INTO channels (name, kind, url, idempotent, wrapped, created_at) VALUES (?1,'webhook','u',0,x'00',1)";
        for name in ["desk", "shop", "gone"] {
            db.execute(channel, [name]).expect("a channel");
        }
        db.execute_batch(
            "INSERT INTO wirings (channel, agent_id) SELECT 'desk', min(id) FROM agents;
             INSERT INTO wirings (channel, agent_id) SELECT 'shop', min(id) FROM agents;
             DELETE FROM channels WHERE name = 'gone';",
        )
        .expect("wirings");
        let rows = |db: &Connection| -> Vec<String> {
            let sql =
                "SELECT channel || agent_id || generation FROM wirings JOIN channels ON name = channel ORDER BY 1";
            let mut statement = db.prepare(sql).expect("it is SQL");
            statement.query_map([], |row| row.get(0)).expect("read").collect::<Result<_, _>>().expect("wirings")
        };
        let before = rows(&db);
        assert_eq!(before.len(), 2);
        run(&db, &path, &key).expect("every version");
        assert_eq!(rows(&db), before);
        // Runs another script instead of the newest one.
        let run_instead = |script: &'static str| {
            let earlier = &VERSIONS[..VERSIONS.len() - 1];
            db.execute_batch(&format!("PRAGMA user_version = {}", earlier.len())).expect("set");
            run_these(&[earlier, &[script]].concat(), &db, &path, &key)
        };
        let error = run_instead("DELETE FROM channels WHERE name = 'shop';").expect_err("a wiring without its channel");
        assert!(error.to_string().contains("refer to rows that are not there"), "{error}");
        assert_eq!(rows(&db), before);
        run_instead(REBUILD_OF_CHANNELS).expect("rebuilt");
        assert_eq!(rows(&db), before);
        db.execute(channel, ["gone"]).expect("a channel");
        let sql = "SELECT generation FROM channels WHERE name = 'gone'";
        assert_eq!(db.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("read"), 4, "never used again");
        db.execute("DELETE FROM channels WHERE name = 'desk'", []).expect("deleted");
        assert_eq!(rows(&db).len(), 1, "and foreign keys are enforced again");
    }

    #[test]
    fn failed_migration_leaves_the_file_unchanged_with_a_copy() {
        let (_directory, path, key, db) = empty();
        run_these(&VERSIONS[..5], &db, &path, &key).expect("version 5");
        let schema = |db: &Connection| -> String {
            db.query_row("SELECT group_concat(sql) FROM sqlite_master", [], |row| row.get(0)).expect("a schema")
        };
        let before = schema(&db);
        let broken = [&VERSIONS[..6], &["CREATE TABLE half (x); INSERT INTO no_such_table VALUES (1);"]].concat();
        let error = run_these(&broken, &db, &path, &key).expect_err("it is broken");
        let said = error.to_string();
        assert!(said.contains("from schema 5 to 7") && said.contains("state.db.before-v6"), "{said}");
        assert_eq!(schema(&db), before);
        assert_eq!(check(&db, &path, &key).expect("known"), 5);
        assert_eq!(take_note_from(&db).expect("read"), None);
        let copy = open_to_look(&snapshot::all(&path)[0].path, &key).expect("it opens");
        assert_eq!(schema(&copy), before);
        run(&db, &path, &key).expect("the next start succeeds");
        let to = VERSIONS.len() as i64;
        let note = Migrated { from: 5, to, snapshot: "state.db.before-v6".to_owned() };
        assert_eq!(take_note_from(&db).expect("read"), Some(note));
        assert_eq!(take_note_from(&db).expect("read"), None, "once");
    }
}
