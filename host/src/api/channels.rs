//! Channels over the API: list, add, remove, test, and the agent that hears one.
//!
//! A secret is only in the answer to the request that made it. See `registry::channels`, `channels::inbound::channel`.

pub mod own_senders;

use super::agents;
use super::handler::{Answer, Api, Body, Caller, Reply};
use crate::channels::inbound::channel::outgoing::Outcome;
use crate::channels::inbound::channel::registration::Registration;
use crate::channels::inbound::channel::{self, Receiver};
use crate::channels::inbound::routing::engage;
use crate::gateway::writers;
use crate::registry;
use crate::registry::channels::{self, Channel, reach};
use axum::Json;
use axum::extract::{Path, State};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Decide, Denied, Refusal};

use ironclaw_contract::seam::change::{Change, ChangeKind, Engage, Payload, Wiring};
use ironclaw_operator::{
    self as operator, ChannelKind, ChannelProbe, ChannelTest, DenialCode, NewChannel, NewChannelMade, NewWiring,
    OwnSender, WaitingSender,
};
use ironclaw_state::ReadTx;
use serde_json::{Value, json};
use std::sync::Arc;

/// `GET /v1/channels`
pub async fn list(State(api): State<Api>) -> Reply<Vec<operator::Channel>> {
    let hooks = api.about.hooks;
    let look = move |tx: &ReadTx<'_>| channels::all(tx)?.iter().map(|found| view(tx, found, hooks)).collect();
    let listed: Result<Vec<operator::Channel>, ironclaw_state::Error> = api.state().read(look).await;
    let mut listed = listed.map_err(Answer::from)?;
    for channel in &mut listed {
        channel.refused = api.about.refused_hooks.list(&channel.name);
    }
    Ok(Json(listed))
}

/// `POST /v1/channels`
pub async fn add(Caller { api, person, .. }: Caller, Body(new): Body<NewChannel>) -> Reply<NewChannelMade> {
    // A channel without an agent opens no turn; connecting an agent is a change of its own.
    let name = new.name.clone();
    let registration = Registration::read(new)?;
    let (said, remark) = (registration.fresh_secret(), registration.remark().map(str::to_owned));
    let draft = registration.draft(name);
    let (record, hooks) = (Arc::clone(&api.record), api.about.hooks);
    let made = api
        .record
        .state
        .decide(move |tx| {
            let made = channels::add(tx, &draft, &record.wrapping, &person)?;
            Ok::<_, Denied<Error>>(view(tx, &made, hooks)?)
        })
        .await?;
    Ok(Json(NewChannelMade { channel: made, secret: said, remark }))
}

/// `DELETE /v1/channels/{channel}`: disconnects its agent, and its unsent deliveries become dead letters.
pub async fn remove(Caller { api, person, .. }: Caller, Path(channel): Path<String>) -> Reply<operator::Channel> {
    let hooks = api.about.hooks;
    let changes = Arc::clone(&api.gateway);
    let removed = api.state().decide(move |tx| {
        let found = channels::known(tx, Some(&person), &channel)?;
        if found.agent.is_some() {
            agents::check_direct(&changes, ChangeKind::Wiring, &person)?;
        }
        let view = view(tx, &found, hooks)?;
        channels::remove(tx, &found.name, person.id)?;
        Ok::<_, Denied<ironclaw_store::error::Error>>(view)
    });
    let removed = removed.await?;
    api.dispatch.wake();
    Ok(Json(removed))
}

/// `POST /v1/channels/{channel}/test`
pub async fn test(Caller { api, person, .. }: Caller, Path(channel): Path<String>) -> Reply<ChannelTest> {
    let found = api.record.state.read(move |tx| channels::known(tx, Some(&person), &channel)).await?;
    let to = Receiver::new(&found, &api.record.wrapping)?;
    refuse_if_stopped(&api)?;
    let outcome = api.dispatch.test(&to, ironclaw_state::wall_clock()).await;
    let (received, words) = match outcome {
        Outcome::Received => (true, "the receiver accepted it".to_owned()),
        Outcome::Later(words, _) | Outcome::Unknown(words) | Outcome::Refused(words) => (false, words),
    };
    Ok(Json(ChannelTest { received, result: words }))
}

/// `POST /v1/channels/{channel}/probe`: opens a connection to the receiver and closes it. The journal does not have it.
pub async fn probe(Caller { api, person, .. }: Caller, Path(channel): Path<String>) -> Reply<ChannelProbe> {
    let found = api.record.state.read(move |tx| channels::known(tx, Some(&person), &channel)).await?;
    let to = Receiver::new(&found, &api.record.wrapping)?;
    refuse_if_stopped(&api)?;
    let (reached, result) = match channel::probe(&to).await {
        Ok(address) => (true, format!("its receiver accepts connections at {address}")),
        Err(why) => (false, why),
    };
    Ok(Json(ChannelProbe { reached, result }))
}

fn refuse_if_stopped(api: &Api) -> Result<(), Refusal> {
    if !api.stops.is_on() {
        return Ok(());
    }
    let refusal = Refusal::new(DenialCode::Stopped, "everything is stopped, and nothing is sent");
    Err(refusal.hint("`ironctl resume` ends the stop"))
}

/// `POST /v1/channels/{channel}/agents`: narrows the connection of an agent. A wider one is a change with a page.
pub async fn connect(
    Caller { api, person, .. }: Caller,
    Path(channel): Path<String>,
    Body(new): Body<NewWiring>,
) -> Reply<operator::Channel> {
    let wanted = wanted(&channel, &new)?;
    let direct = agents::check_direct(&api.gateway, ChangeKind::Wiring, &person)?;
    let (agent, hooks) = (agents::find(&api, &person, new.agent).await?, api.about.hooks);
    let connected = api.state().decide(move |tx| {
        let found = channels::known(tx, Some(&person), &channel)?;
        if !reach::is_within(&wanted, &found.wiring(agent.id)) {
            return Err(widens(&agent, &found).into());
        }
        writers::channels::wire(tx, &direct, &found, agent.id, &wanted)?;
        Ok::<_, Denied>(view(tx, &channels::known(tx, Some(&person), &channel)?, hooks)?)
    });
    Ok(Json(connected.await?))
}

/// `DELETE /v1/channels/{channel}/agents/{agent}`
pub async fn disconnect(
    Caller { api, person, .. }: Caller,
    Path((channel, agent)): Path<(String, String)>,
) -> Reply<operator::Channel> {
    let direct = agents::check_direct(&api.gateway, ChangeKind::Wiring, &person)?;
    let (agent, hooks) = (agents::find(&api, &person, agent).await?, api.about.hooks);
    let disconnected = api.state().decide(move |tx| {
        let found = channels::known(tx, Some(&person), &channel)?;
        if found.agent != Some(agent.id) {
            let message = format!("agent {} does not hear {}", agent.name, found.name);
            return Err(Refusal::new(DenialCode::WiringUnknown, message).into());
        }
        writers::channels::wire(tx, &direct, &found, agent.id, &Wiring::new(found.name.clone(), Engage::None))?;
        Ok::<_, Denied>(view(tx, &channels::known(tx, Some(&person), &channel)?, hooks)?)
    });
    Ok(Json(disconnected.await?))
}

/// `DELETE /v1/channels/{channel}/senders/{sender}`
pub async fn dismiss(
    Caller { api, person, .. }: Caller,
    Path((channel, sender)): Path<(String, String)>,
) -> Reply<operator::Channel> {
    let hooks = api.about.hooks;
    let dismissed = api.state().decide(move |tx| {
        let found = channels::known(tx, Some(&person), &channel)?;
        channels::dismiss_waiting_sender(tx, &found.name, &sender, person.id)?;
        Ok::<_, Denied>(view(tx, &found, hooks)?)
    });
    Ok(Json(dismissed.await?))
}

/// Returns the wiring of a request.
///
/// # Errors
/// Refuses an unknown word, a field that does not fit another one, and a pattern that cannot be used.
fn wanted(channel: &str, new: &NewWiring) -> Result<Wiring, Refusal> {
    let NewWiring { agent: _, engage, pattern, from, unknown, ignored, sharing } = new;
    let engage = engage.as_deref().unwrap_or(Engage::All.name());
    let mut fields =
        serde_json::Map::from_iter([("channel".to_owned(), json!(channel)), ("engage".to_owned(), json!(engage))]);
    let given =
        [("pattern", pattern), ("from", from), ("unknown", unknown), ("ignored", ignored), ("sharing", sharing)];
    fields.extend(given.into_iter().filter_map(|(name, value)| Some((name.to_owned(), json!(value.as_ref()?)))));
    let malformed = |words: String| Refusal::new(DenialCode::PayloadMalformed, words);
    let payload = Payload::try_from(Value::Object(fields)).map_err(|words| malformed(words.to_owned()))?;
    match Change::parse(ChangeKind::Wiring, &payload).map_err(|error| malformed(error.to_string()))? {
        Change::Wiring(wiring) if wiring.engage != Engage::None => {
            engage::check(&wiring)?;
            Ok(wiring)
        }
        _ => Err(malformed("engage is `none`".to_owned()).hint("`ironctl agent disconnect` disconnects an agent")),
    }
}

/// Returns the refusal of a connection that lets more messages reach an agent than now.
fn widens(agent: &registry::Agent, channel: &Channel) -> Refusal {
    let message = format!(
        "more messages of channel {} would reach agent {}, which needs a page and a yes",
        channel.name, agent.name
    );
    let refusal = Refusal::new(DenialCode::PageUnseen, message);
    refusal.hint(format!(
        "`ironctl agent connect` proposes it as a change and asks; or: `ironctl change submit --kind wiring --agent {} --payload JSON --reason WHY`",
        agent.name
    ))
}

fn view(
    tx: &ReadTx<'_>,
    channel: &Channel,
    hooks: Option<std::net::SocketAddr>,
) -> Result<operator::Channel, ironclaw_state::Error> {
    let waiting = |found: channels::WaitingSender| WaitingSender {
        identity: format!("{}:{}", channel.name, found.sender),
        since: ironclaw_ledger::rfc3339(found.since),
    };
    let agent = channel.agent.map(|agent| registry::agent_by_id(tx, agent)).transpose()?.flatten();
    let own = |found: channels::OwnSender| {
        Ok(OwnSender {
            identity: format!("{}:{}", channel.name, found.sender),
            person: registry::people::person_name(tx, found.person)?,
            since: ironclaw_ledger::rfc3339(found.since),
        })
    };
    let own = channels::own_senders(tx, &channel.name)?.into_iter().map(own);
    Ok(operator::Channel {
        name: channel.name.clone(),
        kind: channel.kind,
        url: channel.url.clone(),
        idempotent: channel.idempotent,
        wiring: agent.as_ref().map(|_| agents::wiring(channel)),
        agent: agent.map(|agent| agent.name),
        waiting: channels::waiting_senders(tx, &channel.name)?.into_iter().map(waiting).collect(),
        own: own.collect::<Result<_, ironclaw_state::Error>>()?,
        refused: Vec::new(),
        hook: match channel.kind {
            ChannelKind::Webhook => hooks.map(|address| format!("http://{address}/hooks/{}", channel.name)),
        },
        created_at: ironclaw_ledger::rfc3339(channel.created_at),
    })
}
