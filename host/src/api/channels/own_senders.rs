//! The senders that people call theirs, over the API: the page, the declaration, and its end.
//!
//! A declaration without the digest of its page records nothing. See [`crate::registry::channels::own_senders`].

use super::view;
use crate::api::agents;
use crate::api::handler::{Answer, Body, Caller, Reply};
use crate::gateway::review_page::Page;
use crate::registry::channels::{self, Channel, own_senders};
use crate::registry::people::{record_refusal, refuse};
use crate::registry::{self, Identity, Person};
use axum::Json;
use axum::extract::Path;
use ironclaw_contract::seam::change::{ChangeKind, UnknownSenders};
use ironclaw_operator::{self as operator, LedgerEvent, NewOwnSender, PersonPage};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::{Decide, Denied, Refusal};
use ironclaw_text::{confusable, visible};

/// `POST /v1/channels/{channel}/own_senders/{sender}/review`: the page of a declaration. Records nothing.
pub async fn review(
    Caller { api, person, .. }: Caller,
    Path((channel, sender)): Path<(String, String)>,
) -> Reply<PersonPage> {
    let shown = api.state().decide(move |tx| {
        let found = known(tx, &person, &channel, &sender)?;
        own_senders::check(tx, &person, &found, &sender)?;
        Ok(page(tx, &person, &found, &sender)?)
    });
    let shown = shown.await.map_err(|denied: Denied| Answer::from(denied))?;
    Ok(Json(crate::api::page::view(shown)))
}

/// `POST /v1/channels/{channel}/own_senders/{sender}`: the caller calls the sender theirs.
pub async fn add(
    Caller { api, person, .. }: Caller,
    Path((channel, sender)): Path<(String, String)>,
    Body(new): Body<NewOwnSender>,
) -> Reply<operator::Channel> {
    let hooks = api.about.hooks;
    // More messages reach the agent, as by a wider connection.
    agents::check_direct(&api.gateway, ChangeKind::Wiring, &person)?;
    let declared = api.state().decide(move |tx| {
        let found = known(tx, &person, &channel, &sender)?;
        own_senders::check(tx, &person, &found, &sender)?;
        let hint = "`ironctl channel own` shows the page; in a script add --yes";
        let page = page(tx, &person, &found, &sender)?;
        if let Err(refusal) = crate::api::page::check_seen(&page, new.shown.as_ref(), hint) {
            return refuse(tx, LedgerEvent::IdentityRefused, person.id, refusal);
        }
        own_senders::declare(tx, &person, &found, &sender)?;
        Ok::<_, Denied>(view(tx, &found, hooks)?)
    });
    Ok(Json(declared.await?))
}

/// `DELETE /v1/channels/{channel}/own_senders/{sender}`: ends it for all people.
pub async fn end(
    Caller { api, person, .. }: Caller,
    Path((channel, sender)): Path<(String, String)>,
) -> Reply<operator::Channel> {
    let hooks = api.about.hooks;
    let ended = api.state().decide(move |tx| {
        let found = channels::known(tx, Some(&person), &channel)?;
        own_senders::end(tx, &found, &sender, person.id)?;
        Ok::<_, Denied>(view(tx, &found, hooks)?)
    });
    Ok(Json(ended.await?))
}

/// Returns the channel of a declaration.
///
/// # Errors
/// Refuses an unknown channel, and a sender that no channel can have.
fn known(tx: &mut WriteTx<'_>, person: &Person, channel: &str, sender: &str) -> Result<Channel, Denied> {
    let found = channels::known(tx, Some(person), channel)?;
    format!("{channel}:{sender}").parse::<Identity>().map_err(|refusal: Refusal| {
        let noted = record_refusal(tx, LedgerEvent::IdentityRefused, person.id, &refusal);
        noted.map_or_else(Denied::from, |()| refusal.into())
    })?;
    Ok(found)
}

/// Returns the page of a declaration.
fn page(tx: &ReadTx<'_>, person: &Person, channel: &Channel, sender: &str) -> Result<String, ironclaw_state::Error> {
    let identity = format!("{}:{sender}", channel.name);
    let (name, account) = (visible::name(&person.name), visible::name(&identity));
    let mut page = Page::default();
    page.heading("EFFECT");
    page.sentence("  ", &format!("Messages of {account} no longer count as text of others in the turns of {name}."));
    if let Some(agent) = channel.agent.map(|agent| registry::agent_by_id(tx, agent)).transpose()?.flatten() {
        let agent = visible::name(&agent.name);
        page.sentence("  ", &format!("Agent {agent} reads them; its calls for {name} no longer ask because of them."));
    }
    if channel.rules.unknown != UnknownSenders::Public {
        page.sentence(
            "  ",
            "The host refuses messages of this account now, and then takes them. None of them gets an answer.",
        );
    }
    page.sentence("  ", "The account stays without a person: it gives no value, no receiver and no scope.");
    page.sentence("  ", "What it marks as quoted, forwarded or attached stays text of others.");
    page.heading("WARNINGS");
    page.sentence(
        "  !! ",
        &format!(
            "EVERYONE who can write from this account, or who has the secret of channel {}, then steers the agent unasked while it works for {name}.",
            channel.name
        ),
    );
    page.sentence(
        "  !! ",
        "So does everyone whose words a program writes from it, such as the title of a commit or the text of an order.",
    );
    let people = registry::people(tx)?;
    let whose = |id| people.iter().find(|person| person.id == id).map_or("", |person| person.name.as_str());
    let known: Vec<(String, &str)> =
        registry::identities(tx)?.into_iter().map(|(known, of)| (known.to_string(), whose(of))).collect();
    for mark in confusable::warnings(&identity, known.iter().map(|(text, whose)| (text.as_str(), *whose))) {
        page.sentence("  !! ", &format!("Look twice: the account {}.", visible::name(&mark)));
    }
    page.heading("IDENTIFIERS");
    page.sentence("  ", &format!("person {}", person.id));
    Ok(page.finish())
}
