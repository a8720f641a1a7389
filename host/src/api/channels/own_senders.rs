//! The senders that people call theirs, over the API: the page, the declaration, and its end.
//!
//! A declaration without the digest of its page records nothing. See [`crate::registry::channels::own_senders`].

use super::view;
use crate::api::handler::{Answer, Body, Caller, Reply};
use crate::api::{agents, people};
use crate::gateway::review_page::Page;
use crate::registry::channels::{self, Channel, own_senders};
use crate::registry::people::refuse;
use crate::registry::{self, Identity, Person};
use axum::Json;
use axum::extract::Path;
use ironclaw_contract::seam::change::{ChangeKind, UnknownSenders};
use ironclaw_operator::{self as operator, LedgerEvent, NewOwnSender, PersonPage};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::{Decide, Denied};
use ironclaw_text::visible;

/// `POST /v1/channels/{channel}/own_senders/{sender}/review`: the page of a declaration. Records nothing.
pub async fn review(
    Caller { api, person, .. }: Caller,
    Path((channel, sender)): Path<(String, String)>,
) -> Reply<PersonPage> {
    let shown = api.state().decide(move |tx| {
        let (found, identity) = known(tx, &person, &channel, &sender)?;
        own_senders::check(tx, &person, &found, &identity)?;
        Ok(page(tx, &person, &found, &identity)?)
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
        let (found, identity) = known(tx, &person, &channel, &sender)?;
        own_senders::check(tx, &person, &found, &identity)?;
        let hint = "`ironctl channel own` shows the page; in a script add --yes";
        let page = page(tx, &person, &found, &identity)?;
        if let Err(refusal) = crate::api::page::check_seen(&page, new.shown.as_ref(), hint) {
            return refuse(tx, LedgerEvent::IdentityRefused, person.id, refusal);
        }
        own_senders::declare(tx, &person, identity)?;
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
        let identity = Identity { channel: found.name.clone(), sender };
        own_senders::end(tx, &identity, person.id)?;
        Ok::<_, Denied>(view(tx, &found, hooks)?)
    });
    Ok(Json(ended.await?))
}

/// Returns the channel of a declaration, and the account.
///
/// # Errors
/// Refuses an unknown channel, and a sender that no channel can have.
fn known(tx: &mut WriteTx<'_>, person: &Person, channel: &str, sender: &str) -> Result<(Channel, Identity), Denied> {
    let found = channels::known(tx, Some(person), channel)?;
    let identity = people::read_identity(tx, &format!("{channel}:{sender}"), person.id)?;
    Ok((found, identity))
}

/// Returns the page of a declaration.
fn page(
    tx: &ReadTx<'_>,
    person: &Person,
    channel: &Channel,
    identity: &Identity,
) -> Result<String, ironclaw_state::Error> {
    let (name, account) = (visible::name(&person.name), visible::name(&identity.to_string()));
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
    crate::api::page::put_lookalikes(tx, &mut page, identity)?;
    page.heading("IDENTIFIERS");
    page.sentence("  ", &format!("person {}", person.id));
    Ok(page.finish())
}
