//! The facts of a turn that the judgement of its calls reads.
//!
//! Never judges a call. Reads bodies of messages only for an agent that may send requests. See [`crate::turns::calls`].

use crate::error::Error;
use crate::model_socket::ModelServers;
use crate::registry::{Agent, egress};
use crate::tools::HTTP_FETCH;
use crate::turns::calls::TurnFacts;
use crate::turns::calls::http::Network;
use crate::turns::items;
use crate::turns::turn::{self, Turn};
use ironclaw_contract::seam::message::Author;
use ironclaw_contract::seam::seal::Label;
use ironclaw_judge::Principal;
use ironclaw_judge::typed::Typed;
use ironclaw_state::ReadTx;
use ironclaw_state::keys::ContentKey;

/// Returns the facts of a turn for the calls of an output with these labels.
pub(super) fn of_turn(
    tx: &ReadTx<'_>,
    shared: &ModelServers,
    (turn, agent): (&Turn, &Agent),
    labels: &[Label],
    key: &ContentKey,
) -> Result<TurnFacts, Error> {
    let principal = if turn.person().is_ok() { Principal::Person } else { Principal::Unsigned };
    let has_network = agent.enabled_tools.iter().any(|tool| tool == HTTP_FETCH);
    let network = if has_network { network(tx, shared, turn, agent, key)? } else { Network::default() };
    Ok(TurnFacts { principal, scope: turn.scope, has_external: labels.contains(&Label::External), network })
}

fn network(
    tx: &ReadTx<'_>,
    shared: &ModelServers,
    turn: &Turn,
    agent: &Agent,
    key: &ContentKey,
) -> Result<Network, Error> {
    let loopback = shared.settings.now().host_policy.egress.loopback();
    let grants = egress::grants_of(tx, agent.id, loopback)?;
    let texts = typed_texts(tx, turn, key)?;
    Ok(Network { grants, loopback, typed: Typed::new(texts.iter().map(String::as_str), loopback) })
}

/// Returns the parts of the turn's messages that its person typed.
fn typed_texts(tx: &ReadTx<'_>, turn: &Turn, key: &ContentKey) -> Result<Vec<String>, Error> {
    let person = turn.person()?;
    let mut texts = Vec::new();
    for message in turn::messages_of(tx, turn.id)? {
        let Some(item) = items::find(tx, message.item())? else { continue };
        let body = items::body(tx, &item, key)?;
        let mut from = 0;
        for span in item.spans() {
            let until = from + span.bytes;
            if span.author == (Author::Person { person }) {
                texts.extend(body.get(from..until).map(str::to_owned));
            }
            from = until;
        }
    }
    Ok(texts)
}
