//! One sample of every shape about token usage, the words of an answer and the progress of a call. Every value is fixed. See `operator`.

use super::seam::id;
use super::{Shape, shape};
use ironclaw_contract::ids::{AgentId, CallId, SessionId};
use ironclaw_operator::{AgentBudget, CallProgress, Ceiling, CeilingKind, Draft, Usage, UsageRow};

pub(super) fn ceiling() -> Ceiling {
    Ceiling {
        name: CeilingKind::TokensPerDay,
        of: None,
        limit: 100_000,
        used: 5_526,
        left: 94_474,
        until: Some("2026-11-19T00:00:00.000Z".to_owned()),
    }
}

pub(super) fn shapes() -> Vec<Shape> {
    let row = UsageRow {
        day: "2026-11-18".to_owned(),
        agent_id: id::<AgentId>("agt", 1),
        agent: "clerk".to_owned(),
        session_id: id::<SessionId>("ses", 1),
        model: "local".to_owned(),
        scripted: false,
        requests: 3,
        input_tokens: 4_711,
        output_tokens: 815,
        cost_micros: 26_358,
    };
    let host = ceiling();
    let session = Ceiling {
        name: CeilingKind::TokensPerSession,
        of: Some(row.session_id.to_string()),
        limit: 5_000,
        used: 5_526,
        left: 0,
        until: None,
    };
    let progress = CallProgress {
        call_id: id::<CallId>("call", 1),
        tool: "papers__find".to_owned(),
        progress: 3.0,
        total: Some(10.0),
        words: Some("reading page 3".to_owned()),
    };
    let bare = CallProgress { total: None, words: None, ..progress.clone() };
    let budget = AgentBudget { tokens_per_day: Some(200_000), cost_per_day_micros: Some(2_500_000) };
    vec![
        shape("operator.usage_row", row.clone()),
        shape("operator.ceiling", host.clone()),
        shape("operator.ceiling.session", session.clone()),
        shape("operator.usage", Usage { rows: vec![row], more: false, ceilings: vec![host, session] }),
        shape("operator.agent_budget", budget),
        shape("operator.agent_budget.bare", AgentBudget::default()),
        shape("operator.draft", Draft { attempt: 2, from: 12, text: "and so on".to_owned() }),
        shape("operator.call_progress", progress),
        shape("operator.call_progress.bare", bare),
    ]
}
