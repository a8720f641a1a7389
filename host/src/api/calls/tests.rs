//! A denied call is never silent: each code with the words for the model, the ledger, the answer of `why` and the manual.

use super::*;
use crate::channels::inbound::channel::Received;
use crate::channels::inbound::scope::tests::received;
use crate::channels::inbound::{identity, inbox, routing};
use crate::gateway::decide::proof::Direct;
use crate::gateway::writers;
use crate::sessions::store::tests::{draft, make_owner};
use crate::turns::calls::{Call, Judged, codes_of_calls};
use ironclaw_contract::ids::{BootId, ItemId};
use ironclaw_judge::call::{Answer as StageAnswer, Stage};
use ironclaw_judge::inputs::Inputs;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::WriteTx;
use ironclaw_state::keys::WrappingKey;
use ironclaw_state::seal::Sealer;
use ironclaw_store::record;

/// Opens a turn of the owner with a new agent.
fn turn_of_the_owner(tx: &mut WriteTx<'_>, wrapping: &WrappingKey) -> (Person, turn::Turn) {
    let person = make_owner(tx);
    let owner = person.id;
    writers::agents::create_agent(tx, &Direct::by_test(owner), draft("clerk")).expect("a name");
    let (platform_id, sender, agent) = (owner.to_string(), owner.to_string(), "clerk".to_owned());
    let received = Received { platform_id, sender, speaker: Some(owner), agent, ..received("hello") };
    let known = identity::authenticate(tx, received).expect("known");
    let routed =
        routing::route(tx, known, &crate::registry::quota::Config::default(), u32::MAX, wrapping).expect("heard");
    let sealer = Sealer::new(BootId::new()).expect("a sealer");
    let session = inbox::record(tx, &routed, wrapping, &sealer).expect("taken").session;
    let opened = turn::open_next(tx, session, &turn::Config::default()).expect("read").expect("a turn");
    (person, turn::find(tx, opened.id).expect("read").expect("there"))
}

/// Returns the reasons of the entries about a call, by event.
fn entries(tx: &ReadTx<'_>, call: CallId) -> Vec<(String, String)> {
    let wanted = format!("%{call}%");
    let sql = "SELECT data FROM ledger WHERE data LIKE ?1 ORDER BY seq";
    let rows: Vec<String> = tx.list(sql, [wanted], |row| row.get(0)).expect("read");
    let read = |row: String| {
        let data: serde_json::Value = serde_json::from_str(&row).expect("JSON");
        let word = |name: &str| data[name].as_str().unwrap_or_default().to_owned();
        (word("what"), word("reason"))
    };
    rows.into_iter().map(read).collect()
}

#[test]
fn refused_call_is_never_silent() {
    record::in_a_new_one(|tx, key| {
        let (person, turn) = turn_of_the_owner(tx, &key.wrapping_key());
        for code in codes_of_calls() {
            let call = Call {
                call_id: CallId::new(),
                tool: "http_fetch".to_owned(),
                arguments: "{}".to_owned(),
                inputs: Vec::new(),
            };
            let id = call.call_id;
            let stages = vec![(Stage::Known, StageAnswer::Pass), (Stage::AlwaysAsk, StageAnswer::Ask(code))];
            let judgement = Judgement::Refused { code, detail: String::new(), bound: None };
            let judged = judged(call, judgement, stages);
            calls::record(tx, turn.session, turn.id, ItemId::new(), 0, &judged).expect("recorded");
            // The model.
            let told = calls::refusal(code, "").text;
            assert!(told.contains(code.name()) && told.contains(calls::advice(code)), "{told}");
            // The ledger.
            let entry = (LedgerEvent::CallRefused.name().to_owned(), code.name().to_owned());
            assert_eq!(entries(tx, id), [entry], "{code}");
            // The person.
            let why = read_call(tx, &key.wrapping_key(), &person, id)
                .expect("read")
                .unwrap_or_else(|| panic!("{code} has no explanation"));
            assert_eq!((why.status, why.code), (CallState::Refused, Some(code)));
            assert!(why.summary.contains(code.meaning()), "{}", why.summary);
            let asked = why.stages.last().expect("a stage");
            assert_eq!((asked.code, asked.meaning.as_deref()), (Some(code), Some(code.meaning())));
            // The manual.
            assert!(include_str!("../../../../docs/refusals.md").contains(&format!("| `{code}` |")), "{code}");
        }
    });
}

#[test]
fn call_waits_only_while_its_own_request_waits() {
    use ironclaw_operator::WaitingStatus as Status;
    let waits = summary_of_asked(Some(Status::Pending));
    for ended in [None, Some(Status::Approved), Some(Status::Rejected), Some(Status::Expired), Some(Status::Withdrawn)]
    {
        assert_ne!(summary_of_asked(ended), waits, "{ended:?}");
    }
}

#[test]
fn call_that_a_mode_permitted_names_the_lifted_codes() {
    record::in_a_new_one(|tx, key| {
        let (person, turn) = turn_of_the_owner(tx, &key.wrapping_key());
        let call = Call {
            call_id: CallId::new(),
            tool: "http_fetch".to_owned(),
            arguments: "{}".to_owned(),
            inputs: Vec::new(),
        };
        let id = call.call_id;
        let stages = vec![
            (Stage::Scope, StageAnswer::Lifted(Some(DenialCode::CallScope))),
            (Stage::Inputs, StageAnswer::Lifted(Some(DenialCode::CallOrigin))),
        ];
        let judgement = Judgement::Permitted { class: Class::Send, runs: tools::Runs::Await };
        let judged = judged(call, judgement, stages);
        calls::record(tx, turn.session, turn.id, ItemId::new(), 0, &judged).expect("recorded");
        let events: Vec<String> = entries(tx, id).into_iter().map(|(what, _)| what).collect();
        assert_eq!(events, [LedgerEvent::CallWouldHaveBlocked.name(), LedgerEvent::CallRecorded.name()]);
        let why = read_call(tx, &key.wrapping_key(), &person, id).expect("read").expect("a call");
        assert_eq!(why.would_have_blocked, [DenialCode::CallScope, DenialCode::CallOrigin]);
        let stages = [(Stage::Scope, StageAnswer::Lifted(None))];
        assert!(calls::stages(&stages).ends_with("=lifted"), "mode dangerous_off has no codes");
    });
}

/// Returns a judgement with these answers.
/// Returns a call without arguments, judged so by these stages.
fn judged(call: Call, judgement: Judgement, trace: Vec<(Stage, StageAnswer)>) -> Judged {
    let (digest, arguments) = (calls::digest(&call.tool, &call.arguments), serde_json::Map::new());
    Judged { call, digest, arguments, inputs: Inputs::default(), judgement, by_stages: found(trace) }
}

fn found(trace: Vec<(Stage, StageAnswer)>) -> ironclaw_judge::call::Judgement {
    let verdict = ironclaw_judge::call::Verdict::NeedsPerson(Vec::new());
    ironclaw_judge::call::Judgement { verdict, class: None, is_plain_read: false, trace }
}
