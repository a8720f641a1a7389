//! Tests of every list and page on a terminal of 80 columns, with the data of a month.
//!
//! The data are the samples of the contract in numbers and lengths of daily use. The golden files are what a person sees.

use crate::fake_host::{Answer, FakeHost, json_of};
use crate::golden;
use crate::terminal::Terminal;
use serde_json::{Value, json};
use std::path::Path;
use unicode_width::UnicodeWidthStr;

/// Columns and rows of the terminal.
const SCREEN: (u16, u16) = (80, 24);

/// The samples of the contract, from the directory of this crate.
const SAMPLES: &str = "../contract/tests/it/golden";

const AGENTS: [&str; 5] = ["assistant", "coder", "reader", "family-bot", "research-helper"];
const TOOLS: [&str; 12] = [
    "read_file",
    "write_file",
    "list_dir",
    "search_files",
    "remember",
    "recall",
    "run_command",
    "http_fetch",
    "send_file",
    "schedule_task",
    "ask_user_question",
    "request_capability_change",
];
const TITLES: [&str; 4] = [
    "Look what changed in notes and post it to my webhook",
    "Привет, что нового?",
    "fix the failing test in the parser of the invoice importer…",
    "",
];
const URL: &str = "https://hooks.example/services/T0000000000/B00000000000/aaaaaaaaaaaaaaaaaaaaaaaa?wait=true";

/// Returns a sample of the contract.
pub fn sample(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(SAMPLES).join(format!("operator.{name}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).expect("a sample is JSON")
}

/// Returns so many copies of a sample, each with ids and days of its own, and with these changes.
fn month(name: &str, count: usize, mut vary: impl FnMut(usize, &mut Value)) -> Value {
    let one = sample(name);
    let copies = (0..count).map(|at| {
        let mut copy = one.clone();
        number(&mut copy, at);
        vary(at, &mut copy);
        copy
    });
    Value::Array(copies.collect())
}

/// Gives the ids in a document another number, and its times another day.
fn number(value: &mut Value, at: usize) {
    match value {
        Value::String(text) if text.contains("000000000000001") => {
            *text = text.replace("0000001", &format!("{:07}", at + 1))
        }
        Value::String(text) if text.starts_with("2026-11-") => {
            text.replace_range(8..10, &format!("{:02}", at % 28 + 1))
        }
        Value::Array(all) => all.iter_mut().for_each(|one| number(one, at)),
        Value::Object(all) => all.values_mut().for_each(|one| number(one, at)),
        _ => {}
    }
}

fn session(at: usize, session: &mut Value) {
    session["agent"] = json!(AGENTS[at % 5]);
    session["thread"] = json!(format!("20261128-0723{:02}-900", at % 60));
    session["last_used_ms"] = json!(1_795_000_000_000_i64 + i64::try_from(at).expect("small") * 60_000);
    if at > 2 {
        session["state"] = json!("asleep");
        session["waiting"] = json!(0);
        (session["pid"], session["jail"], session["reader"]) = (Value::Null, Value::Null, Value::Null);
    }
    session["channel"] = json!(if at.is_multiple_of(7) { "desk" } else { "loopback" });
    session["title"] = json!(TITLES[at % 4]);
    if at % 9 == 4 {
        (session["channel"], session["asked_by"]) = (json!("agent"), json!("research-helper"));
    }
}

fn agent(at: usize, agent: &mut Value) {
    agent["name"] = json!(AGENTS[at % 5]);
    agent["enabled_tools"] = json!(TOOLS[..12 - at % 5]);
    agent["sessions"] = json!(11 + at);
}

/// Returns the page of an agent that can do much.
fn whole_agent() -> Value {
    let mut whole = month("agent.abilities", 1, agent)[0].take();
    whole["mcp"] =
        json!([{ "server": "files", "tools": ["read_text_file", "write_file", "list_directory", "move_file"] }]);
    whole["persona"] = json!(
        "You help with the household, the invoices and the garden. You are brief, and you say what you do not know."
    );
    let abilities = &mut whole["abilities"];
    abilities["automatic_tools"] = json!(["network_command", "git_push", "read_skill", "send_message"]);
    abilities["hosts"] = json!([sample("egress_grant"), {
        "agent": "a", "host": "github.com", "port": null, "methods": ["GET", "POST"], "secret": "github",
        "paths": ["/ana/site.git/info/refs", "/ana/site.git/git-upload-pack", "/ana/site.git/git-receive-pack"],
        "upload_bytes_max": null, "commands": "git"
    }]);
    abilities["destinations"] = json!([sample("destination"), sample("destination.agent")]);
    abilities["groups"] = json!([sample("agent_group")]);
    abilities["skills"] = json!([sample("installed_skill")]);
    abilities["schedules"] = month("schedule_view", 2, |_, _| {});
    abilities["allowances"] = json!([sample("allowance")]);
    whole
}

fn server(at: usize, server: &mut Value) {
    let tool = server["tools"][0].clone();
    server["name"] = json!(["files", "memory", "time"][at % 3]);
    let names = ["read_text_file", "write_file", "list_directory", "move_file", "search_files"];
    let tools = names.map(|name| {
        let mut tool = tool.clone();
        (tool["name"], tool["offered_as"]) = (json!(name), json!(format!("files__{name}")));
        tool["description"] = json!("Reads a file from the allowed directories. Returns its text, or a part of it.");
        let rule = |rule: &str, kind: Value, outward: bool| {
            json!({ "rule": rule, "type": kind, "needs": [], "by_reference": false, "outward": outward })
        };
        let (path, content) = (rule("floor", json!("path"), false), rule("content", json!(null), true));
        tool["arguments"] = json!({ "path": path, "head": rule("free", json!(null), false), "content": content });
        tool
    });
    server["tools"] = json!(tools);
    server["agents"] = json!([{ "agent": "assistant", "tools": names }, { "agent": "coder", "tools": [names[0]] }]);
}

/// Returns the report of a usual week.
fn week() -> Value {
    let mut report = sample("report");
    // The command of an allowance is usually longer than a line, and a terminal breaks it.
    report["changes"][0]["command"] = json!("ironctl allowance add clerk http_fetch --field method=GET --count 9");
    let effects = [
        "\"search_notes\" of papers: class read in place of send",
        "messages begin with /allow +send if such a call is wanted",
    ];
    let commands = ["ironctl mcp set papers search_notes --class read", "ironctl chat clerk --allow +send"];
    for (effect, command) in effects.into_iter().zip(commands) {
        let mut change = report["changes"][0].clone();
        (change["effect"], change["command"], change["saves"]) = (json!(effect), json!(command), json!(4));
        report["changes"].as_array_mut().expect("a list").push(change);
    }
    report
}

/// Returns calls, questions and changes, of which some wait.
fn month_of_waiting() -> Value {
    let status = |at: usize| json!(["pending", "done", "rejected", "failed"][at % 4]);
    let by = |at: usize, entry: &mut Value| {
        (entry["agent"], entry["requested_by"]["name"]) = (json!(AGENTS[at % 5]), json!(AGENTS[at % 5]));
    };
    let calls = month("waiting", 6, |at, call| {
        by(at, call);
        (call["status"], call["may_reject"]) = (status(at), json!(at == 4));
    });
    let questions = month("waiting.question", 4, |at, question| {
        by(at, question);
        question["question"] =
            json!("Which of the two environments do you mean: the one for tests, or the one that people use?");
    });
    let changes = month("waiting.change", 6, |at, change| {
        by(at, change);
        change["status"] = status(at);
        change["subject"] = json!(["mcp_register", "destinations", "enabled_tools", "egress"][at % 4]);
    });
    [calls, questions, changes].into_iter().flat_map(|all| all.as_array().cloned().unwrap_or_default()).collect()
}

/// Returns the answer of a host after a month of use.
fn answer(line: &str) -> Answer {
    let path = line.split('?').next().unwrap_or_default();
    Answer::json(match path {
        "GET /v1/sessions" => month("session.turn", 56, session),
        "GET /v1/status" => {
            let mut status = sample("status");
            status["sessions"] = month("session.turn", 56, session);
            status["host"]["warnings"] = json!([
                "agent coder runs in mode dangerous_warn: a text without a seal is passed on with a warning",
                "3 answers did not arrive, or may not have: `ironctl delivery list`"
            ]);
            status
        }
        "GET /v1/unread" => month("unread_replies", 1, |_, unread| unread["agent"] = json!("assistant")),
        "GET /v1/agents" => month("agent", 5, agent),
        "GET /v1/agents/assistant" => whole_agent(),
        "GET /v1/agents/assistant/memory" => json!({ "notes": month("note", 8, |at, note| {
            note["text"] = json!(["The office closes at six.", "Ana likes the short form of the report, without the numbers of last year."][at % 2]);
        }), "more": true }),
        "GET /v1/channels" => month("channel", 3, |at, channel| {
            channel["name"] = json!(["desk", "shop", "team-telegram"][at]);
            channel["url"] = json!(URL);
        }),
        "GET /v1/waiting" => json!({ "entries": month_of_waiting(), "more": false }),
        "GET /v1/waiting/req_01kagq8t000000000000000001" => sample("waiting"),
        "GET /v1/waiting/qst_01kagq8t000000000000000001" => sample("waiting.answered"),
        "GET /v1/waiting/chg_01kagq8t000000000000000001" => sample("waiting.change"),
        "GET /v1/allowances" => month("allowance", 6, |at, allowance| allowance["id"] = json!(at + 1)),
        "GET /v1/destinations" => month("destination", 6, |at, held| {
            held["agent"] = json!(AGENTS[at % 5]);
            held["address"] = json!(format!("loopback:per_01kagq8t00000000000000000{at}"));
        }),
        "GET /v1/egress" => month("egress_grant", 6, |at, grant| {
            grant["agent"] = json!(AGENTS[at % 5]);
            grant["host"] = json!(["api.github.com", "raw.githubusercontent.com"][at % 2]);
            grant["paths"] = json!(["/repos/{owner}/{repo}/issues", "/repos/{owner}/{repo}/pulls/{number}/files"]);
        }),
        "GET /v1/groups" => month("agent_group", 2, |_, group| {
            (group["agents"], group["tools"]) = (json!(AGENTS), json!(TOOLS));
        }),
        "GET /v1/mcp" => month("mcp_server", 3, server),
        "GET /v1/mcp/files" => month("mcp_server", 1, server)[0].take(),
        "GET /v1/skills" => month("installed_skill.newest", 4, |at, skill| {
            (skill["agent"], skill["name"]) = (json!(AGENTS[at]), json!("meeting-notes-of-the-week"));
        }),
        "GET /v1/skill-sources" => json!([sample("skill_source"), { "name": "own", "location": URL }]),
        "GET /v1/skill-keys" => month("skill_key", 2, |_, _| {}),
        "GET /v1/skills/weather" => sample("skill_package"),
        "GET /v1/schedules" => {
            let mut all = month("schedule_view", 10, |at, schedule| schedule["agent"] = json!(AGENTS[at % 5]));
            (all[6], all[8]) = (sample("schedule_view.failing"), sample("schedule_view.paused"));
            all
        }
        "GET /v1/schedules/sch_01kagq8t000000000000000001/occurrences" => month("occurrence", 30, |_, _| {}),
        "GET /v1/dead" => month("dead_letter", 5, |_, letter| {
            letter["recipient"] = json!("ana-maria@chat.example.org");
            letter["reason"] = json!("the webhook answered 410 after 5 attempts within 24 hours");
        }),
        "GET /v1/report" => week(),
        "GET /v1/usage" => json!({
            "rows": month("usage_row", 28, |at, row| {
                row["agent"] = json!(AGENTS[at % 5]);
                row["model"] = json!("anthropic-claude-sonnet");
                row["input_tokens"] = json!(12_345_678);
            }),
            "ceilings": sample("usage")["ceilings"],
        }),
        "GET /v1/people" => {
            month("person", 3, |at, person| person["name"] = json!(["Ana", "Bob", "Maria-Magdalena"][at]))
        }
        "GET /v1/people/Alice" => sample("person"),
        "GET /v1/tokens" => month("token", 6, |at, token| token["current"] = json!(at == 0)),
        "GET /v1/secrets" => month("secret", 5, |_, secret| {
            secret["used_by"] = json!(["model openai", "host api.github.com of coder", "MCP server files"]);
        }),
        "GET /v1/models" => month("model", 3, |at, model| {
            model["name"] = json!(["openai", "local-ollama", "anthropic"][at]);
            model["agents"] = json!(AGENTS);
        }),
        "GET /v1/models/openai" => sample("model_details"),
        "GET /v1/presets" => month("model_preset", 4, |_, _| {}),
        "GET /v1/tools" => Value::Array(
            TOOLS
                .map(|name| {
                    let mut tool = sample("tool");
                    (tool["name"], tool["available"], tool["agents"]) = (json!(name), json!(true), json!(AGENTS));
                    tool
                })
                .to_vec(),
        ),
        "GET /v1/sessions/ses_01kagq8t000000000000000001" => month("session.turn", 1, session)[0].take(),
        "GET /v1/sessions/ses_01kagq8t000000000000000001/transcript" => sample("transcript"),
        "GET /v1/sessions/ses_01kagq8t000000000000000001/replies" => sample("session_replies"),
        "GET /v1/sessions/ses_01kagq8t000000000000000001/files" => json!({ "files": month("file_entry", 4, |_, file| {
            file["shown"] = json!("reports/2026/november/a-report-with-a-long-name-for-the-tax-office.pdf");
        }), "more": false }),
        "GET /v1/sessions/ses_01kagq8t000000000000000001/files/history" => {
            let mut history = sample("file_history");
            history["versions"][0]["shown"] =
                json!("reports/2026/november/a-report-with-a-long-name-for-the-tax-office.pdf");
            history
        }
        "GET /v1/messages/last/why" => {
            let mut why = sample("why");
            why["message"]["sources"] = sample("sources");
            why
        }
        "GET /v1/calls/call_01kagq8t000000000000000001/why" => sample("call_why"),
        _ => return Answer::missing("unexpected", line),
    })
}

const SESSION: &str = "ses_01kagq8t000000000000000001";

/// The lists and pages, each with the name of its golden file.
const LISTS: &[(&str, &[&str])] = &[
    ("agents", &["agent", "list"]),
    ("agent", &["agent", "show", "assistant"]),
    ("allowances", &["allowance", "list"]),
    ("call", &["why", "call_01kagq8t000000000000000001"]),
    ("change", &["why", "chg_01kagq8t000000000000000001"]),
    ("channels", &["channel", "list"]),
    ("dead_letters", &["delivery", "list"]),
    ("destinations", &["destination", "list"]),
    ("egress", &["egress", "list"]),
    ("file_history", &["file", "history", SESSION]),
    ("files", &["file", "list", SESSION]),
    ("groups", &["group", "list"]),
    ("mcp_server", &["mcp", "show", "files"]),
    ("mcp_servers", &["mcp", "list"]),
    ("message", &["why"]),
    ("model", &["model", "show", "openai"]),
    ("models", &["model", "list"]),
    ("notes", &["memory", "list", "assistant"]),
    ("occurrences", &["schedule", "history", "sch_01kagq8t000000000000000001"]),
    ("people", &["person", "list"]),
    ("person", &["person", "show", "Alice"]),
    ("presets", &["model", "presets"]),
    ("question", &["why", "qst_01kagq8t000000000000000001"]),
    ("question_page", &["inbox", "show", "qst_01kagq8t000000000000000001"]),
    ("report", &["report"]),
    ("request", &["why", "req_01kagq8t000000000000000001"]),
    ("schedules", &["schedule", "list"]),
    ("secrets", &["secret", "list"]),
    ("server_tool", &["tool", "show", "files__write_file"]),
    ("session", &["session", "show", SESSION]),
    ("sessions", &["session", "list"]),
    ("skill", &["skill", "show", "weather"]),
    ("skill_keys", &["skill", "key", "list"]),
    ("skill_sources", &["skill", "source", "list"]),
    ("skills", &["skill", "list"]),
    ("status", &["status"]),
    ("tokens", &["token", "list"]),
    ("tool", &["tool", "show", "write_file"]),
    ("tools", &["tool", "list"]),
    ("usage", &["usage", "--days", "30"]),
    ("waiting", &["inbox", "list"]),
    ("usage_by_session", &["usage", "--days", "30", "--by-session"]),
];

/// Returns the parts of a text that begin like an id of the host; that of a token is shorter.
fn ids(text: &str) -> Vec<&str> {
    let part = |character: char| !character.is_ascii_alphanumeric() && character != '_';
    let is_id = |word: &&str| word.len() > 10 && word[3..6].contains("_01") && !word.starts_with("tok_");
    text.split(part).filter(is_id).collect()
}

/// Returns the faults of an output: an error, a line over the width, a broken id.
fn faults(shown: &str) -> Vec<String> {
    let wide =
        shown.lines().filter(|line| line.width() > usize::from(SCREEN.0)).map(|line| format!("too wide: {line}"));
    let broken = ids(shown).into_iter().filter(|id| !(30..=31).contains(&id.len())).map(|id| format!("broken: {id}"));
    let failed = shown.lines().filter(|line| line.starts_with("error: ")).map(str::to_owned);
    wide.chain(broken).chain(failed).collect()
}

#[test]
fn every_list_of_a_month_fits_a_terminal_of_80_columns() {
    let host = FakeHost::new(|line, _| answer(line));
    let shown: Vec<(&str, String)> = LISTS
        .iter()
        .map(|(name, words)| {
            let shown = Terminal::sized(&host, words, SCREEN.0, SCREEN.1).end_with_screen();
            (*name, shown.replace('\r', ""))
        })
        .collect();
    let found: Vec<_> =
        shown.iter().map(|(name, shown)| (name, faults(shown))).filter(|(_, faults)| !faults.is_empty()).collect();
    for (name, shown) in &shown {
        golden::check(&format!("lists/{name}.txt"), shown);
    }
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn list_in_a_pipe_is_one_line_a_row_with_each_column() {
    let host = FakeHost::new(|line, _| answer(line));
    for (words, rows) in [(&["session", "list"][..], 56), (&["agent", "list"], 5), (&["inbox", "list"], 16)] {
        let (code, out, _) = host.ironctl(words);
        assert_eq!((code, out.lines().count()), (0, rows + 1), "{words:?}: {out}");
    }
    assert!(host.output(&["session", "list"]).starts_with("SESSION "));
    assert!(host.output(&["agent", "list"]).contains(" ID"), "a terminal of 80 columns leaves it out");
}

#[test]
fn old_sessions_are_removed_at_once_but_none_that_works() {
    let sessions = month("session.turn", 5, |at, session| {
        session["agent"] = json!(["coder", "coder", "coder", "reader", "coder"][at]);
        session["state"] = json!(["asleep", "asleep", "awake", "asleep", "asleep"][at]);
        session["waiting"] = json!(0);
        session["last_used_ms"] = json!(if at == 4 { i64::MAX / 2 } else { 1 });
    });
    let [first, second] = [0, 1].map(|at: usize| sessions[at]["id"].as_str().expect("an id").to_owned());
    let refused = format!("DELETE /v1/sessions/{second}");
    let host = FakeHost::new(move |line, _| match line {
        line if line == refused => Answer::refusal("session_not_removed", "it works", ""),
        line if line.starts_with("DELETE") => Answer::json(json!({})),
        _ => Answer::json(sessions.clone()),
    });
    let words = ["session", "remove", "--older-than", "30d"];
    assert_eq!(host.failed(&words).0, 2, "without a confirmation");
    let (code, out, err) = host.ironctl(&[&words[..], &["--agent", "coder", "--yes", "--json"]].concat());
    assert_eq!((code, json_of(&out)), (1, json!({ "removed": [first] })), "{err}");
    let asked: Vec<String> =
        host.asked().into_iter().map(|asked| asked.line).filter(|line| line.starts_with("DELETE")).collect();
    assert_eq!(asked, [&first, &second].map(|id| format!("DELETE /v1/sessions/{id}")));
    for wrong in [&["--agent", "coder"][..], &[SESSION, "--older-than", "30d"], &["--older-than", "0d"], &[]] {
        assert_eq!(host.ironctl(&[&["session", "remove"][..], wrong].concat()).0, 2, "{wrong:?}");
    }
}

#[test]
fn secret_on_the_command_line_is_refused_and_not_repeated() {
    let host = FakeHost::new(|line, _| Answer::missing("unexpected", line));
    for words in [&["secret", "set", "openai", "sk-123"][..], &["secret", "rotate", "openai", "sk-123", "more"]] {
        let (code, out, err) = host.ironctl(words);
        assert_eq!((code, out.as_str()), (2, ""), "{err}");
        assert!(err.contains("secret:openai") && !err.contains("sk-123"), "{err}");
    }
    assert!(host.asked().is_empty(), "nothing is sent");
}
