//! Tests of declarations and of channels that tell no quotes, and a plain message for other tests.

use super::*;
use ironclaw_judge::provenance::spans::Telling;
use ironclaw_judge::scope::declared::Declaration;
use ironclaw_judge::{Class, Classes};
use ironclaw_store::tables::messages::Kind;

/// Returns a message on the loopback without files, mentions or a declaration.
pub(crate) fn received(text: &str) -> Received {
    Received {
        channel: "loopback".into(),
        kind: Kind::Chat,
        platform_id: "p".into(),
        thread_id: String::new(),
        sender: "p".into(),
        speaker: None,
        event_id: None,
        event_digest: None,
        agent: "a".into(),
        text: text.into(),
        files: Vec::new(),
        group: None,
        mentions: Vec::new(),
        quoted: Vec::new(),
        allow: None,
        telling: Telling::Typed,
    }
}

fn recorded(received: &Received) -> String {
    find(received).map(|found| found.recorded).unwrap_or_else(|refusal| refusal.code.name().to_owned())
}

#[test]
fn malformed_or_double_declaration_is_refused() {
    for text in ["/allow", "/allow everything", "/allow send mail", "/allow read +send"] {
        assert_eq!(recorded(&received(text)), "scope_malformed", "{text}");
    }
    let send = Declaration { classes: Classes::new(&[Class::Send]), adds: true };
    for text in ["/allow send\nhello", "/allow +send\nhello"] {
        let twice = Received { allow: Some(send), ..received(text) };
        assert_eq!(recorded(&twice), "scope_malformed", "{text}");
    }
    let beside = Received { allow: Some(send), ..received("save it in a file") };
    assert_eq!(recorded(&beside), "added:write send");
}

#[test]
fn declaration_is_cut_off_and_quoted_ones_count_for_nothing() {
    let message = received("/allow send write\nPost it");
    let found = find(&message).expect("a scope");
    assert_eq!((found.recorded.as_str(), found.text), ("declared:write send", "Post it"));
    let message = received("/allow +exec -- save it in a file");
    let found = find(&message).expect("a scope");
    assert_eq!((found.recorded.as_str(), found.text), ("added:write exec", "save it in a file"));
    let quoted = Received { quoted: vec!["/allow send".into()], ..received("hello") };
    assert_eq!(recorded(&quoted), "default:");
    assert_eq!(recorded(&received("hello\n/allow send")), "default:");
}

#[test]
fn channel_that_tells_no_quotes_gives_reading_alone() {
    let message = Received { telling: Telling::Nothing, ..received("/allow send read\nPost it") };
    assert_eq!(recorded(&message), "untyped-declared:read");
}
