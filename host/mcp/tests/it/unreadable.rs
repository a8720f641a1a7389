//! Answers that cannot be read, or that would become a tree of any size.

use crate::answers::{handshake, over, serve};
use crate::server::{object, quick};
use ironclaw_mcp::{Client, Era, Error, Limits};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, duplex, split};

/// Results, each written into an answer, that a client must not make a tree of. All are below 4 MiB.
fn results() -> Vec<(&'static str, String)> {
    let deep = |open: &str, close: &str| format!("{}0{}", open.repeat(100_000), close.repeat(100_000));
    vec![
        ("objects", format!("{{\"content\":[{}{{}}]}}", "{\"a\":0},".repeat(100_000))),
        ("numbers", format!("{{\"structuredContent\":[{}0]}}", "0,".repeat(100_000))),
        ("members", format!("{{{}\"z\":0}}", (0..100_000).map(|n| format!("\"{n}\":0,")).collect::<String>())),
        ("arrays in arrays", deep("[", "]")),
        ("objects in objects", deep("{\"a\":", "}")),
        ("no number", "{\"content\":[],\"structuredContent\":{\"a\":NaN}}".to_owned()),
        ("half a pair", "{\"content\":[{\"type\":\"text\",\"text\":\"\\ud800\"}]}".to_owned()),
    ]
}

/// Answers each request of a client over streams; `$id` in `result` is the answer to every request after the handshake.
async fn answer_lines(stream: DuplexStream, result: String) {
    let (read, mut write) = split(stream);
    let mut lines = BufReader::new(read).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let request: Value = serde_json::from_str(&line).expect("a request");
        let Some(id) = request.get("id") else { continue };
        let hello =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}});
        let line = match request["method"].as_str() {
            Some("initialize") => json!({"jsonrpc": "2.0", "id": id, "result": hello}).to_string(),
            Some("ping") => json!({"jsonrpc": "2.0", "id": id, "result": {}}).to_string(),
            _ => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}"),
        };
        let written = write.write_all(format!("log {{\n{{no JSON\n{line}\n").as_bytes()).await;
        if written.is_err() {
            return;
        }
    }
}

async fn over_streams(result: String) -> Client {
    let (ours, theirs) = duplex(64 << 10);
    tokio::spawn(answer_lines(theirs, result));
    let (read, write) = split(ours);
    let limits = Limits { era: Some(Era::Session), ..Limits::default() };
    Client::over_streams(read, write, limits).await.expect("a connection")
}

#[tokio::test]
async fn answer_that_cannot_be_read_fails_its_request_at_once() {
    for (what, result) in results() {
        let client = over_streams(result.clone()).await;
        let failed = client.call("t", object(json!({})), quick()).await.expect_err(what);
        assert!(matches!(failed.error, Error::Unreadable(_)) && failed.may_have_arrived, "{what}: {failed:?}");
        let listed = client.list().await.expect_err(what);
        assert!(matches!(listed, Error::Unreadable(_)), "{what}: {listed}");
        assert!(!client.is_closed(), "{what}: another call may get an answer");
        for kind in ["application/json", "text/event-stream"] {
            let whole = format!("{{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{result}}}");
            let whole = if kind == "application/json" { whole } else { format!("data: {whole}\n\n") };
            let mut answers = handshake();
            answers.push(format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: {kind}\r\n\r\n{whole}"));
            let (url, _served) = serve(answers).await;
            let client = over(url, None).await.expect("a connection");
            let failed = client.call("t", object(json!({})), quick()).await.expect_err(what);
            assert!(matches!(failed.error, Error::Unreadable(_)) && failed.may_have_arrived, "{what}: {failed:?}");
        }
    }
}

#[tokio::test]
async fn entry_that_cannot_be_read_hides_no_other() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let many = format!("[{}0]", "0,".repeat(100_000));
    for odd in ["\"\\ud800\"", "NaN", &deep, &many] {
        let odd = format!("{{\"name\":\"odd\",\"inputSchema\":{{\"default\":{odd}}}}}");
        let good = "{\"name\":\"good\",\"inputSchema\":{\"type\":\"object\"}}";
        let result = format!("{{\"tools\":[{odd},{good}]}}");
        let whole = format!("{{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{result}}}");
        let mut answers = handshake();
        answers.push(format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\n\r\n{whole}"));
        let (url, _served) = serve(answers).await;
        for client in [over_streams(result).await, over(url, None).await.expect("a connection")] {
            let tools = client.list().await.expect("a listing").tools;
            assert_eq!((tools[0].name.as_str(), tools[0].unread.is_some()), ("odd", true));
            assert_eq!((tools[1].name.as_str(), tools[1].unread.is_some(), tools.len()), ("good", false, 2));
        }
    }
}

#[tokio::test]
async fn many_values_within_the_bound_are_an_answer() {
    let rows = format!("{{\"content\":[],\"structuredContent\":[{}0]}}", "{\"a\":0},".repeat(20_000));
    let client = over_streams(rows).await;
    client.call("t", object(json!({})), quick()).await.expect("an answer");
}
