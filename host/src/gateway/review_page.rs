//! The page that a person decides by: every effect of a change, with each string made safe to read.
//!
//! Never shows two different changes alike. [`crate::gateway::decide`] binds an approval to its digest.
//! See [`crate::gateway::kinds`] for the sentences of each kind and [`ironclaw_text::visible`] for safe strings.
//!
//! ```text
//! HEADINGS                 at the edge: the host's words
//!   sentences, fields      the host's words, with words of others in quotes; a long sentence continues with a deeper indent
//!   !! sentences           warnings
//!   rows                   a list of effects, below the heading of a section
//!   - + and blank          lines of the current setting, of the new one, and of both
//!     | text               words of others, line by line
//! ⟦…⟧                      marks of the host; no other text can contain one
//! ```
//!
//! The effect and the warnings come first, identifiers and digests last: a reader who stops early has read the danger. Behind them are
//! only the fields of a change that its effects tell whole. No text is on the
//! page twice: the meaning of names refers to a text of the sections before it by the mark `⟦above⟧`.

pub(in crate::gateway) mod effects;
mod json_lines;
mod names;
mod page;
#[cfg(test)]
mod tests;

pub use page::Page;

use super::kinds;
use super::waiting::Waiting;
use crate::registry::Role;
use crate::registry::policy::Rule;
use effects::Effects;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{AgentId, CallId, ChangeId, MessageId, PersonId, SessionId, TurnId};
use ironclaw_contract::seam::change::{Change, ChangeKind};
use ironclaw_contract::seam::seal::Label;
use ironclaw_judge::provenance::Labels;
use ironclaw_text::diff::{self, LineMark};
use ironclaw_text::visible;
use json_lines::Repeats;
use names::Names;
use serde_json::{Map, Value};
use std::borrow::Cow;

/// Writes each field of a value on lines of its own, without leaving a leaf out.
pub fn put_fields(page: &mut Page, value: &Value) {
    let names = Names::collect(Vec::new(), [value, &Value::Null, &Value::Null]);
    for line in json_lines::fields(value, &names, Repeats::Show) {
        page.put(&format!("  {}", line.prefix), &line.body);
    }
}

/// Writes each argument of a call on lines of its own, without leaving a leaf out. The first line of an argument ends with its mark.
pub fn put_arguments(page: &mut Page, arguments: &Map<String, Value>, mark: impl Fn(&str) -> Option<String>) {
    let all = Value::Object(arguments.clone());
    let names = Names::collect(Vec::new(), [&all, &Value::Null, &Value::Null]);
    for (name, value) in arguments {
        let mut mark = mark(name).map(|mark| format!(" ⟦{mark}⟧")).unwrap_or_default();
        for line in json_lines::one_field(name, value, &names) {
            page.put(&format!("  {}", line.prefix), &format!("{}{}", line.body, std::mem::take(&mut mark)));
        }
    }
}

/// Writes a line of a text of others; each line of it that is wrapped begins with `prefix`.
pub fn put_text(page: &mut Page, prefix: &str, line: &str) {
    for json_lines::Line { prefix: bar, body } in json_lines::text(0, line) {
        page.put(&format!("{prefix}{bar}"), &body);
    }
}

/// The content of a page.
#[derive(Debug, Clone)]
pub struct View<'a> {
    pub id: ChangeId,
    pub change: &'a Change,
    /// The agent that it alters: id and name.
    pub agent: Option<(AgentId, &'a str)>,
    /// The requester, with ids and names.
    pub requester: PageRequester<'a>,
    /// Labels of the output that made the request; empty for a person.
    pub labels: Labels,
    /// The reason in the requester's own words.
    pub reason: &'a str,
    /// The current setting, in the shape of the payload.
    pub before: &'a Value,
    /// The meaning of the names in the payload.
    pub facts: &'a Value,
    /// The rule of the policy for this change.
    pub rule: &'a Rule,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    pub expires_at: String,
    /// The generation of the record.
    pub generation: u64,
}

/// The requester of a change.
#[derive(Debug, Clone)]
pub enum PageRequester<'a> {
    /// A person: id and name.
    Person(PersonId, &'a str),
    Agent {
        agent: (AgentId, &'a str),
        /// The person on whose behalf it asks: id and name.
        principal: (PersonId, &'a str),
        /// The conversation of the request.
        session: SessionId,
        turn: TurnId,
        /// The message that the turn answers.
        message: Option<MessageId>,
        /// The call that made the request.
        call: CallId,
    },
}

/// Returns the exact text that a person is shown: lines of printable characters, at most [`WIDTH`] columns each.
///
/// Each line ends with a line feed. The text depends on the view alone.
pub fn render(view: &View<'_>) -> String {
    let payload = view.change.payload();
    let names = names_of(view, payload.value());
    let mut page = Page::default();
    put_effects(&mut page, view, &names);
    let is_told = kinds::is_told(view.change);
    if !is_told {
        put_fields_of_change(&mut page, view, payload.value(), &names);
    }
    put_reason(&mut page, view);
    put_requester(&mut page, view, &names);
    put_approval(&mut page, view, &names);
    put_identifiers(&mut page, view, payload.value(), &names);
    if is_told {
        put_fields_of_change(&mut page, view, payload.value(), &names);
    }
    page.finish()
}

/// Writes the setting with its changes, and the meaning of its names.
fn put_fields_of_change(page: &mut Page, view: &View<'_>, payload: &Value, names: &Names<'_>) {
    put_diff(page, view, payload, names);
    put_referenced_names(page, view, names);
}

/// Returns every name on the page.
fn names_of<'a>(view: &View<'a>, payload: &'a Value) -> Names<'a> {
    let agent = view.agent.map(|(id, name)| (name, format!("{id}")));
    let mut named: Vec<(&str, String)> = agent.into_iter().collect();
    match view.requester {
        PageRequester::Person(id, name) => named.push((name, format!("{id}"))),
        PageRequester::Agent { agent, principal, .. } => {
            named.push((agent.1, format!("{}", agent.0)));
            named.push((principal.1, format!("{}", principal.0)));
        }
    }
    Names::collect(named, [view.facts, view.before, payload])
}

/// Writes the effects, and the warnings in a section of their own. `ironctl` shows both again above its question.
fn put_effects(page: &mut Page, view: &View<'_>, names: &Names<'_>) {
    let agent = match view.agent {
        Some((_, name)) => format!("agent {}", names.show(name)),
        None => "no agent".to_owned(),
    };
    let mut effects = Effects::new(view.before, view.facts, names, is_by_agent(view));
    warn_of_foreign_text(&mut effects, view);
    kinds::effects(view.change, &agent, &mut effects);
    warn_of_hidden_characters(&mut effects);
    page.heading("EFFECT");
    for sentence in &effects.sentences {
        page.sentence("  ", sentence);
    }
    // No section for none: the host does not certify that a change is harmless.
    if !effects.warnings.is_empty() {
        page.heading("WARNINGS");
    }
    for warning in &effects.warnings {
        page.sentence("  !! ", warning);
    }
    for section in &effects.sections {
        page.heading(section.heading);
        for row in &section.rows {
            page.sentence(&" ".repeat(2 + 2 * row.depth), &row.words);
        }
    }
}

const fn is_by_agent(view: &View<'_>) -> bool {
    match view.requester {
        PageRequester::Person(..) => false,
        PageRequester::Agent { .. } => true,
    }
}

/// The knowledge of the host about text of other people or of tools in the conversation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ForeignText {
    Present,
    NoneRecorded,
    Unknown,
}

impl ForeignText {
    fn from_labels(labels: Labels) -> Self {
        match (labels.has_foreign(), labels.is_empty()) {
            (true, _) => Self::Present,
            (false, false) => Self::NoneRecorded,
            (false, true) => Self::Unknown,
        }
    }
}

/// Warns about names that are shown with codes of characters.
fn warn_of_hidden_characters(effects: &mut Effects<'_>) {
    // Only the page itself writes this bracket: in a name it is shown as its own code.
    if effects.sentences.iter().chain(&effects.warnings).any(|sentence| sentence.contains("⟦U+")) {
        effects.warn(
            "A name above contains unusual characters, shown as codes in ⟦ ⟧. It may imitate another name: compare the ids and \
             identities."
                .to_owned(),
        );
    }
}

/// Warns about a request that the text of other people or of tools may have caused.
fn warn_of_foreign_text(effects: &mut Effects<'_>, view: &View<'_>) {
    if !is_by_agent(view) {
        return;
    }
    match ForeignText::from_labels(view.labels) {
        ForeignText::Present => effects.warn(
            "Before the agent asked, its model read, or may have read, text of other people or of tools. That text may have caused \
             this request."
                .to_owned(),
        ),
        ForeignText::Unknown => effects.warn(
            "The host does not know if the model of the agent had read text of other people or of tools. Such text may have caused \
             this request."
                .to_owned(),
        ),
        ForeignText::NoneRecorded => {}
    }
}

/// Writes the current and the new setting as one list of lines.
fn put_diff(page: &mut Page, view: &View<'_>, payload: &Value, names: &Names<'_>) {
    page.heading("CHANGES (- before, + after)");
    let label = view.change.kind().name();
    let now = match absence(view.change.kind(), view.before) {
        Some(words) => vec![json_lines::line(label, words)],
        None => json_lines::lines(label, view.before, names),
    };
    let result = result(view, payload);
    let then = json_lines::lines(label, &result, names);
    names.note_leaves(view.before);
    names.note_leaves(&result);
    for (fate, line) in diff::lines(&now, &then) {
        let sign = match fate {
            LineMark::Removed => '-',
            LineMark::Added => '+',
            LineMark::Unchanged => ' ',
        };
        page.put(&format!("  {sign} {}", line.prefix), &line.body);
    }
}

/// Returns the setting after the change: a change of permissions without `access` keeps the present one.
fn result<'a>(view: &View<'_>, payload: &'a Value) -> Cow<'a, Value> {
    match (view.change.kind(), payload, view.before.get("access")) {
        (ChangeKind::Permissions, Value::Object(fields), Some(access)) if !fields.contains_key("access") => {
            let mut fields = fields.clone();
            fields.insert("access".to_owned(), access.clone());
            Cow::Owned(Value::Object(fields))
        }
        _ => Cow::Borrowed(payload),
    }
}

/// Returns words for a current setting without content. They differ for each such value of a kind.
fn absence(kind: ChangeKind, before: &Value) -> Option<&'static str> {
    match before {
        Value::Null => Some("(does not exist yet)"),
        Value::Array(entries) if entries.is_empty() => Some("(nothing now)"),
        // A removal names no setting of the agent.
        Value::Object(fields) if fields.is_empty() && kind == ChangeKind::Settings => Some("(the agent exists)"),
        Value::Object(fields) if fields.is_empty() => Some("(nothing now)"),
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) | Value::Object(_) => None,
    }
}

fn put_referenced_names(page: &mut Page, view: &View<'_>, names: &Names<'_>) {
    page.heading("REFERENCED NAMES");
    for line in json_lines::fields(&kinds::explained(view.change, view.facts), names, Repeats::Refer) {
        page.put(&format!("  {}", line.prefix), &line.body);
    }
}

fn put_reason(page: &mut Page, view: &View<'_>) {
    page.heading(match view.requester {
        PageRequester::Person(..) => "REASON GIVEN BY THE PERSON (unverified)",
        PageRequester::Agent { .. } => "REASON GIVEN BY THE AGENT (unverified)",
    });
    if view.reason.is_empty() {
        page.put("  ", "(none)");
        return;
    }
    for line in json_lines::text(4, view.reason) {
        page.put(&line.prefix, &line.body);
    }
}

/// Writes the requester and, for an agent, the trust in the context of its model.
fn put_requester(page: &mut Page, view: &View<'_>, names: &Names<'_>) {
    page.heading("REQUESTED BY");
    match &view.requester {
        PageRequester::Person(id, name) => page.put("  ", &format!("person {}", names.named(id, name))),
        PageRequester::Agent { agent, principal, .. } => {
            page.put("  ", &format!("agent {}", names.named(agent.0, agent.1)));
            page.put("  ", &format!("on behalf of person {}", names.named(principal.0, principal.1)));
            let read = match ForeignText::from_labels(view.labels) {
                ForeignText::Present => "yes; its model read it, or may have read it",
                ForeignText::NoneRecorded => "none in the record",
                ForeignText::Unknown => "unknown",
            };
            page.sentence("  ", &format!("Text of other people or of tools in this conversation: {read}"));
        }
    }
}

/// Returns the page for the person who asked for it and may not read its effects: its status, and the command that withdraws it while it
/// waits.
pub fn status_page(of: &Waiting) -> String {
    let mut page = Page::default();
    page.sentence("", &format!("{} ({}) is {}.", of.id, of.subject, of.status));
    page.sentence("", "Other people decide on it, and only they see its effects.");
    if of.status.is_open() {
        page.sentence("", &format!("`ironctl reject {}` withdraws it.", of.id));
    }
    page.finish()
}

/// Returns the people who must approve a change, for a sentence: `2 different people, each an owner or admin of this host`.
pub fn approvers(rule: &Rule, kind: ChangeKind) -> String {
    let one = one_approver(rule, kind);
    let but = if rule.requester_may_approve { "" } else { ", other than the requester" };
    match rule.approvals {
        1 => format!("{one}{but}"),
        many => format!("{many} different people, each {one}{but}"),
    }
}

/// Returns the roles of a person who may approve, for a sentence: `an owner or admin of this host`.
fn one_approver(rule: &Rule, kind: ChangeKind) -> String {
    let roles: Vec<&str> = rule.roles.iter().map(|role| role.name()).collect();
    // An admin of the agent has the rights of an admin of the host here, so only where the rule admits admins.
    let of_agent = match kinds::is_of_agent(kind) && rule.admits(Role::Admin) {
        true => ", or an admin of this agent",
        false => "",
    };
    format!("an {} of this host{of_agent}", roles.join(" or "))
}

/// Writes the roles that may decide, the number of approvals and the time limit.
fn put_approval(page: &mut Page, view: &View<'_>, names: &Names<'_>) {
    // `expires_hours` has no effect on this request; the section of identifiers has it.
    let Rule { roles: _, approvals, requester_may_approve, expires_hours: _ } = view.rule;
    page.heading("APPROVAL");
    page.sentence("  ", &format!("May approve: {}", one_approver(view.rule, view.change.kind())));
    page.sentence(
        "  ",
        &match approvals {
            1 => "Approvals needed: 1".to_owned(),
            many => format!("Approvals needed: {many}, from different people"),
        },
    );
    let (name, requester) = match &view.requester {
        PageRequester::Person(_, name) => (names.show(name), format!("{}, who asks,", names.show(name))),
        PageRequester::Agent { principal, .. } => {
            (names.show(principal.1), format!("{}, on whose behalf the agent asks,", names.show(principal.1)))
        }
    };
    page.sentence(
        "  ",
        &match requester_may_approve {
            true => format!("{requester} may approve, but only with one of these roles."),
            false => format!("{requester} may not approve."),
        },
    );
    if *approvals > 1 {
        page.sentence(
            "  ",
            "Approvals must be independent: two approvals count as one if one of the two people got their role or access token from \
             the other after this request was made.",
        );
    }
    if !requester_may_approve {
        page.sentence(
            "  ",
            &format!(
                "The approval of a person who got their role or access token from {name} after this request was made does not \
                 count."
            ),
        );
    }
    page.sentence(
        "  ",
        &format!("Without a decision by {} this request expires and nothing changes.", minute(&view.expires_at)),
    );
}

/// Writes ids and digests. `ironctl` shows them only on request.
fn put_identifiers(page: &mut Page, view: &View<'_>, payload: &Value, names: &Names<'_>) {
    page.heading("IDENTIFIERS");
    let mut fields = vec![
        ("change", format!("{}", view.id)),
        ("kind", view.change.kind().name().to_owned()),
        ("agent", view.agent.map_or_else(|| "none".to_owned(), |(id, name)| names.named(id, name))),
        ("requested at", plain(&view.created_at)),
        ("expires at", plain(&view.expires_at)),
        ("new requests expire after", format!("{} h", view.rule.expires_hours)),
        ("generation of the record", view.generation.to_string()),
    ];
    if let PageRequester::Agent { agent: _, principal: _, session, turn, message, call } = &view.requester {
        fields.push(("session", format!("{session}")));
        fields.push(("turn", format!("{turn}")));
        fields.push(("message", message.map_or_else(|| "none".to_owned(), |message| format!("{message}"))));
        fields.push(("call", format!("{call}")));
    }
    let labels: Vec<&str> = view.labels.list().into_iter().map(Label::name).collect();
    fields.push(("labels of the request", if labels.is_empty() { "none".to_owned() } else { labels.join(", ") }));
    for (field, value) in fields {
        page.put("  ", &format!("{field}: {value}"));
    }
    for (field, value) in
        [("the new setting", payload), ("the current setting", view.before), ("the referenced names", view.facts)]
    {
        page.put("  ", &format!("digest of {field}:"));
        // On a line of its own, so that a person can copy it whole.
        page.put("    ", &Digest::of(&canonical::to_vec(value)).to_string());
    }
}

/// Returns a time that the host wrote without its seconds; the section of identifiers has the exact time.
fn minute(rfc3339: &str) -> String {
    match (rfc3339.get(..10), rfc3339.get(10..11), rfc3339.get(11..16), rfc3339.ends_with('Z')) {
        (Some(day), Some("T"), Some(time), true) if plain(rfc3339) == rfc3339 => format!("{day} {time} UTC"),
        _ => plain(rfc3339),
    }
}

/// Returns a plain word, or a time that the host wrote, unquoted; any other text in quotes.
pub fn plain(text: &str) -> String {
    let is_plain = !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b':' | b'.'));
    if is_plain { text.to_owned() } else { visible::name(text) }
}
