//! The connections of agents with channels.

use super::authorised_entry;
use crate::gateway::decide::proof::Authority;
use crate::registry::channels::{Channel, Hears, Rules};
use crate::registry::places::ending;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::seam::change::{Engage, Wiring};
use ironclaw_operator::LedgerEvent;
use ironclaw_state::WriteTx;
use ironclaw_store::tables::channels as table;

/// Connects an agent to a channel or disconnects it, for a command or a change. Only one agent hears a channel.
///
/// # Errors
/// Errors of the record, and a wiring that the contract does not allow.
pub fn wire<'a>(
    tx: &mut WriteTx<'_>,
    authority: impl Into<Authority<'a>>,
    channel: &Channel,
    agent: AgentId,
    wiring: &Wiring,
) -> Result<(), ironclaw_state::Error> {
    let hears = match (wiring.engage, &wiring.pattern) {
        (Engage::All, None) => Some(Hears::All),
        (Engage::Pattern, Some(pattern)) => Some(Hears::Pattern(pattern.clone())),
        (Engage::Mention, None) => Some(Hears::Mention),
        (Engage::MentionSticky, None) => Some(Hears::MentionSticky),
        (Engage::None, None) => None,
        (Engage::All | Engage::Mention | Engage::MentionSticky | Engage::None, Some(_)) | (Engage::Pattern, None) => {
            return Err(ironclaw_state::Error::Stored(format!(
                "a wiring of {} that the contract does not allow",
                channel.name
            )));
        }
    };
    // People called accounts theirs for the agent that heard the channel. It leaves, or another one takes its place.
    if hears.is_some() != (channel.agent == Some(agent)) {
        ending::end_own_senders_on(tx, &channel.name)?;
    }
    let Wiring { from, unknown, ignored, sharing, .. } = *wiring;
    let event = match hears {
        Some(hears) => {
            table::connect(tx, &channel.name, agent, &Rules { hears, from, unknown, ignored, sharing })?;
            LedgerEvent::ChannelConnected
        }
        None => {
            table::disconnect(tx, &channel.name, agent)?;
            LedgerEvent::ChannelDisconnected
        }
    };
    let authority = authority.into();
    let entry = authorised_entry(event, authority).with("channel", channel.name.clone()).with("agent", agent);
    let digest = |wiring: &Wiring| Digest::of(&canonical::to_vec(wiring)).to_string();
    let entry = match authority {
        Authority::Approved(_) => entry
            .with("generation", channel.generation)
            .with("before", digest(&channel.wiring(agent)))
            .with("after", digest(wiring)),
        Authority::Direct(_) => entry,
    };
    entry.append(tx)?;
    Ok(())
}
