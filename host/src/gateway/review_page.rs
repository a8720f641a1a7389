//! The page that a person decides by: every effect of a change, with each string made safe to look at.
//!
//! Injective: two changes that differ in anything are never shown alike. See [`crate::gateway::decide`], which binds its digest;
//! [`crate::gateway::kinds`] for the lines of each kind, [`ironclaw_text::visible`] for safe strings.
//!
//! ```text
//! HEADINGS                 alone at the edge: the host's
//!   sentences, fields      the host's words, with what others wrote in quotes
//!   !! sentences           the same, about what can do harm
//!   - + and blank          what goes, what comes, what stays
//!     | text               others' words, line by line
//! ⟦…⟧                      the host's marks; nobody else can write one
//! ```

pub(in crate::gateway) mod effects;
mod json_lines;
mod names;
mod page;
#[cfg(test)]
mod tests;

pub use page::WIDTH;

use super::kinds;
use super::policy::Rule;
use crate::registry::Role;
use effects::Effects;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{AgentId, CallId, ChangeId, MessageId, PersonId, SessionId, TurnId};
use ironclaw_contract::seam::change::Change;
use ironclaw_contract::seam::seal::Label;
use ironclaw_text::diff::{self, Fate};
use ironclaw_text::visible;
use names::Names;
use page::Page;
use serde_json::Value;

/// Everything that is shown.
#[derive(Debug, Clone)]
pub struct View<'a> {
    /// The change.
    pub id: ChangeId,
    /// To what.
    pub change: &'a Change,
    /// Whom it concerns: id and name.
    pub agent: Option<(AgentId, &'a str)>,
    /// Who asks: a person, or an agent on behalf of one; ids with names.
    pub requester: Asker<'a>,
    /// Of the output that asked; empty for a person.
    pub labels: &'a [Label],
    /// Why, in the words of whoever asks.
    pub reason: &'a str,
    /// How it stands, in the shape of the payload.
    pub before: &'a Value,
    /// What the names in it mean.
    pub facts: &'a Value,
    /// Who decides.
    pub rule: &'a Rule,
    /// RFC 3339.
    pub created_at: String,
    /// RFC 3339.
    pub expires_at: String,
    /// Which generation of the record.
    pub generation: u64,
}

/// Who asks.
#[derive(Debug, Clone)]
pub enum Asker<'a> {
    /// A person: id and name.
    Person(PersonId, &'a str),
    /// An agent.
    Agent {
        /// Id and name.
        agent: (AgentId, &'a str),
        /// On whose behalf: id and name.
        principal: (PersonId, &'a str),
        /// Which conversation.
        session: SessionId,
        /// Which turn.
        turn: TurnId,
        /// Which message.
        message: Option<MessageId>,
        /// Which call.
        call: CallId,
    },
}

/// The exact text that a person is shown: lines of printable characters, at most [`WIDTH`] columns each, each ended by a line feed.
pub fn render(view: &View<'_>) -> String {
    let payload = view.change.payload();
    let names = names_of(view, payload.value());
    let mut page = Page::default();
    which(&mut page, view, payload.value(), &names);
    asker(&mut page, view, &names);
    deciders(&mut page, view);
    page.heading("WHAT THE NAMES IN IT MEAN NOW");
    for line in json_lines::lines("known", view.facts, &names) {
        page.put(&format!("  {}", line.prefix), &line.body);
    }
    settings(&mut page, view, payload.value(), &names);
    // Last, so that it stands directly above the question; and of it last what can do harm.
    page.heading("WHAT WOULD HAPPEN");
    let agent = match view.agent {
        Some((id, name)) => format!("Agent {}", names.named(id, name)),
        None => "No agent".to_owned(),
    };
    let mut effects = Effects::new(view.before, view.facts, &names);
    kinds::effects(view.change, &agent, &mut effects);
    for sentence in effects.finish() {
        page.put(if sentence.can_harm { "  !! " } else { "  " }, &sentence.words);
    }
    page.finish()
}

/// Returns every name that is shown.
fn names_of<'a>(view: &View<'a>, payload: &'a Value) -> Names<'a> {
    let agent = view.agent.map(|(id, name)| (name, format!("{id}")));
    let mut named: Vec<(&str, String)> = agent.into_iter().collect();
    match view.requester {
        Asker::Person(id, name) => named.push((name, format!("{id}"))),
        Asker::Agent { agent, principal, .. } => {
            named.push((agent.1, format!("{}", agent.0)));
            named.push((principal.1, format!("{}", principal.0)));
        }
    }
    Names::of(named, [view.facts, view.before, payload])
}

/// Ids and digests, by which it is told from any other change; a terminal shows them when it is asked to.
fn which(page: &mut Page, view: &View<'_>, payload: &Value, names: &Names<'_>) {
    page.heading("WHICH CHANGE");
    let mut fields = vec![
        ("id", format!("{}", view.id)),
        ("kind", view.change.kind().name().to_owned()),
        ("agent", view.agent.map_or_else(|| "none".to_owned(), |(id, name)| names.named(id, name))),
        ("asked at", plain(&view.created_at)),
        ("generation of the record", view.generation.to_string()),
    ];
    if let Asker::Agent { agent: _, principal: _, session, turn, message, call } = &view.requester {
        fields.push(("asked in conversation", format!("{session}")));
        fields.push(("asked in turn", format!("{turn}")));
        fields.push(("answering message", message.map_or_else(|| "none".to_owned(), |message| format!("{message}"))));
        fields.push(("asked by call", format!("{call}")));
    }
    let labels: Vec<&str> = view.labels.iter().map(|label| label.name()).collect();
    fields.push(("labels of the request", if labels.is_empty() { "none".to_owned() } else { labels.join(", ") }));
    for (field, value) in fields {
        page.put("  ", &format!("{field}: {value}"));
    }
    for (field, value) in
        [("what would be set", payload), ("what is set now", view.before), ("what the names mean", view.facts)]
    {
        page.put("  ", &format!("digest of {field}:"));
        // Alone on its line, so that it can be copied whole.
        page.put("    ", &Digest::of(&canonical::to_vec(value)).to_string());
    }
}

/// The present setting and the new one, as one list of lines.
fn settings(page: &mut Page, view: &View<'_>, payload: &Value, names: &Names<'_>) {
    page.heading("WHAT IS SET NOW (-), WHAT WOULD BE SET (+), WHAT STAYS");
    let label = view.change.kind().name();
    let (now, then) = (json_lines::lines(label, view.before, names), json_lines::lines(label, payload, names));
    for (fate, line) in diff::of(&now, &then) {
        let sign = match fate {
            Fate::Goes => '-',
            Fate::Comes => '+',
            Fate::Stays => ' ',
        };
        page.put(&format!("  {sign} {}", line.prefix), &line.body);
    }
}

/// Who asks, from where, and why in their own words.
fn asker(page: &mut Page, view: &View<'_>, names: &Names<'_>) {
    page.heading("WHO ASKS");
    match &view.requester {
        Asker::Person(id, name) => page.put("  ", &format!("person {}", names.named(id, name))),
        Asker::Agent { agent, principal, .. } => {
            page.put("  ", &format!("agent {}", names.named(agent.0, agent.1)));
            page.put("  ", &format!("on behalf of person {}", names.named(principal.0, principal.1)));
            let before = match (view.labels.contains(&Label::External), view.labels.is_empty()) {
                (true, _) => "what its model had before it when it asked held words of strangers, or may have",
                (false, false) => "what its model had before it when it asked held no words of strangers",
                (false, true) => "what its model had before it when it asked is not known",
            };
            page.put("  ", before);
        }
    }
    let whose = match view.requester {
        Asker::Person(..) => "THE PERSON",
        Asker::Agent { .. } => "THE AGENT",
    };
    page.heading(&format!("WHY, IN THE WORDS OF {whose} WHO ASKS AND NOT OF THIS HOST"));
    if view.reason.is_empty() {
        page.put("  ", "(no reason is given)");
        return;
    }
    for line in json_lines::text(4, view.reason) {
        page.put(&line.prefix, &line.body);
    }
}

/// Who decides, and until when.
fn deciders(page: &mut Page, view: &View<'_>) {
    let Rule { roles, approvals, requester_may_approve, expires_hours } = view.rule;
    page.heading("WHO DECIDES");
    let roles: Vec<&str> = roles.iter().map(|role| role.name()).collect();
    // An admin of the agent decides as an admin of the host does, and so only where that one may.
    let of_agent = match kinds::is_of_agent(view.change.kind()) && view.rule.admits(Role::Admin) {
        true => ", or admin of this agent",
        false => "",
    };
    page.put("  ", &format!("those with a role of this host: {}{of_agent}", roles.join(", ")));
    page.put(
        "  ",
        &match approvals {
            1 => "one person has to say yes".to_owned(),
            many => format!("{many} different people have to say yes"),
        },
    );
    page.put(
        "  ",
        match (requester_may_approve, &view.requester) {
            (true, Asker::Person(..)) => "whoever asks may be one of them",
            (true, Asker::Agent { .. }) => "the person on whose behalf the agent asks may be one of them",
            (false, Asker::Person(..)) => "whoever asks does not count",
            (false, Asker::Agent { .. }) => "the person on whose behalf the agent asks does not count",
        },
    );
    if !view.rule.is_one_alone() {
        page.put("  ", "a person does not count beside whoever gave them their role or token after this was asked for");
    }
    page.put(
        "  ",
        &format!("until {}; then it is over (what is asked now: after {expires_hours} h)", plain(&view.expires_at)),
    );
}

/// A time of the host's: as it is; should it be anything else, in quotes.
fn plain(text: &str) -> String {
    let is_plain = !text.is_empty()
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b':' | b'.'));
    if is_plain { text.to_owned() } else { visible::name(text) }
}
