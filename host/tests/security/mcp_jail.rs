//! MCP servers in jails through a real launcher, as root with mapped ids and as an ordinary user.
//!
//! See `host/examples/jail_driver/mcp.rs`, which runs the scenarios.

use crate::support::jail_fixture::{JailFixture, host_users};
use crate::support::needs::needs;
use serde_json::json;

#[test]
fn server_reaches_its_state_and_granted_directories_alone() {
    needs("python3");
    for user in host_users() {
        let result = JailFixture::new(user).play("mcp");
        let tried = result["tried"].as_object().unwrap_or_else(|| panic!("{user:?}: {result}"));
        let allowed = ["own state", "temporary file", "granted file", "granted directory", "program of the machine"];
        let acts = tried.iter().filter(|(_, found)| found.is_string() && *found != "/state/home");
        for (act, found) in acts.clone() {
            assert_eq!(found == "done", allowed.contains(&act.as_str()), "{user:?} {act}: {found}");
        }
        assert_eq!(acts.count(), 22, "{user:?}: {result}");
        assert_eq!(tried["variables"], json!(["HOME", "LANG", "PATH", "TMPDIR", "TOKEN"]), "{user:?}");
        assert_eq!(tried["directory"], "/state/home", "{user:?}");
        assert_eq!(tried["descriptors"], json!([0, 1, 2]), "{user:?}");
        assert_eq!((&result["errors"], &result["other"]), (&"".into(), &true.into()), "{user:?}");
    }
}

#[test]
fn browser_has_few_names_of_proc_and_no_port() {
    needs("python3");
    let allowed = [
        "shared memory",
        "processors",
        "policy of Chromium",
        "policy of Firefox",
        "few names of proc",
        "few names of a process",
        "no descriptor",
        "one program",
        "empty shared memory",
        "bound socket",
        "server on a socket",
        "server on a name",
        "socket in its state",
        "pair of packets",
    ];
    for user in host_users() {
        let result = JailFixture::new(user).play("mcp-browser");
        let all = result.as_array().unwrap_or_else(|| panic!("{user:?}: {result}"));
        for (with, tried) in [false, true].into_iter().zip(all) {
            let tried = tried.as_object().unwrap_or_else(|| panic!("{user:?}: {result}"));
            let acts = tried.iter().filter(|(_, found)| found.is_string() && *found != "/state/home");
            for (act, found) in acts.clone() {
                let expected = allowed.contains(&act.as_str()) || with && act == "socket of TCP";
                assert_eq!(found == "done", expected, "{user:?} {act}: {found}");
            }
            assert_eq!(acts.count(), 44, "{user:?}: {result}");
        }
        assert_eq!(all.len(), 2);
    }
}

#[test]
fn server_ends_with_its_stream_and_with_its_jail() {
    for user in host_users() {
        let result = JailFixture::new(user).play("mcp-end");
        assert_eq!(result["closed"]["code"], 0, "{user:?}: the end of the stream ends a server that reads");
        assert_eq!(result["line"], "ready\n", "{user:?}: {result}");
        assert_eq!((&result["killed"]["signal"], &result["left"]), (&libc::SIGKILL.into(), &json!([])), "{user:?}");
        let missing = result["missing"].as_str().unwrap_or_default();
        assert!(missing.contains("no-such-program"), "{user:?}: {result}");
        assert_eq!(result["state"], false, "{user:?}: a refusal makes no directory");
    }
}

#[test]
fn server_runs_a_program_of_its_layer() {
    for user in host_users() {
        let result = JailFixture::new(user).play("mcp-layer");
        assert_eq!((&result["line"], &result["exit"]), (&"heard hello\n".into(), &true.into()), "{user:?}: {result}");
    }
}
