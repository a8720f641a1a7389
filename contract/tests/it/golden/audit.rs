//! Samples of the answers about heads, archives and the verification of the ledger. See `operator`.

use super::operator::AT;
use super::seam::{digest, id};
use super::{Shape, shape};
use ironclaw_contract::ids::PersonId;
use ironclaw_operator::{
    AcceptBreak, AcceptedBreak, BreakAccepted, HEAD_DOMAIN, HeadsKept, LedgerBad, LedgerFault, LedgerHead,
    LedgerVerdict, LedgerWhole, Rotated, SignedHead,
};

pub(super) fn shapes() -> Vec<Shape> {
    let head = SignedHead {
        domain: HEAD_DOMAIN.to_owned(),
        first: 20,
        hash: digest(0xc1).to_string(),
        key: digest(0xe1).to_string(),
        ledger: digest(0xc0).to_string(),
        seq: 41,
        signature: "5e".repeat(64),
        time: AT.to_owned(),
    };
    let kept = HeadsKept {
        directory: Some("/home/alice/.local/share/ironclaw/heads".to_owned()),
        seq: Some(40),
        trouble: Some("it is no directory".to_owned()),
    };
    let rotated = Rotated {
        archive: "/home/alice/.local/state/ironclaw/ledger/chain-000000000020.ndjson".to_owned(),
        first: 20,
        last: 41,
        digest: digest(0xc2).to_string(),
    };
    let whole = LedgerWhole {
        ok: true,
        entries: 42,
        chains: 2,
        heads: 3,
        ledger: digest(0xc0).to_string(),
        key: Some(digest(0xe1).to_string()),
        accepted: Vec::new(),
        remarks: vec!["2 heads of other ledgers were left out".to_owned()],
    };
    let accepted =
        AcceptedBreak { seq: 40, from: 12, by: id::<PersonId>("per", 1).to_string(), reason: "a restore".to_owned() };
    let bad = LedgerBad {
        ok: false,
        seq: Some(7),
        file: None,
        class: LedgerFault::Truncated,
        why: "the last line is torn".to_owned(),
    };
    let file = Some("/home/alice/.local/state/ironclaw/ledger/chain-000000000020.ndjson".to_owned());
    let archives = vec!["chain-000000000020.aside-0".to_owned()];
    vec![
        shape("operator.signed_head", head.clone()),
        shape("operator.ledger_head", LedgerHead { head, kept: kept.clone() }),
        shape("operator.heads_kept", kept),
        shape("operator.heads_kept.none", HeadsKept::default()),
        shape("operator.rotated", rotated),
        shape("operator.ledger_whole", whole.clone()),
        shape("operator.ledger_whole.accepted", LedgerWhole { accepted: vec![accepted.clone()], ..whole.clone() }),
        shape("operator.accepted_break", accepted),
        shape("operator.accept_break", AcceptBreak { reason: "a restore".to_owned() }),
        shape("operator.break_accepted", BreakAccepted { seq: 40, from: 12, heads: 3, archives }),
        shape("operator.ledger_bad.in_file", LedgerBad { file, ..bad.clone() }),
        shape("operator.ledger_bad", bad.clone()),
        shape("operator.ledger_bad.nowhere", LedgerBad { seq: None, ..bad.clone() }),
        shape("operator.ledger_verdict.whole", LedgerVerdict::Whole(whole)),
        shape("operator.ledger_verdict.bad", LedgerVerdict::Bad(bad)),
    ]
}
