//! The pages of steps that need a yes to exactly what they do, and are no changes.
//!
//! A step without the digest of its page changes nothing. See [`super::people`] and [`super::settings`].

use crate::gateway::review_page::Page;
use crate::registry::{self, Identity};
use ironclaw_contract::canonical::Digest;
use ironclaw_operator::{DenialCode, PersonPage};
use ironclaw_state::ReadTx;
use ironclaw_store::refusal::Refusal;
use ironclaw_text::{confusable, visible};

/// Returns a page with its digest.
pub(super) fn view(shown: String) -> PersonPage {
    PersonPage { shown_digest: Digest::of(shown.as_bytes()), shown }
}

/// Checks that a person was shown exactly this page. `hint` names the command that shows it.
///
/// # Errors
/// Refuses a step without the digest of a page, and one with the digest of another page.
pub(super) fn check_seen(page: &str, shown: Option<&Digest>, hint: &str) -> Result<(), Refusal> {
    match shown {
        Some(shown) if *shown == Digest::of(page.as_bytes()) => Ok(()),
        Some(_) => {
            let refusal = Refusal::new(DenialCode::ShownDiffers, "the step differs from the page that was shown");
            Err(refusal.hint("repeat the command, and read the page again"))
        }
        None => Err(Refusal::new(DenialCode::PageUnseen, "the step needs a page and a yes to it").hint(hint)),
    }
}

/// Warns of the accounts of people that look like this one.
pub(super) fn put_lookalikes(
    tx: &ReadTx<'_>,
    page: &mut Page,
    identity: &Identity,
) -> Result<(), ironclaw_state::Error> {
    let people = registry::people(tx)?;
    let whose = |id| people.iter().find(|person| person.id == id).map_or("", |person| person.name.as_str());
    let known: Vec<(String, &str)> =
        registry::identities(tx)?.into_iter().map(|(known, of)| (known.to_string(), whose(of))).collect();
    let others = known.iter().map(|(text, whose)| (text.as_str(), *whose));
    for mark in confusable::warnings(&identity.to_string(), others) {
        page.sentence("  !! ", &format!("Look twice: the account {}.", visible::name(&mark)));
    }
    Ok(())
}
