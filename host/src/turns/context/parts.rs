//! The parts of a prompt, made from its items by their authors.
//!
//! Never shows a model the script's text as its own, and never an answer without a delivery. The model client renders the parts.

use super::checked::Checked;
use super::item_cache::{Content, Item, ItemCache};
use super::system::{Now, Reader};
use super::values::Values;
use super::{images, order};
use crate::turns::calls::{Call, OutputBody, ResultBody, WRITTEN_CALL_REMARK, as_written};
use crate::turns::items::images::SentImage;
use crate::turns::items::{self, Recorded};
use ironclaw_contract::ids::{AgentId, CallId};
use ironclaw_contract::seam::message::{Author, Span};
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_model::image::ImageContent;
use ironclaw_model::{Part, PastCall};
use ironclaw_state::ReadTx;
use ironclaw_state::keys::ContentKey;
use ironclaw_store::error::Error;
use ironclaw_store::tables::agent_messages::{self, AgentMessageKind};
use ironclaw_store::tables::turns::CallState;
use ironclaw_store::tables::waiting::Status;
use ironclaw_store::tables::waiting::requests;
use ironclaw_store::tables::{agents, turns};
use ironclaw_text::lookalike;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The words about a call that had not begun when its turn ended.
const NOT_MADE: &str =
    "this call was not made: its turn was interrupted before it began; make it again if the task needs it";

/// The words about a call whose effect may have happened.
const OUTCOME_UNKNOWN: &str = "the outcome of this call is unknown; it is not run again";

/// The dates of turns in a prompt.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dates {
    Said,
    /// For a summary: a model reads it on a later day, when "it is now" is wrong.
    LeftOut,
}

/// What a prompt says beside its items.
pub(super) struct Beside<'a> {
    pub(super) dates: Dates,
    /// The values of messages that tools take by reference.
    pub(super) values: Option<Values<'a>>,
}

/// Returns the parts of these items, and the ordinal of the last turn among them.
///
/// With [`Dates::Said`] the host adds the time behind the messages of a turn, wherever it changes: small models copy a line that comes
/// first.
pub(super) fn compose(
    tx: &ReadTx<'_>,
    reader: &Reader<'_>,
    checked: Vec<Checked>,
    key: &ContentKey,
    cache: &mut ItemCache,
    beside: Beside<'_>,
) -> Result<(Vec<Part>, i64), Error> {
    let Beside { dates, values } = beside;
    let (ordered, last) = order::order(tx, reader.turn, checked, cache)?;
    let answered: HashSet<CallId> = ordered.iter().filter_map(|(_, part)| call_of(part)).collect();
    let resolved_upto = resolved_upto(tx, reader, &ordered, cache)?;
    let mut composer = Composer {
        tx,
        reader,
        key,
        cache,
        answered,
        offered: HashSet::new(),
        of_script: HashSet::new(),
        resolved_upto,
        values,
        parts: Vec::new(),
        now: None,
        left_out: HashMap::new(),
    };
    // The turn whose messages came, and whose time did not come yet.
    let mut undated = None;
    for (ordinal, part) in ordered {
        let item = part.item();
        let dated =
            ordinal.filter(|_| dates == Dates::Said && item.is_some_and(|item| item.tuple.kind != ItemKind::Summary));
        let is_said = item.is_some_and(|item| item.tuple.kind == ItemKind::Message && item.tuple.turn.is_none());
        if let Some(of) = undated.take_if(|of| !is_said || dated != Some(*of)) {
            composer.date(of)?;
        }
        match (dated, is_said) {
            (Some(of), true) => undated = Some(of),
            (Some(of), false) => composer.date(of)?,
            (None, _) => {}
        }
        match part {
            Checked::Quoted(text) => composer
                .parts
                .push(Part::Context { author: "unsealed".to_owned(), text: lookalike::neutralise(&text).into_owned() }),
            Checked::Item(item) => composer.item(&item)?,
        }
    }
    if let Some(of) = undated {
        composer.date(of)?;
    }
    images::keep_newest(&mut composer.parts);
    Ok((composer.parts, last))
}

/// Returns the number of the last answer of a model among these items, or 0. Notices before it are resolved.
///
/// For the script, an answer of the script counts too.
fn resolved_upto(
    tx: &ReadTx<'_>,
    reader: &Reader<'_>,
    ordered: &[order::Positioned],
    cache: &mut ItemCache,
) -> Result<u64, ironclaw_state::Error> {
    let items = || ordered.iter().rev().filter_map(|(_, part)| part.item());
    if !items().any(|item| item.tuple.kind == ItemKind::Notice) {
        return Ok(0);
    }
    let by_model = |item: &&Arc<Item>| {
        let is_own = reader.is_script || !item.scripted;
        item.tuple.kind == ItemKind::Output && is_own && item.tuple.turn != Some(reader.turn.id)
    };
    for item in items().filter(by_model) {
        if cache.is_delivered(tx, item)? {
            return Ok(item.tuple.seq);
        }
    }
    Ok(0)
}

/// Returns the call of a result.
fn call_of(part: &Checked) -> Option<CallId> {
    part.item()?.tuple.call
}

struct Composer<'a, 'tx> {
    tx: &'a ReadTx<'tx>,
    reader: &'a Reader<'a>,
    key: &'a ContentKey,
    cache: &'a mut ItemCache,
    /// Calls with a result among the items.
    answered: HashSet<CallId>,
    /// Calls that are in the prompt.
    offered: HashSet<CallId>,
    /// Calls of the script, whose results are left out too.
    of_script: HashSet<CallId>,
    /// The number of the last answer; notices before it are left out.
    resolved_upto: u64,
    values: Option<Values<'a>>,
    parts: Vec<Part>,
    /// The last time in the prompt.
    now: Option<Arc<Now>>,
    /// The remarks on calls with arguments that the host writes, for their results.
    left_out: HashMap<CallId, String>,
}

impl Composer<'_, '_> {
    /// Adds the time of a turn, if it differs from the last one, and its date, if that differs too.
    fn date(&mut self, ordinal: i64) -> Result<(), Error> {
        let Some(now) = self.cache.opened_at(self.tx, ordinal, self.reader.zone)? else { return Ok(()) };
        if let Some(text) = now.since(self.now.as_deref()) {
            self.parts.push(Part::Time { text });
            self.now = Some(now);
        }
        Ok(())
    }

    fn item(&mut self, item: &Item) -> Result<(), Error> {
        let content = self.cache.content(self.tx, item, self.key)?;
        match (&*content, item.tuple.kind) {
            (Content::Message(body, spans), _) => self.message(item, body, spans)?,
            (Content::Text(body), ItemKind::Summary) => self.parts.push(Part::Summary { text: body.clone() }),
            (Content::Text(body), _) => self.notice(item, body)?,
            (Content::Output(output), _) => self.output(item, output)?,
            (Content::Result(result), _) => self.result(item, result)?,
        }
        Ok(())
    }

    /// Adds the words and files of a message. An image follows the note about it.
    fn message(&mut self, item: &Item, body: &str, spans: &[Span]) -> Result<(), Error> {
        let has_files = spans.iter().any(|span| matches!(span.author, Author::File { .. }));
        let mut images =
            if has_files { items::images::for_message(self.tx, item.tuple.item, self.key)? } else { Vec::new() }
                .into_iter()
                .peekable();
        let principal = self.reader.turn.principal.parse().ok();
        let mut start = 0;
        for (at, span) in spans.iter().enumerate() {
            let end = start + span.bytes;
            let text = body.get(start..end).unwrap_or_default();
            self.parts.push(match span.author {
                // Only the prompt of a schedule is a message that a model wrote as a whole. An answer quotes the question.
                Author::Model if spans.len() == 1 => Part::Task { text: text.to_owned() },
                Author::Agent { agent } => self.agent_part(agent, item, text)?,
                Author::Person { person } if Some(person) != principal => {
                    let author = self.cache.speaker(self.tx, item.tuple.item.message(), person)?;
                    Part::Context { author: author.to_string(), text: text.to_owned() }
                }
                _ => span_part(&span.author, text),
            });
            start = end;
            if let Some(SentImage { path, digest, .. }) = images.next_if(|image| image.span == at) {
                self.parts.push(Part::Image { path, content: ImageContent::Unread(digest) });
            }
        }
        let remark = match (spans, self.values.as_ref().zip(principal)) {
            // The result of a late call.
            ([Span { author: Author::Tool { tool }, .. }], _) => self.remark_of_answer(item, tool)?,
            (_, Some((values, person))) => values.remark(item, body, spans, person)?,
            (_, None) => None,
        };
        self.parts.extend(remark.map(|text| Part::Remark { text }));
        Ok(())
    }

    /// Returns the part for a message of another agent.
    fn agent_part(&self, agent: AgentId, item: &Recorded, text: &str) -> Result<Part, Error> {
        let found = agents::agent_by_id(self.tx, agent)?;
        let of_agent = agent_messages::find(self.tx, item.tuple.item.message())?;
        Ok(Part::Agent {
            agent: found.map_or_else(|| "(removed)".to_owned(), |agent| agent.name),
            answers: of_agent.is_some_and(|of_agent| of_agent.kind == AgentMessageKind::Answer),
            text: text.to_owned(),
        })
    }

    /// Adds a notice, unless a later turn was answered. A remark replaces the notice of a failed model: the next model does not have to
    /// explain the failure.
    fn notice(&mut self, item: &Recorded, body: &str) -> Result<(), Error> {
        if item.tuple.seq < self.resolved_upto {
            return Ok(());
        }
        let failed = match item.tuple.turn {
            Some(turn) => turns::has_failed(self.tx, turn)?,
            None => false,
        };
        self.parts.push(match failed {
            true => Part::Failure { text: "no model answered this.".to_owned() },
            false => Part::Notice { text: body.to_owned() },
        });
        Ok(())
    }

    fn output(&mut self, item: &Item, output: &OutputBody) -> Result<(), Error> {
        let is_open = item.tuple.turn == Some(self.reader.turn.id);
        // An answer without a delivery is left out, because no person was to read it.
        if output.calls.is_empty() && !is_open && !self.cache.is_delivered(self.tx, item)? {
            return Ok(());
        }
        if item.scripted && !self.reader.is_script && !is_open {
            self.parts.push(by_script(output));
            self.of_script.extend(output.calls.iter().map(|call| call.call_id));
            return Ok(());
        }
        // A model would copy the arguments that the host wrote.
        let past = |call: &Call| PastCall {
            call_id: call.call_id.to_string(),
            tool: call.tool.clone(),
            arguments: as_written(call),
        };
        let calls = output.calls.iter().map(past).collect();
        let attached = output.attached.clone().map(Arc::new);
        self.parts.push(match output.has_written_call {
            true => Part::Remark { text: WRITTEN_CALL_REMARK.to_owned() },
            false => Part::Assistant { text: output.text.clone(), calls, attached },
        });
        self.left_out.extend(output.left_out.iter().map(|left_out| (left_out.call_id, left_out.remark())));
        for call in &output.calls {
            self.offered.insert(call.call_id);
            if !self.answered.contains(&call.call_id) {
                let text = self.with_remark(call.call_id, self.without_result(call.call_id)?);
                self.parts.push(result_of(call.call_id, call.tool.clone(), false, text));
            }
        }
        if let Some(cut) = output.cut {
            self.parts.push(Part::Remark { text: cut.remark().to_owned() });
        }
        Ok(())
    }

    /// Returns the words about a call without a result, from its state: a model must never guess the outcome of its call.
    fn without_result(&self, call: CallId) -> Result<String, Error> {
        let state = turns::find_call(self.tx, call)?.map(|row| row.state);
        Ok(match state {
            Some(CallState::Void) => NOT_MADE.to_owned(),
            Some(CallState::Asked | CallState::Refused) => match requests::find_by_call(self.tx, call)? {
                Some(request) => asked(&request),
                None => "this call was not made: it was refused, or an equal later call took its place".to_owned(),
            },
            Some(CallState::Permitted | CallState::Running | CallState::Unknown) | None => OUTCOME_UNKNOWN.to_owned(),
            // Its result is not among the items.
            Some(CallState::Done | CallState::Failed | CallState::Queued) => OUTCOME_UNKNOWN.to_owned(),
        })
    }

    fn result(&mut self, item: &Item, result: &ResultBody) -> Result<(), Error> {
        if item.tuple.call.is_some_and(|call| self.of_script.contains(&call)) {
            return Ok(());
        }
        let tool = item.tuple.tool.clone().unwrap_or_default();
        let values = self.remark_of_answer(item, &tool)?.map(|remark| format!("\n[The host: {remark}]"));
        self.parts.push(match item.tuple.call.filter(|call| self.offered.contains(call)) {
            Some(call) => {
                let text = self.with_remark(call, result.text.clone()) + &values.unwrap_or_default();
                result_of(call, tool, result.is_ok(), text)
            }
            // Its call is not in the context, so it can only be a quote.
            None => Part::Context { author: format!("an earlier result of {tool}"), text: result.text.clone() },
        });
        Ok(())
    }

    /// Returns the remark about the values in an answer that tools take by reference.
    fn remark_of_answer(&self, item: &Item, tool: &str) -> Result<Option<String>, Error> {
        let Some(values) = &self.values else { return Ok(None) };
        values.remark_of_answer(self.tx, item, tool, self.key)
    }
}

impl Composer<'_, '_> {
    /// Returns the text of a result, with the remark on arguments of its call that the host writes.
    fn with_remark(&self, call: CallId, text: String) -> String {
        match self.left_out.get(&call) {
            Some(remark) => format!("{text}\n[The host: {remark}]"),
            None => text,
        }
    }
}

/// Returns the words about a call that waits for people, or whose request ended without it.
fn asked(request: &requests::Row) -> String {
    match request.status {
        Status::Pending | Status::Doubtful | Status::Approved => format!(
            "this call waits as {} for a person and was not made yet; you will be told in a later turn, so do not make it again",
            request.id
        ),
        Status::Rejected | Status::Expired | Status::Withdrawn => {
            format!("this call waited as {}, which is {}; it was not made", request.id, request.status)
        }
        Status::Running | Status::Done | Status::Failed | Status::Queued | Status::Unknown => {
            OUTCOME_UNKNOWN.to_owned()
        }
    }
}

/// Returns the part for the result of a call.
fn result_of(call: CallId, tool: String, ok: bool, text: String) -> Part {
    Part::Result { call_id: call.to_string(), tool, ok, text }
}

/// Returns a remark that the script answered, without the script's text, because a model would imitate it.
fn by_script(output: &OutputBody) -> Part {
    let tools: Vec<&str> = output.calls.iter().map(|call| call.tool.as_str()).collect();
    let text = match tools.is_empty() {
        true => "a script of the host answered this, and no model.".to_owned(),
        false => format!("a script of the host, and no model, called {} for this.", tools.join(", ")),
    };
    Part::Remark { text }
}

/// Returns the part for a text of this author; a person is the turn's principal, whose text alone is a request.
fn span_part(author: &Author, text: &str) -> Part {
    let text = text.to_owned();
    let context = |author: String, text: String| Part::Context { author, text };
    match author {
        Author::Person { .. } => Part::Person { text },
        Author::Quoted => context("quoted by the sender".to_owned(), text),
        Author::File { name } => context(format!("file {name}"), text),
        Author::Model => context("a model".to_owned(), text),
        Author::Agent { agent } => context(format!("agent {agent}"), text),
        Author::Tool { tool } => context(format!("tool {tool}"), text),
        Author::Host => Part::HostNotice { text },
    }
}
