//! Tests of messages and answers, from the command line and from a prompt on a terminal.
//!
//! See [`crate::fake_host`].

use crate::fake_host::{Answer, Asked, FakeHost, agent, code_of, json_of, notice, recorded, view};
use crate::terminal::Terminal;
use crate::waiting::change;
use serde_json::{Value, json};

type Event = (&'static str, Value);

pub fn host_that_answers(reply: &'static str) -> FakeHost {
    FakeHost::new(move |line, _| conversation(line, reply))
}

pub fn conversation(line: &str, reply: &str) -> Answer {
    match line {
        "POST /v1/agents/assistant/messages" | "POST /v1/agents/agt_00000000000000000000000001/messages" => recorded(),
        "GET /v1/agents/assistant" => Answer::json(agent("assistant")),
        "GET /v1/agents/agt_00000000000000000000000001/history?limit=20" => Answer::json(json!([
            {"at": "2026-01-02T03:04:05Z", "author": "person", "text": "earlier question"},
            {"at": "2026-01-02T03:04:06Z", "author": "agent", "text": "earlier answer"}
        ])),
        "GET /v1/messages/msg_00000000000000000000000001/events?decides=true" => Answer::events(&[
            ("stage", json!({"seq": 1, "at": "t", "stage": "message.recorded", "outcome": "done"})),
            ("stage", json!({"seq": 2, "at": "t", "stage": "turn.opened", "outcome": "done"})),
            ("message", view(Some(reply), None)),
        ]),
        "GET /v1/messages/msg_00000000000000000000000001/why" => Answer::json(json!({
            "message": view(Some(reply), None), "stages": [], "summary": "It was answered."
        })),
        "GET /v1/messages/msg_00000000000000000000000001/reasoning" => Answer::json(json!({
            "message_id": "msg_00000000000000000000000001", "thoughts": ["They greet\nme \u{1b}[2J."]
        })),
        line if line.starts_with("GET /v1/messages/msg_00000000000000000000000001?wait_ms=") => {
            Answer::json(view(Some(reply), None))
        }
        other => Answer::refusal("unexpected", other, ""),
    }
}

/// Runs `ironctl chat assistant` on a terminal of unknown size.
pub fn open_chat(host: &FakeHost) -> Terminal {
    Terminal::running(host, &["chat", "assistant"], None)
}

fn posted(host: &FakeHost) -> Asked {
    host.posted().into_iter().next().expect("a message was posted")
}

#[test]
fn answer_is_printed_without_control_characters() {
    let host = host_that_answers("hi\n\u{1b}]0;pwned\u{7}there");
    assert_eq!(host.quiet(&["chat", "assistant", "hello"]), "hi\n\\u{1b}]0;pwned\\u{7}there\n");
    assert_eq!(posted(&host).body, json!({"text": "hello"}));
}

#[test]
fn scripts_get_ids_and_the_reply() {
    let host = host_that_answers("hi");
    assert_eq!(
        host.json(&["chat", "assistant", "hello"]),
        json!({"message_id": "msg_00000000000000000000000001", "session_id": "ses_00000000000000000000000001", "turn_id": "trn_00000000000000000000000001", "reply": "hi",
               "notice": false, "status": "delivered", "calls": [], "reasoning": ["They greet\nme \u{1b}[2J."]})
    );
}

#[test]
fn waiting_change_is_shown_to_a_person_and_not_to_a_script() {
    let host = FakeHost::new(|line, _| match line {
        "GET /v1/waiting?agent=assistant" => {
            let mut others = change("pending");
            others["yours"] = json!(false);
            Answer::json(json!([change("pending"), others]))
        }
        other => conversation(other, "hi"),
    });
    let (code, out, err) = host.ironctl(&["chat", "assistant", "hello"]);
    assert_eq!((code, out.as_str(), err.as_str()), (0, "hi\n", "1 change waits: ironctl inbox\n"));
    let before = host.asked().len();
    let out = host.quiet(&["chat", "assistant", "hello", "--json"]);
    assert!(!out.contains("change"), "{out}");
    let asked = &host.asked()[before..];
    assert!(!asked.is_empty() && asked.iter().all(|asked| !asked.line.contains("/waiting")), "{asked:?}");
}

#[test]
fn message_can_come_from_stdin_with_files() {
    let host = host_that_answers("hi");
    let notes = host.home.path().join("notes.txt");
    std::fs::write(&notes, "grüße").expect("written");
    let notes = notes.to_string_lossy();
    assert_eq!(host.piped(&["chat", "assistant", "--file", &notes], "read this\n").0, 0);
    let files = json!([{"name": "notes.txt", "text": "grüße"}]);
    // A pipe asks for no more than a plain message.
    let expected = json!({"text": "read this", "files": files, "allow": ["+read", "+write"], "untyped": true});
    assert_eq!(posted(&host).body, expected);
}

#[test]
fn file_over_the_bound_sends_nothing() {
    let host = host_that_answers("hi");
    let big = host.home.path().join("big.bin");
    std::fs::File::create(&big).expect("made").set_len(32 * 1024 * 1024 + 1).expect("sparse");
    let (code, _, err) = host.ironctl(&["chat", "assistant", "hello", "--file", &big.to_string_lossy()]);
    assert_eq!(code, 1);
    assert!(err.contains("big.bin: it is longer than 32 MiB"), "{err}");
    let nine: Vec<&str> = ["--file", "notes.txt"].repeat(9);
    assert_eq!(host.ironctl(&[&["chat", "assistant", "hello"], &nine[..]].concat()).0, 2);
    assert!(host.asked().is_empty());
}

#[test]
fn file_without_room_in_the_message_goes_to_the_workspace() {
    let host = FakeHost::new(|line, _| match line {
        "POST /v1/agents/assistant/session" => Answer::json(json!({"session_id": "ses_00000000000000000000000001"})),
        line if line
            .starts_with("POST /v1/sessions/ses_00000000000000000000000001/files?path=inbox%2Fphoto%2Epng&") =>
        {
            Answer::refusal("file_exists", "the workspace already has photo.png", "")
        }
        line if line.starts_with("POST /v1/sessions/ses_00000000000000000000000001/files?") => {
            let path = line.split(['=', '&']).nth(1).expect("a path").replace("%2E", ".").replace("%2F", "/");
            Answer::json(json!({
                "session_id": "ses_00000000000000000000000001", "path": path, "bytes": 12, "digest": "00".repeat(32)
            }))
        }
        other => conversation(other, "hi"),
    });
    let at = |name: &str| host.home.path().join(name).to_string_lossy().into_owned();
    std::fs::write(at("photo.png"), b"\x89PNG\r\n\x1a\n....").expect("written");
    std::fs::write(at("long.txt"), vec![b'x'; 256 * 1024]).expect("written");
    std::fs::write(at("notes.txt"), "short").expect("written");
    let files = ["--file", &at("photo.png"), "--file", &at("long.txt"), "--file", &at("notes.txt")];
    let (code, out, err) = host.ironctl(&[&["chat", "assistant", "look", "--thread", "work"], &files[..]].concat());
    assert_eq!((code, out.as_str()), (0, "hi\n"), "{err}");
    assert!(err.contains("photo.png is in the workspace as inbox/photo-2.png (12 bytes, image/png)"), "{err}");
    let asked = host.posted();
    assert_eq!(asked[0].body, json!({"thread": "work"}));
    let message = &asked.last().expect("a message").body;
    assert_eq!((&message["text"], &message["thread"]), (&json!("look"), &json!("work")));
    let texts: Vec<&str> =
        message["files"].as_array().expect("files").iter().filter_map(|file| file["text"].as_str()).collect();
    assert!(texts[0].contains("as inbox/photo-2.png (12 bytes, image/png)"), "{texts:?}");
    assert!(texts[1].contains("as inbox/long.txt (12 bytes, text/plain)"), "{texts:?}");
    let image = json!({ "path": "inbox/photo-2.png", "digest": "00".repeat(32) });
    let images: Vec<&Value> = message["files"].as_array().expect("files").iter().map(|file| &file["image"]).collect();
    assert_eq!(images, [&image, &Value::Null, &Value::Null], "only an image is named as one");
    assert_eq!(texts[2], "short");
}

fn host_without_answer(reason: Option<&'static str>) -> FakeHost {
    FakeHost::new(move |line, _| match line {
        line if line.ends_with("/why") => {
            Answer::json(json!({"message": view(None, None), "stages": [], "summary": "It waits for the model x."}))
        }
        line if line.starts_with("GET /v1/messages/msg_00000000000000000000000001?wait_ms=") => {
            Answer::json(view(None, reason))
        }
        other => conversation(other, ""),
    })
}

#[test]
fn no_answer_in_time_points_at_why() {
    let host = host_without_answer(None);
    let (code, out, err) = host.ironctl(&["chat", "assistant", "hello", "--wait", "300ms", "--json"]);
    assert_eq!((code, out.as_str(), code_of(&err).as_str()), (1, "", "no_answer_yet"));
    let error = &json_of(&err)["error"];
    assert_eq!(error["hint"], "ironctl why msg_00000000000000000000000001");
    let message = error["message"].as_str().expect("words");
    assert!(message.contains("It waits for the model x") && message.contains("--wait"), "{message}");
}

#[test]
fn parked_session_is_reported_at_once_with_its_reason() {
    let host = host_without_answer(Some("the session is parked: three launches failed"));
    let (code, _, err) = host.ironctl(&["chat", "assistant", "hello"]);
    assert_eq!(code, 1);
    assert!(err.contains("the session is parked: three launches failed"), "{err}");
    assert!(err.contains("hint: ironctl why msg_00000000000000000000000001"), "{err}");
}

#[test]
fn conversation_shows_history_progress_and_answers() {
    let host = host_that_answers("hi \u{1b}[2J");
    let mut terminal = open_chat(&host);
    terminal.say("hello");
    terminal.wait_for("assistant> hi \\u{1b}[2J");
    terminal.say("/why");
    terminal.wait_for("It was answered.");
    let seen = terminal.leave();
    for words in ["you> earlier question", "assistant> earlier answer", "… the agent works"] {
        assert!(seen.contains(words), "{words}: {seen:?}");
    }
    assert_eq!(posted(&host).body, json!({"text": "hello"}));
}

#[test]
fn thoughts_are_shown_on_demand_until_asked_to_stop() {
    let host = host_that_answers("hi");
    let mut terminal = open_chat(&host);
    let asked = || host.asked().iter().filter(|asked| asked.line.ends_with("/reasoning")).count();
    terminal.say("hello");
    terminal.wait_for("assistant> hi");
    assert_eq!(asked(), 0);
    terminal.say("/reasoning");
    terminal.wait_for("    | me");
    assert_eq!(asked(), 1, "those of the last answer");
    terminal.say("hello");
    terminal.wait_for("    | me");
    terminal.say("/reasoning");
    terminal.say("hello");
    terminal.wait_for("assistant> hi");
    terminal.leave();
    assert_eq!(asked(), 2, "one for each answer while they are shown");
}

#[test]
fn commands_at_the_prompt_reach_no_agent() {
    let host = host_that_answers("hi");
    let mut terminal = open_chat(&host);
    terminal.wait_for("you> \r");
    for (typed, seen) in [("/exi", "did you mean /exit?"), ("/help", "/inbox"), ("/new work", "--thread work")] {
        terminal.type_in(&format!("{typed}\r"));
        terminal.wait_for(seen);
        terminal.wait_for("you> \r");
    }
    assert!(host.posted().is_empty(), "{:?}", host.asked());
    terminal.type_in("//etc/hosts\r");
    terminal.wait_for("assistant> hi");
    assert_eq!(posted(&host).body, json!({"text": "/etc/hosts", "thread": "work"}));
    terminal.say("/exit");
    assert!(terminal.ironctl.wait().expect("ironctl ends").success());
}

/// Starts a host that streams these events before this final state of the message. A poll of the message has the answer `polled`.
fn host_that_streams(events: Vec<Event>, last: Value, polled: &'static str) -> FakeHost {
    FakeHost::new(move |line, _| match line {
        "GET /v1/messages/msg_00000000000000000000000001/events?decides=true" => {
            Answer::events(&[&events[..], &[("message", last.clone())]].concat())
        }
        other => conversation(other, polled),
    })
}

/// Returns an event of a stage.
fn stage(name: &str, outcome: &str, reason: &str) -> Event {
    ("stage", json!({"seq": 3, "at": "t", "stage": name, "outcome": outcome, "reason": reason}))
}

/// Returns an event with words of the model.
fn draft(attempt: u32, from: u64, text: &str) -> Event {
    ("draft", json!({ "attempt": attempt, "from": from, "text": text }))
}

/// Returns an event with the progress of a call in these words.
fn progress(words: &str) -> Event {
    let call = "call_00000000000000000000000001";
    ("progress", json!({ "call_id": call, "tool": "list_dir", "progress": 3.0, "total": 10.0, "words": words }))
}

/// Returns the screen after one message with these events and this final state.
fn screen_of(events: Vec<Event>, last: Value) -> String {
    let host = host_that_streams(events, last, "");
    let mut terminal = open_chat(&host);
    terminal.say("hello");
    terminal.leave()
}

#[test]
fn answer_on_the_screen_has_each_word_once() {
    for (case, words, reply, shown, once) in [
        ("escaped", &[(1, 0, "It \u{1b}[2J"), (1, 8, "rai")][..], "It \u{1b}[2Jrains.", "It \\u{1b}[2J", "rains."),
        ("differs", &[(1, 0, "It snows, ")], "It rains.", "It snows, \r\nassistant> It rains.\r\n", "rains"),
        ("another attempt", &[(1, 0, "It sn"), (2, 0, "It "), (2, 3, "rains")], "It rains.", "It sn\r\n", "rains"),
        ("text after a gap", &[(1, 5, "ains")], "It rains.", "It rains.\r\n", "rains"),
    ] {
        let drafts = words.iter().map(|&(attempt, from, text)| draft(attempt, from, text));
        let ends = ["output.sealed", "delivery.intended"].map(|name| stage(name, "done", ""));
        let seen = screen_of(drafts.chain(ends).collect(), view(Some(reply), None));
        let is_streamed = words[0].1 == 0;
        assert!(!is_streamed || !seen.contains("… delivery"), "{case}: progress overwrites the words: {seen:?}");
        assert!(seen.contains(&format!("assistant> {shown}")), "{case}: {seen:?}");
        assert!(!seen.contains("It \u{1b}[2J"), "{case}: control characters are escaped: {seen:?}");
        let whole = format!("assistant> {}\r\n", reply.replace('\u{1b}', "\\u{1b}"));
        assert!(seen.contains(&whole), "{case}: {seen:?}");
        assert_eq!(seen.matches(once).count(), 1, "{case}: {seen:?}");
    }
}

#[test]
fn tools_of_a_turn_are_shown_between_its_words() {
    let events = vec![
        stage("model.asked", "done", ""),
        draft(1, 0, "I shall look."),
        stage("output.sealed", "done", ""),
        stage("call.recorded", "done", "tool list_dir, call call_1"),
        progress("⟦ok⟧ \u{1b}[2J\nnext"),
        stage("call.reported", "done", "tool list_dir, call call_1"),
        stage("call.refused", "refused", "tool run_command, call call_2, it is not enabled"),
        stage("model.asked", "done", ""),
        draft(2, 0, "It is emp"),
    ];
    let seen = screen_of(events, view(Some("It is empty."), None));
    for words in [
        "… the model works",
        "… list_dir runs",
        "… list_dir runs: 3 of 10: \"\\u{27e6}ok\\u{27e7} \\u{1b}[2J next\"",
        "  run_command: refused: it is not enabled\r\n",
        "assistant> I shall look.\r\n",
        "  list_dir: done\r\n",
        "assistant> It is empty.\r\n",
    ] {
        assert!(seen.contains(words), "{words}: {seen:?}");
    }
    assert!(!seen.contains("interrupted"), "an answer with a call is whole: {seen:?}");
}

#[test]
fn interrupted_answer_stays_with_the_reason() {
    let failed = stage("model.failed", "refused", "the endpoint broke off");
    let (cancelled, snows) = (notice("This was cancelled."), view(Some("It snows."), None));
    let told = "the host says:\r\nThis was cancelled.";
    for (event, last, reason, end) in [
        (None, cancelled.clone(), "no more of this answer came", told),
        (Some(draft(2, 0, "It snows")), snows, "the host asks the model again", "assistant> It snows.\r\n"),
        (Some(failed), cancelled, "the endpoint broke off", told),
    ] {
        let seen = screen_of([draft(1, 0, "It rai")].into_iter().chain(event).collect(), last);
        assert!(seen.contains(&format!("assistant> It rai\r\n(interrupted: {reason})\r\n")), "{seen:?}");
        assert!(seen.contains(end), "{reason}: {seen:?}");
    }
}

#[test]
fn without_a_terminal_only_the_answer_is_printed() {
    let host = host_that_streams(vec![draft(1, 0, "It snows")], view(Some("It rains."), None), "It rains.");
    assert_eq!(host.quiet(&["chat", "assistant", "hello"]), "It rains.\n");
}

#[test]
fn message_is_retried_and_its_answer_printed() {
    let host = FakeHost::new(|line, _| match line {
        "POST /v1/messages/last/retry" => recorded(),
        "POST /v1/messages/msg_00000000000000000000000002/retry" => {
            Answer::refusal("message_answered", "msg_00000000000000000000000002 is answered", "")
        }
        other => conversation(other, "It rains."),
    });
    assert_eq!(host.quiet(&["message", "retry", "last"]), "It rains.\n");
    let (code, _, err) = host.ironctl(&["message", "retry", "msg_00000000000000000000000002"]);
    assert_eq!(code, 1);
    assert!(err.contains("msg_00000000000000000000000002 is answered"), "{err}");
}

#[test]
fn ctrl_c_cancels_the_answer_and_the_conversation_continues() {
    let host = FakeHost::new(|line, _| match line {
        "GET /v1/agents/assistant" => Answer::json(agent("assistant")),
        "POST /v1/agents/agt_00000000000000000000000001/messages" => recorded(),
        "GET /v1/messages/msg_00000000000000000000000001/events?decides=true" => Answer::hanging_events(&[(
            "stage",
            json!({"seq": 1, "at": "2026-01-02T03:04:05Z", "stage": "model.asked", "outcome": "done"}),
        )]),
        "POST /v1/sessions/ses_00000000000000000000000001/cancel" => Answer::json(json!({
            "session_id": "ses_00000000000000000000000001", "turn_id": "trn_00000000000000000000000001", "messages": ["msg_00000000000000000000000001"], "running": true
        })),
        line if line.starts_with("GET /v1/messages/msg_00000000000000000000000001") => {
            Answer::json(notice("This was cancelled."))
        }
        _ => Answer::json(json!([])),
    });
    let mut terminal = open_chat(&host);
    terminal.say("hello");
    terminal.wait_for("… the model works");
    terminal.interrupt();
    host.wait_for_request("POST /v1/sessions/ses_00000000000000000000000001/cancel");
    // This host never sends the notice; a second interrupt ends the wait.
    terminal.interrupt();
    terminal.wait_for("This was cancelled.");
    terminal.leave();
}

#[test]
fn closed_terminal_ends_the_conversation() {
    let host = host_that_answers("hi");
    let mut terminal = open_chat(&host);
    terminal.wait_for("you> \r");
    let Terminal { mut ironctl, screen, .. } = terminal;
    drop(screen);
    ironctl.wait().expect("ironctl ends");
}

#[test]
fn sources_of_the_last_reply_are_listed() {
    let mut answered = view(Some("It rains [G]."), None);
    answered["shown_as"] = json!("It rains [I].");
    answered["remarks"] = json!(["the agent wrote [G] at 1 place"]);
    let shown = answered.clone();
    let host = FakeHost::new(move |line, _| match line {
        "GET /v1/messages/msg_00000000000000000000000001/events?decides=true" => {
            Answer::events(&[draft(1, 0, "It rains [G"), ("message", answered.clone())])
        }
        "GET /v1/messages/msg_00000000000000000000000001?sources=true" => {
            let mut view = shown.clone();
            view["sources"] = json!({ "results": 0, "is_whole": true, "summary": "rests on no result", "rests_on": [{
                "item": "itm_00000000000000000000000001", "seq": 2, "kind": "note", "counts": false, "at": "2026-01-02T03:04:05Z",
                "authors": ["tool recall"], "by": "tool recall", "labels": ["External"], "tool": "recall",
            }]});
            Answer::json(view)
        }
        other => conversation(other, "It rains [I]."),
    });
    let mut terminal = open_chat(&host);
    terminal.say("hello");
    terminal.wait_for("assistant> It rains [I].");
    terminal.wait_for("the agent wrote [G] at 1 place");
    terminal.say("/sources");
    terminal.wait_for("the reply rests on no result");
    terminal.wait_for("notes of the agent");
    terminal.leave();
}

#[test]
fn url_of_unknown_origin_is_never_on_the_screen_as_a_link() {
    let reply = "See https://evil.example/?q=1 and www.evil.example now.";
    let shown = "See ⟨https: //evil.example/?q=1⟩ (unknown address) and ⟨www. evil.example⟩ (unknown address) now.";
    let mut last = view(Some(reply), None);
    (last["shown_as"], last["unknown_urls"]) = (json!(shown), json!(["https://evil.example/?q=1", "www.evil.example"]));
    let drafts = ["See htt", "ps://evil.example/?q=1 and ", "www.evil.example now."];
    let mut from = 0;
    let mut events: Vec<Event> = Vec::new();
    for text in drafts {
        events.push(draft(1, from, text));
        from += text.len() as u64;
    }
    events.push(("message", last.clone()));
    let seen = screen_of(events.clone(), last.clone());
    assert!(!seen.contains("://") && !seen.contains("www.evil"), "{seen}");
    assert!(seen.contains("assistant> See ⟨https: //evil.example/?q=1⟩"), "{seen}");
    // An interrupted answer has no word of the host about its URLs.
    events.pop();
    events.push(draft(2, 0, "No."));
    events.push(("message", view(Some("No."), None)));
    let seen = screen_of(events, view(Some("No."), None));
    assert!(!seen.contains("://") && seen.contains("(unknown address)"), "{seen}");
}
