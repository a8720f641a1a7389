//! Tests of the settings, the quirks and the context of an endpoint, through the daemon.
//!
//! See `profiles` for the rules of each provider.

use crate::support::host_fixture::{Build, TestHost};
use crate::support::mcp_server::HttpServer;
use crate::support::model_server::{Act, Seen, Server};
use crate::support::record;
use serde_json::{Value, json};

/// Milliseconds of 31 days.
const MONTH_MS: i64 = 31 * 24 * 60 * 60 * 1000;

fn echo(seen: &Seen) -> Act {
    Act::Say(format!("You said: {}", seen.asked()))
}

/// Refuses the older name of the limit, as newer models do.
fn modern(seen: &Seen) -> Act {
    match seen.body.get("max_tokens") {
        Some(_) => {
            let message = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
            Act::Status(400, Vec::new(), json!({ "error": { "message": message } }).to_string())
        }
        None => echo(seen),
    }
}

fn host(server: &Server) -> TestHost {
    let host = TestHost::new().started();
    host.add_model(&server.url());
    host.ctl(&["agent", "add", "a", "--model", "m"]).ok();
    host
}

fn show(host: &TestHost, name: &str) -> Value {
    host.ctl(&["--json", "model", "show", name]).ok().json()
}

/// Returns the value of a quirk and where it comes from.
fn quirk(host: &TestHost, name: &str) -> (String, String) {
    let shown = show(host, "m");
    let found = shown["quirks"].as_array().into_iter().flatten().find(|quirk| quirk["name"] == name).expect("a quirk");
    let text = |field: &str| found[field].as_str().expect("a text").to_owned();
    assert_eq!(found["learned_at"].is_string(), text("source") == "learned", "{found}");
    assert_eq!(found["expires_at"].is_string(), text("source") == "learned", "{found}");
    (text("value"), text("source"))
}

/// Sends a message, and returns the number of requests that it needs.
fn requests(host: &TestHost, server: &Server) -> usize {
    let before = server.seen().len();
    host.chat("a", "hello");
    server.seen().len() - before
}

#[test]
fn settings_of_an_endpoint_apply_from_the_next_request_on() {
    let server = Server::start(echo);
    let host = host(&server);
    let last = || server.seen().pop().expect("a request").body;
    let set = |words: &[&str]| host.ctl(&[&["--json", "model", "set", "m"], words].concat());
    assert_eq!(quirk(&host, "limit_field"), ("max_tokens".to_owned(), "default".to_owned()));

    let details = set(&["--context", "8192", "--output", "700", "--quirk", "system_role=user"]).ok().json();
    assert_eq!(details["settings"]["context_tokens"], 8192, "{details}");
    assert_eq!(host.say("a", "hello"), "You said: hello");
    assert_eq!((&last()["max_tokens"], &last()["messages"][0]["role"]), (&json!(700), &json!("user")));
    assert_eq!(quirk(&host, "system_role"), ("user".to_owned(), "operator".to_owned()));

    set(&["--output", "none", "--quirk", "system_role=default", "--quirk", "limit_field=max_completion_tokens"]).ok();
    host.restart();
    assert_eq!(host.say("a", "hello"), "You said: hello");
    // Without a bound of its own, an output is at most a quarter of the context.
    assert_eq!((&last()["max_completion_tokens"], &last()["messages"][0]["role"]), (&json!(2048), &json!("system")));
    let settings = &show(&host, "m")["settings"];
    assert_eq!(*settings, json!({ "context_tokens": 8192, "quirks": { "limit_field": "max_completion_tokens" } }));

    set(&["--profile", "mistral"]).ok();
    assert_eq!(quirk(&host, "call_ids"), ("nine".to_owned(), "profile".to_owned()));
    assert_eq!(host.say("a", "hello"), "You said: hello");
    assert!(last().get("stream_options").is_none(), "{}", last());

    for (words, code) in [
        (&["--quirk", "limit=max_tokens"][..], "quirk_unknown"),
        (&["--quirk", "limit_field=tokens"], "quirk_unknown"),
        (&["--quirk", "limit=default"], "model_setting_malformed"),
        (&["--output", "0"], "model_setting_malformed"),
        (&["--output", "8192"], "model_setting_malformed"),
        (&["--context", "10"], "model_setting_malformed"),
        (&["--profile", "telepathy"], "model_setting_malformed"),
    ] {
        let refused = set(words);
        assert_eq!((refused.code, refused.error()["code"].as_str()), (1, Some(code)), "{words:?}");
        assert!(!refused.error()["hint"].as_str().unwrap_or_default().is_empty(), "{words:?}");
    }
    assert_eq!(host.ctl_error(&["model", "set", "scripted", "--context", "9000"])["code"], "model_malformed");
    assert_eq!(host.ctl_error(&["model", "set", "x", "--context", "9000"])["code"], "model_unknown");
    for words in [&[][..], &["--context", "8k"], &["--quirk", "limit_field"]] {
        assert_eq!(set(words).code, 2, "{words:?}");
    }
    assert!(host.ctl(&["model", "show", "m"]).ok().stdout.contains("limit_field"));
    let entries = host.entries("model.settings_set");
    assert_eq!(entries.len(), 3, "{entries:?}");
    assert_eq!(entries[1]["data"]["cleared"], json!(["output_tokens_max", "system_role"]), "{entries:?}");
    assert_eq!(host.entries("model.change_refused").len(), 9);
}

#[test]
fn a_quirk_is_learned_from_two_answers_and_expires() {
    let server = Server::start(modern);
    let host = host(&server);
    assert_eq!((requests(&host, &server), quirk(&host, "limit_field").1.as_str()), (2, "default"));
    host.restart();
    assert_eq!((requests(&host, &server), quirk(&host, "limit_field").1.as_str()), (2, "learned"));
    assert_eq!(requests(&host, &server), 1);
    host.restart();
    assert_eq!(requests(&host, &server), 1, "it is kept over a restart");
    let entries = host.entries("model.learned");
    assert_eq!((entries.len(), &entries[0]["data"]["value"]), (1, &json!("max_completion_tokens")), "{entries:?}");

    host.down();
    let sql = format!("UPDATE model_observations SET at = at - {MONTH_MS}");
    assert_eq!(record::open_to_change(&host.home).execute(&sql, []).expect("changed"), 1);
    record::restore_owner(&host);
    host.up();
    assert_eq!(quirk(&host, "limit_field").1, "default", "it expires");
    assert_eq!((requests(&host, &server), requests(&host, &server), requests(&host, &server)), (2, 2, 1));

    host.ctl(&["model", "set", "m", "--forget"]).ok();
    assert_eq!((quirk(&host, "limit_field").1.as_str(), requests(&host, &server)), ("default", 2));
    assert_eq!(host.entries("model.settings_set")[0]["data"]["forgot"], true);
    host.ctl(&["model", "set", "m", "--quirk", "limit_field=max_tokens"]).ok();
    assert_eq!(requests(&host, &server), 1, "the operator's value is sent and refused");
    host.ctl(&["model", "set", "m", "--quirk", "limit_field=default", "--profile", "openai"]).ok();
    assert_eq!((requests(&host, &server), quirk(&host, "limit_field").1.as_str()), (1, "profile"));
    host.ctl(&["model", "set", "m", "--profile", "none"]).ok();
    assert_eq!((requests(&host, &server), requests(&host, &server)), (2, 1), "one answer was kept since the reset");
    // A replaced endpoint may have another server.
    let base = format!("{}/v1", server.url());
    let add = ["model", "add", "m", "--kind", "openai", "--base-url", &base, "--model", "small", "--no-test"];
    host.ctl(&[&add[..], &["--replace"]].concat()).ok();
    assert_eq!(quirk(&host, "limit_field").1, "default");
}

#[test]
fn local_servers_are_asked_for_the_size_of_a_context() {
    let listed = |entry: Value| json!({ "data": [entry] });
    let pages = vec![
        ("/api/ps", json!({ "models": [{ "name": "small:latest", "context_length": 4096 }] })),
        ("/props", json!({ "default_generation_settings": { "n_ctx": 5120 } })),
        ("/v1/models", listed(json!({ "id": "small", "max_model_len": 6144 }))),
        ("/api/v0/models", listed(json!({ "id": "small", "loaded_context_length": 7168 }))),
    ];
    let (server, silent) = (Server::with_pages(pages, echo), Server::start(echo));
    let host = TestHost::new().started();
    let add = |name: &str, preset: &str, server: &Server, more: &[&str]| {
        let base = format!("{}/v1", server.url());
        let words = ["--json", "model", "add", name, "--preset", preset, "--base-url", &base, "--model", "small"];
        host.ctl(&[&words[..], more].concat()).ok().json()
    };
    for (preset, tokens, place) in [
        ("ollama", 4096, "/api/ps"),
        ("llamacpp", 5120, "/props"),
        ("vllm", 6144, "/v1/models"),
        ("lmstudio", 7168, "/api/v0/models"),
    ] {
        let kept = add(preset, preset, &server, &[]);
        let (context, stated) = (&kept["model"]["settings"]["context_tokens"], &kept["context_stated_at"]);
        assert_eq!((context, stated), (&json!(tokens), &json!(place)), "{kept}");
        assert_eq!(show(&host, preset)["profile"], preset);
        let kept = add(&format!("{preset}-silent"), preset, &silent, &[]);
        assert!(kept["model"]["settings"].get("context_tokens").is_none(), "{kept}");
        assert!(kept.get("context_stated_at").is_none(), "{kept}");
    }
    let kept = add("own", "ollama", &server, &["--context", "2048", "--quirk", "call_ids=nine"]);
    assert_eq!(kept["model"]["settings"]["context_tokens"], 2048, "{kept}");
    assert!(kept.get("context_stated_at").is_none(), "{kept}");
    let base = format!("{}/v1", server.url());
    let words = ["model", "add", "bad", "--kind", "openai", "--base-url", &base, "--model", "small", "--quirk", "a=b"];
    assert_eq!(host.ctl_error(&words)["code"], "quirk_unknown");
}

#[test]
fn bound_on_tool_definitions_belongs_to_an_endpoint() {
    let (server, tools) = (Server::start(echo), HttpServer::start(&[]));
    let host = TestHost::own(Build::Plain).started_with("a");
    host.add_model(&server.url());
    host.ctl(&["agent", "set", "a", "--model", "m"]).ok();
    crate::e2e::mcp::ready(&host, "s", &["--url", &tools.url], None);
    let offered = || {
        host.chat("a", "hello");
        let body = server.seen().pop().expect("a request").body;
        let names = body["tools"].as_array().into_iter().flatten().map(|tool| tool["function"]["name"].clone());
        let names: Vec<String> = names.map(|name| name.as_str().expect("a name").to_owned()).collect();
        (names.iter().any(|name| name == "find_tools"), names.iter().any(|name| name.starts_with("s__")))
    };
    assert_eq!(offered(), (false, true));
    host.ctl(&["model", "set", "m", "--tool-definitions", "0"]).ok();
    assert_eq!(offered(), (true, false));
    host.ctl(&["model", "set", "m", "--tool-definitions", "none"]).ok();
    assert_eq!(offered(), (false, true));
}
