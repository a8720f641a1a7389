//! The reasons behind an id: a message, a call, or what waits.
//!
//! Shows what the API says about it, and judges nothing.

use super::pages::{self, Frame, Notice, Room, page};
use super::visit::Visit;
use super::words;
use crate::api::answer::Refused;
use crate::api::calls;
use crate::api::chat::why as messages;
use crate::api::handler::{Answer, Caller};
use askama::Template;
use axum::Json;
use axum::extract::{Path, Query};
use axum::http::StatusCode;
use axum::response::Response;
use ironclaw_operator::WaitingId;
use serde::Deserialize;

/// Query of `GET /why`.
#[derive(Debug, Deserialize)]
pub struct WhyQuery {
    /// The id; empty asks for one.
    #[serde(default)]
    id: String,
}

/// What is behind an id.
#[derive(Default)]
struct Reasons {
    summary: String,
    lines: Vec<String>,
}

#[derive(Template)]
#[template(path = "why.html")]
struct WhyPage {
    frame: Frame,
    id: String,
    reasons: Reasons,
}

/// `GET /why?id=ID`
pub async fn show(visit: Visit, Query(query): Query<WhyQuery>) -> Result<Response, Answer> {
    let id = query.id.trim().to_owned();
    if id.parse::<WaitingId>().is_ok() {
        return Ok(pages::see_other(&format!("/waiting/{id}")));
    }
    let found = if id.is_empty() { Ok(Reasons::default()) } else { reasons(&visit.caller, &id).await };
    let (reasons, notice, status) = match found {
        Ok(reasons) => (reasons, None, StatusCode::OK),
        Err(answer) => {
            let refused = Refused::from(answer);
            (Reasons::default(), Some(Notice::from(&refused)), refused.status)
        }
    };
    let frame = Frame::new(&visit, Some(Room::Why), words::WHY).with(notice);
    Ok(page(status, &WhyPage { frame, id, reasons }))
}

async fn reasons(caller: &Caller, id: &str) -> Result<Reasons, Answer> {
    if id.starts_with("call_") {
        let Json(why) = calls::why(caller.clone(), Path(id.to_owned())).await?;
        let stages = why.stages.iter().map(|stage| {
            let code = stage.code.map_or_else(String::new, |code| format!(" ({code})"));
            format!("{}: {}{code}", stage.stage, stage.answer)
        });
        let asked = why.request.map(|request| format!("{request}"));
        return Ok(Reasons { summary: why.summary, lines: stages.chain(asked).collect() });
    }
    let Json(why) = messages::why(caller.clone(), Path(id.to_owned())).await?;
    let settings = caller.api.gateway.now();
    let zone = settings.host_policy.zone.zone.rules();
    let stages = why.stages.iter().map(|stage| {
        let reason = if stage.reason.is_empty() { String::new() } else { format!(": {}", stage.reason) };
        format!("{} {} {}{reason}", words::time(zone, &stage.at), stage.stage, stage.outcome)
    });
    Ok(Reasons { summary: why.summary, lines: stages.chain(why.progress).collect() })
}
