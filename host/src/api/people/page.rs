//! The pages of the steps by which a person gets more: another account on a channel, and a higher role.
//!
//! A step without the digest of its page changes nothing. Records nothing itself. See [`super`] and [`crate::gateway::review_page`].

use crate::gateway::review_page::Page;
use crate::registry::{self, Identity, Person, Role, channels};
use ironclaw_contract::canonical::Digest;
use ironclaw_state::ReadTx;
use ironclaw_store::refusal::Refusal;
use ironclaw_text::visible;

/// Checks that a person was shown exactly this page.
///
/// # Errors
/// As [`crate::api::page::check_seen`].
pub(super) fn check_seen(page: &str, shown: Option<&Digest>) -> Result<(), Refusal> {
    let hint = "`ironctl person link` and `person set --role` show the page; in a script add --yes";
    crate::api::page::check_seen(page, shown, hint)
}

/// Returns the page of a new identity of a person.
pub(super) fn link(tx: &ReadTx<'_>, person: &Person, identity: &Identity) -> Result<String, ironclaw_state::Error> {
    let (name, account) = (visible::name(&person.name), visible::name(&identity.to_string()));
    let mut page = Page::default();
    page.heading("EFFECT");
    page.sentence(
        "  ",
        &format!("Link the account {account} to {name}, who is {} of this host.", in_words(person.role)),
    );
    let channel = channels::find(tx, &identity.channel)?;
    let hearer = channel.as_ref().and_then(|channel| channel.agent).map(|agent| registry::agent_by_id(tx, agent));
    page.sentence(
        "  ",
        &match (hearer.transpose()?.flatten(), channel) {
            (Some(agent), _) => format!("Its messages reach agent {} at once.", visible::name(&agent.name)),
            (None, Some(_)) => "No agent hears this channel now.".to_owned(),
            (None, None) => "This host has no channel of this name now.".to_owned(),
        },
    );
    page.heading("WARNINGS");
    page.sentence(
        "  !! ",
        &format!("EVERYONE who can write from this account then speaks as {name}: agents act on its words as on those of {name}."),
    );
    crate::api::page::put_lookalikes(tx, &mut page, identity)?;
    page.heading("IDENTIFIERS");
    page.sentence("  ", &format!("person {}", person.id));
    Ok(page.finish())
}

/// Returns the page of another role of a person.
pub(super) fn role(person: &Person, wanted: Role) -> String {
    let name = visible::name(&person.name);
    let mut page = Page::default();
    page.heading("EFFECT");
    page.sentence(
        "  ",
        &format!("{name} becomes {} of this host, and is {} now.", in_words(wanted), in_words(person.role)),
    );
    page.heading("WARNINGS");
    page.sentence(
        "  !! ",
        match wanted {
            Role::Member => "A member may talk to every agent that is open to the people of this host.",
            Role::Admin => {
                "An ADMIN may talk to and run every agent, read the conversations of others, and decide on changes and calls where \
                 the policy says so."
            }
            Role::Owner => {
                "An OWNER may do everything on this host, also give roles and tokens to others and store secrets."
            }
        },
    );
    page.heading("IDENTIFIERS");
    page.sentence("  ", &format!("person {}", person.id));
    page.finish()
}

const fn in_words(role: Role) -> &'static str {
    match role {
        Role::Owner => "an owner",
        Role::Admin => "an admin",
        Role::Member => "a member",
    }
}
