//! One sample of each answer about the conversations of a person, and of what they hold. See `operator`.

use super::operator::{AT, session_id};
use super::seam::{digest, id};
use super::{Shape, shape};
use ironclaw_contract::ids::{CallId, ItemId, TurnId};
use ironclaw_contract::seam::seal::{ItemKind, Label};
use ironclaw_operator::{
    CallState, ClaimMark, Receipt, SessionReplies, SessionReply, ShownReply, Source, SourceKind, Sources, Speaker,
    Thread, Threads, Transcript, TranscriptCall, TranscriptItem, TranscriptSpan,
};

fn source(kind: SourceKind) -> Source {
    Source {
        item: id::<ItemId>("itm", 2),
        seq: 2,
        kind,
        counts: kind.counts(),
        at: AT.to_owned(),
        authors: vec!["tool read_file".to_owned()],
        by: "tool read_file".to_owned(),
        labels: vec![Label::External, Label::LlmDerived],
        tool: Some("read_file".to_owned()),
        path: Some("notes.md".to_owned()),
        covers: (kind == SourceKind::Summary).then_some([2, 40]),
    }
}

pub(super) fn sources() -> Sources {
    Sources {
        results: Some(2),
        rests_on: SourceKind::ALL.map(source).to_vec(),
        left_off: 1,
        is_whole: false,
        summary: "rests on 2 results".to_owned(),
    }
}

pub(super) fn shown() -> ShownReply {
    ShownReply {
        shown_as: Some("Done [I].".to_owned()),
        marks: vec![ClaimMark {
            at: 5,
            written: "[G]".to_owned(),
            shown: "[I]".to_owned(),
            reason: Some("the reply rests on no result".to_owned()),
        }],
        unknown_urls: vec!["https://a.example/x".to_owned()],
        remarks: vec!["[G] and [I] are the agent's own words, and no statement of the host".to_owned()],
    }
}

fn reply() -> SessionReply {
    SessionReply {
        item: id::<ItemId>("itm", 1),
        seq: 4,
        at: AT.to_owned(),
        turn_id: Some(id::<TurnId>("trn", 1)),
        reply: "Done [G].".to_owned(),
        shown: shown(),
        sources: sources(),
    }
}

pub(super) fn all() -> Vec<Shape> {
    let call = TranscriptCall {
        call_id: id::<CallId>("call", 1),
        tool: "read_file".to_owned(),
        arguments: r#"{"path":"notes.md"}"#.to_owned(),
        state: CallState::Done,
    };
    let span = TranscriptSpan { author: "model".to_owned(), bytes: 4 };
    let bare = TranscriptItem {
        id: id::<ItemId>("itm", 1),
        seq: 4,
        kind: ItemKind::Message,
        speaker: Speaker::Person,
        at: AT.to_owned(),
        turn_id: None,
        spans: vec![span.clone()],
        labels: vec![Label::External, Label::LlmDerived],
        text: "Done".to_owned(),
        digest: digest(0xd1).to_string(),
        calls: vec![],
        call_id: None,
        tool: None,
        ok: None,
        receipt: None,
        covers: None,
    };
    let full = TranscriptItem {
        turn_id: Some(id::<TurnId>("trn", 1)),
        calls: vec![call.clone()],
        call_id: Some(call.call_id),
        tool: Some(call.tool.clone()),
        ok: Some(true),
        receipt: Some(Receipt::Received),
        covers: Some([2, 40]),
        ..bare.clone()
    };
    let page =
        Transcript { session_id: session_id(), agent: "clerk".to_owned(), items: vec![bare.clone()], more: true };
    vec![
        shape("operator.transcript_span", span),
        shape("operator.transcript_call", call),
        shape("operator.transcript_item.bare", bare),
        shape("operator.transcript_item", full),
        shape("operator.transcript", page),
        shape("operator.source", source(SourceKind::Summary)),
        shape("operator.sources", sources()),
        shape("operator.claim_mark", shown().marks[0].clone()),
        shape("operator.shown_reply", shown()),
        shape("operator.session_reply", reply()),
        shape("operator.session_replies", SessionReplies { session_id: session_id(), replies: vec![reply()] }),
        shape(
            "operator.thread",
            Thread {
                thread: Some("work".to_owned()),
                title: Some("Look what changed".to_owned()),
                session_id: session_id(),
                last_active_at: AT.to_owned(),
            },
        ),
        shape(
            "operator.threads",
            Threads {
                threads: vec![Thread {
                    thread: None,
                    title: None,
                    session_id: session_id(),
                    last_active_at: AT.to_owned(),
                }],
                more: true,
            },
        ),
        shape(
            "operator.thread.unnamed",
            Thread { thread: None, title: None, session_id: session_id(), last_active_at: AT.to_owned() },
        ),
    ]
}
