//! Tests of the files of a workspace: put and read by the agent, written by the agent and got, and the refusals.
//!
//! They use the real programs. The races with a hostile agent are beside `host/src/sessions/files.rs`.

use crate::support::client::{Raw, code};
use crate::support::host_fixture::{Build, TestHost};
use crate::support::jail_fixture::host_users;
use serde_json::json;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::PathBuf;
use tempfile::TempDir;

/// The first bytes of a picture.
const PICTURE: &[u8] = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR";

/// Makes a directory that every user of the tests can write to.
pub(crate) fn shared_directory() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o777)).expect("permissions");
    directory
}

fn workspace(host: &TestHost) -> PathBuf {
    host.session_directory().join("workspace")
}

#[test]
fn person_and_agent_exchange_files() {
    for user in host_users() {
        let host = TestHost::with(user, Build::Plain, None).started_with("a");
        let own = shared_directory();
        let path = |name: &str| own.path().join(name).display().to_string();
        fs::write(path("notes.txt"), "buy milk").expect("written");
        let bytes: Vec<u8> = (0..1_500_000_u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        fs::write(path("data.bin"), &bytes).expect("written");
        host.say("a", "hello");

        host.ctl(&["file", "put", "a", &path("notes.txt"), "in/box/notes.txt"]).ok();
        assert!(host.say("a", "read in/box/notes.txt").contains("buy milk"), "{user:?}");
        let put = host.ctl(&["--json", "file", "put", "a", &path("data.bin")]).ok().json();
        assert_eq!((&put["path"], &put["bytes"]), (&json!("data.bin"), &json!(bytes.len())));
        host.ctl(&["file", "get", "a", "data.bin", "-o", &path("copy.bin")]).ok();
        assert_eq!(fs::read(path("copy.bin")).expect("got"), bytes, "{user:?}");
        host.say("a", "write report.txt: twelve ducks");
        host.ctl(&["file", "get", "a", "report.txt", "-o", &path("report.txt")]).ok();
        assert_eq!(fs::read_to_string(path("report.txt")).expect("got"), "twelve ducks", "{user:?}");
        host.ctl(&["file", "get", "a", "report.txt", "-o", &path("report.txt")]).refused("the file exists");
        host.ctl(&["file", "get", "a", "report.txt", "-o", &path("report.txt"), "--force"]).ok();
        // The agent owns the file of a person like its own.
        assert!(host.say("a", "write in/box/notes.txt: buy bread").contains("I wrote"), "{user:?}");
        let owner = fs::metadata(workspace(&host)).expect("there").uid();
        for name in ["in", "in/box", "in/box/notes.txt", "data.bin"] {
            assert_eq!(fs::metadata(workspace(&host).join(name)).expect(name).uid(), owner, "{user:?} {name}");
        }
        let listed = host.ctl(&["--json", "file", "list", "a", "--levels", "3"]).ok().json();
        let paths: Vec<&str> =
            listed.as_array().expect("an array").iter().filter_map(|file| file["path"].as_str()).collect();
        assert_eq!(paths, ["data.bin", "in", "in/box", "in/box/notes.txt", "report.txt"]);
        host.ctl(&["file", "remove", "a", "in/box/notes.txt"]).ok();
        assert!(host.say("a", "read in/box/notes.txt").contains("could not"), "{user:?}");

        let [first, second] = &host.entries("file.put")[..] else { panic!("two entries") };
        assert_eq!((&first["data"]["bytes"], &second["data"]["digest"]), (&json!(8), &put["digest"]));
        let removed = &host.entries("file.removed")[0];
        assert_eq!(removed["data"]["bytes"], 9, "the agent's text");
        for entry in [first, second, removed] {
            assert!(!entry.to_string().contains("notes") && entry["type"] == "META", "{entry}");
        }
    }
}

#[test]
fn chat_puts_a_picture_into_the_workspace_before_the_turn() {
    let host = TestHost::new().started_with("a");
    let own = shared_directory();
    let picture = own.path().join("my photo.png").display().to_string();
    fs::write(&picture, PICTURE).expect("written");
    host.ctl(&["file", "list", "a"]).refused("you have no such conversation");
    // The conversation has no message yet.
    for (thread, name) in [(None, "my-photo.png"), (None, "my-photo-2.png"), (Some("work"), "my-photo.png")] {
        let named = thread.map(|thread| ["--thread", thread]);
        let named = named.as_ref().map_or(&[][..], |named| &named[..]);
        host.ctl(&[&["--json", "chat", "a", "hello", "--file", &picture], named].concat()).ok();
        let shown = host.ctl(&[&["--json", "file", "list", "a", "inbox"], named].concat()).ok().json();
        let found = shown.as_array().expect("an array").iter().any(|file| file["path"] == format!("inbox/{name}"));
        assert!(found, "{thread:?}: {shown}");
    }
    let told = host.ctl(&["--json", "session", "list"]).ok().json();
    let session = told[0]["id"].as_str().expect("an id");
    let shown = host.ctl(&["--json", "session", "show", session]).ok().json();
    let message = &shown["transcript"][0];
    let said = message["text"].as_str().expect("a text");
    assert!(said.contains("in the workspace as inbox/my-photo.png (16 bytes, image/png)"), "{message}");
    assert_eq!(message["spans"][1]["author"], "file my photo.png", "the note is not the person's words");
    host.ctl(&["session", "remove", session, "--yes"]).ok();
    host.ctl(&["file", "list", session]).refused("no session");
}

#[test]
fn workspace_of_another_person_and_links_are_refused() {
    let host = TestHost::own(Build::Plain).configured("[quota]\nworkspace_bytes = 1000000\n").started_with("a");
    host.ctl(&["person", "add", "Bob"]).ok();
    let (owner, bob) = (Raw::of(&host), Raw::of_person(&host, "Bob"));
    assert_eq!(bob.say("a", "hello", None).0, 202);
    let (status, mine) = bob.get("/v1/agents/a/session");
    assert_eq!(status, 200, "{mine}");
    let bobs = format!("/v1/sessions/{}/files", mine["session_id"].as_str().expect("an id"));
    assert_eq!(bob.ask("POST", &format!("{bobs}?path=own.txt"), "hello").0, 200);
    assert_eq!(host.entries("file.read").len(), 0);
    let (status, list) = owner.get(&bobs);
    assert_eq!((status, &list["files"][0]["path"]), (200, &json!("own.txt")), "an operator may read it");
    assert_eq!(host.entries("file.read").len(), 1);

    host.say("a", "hello");
    let session = owner.get("/v1/agents/a/session").1["session_id"].as_str().expect("an id").to_owned();
    let files = format!("/v1/sessions/{session}/files");
    for (method, path) in [("GET", "?path="), ("POST", "?path=x"), ("DELETE", "?path=x"), ("GET", "/content?path=x")] {
        let answer = bob.ask(method, &format!("{files}{path}"), "x");
        assert_eq!(code(&answer), (404, "session_unknown"), "{method} {path}");
    }
    let place = host.home.join("sessions").join(&session).join("workspace");
    symlink("/etc/passwd", place.join("passwd")).expect("linked");
    symlink("/etc", place.join("etc")).expect("linked");
    nix::unistd::mkfifo(&place.join("pipe"), nix::sys::stat::Mode::S_IRWXU).expect("made");
    for path in ["passwd", "etc%2Fpasswd", "pipe"] {
        for (method, path) in [("POST", format!("?path={path}&replace=true")), ("DELETE", format!("?path={path}"))] {
            assert_eq!(code(&owner.ask(method, &format!("{files}{path}"), "x")), (400, "file_unfit"), "{path}");
        }
        assert_eq!(code(&owner.get(&format!("{files}/content?path={path}"))), (400, "file_unfit"), "{path}");
    }
    for path in ["..", "%2Fetc%2Fpasswd", "a%2F..%2F..%2Fb", "a%0Ab", "%E2%80%AEfdp.exe"] {
        let answer = owner.ask("POST", &format!("{files}?path={path}"), "x");
        assert_eq!(code(&answer), (400, "file_path"), "{path}");
    }
    let big = "x".repeat(1_000_000);
    assert_eq!(code(&owner.ask("POST", &format!("{files}?path=big"), &big)), (409, "workspace_full"));
    assert_eq!(owner.ask("POST", &format!("{files}?path=one"), "1").0, 200);
    assert_eq!(code(&owner.ask("POST", &format!("{files}?path=one"), "2")), (409, "file_exists"));
    assert_eq!(code(&owner.get(&format!("{files}/content?path=none"))), (404, "file_unknown"));
    let answer = host.ctl(&["--json", "file", "get", "a", "etc/passwd"]);
    assert_eq!(answer.error()["code"], "file_unfit");
    assert_eq!(host.entries("file.put").len(), 2, "a refused file makes no entry");
    assert_eq!(host.entries("file.removed").len(), 0);
}
