//! A server that misbehaves.

use crate::server::{ALL, Connected, Way, connect, late, object, quick, try_connect};
use ironclaw_mcp::{Answer, CallLimits, Era, Error, Limits, NotAnswered};
use serde_json::json;
use std::fs;

async fn count_until_late(connected: &Connected) -> NotAnswered {
    connected.client.call("count", object(json!({})), late()).await.unwrap_err()
}

#[tokio::test]
async fn a_crash_during_a_call_may_have_acted() {
    for (way, era) in ALL {
        let connected = connect((way, era), &["--behave=crash"]).await;
        let failed = connected.call("count", json!({})).await.unwrap_err();
        assert_eq!((failed.error, failed.may_have_arrived), (Error::Gone, true), "{way:?} {era:?}");
        let again = connected.call("count", json!({})).await.unwrap_err();
        // Over HTTP the next call may find a connection whose end is not known yet.
        assert!(way == Way::Http || !again.may_have_arrived, "{era:?}: {}", again.error);
        assert_eq!(connected.client.is_closed(), way == Way::Streams);
    }
}

#[tokio::test]
async fn a_hanging_call_is_late() {
    for (way, era) in ALL {
        let connected = connect((way, era), &["--behave=hang"]).await;
        let failed = count_until_late(&connected).await;
        assert_eq!((failed.error, failed.may_have_arrived), (Error::Late, true), "{way:?} {era:?}");
        assert!(connected.client.list().await.is_ok(), "{way:?} {era:?}: the connection lives");
    }
}

#[tokio::test]
async fn a_flood_of_notifications_ends() {
    for (way, era) in ALL {
        let limits = Limits { answer_bytes_max: 64 << 10, ..Limits::default() };
        let connected = try_connect((way, era), &["--behave=flood"], limits).await.unwrap();
        let failed = connected.call("count", json!({})).await.unwrap_err();
        assert_eq!((failed.error, failed.may_have_arrived), (Error::TooLarge { bytes_max: 64 << 10 }, true));
    }
}

#[tokio::test]
async fn a_huge_answer_is_too_large() {
    for (way, era) in ALL {
        let connected = connect((way, era), &["--behave=huge"]).await;
        let failed = connected.call("count", json!({})).await.unwrap_err();
        assert!(matches!(failed.error, Error::TooLarge { .. }), "{way:?} {era:?}: {}", failed.error);
        assert!(failed.may_have_arrived);
        assert_eq!(connected.client.is_closed(), way == Way::Streams);
    }
}

#[tokio::test]
async fn the_bound_of_one_call_holds() {
    for (way, era) in ALL {
        let connected = connect((way, era), &[]).await;
        let limits = CallLimits { answer_bytes_max: 100, ..quick() };
        let arguments = object(json!({"text": "x".repeat(200)}));
        let failed = connected.client.call("echo", arguments, limits).await.unwrap_err();
        assert_eq!(failed.error, Error::TooLarge { bytes_max: 100 });
        assert_eq!(connected.done("count", json!({})).await.text, "1");
    }
}

#[tokio::test]
async fn an_answer_to_no_request_is_ignored() {
    for (way, era) in ALL {
        let connected = connect((way, era), &["--behave=unasked"]).await;
        let text = connected.done("echo", json!({"text": "asked"})).await.text;
        assert_eq!(text, "asked", "{way:?} {era:?}");
    }
}

#[tokio::test]
async fn a_listing_has_bounds() {
    for (way, era) in ALL {
        let many = ["--behave=many"];
        let connected = connect((way, era), &many).await;
        assert_eq!(connected.client.list().await.unwrap_err(), Error::TooManyTools { tools_max: 300 });
        let limits = Limits { tools_max: 500, ..Limits::default() };
        let connected = try_connect((way, era), &many, limits).await.unwrap();
        assert_eq!(connected.client.list().await.unwrap().tools.len(), 500, "{way:?} {era:?}");
        let limits = Limits { listing_bytes_max: 5_000, ..Limits::default() };
        let connected = try_connect((way, era), &many, limits).await.unwrap();
        assert_eq!(connected.client.list().await.unwrap_err(), Error::TooLarge { bytes_max: 5_000 });
    }
}

#[tokio::test]
async fn a_changed_description_is_in_the_next_listing() {
    for (way, era) in ALL {
        let connected = connect((way, era), &["--behave=changed"]).await;
        let first = connected.client.list().await.unwrap();
        let second = connected.client.list().await.unwrap();
        assert_ne!(first.tools[0].listed, second.tools[0].listed, "{way:?} {era:?}");
        assert_eq!(first.tools[1], second.tools[1]);
    }
}

#[tokio::test]
async fn hidden_text_stays_data() {
    for (way, era) in ALL {
        let connected = connect((way, era), &["--behave=hidden"]).await;
        let listing = connected.client.list().await.unwrap();
        assert!(listing.tools[0].description().contains('\u{200b}'));
        assert!(connected.client.server().instructions.as_ref().is_some_and(|text| text.contains('\u{e0041}')));
        let done = connected.done("echo", json!({"text": "x"})).await;
        assert!(!done.is_error && done.text.contains('\u{202e}'), "{way:?} {era:?}");
        assert!(connected.done("add", json!({})).await.is_error);
    }
}

#[tokio::test]
async fn an_elicitation_is_refused_and_shown() {
    for way in [Way::Streams, Way::Http] {
        let connected = connect((way, Era::Session), &["--behave=elicit"]).await;
        let done = connected.done("count", json!({})).await;
        assert!(done.text.starts_with("refused: ") && done.text.contains("-32601"), "{way:?}: {}", done.text);
        assert_eq!(done.refused.len(), 1);
        let asked = &done.refused[0];
        assert_eq!((asked.method.as_str(), asked.message.as_str()), ("elicitation/create", "Type your password."));
    }
}

#[tokio::test]
async fn an_elicitation_before_a_crash_is_in_the_failure() {
    for way in [Way::Streams, Way::Http] {
        let connected = connect((way, Era::Session), &["--behave=elicit-crash"]).await;
        let failed = connected.call("count", json!({})).await.expect_err("no answer");
        assert!(failed.may_have_arrived, "{way:?}: {failed:?}");
        let messages: Vec<_> = failed.refused.iter().map(|asked| asked.message.as_str()).collect();
        assert_eq!(messages, ["Type your password."], "{way:?}");
    }
}

#[tokio::test]
async fn a_request_for_input_is_not_answered() {
    for (way, era) in [(Way::Streams, Era::Stateless), (Way::Http, Era::Stateless)] {
        for behave in ["--behave=input-required", "--behave=elicit"] {
            let connected = connect((way, era), &[behave]).await;
            let Ok(Answer::WantsInput { asked, state }) = connected.call("count", json!({})).await else {
                panic!("{way:?} {behave}: no request for input");
            };
            assert_eq!(state.as_deref(), Some("state of the server"));
            assert_eq!(
                (asked.len(), asked[0].key.as_str(), asked[0].message.as_str()),
                (1, "1", "Type your password.")
            );
            assert!(asked[0].schema.as_ref().is_some_and(|schema| schema["properties"]["password"].is_object()));
        }
    }
}

#[tokio::test]
async fn an_act_before_a_401_is_sent_once() {
    for era in [Era::Session, Era::Stateless] {
        let directory = std::env::temp_dir().join(format!("mcp-401-{era:?}-{}", std::process::id()));
        let _ = fs::remove_file(&directory);
        let file = format!("--count-file={}", directory.display());
        let connected = connect((Way::Http, era), &["--behave=unauthorized", &file]).await;
        let failed = connected.call("count", json!({})).await.unwrap_err();
        let Error::Refused { code: 401, www_authenticate: Some(challenge) } = failed.error else {
            panic!("{era:?}: {}", failed.error);
        };
        assert!(challenge.starts_with("Bearer ") && failed.may_have_arrived);
        assert_eq!(fs::read(&directory).unwrap(), b".", "{era:?}");
        fs::remove_file(&directory).unwrap();
    }
}
