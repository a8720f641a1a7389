//! Secrets of an operator: refused values, places that must never contain a value, and key rotation.
//!
//! The tests use the real daemon and its command line. See `ops::model_cli` for the use of secrets.

use crate::support::client::Raw;
use crate::support::host_fixture::{Build, TestHost};
use crate::support::jail_fixture::{HostUser, ORDINARY_UID, host_users};
use crate::support::record::{self, Needle};
use ironclaw_state::keys::SecretText;
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};

/// A value that no file contains by chance.
const VALUE: &str = "sk-zinnober-4711-zinnober";

/// A second value with the same property.
const OTHER: &str = "sk-karmesin-0815-karmesin";

fn running() -> TestHost {
    TestHost::new().started()
}

fn listed(host: &TestHost) -> Vec<Value> {
    host.ctl(&["--json", "secret", "list"]).ok().json().as_array().expect("a list").clone()
}

/// Decrypts a stored secret with the keys of the host.
fn opened(host: &TestHost, name: &str) -> Option<SecretText> {
    let db = record::open(&host.home);
    let stored: Option<Vec<u8>> =
        db.query_row("SELECT wrapped FROM secrets WHERE name = ?1", [name], |row| row.get(0)).ok();
    stored.map(|stored| record::master(&host.home).wrapping_key().secret(name, &stored).expect("it opens"))
}

/// Makes a systemd credentials directory with these files for the host.
fn credentials(host: &mut TestHost, given: &[(&str, &str)]) -> PathBuf {
    let directory = host.home.parent().expect("a directory").join("credentials");
    std::fs::create_dir_all(&directory).expect("made");
    for (name, value) in given {
        let path = directory.join(name);
        std::fs::write(&path, value).expect("written");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o400)).expect("permissions");
        if host.user == HostUser::Ordinary && nix::unistd::geteuid().is_root() {
            chown(&path, Some(ORDINARY_UID), Some(ORDINARY_UID)).expect("root can give files away");
        }
    }
    host.set_env("CREDENTIALS_DIRECTORY", Some(directory.to_str().expect("UTF-8")));
    directory
}

#[test]
fn invalid_secret_name_or_value_is_refused_and_not_quoted() {
    let host = running();
    for name in ["Bad", "a/b", "a.b", "ä", "secret:secret:a", &"a".repeat(65), VALUE.to_uppercase().as_str()] {
        let answer = host.ctl_given(VALUE, &["secret", "set", name]).refused("invalid name of a secret");
        assert!(!answer.stderr.contains("zinnober"), "{}", answer.stderr);
    }
    let long = "z".repeat(8193);
    for (value, why) in [
        ("zinnober\nzwei\n", "control character"),
        ("zinnober\n\n", "control character"),
        ("zinnober\t", "control character"),
        (long.as_str(), "over the limit of 8192"),
        ("", "is empty"),
        ("\n", "is empty"),
    ] {
        let answer = host.ctl_given(value, &["secret", "set", "a"]).refused(why);
        assert!(!answer.stderr.contains("zinnober") && !answer.stderr.contains("zzz"), "{}", answer.stderr);
    }
    // The command line accepts no value in any form.
    assert_eq!(host.ctl(&["secret", "set", "a", VALUE]).code, 2);
    assert_eq!(host.ctl(&["secret", "set", "a", "--value", VALUE]).code, 2);
    assert_eq!(listed(&host), Vec::<Value>::new());

    host.ctl_given(VALUE, &["secret", "set", "a"]).ok();
    host.ctl_given(OTHER, &["secret", "set", "secret:a"]).refused("secret:a exists already");
    host.ctl_given(OTHER, &["secret", "rotate", "b"]).refused("there is no secret:b");
    host.ctl(&["secret", "remove", "b", "--yes"]).refused("there is no secret:b");
    assert_eq!(host.ctl(&["secret", "remove", "a"]).code, 2, "a removal needs a confirmation");
    assert_eq!(opened(&host, "a").expect("stored").expose(), VALUE);
    assert_eq!(host.entries("secret.set").len(), 1);
    let refused: Vec<Value> =
        host.entries("secret.refused").into_iter().map(|entry| entry["data"]["code"].clone()).collect();
    assert_eq!(refused, ["secret_exists", "secret_unknown", "secret_unknown"]);
}

#[test]
fn only_owners_change_secrets_and_members_see_none() {
    let host = TestHost::own(Build::Plain).started();
    let token = |role: &str| {
        host.ctl(&["person", "add", role, "--role", role]).ok();
        Raw::of_person(&host, role)
    };
    let (admin, member) = (token("admin"), token("member"));
    let body = json!({ "name": "a", "value": VALUE }).to_string();
    for (method, path, body) in [
        ("POST", "/v1/secrets", body.as_str()),
        ("POST", "/v1/secrets/a/rotate", "{}"),
        ("DELETE", "/v1/secrets/a", ""),
    ] {
        for user in [&admin, &member] {
            let (status, answer) = user.ask(method, path, body);
            assert_eq!((status, answer["error"]["code"].as_str()), (403, Some("role_too_low")), "{method} {path}");
        }
    }
    assert_eq!(admin.get("/v1/secrets"), (200, json!([])));
    assert_eq!(member.get("/v1/secrets").0, 403);
    let malformed = json!({ "name": "a", "value": VALUE, "more": 1 }).to_string();
    let (status, answer) = Raw::of(&host).ask("POST", "/v1/secrets", &malformed);
    assert_eq!(status, 400);
    assert!(!answer.to_string().contains("zinnober"), "{answer}");
}

#[test]
fn secret_value_is_never_returned_or_stored_in_plain_text() {
    for user in host_users() {
        let host = TestHost::with(user, Build::Plain, None).configured("[log]\nlevel = \"debug\"\n").started();
        let set = host.ctl_given(&format!("{VALUE}\n"), &["--json", "secret", "set", "a"]).ok();
        let rotated = host.ctl_given(OTHER, &["--json", "secret", "rotate", "a"]).ok();
        assert_eq!(opened(&host, "a").expect("stored").expose(), OTHER);
        host.ctl_given(VALUE, &["secret", "set", "b"]).ok();
        host.ctl_given("zinnober\nzinnober", &["secret", "set", "c"]).refused("control");
        host.ctl(&["secret", "remove", "b", "--yes"]).ok();
        let listed = host.ctl(&["--json", "secret", "list"]).ok();
        let table = host.ctl(&["secret", "list"]).ok();
        host.ctl(&["audit", "rotate"]).ok();
        let export = host.ctl(&["audit", "export"]).ok();
        for word in ["secret.set", "secret.rotated", "secret.removed"] {
            assert!(export.stdout.contains(word), "{user:?}: {word}");
        }
        let needles: Vec<Needle> = [("the value", VALUE), ("the other value", OTHER)]
            .iter()
            .flat_map(|(name, value)| Needle::key(name, value.as_bytes()))
            .chain([Needle::new("its digest", sha256(VALUE)), Needle::new("the other's digest", sha256(OTHER))])
            .collect();
        let pid = host.pid().expect("it runs");
        let shown = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let mut places = vec![("environ".into(), shown("environ")), ("cmdline".into(), shown("cmdline"))];
        for answer in [set, rotated, listed, table, export] {
            places.push((PathBuf::from("an answer"), [answer.stdout, answer.stderr].concat().into_bytes()));
        }
        places.extend(record::files(&host.home));
        host.down();
        places.extend(record::files(&host.home));
        assert!(places.iter().any(|(path, _)| path == Path::new("state.db")), "{user:?}");
        for needle in &needles {
            for (path, bytes) in &places {
                assert!(!needle.is_in(bytes), "{user:?}: {} is in {}", needle.name, path.display());
            }
        }
        assert!(opened(&host, "b").is_none(), "{user:?}: the removed secret is gone");
    }
}

#[test]
fn secret_can_be_decrypted_after_a_master_key_rotation() {
    let host = running();
    host.ctl_given(VALUE, &["secret", "set", "a"]).ok();
    host.down();
    let before = record::master(&host.home).fingerprint();
    host.ctl(&["key", "rotate", "master", "--yes"]).ok();
    assert_ne!(record::master(&host.home).fingerprint(), before);
    assert_eq!(opened(&host, "a").expect("stored").expose(), VALUE);
    host.up();
    host.ctl_given(OTHER, &["secret", "rotate", "a"]).ok();
    assert_eq!(opened(&host, "a").expect("stored").expose(), OTHER);
}

#[test]
fn systemd_credential_overrides_a_stored_secret() {
    let mut host = TestHost::new().started();
    host.ctl_given(VALUE, &["secret", "set", "both"]).ok();
    host.down();
    let directory = credentials(
        &mut host,
        &[
            ("ironclaw-secret-both", OTHER),
            ("ironclaw-secret-given", "x\n"),
            ("ironclaw-secret-No", "x"),
            ("more", "x"),
        ],
    );
    host.up();
    let sources: Vec<(Value, Value)> =
        listed(&host).into_iter().map(|secret| (secret["name"].clone(), secret["source"].clone())).collect();
    assert_eq!(sources, [(json!("both"), json!("systemd")), (json!("given"), json!("systemd"))]);
    host.ctl_given(VALUE, &["secret", "rotate", "both"]).refused("systemd credential ironclaw-secret-both");
    host.ctl_given(VALUE, &["secret", "set", "given"]).refused("systemd credential ironclaw-secret-given");
    host.ctl(&["secret", "remove", "given", "--yes"]).refused("systemd credential ironclaw-secret-given");
    host.ctl(&["secret", "remove", "both", "--yes"]).ok();
    assert!(opened(&host, "both").is_none(), "the stored secret is removed");
    std::fs::remove_file(directory.join("ironclaw-secret-both")).expect("removed");
    let names: Vec<Value> = listed(&host).into_iter().map(|secret| secret["name"].clone()).collect();
    assert_eq!(names, [json!("given")]);
    // The host does not use a credential that others may read, and does not report it as missing.
    let open = PermissionsExt::from_mode(0o404);
    std::fs::set_permissions(directory.join("ironclaw-secret-given"), open).expect("permissions");
    let add = ["model", "add", "m", "--kind", "openai", "--base-url", "http://127.0.0.1:9/v1", "--model", "m"];
    host.ctl(&[&add[..], &["--key", "secret:given", "--no-test", "--default"]].concat()).ok();
    host.ctl(&["agent", "add", "a"]).ok();
    let notice = host.chat("a", "hello")["reply"].to_string();
    assert!(notice.contains("has the key secret:given, which the host cannot read"), "{notice}");
}

fn sha256(text: &str) -> String {
    ironclaw_contract::canonical::Digest::of(text.as_bytes()).to_string()
}
