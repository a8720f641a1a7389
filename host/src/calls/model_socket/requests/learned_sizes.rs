//! What the answers of endpoints show about the size of their contexts: the record keeps it, and the person of the turn reads it once.
//!
//! Never decides what is believed. See [`crate::turns::context::reading`].

use super::Answer;
use super::prepared::Prepared;
use crate::calls::model_socket::Server;
use crate::channels::outbound::delivery;
use crate::sessions::store;
use crate::turns::context::reading::{self, Sign};
use crate::turns::turn::{self, Turn};
use ironclaw_contract::ids::TurnId;
use ironclaw_contract::seam::socket::{RefusalCode, Response};
use ironclaw_judge::Principal;
use ironclaw_ledger::Entry;
use ironclaw_model::context_size::{ContextSign, TooLong};
use ironclaw_model::endpoint::{Endpoint, Spec};
use ironclaw_model::{Answered, tokens_estimated};
use ironclaw_operator::LedgerEvent;
use ironclaw_state::WriteTx;
use ironclaw_store::error::Error;
use ironclaw_store::tables::context_sizes::SizeSource;
use std::sync::Arc;

impl Server {
    /// Notes what an answer shows about the size of a context, by its words, its end, or the count of its provider.
    pub(super) async fn record_count(
        &self,
        turn: TurnId,
        prepared: &Prepared,
        answered: &Answered,
    ) -> Result<(), Error> {
        let Some(spec) = spec(&prepared.chain, &answered.endpoint) else { return Ok(()) };
        let sign = answered.context.map(|sign| match sign {
            ContextSign::Stated(tokens) => Sign { tokens, source: SizeSource::Stated },
            ContextSign::Ended(tokens) => Sign { tokens, source: SizeSource::Counted },
        });
        if let Some(sign) = sign {
            return self.learn(turn, spec, sign).await;
        }
        let Some(tokens) = answered.counted.filter(|_| prepared.prompt.images() == 0) else { return Ok(()) };
        let bytes = prepared.prompt.bytes() as u64;
        if let Some(tokens) = self.sizes.count(turn, &spec.name, bytes, tokens) {
            return self.learn(turn, spec, Sign { tokens, source: SizeSource::Counted }).await;
        }
        if prepared.size.bytes_max.is_none() {
            return Ok(());
        }
        // Most answers agree with what was learned, so they write nothing.
        let looked_at = spec.clone();
        if self.state().read(move |tx| reading::is_refuted(tx, &looked_at, tokens)).await? {
            self.state().write(move |tx| Ok::<_, Error>(reading::forget_refuted(tx, &spec, tokens)?)).await?;
        }
        Ok(())
    }

    /// Notes that an endpoint refused a prompt because of its size. Returns the answer for a sandbox that may ask once more, with fewer
    /// items.
    pub(super) async fn record_too_long(
        &self,
        turn: TurnId,
        prepared: &Prepared,
        too_long: TooLong,
    ) -> Result<Option<Answer>, Error> {
        let TooLong { endpoint, tokens, is_stated } = too_long;
        let sent = tokens_estimated(prepared.prompt.bytes());
        let source = if is_stated { SizeSource::Stated } else { SizeSource::Refused };
        let sign = Sign { tokens: tokens.unwrap_or(sent), source };
        if let Some(spec) = spec(&prepared.chain, &endpoint) {
            self.learn(turn, spec, sign).await?;
        }
        let may_ask = self.sizes.refused(turn, prepared.size, is_stated);
        Ok(may_ask.then(|| {
            let message = format!("the model endpoint `{endpoint}` does not accept a conversation of this length");
            Ok(Response::Refused { code: RefusalCode::Frame, message })
        }))
    }

    /// Records a sign, and notifies the person of the turn about a new size.
    async fn learn(&self, turn: TurnId, spec: Spec, sign: Sign) -> Result<(), Error> {
        let (shared, session, key) = (Arc::clone(&self.shared), self.session, Arc::clone(&self.key));
        let learned = move |tx: &mut WriteTx<'_>| {
            let Some(size) = reading::note(tx, &spec, sign)? else { return Ok(()) };
            let words = reading::sentence(&spec, &size);
            Entry::new(LedgerEvent::ModelContextLearned)
                .session(session)
                .turn(turn)
                .with("model", spec.name)
                .with("tokens", size.tokens)
                .with("source", size.source.name())
                .reason(&words)
                .append(tx)?;
            let is_person = |open: &Turn| open.principal_kind == Principal::Person;
            let Some(to) = store::find(tx, session)?.filter(|session| session.wrapped.is_some()) else { return Ok(()) };
            if turn::find(tx, turn)?.as_ref().is_some_and(is_person) {
                let text = format!("Note of the host: {words}.");
                delivery::notify(tx, &to, None, &text, &key, &shared.record().sealer)?;
            }
            Ok::<_, Error>(())
        };
        self.state().write(learned).await
    }
}

/// Returns the spec of an endpoint of a chain.
fn spec(chain: &[Arc<Endpoint>], name: &str) -> Option<Spec> {
    chain.iter().find(|endpoint| endpoint.spec.name == name).map(|endpoint| endpoint.spec.clone())
}
