//! Tests of `up`, `down`, `quickstart` and `doctor`.
//!
//! They run `fake_binary.sh` in place of the host's binary. See [`crate::offline`].

use crate::fake_host::{Answer, FakeHost, Programs, agent, ended, json_of, recorded, status, view};
use crate::golden;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Returns programs on a machine that can jail an agent, from one release.
fn programs() -> Programs {
    let programs = Programs::new();
    programs.write("preflight.out", r#"{"ok":true,"checks":[]}"#);
    for name in ["fingerprint.out", "--fingerprint.out"] {
        programs.write(name, "ab".repeat(32));
    }
    programs
}

#[test]
fn detached_host_is_started_once_and_stopped() {
    let programs = programs();
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
    programs.write("run.json", host.run_file());
    let script = r#"sleep 0.1; echo $$ >"$3/pid"; cp "$here/run.json" "$3/"; exec sleep 30"#;
    programs.write("run.sh", script);
    let home = host.home.path();

    let (code, out, err) = programs.run(home, &["up", "--detach"]);
    assert_eq!((code, err.as_str()), (0, "warning: mode is dangerous_warn\n"));
    assert!(out.starts_with("the host runs: process "), "{out}");
    let (code, out, _) = programs.run(home, &["up", "--json"]);
    assert_eq!(code, 0);
    assert!(out.contains("\"already_running\":true"), "{out}");
    let (code, out, err) = programs.run(home, &["down"]);
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("the host stopped: process "), "{out}");

    let asked = programs.asked();
    let home_path = home.display();
    let expected = format!("ironclaw-host preflight --home {home_path} --json\nironclaw-host run --home {home_path}\n");
    assert_eq!(asked, expected);
    let mode = fs::metadata(home.join("logs/host.stderr")).expect("made").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn up_asks_again_while_a_killed_host_closes_connections() {
    let programs = Programs::new();
    let home = tempfile::tempdir().expect("a temporary directory");
    let path = home.path().to_owned();
    let requests = AtomicUsize::new(0);
    let host = FakeHost::silent(home, move |_, _| match requests.fetch_add(1, Ordering::SeqCst) {
        0 | 1 => Answer::closed(),
        _ => Answer::json(status(&path, 4242)),
    });
    host.write_run_file();
    let (code, out, err) = programs.run(host.home.path(), &["up", "--detach", "--json"]);
    assert_eq!(code, 0, "{err}");
    assert!(out.contains("\"already_running\":true"), "{out}");
    assert_eq!(host.asked().len(), 3);
}

#[test]
fn up_creates_a_home_and_prints_the_stderr_of_a_failed_host() {
    let programs = programs();
    let home = tempfile::tempdir().expect("a temporary directory");
    programs.write("run.err", "error: no master key\n");
    programs.write("run.exit", "1");
    let (code, _, err) = programs.run(home.path(), &["up", "--detach"]);
    assert_eq!(code, 1);
    assert!(err.contains("error: no master key"), "{err}");
    let asked = programs.asked();
    assert!(asked.contains("\nironclaw-host init --home"), "{asked}");
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
        let agent = agent("assistant");
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
            "POST /v1/agents/assistant/messages" => recorded(),
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
    let programs = programs();
    let host = quickstart_host(1);
    let (code, out, err) = programs.run(host.home.path(), &["quickstart"]);
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
    let (code, again, _) = programs.run(host.home.path(), &["quickstart"]);
    assert_eq!(code, 0, "{again}");
    for (name, text) in [("quickstart.txt", out), ("quickstart-again.txt", again)] {
        let marked = text.replace(&programs.ironctl.display().to_string(), "[IRONCTL]");
        golden::check(name, &marked.replace(&host.home.path().display().to_string(), "[HOME]"));
    }
    let (code, out, _) = programs.run(host.home.path(), &["quickstart", "--json"]);
    let got = json_of(&out);
    assert_eq!(code, 0);
    assert!(got["steps"].as_array().expect("steps").iter().all(|step| step["already"] == true), "{got}");
    assert_eq!(got["message"]["reply"], "I am an assistant.");
    assert_eq!(got["attempts"].as_array().map(Vec::len), Some(2));
}

#[test]
fn quickstart_names_a_local_server_and_a_key_but_uses_neither() {
    let programs = programs();
    let host = quickstart_host(model_server());
    let mut command = programs.command(host.home.path());
    command.env("ZINNOBER_API_KEY", "sk-not-to-be-seen").arg("quickstart");
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
fn start_writes_nothing_if_the_machine_cannot_jail() {
    let programs = Programs::new();
    let preflight = json!({"ok": false, "checks": [
        {"name": "user namespaces", "ok": false, "found": "forbidden by sysctl", "remedy": "sysctl x=1"}
    ]});
    programs.write("preflight.out", preflight.to_string());
    programs.write("preflight.exit", "1");
    let home = tempfile::tempdir().expect("a temporary directory");
    let mut refusals = Vec::new();
    for words in [&["quickstart"][..], &["up"], &["up", "--detach"]] {
        let (code, _, err) = programs.run(home.path(), words);
        assert_eq!(code, 1, "{words:?}");
        assert!(err.contains("user namespaces: forbidden by sysctl"), "{words:?}: {err}");
        assert!(err.contains("hint: sysctl x=1"), "{words:?}: {err}");
        refusals.push(err);
    }
    assert!(refusals.iter().all(|refusal| *refusal == refusals[0]), "{refusals:?}");
    let asked = programs.asked();
    assert_eq!(asked, format!("ironclaw-host preflight --home {} --json\n", home.path().display()).repeat(3));
    assert_eq!(fs::read_dir(home.path()).expect("readable").count(), 0);
}

/// Starts a host with this proof of its jail and these MCP servers.
fn host_for_doctor(proof: Value, servers: Value) -> FakeHost {
    FakeHost::new(move |line, _| match line {
        "POST /v1/sessions/ses_00000000000000000000000001/prove" => Answer::json(proof.clone()),
        "GET /v1/mcp" => Answer::json(servers.clone()),
        "GET /v1/models" | "GET /v1/channels" => Answer::json(json!([])),
        _ => Answer::json(status(Path::new("/h"), 4242)),
    })
}

#[test]
fn doctor_fails_on_a_reader_breach_or_an_uncontrolled_proof() {
    let programs = programs();
    let attempt = |contained: bool| json!({"group": "kernel", "name": "load a bpf map", "expected": "refused", "observed": "EPERM", "wall": "seccomp", "contained": contained});
    let caught = |caught: bool| json!({"wall": "seccomp", "caught": caught, "noticed": 0, "by": []});
    for (reader, controls, words) in [
        (attempt(false), json!([caught(true)]), "not contained: load a bpf map (the wall: seccomp)"),
        (attempt(true), json!([]), "proves nothing: there was no negative control"),
        (attempt(true), json!([caught(false)]), "proves nothing: a jail without seccomp was not noticed"),
        (attempt(true), json!([caught(true)]), ""),
    ] {
        let proof = json!({"attempts": [attempt(true)], "reader": [reader], "controls": controls});
        let host = host_for_doctor(proof, json!([]));
        let (code, out, err) = programs.run(host.home.path(), &["doctor", "--prove"]);
        assert_eq!(code, i32::from(!words.is_empty()), "{out}{err}");
        assert!(err.contains(words), "{words}: {err}");
    }
}

#[test]
fn doctor_fails_on_an_escape() {
    let programs = programs();
    let escape = json!({"name": "open a TCP socket", "expected": "refused", "observed": "connected", "wall": "", "contained": false});
    let host = host_for_doctor(json!({"attempts": [escape]}), json!([]));
    let (code, out, err) = programs.run(host.home.path(), &["doctor"]);
    assert_eq!((code, err.as_str()), (0, ""), "{out}");
    let (code, out, err) = programs.run(host.home.path(), &["doctor", "--prove"]);
    assert_eq!(code, 1);
    assert!(out.contains("NOT CONTAINED"), "{out}");
    assert!(err.contains("not contained: open a TCP socket"), "{err}");
    programs.write("--fingerprint.out", "cd".repeat(32));
    let (code, _, err) = programs.run(host.home.path(), &["doctor"]);
    assert_eq!(code, 1);
    assert!(err.contains("contract fingerprint"), "{err}");
}

#[test]
fn doctor_names_an_mcp_server_that_changed() {
    let programs = programs();
    for (state, ok) in [("proposed", true), ("confirmed", true), ("changed", false)] {
        let server = json!({
            "name": "files", "transport": "http", "url": "https://mcp.example/", "state": state, "tools": [],
            "headers": [], "agents": [], "made_at": "2026-11-20T10:00:00.000Z"
        });
        let host = host_for_doctor(Value::Null, json!([server]));
        let (code, out, err) = programs.run(host.home.path(), &["doctor", "--json"]);
        let report = json_of(&out);
        let checks = report["checks"].as_array().expect("checks");
        let check = checks.iter().find(|check| check["name"] == "MCP server files").expect("a check of the server");
        assert_eq!((code, &check["ok"]), (i32::from(!ok), &json!(ok)), "{err}");
        assert_eq!(check["remedy"].as_str().unwrap_or_default(), if ok { "" } else { "ironctl mcp test files" });
    }
}
