//! The messages that a server sees and sends, line by line.

use crate::server::{object, quick};
use ironclaw_mcp::{Client, Cut, Error, Limits};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf};

/// The server's end of a pair of streams.
struct Script {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    write: WriteHalf<DuplexStream>,
}

impl Script {
    async fn read(&mut self) -> Value {
        let line = self.lines.next_line().await.unwrap().expect("the client sends a line");
        serde_json::from_str(&line).unwrap()
    }

    async fn write(&mut self, message: Value) {
        self.write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    /// Answers the next request, and returns it.
    async fn answer(&mut self, result: Value) -> Value {
        let request = self.read().await;
        self.write(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
        request
    }

    /// Answers as a server that only knows `initialize`, which has this answer to the first request.
    async fn begin(&mut self, mut first: Value) {
        let discover = self.read().await;
        assert_eq!(discover["method"], "server/discover");
        (first["jsonrpc"], first["id"]) = (json!("2.0"), discover["id"].clone());
        self.write(first).await;
        let info = json!({"name": "script", "version": "1"});
        let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": info});
        let initialize = self.answer(hello).await;
        assert_eq!(initialize["params"]["capabilities"], json!({}), "nothing is offered");
        assert_eq!(initialize["params"]["protocolVersion"], "2025-11-25", "the newest version with initialize");
        assert_eq!(self.read().await["method"], "notifications/initialized");
    }
}

/// Connects a client to a script that does not know the first request.
async fn scripted(limits: Limits) -> (Client, Script) {
    scripted_with(limits, json!({"error": {"code": -32601, "message": "no"}})).await
}

async fn scripted_with(limits: Limits, first: Value) -> (Client, Script) {
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (read, write) = tokio::io::split(theirs);
    let mut script = Script { lines: BufReader::new(read).lines(), write };
    let (read, write) = tokio::io::split(ours);
    let (client, ()) = tokio::join!(Client::over_streams(read, write, limits), script.begin(first));
    (client.unwrap(), script)
}

#[tokio::test]
async fn an_empty_first_answer_starts_a_session() {
    let (client, _script) = scripted_with(Limits::default(), json!({"result": {}})).await;
    assert_eq!(client.server().era, ironclaw_mcp::Era::Session);
}

#[tokio::test]
async fn a_late_call_is_cancelled_and_its_answer_ignored() {
    let (client, mut script) = scripted(Limits::default()).await;
    let limits = ironclaw_mcp::CallLimits { whole: Duration::from_millis(50), ..quick() };
    let late = client.call("t", object(json!({})), limits).await.unwrap_err();
    assert_eq!(late.error, Error::Late);
    let call = script.read().await;
    let cancelled = script.read().await;
    assert_eq!(cancelled["method"], "notifications/cancelled");
    assert_eq!(cancelled["params"]["requestId"], call["id"]);
    script.write(json!({"jsonrpc": "2.0", "id": call["id"], "result": {"content": []}})).await;
    let (listing, _) = tokio::join!(client.list(), script.answer(json!({"tools": []})));
    assert!(listing.unwrap().tools.is_empty());
}

#[tokio::test]
async fn a_dropped_call_is_cancelled() {
    let (client, mut script) = scripted(Limits::default()).await;
    let call = tokio::select! {
        _ = client.call("t", object(json!({})), quick()) => panic!("no answer was sent"),
        call = script.read() => call,
    };
    let cancelled = script.read().await;
    assert_eq!(cancelled["params"]["requestId"], call["id"]);
}

#[tokio::test]
async fn requests_of_a_server_get_method_not_found() {
    let (_client, mut script) = scripted(Limits::default()).await;
    for method in ["sampling/createMessage", "roots/list", "elicitation/create", "anything/else"] {
        script.write(json!({"jsonrpc": "2.0", "id": "s1", "method": method, "params": {}})).await;
        let reply = script.read().await;
        assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!("s1"), &json!(-32601)), "{method}");
    }
    script.write(json!({"jsonrpc": "2.0", "id": 7, "method": "ping"})).await;
    assert_eq!(script.read().await["result"], json!({}));
}

#[tokio::test]
async fn unknown_fields_of_a_tool_are_kept() {
    let (client, mut script) = scripted(Limits::default()).await;
    let tool = json!({"name": "t", "inputSchema": {"type": "object"}, "_meta": {"a": 1}, "new": [null], "icons": 3});
    let (listing, _) = tokio::join!(client.list(), script.answer(json!({"tools": [tool]})));
    assert_eq!(listing.unwrap().tools[0].listed, tool);
}

#[tokio::test]
async fn odd_entry_is_in_the_listing_with_the_others() {
    let (client, mut script) = scripted(Limits::default()).await;
    let good = json!({"name": "good", "inputSchema": {"type": "object"}});
    let tool = json!({"name": "t", "inputSchema": {}});
    for odd in [
        vec![tool.clone(), tool],
        vec![json!({"name": "", "inputSchema": {}})],
        vec![json!({"name": "t"})],
        vec![json!(3)],
    ] {
        let mut all = odd.clone();
        all.push(good.clone());
        let (listing, _) = tokio::join!(client.list(), script.answer(json!({"tools": all})));
        let listed: Vec<Value> = listing.expect("a listing").tools.into_iter().map(|tool| tool.listed).collect();
        assert_eq!(listed, all, "{odd:?}");
    }
    let long = json!({"name": "long", "description": "x".repeat(300_000)});
    let (listing, _) = tokio::join!(client.list(), script.answer(json!({"tools": [long, good]})));
    let tools = listing.expect("a listing").tools;
    assert_eq!((tools[0].name.as_str(), tools[0].unread.is_some(), &tools[0].listed), ("long", true, &Value::Null));
    assert_eq!(tools[1].listed, good);
}

/// Lists over a script that answers with these pages. Returns the number of the tools, and the reason why there may be more.
async fn paged(pages: Vec<Value>) -> (usize, Option<Cut>) {
    let (client, mut script) = scripted(Limits::default()).await;
    let answers = async {
        for page in pages {
            script.answer(page).await;
        }
    };
    let (listing, ()) = tokio::join!(client.list(), answers);
    let listing = listing.expect("a listing");
    (listing.tools.len(), listing.cut)
}

#[tokio::test]
async fn odd_cursor_ends_the_listing_with_its_reason() {
    let page = |tool: &str, next: Value| json!({"tools": [{"name": tool}], "nextCursor": next});
    for (pages, tools, cut) in [
        (vec![page("a", json!(null))], 1, None),
        (vec![page("a", json!(""))], 1, None),
        (vec![page("a", json!("x")), page("b", json!(""))], 2, None),
        (vec![page("a", json!("x")), page("b", json!("x"))], 2, Some(Cut::RepeatedCursor { page: 2 })),
        (vec![page("a", json!("x")), page("a", json!("x"))], 1, Some(Cut::RepeatedCursor { page: 2 })),
        (vec![page("a", json!("x")), page("a", json!("y"))], 1, Some(Cut::RepeatedPage { page: 2 })),
        (vec![page("a", json!(2))], 1, Some(Cut::WrongCursor { page: 1 })),
        (vec![page("a", json!("x")), json!({"tools": 3})], 1, Some(Cut::WrongPage { page: 2 })),
        (vec![page("a", json!("x")), json!({"tools": null})], 1, None),
        (
            vec![page("a", json!("x")), page("b", json!("y")), page("c", json!("x"))],
            3,
            Some(Cut::RepeatedCursor { page: 3 }),
        ),
    ] {
        assert_eq!(paged(pages.clone()).await, (tools, cut), "{pages:?}");
    }
    let (client, mut script) = scripted(Limits::default()).await;
    let refused = async {
        script.answer(page("a", json!("x"))).await;
        let request = script.read().await;
        script.write(json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32602, "message": "no"}})).await;
    };
    let (listing, ()) = tokio::join!(client.list(), refused);
    let listing = listing.expect("a listing");
    assert_eq!((listing.tools.len(), listing.cut), (1, Some(Cut::RefusedPage { page: 2, code: -32602 })));
    let endless = (0..100).map(|n| page(&n.to_string(), json!(n.to_string()))).collect();
    assert_eq!(paged(endless).await, (100, Some(Cut::TooManyPages { pages_max: 100 })));
}

#[tokio::test]
async fn a_changed_list_sets_the_flag_until_it_is_listed() {
    let (client, mut script) = scripted(Limits::default()).await;
    assert!(!client.has_changed());
    let change = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let answer = async {
        script.write(change).await;
        script.answer(json!({"content": [], "isError": false})).await
    };
    let (called, _) = tokio::join!(client.call("t", object(json!({})), quick()), answer);
    assert!(called.is_ok() && client.has_changed());
    let (listing, _) = tokio::join!(client.list(), script.answer(json!({"tools": []})));
    assert!(listing.is_ok() && !client.has_changed());
}

#[tokio::test]
async fn contents_are_described_in_words() {
    let (client, mut script) = scripted(Limits::default()).await;
    let content = json!([
        {"type": "text", "text": "one"},
        {"type": "image", "data": "AAAA", "mimeType": "image/png"},
        {"type": "resource_link", "uri": "file:///a", "name": "a"},
        {"type": "resource", "resource": {"uri": "file:///b", "text": "two"}},
        {"type": "hologram"},
    ]);
    let (answer, _) =
        tokio::join!(client.call("t", object(json!({})), quick()), script.answer(json!({"content": content})));
    let ironclaw_mcp::Answer::Done(output) = answer.unwrap() else { panic!("the call is over") };
    let lines: Vec<_> = output.text.lines().collect();
    assert_eq!((lines.len(), lines[0], lines[3]), (5, "one", "two"));
    assert!(lines[1].contains("image/png") && lines[1].contains("3 bytes") && lines[2].contains("file:///a"));
}

#[tokio::test]
async fn results_of_unknown_form_are_errors() {
    let (client, mut script) = scripted(Limits::default()).await;
    for bad in [json!("text"), json!({"content": 1}), json!({"resultType": "task"})] {
        let (answer, _) = tokio::join!(client.call("t", object(json!({})), quick()), script.answer(bad));
        assert!(matches!(answer.unwrap_err().error, Error::Protocol(_)));
    }
    // The caller removes its secrets before it cuts the text.
    let words = format!("a\u{202e}{}", "x".repeat(10_000));
    let refuse = async {
        let id = script.read().await["id"].clone();
        let error = json!({"code": -32000, "message": words});
        script.write(json!({"jsonrpc": "2.0", "id": id, "error": error})).await;
    };
    let (answer, ()) = tokio::join!(client.call("t", object(json!({})), quick()), refuse);
    let Error::Answered { code: -32000, message } = answer.unwrap_err().error else { panic!("it is an error") };
    assert_eq!(message, words);
}

#[tokio::test]
async fn a_silent_server_is_late() {
    let (ours, _theirs) = tokio::io::duplex(1 << 16);
    let (read, write) = tokio::io::split(ours);
    let limits = Limits { begin: Duration::from_millis(50), ..Limits::default() };
    assert_eq!(Client::over_streams(read, write, limits).await.err(), Some(Error::Late));
}

#[tokio::test]
async fn a_line_over_the_bound_ends_the_connection() {
    let limits = Limits { answer_bytes_max: 1_000, ..Limits::default() };
    let (client, mut script) = scripted(limits).await;
    let (answer, _) = tokio::join!(
        client.call("t", object(json!({})), quick()),
        script.answer(json!({"content": [{"type": "text", "text": "x".repeat(2_000)}]}))
    );
    assert_eq!(answer.unwrap_err().error, Error::TooLarge { bytes_max: 1_000 });
    assert!(client.is_closed());
    let next = client.call("t", object(json!({})), quick()).await.unwrap_err();
    assert!(!next.may_have_arrived);
}
