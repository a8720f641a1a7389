//! Tests of `up`, `down`, `quickstart` and `doctor`.
//!
//! They run `fake_binary.sh` in place of the host's binary. See [`crate::offline`].

use crate::fake_host::{Answer, FakeHost, ended, status, view, with_fake_binaries};
use crate::golden;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

fn at(own: &Path, home: &Path, words: &[&str]) -> (i32, String, String) {
    let mut command = Command::new(own);
    command.env_remove("IRONCLAW_HOME").stdin(Stdio::null()).arg("--home").arg(home).args(words);
    ended(command.output().expect("ironctl runs"))
}

#[test]
fn detached_host_is_started_once_and_stopped() {
    let (binaries, own) = with_fake_binaries();
    let home = tempfile::tempdir().expect("a temporary directory");
    let path = home.path().to_owned();
    let host = FakeHost::silent(home, move |line, _| {
        let pid = fs::read_to_string(path.join("pid")).expect("written before the run file");
        let pid = pid.trim().parse().expect("a process id");
        if line == "POST /v1/stop" {
            kill(Pid::from_raw(pid), Signal::SIGTERM).expect("it runs");
        }
        Answer::json(status(&path, pid.unsigned_abs()))
    });
    fs::write(binaries.path().join("run.json"), host.run_file()).expect("written");
    let script = r#"sleep 0.1; echo $$ >"$3/pid"; cp "$here/run.json" "$3/"; exec sleep 30"#;
    fs::write(binaries.path().join("run.sh"), script).expect("written");
    let home = host.home.path();

    let (code, out, err) = at(&own, home, &["up", "--detach"]);
    assert_eq!((code, err.as_str()), (0, "warning: mode is dangerous_warn\n"));
    assert!(out.starts_with("the host runs: process "), "{out}");
    let (code, out, _) = at(&own, home, &["up", "--json"]);
    assert_eq!(code, 0);
    assert!(out.contains("\"already_running\":true"), "{out}");
    let (code, out, err) = at(&own, home, &["down"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("the host stopped: process "), "{out}");

    let asked = fs::read_to_string(binaries.path().join("asked")).expect("it was run");
    assert_eq!(asked, format!("ironclaw-host run --home {}\n", home.display()));
    let mode = fs::metadata(home.join("logs/host.stderr")).expect("made").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn up_asks_again_while_a_killed_host_closes_connections() {
    let (_binaries, own) = with_fake_binaries();
    let home = tempfile::tempdir().expect("a temporary directory");
    let path = home.path().to_owned();
    let requests = AtomicUsize::new(0);
    let host = FakeHost::silent(home, move |_, _| match requests.fetch_add(1, Ordering::SeqCst) {
        0 | 1 => Answer::closed(),
        _ => Answer::json(status(&path, 4242)),
    });
    host.write_run_file();
    let (code, out, err) = at(&own, host.home.path(), &["up", "--detach", "--json"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("\"already_running\":true"), "{out}");
    assert_eq!(host.asked().len(), 3);
}

#[test]
fn up_creates_a_home_and_prints_the_stderr_of_a_failed_host() {
    let (binaries, own) = with_fake_binaries();
    let home = tempfile::tempdir().expect("a temporary directory");
    fs::write(binaries.path().join("run.err"), "error: no master key\n").expect("written");
    fs::write(binaries.path().join("run.exit"), "1").expect("written");
    let (code, _, err) = at(&own, home.path(), &["up", "--detach"]);
    assert_eq!(code, 1);
    assert!(err.contains("error: no master key"), "{err}");
    let asked = fs::read_to_string(binaries.path().join("asked")).expect("it was run");
    assert!(asked.starts_with("ironclaw-host init --home"), "{asked}");
}

#[test]
fn down_waits_for_the_end_of_the_process() {
    let process = Command::new("sleep").arg("100").spawn().expect("sleep starts");
    let pid = process.id();
    let process = Mutex::new(process);
    let host = FakeHost::new(move |line, _| {
        if line == "POST /v1/stop" {
            process.lock().expect("alone").kill().expect("it runs");
            return Answer::json(json!({}));
        }
        Answer::json(status(Path::new("/h"), pid))
    });
    let (code, out, err) = host.ironctl(&["down"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert_eq!(out, format!("the host stopped: process {pid} has ended\n"));
}

/// Starts a model server with one model; returns its port.
fn model_server() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    // The thread ends with the test process.
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 1024];
            let read = stream.read(&mut request).unwrap_or(0);
            let asked = String::from_utf8_lossy(&request[..read]).into_owned();
            let list = r#"{"data":[{"id":"odd; rm -rf"},{"id":"llama3.2"}]}"#;
            let status = if asked.starts_with("GET /v1/models ") { "200 OK" } else { "404 Not Found" };
            // The client may have closed the connection.
            let _ = write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{list}", list.len());
        }
    });
    port
}

fn quickstart_host(server: u16) -> FakeHost {
    let home = tempfile::tempdir().expect("a temporary directory");
    let path = home.path().to_owned();
    let made = Mutex::new(false);
    let host = FakeHost::silent(home, move |line, _| {
        let mut made = made.lock().expect("alone");
        let agent = json!({
            "id": "agt_00000000000000000000000001", "name": "assistant", "model": "scripted", "persona": "",
            "enabled_tools": [], "created_at": "t", "sessions": 0
        });
        match line {
            "GET /v1/status" => Answer::json(status(&path, 4242)),
            "GET /v1/agents" if *made => Answer::json(json!([agent])),
            "GET /v1/agents" => Answer::json(json!([])),
            "POST /v1/agents" => {
                *made = true;
                Answer::json(agent)
            }
            "GET /v1/agents/assistant" => Answer::json(agent),
            "GET /v1/presets" => Answer::json(json!([
                {"name": "zinnober", "kind": "openai", "base_url": "https://example.com/v1", "key_variable": "ZINNOBER_API_KEY", "model": "z-1"},
                {"name": "local", "kind": "openai", "base_url": format!("http://127.0.0.1:{server}/v1")},
                {"name": "asleep", "kind": "openai", "base_url": "http://127.0.0.1:1/v1"}
            ])),
            "POST /v1/agents/assistant/messages" => Answer::json(
                json!({"message_id": "msg_00000000000000000000000001", "session_id": "ses_00000000000000000000000001"}),
            ),
            "POST /v1/sessions/ses_00000000000000000000000001/prove" => Answer::json(json!({"attempts": [
                {"name": "read /etc/passwd", "expected": "refused", "observed": "ENOENT", "wall": "mounts", "contained": true},
                {"name": "open a TCP socket", "expected": "refused", "observed": "EPERM", "wall": "seccomp", "contained": true},
                {"name": "write into the workspace", "expected": "allowed", "observed": "allowed", "wall": "", "contained": true}
            ], "controls": [{"wall": "seccomp", "caught": true, "noticed": 1, "by": ["open a TCP socket"]}]})),
            _ => Answer::json(view(Some("I am an assistant."), None)),
        }
    });
    host.write_run_file();
    host
}

#[test]
fn quickstart_gets_a_first_answer_and_shows_the_jail() {
    let (binaries, own) = with_fake_binaries();
    fs::write(binaries.path().join("preflight.out"), r#"{"ok":true,"checks":[]}"#).expect("written");
    let host = quickstart_host(1);
    let (code, out, err) = at(&own, host.home.path(), &["quickstart"]);
    assert_eq!((code, err.as_str()), (0, ""));
    for words in [
        "created: agent assistant",
        "assistant> I am an assistant.",
        "no capabilities",
        "EPERM",
        "write into the workspace",
        "model add openai --default\nIt asks for the key.",
    ] {
        assert!(out.contains(words), "{words}: {out}");
    }
    assert!(!out.contains("/etc/passwd"), "{out}");
    for command in ["down", "chat assistant", "doctor --prove"] {
        let typed = format!("--home {} {command}\n", host.home.path().display());
        assert!(out.contains(&typed), "a printed command can be typed unchanged: {out}");
    }
    let (code, out, _) = at(&own, host.home.path(), &["quickstart", "--json"]);
    let got: Value = serde_json::from_str(&out).expect("one JSON document");
    assert_eq!(code, 0);
    assert!(got["steps"].as_array().expect("steps").iter().all(|step| step["already"] == true), "{got}");
    assert_eq!(got["message"]["reply"], "I am an assistant.");
    assert_eq!(got["attempts"].as_array().map(Vec::len), Some(2));
}

#[test]
fn output_of_quickstart_is_its_golden_file() {
    let (binaries, own) = with_fake_binaries();
    fs::write(binaries.path().join("preflight.out"), r#"{"ok":true,"checks":[]}"#).expect("written");
    let host = quickstart_host(1);
    let home = host.home.path();
    for name in ["quickstart.txt", "quickstart-again.txt"] {
        let (code, out, _) = at(&own, home, &["quickstart"]);
        assert_eq!(code, 0, "{out}");
        let marked =
            out.replace(&own.display().to_string(), "[IRONCTL]").replace(&home.display().to_string(), "[HOME]");
        golden::check(name, &marked);
    }
}

#[test]
fn quickstart_names_a_local_server_and_a_key_but_uses_neither() {
    let (binaries, own) = with_fake_binaries();
    fs::write(binaries.path().join("preflight.out"), r#"{"ok":true,"checks":[]}"#).expect("written");
    let host = quickstart_host(model_server());
    let mut command = Command::new(&own);
    command.env_remove("IRONCLAW_HOME").env("ZINNOBER_API_KEY", "sk-not-to-be-seen").stdin(Stdio::null());
    command.arg("--home").arg(host.home.path()).arg("quickstart");
    let (code, out, err) = ended(command.output().expect("ironctl runs"));
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let home = host.home.path().display();
    for words in [
        format!("ironctl --home {home} model add local --model llama3.2 --default\n"),
        format!("ironctl --home {home} model add zinnober --key-env ZINNOBER_API_KEY --default\n"),
        "and has llama3.2; ZINNOBER_API_KEY is set".to_owned(),
    ] {
        assert!(out.contains(&words), "{words}: {out}");
    }
    assert!(!out.contains("sk-not") && !out.contains("rm -rf") && !out.contains("asleep"), "{out}");
    let asked = host.asked();
    assert!(asked.iter().all(|asked| !asked.line.starts_with("POST /v1/models")), "nothing was added");
    assert!(asked.iter().all(|asked| !asked.body.to_string().contains("sk-not")), "and the key went nowhere");
}

#[test]
fn quickstart_writes_nothing_if_the_machine_cannot_jail() {
    let (binaries, own) = with_fake_binaries();
    let preflight = json!({"ok": false, "checks": [
        {"name": "user namespaces", "ok": false, "found": "forbidden by sysctl", "remedy": "sysctl x=1"}
    ]});
    fs::write(binaries.path().join("preflight.out"), preflight.to_string()).expect("written");
    fs::write(binaries.path().join("preflight.exit"), "1").expect("written");
    let home = tempfile::tempdir().expect("a temporary directory");
    let (code, _, err) = at(&own, home.path(), &["quickstart"]);
    assert_eq!(code, 1);
    assert!(err.contains("user namespaces: forbidden by sysctl"), "{err}");
    assert!(err.contains("hint: sysctl x=1"), "{err}");
    let asked = fs::read_to_string(binaries.path().join("asked")).expect("it was run");
    assert_eq!(asked, "ironclaw-host preflight --json\n");
    assert_eq!(fs::read_dir(home.path()).expect("readable").count(), 0);
}

#[test]
fn doctor_fails_on_a_reader_breach_or_an_uncontrolled_proof() {
    let (binaries, own) = with_fake_binaries();
    fs::write(binaries.path().join("preflight.out"), r#"{"ok":true,"checks":[]}"#).expect("written");
    fs::write(binaries.path().join("fingerprint.out"), "ab".repeat(32)).expect("written");
    fs::write(binaries.path().join("--fingerprint.out"), "ab".repeat(32)).expect("written");
    let attempt = |contained: bool| json!({"group": "kernel", "name": "load a bpf map", "expected": "refused", "observed": "EPERM", "wall": "seccomp", "contained": contained});
    let caught = |caught: bool| json!({"wall": "seccomp", "caught": caught, "noticed": 0, "by": []});
    for (reader, controls, words) in [
        (attempt(false), json!([caught(true)]), "not contained: load a bpf map (the wall: seccomp)"),
        (attempt(true), json!([]), "proves nothing: there was no negative control"),
        (attempt(true), json!([caught(false)]), "proves nothing: a jail without seccomp was not noticed"),
        (attempt(true), json!([caught(true)]), ""),
    ] {
        let host = FakeHost::new(move |line, _| match line {
            "POST /v1/sessions/ses_00000000000000000000000001/prove" => {
                Answer::json(json!({"attempts": [attempt(true)], "reader": [reader], "controls": controls}))
            }
            "GET /v1/models" | "GET /v1/channels" | "GET /v1/mcp" => Answer::json(json!([])),
            _ => Answer::json(status(Path::new("/h"), 4242)),
        });
        let (code, out, err) = at(&own, host.home.path(), &["doctor", "--prove"]);
        assert_eq!(code, i32::from(!words.is_empty()), "{out}{err}");
        assert!(err.contains(words), "{words}: {err}");
    }
}

#[test]
fn doctor_fails_on_an_escape() {
    let (binaries, own) = with_fake_binaries();
    fs::write(binaries.path().join("preflight.out"), r#"{"ok":true,"checks":[]}"#).expect("written");
    fs::write(binaries.path().join("fingerprint.out"), "ab".repeat(32)).expect("written");
    fs::write(binaries.path().join("--fingerprint.out"), "ab".repeat(32)).expect("written");
    let host = FakeHost::new(|line, _| match line {
        "POST /v1/sessions/ses_00000000000000000000000001/prove" => Answer::json(json!({"attempts": [
            {"name": "open a TCP socket", "expected": "refused", "observed": "connected", "wall": "", "contained": false}
        ]})),
        "GET /v1/models" | "GET /v1/channels" | "GET /v1/mcp" => Answer::json(json!([])),
        _ => Answer::json(status(Path::new("/h"), 4242)),
    });
    let (code, out, err) = at(&own, host.home.path(), &["doctor"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let (code, out, err) = at(&own, host.home.path(), &["doctor", "--prove"]);
    assert_eq!(code, 1);
    assert!(out.contains("NOT CONTAINED"), "{out}");
    assert!(err.contains("not contained: open a TCP socket"), "{err}");
    fs::write(binaries.path().join("--fingerprint.out"), "cd".repeat(32)).expect("written");
    let (code, _, err) = at(&own, host.home.path(), &["doctor"]);
    assert_eq!(code, 1);
    assert!(err.contains("contract fingerprint"), "{err}");
}

#[test]
fn doctor_names_an_mcp_server_that_changed() {
    let (binaries, own) = with_fake_binaries();
    fs::write(binaries.path().join("preflight.out"), r#"{"ok":true,"checks":[]}"#).expect("written");
    for name in ["fingerprint.out", "--fingerprint.out"] {
        fs::write(binaries.path().join(name), "ab".repeat(32)).expect("written");
    }
    for (state, ok) in [("proposed", true), ("confirmed", true), ("changed", false)] {
        let host = FakeHost::new(move |line, _| match line {
            "GET /v1/mcp" => Answer::json(json!([{
                "name": "files", "transport": "http", "url": "https://mcp.example/", "state": state, "tools": [],
                "headers": [], "agents": [], "made_at": "2026-11-20T10:00:00.000Z"
            }])),
            "GET /v1/models" | "GET /v1/channels" => Answer::json(json!([])),
            _ => Answer::json(status(Path::new("/h"), 4242)),
        });
        let (code, out, err) = at(&own, host.home.path(), &["doctor", "--json"]);
        let report: Value = serde_json::from_str(&out).expect("one JSON document");
        let checks = report["checks"].as_array().expect("checks");
        let check = checks.iter().find(|check| check["name"] == "MCP server files").expect("a check of the server");
        assert_eq!((code, &check["ok"]), (i32::from(!ok), &json!(ok)), "{err}");
        assert_eq!(check["remedy"].as_str().unwrap_or_default(), if ok { "" } else { "ironctl mcp test files" });
    }
}
