//! The budget of a model request: its estimate before the request, its real use after it, and the record of its failure.
//!
//! Never sends a request to a model, and never quotes a provider in a sentence of the host. See [`crate::turns::budget`] and
//! [`crate::calls::model_socket::requests`].

use crate::calls::model_socket::Server;
use crate::calls::model_socket::requests::{Answer, refuse};
use crate::registry::Agent;
use crate::turns::budget::{self, book};
use crate::turns::context::Unanswered;
use crate::turns::{endpoint_words, turn};
use ironclaw_contract::ids::{SessionId, TurnId};
use ironclaw_contract::seam::socket::RefusalCode;
use ironclaw_ledger::Entry;
use ironclaw_model::context_size::TooLong;
use ironclaw_model::endpoint::Endpoint;
use ironclaw_model::fault::{Failure, Fault};
use ironclaw_model::{Allowance, Answered, Prompt, Usage};
use ironclaw_operator::LedgerEvent;
use ironclaw_state::WriteTx;
use ironclaw_store::error::Error;
use std::sync::Arc;

/// A request without an output.
pub(crate) struct Failed {
    /// The code of the failure, one word.
    pub(crate) code: &'static str,
    /// The reason, in the host's words.
    pub(crate) words: String,
    /// The endpoint that is charged for it.
    pub(crate) model: String,
    /// The use that it caused nevertheless.
    pub(crate) took: Usage,
    /// The refusal because of its size, if that was the reason.
    pub(crate) too_long: Option<TooLong>,
    /// The failure of each endpoint, with its words.
    pub(crate) failures: Vec<Failure>,
}

impl Failed {
    /// Returns the failure of a request that was never sent and cost nothing.
    pub(crate) fn unasked(words: String, model: &str) -> Self {
        Self::new("unasked", words, model.to_owned(), Usage::default())
    }

    /// Returns a failure without one of an endpoint.
    pub(crate) const fn new(code: &'static str, words: String, model: String, took: Usage) -> Self {
        Self { code, words, model, took, too_long: None, failures: Vec::new() }
    }

    /// Returns whether the last endpoint gave no whole answer in time.
    pub(crate) fn is_slow(&self) -> bool {
        let last = self.failures.last().map(|failure| failure.fault);
        matches!(last, Some(Fault::Silent | Fault::Stalled | Fault::Late))
    }

    /// Returns the failure of a request that every endpoint failed, with the use of attempts that may have begun an output.
    pub(crate) fn from_error(error: &ironclaw_model::Error, model: &str) -> Self {
        let model = model.to_owned();
        match error {
            ironclaw_model::Error::Failed(failed) => Self {
                too_long: failed.too_long(),
                failures: failed.failures.clone(),
                ..Self::new(failed.code(), error.sentence(), model, failed.usage)
            },
            ironclaw_model::Error::Unreadable { .. }
            | ironclaw_model::Error::Script { .. }
            | ironclaw_model::Error::Spec { .. } => Self::new("unusable", error.sentence(), model, Usage::default()),
        }
    }
}

/// Books the estimate of a request, and returns the allowance for all its attempts together. Refuses a request that exceeds a ceiling:
/// no model receives it, and the person reads the reason.
pub(crate) fn book(
    tx: &mut WriteTx<'_>,
    config: &budget::Config,
    session: SessionId,
    turn: TurnId,
    agent: &Agent,
    prompt: &Prompt,
    chain: &[Arc<Endpoint>],
) -> Result<(book::Booked, Allowance), Unanswered<Error>> {
    let estimate = budget::estimate(prompt, chain.iter().map(|endpoint| &endpoint.spec));
    let used = book::used(tx, config, agent.id, session, turn)?;
    if let Err(exceeded) = budget::judge(&used, estimate.into()) {
        let words = exceeded.sentence(&agent.name, tx.wall());
        Entry::new(LedgerEvent::BudgetRefused)
            .session(session)
            .turn(turn)
            .with("agent", agent.id)
            .with("ceiling", exceeded.limit.ceiling.name())
            .with("limit", exceeded.limit.limit)
            .with("used", exceeded.used)
            .with("needed", exceeded.needed)
            .reason(&words)
            .append(tx)?;
        turn::record_model_failure(tx, turn, "budget", &words)?;
        return refuse(RefusalCode::Model, words);
    }
    Ok((book::book(tx, agent.id, session, turn, &agent.model, estimate)?, budget::allowance(&used)))
}

/// Replaces the estimate of a request by the real use of its output.
pub(crate) fn settle(tx: &mut WriteTx<'_>, booked: &book::Booked, answered: &Answered) -> Result<(), Error> {
    Ok(book::replace_estimate(tx, booked, &answered.endpoint, answered.usage)?)
}

impl Server {
    /// Records the failure of a request, its reason and its use.
    pub(crate) async fn record_failure(
        &self,
        turn: TurnId,
        agent: &Agent,
        booked: book::Booked,
        failed: Failed,
    ) -> Answer {
        // The cause may quote the request, so neither the log nor the ledger has it.
        tracing::warn!(session = %self.session, model = agent.model, why = failed.words, "a model gave no output");
        let (session, model) = (self.session, agent.model.clone());
        let Failed { code, words, model: asked, took, failures, .. } = failed;
        let (message, key) = (words.clone(), Arc::clone(&self.key));
        let note = self.state().write(move |tx| {
            book::replace_estimate(tx, &booked, &asked, took)?;
            turn::record_model_failure(tx, turn, code, &words)?;
            endpoint_words::note(tx, session, turn, &failures, &key)?;
            let entry = Entry::new(LedgerEvent::ModelFailed).session(session).turn(turn).with("model", model);
            entry.with("code", code).reason(&words).append(tx)?;
            Ok::<_, Error>(())
        });
        note.await?;
        refuse(RefusalCode::Model, message)
    }
}
