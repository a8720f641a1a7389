//! The pages of steps that need a yes to exactly what they do, and are no changes.
//!
//! A step without the digest of its page changes nothing. See [`super::people`] and [`super::settings`].

use ironclaw_contract::canonical::Digest;
use ironclaw_operator::{DenialCode, PersonPage};
use ironclaw_store::refusal::Refusal;

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
