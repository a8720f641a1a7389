//! Tests of key rotation, for the master key and for tokens: one of two keys opens all data after any crash, and the old key is refused.
//!
//! They use the real programs, with fail points for the kills. See `security::operators`.

use crate::support::client::{Raw, check_refused};
use crate::support::host_fixture::{Answer, Build, TestHost};
use crate::support::jail_fixture::host_users;
use crate::support::record;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// The fail points of a master key rotation, in order, and whether the record uses the new key at that point.
const MASTER_KEY_POINTS: [(&str, bool); 4] =
    [("key_written", false), ("key_copied", false), ("key_switched", true), ("key_adopted", true)];

/// The fail points of a token rotation, and whether the old token is invalid at that point.
const TOKEN_POINTS: [(&str, bool); 2] = [("token_prepared", false), ("token_rotated", true)];

/// Returns the fail points of both rotations, for the list in `chaos::crash`.
pub(crate) fn points() -> impl Iterator<Item = &'static str> {
    MASTER_KEY_POINTS.iter().chain(&TOKEN_POINTS).map(|(point, _)| *point)
}

/// Starts a conversation and stops the host.
fn start_a_conversation(host: &TestHost) {
    host.up();
    host.agent("a");
    host.say("a", "my name is Ada");
    host.down();
}

/// Starts the host, and checks that the conversation continues with its earlier messages and that the ledger is valid.
#[track_caller]
fn conversation_continues(host: &TestHost) {
    host.up();
    assert!(host.say("a", "what is my name?").contains("Ada"), "the conversation is lost");
    let session = host.session()["id"].as_str().expect("an id").to_owned();
    let transcript = host.ctl(&["--json", "session", "show", &session, "--transcript"]);
    let shown = format!("{}{}", transcript.stdout, transcript.stderr);
    assert!(transcript.code != 0 || shown.contains("my name is Ada"), "{shown}");
    host.ctl(&["audit", "verify"]).ok();
}

fn key_of(host: &TestHost) -> Vec<u8> {
    std::fs::read(host.home.join("master.key")).expect("a key")
}

fn put(host: &TestHost, name: &str, bytes: &[u8]) {
    // Overwrites the file, so that its owner and mode are kept.
    std::fs::write(host.home.join(name), bytes).expect("written");
}

fn rotate(host: &TestHost, more: &[&str]) -> Answer {
    host.ctl(&[&["key", "rotate", "master", "--yes"], more].concat())
}

#[test]
fn new_master_key_opens_all_data_and_the_old_key_is_refused() {
    for user in host_users() {
        let host = TestHost::with(user, Build::Plain, None);
        start_a_conversation(&host);
        let old = key_of(&host);
        let said = rotate(&host, &["--json"]).ok().json();
        let fresh = key_of(&host);
        assert_ne!(old, fresh);
        assert_eq!(said["todo"], serde_json::json!([]));
        let left: Vec<String> = std::fs::read_dir(&host.home)
            .expect("a home")
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.contains(".next") || name.contains(".new") || name.contains(".old"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
        conversation_continues(&host);
        let entries = host.entries("key.rotated");
        assert_eq!(entries.len(), 1, "{entries:?}");
        assert_eq!(entries[0]["type"], "META");
        assert_eq!(entries[0]["data"]["fingerprint"], said["fingerprint"]);
        assert_eq!(entries[0]["data"]["sessions"], 1);
        rotate(&host, &[]).refused("another host runs on");
        host.down();
        for (name, bytes) in record::files(&host.home) {
            for needle in record::Needle::key("the old key", &old) {
                assert!(!needle.is_in(&bytes), "{} is in {}", needle.name, name.display());
            }
        }
        // The old key is restored by mistake or from a backup.
        put(&host, "master.key", &old);
        for refused in [host.ctl(&["up", "--detach"]), host.ctl(&["audit", "verify"]), rotate(&host, &[])] {
            let refused = refused.refused("was replaced at");
            assert!(
                refused.stderr.contains(said["fingerprint"].as_str().expect("a fingerprint")),
                "{}",
                refused.stderr
            );
        }
        put(&host, "master.key", &[7; 32]);
        host.ctl(&["up", "--detach"]).refused("wrong master key or damaged file");
        rotate(&host, &[]).refused("wrong master key or damaged file");
        assert_eq!(key_of(&host), [7; 32], "a refused rotation changes nothing");
        put(&host, "master.key", &fresh);
        conversation_continues(&host);
        host.down();
        // Another rotation keeps a copy of the old key.
        let kept = host.home.join("kept.key");
        rotate(&host, &["--keep-old", kept.to_str().expect("UTF-8")]).ok();
        assert_eq!(std::fs::read(&kept).expect("kept"), fresh);
        rotate(&host, &["--keep-old", kept.to_str().expect("UTF-8")]).refused("exists already");
        conversation_continues(&host);
    }
}

#[test]
fn master_key_is_rotated_after_a_ledger_rotation() {
    let host = TestHost::new();
    start_a_conversation(&host);
    host.ctl(&["audit", "rotate"]).ok();
    let old = key_of(&host);
    rotate(&host, &[]).ok();
    assert_ne!(key_of(&host), old);
    conversation_continues(&host);
    host.ctl(&["audit", "rotate"]).ok();
    host.down();
    rotate(&host, &[]).ok();
    conversation_continues(&host);
}

#[test]
fn key_rotation_killed_at_any_step_leaves_one_working_key() {
    for user in host_users() {
        let mut host = TestHost::with(user, Build::Failpoints, None);
        start_a_conversation(&host);
        for (point, switched) in MASTER_KEY_POINTS {
            let before = key_of(&host);
            host.set_env("IRONCLAW_FAILPOINT", Some(point));
            assert_ne!(rotate(&host, &[]).code, 0, "{user:?}: the host dies at {point}");
            host.set_env("IRONCLAW_FAILPOINT", None);
            // A reader opens the home before the next start completes the rotation.
            host.ctl(&["audit", "verify"]).ok();
            conversation_continues(&host);
            host.down();
            assert_eq!(key_of(&host) != before, switched, "{user:?}: killed at {point}");
            assert!(
                !host.home.join("master.key.next").exists() && !host.home.join("state.db.next").exists(),
                "{point}"
            );
        }
        rotate(&host, &[]).ok();
        conversation_continues(&host);
        assert_eq!(host.entries("key.rotated").len(), 3, "{user:?}: the late interruptions and the last rotation");
    }
}

#[test]
fn external_master_key_is_replaced_by_the_operator() {
    let mut host = TestHost::own(Build::Plain);
    start_a_conversation(&host);
    let directory = host.home.parent().expect("a directory").join("keys");
    std::fs::create_dir(&directory).expect("made");
    let (named, next) = (directory.join("named"), directory.join("next"));
    let path = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    std::fs::rename(host.home.join("master.key"), &named).expect("moved");
    host.configure(&format!("[keys]\nmaster_key_file = {:?}\n", path(&named)));
    host.up();
    host.down();
    rotate(&host, &[]).refused("only you can replace");
    rotate(&host, &["--to", &path(&named)]).refused("exists already");
    let roundabout = format!("{}/../keys/next", path(&directory));
    for keep in [path(&next), roundabout] {
        rotate(&host, &["--to", &path(&next), "--keep-old", &keep]).refused("cannot take the fresh key and the copy");
    }
    // A key file may have any name, even the name that a temporary file would have.
    let foreign = directory.join("next.new");
    std::fs::rename(&named, &foreign).expect("moved");
    host.configure(&format!("[keys]\nmaster_key_file = {:?}\n", path(&foreign)));
    let before = std::fs::read(&foreign).expect("a key");
    let aside = directory.join("aside");
    rotate(&host, &["--to", &path(&named), "--keep-old", &path(&directory.join("next.old"))]).ok();
    assert_eq!(std::fs::read(&foreign).expect("the key file remains"), before);
    std::fs::rename(&foreign, &aside).expect("moved");
    host.configure(&format!("[keys]\nmaster_key_file = {:?}\n", path(&named)));
    let said = rotate(&host, &["--to", &path(&next)]).ok().stdout;
    assert!(said.contains(&format!("mv {} {}", path(&next), path(&named))), "{said}");
    host.ctl(&["up", "--detach"]).refused("was replaced at");
    std::fs::rename(&next, &named).expect("as the command says");
    conversation_continues(&host);
    host.down();
    // The same key is now a credential of systemd.
    let credentials = directory.join("credentials");
    std::fs::create_dir(&credentials).expect("made");
    std::fs::rename(&named, credentials.join("ironclaw-master-key")).expect("moved");
    host.configure("");
    host.set_env("CREDENTIALS_DIRECTORY", Some(&path(&credentials)));
    rotate(&host, &[]).refused("the systemd credential ironclaw-master-key, which only you can replace");
    let said = rotate(&host, &["--to", &path(&next)]).ok().stdout;
    assert!(said.contains(&format!("LoadCredential=ironclaw-master-key:{}", path(&next))), "{said}");
    host.ctl(&["up", "--detach"]).refused("was replaced at");
    std::fs::rename(&next, credentials.join("ironclaw-master-key")).expect("as the command says");
    conversation_continues(&host);
    host.down();
    host.set_env("CREDENTIALS_DIRECTORY", None);
    assert!(!host.home.join("master.key").exists(), "the host made no key in the home");
}

#[test]
fn every_blob_is_rewrapped_or_under_a_rewrapped_key() {
    let host = TestHost::new();
    start_a_conversation(&host);
    let db = record::open(&host.home);
    let sql = "SELECT m.name || '.' || c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c \
               WHERE m.type = 'table' AND m.name NOT LIKE 'memories_text_%' AND c.type = 'BLOB'";
    let mut statement = db.prepare(sql).expect("a statement");
    let found: BTreeSet<String> = statement.query_map([], |row| row.get(0)).expect("rows").flatten().collect();
    // From `items.body` on, the content key of a session encrypts them. The full-text tables, which hold words, have the key of the record.
    let known = [
        "sessions.queue_key",
        "sessions.content_key",
        "ledger_keys.wrapped",
        "secrets.wrapped",
        "channels.wrapped",
        "mcp_logins.wrapped",
        "items.body",
        "items.reasoning",
        "items.returned",
        "endpoint_words.sealed",
        "messages.images",
        "waiting.sealed",
        "sent_files.content",
    ];
    let unknown: Vec<_> = found.iter().filter(|column| !known.contains(&column.as_str())).collect();
    assert!(unknown.is_empty(), "columns that key rotation may have to cover: {unknown:?}");
}

#[test]
fn token_rotation_updates_its_file_and_ends_the_old_token() {
    let host = TestHost::own(Build::Plain).started();
    let old = Raw::of(&host);
    let said = host.ctl(&["key", "rotate", "token"]).ok();
    let fresh = Raw::of(&host);
    assert_ne!(old.token, fresh.token);
    assert!(!said.stdout.contains("ict_") && !said.stderr.contains("ict_"), "{}", said.stdout);
    assert_eq!(fresh.get("/v1/status").0, 200);
    check_refused(&old.get("/v1/status"), 401, "token_revoked");
    host.ctl(&["person", "add", "Bob"]).ok();
    let made = host.ctl(&["--json", "token", "add", "--person", "Bob", "--expires", "30d"]).ok().json();
    let (id, text) = (made["token"]["id"].as_str().expect("an id"), made["text"].as_str().expect("a token"));
    let bob = old.with_token(text);
    assert_eq!(bob.get("/v1/agents").0, 200);
    let rotated: Value = host.ctl(&["--json", "token", "rotate", id]).ok().json();
    assert_eq!(rotated["token"]["expires_at"], made["token"]["expires_at"], "its expiry is kept");
    assert_eq!(bob.get("/v1/agents").1["error"]["code"], "token_revoked");
    assert_eq!(bob.with_token(rotated["text"].as_str().expect("a token")).get("/v1/agents").0, 200);
    host.ctl(&["token", "rotate", id]).refused("is revoked already");
    host.restart();
    host.ctl(&["status"]).ok();
    assert_eq!(host.entries("token.rotated").len(), 2);
}

#[test]
fn kill_during_a_token_rotation_does_not_lock_the_owner_out() {
    for (point, ended) in TOKEN_POINTS {
        let mut host = TestHost::own(Build::Failpoints);
        host.set_env("IRONCLAW_FAILPOINT", Some(point));
        host.up();
        let old = Raw::of(&host).token;
        assert_ne!(host.ctl(&["key", "rotate", "token"]).code, 0, "the host dies at {point}");
        host.kill_host();
        host.set_env("IRONCLAW_FAILPOINT", None);
        host.up();
        host.ctl(&["status"]).ok();
        assert_eq!(Raw::of(&host).token != old, ended, "{point}");
        assert!(!host.home.join("owner.token.next").exists(), "{point}");
    }
}
