//! A server that behaves well.

use crate::server::{ALL, Way, connect, http, object, quick, try_connect};
use ironclaw_mcp::{CallLimits, Client, Era, Error, Limits};
use reqwest::header::HeaderMap;
use serde_json::json;
use std::fs;
use tokio::net::TcpListener;
use tokio::sync::watch;
use url::Url;

#[tokio::test]
async fn the_era_of_the_server_is_found() {
    for (way, era) in ALL {
        let connected = connect((way, era), &[]).await;
        let server = connected.client.server();
        assert_eq!(server.era, era, "{way:?}");
        let protocol = if era == Era::Session { "2025-11-25" } else { "2026-07-28" };
        assert_eq!((server.protocol.as_str(), server.name.as_str()), (protocol, "mcp_server"));
        assert_eq!(server.instructions.as_deref(), Some("A server for tests."));
    }
}

#[tokio::test]
async fn a_fixed_era_is_spoken_or_refused() {
    for way in [Way::Streams, Way::Http] {
        let only = |era| Limits { era: Some(era), ..Limits::default() };
        let session = try_connect((way, Era::Session), &[], only(Era::Session)).await;
        assert!(session.is_ok_and(|connected| connected.client.server().era == Era::Session));
        let refused = try_connect((way, Era::Session), &[], only(Era::Stateless)).await;
        assert!(matches!(refused.err(), Some(Error::Answered { code: -32601, .. })), "{way:?}");
        let refused = try_connect((way, Era::Stateless), &[], only(Era::Session)).await;
        assert!(matches!(refused.err(), Some(Error::Answered { .. })), "{way:?}");
    }
}

#[tokio::test]
async fn tools_are_listed_with_all_their_fields() {
    for (way, era) in ALL {
        let listing = connect((way, era), &[]).await.client.list().await.unwrap();
        let names: Vec<_> = listing.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["echo", "add", "count"], "{way:?} {era:?}");
        let count = &listing.tools[2];
        assert_eq!(count.description(), "Counts its own calls.");
        assert_eq!(count.input_schema()["type"], "object");
        assert_eq!(count.listed["annotations"]["readOnlyHint"], false);
    }
}

#[tokio::test]
async fn tools_answer_with_text_and_structure() {
    for (way, era) in ALL {
        let connected = connect((way, era), &[]).await;
        let echo = connected.done("echo", json!({"text": "two\nlines, ä"})).await;
        assert_eq!((echo.text.as_str(), echo.is_error), ("two\nlines, ä", false), "{way:?} {era:?}");
        let sum = connected.done("add", json!({"a": 1, "b": 2.5})).await;
        assert_eq!(sum.structured, Some(json!({"sum": 3.5})));
        assert!(connected.done("add", json!({"a": "one"})).await.is_error);
        assert_eq!(connected.done("count", json!({})).await.text, "1");
        assert_eq!(connected.done("count", json!({})).await.text, "2");
    }
}

#[tokio::test]
async fn calls_run_side_by_side() {
    for (way, era) in ALL {
        let connected = connect((way, era), &[]).await;
        let (first, second) =
            tokio::join!(connected.done("echo", json!({"text": "1"})), connected.done("echo", json!({"text": "2"})));
        assert_eq!((first.text.as_str(), second.text.as_str()), ("1", "2"), "{way:?} {era:?}");
    }
}

#[tokio::test]
async fn a_closed_connection_ends_the_server() {
    let mut connected = connect((Way::Streams, Era::Session), &[]).await;
    assert!(!connected.client.is_closed());
    connected.client.close().await;
    assert!(connected.child.wait().await.unwrap().success());
}

#[tokio::test]
async fn large_arguments_are_not_sent() {
    let connected = connect((Way::Streams, Era::Session), &[]).await;
    let limits = CallLimits { argument_bytes_max: 20, ..quick() };
    let refused = connected.client.call("echo", object(json!({"text": "longer than that"})), limits).await.unwrap_err();
    assert_eq!((refused.error, refused.may_have_arrived), (Error::ArgumentsTooLarge { bytes_max: 20 }, false));
}

#[tokio::test]
async fn bad_addresses_are_refused() {
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let over = async |url: &str| {
        let url = Url::parse(url).unwrap();
        Client::over_http(url, HeaderMap::new(), http(), Limits::default()).await.err()
    };
    assert!(matches!(over("ftp://example.com/mcp").await, Some(Error::Address(_))));
    assert!(matches!(over("http://me:word@127.0.0.1/mcp").await, Some(Error::Address(_))));
    assert!(matches!(over(&format!("http://{closed}/mcp")).await, Some(Error::Unreachable(_))));
}

#[tokio::test]
async fn progress_of_a_call_reaches_its_caller() {
    for (way, era) in ALL {
        let directory = tempfile::tempdir().unwrap();
        let until = directory.path().join("until");
        let arguments = ["--behave=progress", &format!("--until={}", until.display())];
        let connected = connect((way, era), &arguments).await;
        let newest = watch::Sender::new(None);
        let mut seen = newest.subscribe();
        let answered = connected.client.call_watched("count", object(json!({})), quick(), newest);
        let reported = async {
            let progress = seen.wait_for(Option::is_some).await.unwrap().clone().unwrap();
            fs::write(&until, "").unwrap();
            progress
        };
        let (answered, progress) = tokio::join!(answered, reported);
        assert!(answered.is_ok(), "{way:?} {era:?}: {answered:?}");
        assert_eq!((progress.progress, progress.total), (1.0, Some(10.0)), "{way:?} {era:?}");
        assert!(progress.message.is_some_and(|words| words.starts_with("Progress of the server.")));
    }
}
