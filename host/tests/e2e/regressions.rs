//! Tests for defects by which similar systems lost, doubled or blocked messages.
//!
//! The tables in `docs/regressions.md` name a test for each defect, and two tests here check that these tests exist. `chaos::crash` and
//! `chaos::kill` cover the death of the host. See `security::secrets`.

use crate::security::escape::attack::{Attacked, output};
use crate::support::host_fixture::{Build, TestHost, kill, wait_for};
use crate::support::jail_fixture::host_users;
use crate::support::processes::Process;
use crate::support::record;
use ironclaw_contract::seam::crypt::SessionKey;
use ironclaw_contract::seam::inbound::InboundReader;
use ironclaw_contract::seam::outbound::OutboundReader;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::process::{Child, Stdio};

/// Lower bound on the table rows about campaigns. It detects a changed heading, which would hide the rows from the test.
const CAMPAIGN_ROWS_MIN: usize = 120;

/// Returns whether a source file has a test of this name.
fn has_test(source: &str, name: &str) -> bool {
    let lines: Vec<&str> = source.lines().map(str::trim_start).collect();
    let head = [format!("fn {name}("), format!("async fn {name}(")];
    let is_head = |line: &str| head.iter().any(|head| line.starts_with(head));
    let is_attribute = |line: &&&str| line.starts_with("#[") || line.starts_with("//");
    let is_test = |line: &&str| *line == "#[test]" || line.starts_with("#[tokio::test");
    (0..lines.len())
        .filter(|at| is_head(lines[*at]))
        .any(|at| lines[..at].iter().rev().take_while(is_attribute).any(is_test))
}

#[test]
fn function_without_a_test_attribute_is_not_a_test() {
    let source = "#[test]\nfn one() {}\n\nfn helper() {}\n    #[tokio::test]\n    // why\n    #[ignore]\n    async fn two() {}\n";
    for (name, is_test) in [("one", true), ("two", true), ("helper", false), ("on", false), ("three", false)] {
        assert_eq!(has_test(source, name), is_test, "{name}");
    }
}

#[test]
fn test_of_each_known_bug_exists() {
    let table = include_str!("../../../docs/regressions.md");
    let rows: Vec<(&str, &str)> = table
        .lines()
        .filter_map(|line| line.strip_prefix("| F")?.split_once(" | "))
        .filter_map(|(number, rest)| Some((number, rest.rsplit('`').nth(1)?)))
        .collect();
    assert!(rows.len() >= 12, "{rows:?}");
    for (number, test) in rows {
        let (module, name) = test.rsplit_once("::").expect("a path such as e2e::module::test");
        let file = format!("{}.rs", module.replace("::", "/"));
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(file);
        let source = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(has_test(&source, name), "bug {number}: no test {test}");
    }
}

#[test]
fn test_of_each_campaign_defect_exists() {
    let guide = include_str!("../../../docs/regressions.md");
    let section = guide.split("## Defects that campaigns found").nth(1).expect("the document has the section");
    let section = section.split("\n## ").next().expect("split returns at least one part");
    let rows: Vec<&str> =
        section.lines().filter(|line| line.starts_with("| ") && *line != "| defect | test |").collect();
    assert!(rows.len() >= CAMPAIGN_ROWS_MIN, "found only {} rows: check the heading", rows.len());
    for row in rows {
        let test = row.rsplit('`').nth(1).unwrap_or_else(|| panic!("the row names no test: {row}"));
        let (file, name) = test.split_once("::").unwrap_or_else(|| panic!("expected `file.rs::test`: {row}"));
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file);
        let source = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        assert!(has_test(&source, name), "no test {test}");
    }
}

#[test]
fn row_has_no_place_for_an_address() {
    let attacked = Attacked::new("");
    let elsewhere = "INSERT INTO messages_out (seq, turn, content, channel_type, platform_id) \
                     VALUES ({next}, '{turn}', '{\"reply\":\"{output}\"}', 'loopback', 'owner');";
    let played = attacked.play("a", "hello", &json!([output(), { "sql": elsewhere }]));
    let errors = json!(played.errors).to_string();
    assert!(errors.contains("no column named channel_type"), "{errors}");
    attacked.host.down();
    let astray = "SELECT count(*) FROM deliveries d JOIN sessions s ON s.id = d.session_id \
                  WHERE d.channel <> s.channel OR d.platform_id <> s.platform_id OR d.thread_id <> s.thread_id";
    assert_eq!(record::count(&attacked.state(), astray), 0);
}

#[test]
fn old_messages_are_not_read_again_for_a_new_one() {
    let host = TestHost::new().started_with("a");
    for number in 0..24 {
        host.say("a", &format!("echo word-{number}"));
    }
    let session = host.session();
    let id = session["id"].as_str().expect("an id");
    host.ctl(&["session", "stop", id]).ok();
    let [key, _] = record::session_keys(&host.home, id.parse().expect("an id"));
    let key = || SessionKey::new(key.clone().try_into().expect("32 bytes"));
    let place = host.session_directory();
    let inbound = InboundReader::open(&place.join("in/inbound.db"), &key()).expect("it opens");
    let rows = inbound.messages().expect("readable");
    assert!(rows.len() <= 2, "the queue has the rows of one turn and no history: {} rows", rows.len());
    let mut outbound = OutboundReader::open(&place.join("out/outbound.db"), &key()).expect("it opens");
    let rows = outbound.look(0).expect("readable").rows.len();
    assert!(rows <= 2, "accepted rows are deleted: {rows} rows");
}

#[test]
fn reply_in_a_queue_of_the_version_before_is_made_again() {
    let mut host = TestHost::own(Build::Failpoints).started_with("a");
    host.say("a", "hello");
    host.down();
    host.set_env("IRONCLAW_FAILPOINT", Some("accept"));
    host.up();
    assert_ne!(host.ctl(&["chat", "a", "echo tulips"]).code, 0, "the host dies before it takes the reply");
    wait_for("the end of the host", || host.pid().is_none());
    host.set_env("IRONCLAW_FAILPOINT", None);
    let place = host.session_directory();
    let id = place.file_name().and_then(|id| id.to_str()).expect("an id").to_owned();
    let [key, _] = record::session_keys(&host.home, id.parse().expect("an id"));
    let key = SessionKey::new(key.try_into().expect("32 bytes")).to_hex();
    let queue = rusqlite::Connection::open(place.join("out/outbound.db")).expect("it opens");
    let before = include_str!("../../../contract/tests/it/outbound_before.sql");
    let statements = format!(
        "PRAGMA key = \"x'{}'\"; CREATE TEMP TABLE kept AS SELECT * FROM messages_out ORDER BY seq DESC LIMIT 1; \
         DROP TABLE messages_out; DROP TABLE processing_ack; {before} \
         INSERT INTO messages_out (id, seq, timestamp, kind, content, turn) \
         SELECT 'msg_01kagq8t000000000000000001', seq, 0, 'chat', content, turn FROM kept;",
        key.as_str()
    );
    queue.execute_batch(&statements).expect("the queue of the version before");
    drop(queue);
    host.up();
    wait_for("the answer", || host.entries("delivery.received").len() == 2);
    let opened = host.entries("turn.opened");
    assert_eq!(opened.len(), 3, "the turn of the lost row is tried again");
    assert_eq!(opened[1]["data"]["message"], opened[2]["data"]["message"], "{opened:?}");
    assert!(host.say("a", "echo roses").contains("roses"), "{}", host.status());
}

#[test]
fn ids_after_a_restart_do_not_collide_with_earlier_ones() {
    let host = TestHost::new().started_with("a");
    for start in 0..4 {
        host.say("a", "write a.txt: x");
        host.say("a", &format!("change persona to number {start}"));
        if start % 2 == 0 {
            host.kill_host()
        } else {
            host.down()
        }
        host.up();
    }
    let made = [("message.recorded", "message"), ("turn.opened", "turn"), ("call.reported", "call")];
    let made = made.into_iter().chain([
        ("delivery.intended", "delivery"),
        ("host.started", "boot"),
        ("change.proposed", "change"),
    ]);
    for (what, id) in made {
        let entries = host.entries(what);
        let ids: HashSet<&str> = entries.iter().filter_map(|entry| entry["data"][id].as_str()).collect();
        assert!(ids.len() >= 4 && ids.len() == entries.len(), "{what}: {entries:?}");
    }
}

#[test]
fn refused_row_does_not_block_later_rows() {
    let host = TestHost::new().started_with("a");
    for number in 0..3 {
        host.say("a", r#"change enabled_tools ["no_such_tool"] because I say so"#);
        host.say("a", "say nothing");
        assert!(host.say("a", &format!("echo still-here-{number}")).contains(&format!("still-here-{number}")));
    }
    assert_eq!(host.entries("change.refused").len(), 3);
    assert_eq!(host.entries("delivery.received").len(), 9);
}

#[test]
fn restart_repeats_no_delivery_and_no_approval_request() {
    let host = TestHost::new().started_with("a");
    host.say("a", "hello");
    host.say("a", "change persona to pirate");
    host.say("a", "loop forever");
    let own_entries = |host: &TestHost| -> Vec<Value> {
        let is_own = |entry: &Value| {
            // A start may wake the conversation in use.
            entry["type"] != "BOOT" && entry["type"] != "META" && entry["data"]["what"] != "session.launching"
        };
        host.ledger().into_iter().filter(is_own).collect()
    };
    let before = own_entries(&host);
    for start in 0..3 {
        if start % 2 == 0 {
            host.down()
        } else {
            host.kill_host()
        }
        host.up();
    }
    // An answer proves that the session has read its whole queue.
    host.say("a", "echo last");
    let after = own_entries(&host);
    assert_eq!(after[..before.len()], before[..]);
    let new: HashSet<&str> = after[before.len()..].iter().filter_map(|entry| entry["data"]["what"].as_str()).collect();
    let round = [
        "message.recorded",
        "turn.opened",
        "model.asked",
        "output.sealed",
        "delivery.intended",
        "turn.closed",
        "delivery.received",
    ];
    assert_eq!(new, HashSet::from(round));
    assert_eq!(after.len(), before.len() + round.len());
}

#[test]
fn times_in_the_record_are_numbers() {
    let host = TestHost::new();
    let db = record::open(&host.home);
    let sql = "SELECT m.name || '.' || c.name FROM sqlite_master m, pragma_table_info(m.name) c WHERE m.type = 'table' \
               AND (c.name LIKE '%\\_at' ESCAPE '\\' OR c.name IN ('at','deadline')) AND c.type <> 'INTEGER'";
    let mut statement = db.prepare(sql).expect("a statement");
    let texts: Vec<String> = statement.query_map([], |row| row.get(0)).expect("rows").flatten().collect();
    assert_eq!(texts, Vec::<String>::new());
}

#[test]
fn sandbox_outlives_the_request_that_launched_it() {
    let host = TestHost::new().started_with("a");
    host.say("a", "hello");
    let first = Process::of(host.session()["pid"].as_i64().expect("awake") as i32).expect("it runs");
    host.say("a", "hello");
    assert_eq!(host.session()["pid"].as_i64(), Some(first.pid.into()));
    assert!(first.is_alive());
}

#[test]
fn dead_sandbox_is_noticed_at_once_and_replaced() {
    let host = TestHost::new().started_with("a");
    host.say("a", "my name is Ada");
    let pid = host.session()["pid"].as_i64().expect("awake") as i32;
    kill(pid);
    wait_for("status to say so", || host.session()["state"] == "asleep");
    assert_eq!(host.say("a", "what is my name?"), "Your name is Ada.");
    assert_ne!(host.session()["pid"].as_i64(), Some(pid.into()));
}

#[test]
fn messages_during_a_turn_survive_the_death_of_its_sandbox() {
    for user in host_users() {
        let host = TestHost::with(user, Build::Plain, None).started_with("a");
        host.say("a", "hello");
        let sandbox = host.session()["pid"].as_i64().expect("awake") as i32;
        // The sandbox is suspended while the messages arrive, and then killed.
        let pid = nix::unistd::Pid::from_raw(sandbox);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGSTOP).expect("stopped");
        let chat = |text: &str| -> Child {
            let mut command = host.command("ironctl");
            command.arg("--home").arg(&host.home).args(["chat", "a", text]);
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
            command.spawn().expect("ironctl starts")
        };
        let mut chats = vec![chat("echo one")];
        wait_for("the turn to open", || host.entries("turn.opened").len() == 2);
        for number in 3..6 {
            chats.push(chat("echo more"));
            wait_for("the message to be recorded", || host.entries("message.recorded").len() == number);
        }
        kill(sandbox);
        for mut chat in chats {
            assert!(chat.wait().expect("the command ends").success(), "{user:?}: each message is answered");
        }
        let db = record::open(&host.home);
        assert_eq!(record::count(&db, "SELECT count(*) FROM messages WHERE status = 'delivered'"), 5, "{user:?}");
        let twice = "SELECT count(*) FROM (SELECT turn_id FROM deliveries WHERE session_id IS NOT NULL GROUP BY turn_id HAVING count(*) > 1)";
        assert_eq!(record::count(&db, twice), 0, "{user:?}");
    }
}

#[test]
fn message_that_kills_every_sandbox_ends_with_one_notice() {
    let host = TestHost::new().configured("[session]\nbackoff_ms = 1\n").started_with("a");
    host.say("a", "hello");
    let mut child = host.command("ironctl");
    child.arg("--home").arg(&host.home).args(["--json", "chat", "a", "loop forever"]);
    let mut child = child.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("ironctl starts");
    let mut killed = HashSet::new();
    wait_for("an answer", || {
        // Kills each sandbox during its open turn.
        let session = host.session();
        if let Some(pid) = session["pid"].as_i64().filter(|_| session["waiting"] != 0)
            && killed.insert(pid)
        {
            kill(pid as i32);
        }
        child.try_wait().expect("looked").is_some()
    });
    let output = child.wait_with_output().expect("it ended");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("an answer");
    assert_eq!(answer["notice"], true, "{answer}");
    assert_eq!(host.entries("delivery.received").len(), 2, "one answer, one notice");
    assert!(host.say("a", "echo again").contains("again"));
}

#[test]
fn agent_cannot_write_to_its_own_inbound_queue() {
    for user in host_users() {
        let host = TestHost::with(user, Build::Plain, None).started_with("a");
        host.say("a", "hello");
        let session = host.session();
        let mounts: Vec<&str> =
            session["jail"]["mounts"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        assert!(mounts.contains(&"/in ro") && mounts.contains(&"/run ro"), "{user:?}: {mounts:?}");
        let pid = session["pid"].as_i64().expect("awake");
        // `/in` in the jail is the directory of the host, and no other mount shows it.
        let inside = |path: &str| std::path::PathBuf::from(format!("/proc/{pid}/root{path}"));
        let names = |path: &str| -> HashSet<String> {
            let found = std::fs::read_dir(inside(path)).expect("readable").flatten();
            let names = found.map(|entry| entry.file_name().to_string_lossy().into_owned());
            // SQLite keeps a journal beside the file.
            names.filter(|name| name != "inbound.db-journal").collect()
        };
        if nix::unistd::geteuid().is_root() {
            assert_eq!(names("/in"), HashSet::from(["inbound.db".to_owned()]), "{user:?}");
            assert!(!names("/out").contains("inbound.db") && !names("/workspace").contains("inbound.db"), "{user:?}");
            let error = std::fs::write(inside("/in/forged"), "x").expect_err("a read-only mount");
            assert_eq!(error.raw_os_error(), Some(libc::EROFS), "{user:?}: {error}");
        }
    }
}

#[test]
fn second_reader_death_at_one_row_quarantines_the_session() {
    let host = TestHost::new().started_with("a");
    let kill_reader = || {
        let reader = host.session()["reader"]["pid"].as_i64().expect("a reader") as i32;
        kill(reader);
        reader
    };
    for number in 0..3 {
        assert!(host.say("a", &format!("echo word-{number}")).contains(&format!("word-{number}")));
        let dead = kill_reader();
        let replaced = || host.session()["reader"]["pid"].as_i64().is_some_and(|pid| pid != i64::from(dead));
        wait_for("another reader", replaced);
    }
    kill_reader();
    wait_for("the session to be quarantined", || host.session()["state"] == "quarantined");
    let told = host.entries("notification.unplaced");
    let told: Vec<_> = told.iter().map(|entry| (&entry["data"]["about"], &entry["data"]["subject"])).collect();
    assert_eq!(told, [(&json!("session_incident"), &host.session()["id"])]);
    assert!(host.session()["reason"].as_str().is_some_and(|reason| reason.contains("died twice")));
    host.ctl(&["session", "release", host.session()["id"].as_str().expect("an id")]).ok();
    assert!(host.say("a", "echo again").contains("again"));
}
