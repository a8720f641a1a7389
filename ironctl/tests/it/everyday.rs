//! Tests of changes in one line: the command shows the page and asks, approves with `--yes`, or leaves the change waiting. They also test
//! the commands at the prompt of a conversation that decide and set.
//!
//! See [`crate::waiting`] for the page and its digest.

use crate::fake_host::{Answer, FakeHost, agent, json_of};
use crate::terminal::Terminal;
use crate::waiting::{Held, ID, TEXT, approval, change, decision, decisions, posts};
use serde_json::{Value, json};

/// Returns the agent of these tests.
fn helper() -> Value {
    let mut helper = agent("helper");
    helper["follows_default"] = true.into();
    helper["enabled_tools"] = json!(["read_file"]);
    helper["mounts"] = json!([{"source": "/srv/a", "target": "/a", "read_only": true}]);
    helper["packages"] =
        json!({"apt": ["jq"], "npm": ["cowsay"], "layer": "00".repeat(32), "made_at": "2026-01-02T03:04:05Z"});
    helper
}

/// Starts a host that takes one change, which the caller may approve if it is `yours`.
fn host_that_takes_changes(yours: bool) -> FakeHost {
    let held = Held::new([change("pending")]);
    FakeHost::new(move |line, asked| match line {
        "GET /v1/agents/helper" | "GET /v1/agents/agt_00000000000000000000000001" => Answer::json(helper()),
        "POST /v1/changes" => Answer::json(json!({
            "id": ID, "status": "pending", "again": false, "yours": yours,
            "waits_for": "2 different people, each an owner of this host"
        })),
        "GET /v1/models" => Answer::refusal("role_too_low", "only for admins", ""),
        line if line.ends_with("/model") => Answer::json(json!({"model": "m"})),
        line if line.starts_with("GET /v1/usage") => Answer::json(json!({"rows": [], "ceilings": []})),
        line if line.contains("/history?") => Answer::json(json!([])),
        other => held.answer(asked).unwrap_or_else(|| Answer::refusal("unexpected", other, "")),
    })
}

#[test]
fn change_is_shown_asked_and_applied_on_a_terminal() {
    let host = host_that_takes_changes(true);
    let mut terminal = Terminal::running(&host, &["agent", "set", "helper", "--persona", "Be kind."], Some(100));
    terminal.wait_for("Replace the persona");
    terminal.reply("approve, reject, quit? ", "approve");
    terminal.end_after("chg_00000000000000000000000001 is done", 0);
    let said = posts(&host);
    let wanted = json!({"kind": "persona", "agent": "helper", "payload": {"instructions": "Be kind."}, "reason": ""});
    assert_eq!(said[0], ("POST /v1/changes".to_owned(), wanted));
    assert_eq!(said[1], approval(ID, TEXT));
}

#[test]
fn change_without_an_approval_at_the_question_is_withdrawn() {
    let host = host_that_takes_changes(true);
    let mut terminal = Terminal::running(&host, &["agent", "grant-dir", "helper", "/nonexistent"], Some(100));
    terminal.reply("approve, reject, quit? ", "quit");
    assert_eq!(terminal.end(), 1);
    assert_eq!(decisions(&host), [decision(ID, json!({"reject": ""}))]);
}

#[test]
fn change_waits_without_a_terminal_and_without_yes() {
    for (yours, hint) in [(true, "--yes"), (false, "they decide")] {
        let host = host_that_takes_changes(yours);
        let (code, out, err) = host.ironctl(&["agent", "install", "helper", "ripgrep"]);
        assert_eq!((code, out.as_str()), (1, ""), "{err}");
        assert!(err.contains(ID) && err.contains("2 different people, each an owner of this host"), "{err}");
        assert!(err.contains(hint) && err.contains(&format!("ironctl approve {ID}")), "{err}");
        assert_eq!(posts(&host).len(), 1, "nothing is approved");
    }
    // A person who may not approve approves nothing with `--yes` either.
    let host = host_that_takes_changes(false);
    let refused = host.failed(&["agent", "install", "helper", "ripgrep", "--yes"]);
    assert_eq!(refused, (1, "change_pending".to_owned()));
    assert_eq!(posts(&host).len(), 1);
}

#[test]
fn yes_prints_the_page_and_approves_it() {
    let host = host_that_takes_changes(true);
    let words = ["agent", "set", "helper", "--add-tool", "recall", "--remove-tool", "read_file", "--yes"];
    let out = host.output(&words);
    assert!(out.starts_with(TEXT) && out.contains("is done"), "{out}");
    let said = posts(&host);
    assert_eq!(said[0].1["payload"], json!({"add": ["recall"], "remove": ["read_file"]}));
    assert_eq!(said[1], approval(ID, TEXT));
    let (_, out, _) = host.ironctl(&[&words[..], &["--model", "m", "--json"]].concat());
    let document = json_of(&out);
    assert_eq!((&document["model"], &document["changes"][0]["status"]), (&json!("m"), &json!("done")));
}

#[test]
fn complete_lists_keep_what_the_agent_has() {
    let host = host_that_takes_changes(true);
    let payload = |words: &[&str]| {
        let before = posts(&host).len();
        host.output(&[&["agent"][..], words, &["--yes"]].concat());
        posts(&host)[before].1["payload"].clone()
    };
    let had = json!({"source": "/srv/a", "target": "/a", "read_only": true});
    assert_eq!(
        payload(&["grant-dir", "helper", "/nonexistent/b", "--write", "--as", "papers"]),
        json!([had, {"source": "/nonexistent/b", "target": "/papers", "read_only": false}])
    );
    assert_eq!(payload(&["revoke-dir", "helper", "/a"]), json!([]));
    assert_eq!(
        payload(&["install", "helper", "ripgrep"]),
        json!({"apt": ["jq", "ripgrep"], "npm": ["cowsay"], "pypi": []})
    );
    assert_eq!(payload(&["uninstall", "helper", "--npm", "cowsay"]), json!({"apt": ["jq"], "npm": [], "pypi": []}));
}

#[test]
fn unknown_directory_or_package_is_refused_unsent() {
    let host = host_that_takes_changes(true);
    for (words, expected) in [
        (["agent", "revoke-dir", "helper", "/srv/b"], "directory_not_granted"),
        (["agent", "uninstall", "helper", "cowsay"], "package_not_installed"),
    ] {
        assert_eq!(host.failed(&words), (1, expected.to_owned()));
    }
    for words in [&["agent", "revoke-dir", "helper"][..], &["agent", "install", "helper"], &["agent", "set", "helper"]]
    {
        assert_eq!(host.ironctl(words).0, 2, "{words:?}");
    }
    assert_eq!(posts(&host), []);
}

#[test]
fn value_that_is_already_set_is_no_failure() {
    let host = FakeHost::new(|_, _| Answer::refusal("change_empty", "no change: the value is already set", ""));
    let words = ["agent", "set", "helper", "--persona", "Be kind."];
    assert_eq!(host.quiet(&words), "no change: the value is already set\n");
    assert_eq!(host.output(&[&words[..], &["--json"]].concat()), "{\"changes\":[]}\n");
}

#[test]
fn waiting_changes_have_numbers_at_the_prompt() {
    let host = host_that_takes_changes(true);
    let mut terminal = Terminal::running(&host, &["chat", "helper"], Some(100));
    terminal.wait_for("1 change waits; /inbox NUMBER opens one:");
    terminal.wait_for("  1  change: Make agent");
    terminal.say("/inbox 2");
    terminal.wait_for("nothing with number 2 waits here");
    terminal.say("/inbox 1");
    terminal.wait_for("Replace the persona");
    terminal.reply("approve, reject, quit? ", "approve");
    terminal.wait_for("chg_00000000000000000000000001 is done");
    terminal.leave();
    assert_eq!(decisions(&host), [approval(ID, TEXT)]);
}

#[test]
fn model_and_usage_are_shown_and_set_at_the_prompt() {
    let host = host_that_takes_changes(true);
    let mut terminal = Terminal::running(&host, &["chat", "helper"], Some(100));
    for (typed, seen) in [
        ("/model", "helper uses the model endpoint scripted (the default)"),
        ("/usage", "no model requests in this time"),
        ("/model m", "set agent helper to model endpoint m"),
        ("/help", "/inbox [NUMBER]"),
    ] {
        terminal.say(typed);
        terminal.wait_for(seen);
    }
    terminal.leave();
    assert_eq!(posts(&host), [("POST /v1/agents/helper/model".to_owned(), json!({"model": "m"}))]);
}

#[test]
fn new_and_continued_conversations_are_named() {
    let threads = |threads: Value| {
        FakeHost::new(move |line, asked| match line {
            "GET /v1/agents/helper/threads" => Answer::json(threads.clone()),
            line if line.ends_with("/messages") => Answer::refusal("sent", &asked.body["thread"].to_string(), ""),
            other => Answer::refusal("unexpected", other, ""),
        })
    };
    let host = threads(json!([]));
    assert_eq!(host.failed(&["chat", "helper", "hello", "--continue"]), (1, "no_conversation".to_owned()));
    let (_, _, err) = host.ironctl(&["chat", "helper", "hello", "--new"]);
    let sent = host.asked().last().expect("a message").body["thread"].as_str().expect("a name").to_owned();
    assert!(sent.len() == "20260102-030405-678".len() && err.contains(&format!("--thread {sent}`")), "{sent}: {err}");
    let last = |name: Value| json!([{"thread": name, "session_id": "ses_00000000000000000000000001", "last_active_at": "2026-01-02T03:04:05Z"}]);
    for (name, words) in [(json!("work"), "conversation work, last used 2026-"), (Value::Null, "without a name")] {
        let host = threads(last(name.clone()));
        let (_, _, err) = host.ironctl(&["chat", "helper", "hello", "--continue"]);
        assert!(err.contains(words), "{err}");
        assert_eq!(host.asked().last().expect("a message").body["thread"], name);
    }
    for words in [
        ["--new", "--continue", "--wait=1s"],
        ["--thread=x", "--new", "--wait=1s"],
        ["--thread=x", "--continue", "--wait=1s"],
    ] {
        assert_eq!(host.ironctl(&[&["chat", "helper", "hello"][..], &words].concat()).0, 2, "{words:?}");
    }
}
