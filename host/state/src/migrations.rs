//! The versions of the schema of `state.db`, and their migrations, which only go forward.
//!
//! Never changes a released version, and never migrates a file without a snapshot. A file with a newer schema is refused, and so is
//! one that is older than the first script. See [`crate::snapshot`].

use super::sql::{self, Mark};
use super::{Error, WriteTx, snapshot};
use ironclaw_contract::seam::crypt::SessionKey;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The scripts of the schema: the first one makes version `FIRST`, and each later one the next version. `user_version` of the file is
/// its version.
///
/// A version adds to the schema where it can. One that has to rebuild a table makes the new table, copies the rows, drops the old table
/// and renames the new one. Foreign keys are off meanwhile, so that the rows that refer to the table stay. A version that leaves
/// a broken reference is rolled back.
///
/// A new kind of channel needs such a version: `channels.kind` has a CHECK with the names of the kinds, and a host that does not know a
/// name refuses the row when it reads it. The test `rebuilt_channels_keep_their_wirings` has the script for it, which also keeps the
/// counter of generations. `fresh_record_takes_a_channel_of_each_kind` fails until it is there.
///
/// The numbers of deliveries (their rowids) and of ledger entries are in blocks of 256, and an index has the complete blocks only.
/// A version that rebuilds `deliveries` keeps the rowids, and one that changes the size of a block fills the index again.
pub const VERSIONS: &[&str] = &[
    include_str!("schema.sql"),
    include_str!("schema_33.sql"),
    include_str!("schema_34.sql"),
    include_str!("schema_35.sql"),
    include_str!("schema_36.sql"),
    include_str!("schema_37.sql"),
    include_str!("schema_38.sql"),
    include_str!("schema_39.sql"),
    include_str!("schema_40.sql"),
];

/// The version of the first script: the oldest one that this program reads.
pub const FIRST: i64 = 32;

/// The version that this program writes.
pub const NEWEST: i64 = newest(VERSIONS);

const fn newest(versions: &[&str]) -> i64 {
    FIRST + versions.len() as i64 - 1
}

/// A migration of the schema.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Migrated {
    pub from: i64,
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
    let to = newest(versions);
    let found = check_until(to, db, path, key)?;
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
        // A new file gets every script.
        let done = (found - FIRST + 1).max(0) as usize;
        for script in &versions[done..] {
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

/// Returns the version of the file; 0 for a new one.
///
/// # Errors
/// [`Error::Newer`] and [`Error::Older`] for a version that this program does not read.
pub fn check(db: &Connection, path: &Path, key: &SessionKey) -> Result<i64, Error> {
    check_until(NEWEST, db, path, key)
}

fn check_until(known: i64, db: &Connection, path: &Path, key: &SessionKey) -> Result<i64, Error> {
    let found: i64 = db.query_row("PRAGMA user_version", [], |row| row.get(0))?;
    if found > known {
        let way_back = snapshot::way_back(path, key, found, FIRST..=known);
        return Err(Error::Newer { path: path.display().to_string(), found, known, way_back });
    }
    if found != 0 && found < FIRST {
        return Err(Error::Older { path: path.display().to_string(), found, oldest: FIRST });
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{connect, create, open_to_look};
    use std::path::PathBuf;
    use tempfile::TempDir;

    /// A later version: it adds a table.
    const ADDS_A_TABLE: &str = "CREATE TABLE later (x INTEGER) STRICT;";

    /// Makes a record without a version.
    fn empty() -> (TempDir, PathBuf, SessionKey, Connection) {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (path, key) = (directory.path().join("state.db"), SessionKey::new([3; 32]));
        create(&path).expect("made");
        let db = connect(&path, &key).expect("opened");
        (directory, path, key, db)
    }

    /// Makes a record of the newest version.
    fn fresh() -> (TempDir, PathBuf, SessionKey, Connection) {
        let (directory, path, key, db) = empty();
        run(&db, &path, &key).expect("every version");
        (directory, path, key, db)
    }

    /// Runs a later version.
    fn run_later(script: &str, db: &Connection, path: &Path, key: &SessionKey) -> Result<(), Error> {
        run_these(&[VERSIONS, &[script]].concat(), db, path, key)
    }

    fn snapshot_of_newest() -> String {
        format!("state.db.before-v{}", NEWEST + 1)
    }

    fn schema(db: &Connection) -> String {
        db.query_row("SELECT group_concat(sql) FROM sqlite_master", [], |row| row.get(0)).expect("a schema")
    }

    #[test]
    fn new_file_gets_every_version_without_a_snapshot() {
        let (_directory, path, key, db) = empty();
        run_later(ADDS_A_TABLE, &db, &path, &key).expect("both scripts");
        assert!(schema(&db).contains("CREATE TABLE meta") && schema(&db).contains(ADDS_A_TABLE.trim_end_matches(';')));
        assert_eq!(check_until(NEWEST + 1, &db, &path, &key).expect("known"), NEWEST + 1);
        assert_eq!(snapshot::all(&path), []);
        assert_eq!(take_note_from(&db).expect("read"), None, "the ledger has nothing to name");
    }

    #[test]
    fn migration_takes_a_snapshot_and_notes_it_once() {
        let (_directory, path, key, db) = fresh();
        db.execute_batch("INSERT INTO meta (key, value) VALUES ('word', 'kept');").expect("a row");
        run_later(ADDS_A_TABLE, &db, &path, &key).expect("the later version");
        let word = "SELECT value FROM meta WHERE key = 'word'";
        assert_eq!(db.query_row(word, [], |row| row.get::<_, String>(0)).expect("read"), "kept");
        let copy = open_to_look(&snapshot::all(&path)[0].path, &key).expect("it opens");
        assert_eq!(check(&copy, &path, &key).expect("known"), NEWEST);
        let note = Migrated { from: NEWEST, to: NEWEST + 1, snapshot: snapshot_of_newest() };
        assert_eq!(take_note_from(&db).expect("read"), Some(note));
        assert_eq!(take_note_from(&db).expect("read"), None, "once");
        run_later("fails if it runs", &db, &path, &key).expect("the version is there");
        assert_eq!(snapshot::all(&path).len(), 1);
    }

    #[test]
    fn other_versions_are_refused_and_the_file_is_unchanged() {
        let (_directory, path, key, db) = fresh();
        for version in [1, FIRST - 1, NEWEST + 1] {
            db.execute_batch(&format!("PRAGMA user_version = {version}; PRAGMA wal_checkpoint(TRUNCATE);"))
                .expect("set");
            let before = std::fs::read(&path).expect("read");
            let is_refused = |error: &Error| match error {
                Error::Older { found, oldest, .. } => *found == version && version < *oldest,
                Error::Newer { found, known, .. } => *found == version && version > *known,
                _ => false,
            };
            assert!(run(&db, &path, &key).is_err_and(|error| is_refused(&error)), "{version}");
            assert!(open_to_look(&path, &key).is_err_and(|error| is_refused(&error)), "{version}");
            assert_eq!(std::fs::read(&path).expect("read"), before, "{version}");
            assert_eq!(snapshot::all(&path), [], "{version}");
        }
    }

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
        let (_directory, path, key, db) = fresh();
        db.execute_batch("PRAGMA foreign_keys = ON;").expect("on");
        let channel = "INSERT INTO channels (name, kind, url, idempotent, wrapped, created_at) VALUES (?1,'webhook','u',0,x'00',1)";
        for name in ["desk", "shop", "gone"] {
            db.execute(channel, [name]).expect("a channel");
        }
        db.execute_batch(
            "INSERT INTO agents (id, name, model, persona, enabled_tools, mode, created_at)
               VALUES ('a', 'a', 'scripted', '', '[]', 'enforce', 1);
             INSERT INTO wirings (channel, agent_id, engage, senders, unknown, ignored, sharing)
               VALUES ('desk', 'a', 'all', 'known', 'strict', 'accumulate', 'thread'),
                      ('shop', 'a', 'all', 'known', 'strict', 'accumulate', 'thread');
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
        let error = run_later("DELETE FROM channels WHERE name = 'shop';", &db, &path, &key);
        let error = error.expect_err("a wiring without its channel");
        assert!(error.to_string().contains("refer to rows that are not there"), "{error}");
        assert_eq!(rows(&db), before);
        run_later(REBUILD_OF_CHANNELS, &db, &path, &key).expect("rebuilt");
        assert_eq!(rows(&db), before);
        db.execute(channel, ["gone"]).expect("a channel");
        let sql = "SELECT generation FROM channels WHERE name = 'gone'";
        assert_eq!(db.query_row(sql, [], |row| row.get::<_, i64>(0)).expect("read"), 4, "never used again");
        db.execute("DELETE FROM channels WHERE name = 'desk'", []).expect("deleted");
        assert_eq!(rows(&db).len(), 1, "and foreign keys are enforced again");
    }

    #[test]
    fn schedule_of_the_first_version_has_its_id_as_its_name() {
        let (_directory, path, key, db) = empty();
        run_these(&VERSIONS[..1], &db, &path, &key).expect("the first version");
        db.execute_batch(
            "PRAGMA foreign_keys = OFF;
             INSERT INTO schedules (id, agent_id, creator, change_id, prompt, written_by, kind, recurrence, zone, anchor, catch_up, may,
               channel, platform_id, thread_id, state, created_at)
               VALUES ('sch_1', 'a', 'p', 'c', 'water', 'person', 'every', '1d', 'UTC', 1, 'skip', '[]', 'loopback', 'p', '', 'active', 1);",
        )
        .expect("a schedule");
        run(&db, &path, &key).expect("every version");
        let sql = "SELECT name || ' ' || context || ' ' || flows FROM schedules";
        let kept: String = db.query_row(sql, [], |row| row.get(0)).expect("kept");
        assert_eq!(kept, "sch_1 fresh []");
    }

    /// Rows of the three tables for what waits, each status once. The id ends with the status.
    const WAITED: &str = "
        INSERT INTO changes (id, kind, requester, principal, payload, before, facts, digest, labels, reason, generation, status,
          created_at, expires_at, decided_at, applied_at, remind_at)
          SELECT 'chg_' || value, 'settings', 'per_1', 'per_1', '{\"mode\":1}', '{}', '[]', value, 'A', 'why', 3, value, 10, 99,
            iif(value IN ('pending','expired','withdrawn'), NULL, 50), iif(value = 'applied', 60, NULL), iif(value = 'pending', 70, NULL)
          FROM json_each('[\"pending\",\"approved\",\"applied\",\"rejected\",\"expired\",\"withdrawn\",\"failed\",\"unknown\"]');
        INSERT INTO requests (id, session_id, agent_id, turn_id, call_id, output_item, root, principal, scope, tool, class, digest,
          arguments, labels, reasons, origins, generation, status, told, created_at, expires_at, asked_seq, decided_at, counts)
          SELECT 'req_' || value, 's', 'a', 't', 'c', 'o', value, 'per_1', 'read send', 'http_fetch', 'send', value, x'01', 'A', '[]', '[]',
            3, value, 'desk', 10, 99, 7, iif(value = 'pending', NULL, 50), 0
          FROM json_each('[\"pending\",\"approved\",\"running\",\"done\",\"queued\",\"failed\",\"rejected\",\"expired\",
            \"withdrawn\",\"unknown\"]');
        INSERT INTO questions (id, session_id, agent_id, turn_id, call_id, asked_for, root, principal, principal_kind, scope, digest, body,
          labels, status, created_at, remind_at, expires_at, ended_by, ended_at, answer)
          SELECT 'qst_' || value, 's', 'a', 't', 'c', 'm', 'm', 'per_1', 'person', '', value, x'02', 'A', rtrim(value, '2'), 10,
            iif(value = 'waiting', 70, NULL), 99, iif(value IN ('answered','cancelled2'), 'per_1', NULL),
            iif(value = 'waiting', NULL, 50), iif(value = 'answered', 'msg', NULL)
          FROM json_each('[\"waiting\",\"answered\",\"expired\",\"cancelled\",\"cancelled2\",\"unknown\"]');";

    #[test]
    fn what_waited_in_three_tables_keeps_its_status_in_one() {
        let (_directory, path, key, db) = empty();
        let before = usize::try_from(36 - FIRST).expect("small");
        run_these(&VERSIONS[..before], &db, &path, &key).expect("the version with three tables");
        db.execute_batch(&format!("PRAGMA foreign_keys = OFF; {WAITED}")).expect("rows");
        run_these(&VERSIONS[..=before], &db, &path, &key).expect("the version with one");
        let sql = "SELECT id || ' ' || status || ' ' || coalesce(ended_at, '-') || ' ' || coalesce(ends_at, '-') || ' '
                     || coalesce(remind_at, '-') FROM waiting ORDER BY ordinal";
        let mut statement = db.prepare(sql).expect("it is SQL");
        let rows: Vec<String> =
            statement.query_map([], |row| row.get(0)).expect("read").collect::<Result<_, _>>().expect("rows");
        let expected = "chg_pending pending - 99 70, chg_approved approved - - -, chg_applied done 60 - -, \
                        chg_rejected rejected 50 - -, chg_expired expired 99 - -, chg_withdrawn withdrawn 99 - -, \
                        chg_failed failed 50 - -, chg_unknown doubtful - - -, \
                        req_pending pending - 99 -, req_approved approved - 99 -, req_running running - - -, req_done done 50 - -, \
                        req_queued queued 50 - -, req_failed failed 50 - -, req_rejected rejected 50 - -, \
                        req_expired expired 50 - -, req_withdrawn withdrawn 50 - -, req_unknown unknown 50 - -, \
                        qst_waiting pending - 99 70, qst_answered done 50 - -, qst_expired expired 50 - -, \
                        qst_cancelled withdrawn 50 - -, qst_cancelled2 rejected 50 - -, qst_unknown doubtful - - -";
        assert_eq!(rows.join(", "), expected);
        let one = |sql: &str| db.query_row(sql, [], |row| row.get::<_, String>(0)).expect("read");
        let call = one("SELECT own || told || counts || hex(sealed) FROM waiting WHERE id = 'req_done'");
        let own = r#"{"class":"send","origins":[],"reasons":[],"scope":["read","send"]}desk001"#;
        assert_eq!(call, own);
        let change = one("SELECT own || generation FROM waiting WHERE id = 'chg_applied'");
        assert_eq!(change, r#"{"before":{},"facts":[],"payload":{"mode":1},"reason":"why"}3"#);
        let question = one("SELECT own || answer || decided_by || hex(sealed) FROM waiting WHERE id = 'qst_answered'");
        assert_eq!(question, r#"{"principal_kind":"person","scope":[]}msgper_102"#);
        assert!(!schema(&db).contains("CREATE TABLE requests"));
    }

    #[test]
    fn outbox_keeps_each_delivery_and_each_notification() {
        let (_directory, path, key, db) = empty();
        run_these(&VERSIONS[..(37 - FIRST) as usize], &db, &path, &key).expect("the versions before");
        db.execute_batch("PRAGMA foreign_keys = OFF;").expect("off");
        // The numbers of deliveries have gaps, and the last one here is in a block that the notifications complete.
        let delivery = "INSERT INTO deliveries (rowid, id, session_id, item, channel, platform_id, thread_id, state, attempts, created_at, \
                        over_network) VALUES (?1, 'd' || ?1, 's', 'i', 'shop', 'ann', '', ?2, 2, 5, ?3)";
        for (number, state) in ["intent", "sending", "received", "unknown", "dead", "dropped"].iter().enumerate() {
            db.execute(delivery, (7 * (number + 1), state, 1)).expect("a delivery");
        }
        db.execute(delivery, (252, "received", 0)).expect("an unread reply");
        let notification = "INSERT INTO notifications (id, person_id, about, subject, channel, sender, generation, state, attempts, \
                            is_obsolete, created_at) VALUES ('n-' || ?1, 'p', 'request_waits', 'r', ?2, ?2, 3, ?1, 4, ?1 = 'sending', 6)";
        for state in ["waiting", "sending", "delivered", "failed", "unknown", "withdrawn"] {
            db.execute(notification, (state, Some("desk"))).expect("a notification");
        }
        db.execute(notification, ("no_place", None::<&str>)).expect("a notification without a place");
        run(&db, &path, &key).expect("every version");
        let list = |sql: &str| -> Vec<String> {
            let mut statement = db.prepare(sql).expect("it is SQL");
            statement.query_map([], |row| row.get(0)).expect("read").collect::<Result<_, _>>().expect("rows")
        };
        assert_eq!(
            list("SELECT concat_ws(' ', rowid, id, state) FROM deliveries WHERE session_id = 's' ORDER BY rowid"),
            [
                "7 d7 intent",
                "14 d14 sending",
                "21 d21 received",
                "28 d28 unknown",
                "35 d35 dead",
                "42 d42 dropped",
                "252 d252 received"
            ]
        );
        assert_eq!(
            list(
                "SELECT concat_ws(' ', id, state, channel, platform_id, is_obsolete, attempts) FROM deliveries \
                  WHERE person_id = 'p' AND subject = 'r' AND over_network = 1 ORDER BY rowid"
            ),
            [
                "n-waiting intent desk desk 0 4",
                "n-sending sending desk desk 1 4",
                "n-delivered received desk desk 0 4",
                "n-failed dead desk desk 0 4",
                "n-unknown unknown desk desk 0 4",
                "n-withdrawn withdrawn desk desk 0 4",
                "n-no_place unplaced   0 4"
            ]
        );
        assert_eq!(list("SELECT id FROM deliveries WHERE unseen = 1"), ["d252"], "the index has the complete block");
    }

    #[test]
    fn directories_that_could_be_written_are_kept() {
        let (_directory, path, key, db) = empty();
        run_these(&VERSIONS[..(38 - FIRST) as usize], &db, &path, &key).expect("the versions before");
        db.execute_batch(
            "PRAGMA foreign_keys = OFF;
             INSERT INTO agents (id, name, model, persona, enabled_tools, mode, created_at) VALUES ('agt', 'b', 'm', '', '[]', 'enforce', 0);
             INSERT INTO agent_mounts (agent_id, target, source, read_only) VALUES ('agt', '/n', '/now', 0), ('agt', '/r', '/read', 1);
             INSERT INTO mcp_servers (name, made_at, described)
               VALUES ('files', 1, '{\"mounts\":[{\"source\":\"/served\",\"read_only\":false},{\"source\":\"/shown\",\"read_only\":true}]}');",
        )
        .expect("rows");
        let change = "INSERT INTO waiting (id, subject, status, principal, digest, labels, own, generation, created_at, expires_at) \
                      VALUES (?1, ?2, ?3, 'p', ?1, '[]', ?4, 0, 1, 2)";
        let mount = |source| format!("{{\"source\":\"{source}\",\"target\":\"/x\",\"read_only\":false}}");
        for (id, kind, status, own) in [
            ("chg_1", "mounts", "done", format!("{{\"payload\":[{}]}}", mount("/former"))),
            ("chg_2", "mounts", "rejected", format!("{{\"payload\":[{}]}}", mount("/rejected"))),
            ("chg_3", "mcp_register", "done", format!("{{\"payload\":{{\"mounts\":[{}]}}}}", mount("/removed"))),
            (
                "chg_4",
                "skills",
                "done",
                format!("{{\"payload\":{{\"parts\":[{{\"payload\":[{}]}}]}}}}", mount("/skill")),
            ),
        ] {
            db.execute(change, (id, kind, status, own)).expect("a change");
        }
        run(&db, &path, &key).expect("every version");
        let mut statement = db.prepare("SELECT path FROM written_directories ORDER BY path").expect("a statement");
        let kept = statement.query_map([], |row| row.get(0)).expect("rows").collect::<Result<Vec<String>, _>>();
        assert_eq!(kept.expect("paths"), ["/former", "/now", "/removed", "/served", "/skill"]);
    }

    #[test]
    fn failed_migration_leaves_the_file_unchanged_with_a_copy() {
        let (_directory, path, key, db) = fresh();
        let before = schema(&db);
        let broken = "CREATE TABLE half (x); INSERT INTO no_such_table VALUES (1);";
        let error =
            run_these(&[VERSIONS, &[ADDS_A_TABLE, broken]].concat(), &db, &path, &key).expect_err("it is broken");
        let (said, versions) = (error.to_string(), format!("from schema {NEWEST} to {}", NEWEST + 2));
        assert!(said.contains(&versions) && said.contains(&snapshot_of_newest()), "{said}");
        assert_eq!(schema(&db), before);
        assert_eq!(check(&db, &path, &key).expect("known"), NEWEST);
        assert_eq!(take_note_from(&db).expect("read"), None);
        let copy = open_to_look(&snapshot::all(&path)[0].path, &key).expect("it opens");
        assert_eq!(schema(&copy), before);
        run_later(ADDS_A_TABLE, &db, &path, &key).expect("the next start succeeds");
        assert_eq!(take_note_from(&db).expect("read").expect("noted").snapshot, snapshot_of_newest());
    }

    #[test]
    fn waiting_messages_are_marked_as_their_status_says() {
        let (_directory, _path, _key, db) = fresh();
        db.execute_batch(
            "PRAGMA foreign_keys = OFF;
             INSERT INTO messages (id, session_id, seq, kind, status, waits, trigger, sender, principal, channel, received_at, attempts)
               VALUES ('m', 's', 2, 'chat', 'queued', 1, 1, 'a', 'p', 'loopback', 1, 0);",
        )
        .expect("a message");
        let inconsistent = db.execute("UPDATE messages SET status = 'completed' WHERE id = 'm'", []);
        assert!(inconsistent.is_err(), "`waits` follows the status");
        db.execute("UPDATE messages SET status = 'completed', waits = NULL WHERE id = 'm'", []).expect("consistent");
    }
}
