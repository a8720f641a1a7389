//! The answer that an interrupted attempt recorded for the same request: it is used, and no model is asked and paid again.
//!
//! Never uses an output with calls: the model sees their outcomes and decides again. See [`super::generate`].

use crate::turns::calls::OutputBody;
use crate::turns::context::Item;
use crate::turns::items::{self, NewItem, parse_body};
use crate::turns::rests_on::{self, Ranges};
use crate::turns::turn::Turn;
use ironclaw_contract::ids::ItemId;
use ironclaw_contract::seam::message::{Author, Span};
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_contract::seam::socket::Response;
use ironclaw_judge::provenance::{Labelled, Labels};
use ironclaw_ledger::Entry;
use ironclaw_model::Prompt;
use ironclaw_model::endpoint::Endpoint;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::WriteTx;
use ironclaw_state::keys::ContentKey;
use ironclaw_state::seal::Sealer;
use ironclaw_store::error::Error;
use std::sync::Arc;

/// A request to a model that is not sent yet.
pub(super) struct Request<'a> {
    /// Its turn, before the request is counted.
    pub(super) turn: &'a Turn,
    pub(super) prompt: &'a Prompt,
    /// The endpoints that would be asked.
    pub(super) chain: &'a [Arc<Endpoint>],
    /// Its items, in the order of their numbers.
    pub(super) named: &'a [Arc<Item>],
    /// The messages of its turn.
    pub(super) own: &'a [ItemId],
    /// The numbers of the items that its model would see.
    pub(super) prompted: &'a Ranges,
}

impl Request<'_> {
    /// Returns the newest output of another turn behind the messages of this turn: they have an output only if an attempt at them was
    /// interrupted, or if they waited.
    fn earlier_output(&self) -> Option<&Item> {
        let behind = self.named.iter().rev().take_while(|item| !self.own.contains(&item.tuple.item));
        let is_output = |item: &&Arc<Item>| item.tuple.kind == ItemKind::Output;
        behind.filter(is_output).find(|item| item.tuple.turn != Some(self.turn.id)).map(|item| &**item)
    }
}

/// Records the answer of an interrupted attempt as an output of this turn, if it answers the first request of the turn.
pub(super) fn again(
    tx: &mut WriteTx<'_>,
    request: &Request<'_>,
    labels: Labels,
    key: &ContentKey,
    sealer: &Sealer,
) -> Result<Option<Response>, Error> {
    let Some(earlier) = request.earlier_output().filter(|_| request.turn.model_calls == 0) else { return Ok(None) };
    let Some(answered) = items::answered_request(tx, earlier.tuple.item)? else { return Ok(None) };
    if answered != request.prompt.digest(request.chain) {
        return Ok(None);
    }
    let body = items::body(tx, earlier, key)?;
    let bytes = parse_body::<OutputBody>(&body)?.context_bytes();
    let spans = vec![Span { author: Author::Model, bytes: body.len() }];
    let body = Labelled { value: &*body, labels };
    let new = NewItem::new(ItemId::new(), ItemKind::Output, body, spans, key)?;
    let reasoning = items::reasoning(tx, earlier.tuple.item, key)?;
    let new =
        new.turn(request.turn.id).scripted(earlier.scripted).answers(Some(answered)).reasoning(&reasoning, key)?;
    let item = new.record(tx, request.turn.session, sealer)?;
    rests_on::record(tx, item.tuple.item, request.prompted)?;
    Entry::new(LedgerEvent::OutputReused)
        .session(request.turn.session)
        .turn(request.turn.id)
        .with("item", item.tuple.item)
        .with("digest", item.tuple.digest)
        .with("earlier", earlier.tuple.item)
        .append(tx)?;
    Ok(Some(Response::Output { item: item.seal(sealer), bytes, calls: Vec::new() }))
}
