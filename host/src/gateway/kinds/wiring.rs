//! The kind `wiring`: the channel that an agent hears, and the messages that it answers.

use super::kind::{Apply, Check, CheckContext, Page, Prepared, Properties, Scope, concerned, gone};
use crate::channels::inbound::routing::engage;
use crate::gateway::decide::proof::Approved;
use crate::gateway::review_page::effects::Effects;
use crate::gateway::writers;
use crate::registry::channels::{self, Channel};
use crate::registry::live_settings::HostPolicy;
use crate::registry::{self, Agent, LOOPBACK};
use ironclaw_contract::seam::change::{Change, Engage, Ignored, Senders, Sharing, UnknownSenders, Wiring};
use ironclaw_operator::DenialCode;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::{Denied, Refusal};
use serde_json::{Map, Value, json};

pub(super) const PROPERTIES: Properties = Properties { scope: Scope::AgentOnHost, restarts_sessions: true };

impl Check for Wiring {
    fn complete(&self, tx: &ReadTx<'_>, context: &CheckContext<'_>) -> Result<Change, Denied> {
        known(tx, context, self)?;
        Ok(Change::Wiring(self.clone()))
    }

    fn current(&self, tx: &ReadTx<'_>, agent: Option<&Agent>) -> Result<Value, ironclaw_state::Error> {
        let Some(agent) = agent else { return Ok(Value::Null) };
        let found = channels::find(tx, &self.channel)?;
        let none = || Self::new(self.channel.clone(), Engage::None);
        Ok(json!(found.map_or_else(none, |channel| channel.wiring(agent.id))))
    }

    fn facts(&self, tx: &ReadTx<'_>, _policy: &HostPolicy) -> Result<Value, ironclaw_state::Error> {
        Ok(json!({ "channels": facts(tx, std::slice::from_ref(self))? }))
    }
}

/// Returns the channel that a wiring names.
///
/// # Errors
/// Refuses the loopback, a channel that does not exist and a pattern that cannot be used.
pub(super) fn known(tx: &ReadTx<'_>, context: &CheckContext<'_>, wiring: &Wiring) -> Result<Channel, Denied> {
    if wiring.channel == LOOPBACK {
        let refusal =
            Refusal::new(DenialCode::ChannelOwn, "every agent hears the loopback, by which people talk to it");
        return Err(refusal.hint("a change of kind permissions sets the people who may talk to an agent").into());
    }
    let channel = channels::known(tx, context.person(tx)?.as_ref(), &wiring.channel)?;
    engage::check(wiring)?;
    Ok(channel)
}

/// Returns the identity of each channel and the agent that hears it now.
///
/// The generation tells channels of one name apart. Only one agent hears a channel, and loses it to another one.
pub(super) fn facts(tx: &ReadTx<'_>, wirings: &[Wiring]) -> Result<Map<String, Value>, ironclaw_state::Error> {
    let mut found = Map::new();
    for wiring in wirings {
        let channel = match channels::find(tx, &wiring.channel)? {
            None => Value::Null,
            Some(Channel { generation, kind, agent, .. }) => {
                let hearer = agent.map(|agent| registry::agent_by_id(tx, agent)).transpose()?.flatten();
                let hearer = hearer.map(|agent| json!({ "agent": agent.id, "name": agent.name }));
                json!({ "generation": generation, "kind": kind, "heard_by": hearer })
            }
        };
        found.insert(wiring.channel.clone(), channel);
    }
    Ok(found)
}

impl Page for Wiring {
    fn effects(&self, agent: &str, page: &mut Effects<'_>) {
        let channel = page.show(&self.channel);
        if self.engage == Engage::None {
            page.add(format!("Disconnect {agent} from channel {channel}."));
            return page.add("The agent no longer reads or answers messages from there.".to_owned());
        }
        page.add(format!("Connect {agent} to channel {channel}."));
        self.answers(&channel, page);
        self.strangers(agent, &channel, page);
        match self.sharing {
            Sharing::Thread => {}
            Sharing::Shared => page.add("The people of a group share one session, over all its threads.".to_owned()),
            Sharing::Agent => page.warn(
                "ALL people of the channels that are connected in this way share one session: its answers can repeat what others wrote."
                    .to_owned(),
            ),
        }
        page.add("The host refuses messages of people who may not talk to the agent.".to_owned());
        // Only one agent hears a channel.
        let hearer = &page.facts["channels"][self.channel.as_str()]["heard_by"];
        let hears_now = page.before["engage"].as_str().is_some_and(|engage| engage != Engage::None.name());
        if let (Some(name), false) = (hearer["name"].as_str(), hears_now) {
            let hearer = page.named(hearer["agent"].as_str().unwrap_or_default(), name);
            page.add(format!("Agent {hearer} gets the messages of this channel now, and LOSES the channel."));
        }
    }
}

/// The sentences about one part of a wiring.
trait Parts {
    /// Adds the messages that the agent answers, and the treatment of the others.
    fn answers(&self, channel: &str, page: &mut Effects<'_>);

    /// Adds the treatment of senders who are linked to no person.
    fn strangers(&self, agent: &str, channel: &str, page: &mut Effects<'_>);
}

impl Parts for Wiring {
    fn answers(&self, channel: &str, page: &mut Effects<'_>) {
        match (self.engage, &self.pattern) {
            (Engage::Pattern, Some(pattern)) => {
                page.add(format!("It answers messages that match the regular expression {}.", page.show(pattern)));
            }
            (Engage::Mention, _) => page.add("It answers messages that mention it.".to_owned()),
            (Engage::MentionSticky, _) => {
                page.add("It answers messages that mention it, and later messages of the same thread.".to_owned());
            }
            (Engage::All | Engage::None, _) | (Engage::Pattern, None) => {
                return page.warn(format!(
                    "EVERY message in channel {channel} from people who may talk to the agent reaches its model and gets an answer."
                ));
            }
        }
        match self.ignored {
            Ignored::Accumulate => page.warn(format!(
                "EVERY message in channel {channel} from people who may talk to the agent can reach its model, also a message that it does \
                 not answer."
            )),
            Ignored::Drop => page.add("The host drops the other messages.".to_owned()),
        }
    }

    fn strangers(&self, agent: &str, channel: &str, page: &mut Effects<'_>) {
        match (self.unknown, self.from, self.ignored) {
            (UnknownSenders::Strict, ..) => {}
            (UnknownSenders::Request, ..) => page.add(
                "The host refuses senders who are linked to no person, and tells owners and admins of them. It takes messages of \
                 accounts that people call theirs."
                    .to_owned(),
            ),
            (UnknownSenders::Public, Senders::All, _) => page.warn(format!(
                "EVERYONE who can write to channel {channel} can then speak to {agent}, and gets its answers, without tools and in a session \
                 of their own."
            )),
            (UnknownSenders::Public, Senders::Known, Ignored::Accumulate) => page.warn(format!(
                "Text of EVERYONE who can write to channel {channel} can reach its model as context. It answers people of the host only."
            )),
            (UnknownSenders::Public, Senders::Known, Ignored::Drop) => {
                page.add("The host drops messages of senders who are linked to no person.".to_owned());
            }
        }
    }
}

impl Apply for Wiring {
    fn apply(&self, tx: &mut WriteTx<'_>, approved: &Approved, _prepared: &Prepared) -> Result<String, Denied> {
        let agent = concerned(tx, approved)?;
        wire(tx, approved, &agent, self)
    }
}

/// Connects an agent to a channel or disconnects it, and returns the outcome.
///
/// # Errors
/// Refuses a channel that was removed.
pub(super) fn wire(
    tx: &mut WriteTx<'_>,
    approved: &Approved,
    agent: &Agent,
    wiring: &Wiring,
) -> Result<String, Denied> {
    let channel = channels::find(tx, &wiring.channel)?;
    let channel = channel.ok_or_else(|| gone(format!("channel {}", wiring.channel)))?;
    writers::channels::wire(tx, approved, &channel, agent.id, wiring)?;
    Ok(match wiring.engage {
        Engage::Mention | Engage::MentionSticky => {
            format!("agent {} hears {} and answers messages that mention it", agent.name, channel.name)
        }
        Engage::All => format!("agent {} hears {} and answers each message", agent.name, channel.name),
        Engage::Pattern => {
            format!("agent {} hears {} and answers messages that match its pattern", agent.name, channel.name)
        }
        Engage::None => format!("agent {} no longer hears {}", agent.name, channel.name),
    })
}
