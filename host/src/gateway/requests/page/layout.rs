//! The lines of the page of a request.
//!
//! Never shows two different calls alike: each value has its place, and the words of others are in quotes or behind a bar. See
//! [`crate::gateway::review_page`] for the lines of a value.
//!
//! ```text
//! APPROVAL REQUEST req_…
//!   the effect, with its values; who asks; what goes with the call, and where a server runs
//! VALUES
//!   argument: value ⟦origin⟧
//! REASONS
//!   code (arguments): meaning. Decides: people.
//! UNTIL THE ANSWER, WITH THE WORD turn
//!   for a call that only reads: the tools whose calls this word permits too
//!
//! DETAILS
//!   what `ironctl` shows on request: facts, items of the values, ids and digests
//! ```

use super::{Facts, is_for_grant, section};
use crate::gateway::requests::reads::Reads;
use crate::gateway::review_page::{self, Page};
use crate::registry::policy::Rule;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::RequestId;
use ironclaw_judge::inputs::ArgumentOrigin;
use ironclaw_store::tables::waiting::requests::StoredReason;
use ironclaw_text::visible;
use serde_json::{Map, Value};

/// The content of a page.
pub(super) struct View<'a> {
    pub(super) id: RequestId,
    pub(super) effect: &'a str,
    pub(super) agent: &'a str,
    pub(super) person: &'a str,
    /// The name of the agent whose message the turn works at.
    pub(super) of_agent: Option<String>,
    pub(super) facts: &'a Facts,
    pub(super) origins: &'a [ArgumentOrigin],
    pub(super) reasons: &'a [StoredReason],
    pub(super) rule: &'a Rule,
    /// What a yes can cover beside the call.
    pub(super) reads: Option<&'a Reads>,
    /// The items that have the values, a sentence for each.
    pub(super) sources: Vec<String>,
    pub(super) identifiers: Vec<String>,
}

pub(super) fn render(view: &View<'_>) -> String {
    let mut page = Page::default();
    page.heading(&format!("APPROVAL REQUEST {}", view.id));
    page.sentence("  ", view.effect);
    let (agent, person) = (visible::name(view.agent), visible::name(view.person));
    page.sentence("  ", &format!("Agent {agent} asks on behalf of {person}. A yes permits this call once."));
    if let Some(of_agent) = &view.of_agent {
        let of_agent = visible::name(of_agent);
        page.sentence(
            "  ",
            &format!("It works at a message of the agent {of_agent}, and not at words of this person."),
        );
    }
    section::put_needed(&mut page, view.facts);
    put_values(&mut page, view.facts, view.origins);
    put_reasons(&mut page, view.reasons, view.rule, view.person);
    put_reads(&mut page, view.reads);
    page.heading("DETAILS");
    section::put_details(&mut page, view.facts);
    view.sources.iter().for_each(|source| page.sentence("  ", source));
    view.identifiers.iter().for_each(|words| page.sentence("  ", words));
    section::put_digests(&mut page, view.facts);
    put_details_of_reads(&mut page, view.reads, view.person);
    page.sentence("  ", &format!("digest of the facts {}", view.facts.digest()));
    page.finish()
}

/// Writes all arguments of a call, each with the origin of its value if the host knows it.
fn put_values(page: &mut Page, facts: &Facts, origins: &[ArgumentOrigin]) {
    page.close_heading("VALUES");
    if facts.arguments().is_empty() {
        page.sentence("  ", "(none)");
    }
    put_arguments(page, facts.arguments(), origins);
}

/// Writes arguments, each with the origin of its value if the host knows it.
pub(super) fn put_arguments(page: &mut Page, arguments: &Map<String, Value>, origins: &[ArgumentOrigin]) {
    review_page::put_arguments(page, arguments, |name| mark(origins, name));
}

/// Returns the origin of the value of an argument in a few words, if the host knows it.
pub(super) fn mark(origins: &[ArgumentOrigin], name: &str) -> Option<String> {
    let origin = origins.iter().find(|origin| origin.argument == name)?;
    Some(match (origin.typed, origin.handle) {
        (true, _) => "the person typed it".to_owned(),
        (false, Some(handle)) => format!("from result r{}", handle.seq),
        (false, None) => "the model wrote it".to_owned(),
    })
}

/// Writes the reasons with their deciders.
pub(super) fn put_reasons(page: &mut Page, reasons: &[StoredReason], rule: &Rule, person: &str) {
    page.close_heading("REASONS");
    for reason in reasons {
        let names: Vec<String> = reason.arguments.iter().map(|name| review_page::plain(name)).collect();
        let about = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
        let who = decides(reason, rule, person);
        page.sentence("  ", &format!("{}{about}: {} Decides: {who}.", reason.code, reason.code.meaning()));
    }
    if reasons.iter().any(|reason| is_for_grant(reason.code)) {
        page.sentence(
            "  ",
            "No grant covers this request: it is sent once, without a secret of this host, and no grant is made.",
        );
    }
}

/// Writes what a yes can cover beside the calls of the page.
pub(super) fn put_reads(page: &mut Page, reads: Option<&Reads>) {
    let Some(Reads { names, count, .. }) = reads else { return };
    page.close_heading("UNTIL THE ANSWER, WITH THE WORD turn");
    let names: Vec<String> = names.iter().map(|name| visible::name(name)).collect();
    page.sentence("  ", &format!("at most {count} more calls that only read: {}", names.join(", ")));
}

/// Writes what [`put_reads`] leaves out.
pub(super) fn put_details_of_reads(page: &mut Page, reads: Option<&Reads>, person: &str) {
    let Some(Reads { server, tools, count, .. }) = reads else { return };
    let (server, person) = (visible::name(server), visible::name(person));
    page.sentence(
        "  ",
        &format!(
            "The word turn is a yes to this page, and to at most {count} calls of these tools of MCP server {server} until the turn ends. A \
             value that such a call gives to a third party is one that {person} typed, or one from a result."
        ),
    );
    page.sentence("  ", &format!("digest of these tools {}", Digest::of(&canonical::to_vec(tools))));
}

/// Returns the people who remove a reason, for a sentence.
pub(super) fn decides(reason: &StoredReason, rule: &Rule, person: &str) -> String {
    if !reason.by_policy {
        return visible::name(person);
    }
    let roles: Vec<&str> = rule.roles.iter().map(|role| role.name()).collect();
    let count = if rule.approvals == 1 { "one person".to_owned() } else { format!("{} people", rule.approvals) };
    let own = if rule.requester_may_approve { String::new() } else { format!(", and not {}", visible::name(person)) };
    format!("{count} with role {}{own}", roles.join(" or "))
}

/// Writes what the facts alone decide of a page.
#[cfg(test)]
pub fn put_facts(page: &mut Page, facts: &Facts) {
    section::put_needed(page, facts);
    put_values(page, facts, &[]);
    page.heading("DETAILS");
    section::put_details(page, facts);
    section::put_digests(page, facts);
}
