//! Messages between agents: the chain of each, the tools and the bounds of a chain, and the way of a request and its answer.
//!
//! A request is recorded in the session of the receiver, and the answer in the session that asked. The host alone knows the chain: a
//! sandbox states neither hop nor origin. No message of an agent has the authority of a person. See [`chain`] for the rules.

pub mod answer;
pub mod chain;
pub mod denied;
pub mod request;

use crate::channels::inbound::inbox::{self, Text};
use crate::sessions::store::Session;
use ironclaw_contract::ids::{AgentId, PersonId};
use ironclaw_contract::seam::message::{Author, Span};
use ironclaw_judge::Principal;
use ironclaw_judge::provenance::{Labelled, Provenance};
use ironclaw_state::WriteTx;
use ironclaw_state::keys::WrappingKey;
use ironclaw_state::seal::Sealer;
use ironclaw_store::error::Error;
use ironclaw_store::tables::agent_messages::{self as table, AgentMessage};
use ironclaw_store::tables::messages::Kind;
use ironclaw_store::tables::messages::NewMessage;
use ironclaw_text::lookalike;

pub use crate::registry::destinations::AGENT;

pub use crate::registry::live_settings::agents::Config;

/// The recorded scope of a message of an agent: it declares no class.
const OF_AGENT: &str = "agent:";

/// The keys with which a message is recorded.
#[derive(Clone, Copy)]
pub struct Keys<'a> {
    /// Opens the keys of sessions.
    pub wrapping: &'a WrappingKey,
    pub sealer: &'a Sealer,
}

/// A message between agents to record.
struct Draft<'a> {
    text: &'a str,
    author: Author,
    person: PersonId,
    sender: AgentId,
    of_agent: AgentMessage,
}

/// Records a message between agents in the session that gets it. It opens a turn there.
fn record(tx: &mut WriteTx<'_>, session: &Session, draft: Draft<'_>, keys: Keys<'_>) -> Result<(), Error> {
    let Draft { text, author, person, sender, of_agent } = draft;
    let (id, sender) = (of_agent.message, sender.to_string());
    let body = lookalike::neutralise(text);
    let spans = vec![Span { author, bytes: body.len() }];
    let (scope, hop) = (OF_AGENT.to_owned(), of_agent.hop);
    let row = |seq| NewMessage {
        id,
        session: session.id,
        seq,
        kind: Kind::Chat,
        trigger: true,
        mentions: false,
        reply_to: None,
        sender: &sender,
        principal: person,
        principal_kind: Principal::Agent,
        channel: AGENT,
        event: None,
        bytes: body.len(),
    };
    let key = session.content_key(keys.wrapping)?;
    let text = Text { body: Labelled::new(&body, Provenance::Agent), spans, scope, hop };
    inbox::insert(tx, text, &key, keys.sealer, id, session.id, row)?;
    Ok(table::insert(tx, &of_agent)?)
}
