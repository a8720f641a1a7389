//! Query plans of the hot path: the statements of a host that works, and their plans in its own record.
//!
//! A build with fail points lists the statements that it prepares, so a new statement needs no line here. See `ironclaw_state::failpoint`.

use crate::e2e::requests::{approve, post, waiting};
use crate::support::client::Raw;
use crate::support::host_fixture::{TestHost, wait_for};
use crate::support::record;
use crate::support::site::granted;
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet};

/// The time between two runs of the schedule.
const HOUR_MS: i64 = 3_600_000;

/// Tables with a few rows that people make one by one. A statement may read all of them.
const SMALL: &[&str] = &[
    "agent_packages",
    "agent_skills",
    "agents",
    "allowances",
    "identities",
    "ledger_keys",
    "mcp_logins",
    "mcp_servers",
    "model_observations",
    "models",
    "notification_places",
    "people",
    "skill_packages",
    "tokens",
];

/// Parts of statements that may sort, and the reason.
const MAY_SORT: &[(&str, &str)] = &[
    ("turn_id = ?1", "the rows of one turn are few"),
    ("subject = ?1", "the rows about one subject are few"),
    ("agent_id = ?1", "the roles of one agent are few"),
    ("person_id = ?1 AND agent_id = ?2", "the allowances of one person are few"),
    ("waits = 1", "the messages that wait are few"),
    ("state IN ('intent','sending')", "the deliveries that wait are few"),
    ("state IN ('scheduled','started')", "the open occurrences of one schedule are few"),
    ("status = 'pending'", "those that wait for people are few"),
    ("status IN ('pending','doubtful'", "those that wait for people are few"),
    ("status = ? ORDER BY expires_at", "those that wait for people are few"),
    ("status = 'approved'", "those that are underway are few"),
    ("deliveries.seen_at IS NULL", "the replies that a person did not read are few"),
    ("FROM sessions WHERE state <> 'removed' ORDER BY created_at, id", "the status lists all sessions"),
    ("json_group_array(key)", "the sweep of old rows runs once an hour"),
    ("last_active_at >= ?1", "a start looks once for the conversations in use"),
];

/// Parts of statements that may scan, and the reason.
const MAY_SCAN: &[(&str, &str)] = &[
    ("FROM ledger ORDER BY seq", "it reads the first or the last row"),
    ("json_group_array(key)", "the sweep of old rows runs once an hour"),
    ("last_active_at >= ?1", "a start looks once for the conversations in use"),
    ("open_turn IS NOT NULL", "a start, an emergency stop and the state of the host look at all sessions"),
];

/// Runs a host through a schedule, rounds, wakes and an approval. Returns it stopped, with the statements that it prepared.
fn worked() -> (TestHost, BTreeSet<String>) {
    let (site, mut host) = granted(TestHost::with_clock(), &["POST"], &["/notes"]);
    host.ctl(&["schedule", "add", "a", "hello", "--yes", "--every", "1h"]).ok();
    host.say("a", "hello");
    host.down();
    let file = host.home.with_file_name("statements");
    std::fs::write(&file, "").expect("written");
    host.set_env("IRONCLAW_STATEMENTS_FILE", file.to_str());
    host.shift_clock(HOUR_MS);
    host.up();
    wait_for("the run of the schedule", || host.entries("schedule.done").len() == 1);
    for _ in 0..2 {
        host.say("a", "hello");
        host.say("a", "echo again");
        stop_sessions(&host);
    }
    let raw = Raw::of(&host);
    post(&raw, "tulips", &site.url("/notes"));
    assert_eq!(approve(&raw, &waiting(&raw)).0, 200);
    wait_for("the call", || host.entries("call.ran").len() == 1);
    host.down();
    let text = std::fs::read_to_string(file).expect("read");
    (host, text.split_terminator('\0').map(str::to_owned).collect())
}

fn stop_sessions(host: &TestHost) {
    for session in host.status()["sessions"].as_array().expect("a list") {
        host.ctl(&["session", "stop", session["id"].as_str().expect("an id")]).ok();
    }
}

/// The steps that read a whole table or sort rows, by statement.
type Findings = BTreeMap<String, Vec<String>>;

fn findings(db: &Connection, statements: &BTreeSet<String>) -> Findings {
    let partial = partial_indexes(db);
    let is_scan = |step: &String| {
        let words: Vec<&str> = step.split(' ').collect();
        match words[..] {
            ["SCAN", "CONSTANT", "ROW"] | ["SCAN", _, "VIRTUAL", ..] => false,
            // The steps of the inner query say what it reads.
            ["SCAN", of, ..] if of.starts_with('(') || SMALL.contains(&of) => false,
            ["SCAN", ..] => index_of(step).is_none_or(|index| !partial.contains(&index)),
            _ => false,
        }
    };
    let mut found = Findings::new();
    for sql in statements {
        let may = |list: &[(&str, &str)]| list.iter().any(|(part, _)| sql.contains(part));
        let mut steps = plan(db, sql);
        // A sort of a small table.
        let is_small = steps.iter().any(|step| step.starts_with("SCAN ") && !is_scan(step));
        let (may_sort, may_scan) = (is_small || may(MAY_SORT), may(MAY_SCAN));
        steps.retain(|step| (!may_scan && is_scan(step)) || (!may_sort && step.starts_with("USE TEMP B-TREE")));
        if !steps.is_empty() {
            found.insert(sql.clone(), steps);
        }
    }
    found
}
fn plan(db: &Connection, sql: &str) -> Vec<String> {
    let mut statement = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect(sql);
    let mut rows = statement.raw_query();
    let mut steps = Vec::new();
    while let Some(row) = rows.next().expect(sql) {
        steps.push(row.get("detail").expect("a step"));
    }
    steps
}

/// Returns the names of the indexes that hold only some rows. A scan of such an index reads no other row.
fn partial_indexes(db: &Connection) -> BTreeSet<String> {
    names(db, "SELECT name FROM sqlite_schema WHERE type = 'index' AND sql LIKE '% WHERE %'")
}

fn names(db: &Connection, sql: &str) -> BTreeSet<String> {
    let mut statement = db.prepare(sql).expect(sql);
    let names = statement.query_map([], |row| row.get(0)).expect("rows");
    names.collect::<Result<_, _>>().expect("names")
}
fn copy_of_schema(db: &Connection) -> Connection {
    let copy = Connection::open_in_memory().expect("opened");
    // Tables before their indexes and triggers. A virtual table makes its shadow tables itself.
    let sql = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%' AND name NOT IN \
               (SELECT name FROM pragma_table_list WHERE type = 'shadow') ORDER BY sqlite_schema.type <> 'table'";
    let mut statement = db.prepare(sql).expect(sql);
    let scripts = statement.query_map([], |row| row.get::<_, String>(0)).expect("rows");
    scripts.for_each(|script| copy.execute_batch(&script.expect("text")).expect("made"));
    copy
}

#[test]
fn hot_path_reads_by_indexes_only() {
    let (host, statements) = worked();
    let db = record::open(&host.home);
    assert!(statements.len() > 100, "{statements:?}");
    let found = findings(&db, &statements);
    assert!(found.is_empty(), "a statement reads a whole table or sorts: give it an index, or a line here: {found:#?}");
    // Controls: most of the indexes are missed if they are dropped. Another index serves for the others.
    let steps = statements.iter().flat_map(|sql| plan(&db, sql));
    let used: BTreeSet<String> = steps.filter_map(|step| index_of(&step)).collect();
    let droppable: Vec<&String> = used.iter().filter(|index| !index.starts_with("sqlite_")).collect();
    let is_noticed = |index: &&&String| {
        let copy = copy_of_schema(&db);
        copy.execute_batch(&format!("DROP INDEX {index}")).expect("dropped");
        !findings(&copy, &statements).is_empty()
    };
    let noticed = droppable.iter().filter(is_noticed).count();
    assert!(2 * noticed > droppable.len(), "{noticed} of {droppable:?}");
    assert!(findings(&copy_of_schema(&db), &statements).is_empty(), "the copy has the same plans");
}
fn index_of(step: &str) -> Option<String> {
    let (_, index) = step.split_once(" INDEX ")?;
    index.split(' ').next().map(str::to_owned).filter(|_| !step.contains("VIRTUAL TABLE"))
}
