//! What a request to a model may take and took, and why one came to nothing: booked before, put right after, said to the person.
//!
//! Never asks a model. What a provider says goes into no sentence of the host. Next: `budget`, `pipeline::model_requests`.

use super::model_socket::Server;
use super::{Core, Error};
use crate::budget::{self, book};
use crate::context::Refused;
use crate::ledger::Entry;
use crate::model::{self, Answered, Prompt, Usage};
use crate::registry::Agent;
use crate::state::Tx;
use crate::turn;
use ironclaw_contract::ids::{SessionId, TurnId};
use ironclaw_contract::seam::socket::{RefusalCode, Response};
use std::sync::Arc;

/// A request that came to nothing.
pub(super) struct Failed {
    /// Why, in the host's words.
    pub(super) words: String,
    /// What it took all the same; `None` where nobody knows, and what was booked stays.
    pub(super) took: Option<(String, Usage)>,
}

impl Failed {
    /// For this reason; what it took is not known.
    pub(super) fn because(words: impl Into<String>) -> Self {
        Self { words: words.into(), took: None }
    }
}

/// Why a model gave nothing, for the person: never the provider's own words.
pub(super) fn sentence(error: &model::Error) -> String {
    match error {
        model::Error::Failed { endpoint, .. } => format!("the model endpoint `{endpoint}` failed"),
        model::Error::Unreadable { .. } | model::Error::Script { .. } => "the model endpoint cannot be used".to_owned(),
    }
}

/// Books what a request is thought to take, or refuses it: then nothing is asked, and the person hears why.
pub(super) fn book(
    tx: &mut Tx<'_>,
    core: &Core,
    (session, turn): (SessionId, TurnId),
    agent: &Agent,
    prompt: &Prompt,
) -> Result<Result<book::Booked, Refused>, Error> {
    let chain = core.endpoints().chain(&agent.model);
    let estimate = budget::estimate(prompt, chain.iter().map(|endpoint| endpoint.spec.prices));
    let used = book::used(tx, &core.config.budget, agent.id, session)?;
    if let Err(exceeded) = budget::judge(&used, estimate.into()) {
        let words = exceeded.sentence(&agent.name, tx.now());
        Entry::retract("budget.refused")
            .session(session)
            .turn(turn)
            .with("agent", agent.id.to_string())
            .with("ceiling", exceeded.limit.ceiling.name())
            .with("limit", exceeded.limit.limit)
            .with("used", exceeded.used)
            .with("needed", exceeded.needed)
            .reason(&words)
            .append(tx)?;
        turn::note_failure(tx, turn, "budget", &words)?;
        return Ok(Err(Refused { code: RefusalCode::Model, message: words }));
    }
    Ok(Ok(book::book(tx, agent.id, session, &agent.model, estimate)?))
}

/// Puts what an output took in the place of what was booked for it.
pub(super) fn settle(tx: &mut Tx<'_>, booked: &book::Booked, answered: &Answered) -> Result<(), Error> {
    Ok(book::settle(tx, booked, &answered.endpoint, answered.usage)?)
}

impl Server {
    /// Notes that a request came to nothing, and why; what it took, or may have taken, stays booked.
    pub(super) async fn record_failure(
        &self,
        turn: TurnId,
        agent: &Agent,
        booked: book::Booked,
        failed: Failed,
    ) -> Result<Result<Response, Refused>, Error> {
        // The cause may quote what was sent: it stands in no log and no ledger.
        tracing::warn!(session = %self.session, model = agent.model, why = failed.words, "a model gave no output");
        let (core, session, model) = (Arc::clone(&self.core), self.session, agent.model.clone());
        let Failed { words, took } = failed;
        let message = words.clone();
        let note = core.state.write(move |tx| {
            if let Some((endpoint, usage)) = &took {
                book::settle(tx, &booked, endpoint, *usage)?;
            }
            turn::note_failure(tx, turn, "model", &words)?;
            let entry = Entry::retract("model.failed").session(session).turn(turn).with("model", model);
            entry.reason(&words).append(tx)?;
            Ok::<_, Error>(())
        });
        note.await?;
        Ok(Err(Refused { code: RefusalCode::Model, message }))
    }
}
