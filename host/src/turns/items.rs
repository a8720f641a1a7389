//! The seal index: every sealed item of every session, with its tuple and its encrypted body.
//!
//! A ref is valid only if its tuple is in the index; an equal body is not enough. See [`crate::turns::turn`] and
//! [`crate::turns::context`].

pub mod images;
mod retention;
mod rows;
pub mod summary;
mod title;

pub use ironclaw_store::record::ItemsConfig as Config;
pub use retention::{enforce_before, enforce_retention, sessions_over};
pub use rows::FORGETTABLE;
pub use title::title;

pub use ironclaw_store::tables::items::{
    Recorded, after, answered_request, before, count, find, has_turn, last, live_after,
};
pub use ironclaw_store::tables::sessions::dropped_upto;

use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{CallId, ItemId, PersonId, SessionId, TurnId};
use ironclaw_contract::seam::message::{Author, Span};
use ironclaw_contract::seam::seal::{ItemKind, Tuple};
use ironclaw_judge::inputs::returned::Returned;
use ironclaw_judge::provenance::spans::{self, Telling, TypedSpan};
use ironclaw_judge::provenance::{Labelled, Labels};
use ironclaw_state::keys::{self, ContentKey};
use ironclaw_state::seal::Sealer;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::tables::{items, sessions};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// An item that is not recorded yet. Its body is encrypted before the transaction, and it gets its number inside the transaction.
pub struct NewItem {
    id: ItemId,
    kind: ItemKind,
    turn: Option<TurnId>,
    call: Option<CallId>,
    tool: Option<String>,
    hop: u32,
    spans: Vec<Span>,
    labels: Labels,
    scripted: bool,
    scope: String,
    digest: Digest,
    bytes: usize,
    stored: Vec<u8>,
    request: Option<Digest>,
    /// The encrypted thoughts of its model.
    reasoning: Option<Vec<u8>>,
}

impl NewItem {
    /// Encrypts the body of a new item.
    pub fn new(
        id: ItemId,
        kind: ItemKind,
        body: Labelled<&str>,
        spans: Vec<Span>,
        key: &ContentKey,
    ) -> Result<Self, keys::Error> {
        let Labelled { value: body, labels } = body;
        Ok(Self {
            id,
            kind,
            turn: None,
            call: None,
            tool: None,
            hop: 0,
            spans,
            labels,
            scripted: false,
            scope: String::new(),
            digest: Digest::of(body.as_bytes()),
            bytes: body.len(),
            stored: key.seal(id, body.as_bytes())?,
            request: None,
            reasoning: None,
        })
    }

    /// Sets the turn that made it.
    pub const fn turn(mut self, turn: TurnId) -> Self {
        self.turn = Some(turn);
        self
    }

    /// Sets the call and the tool whose result it is.
    pub fn call(mut self, call: CallId, tool: &str) -> Self {
        self.call = Some(call);
        self.tool = Some(tool.to_owned());
        self
    }

    /// Marks it as made by the built-in script instead of a model, if `scripted` is true.
    pub const fn scripted(mut self, scripted: bool) -> Self {
        self.scripted = scripted;
        self
    }

    /// Sets the number of agents that a message passed through.
    pub const fn hop(mut self, hop: u32) -> Self {
        self.hop = hop;
        self
    }

    /// Sets the classes that a message asks for, with their origin.
    pub fn scope(mut self, scope: String) -> Self {
        self.scope = scope;
        self
    }

    /// Sets the digest of the request that it answers.
    pub const fn answers(mut self, request: Option<Digest>) -> Self {
        self.request = request;
        self
    }

    /// Encrypts the thoughts of the model beside its output; an empty text is none.
    ///
    /// # Errors
    /// Errors of the key.
    pub fn reasoning(mut self, reasoning: &str, key: &ContentKey) -> Result<Self, keys::Error> {
        if !reasoning.is_empty() {
            self.reasoning = Some(key.seal(self.id, reasoning.as_bytes())?);
        }
        Ok(self)
    }

    pub const fn id(&self) -> ItemId {
        self.id
    }

    /// Returns the digest of its body.
    pub const fn digest(&self) -> Digest {
        self.digest
    }

    /// Numbers the item and records it.
    pub fn record(
        self,
        tx: &mut WriteTx<'_>,
        session: SessionId,
        sealer: &Sealer,
    ) -> Result<Recorded, ironclaw_state::Error> {
        let seq = sessions::take_seq(tx, session, self.bytes as u64)?;
        let tuple = Tuple {
            session,
            item: self.id,
            kind: self.kind,
            seq,
            issued_at: tx.wall(),
            boot: sealer.boot(),
            turn: self.turn,
            call: self.call,
            tool: self.tool,
            hop: self.hop,
            authors: canonical::to_string(&self.spans),
            labels: self.labels.list(),
            scope: self.scope,
            digest: self.digest,
        };
        let item = Recorded { bytes: self.bytes as u64, scripted: self.scripted, tuple };
        items::insert(tx, &item, &self.stored, self.request)?;
        if let Some(reasoning) = &self.reasoning {
            items::set_reasoning(tx, self.id, reasoning)?;
        }
        Ok(item)
    }
}

/// Returns the body of an item, after a check of its digest.
pub fn body(tx: &ReadTx<'_>, item: &Recorded, key: &ContentKey) -> Result<String, Error> {
    let id = item.tuple.item;
    let stored = items::encrypted_body(tx, id)?;
    let bytes = key.open(id, &stored)?;
    if Digest::of(&bytes) != item.tuple.digest {
        return Err(keys::Error::Sealed("the body of an item").into());
    }
    String::from_utf8(bytes).map_err(|_| keys::Error::Sealed("the body of an item").into())
}

/// Returns the thoughts of the model beside an output; empty without any.
pub fn reasoning(tx: &ReadTx<'_>, item: ItemId, key: &ContentKey) -> Result<String, Error> {
    let Some(stored) = items::encrypted_reasoning(tx, item)? else { return Ok(String::new()) };
    let bytes = key.open(item, &stored)?;
    String::from_utf8(bytes).map_err(|_| keys::Error::Sealed("the thoughts beside an output").into())
}

/// The values at the result paths of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OfAnswer {
    pub server: String,
    /// The service that gave it. Another one of the same name is another server.
    pub service: Digest,
    pub values: Vec<Returned>,
}

/// Stores the values at the result paths of an answer beside its item; none is nothing.
pub fn set_returned(tx: &mut WriteTx<'_>, item: ItemId, of_answer: &OfAnswer, key: &ContentKey) -> Result<(), Error> {
    if of_answer.values.is_empty() {
        return Ok(());
    }
    let stored = key.seal(item, &canonical::to_vec(of_answer))?;
    Ok(items::set_returned(tx, item, &stored)?)
}

/// Returns the values at the result paths of an answer, if it has any.
pub fn returned(tx: &ReadTx<'_>, item: ItemId, key: &ContentKey) -> Result<Option<OfAnswer>, Error> {
    let Some(stored) = items::encrypted_returned(tx, item)? else { return Ok(None) };
    let damaged = || keys::Error::Sealed("the values beside a result");
    Ok(Some(serde_json::from_slice(&key.open(item, &stored)?).map_err(|_| damaged())?))
}

/// Returns the spans of a recorded message that a person typed; `authors` are those of its body.
pub fn typed_spans<'a>(body: &'a str, authors: &[Span], person: PersonId, telling: Telling) -> Vec<TypedSpan<'a>> {
    let mut from = 0;
    let span = |span: &Span| {
        let text = body.get(from..from + span.bytes).unwrap_or_default();
        from += span.bytes;
        spans::Span { text, typed: span.author == Author::Person { person } }
    };
    let all: Vec<_> = authors.iter().map(span).collect();
    spans::typed(&all, telling)
}

/// Reads the body of an item whose kind has JSON.
pub fn parse_body<T: DeserializeOwned>(body: &str) -> Result<T, ironclaw_state::Error> {
    serde_json::from_str(body)
        .map_err(|_| ironclaw_state::Error::Stored("the body of an item does not match its kind".to_owned()))
}
