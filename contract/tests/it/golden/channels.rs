//! One sample of every shape about channels and dead letters. Every value is fixed. See `operator`.

use super::seam::id;
use super::{Shape, shape};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{DeliveryId, MessageId, SessionId};
use ironclaw_contract::seam::change::{Engage, Ignored, Senders, Sharing, UnknownSenders};
use ironclaw_operator::{
    AgentWiring, Channel, ChannelKind, ChannelProbe, ChannelTest, DeadLetter, DeadLetterDone, DeadLetters, DenialCode,
    NewChannel, NewChannelMade, NewOwnSender, NewWiring, OwnSender, Receipt, RefusedRequests, SignatureRule, Taken,
    WaitingSender,
};

const AT: &str = "2026-11-18T11:06:40.123Z";

pub(super) fn shapes() -> Vec<Shape> {
    let bare = NewChannel {
        kind: "webhook".to_owned(),
        name: "shop".to_owned(),
        url: "https://shop.example/replies".to_owned(),
        idempotent: false,
        secret: None,
    };
    let secret = format!("whsec_{}=", "A".repeat(43));
    let new = NewChannel { idempotent: true, secret: Some(secret.clone()), ..bare.clone() };
    let channel = Channel {
        name: "shop".to_owned(),
        kind: ChannelKind::Webhook,
        url: "https://shop.example/replies".to_owned(),
        idempotent: true,
        agent: Some("assistant".to_owned()),
        wiring: Some(AgentWiring {
            channel: "shop".to_owned(),
            engage: Engage::MentionSticky,
            pattern: None,
            from: Senders::All,
            unknown: UnknownSenders::Request,
            ignored: Ignored::Drop,
            sharing: Sharing::Shared,
        }),
        waiting: vec![WaitingSender { identity: "shop:eve".to_owned(), since: AT.to_owned() }],
        own: vec![OwnSender { identity: "shop:ci".to_owned(), person: "Ann".to_owned(), since: AT.to_owned() }],
        refused: vec![
            RefusedRequests {
                code: DenialCode::SignatureInvalid,
                rule: Some(SignatureRule::SecretAsText),
                count: 2,
                last_at: AT.to_owned(),
            },
            RefusedRequests { code: DenialCode::TimestampOutside, rule: None, count: 1, last_at: AT.to_owned() },
        ],
        hook: Some("http://127.0.0.1:8788/hooks/shop".to_owned()),
        created_at: AT.to_owned(),
    };
    let unheard = Channel {
        agent: None,
        wiring: None,
        waiting: Vec::new(),
        own: Vec::new(),
        refused: Vec::new(),
        hook: None,
        ..channel.clone()
    };
    let letter = DeadLetter {
        delivery_id: id::<DeliveryId>("dlv", 1),
        session_id: id::<SessionId>("ses", 1),
        channel: "shop".to_owned(),
        recipient: "ann".to_owned(),
        thread: "order-17".to_owned(),
        receipt: Receipt::Dead,
        reason: "it answered 410".to_owned(),
        attempts: 1,
        created_at: AT.to_owned(),
        settled_at: AT.to_owned(),
    };
    let wiring = NewWiring {
        agent: "assistant".to_owned(),
        engage: None,
        pattern: None,
        from: None,
        unknown: None,
        ignored: None,
        sharing: None,
    };
    let done = DeadLetterDone { delivery_id: letter.delivery_id, receipt: Receipt::Pending };
    vec![
        shape("operator.new_channel", new),
        shape("operator.new_channel.bare", bare),
        shape("operator.channel", channel.clone()),
        shape("operator.channel.unheard", unheard),
        shape(
            "operator.new_channel_made",
            NewChannelMade { channel: channel.clone(), secret: Some(secret), remark: None },
        ),
        shape(
            "operator.new_channel_made.brought",
            NewChannelMade { channel, secret: None, remark: Some("the text signs".to_owned()) },
        ),
        shape("operator.new_own_sender", NewOwnSender { shown: Some(Digest::of(b"a page")) }),
        shape("operator.new_wiring.bare", wiring.clone()),
        shape(
            "operator.new_wiring",
            NewWiring {
                engage: Some("pattern".to_owned()),
                pattern: Some("^!bot".to_owned()),
                from: Some("all".to_owned()),
                unknown: Some("public".to_owned()),
                ignored: Some("drop".to_owned()),
                sharing: Some("agent".to_owned()),
                ..wiring
            },
        ),
        shape("operator.channel_probe", ChannelProbe { reached: true, result: "it accepts connections".to_owned() }),
        shape("operator.channel_test", ChannelTest { received: false, result: "it answered 500".to_owned() }),
        shape("operator.taken", Taken { message_id: Some(id::<MessageId>("msg", 1)) }),
        shape("operator.taken.ignored", Taken { message_id: None }),
        shape("operator.dead_letters", DeadLetters { letters: vec![letter.clone()], more: true }),
        shape("operator.dead_letter", letter),
        shape("operator.dead_letter_done", done),
    ]
}
