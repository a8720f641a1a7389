//! The report about calls and requests over the API.
//!
//! Counts and judges nothing: see [`crate::calls::report`].

use super::agents;
use super::handler::{Answer, Caller, Reply};
use super::tokens;
use crate::calls::report;
use crate::registry::Role;
use axum::Json;
use axum::extract::Query;
use ironclaw_operator::{DenialCode, Report};
use ironclaw_store::refusal::Refusal;
use ironclaw_store::tables::turns::recent::Whose;
use ironclaw_text::excerpt::quoted;
use serde::Deserialize;
use std::sync::Arc;

/// Query of `GET /v1/report`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct ReportQuery {
    /// The begin: a duration before now such as `7d`, or RFC 3339; by default `7d`.
    #[serde(default = "usual_since")]
    #[cfg_attr(test, schema(required = false))]
    since: String,
    /// An agent by name or id; only its turns.
    #[serde(default)]
    agent: Option<String>,
}

fn usual_since() -> String {
    "7d".to_owned()
}

/// `GET /v1/report?since=S&agent=A`: an operator sees the turns of everyone, a member their own.
pub async fn show(Caller { api, person, .. }: Caller, Query(query): Query<ReportQuery>) -> Reply<Report> {
    let since = begin(&query.since, ironclaw_state::wall_clock())?;
    let gateway = Arc::clone(&api.gateway);
    let agent = agents::find_by_filter(&api, &person, query.agent).await?;
    let whose = Whose { person: (!person.role.covers(Role::Admin)).then_some(person.id), agent };
    let report = api.state().read(move |tx| report::report(tx, &gateway, since, whose)).await?;
    Ok(Json(report))
}

/// Returns the begin of a report, milliseconds since the epoch.
fn begin(text: &str, now: i64) -> Result<i64, Answer> {
    let refuse = || {
        let message = format!(
            "invalid begin {}: give a duration such as 7d, or RFC 3339 such as 2027-01-31T12:00:00Z, in the past",
            quoted(text)
        );
        Answer::from(Refusal::new(DenialCode::SinceMalformed, message))
    };
    tokens::instant(text, now, tokens::Side::Before).filter(|at| *at < now).ok_or_else(refuse)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn begin_that_is_no_time_in_the_past_is_refused() {
        let now = 1_795_000_000_000;
        let day = 86_400_000;
        for text in ["", "7", "week", "-7d", "0d", "2099-01-01T00:00:00Z", "1y", "99999999999d"] {
            assert!(begin(text, now).is_err(), "{text}");
        }
        for (text, expected) in
            [("7d", now - 7 * day), ("12h", now - day / 2), ("2026-11-01T00:00:00Z", 1_793_491_200_000)]
        {
            assert_eq!(begin(text, now).ok(), Some(expected), "{text}");
        }
    }
}
