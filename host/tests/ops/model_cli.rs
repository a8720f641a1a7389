//! Tests of model endpoints on the command line: `add`, `test`, `default`, `remove`, and the secrecy of their keys.
//!
//! They use the real programs with a model server on loopback. See `security::secret_store` and `e2e::models`.

use crate::support::host_fixture::{Answer, TestHost, wait_for};
use crate::support::jail_fixture::{HostUser, ORDINARY_UID};
use crate::support::model_server::{Act, Api, Seen, Server};
use crate::support::processes::descendants;
use crate::support::record::{self, Needle};
use serde_json::{Value, json};
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;

/// The key that the model server accepts.
const KEY: &str = "sk-zinnober-4711-zinnober";

/// A key that the model server refuses.
const WRONG: &str = "sk-karmesin-0815-karmesin";

/// Writes a note, reads it and returns its content. Repeats any other message.
fn clerk(seen: &Seen) -> Act {
    let asked = seen.asked();
    let Some((_, note)) = asked.split_once("note ") else { return Act::Say(format!("You said: {asked}")) };
    let results = seen.results();
    let call = |tool: &str, arguments: Value| Act::Call(String::new(), vec![(tool.to_owned(), arguments)]);
    match results.as_slice() {
        [] => call("write_file", json!({ "path": "note.txt", "content": note })),
        [_] => call("read_file", json!({ "path": "note.txt" })),
        [.., read] => Act::Say(format!("The file says: {read}")),
    }
}

/// Works like `clerk` for the right key. Refuses other keys and quotes them, as some providers do.
fn guarded(seen: &Seen) -> Act {
    match &seen.key {
        Some(key) if key == KEY => clerk(seen),
        key => {
            let body = json!({ "error": { "message": format!("Incorrect API key provided: {key:?}"), "type": "invalid_request_error" } });
            Act::Status(401, vec![("content-type", "application/json".to_owned())], body.to_string())
        }
    }
}

fn running() -> TestHost {
    TestHost::new().started()
}
fn base(server: &Server, kind: &str) -> String {
    if kind == "openai" { format!("{}/v1", server.url()) } else { server.url() }
}

/// Runs `model add NAME --kind KIND` with a model and more arguments.
fn add(host: &TestHost, server: &Server, name: &str, kind: &str, more: &[&str], input: &str) -> Answer {
    let base = base(server, kind);
    let words = [&["model", "add", name, "--kind", kind, "--base-url", &base, "--model", "small"], more].concat();
    host.ctl_given(input, &words)
}

fn names(host: &TestHost) -> Vec<String> {
    let listed = host.ctl(&["--json", "model", "list"]).ok().json();
    let listed = listed.as_array().expect("a list").iter();
    listed.map(|model| model["name"].as_str().expect("a name").to_owned()).collect()
}

fn secrets(host: &TestHost) -> Value {
    host.ctl(&["--json", "secret", "list"]).ok().json()
}

#[test]
fn agent_works_in_several_steps_over_both_apis() {
    let server = Server::start(guarded);
    let host = running();
    host.ctl_given(KEY, &["secret", "set", "key"]).ok();
    for (kind, api) in [("openai", Api::Chat), ("anthropic", Api::Messages)] {
        for streams in [true, false] {
            let name = format!("{kind}-{streams}");
            let how: &[&str] = if streams { &[] } else { &["--no-stream"] };
            let said = add(&host, &server, &name, kind, &[&["--key", "secret:key"], how].concat(), "").ok();
            assert!(said.stdout.contains("answered in"), "{}", said.stdout);
            host.ctl(&["agent", "add", &name, "--model", &name]).ok();
            let before = server.seen().len();
            assert_eq!(host.say(&name, "note milk and bread"), "The file says: milk and bread", "{name}");
            let seen = server.seen().split_off(before);
            assert_eq!(seen.len(), 3, "{name}: {seen:?}");
            for seen in seen {
                assert_eq!((seen.api, seen.streams(), seen.key.as_deref()), (api, streams, Some(KEY)), "{name}");
                assert_eq!(seen.body["model"], "small", "{name}");
            }
            assert_eq!(host.say(&name, "thank you"), "You said: thank you", "{name}: the conversation continues");
        }
    }
    assert_eq!(host.entries("call.reported").len(), 8, "two tools in each of four conversations");
}

#[test]
fn host_memory_keeps_no_copy_of_a_key_or_token() {
    let server = Server::start(guarded);
    let host = running();
    host.ctl_given(KEY, &["secret", "set", "key"]).ok();
    for (kind, how) in [("openai", &[][..]), ("anthropic", &["--no-stream"])] {
        add(&host, &server, kind, kind, &[&["--key", "secret:key"], how].concat(), "").ok();
        host.ctl(&["agent", "add", kind, "--model", kind]).ok();
        assert_eq!(host.say(kind, "thank you"), "You said: thank you");
    }
    let token = std::fs::read_to_string(host.home.join("owner.token")).expect("a token");
    // Closes the connections, because an open one keeps its buffers.
    drop(server);
    let host_pid = host.pid().expect("the host runs");
    for needle in [KEY, token.trim()] {
        let Some(_) = copies(host_pid, needle) else {
            assert!(!nix::unistd::geteuid().is_root(), "root may read any memory");
            return; // a security module allows an ordinary user to read only the memory of children
        };
        wait_for("every copy to be wiped", || copies(host_pid, needle) == Some(0));
    }
}

/// Counts a text in the writable memory of a process. Returns `None` if the memory is not readable.
fn copies(pid: i32, needle: &str) -> Option<usize> {
    use std::os::unix::fs::FileExt;
    const PIECE_BYTES: usize = 1 << 20;
    let pattern = regex::bytes::Regex::new(&regex::escape(needle)).expect("a pattern");
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?;
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).ok()?;
    let mut piece = vec![0; PIECE_BYTES];
    let mut count = 0;
    for line in maps.lines().filter(|line| line.split(' ').nth(1).is_some_and(|may| may.starts_with("rw"))) {
        let (from, to) = line.split(' ').next().and_then(|range| range.split_once('-')).expect("a range");
        let address = |text| u64::from_str_radix(text, 16).expect("an address");
        let (mut at, to) = (address(from), address(to));
        while at < to {
            let wanted = PIECE_BYTES.min((to - at) as usize);
            // The process may have removed the mapping meanwhile.
            let Ok(read @ 1..) = memory.read_at(&mut piece[..wanted], at) else { break };
            count += pattern.find_iter(&piece[..read]).count();
            // The next piece overlaps with this one by the length of the text, so no match is missed.
            let is_last = at + read as u64 >= to || read < needle.len();
            at += read as u64 - if is_last { 0 } else { needle.len() as u64 - 1 };
        }
    }
    Some(count)
}

#[test]
fn failed_endpoint_test_stores_no_endpoint_and_no_key() {
    let server = Server::start(guarded);
    let host = running();
    let refused = add(&host, &server, "lab", "openai", &["--default", "--key-env", "NO_SUCH_KEY"], "");
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    let mut host = host;
    host.set_env("LAB_KEY", Some(WRONG));
    let refused = add(&host, &server, "lab", "openai", &["--default", "--key-env", "LAB_KEY"], "");
    let refused = refused.refused("the test failed: the model endpoint `lab`");
    assert!(refused.stderr.contains("hint: ") && !refused.stderr.contains(WRONG), "{}", refused.stderr);
    assert_eq!((names(&host), secrets(&host)), (vec!["scripted".to_owned()], json!([])));
    assert_eq!(
        server.seen().last().and_then(|seen| seen.key.clone()).as_deref(),
        Some(WRONG),
        "the endpoint was tested"
    );
    drop(server);
    let silent = Server::start(clerk);
    let gone = silent.url();
    drop(silent);
    host.set_env("LAB_KEY", Some(KEY));
    let words =
        ["model", "add", "lab", "--kind", "openai", "--base-url", &gone, "--model", "m", "--key-env", "LAB_KEY"];
    host.ctl(&words).refused("the test failed: the model endpoint `lab`");
    assert_eq!((names(&host), secrets(&host)), (vec!["scripted".to_owned()], json!([])));
    host.ctl(&[&words[..], &["--no-test"]].concat()).ok();
    assert_eq!(names(&host), ["lab", "scripted"]);
    host.ctl(&["model", "test", "lab"]).refused("the test failed: the model endpoint `lab`");
    let refused: Vec<Value> =
        host.entries("model.change_refused").into_iter().map(|entry| entry["data"]["code"].clone()).collect();
    assert_eq!(refused, ["model_test_failed", "model_test_failed"]);
}

#[test]
fn default_model_applies_to_agents_without_a_choice() {
    let server = Server::start(clerk);
    let host = running();
    host.agent("assistant");
    host.ctl(&["agent", "add", "still", "--model", "scripted"]).ok();
    let base = base(&server, "openai");
    let said = host.ctl(&["model", "add", "here", "--kind", "openai", "--base-url", &base, "--default"]).ok();
    assert!(said.stderr.contains("using small, the first model at"), "{}", said.stderr);
    assert!(said.stdout.contains("here is now the default, also for assistant\n"), "{}", said.stdout);
    assert_eq!(host.say("assistant", "hello"), "You said: hello");
    assert!(host.say("still", "hello").contains("not an AI model"));
    host.agent("later");
    assert_eq!(host.say("later", "hello"), "You said: hello");
    host.restart();
    assert_eq!(host.say("assistant", "note milk"), "The file says: milk", "the choice is kept over a restart");
    host.ctl(&["agent", "set", "still", "--model", "here"]).ok();
    assert_eq!(host.say("still", "hello"), "You said: hello", "the new default applies to the next message");
    host.ctl(&["agent", "set", "assistant", "--model", "scripted"]).ok();
    host.ctl(&["agent", "set", "still", "--model", "default"]).ok();
    host.ctl(&["model", "default", "scripted"]).ok();
    let agents = host.ctl(&["--json", "agent", "list"]).ok().json();
    let of = |name: &str| {
        let found = agents.as_array().expect("a list").iter().find(|agent| agent["name"] == name).expect("an agent");
        (found["model"].clone(), found["follows_default"].clone())
    };
    assert_eq!(of("assistant"), (json!("scripted"), json!(false)));
    assert_eq!(of("still"), (json!("scripted"), json!(true)));
    assert_eq!(of("later"), (json!("scripted"), json!(true)));
    assert_eq!(host.entries("model.default_set").len(), 2);
    assert_eq!(host.entries("agent.model_set").len(), 6, "assistant; still, assistant, still; still, later");
}

#[test]
fn three_commands_lead_to_a_conversation_with_a_local_server() {
    let readme = include_str!("../../../README.md");
    let lines: Vec<&str> = readme.lines().map(str::trim).collect();
    let commands: Vec<&str> = lines.iter().copied().filter(|line| line.contains("target/release/ironctl ")).collect();
    let asked = ["quickstart --no-chat", "model add ollama --model llama3.2 --default", "chat assistant"];
    let shown = commands.windows(3).any(|three| three.iter().zip(asked).all(|(line, asked)| line.ends_with(asked)));
    assert!(shown, "the README shows these commands: {commands:?}");

    let server = Server::start(clerk);
    let host = TestHost::new();
    let first = host.ctl(&["quickstart", "--no-chat"]).ok().stdout;
    let (_, next) = first.split_once("To add a model, type:\n").expect("it ends with the next commands");
    assert!(next.contains(" model add ") && next.contains(" --default\n"), "{next}");
    // Another program of this machine may use the port of the preset.
    let base = base(&server, "openai");
    host.ctl(&["model", "add", "ollama", "--kind", "openai", "--base-url", &base, "--model", "small", "--default"])
        .ok();
    assert_eq!(host.say("assistant", "hello"), "You said: hello");
    let again = host.ctl(&["quickstart", "--no-chat"]).ok().stdout;
    assert!(
        again.contains("assistant uses the model endpoint ollama.") && !again.contains("To add a model"),
        "{again}"
    );
}

#[test]
fn invalid_endpoint_is_refused_before_any_request() {
    let server = Server::start(clerk);
    let host = running();
    let here = base(&server, "openai");
    let add = |words: &[&str]| host.ctl(&[&["model", "add"], words].concat());
    let local = |name: &'static str, more: &[&'static str]| {
        let words = [&[name, "--kind", "openai", "--base-url", &here, "--model", "small"], more].concat();
        host.ctl(&[&["model", "add"], words.as_slice()].concat())
    };
    local("Lab", &[]).refused("not a valid name of a model endpoint");
    local("scripted", &[]).refused("reserved for the host");
    local("default", &[]).refused("reserved for the host");
    local("lab", &["--fallback", "lab"]).refused("would be asked twice");
    local("lab", &["--fallback", "unknown"]).refused("there is no model endpoint \"unknown\"");
    local("lab", &["--key", "secret:unknown"]).refused("there is no secret:unknown");
    let mixed_up = local("lab", &["--key", "sk-Zinnober"]).refused("invalid name of a secret");
    assert!(!mixed_up.stderr.contains("Zinnober"), "{}", mixed_up.stderr);
    assert_eq!(local("lab", &["--price-in", "1"]).code, 2);
    assert_eq!(local("lab", &["--price-in", "-1", "--price-out", "1"]).code, 2);
    for url in
        ["http://169.254.169.254/v1", "http://8.8.8.8/v1", "https://user:word@example.com/v1", "ftp://127.0.0.1/"]
    {
        let words = ["lab", "--kind", "openai", "--base-url", url, "--model", "m", "--no-key"];
        add(&words).refused("the address of lab is refused");
    }
    add(&["lab", "--kind", "telepathy", "--base-url", &here, "--model", "m"]).refused("no kind of model endpoint");
    assert_eq!(add(&["lab"]).code, 2, "a kind is required without a preset");
    add(&["openai"]).refused("the key of openai");
    assert_eq!(server.seen().len(), 0, "no request was sent");
    assert_eq!(names(&host), ["scripted"]);

    local("lab", &[]).ok();
    local("lab", &[]).refused("there is a model endpoint lab already");
    local("lab", &["--replace", "--price-in", "2.5", "--price-out", "10"]).ok();
    let listed = host.ctl(&["--json", "model", "list"]).ok().json();
    assert_eq!(
        (&listed[0]["input_price_micros"], &listed[0]["output_price_micros"]),
        (&json!(2_500_000), &json!(10_000_000))
    );
    assert_eq!((host.entries("model.added").len(), host.entries("model.changed").len()), (1, 1));
}

#[test]
fn endpoint_in_use_is_not_removed_and_its_users_are_named() {
    let server = Server::start(clerk);
    let host = running();
    host.ctl_given(KEY, &["secret", "set", "key"]).ok();
    add(&host, &server, "first", "openai", &["--key", "key"], "").ok();
    add(&host, &server, "second", "openai", &["--fallback", "first", "--default"], "").ok();
    host.ctl(&["agent", "add", "a", "--model", "first"]).ok();
    let remove = |what: &str, name: &str| host.ctl(&[what, "remove", name, "--yes"]);
    remove("secret", "key").refused("secret:key is in use by model first");
    remove("model", "first").refused("in use by agent a");
    remove("model", "second").refused("is the default");
    remove("model", "scripted").refused("built into the host");
    remove("model", "third").refused("there is no model endpoint \"third\"");
    host.ctl(&["agent", "set", "a", "--model", "default"]).ok();
    remove("model", "first").refused("the fallback of second");
    host.ctl(&["model", "default", "scripted"]).ok();
    remove("model", "second").ok();
    let said = remove("model", "first").ok();
    assert!(said.stderr.contains("still stored: secret:key"), "{}", said.stderr);
    remove("secret", "key").ok();
    assert_eq!((names(&host), secrets(&host)), (vec!["scripted".to_owned()], json!([])));
    host.ctl(&["agent", "add", "b", "--model", "first"]).refused("there is no model endpoint \"first\"");
    host.ctl(&["agent", "set", "a", "--model", "first"]).refused("there is no model endpoint \"first\"");
    assert_eq!(host.entries("model.removed").len(), 2);
}

#[test]
fn replaced_or_systemd_key_applies_from_the_next_request() {
    let server = Server::start(guarded);
    let mut host = running();
    host.ctl_given(WRONG, &["secret", "set", "key"]).ok();
    add(&host, &server, "lab", "openai", &["--key", "secret:key", "--no-test"], "").ok();
    host.ctl(&["agent", "add", "a", "--model", "lab"]).ok();
    let answer = host.chat("a", "hello");
    assert_eq!(answer["notice"], true, "{answer}");
    assert!(!answer.to_string().contains(WRONG), "{answer}");
    host.ctl_given(KEY, &["secret", "rotate", "key"]).ok();
    assert!(host.ctl(&["model", "test", "lab"]).ok().stdout.contains("lab answered in"));
    assert!(host.say("a", "again").starts_with("You said: "), "the next request has the new key");
    host.down();
    host.ctl(&["key", "rotate", "master", "--yes"]).ok();
    host.up();
    assert!(host.say("a", "after a fresh master key").starts_with("You said: "));
    host.ctl_given(WRONG, &["secret", "rotate", "key"]).ok();
    host.down();
    let directory = host.home.parent().expect("a directory").join("credentials");
    std::fs::create_dir(&directory).expect("made");
    let credential = directory.join("ironclaw-secret-key");
    std::fs::write(&credential, format!("{KEY}\n")).expect("written");
    std::fs::set_permissions(&credential, PermissionsExt::from_mode(0o400)).expect("permissions");
    if host.user == HostUser::Ordinary && nix::unistd::geteuid().is_root() {
        chown(&credential, Some(ORDINARY_UID), Some(ORDINARY_UID)).expect("root can give files away");
    }
    host.set_env("CREDENTIALS_DIRECTORY", Some(directory.to_str().expect("UTF-8")));
    host.up();
    assert!(host.say("a", "with a credential").starts_with("You said: "), "systemd's key precedes the stored one");
}

#[test]
fn model_key_is_in_no_log_ledger_error_or_agent_process() {
    let server = Server::start(guarded);
    let host = TestHost::new().configured("[log]\nlevel = \"debug\"\n").started();
    let added = add(&host, &server, "lab", "openai", &["--default"], KEY);
    // By default, a server on this machine needs no key.
    added.refused("the test failed: the model endpoint `lab`");
    host.ctl_given(WRONG, &["secret", "set", "wrong"]).ok();
    host.ctl_given(KEY, &["secret", "set", "right"]).ok();
    let mut outputs = Vec::new();
    for (kind, key) in [("openai", "wrong"), ("openai", "right"), ("anthropic", "wrong"), ("anthropic", "right")] {
        let name = format!("{kind}-{key}");
        outputs.push(add(&host, &server, &name, kind, &["--key", key, "--no-test"], "").ok());
        outputs.push(host.ctl(&["model", "test", &name]));
        host.ctl(&["agent", "add", &name, "--model", &name]).ok();
        outputs.push(host.ctl(&["--json", "chat", &name, "note milk"]));
        outputs.push(host.ctl(&["why"]));
    }
    outputs.push(host.ctl(&["audit", "rotate"]).ok());
    outputs.push(host.ctl(&["audit", "export"]).ok());
    outputs.push(host.ctl(&["logs"]));
    let needles: Vec<Needle> = [("the key", KEY), ("the wrong key", WRONG)]
        .iter()
        .flat_map(|(name, key)| Needle::key(name, key.as_bytes()))
        .collect();
    let absent = |place: &str, bytes: &[u8]| {
        for needle in &needles {
            assert!(!needle.is_in(bytes), "{} is in {place}", needle.name);
        }
    };
    for answer in &outputs {
        absent("the output", answer.stdout.as_bytes());
        absent("the output", answer.stderr.as_bytes());
    }
    let host_pid = host.pid().expect("the host runs");
    let mut processes: Vec<i32> = descendants(host_pid).into_keys().map(|process| process.pid).collect();
    assert!(processes.len() >= 5, "a launcher, and two processes of each jail");
    processes.push(host_pid);
    for pid in processes {
        for file in ["environ", "cmdline", "comm"] {
            let shown = std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
            absent(&format!("{file} of process {pid}"), &shown);
        }
    }
    let home = || record::files(&host.home);
    for (path, bytes) in home() {
        absent(&format!("{} of the running host", path.display()), &bytes);
    }
    host.down();
    let files = home();
    assert!(files.iter().any(|(path, _)| path == Path::new("logs/host.log")));
    for (path, bytes) in files {
        absent(&path.display().to_string(), &bytes);
    }
    assert!(server.seen().iter().any(|seen| seen.key.as_deref() == Some(KEY)), "the key reached its server");
}

#[test]
fn unopenable_endpoint_blocks_nothing_and_can_be_removed() {
    let host = running();
    let (server, other) = (Server::start(clerk), Server::start(clerk));
    add(&host, &server, "odd", "openai", &["--no-key"], "").ok();
    add(&host, &other, "well", "openai", &["--no-key", "--default"], "").ok();
    host.ctl(&["agent", "add", "a"]).ok();
    host.down();
    let sql = "UPDATE models SET base_url = 'http://8.8.8.8/v1' WHERE name = 'odd'";
    assert_eq!(record::open_to_change(&host.home).execute(sql, []).expect("changed"), 1);
    record::restore_owner(&host);
    host.up();
    assert_eq!(host.say("a", "hello"), "You said: hello");
    let shown = host.ctl(&["--json", "model", "list"]).ok().json();
    let odd = shown.as_array().into_iter().flatten().find(|model| model["name"] == "odd").expect("a listed endpoint");
    assert!(odd["broken"].as_str().is_some(), "{odd}");
    assert!(host.ctl(&["model", "list"]).ok().stdout.contains("broken"));
    let warnings = host.status()["host"]["warnings"].to_string();
    assert!(warnings.contains("model endpoint odd cannot be used"), "{warnings}");
    host.ctl(&["agent", "set", "a", "--model", "odd"]).ok();
    let notice = host.chat("a", "hello")["reply"].to_string();
    assert!(notice.contains("is not valid in the record"), "{notice}");
    host.ctl(&["agent", "set", "a", "--model", "default"]).ok();
    host.ctl(&["model", "remove", "odd", "--yes"]).ok();
    assert!(!host.status()["host"]["warnings"].to_string().contains("odd"));
}
