//! The page of a new allowance: exactly what it permits, and a comparison with the requests in the record.
//!
//! Never shows two different allowances alike: all fixed fields are on the page. See [`crate::gateway::review_page`] for the lines.

use super::super::facts::section;
use super::super::facts::standing::Standing;
use super::super::page::arguments;
use super::coverage::{LIFTED, New, check, control_fields, covers, is_lifted};
use crate::gateway::review_page::{self, Page};
use crate::registry::tools::catalogue::Terms;
use crate::registry::{Person, mcp};
use ironclaw_contract::canonical::Digest;
use ironclaw_judge::manifest::Manifest;
use ironclaw_operator::DenialCode;
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::record::Record;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::waiting::Status;
use ironclaw_store::tables::waiting::requests::{self, Row};
use ironclaw_text::visible;
use serde_json::Value;

/// An allowance in the form that its person is shown.
#[derive(Debug, Clone)]
pub struct Shown {
    /// The exact text of the page.
    pub text: String,
    pub digest: Digest,
    /// The digest of the manifest of the tool and of the standing facts of its calls.
    pub manifest: Digest,
    /// The comparison with earlier requests.
    pub compared: Compared,
}

/// The comparison of an allowance with the requests in the record.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compared {
    /// The time of the first request, milliseconds since the epoch.
    pub since: Option<i64>,
    /// The requests whose arguments are readable.
    pub read: u64,
    /// The requests whose arguments are gone or damaged.
    pub unread: u64,
    /// The requests that the allowance would have let through.
    pub permitted: u64,
}

/// Compares an allowance with the requests of its person, agent and tool that the record still has.
///
/// # Errors
/// Refuses an allowance that would have let a rejected request through, with the name of the request.
pub fn compare(
    tx: &ReadTx<'_>,
    record: &Record,
    by: &Person,
    new: &New,
    manifest: &Manifest,
) -> Result<Compared, Denied<Error>> {
    let mut compared = Compared::default();
    for row in requests::list_for_person(tx, by.id, new.agent.id, &new.tool)? {
        compared.since.get_or_insert(row.created_at);
        let Ok(arguments) = arguments(tx, record, &row) else {
            compared.unread += 1;
            continue;
        };
        compared.read += 1;
        if !covers(manifest, &new.fields, &arguments) || !has_lifted_reasons(&row) {
            continue;
        }
        if row.status == Status::Rejected {
            let message = format!("a person rejected {}, which this allowance would have permitted", row.id);
            let refusal = Refusal::new(DenialCode::AllowanceRejected, message);
            return Err(refusal.hint(format!("read it: `ironctl why {}`; fix other values", row.id)).into());
        }
        compared.permitted += 1;
    }
    Ok(compared)
}

/// Returns whether an allowance lifts every reason of a request.
pub(super) fn has_lifted_reasons(row: &Row) -> bool {
    row.own.reasons.iter().all(|reason| is_lifted(reason.code))
}

/// Returns the page of a new allowance.
///
/// # Errors
/// Refuses bounds, tools and fields that no allowance has, and an allowance that would have let a rejected request through.
pub fn show(tx: &ReadTx<'_>, record: &Record, by: &Person, new: &New) -> Result<Shown, Denied<Error>> {
    let terms = check(new, &mcp::catalogue(tx, &new.agent)?, tx.wall())?;
    let compared = compare(tx, record, by, new, &terms.manifest)?;
    let standing = Standing::read(tx, new.agent.id, &terms, &new.fields)?;
    let manifest = standing.digest(&terms);
    let text = page(by, new, &terms, &standing, &compared);
    Ok(Shown { digest: Digest::of(text.as_bytes()), text, manifest, compared })
}

fn page(by: &Person, new: &New, terms: &Terms, standing: &Standing, compared: &Compared) -> String {
    let (manifest, digest) = (&*terms.manifest, standing.digest(terms));
    let (agent, person) = (visible::name(&new.agent.name), visible::name(&by.name));
    let mut page = Page::default();
    page.heading("ALLOWANCE");
    let calls = if new.count == 1 { "1 call".to_owned() } else { format!("{} calls", new.count) };
    let until = ironclaw_ledger::rfc3339(new.until);
    page.sentence("  ", &format!("Agent {agent} makes {calls} of {} without a question, until {until}.", new.tool));
    page.sentence("  ", &format!("It holds for turns of {person}, and for no other kind of principal."));
    section::put_standing(&mut page, standing);
    page.heading("CONTROL FIELDS, EXACTLY");
    review_page::put_fields(&mut page, &Value::Object(new.fields.clone()));
    for name in control_fields(manifest).filter(|name| !new.fields.contains_key(*name)) {
        page.sentence("  ", &format!("{}: the call leaves it out", visible::name(name)));
    }
    page.heading("OTHER FIELDS");
    for name in manifest.arguments.keys().filter(|name| !control_fields(manifest).any(|control| control == *name)) {
        page.sentence("  ", &format!("{}: anything", visible::name(name)));
    }
    page.heading("REASONS THAT IT LIFTS");
    for code in LIFTED {
        page.sentence("  ", &format!("{code}: {}", code.meaning()));
    }
    page.sentence("  ", "A call with any other reason asks as before, with all its reasons.");
    page.heading("REQUESTS IN THE RECORD");
    let since =
        compared.since.map_or_else(|| "none".to_owned(), |at| format!("since {}", ironclaw_ledger::rfc3339(at)));
    let Compared { read, unread, permitted, .. } = compared;
    page.sentence("  ", &format!("compared: {read} ({since}); not readable: {unread}"));
    page.sentence("  ", &format!("permitted without a question: {permitted}; rejected ones of these: 0"));
    page.heading("IDENTIFIERS");
    page.sentence("  ", &format!("agent {}, person {}", new.agent.id, by.id));
    page.sentence("  ", &format!("digest of the manifest and of where they have their effect {digest}"));
    page.finish()
}
