//! The answers of a server over HTTP, byte by byte.

use crate::server::{http, object, quick};
use ironclaw_mcp::{Client, Era, Error, Limits};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use url::Url;

/// A request: its head in lower case, and its body.
pub(crate) type Seen = (String, Value);

/// Serves one answer for each connection, in their order. `$id` in an answer becomes the id of the request.
pub(crate) async fn serve(answers: Vec<String>) -> (Url, JoinHandle<Vec<Seen>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = Url::parse(&format!("http://{}/mcp", listener.local_addr().unwrap())).unwrap();
    let served = tokio::spawn(async move {
        let mut seen = Vec::new();
        for answer in answers {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut request = Vec::new();
            let (head, body) = loop {
                stream.read_buf(&mut request).await.unwrap();
                let text = String::from_utf8_lossy(&request).into_owned();
                let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
                if head.starts_with("DELETE") {
                    break (head.to_ascii_lowercase(), Value::Null);
                }
                if let Ok(body) = serde_json::from_str(body) {
                    break (head.to_ascii_lowercase(), body);
                }
            };
            let id: &Value = &body["id"];
            stream.write_all(answer.replace("$id", &id.to_string()).as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
            seen.push((head, body));
        }
        seen
    });
    (url, served)
}

fn answer(status: &str, headers: &str, body: &Value) -> String {
    let body = if body.is_null() { String::new() } else { body.to_string().replace("\"$id\"", "$id") };
    format!("HTTP/1.1 {status}\r\nConnection: close\r\n{headers}\r\n\r\n{body}")
}

fn json_answer(result: &Value) -> String {
    answer("200 OK", "Content-Type: application/json", &json!({"jsonrpc": "2.0", "id": "$id", "result": result}))
}

/// The answers up to the end of a handshake with a session.
pub(crate) fn handshake() -> Vec<String> {
    let hello =
        json!({"protocolVersion": "2025-06-18", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": "$id", "result": hello});
    vec![
        answer("400 Bad Request", "Content-Type: text/plain", &Value::Null),
        answer("200 OK", "Content-Type: application/json\r\nMcp-Session-Id: abc", &hello),
        answer("202 Accepted", "Content-Length: 0", &Value::Null),
    ]
}

pub(crate) async fn over(url: Url, era: Option<Era>) -> Result<Client, Error> {
    let secret = HeaderValue::from_static("Bearer word");
    let ours = [("authorization", secret.clone()), ("mcp-session-id", secret)];
    let headers: HeaderMap = ours.map(|(name, value)| (HeaderName::from_static(name), value)).into_iter().collect();
    Client::over_http(url, headers, http(), Limits { era, ..Limits::default() }).await
}

async fn call(client: &Client) -> Result<ironclaw_mcp::Answer, ironclaw_mcp::NotAnswered> {
    client.call("t", object(json!({})), quick()).await
}

#[tokio::test]
async fn a_session_is_kept_and_deleted() {
    let mut answers = handshake();
    answers.push(json_answer(&json!({"content": []})));
    answers.push(answer("200 OK", "Content-Length: 0", &Value::Null));
    let (url, served) = serve(answers).await;
    let client = over(url, None).await.unwrap();
    assert_eq!(client.server().era, Era::Session);
    assert!(call(&client).await.is_ok());
    client.close().await;
    let seen = served.await.unwrap();
    assert!(seen.iter().all(|(head, _)| head.contains("authorization: bearer word")));
    assert!(!seen[1].0.contains("mcp-session-id"), "a header of the caller is no session");
    for (head, _) in &seen[2..] {
        assert!(head.contains("mcp-session-id: abc") && head.contains("mcp-protocol-version: 2025-06-18"), "{head}");
    }
    assert!(seen[4].0.starts_with("delete "));
}

#[tokio::test]
async fn a_lost_session_is_not_opened_again() {
    let mut answers = handshake();
    answers.push(answer("404 Not Found", "Content-Length: 0", &Value::Null));
    let (url, served) = serve(answers).await;
    let client = over(url, None).await.unwrap();
    let lost = call(&client).await.unwrap_err();
    assert_eq!((lost.error, lost.may_have_arrived), (Error::Gone, true));
    assert!(client.is_closed());
    assert_eq!(served.await.unwrap().len(), 4);
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let (url, served) =
        serve(vec![answer("307 Temporary Redirect", "Location: http://127.0.0.1:1/", &Value::Null)]).await;
    let refused = over(url, None).await.err();
    assert_eq!(refused, Some(Error::Refused { code: 307, www_authenticate: None }));
    assert_eq!(served.await.unwrap().len(), 1);
}

#[tokio::test]
async fn failed_calls_are_sent_once() {
    let call_answers = [
        (answer("503 Busy", "Retry-After: 0", &Value::Null), "status"),
        (answer("200 OK", "Content-Type: text/html", &Value::Null), "type"),
        (answer("202 Accepted", "Content-Length: 0", &Value::Null), "no answer"),
        (answer("200 OK", "Content-Type: text/event-stream", &Value::Null), "no event"),
        ("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 50\r\n\r\n{".to_owned(), "cut"),
    ];
    for (broken, what) in call_answers {
        let mut answers = handshake();
        answers.push(broken);
        let (url, served) = serve(answers).await;
        let client = over(url, None).await.unwrap();
        let failed = call(&client).await.unwrap_err();
        assert!(failed.may_have_arrived, "{what}: {}", failed.error);
        let seen = served.await.unwrap();
        assert_eq!(seen.iter().filter(|(_, body)| body["method"] == "tools/call").count(), 1, "{what}");
    }
}

#[tokio::test]
async fn stateless_requests_repeat_the_body_in_headers() {
    let property = json!({"type": "string", "x-mcp-header": "Region"});
    let tool = json!({"name": "t", "inputSchema": {"type": "object", "properties": {"where": property}}});
    let known = json!({"supportedVersions": ["2026-07-28"], "capabilities": {}, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"});
    let answers =
        vec![json_answer(&known), json_answer(&json!({"tools": [tool]})), json_answer(&json!({"content": []}))];
    let (url, served) = serve(answers).await;
    let client = over(url, Some(Era::Stateless)).await.unwrap();
    client.list().await.unwrap();
    client.call("t", object(json!({"where": "Zürich"})), quick()).await.unwrap();
    let seen = served.await.unwrap();
    for ((head, body), method) in seen.iter().zip(["server/discover", "tools/list", "tools/call"]) {
        assert_eq!(body["method"], method);
        assert!(head.contains(&format!("mcp-method: {method}")) && head.contains("mcp-protocol-version: 2026-07-28"));
        assert!(!head.contains("mcp-session-id"));
    }
    let (head, _) = &seen[2];
    assert!(head.contains("mcp-name: t") && head.contains("mcp-param-region: =?base64?w"), "{head}");
}

#[tokio::test]
async fn answer_is_read_as_its_body_says() {
    let result = r#"{"jsonrpc":"2.0","id":$id,"result":{"content":[]}}"#;
    let bodies = [
        result.to_owned(),
        format!(" \r\n\n{result}\n"),
        format!("data: {result}"),
        format!(": hello\n\ndata:\n\ndata: ping\n\nping\n\ndata: {result}\n"),
        format!("data: {{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}}\ndata: {result}\n"),
        format!("{{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}}\n{result}\n"),
    ];
    let kinds = ["application/json", "text/event-stream", "text/plain", "application/octet-stream"];
    for (body, kind) in bodies.iter().flat_map(|body| kinds.map(|kind| (body, kind))) {
        let mut answers = handshake();
        answers.push(format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: {kind}\r\n\r\n{body}"));
        let (url, _served) = serve(answers).await;
        let client = over(url, None).await.unwrap();
        assert!(call(&client).await.is_ok(), "{kind}: {body}");
    }
}
