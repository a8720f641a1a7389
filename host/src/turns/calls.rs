//! Rows of tool calls: the host records each call of a model output with its judgement, and a call has at most one result.
//!
//! A call that is not recorded here does not exist. `turns::calls::judge` decides about a call, and this file does not.

mod action;
mod advice;
mod canonical_text;
pub mod empty_output;
pub mod http;
mod judge;
mod output_body;
mod read_call;
mod result_body;
mod run;
mod schedule;
mod send;

pub use action::{Action, AskUserQuestion, SkillInstall};
pub use advice::advice;
pub use canonical_text::digest;
pub use ironclaw_store::tables::turns::{
    CallJudgement, calls_of as for_turn, find_call as find, judgement_of, may_have_happened, promise,
    refuse_before_result, refuse_call as refuse, set_call_refusal as set_refusal, settle_call as settle,
    start_call as start,
};
pub use ironclaw_store::tables::turns::{CallOutcome, CallRow, CallState, Runs};
pub use judge::{Judged, Judgement, TurnFacts, judge, main_code, needs_person};
pub use output_body::{Call, LeftOut, OutputBody, WRITTEN_CALL_MARK, WRITTEN_CALL_REMARK};
pub use read_call::{ReadCall, as_written};
pub use result_body::{ResultBody, ServerAnswer};
pub use run::{HostResult, recall_query, run};
pub use send::write_file;
pub use send::{OpenFlow, Sendable};

use crate::turns::items::{NewItem, Recorded};
use crate::turns::turn;
use ironclaw_contract::canonical;
use ironclaw_contract::ids::{CallId, ItemId, SessionId, TurnId};
use ironclaw_contract::seam::message::{Author, Span};
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_judge::call::{Answer, Stage, would_have_blocked};
use ironclaw_judge::provenance::Labelled;
use ironclaw_ledger::Entry;
use ironclaw_operator::{Bound, DenialCode, LedgerEvent, StageAnswer};
use ironclaw_state::WriteTx;
use ironclaw_state::keys::ContentKey;
use ironclaw_state::seal::Sealer;
use ironclaw_store::error::Error;
use ironclaw_store::tables::turns::{self, NewCall};
use ironclaw_text::lookalike;
use std::collections::BTreeSet;

/// Records a judged call with its position in the output.
pub fn record(
    tx: &mut WriteTx<'_>,
    session: SessionId,
    turn: TurnId,
    output: ItemId,
    position: usize,
    judged: &Judged,
) -> Result<(), ironclaw_state::Error> {
    let bound = match &judged.judgement {
        Judgement::Refused { bound, .. } => bound.as_deref(),
        Judgement::Permitted { .. } | Judgement::NeedsPerson { .. } => None,
    };
    let (class, runs, state, code) = match &judged.judgement {
        Judgement::Permitted { class, runs } => (Some(*class), Some(*runs), CallState::Permitted, None),
        Judgement::NeedsPerson { class, reasons, .. } => {
            (Some(*class), Some(Runs::Await), CallState::Asked, Some(main_code(reasons)))
        }
        Judgement::Refused { code, .. } => (None, None, CallState::Refused, Some(*code)),
    };
    let call = &judged.call;
    let new = NewCall {
        id: call.call_id,
        session,
        turn,
        output,
        position,
        tool: &call.tool,
        class,
        runs,
        digest: judged.digest,
        state,
        code,
        stages: &stages(&judged.by_stages.trace),
        bound,
    };
    turns::insert_call(tx, &new)?;
    let used: BTreeSet<_> = call.inputs.iter().filter(|_| judged.uses_values()).map(|input| input.handle).collect();
    for handle in used {
        turns::insert_input(tx, session, call.call_id, handle)?;
    }
    record_in_ledger(tx, session, turn, judged)
}

/// Values in one entry of the ledger.
const INPUTS_MAX: usize = 16;

/// Records the judgement of a call in the ledger, with the values that it takes from its person.
fn record_in_ledger(
    tx: &mut WriteTx<'_>,
    session: SessionId,
    turn: TurnId,
    judged: &Judged,
) -> Result<(), ironclaw_state::Error> {
    let call = &judged.call;
    let entry = |event| {
        let entry = Entry::new(event).session(session).turn(turn).with("call", call.call_id);
        entry.with("tool", known_name(judged)).with("arguments_digest", judged.digest)
    };
    match &judged.judgement {
        Judgement::Permitted { class, .. } | Judgement::NeedsPerson { class, .. } => {
            let lifted = codes(would_have_blocked(&judged.by_stages.trace));
            if !lifted.is_empty() {
                entry(LedgerEvent::CallWouldHaveBlocked).with("codes", lifted).append(tx)?;
            }
            let recorded = entry(LedgerEvent::CallRecorded).with("class", class.name());
            let inputs: BTreeSet<String> =
                call.inputs.iter().map(|input| format!("{}={}", input.argument(), input.handle)).collect();
            let recorded = match inputs.is_empty() {
                true => recorded,
                false => recorded.with("inputs", inputs.into_iter().take(INPUTS_MAX).collect::<Vec<_>>().join(" ")),
            };
            recorded.append(tx)?;
        }
        Judgement::Refused { code, .. } => {
            entry(LedgerEvent::CallRefused).reason(code.name()).append(tx)?;
        }
    }
    Ok(())
}

/// Reads recorded answers of stages: the stage, the answer and the code. Words of an earlier version are left out.
pub fn answers(stages: &str) -> impl Iterator<Item = (Stage, StageAnswer, Option<DenialCode>)> {
    stages.split_ascii_whitespace().filter_map(|recorded| {
        let (stage, answer) = recorded.split_once('=')?;
        let (answer, code) = answer.split_once(':').map_or((answer, None), |(answer, code)| (answer, Some(code)));
        Some((stage.parse().ok()?, answer.parse().ok()?, code.and_then(|code| code.parse().ok())))
    })
}

/// Returns the answers of the stages for the record: `stage=answer` or `stage=answer:code`, with blanks between.
pub fn stages(answers: &[(Stage, Answer)]) -> String {
    let told = answers.iter().map(|(stage, answer)| match answer.code() {
        Some(code) => format!("{}={}:{code}", stage.name(), answer.word()),
        None => format!("{}={}", stage.name(), answer.word()),
    });
    told.collect::<Vec<_>>().join(" ")
}

/// Returns the codes that a call which does not run can have: those of tool calls and of requests, but not those of people's requests.
#[cfg(test)]
pub fn codes_of_calls() -> impl Iterator<Item = DenialCode> {
    const OF_PEOPLE: [DenialCode; 3] =
        [DenialCode::CallUnknown, DenialCode::EgressMalformed, DenialCode::EgressTooMany];
    const OF_APPROVALS: [DenialCode; 4] =
        [DenialCode::ApprovalLost, DenialCode::ApprovalUsed, DenialCode::AllowanceLost, DenialCode::ShownDiffers];
    let is_of_calls = |code: &DenialCode| {
        code.name().starts_with("call_") || code.name().starts_with("egress_") || OF_APPROVALS.contains(code)
    };
    DenialCode::ALL.iter().copied().filter(move |code| is_of_calls(code) && !OF_PEOPLE.contains(code))
}

/// Returns the names of codes with blanks between.
fn codes(codes: impl Iterator<Item = DenialCode>) -> String {
    codes.map(DenialCode::name).collect::<Vec<_>>().join(" ")
}

/// Returns the name of a known tool. The ledger never contains a name that a model invented.
fn known_name(judged: &Judged) -> String {
    if judged.by_stages.class.is_some() { judged.call.tool.clone() } else { "(unknown)".to_owned() }
}

/// Returns the result of a refused call: its code, the next step, and the detail. The detail may quote the model, so it is neutralised
/// like every other text for the model.
pub fn refusal(code: DenialCode, detail: &str) -> ResultBody {
    let detail = if detail.is_empty() { String::new() } else { format!(" ({})", lookalike::neutralise(detail)) };
    ResultBody::failed(format!("refused ({code}): {}{detail}", advice(code)))
}

/// Returns the result of a call that is refused by a bound: the words of [`refusal`] with those of the bound.
pub fn refusal_over(code: DenialCode, bound: &Bound) -> ResultBody {
    refusal(code, &in_words(bound))
}

/// Returns the count, the end and the remedy of a bound.
pub fn in_words(bound: &Bound) -> String {
    format!("{bound}; {}", bound.advice())
}

/// The session and the turn of a result, with the keys that encrypt and seal it.
pub struct ResultTarget<'a> {
    pub session: SessionId,
    pub turn: TurnId,
    /// The key that encrypts its body.
    pub key: &'a ContentKey,
    /// The sealer of its ref.
    pub sealer: &'a Sealer,
}

/// Records a result of a call.
pub fn record_result(
    tx: &mut WriteTx<'_>,
    target: &ResultTarget<'_>,
    call: CallId,
    tool: &str,
    author: Author,
    result: Labelled<&ResultBody>,
) -> Result<Recorded, Error> {
    let text_bytes = result.value.text.len();
    let body = result.map(canonical::to_string);
    let spans = vec![Span { author, bytes: body.value.len() }];
    let item = NewItem::new(ItemId::new(), ItemKind::Result, body.as_deref(), spans, target.key)?;
    turn::count_result(tx, target.turn, text_bytes)?;
    Ok(item.turn(target.turn).call(call, tool).record(tx, target.session, target.sealer)?)
}
