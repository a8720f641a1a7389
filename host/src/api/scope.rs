//! The measure of the lexicon that finds the scope of a message.
//!
//! Never records a request. See [`crate::channels::inbound::scope`].

use super::handler::{Answer, Body, Reply};
use crate::channels::inbound::scope;
use axum::Json;
use ironclaw_judge::scope::report::{Measure, Report, Wrong};
use ironclaw_operator::{DenialCode, SCOPE_CASES_BYTES_MAX, ScopeMeasure, TestScope, TestedScope, WrongScope};
use ironclaw_store::refusal::Refusal;

/// `POST /v1/scope/test`
pub async fn test(Body(asked): Body<TestScope>) -> Reply<TestedScope> {
    let bytes = asked.cases.as_ref().map_or(0, String::len);
    if bytes > SCOPE_CASES_BYTES_MAX {
        let message = format!("the cases are {bytes} bytes; at most {SCOPE_CASES_BYTES_MAX} fit");
        return Err(Refusal::new(DenialCode::RequestTooLarge, message).hint("split the file").into());
    }
    // Some thousand texts take longer than a request may hold an async thread.
    let measured = tokio::task::spawn_blocking(move || scope::measure(asked.cases.as_deref())).await;
    let Ok(measured) = measured else {
        return Err(Refusal::new(DenialCode::Internal, "the measure failed; the log of the host has the cause").into());
    };
    let report = measured.map_err(|mistake| {
        let refusal = Refusal::new(DenialCode::ScopeCasesMalformed, format!("cannot read the cases: {mistake}"));
        Answer::from(refusal.hint("each [[case]] has lang, text and wants, and may have trap and note"))
    })?;
    Ok(Json(view(report)))
}

fn view(report: Report) -> TestedScope {
    let Report { cases, measures, wrong } = report;
    TestedScope {
        cases,
        measures: measures.into_iter().map(measure).collect(),
        wrong: wrong.into_iter().map(mistaken).collect(),
    }
}

fn measure(found: Measure) -> ScopeMeasure {
    let Measure { lang, class, right, claimed, missed, precision, recall } = found;
    ScopeMeasure { lang, class, right, claimed, missed, precision, recall }
}

fn mistaken(found: Wrong) -> WrongScope {
    let Wrong { case, got, words } = found;
    WrongScope {
        lang: case.lang,
        text: case.text,
        wants: case.wants.iter().collect(),
        got: got.iter().collect(),
        words: words.into_iter().map(|(_, words)| words).collect(),
    }
}
