//! Tests of key rotation, for the master key and for tokens: one of two keys opens all data after any crash, and the old key is refused.
//!
//! They use the real programs, with fail points for the kills. See `security::operators`.

use crate::support::client::{self, Raw};
use crate::support::host_fixture::{Answer, Build, World};
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
fn start_a_conversation(world: &World) {
    world.up();
    world.agent("a");
    world.say("a", "my name is Ada");
    world.down();
}

/// Checks that the conversation continues with its earlier messages and that the ledger is valid.
#[track_caller]
fn conversation_continues(world: &World) {
    assert!(world.say("a", "what is my name?").contains("Ada"), "the conversation is lost");
    let session = world.session()["id"].as_str().expect("an id").to_owned();
    let transcript = world.ctl(&["--json", "session", "show", &session, "--transcript"]);
    let shown = format!("{}{}", transcript.stdout, transcript.stderr);
    assert!(transcript.code != 0 || shown.contains("my name is Ada"), "{shown}");
    world.ctl(&["audit", "verify"]).ok();
}

fn key_of(world: &World) -> Vec<u8> {
    std::fs::read(world.home.join("master.key")).expect("a key")
}

fn put(world: &World, name: &str, bytes: &[u8]) {
    // Overwrites the file, so that its owner and mode are kept.
    std::fs::write(world.home.join(name), bytes).expect("written");
}

fn rotate(world: &World, more: &[&str]) -> Answer {
    world.ctl(&[&["key", "rotate", "master", "--yes"], more].concat())
}

#[test]
fn new_master_key_opens_all_data_and_the_old_key_is_refused() {
    for who in host_users() {
        let world = World::with(who, Build::Plain, None);
        start_a_conversation(&world);
        let old = key_of(&world);
        let said = rotate(&world, &["--json"]).ok().json();
        let fresh = key_of(&world);
        assert_ne!(old, fresh);
        assert_eq!(said["todo"], serde_json::json!([]));
        let left: Vec<String> = std::fs::read_dir(&world.home)
            .expect("a home")
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .filter(|name| name.contains(".next") || name.contains(".new") || name.contains(".old"))
            .collect();
        assert!(left.is_empty(), "{left:?}");
        world.up();
        conversation_continues(&world);
        let entries = world.entries("key.rotated");
        assert_eq!(entries.len(), 1, "{entries:?}");
        assert_eq!(entries[0]["type"], "META");
        assert_eq!(entries[0]["data"]["fingerprint"], said["fingerprint"]);
        assert_eq!(entries[0]["data"]["sessions"], 1);
        rotate(&world, &[]).refused("another host runs on");
        world.down();
        for (name, bytes) in record::files(&world.home) {
            for needle in record::Needle::key("the old key", &old) {
                assert!(!needle.is_in(&bytes), "{} is in {}", needle.name, name.display());
            }
        }
        // The old key is restored by mistake or from a backup.
        put(&world, "master.key", &old);
        for refused in [world.ctl(&["up", "--detach"]), world.ctl(&["audit", "verify"]), rotate(&world, &[])] {
            let refused = refused.refused("was replaced at");
            assert!(
                refused.stderr.contains(said["fingerprint"].as_str().expect("a fingerprint")),
                "{}",
                refused.stderr
            );
        }
        put(&world, "master.key", &[7; 32]);
        world.ctl(&["up", "--detach"]).refused("wrong master key or damaged file");
        rotate(&world, &[]).refused("wrong master key or damaged file");
        assert_eq!(key_of(&world), [7; 32], "a refused rotation changes nothing");
        put(&world, "master.key", &fresh);
        world.up();
        conversation_continues(&world);
        world.down();
        // Another rotation keeps a copy of the old key.
        let kept = world.home.join("kept.key");
        rotate(&world, &["--keep-old", kept.to_str().expect("UTF-8")]).ok();
        assert_eq!(std::fs::read(&kept).expect("kept"), fresh);
        rotate(&world, &["--keep-old", kept.to_str().expect("UTF-8")]).refused("exists already");
        world.up();
        conversation_continues(&world);
    }
}

#[test]
fn master_key_is_rotated_after_a_ledger_rotation() {
    let world = World::new();
    start_a_conversation(&world);
    world.ctl(&["audit", "rotate"]).ok();
    let old = key_of(&world);
    rotate(&world, &[]).ok();
    assert_ne!(key_of(&world), old);
    world.up();
    conversation_continues(&world);
    world.ctl(&["audit", "rotate"]).ok();
    world.down();
    rotate(&world, &[]).ok();
    world.up();
    conversation_continues(&world);
}

#[test]
fn key_rotation_killed_at_any_step_leaves_one_working_key() {
    for who in host_users() {
        let mut world = World::with(who, Build::Failpoints, None);
        start_a_conversation(&world);
        for (point, switched) in MASTER_KEY_POINTS {
            let before = key_of(&world);
            world.set_env("IRONCLAW_FAILPOINT", Some(point));
            assert_ne!(rotate(&world, &[]).code, 0, "{who:?}: the host dies at {point}");
            world.set_env("IRONCLAW_FAILPOINT", None);
            // A reader opens the home before the next start completes the rotation.
            world.ctl(&["audit", "verify"]).ok();
            world.up();
            conversation_continues(&world);
            world.down();
            assert_eq!(key_of(&world) != before, switched, "{who:?}: killed at {point}");
            assert!(
                !world.home.join("master.key.next").exists() && !world.home.join("state.db.next").exists(),
                "{point}"
            );
        }
        rotate(&world, &[]).ok();
        world.up();
        conversation_continues(&world);
        assert_eq!(world.entries("key.rotated").len(), 3, "{who:?}: the late interruptions and the last rotation");
    }
}

#[test]
fn external_master_key_is_replaced_by_the_operator() {
    let mut world = World::with(client::own(), Build::Plain, None);
    start_a_conversation(&world);
    let directory = world.home.parent().expect("a directory").join("keys");
    std::fs::create_dir(&directory).expect("made");
    let (named, next) = (directory.join("named"), directory.join("next"));
    let path = |path: &Path| path.to_str().expect("UTF-8").to_owned();
    std::fs::rename(world.home.join("master.key"), &named).expect("moved");
    world.configure(&format!("[keys]\nmaster_key_file = {:?}\n", path(&named)));
    world.up();
    world.down();
    rotate(&world, &[]).refused("only you can replace");
    rotate(&world, &["--to", &path(&named)]).refused("exists already");
    let roundabout = format!("{}/../keys/next", path(&directory));
    for keep in [path(&next), roundabout] {
        rotate(&world, &["--to", &path(&next), "--keep-old", &keep]).refused("cannot take the fresh key and the copy");
    }
    // A key file may have any name, even the name that a temporary file would have.
    let foreign = directory.join("next.new");
    std::fs::rename(&named, &foreign).expect("moved");
    world.configure(&format!("[keys]\nmaster_key_file = {:?}\n", path(&foreign)));
    let before = std::fs::read(&foreign).expect("a key");
    let aside = directory.join("aside");
    rotate(&world, &["--to", &path(&named), "--keep-old", &path(&directory.join("next.old"))]).ok();
    assert_eq!(std::fs::read(&foreign).expect("the key file remains"), before);
    std::fs::rename(&foreign, &aside).expect("moved");
    world.configure(&format!("[keys]\nmaster_key_file = {:?}\n", path(&named)));
    let said = rotate(&world, &["--to", &path(&next)]).ok().stdout;
    assert!(said.contains(&format!("mv {} {}", path(&next), path(&named))), "{said}");
    world.ctl(&["up", "--detach"]).refused("was replaced at");
    std::fs::rename(&next, &named).expect("as the command says");
    world.up();
    conversation_continues(&world);
    world.down();
    // The same key is now a credential of systemd.
    let credentials = directory.join("credentials");
    std::fs::create_dir(&credentials).expect("made");
    std::fs::rename(&named, credentials.join("ironclaw-master-key")).expect("moved");
    world.configure("");
    world.set_env("CREDENTIALS_DIRECTORY", Some(&path(&credentials)));
    rotate(&world, &[]).refused("the systemd credential ironclaw-master-key, which only you can replace");
    let said = rotate(&world, &["--to", &path(&next)]).ok().stdout;
    assert!(said.contains(&format!("LoadCredential=ironclaw-master-key:{}", path(&next))), "{said}");
    world.ctl(&["up", "--detach"]).refused("was replaced at");
    std::fs::rename(&next, credentials.join("ironclaw-master-key")).expect("as the command says");
    world.up();
    conversation_continues(&world);
    world.down();
    world.set_env("CREDENTIALS_DIRECTORY", None);
    assert!(!world.home.join("master.key").exists(), "the host made no key in the home");
}

#[test]
fn every_blob_is_rewrapped_or_under_a_rewrapped_key() {
    let world = World::new();
    start_a_conversation(&world);
    let db = record::open(&world.home);
    let sql = "SELECT m.name || '.' || c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c \
               WHERE m.type = 'table' AND m.name NOT LIKE 'memories_text_%' AND c.type = 'BLOB'";
    let mut statement = db.prepare(sql).expect("a statement");
    let found: BTreeSet<String> = statement.query_map([], |row| row.get(0)).expect("rows").flatten().collect();
    // `items.body` is encrypted with the content key of its session. The full-text tables, which hold words, have the key of the record.
    let known = [
        "sessions.queue_key",
        "sessions.content_key",
        "ledger_keys.wrapped",
        "secrets.wrapped",
        "channels.wrapped",
        "items.body",
    ];
    let unknown: Vec<_> = found.iter().filter(|column| !known.contains(&column.as_str())).collect();
    assert!(unknown.is_empty(), "columns that key rotation may have to cover: {unknown:?}");
}

#[test]
fn token_rotation_updates_its_file_and_ends_the_old_token() {
    let world = World::with(client::own(), Build::Plain, None);
    world.up();
    let old = Raw::of(&world);
    let said = world.ctl(&["key", "rotate", "token"]).ok();
    let fresh = Raw::of(&world);
    assert_ne!(old.token, fresh.token);
    assert!(!said.stdout.contains("ict_") && !said.stderr.contains("ict_"), "{}", said.stdout);
    assert_eq!(fresh.get("/v1/status").0, 200);
    let (status, answer) = old.get("/v1/status");
    assert_eq!((status, answer["error"]["code"].as_str()), (401, Some("token_revoked")));
    world.ctl(&["person", "add", "Bob"]).ok();
    let made = world.ctl(&["--json", "token", "add", "--person", "Bob", "--expires", "30d"]).ok().json();
    let (id, text) = (made["token"]["id"].as_str().expect("an id"), made["text"].as_str().expect("a token"));
    let bob = old.with_token(text);
    assert_eq!(bob.get("/v1/agents").0, 200);
    let rotated: Value = world.ctl(&["--json", "token", "rotate", id]).ok().json();
    assert_eq!(rotated["token"]["expires_at"], made["token"]["expires_at"], "its expiry is kept");
    assert_eq!(bob.get("/v1/agents").1["error"]["code"], "token_revoked");
    assert_eq!(bob.with_token(rotated["text"].as_str().expect("a token")).get("/v1/agents").0, 200);
    world.ctl(&["token", "rotate", id]).refused("is revoked already");
    world.down();
    world.up();
    world.ctl(&["status"]).ok();
    assert_eq!(world.entries("token.rotated").len(), 2);
}

#[test]
fn kill_during_a_token_rotation_does_not_lock_the_owner_out() {
    for (point, ended) in TOKEN_POINTS {
        let mut world = World::with(client::own(), Build::Failpoints, None);
        world.set_env("IRONCLAW_FAILPOINT", Some(point));
        world.up();
        let old = Raw::of(&world).token;
        assert_ne!(world.ctl(&["key", "rotate", "token"]).code, 0, "the host dies at {point}");
        world.kill_host();
        world.set_env("IRONCLAW_FAILPOINT", None);
        world.up();
        world.ctl(&["status"]).ok();
        assert_eq!(Raw::of(&world).token != old, ended, "{point}");
        assert!(!world.home.join("owner.token.next").exists(), "{point}");
    }
}
