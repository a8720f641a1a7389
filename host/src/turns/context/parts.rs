//! Makes the parts of a prompt of its items, by who their words are.
//!
//! Never shows a model the script's words as its own, and never an answer that was said to no person. Next: `model::render`.

use super::item_cache::ItemCache;
use super::{Checked, OutputBody, Reader, order, own_json, system};
use crate::tables::turns;
use crate::turns::calls::{Call, ResultBody};
use crate::turns::items::{BodyError, Recorded};
use ironclaw_contract::ids::{CallId, PersonId};
use ironclaw_contract::seam::message::{Author, Span};
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_model::{Part, PastCall};
use ironclaw_state::ReadTx;
use ironclaw_state::keys::ContentKey;
use ironclaw_text::lookalike;
use std::collections::HashSet;

/// Whether a prompt says when its turns were.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Dates {
    Said,
    /// For a summary, which is read on a later day, when "it is now" is wrong.
    LeftOut,
}

/// The items as a model is shown them, and the ordinal of the last turn among them.
///
/// With [`Dates::Said`] the host says the date where it is another than before.
pub(super) fn compose(
    tx: &ReadTx<'_>,
    reader: &Reader<'_>,
    checked: Vec<Checked>,
    key: &ContentKey,
    cache: &mut ItemCache,
    dates: Dates,
) -> Result<(Vec<Part>, i64), BodyError> {
    let (ordered, last) = order::order(tx, reader.turn, checked, cache)?;
    let answered: HashSet<CallId> = ordered.iter().filter_map(|(_, part)| call_of(part)).collect();
    let mut composer = Composer {
        tx,
        reader,
        key,
        cache,
        answered,
        offered: HashSet::new(),
        of_script: HashSet::new(),
        parts: Vec::new(),
        day: None,
    };
    for (ordinal, part) in ordered {
        match part {
            Checked::Quoted(text) => composer
                .parts
                .push(Part::Context { author: "unsealed".to_owned(), text: lookalike::neutralise(&text).into_owned() }),
            Checked::Item(item) => {
                let is_dated = dates == Dates::Said && item.tuple.kind != ItemKind::Summary;
                if let Some(ordinal) = ordinal.filter(|_| is_dated) {
                    composer.date(ordinal)?;
                }
                composer.item(&item)?;
            }
        }
    }
    Ok((composer.parts, last))
}

/// The call whose result this is.
fn call_of(part: &Checked) -> Option<CallId> {
    match part {
        Checked::Item(item) => item.tuple.call,
        Checked::Quoted(_) => None,
    }
}

struct Composer<'a, 'tx> {
    tx: &'a ReadTx<'tx>,
    reader: &'a Reader<'a>,
    key: &'a ContentKey,
    cache: &'a mut ItemCache,
    /// Calls whose result is among the items.
    answered: HashSet<CallId>,
    /// Calls that the model was shown.
    offered: HashSet<CallId>,
    /// Calls of the script, whose results are left out as well.
    of_script: HashSet<CallId>,
    parts: Vec<Part>,
    /// The date that was said last.
    day: Option<String>,
}

impl Composer<'_, '_> {
    /// Says when a turn was, unless that is known.
    fn date(&mut self, ordinal: i64) -> Result<(), BodyError> {
        let Some(at) = self.cache.opened_at(self.tx, ordinal)? else { return Ok(()) };
        let day = system::day(at, self.reader.zone);
        if self.day.as_ref() != Some(&day) {
            self.parts.push(Part::Remark { text: format!("it is now {day}.") });
            self.day = Some(day);
        }
        Ok(())
    }

    fn item(&mut self, item: &Recorded) -> Result<(), BodyError> {
        let body = self.cache.body(self.tx, item, self.key)?;
        match item.tuple.kind {
            ItemKind::Message => message_parts(&item.spans(), &body, &self.reader.turn.principal, &mut self.parts),
            ItemKind::Summary => self.parts.push(Part::Summary { text: body.to_string() }),
            ItemKind::Notice => self.notice(item, &body)?,
            ItemKind::Output => self.output(item, own_json(&body)?)?,
            ItemKind::Result => self.result(item, own_json(&body)?),
        }
        Ok(())
    }

    /// That a model failed once is nothing that the next one has to explain.
    fn notice(&mut self, item: &Recorded, body: &str) -> Result<(), BodyError> {
        let failed = match item.tuple.turn {
            Some(turn) => turns::has_failed(self.tx, turn)?,
            None => false,
        };
        self.parts.push(match failed {
            true => Part::Remark { text: "no model answered this.".to_owned() },
            false => Part::Notice { text: body.to_owned() },
        });
        Ok(())
    }

    fn output(&mut self, item: &Recorded, output: OutputBody) -> Result<(), BodyError> {
        let is_open = item.tuple.turn == Some(self.reader.turn.id);
        // An answer that was never said to anybody is none.
        if output.calls.is_empty() && !is_open && !self.cache.answered(self.tx, item)? {
            return Ok(());
        }
        if item.scripted && !self.reader.is_script && !is_open {
            self.parts.push(by_script(&output));
            self.of_script.extend(output.calls.iter().map(|call| call.call_id));
            return Ok(());
        }
        let past = |call: &Call| PastCall {
            call_id: call.call_id.to_string(),
            tool: call.tool.clone(),
            arguments: call.arguments.clone(),
        };
        self.parts.push(Part::Assistant { text: output.text, calls: output.calls.iter().map(past).collect() });
        for call in output.calls {
            self.offered.insert(call.call_id);
            if !self.answered.contains(&call.call_id) {
                // A model must never guess what became of its call.
                let text = "the outcome of this call is unknown; it is not run again".to_owned();
                self.parts.push(result_of(call.call_id, call.tool, false, text));
            }
        }
        Ok(())
    }

    fn result(&mut self, item: &Recorded, result: ResultBody) {
        if item.tuple.call.is_some_and(|call| self.of_script.contains(&call)) {
            return;
        }
        let tool = item.tuple.tool.clone().unwrap_or_default();
        self.parts.push(match item.tuple.call.filter(|call| self.offered.contains(call)) {
            Some(call) => result_of(call, tool, result.ok, result.text),
            // Its call was left out of the context, so it can stand there only as somebody's words.
            None => Part::Context { author: format!("an earlier result of {tool}"), text: result.text },
        });
    }
}

/// Returns the result of a call, as a model gets it.
fn result_of(call: CallId, tool: String, ok: bool, text: String) -> Part {
    Part::Result { call_id: call.to_string(), tool, ok, text }
}

/// That the script answered, without its words: a model would imitate them.
fn by_script(output: &OutputBody) -> Part {
    let tools: Vec<&str> = output.calls.iter().map(|call| call.tool.as_str()).collect();
    let text = match tools.is_empty() {
        true => "a script of the host answered this, and no model.".to_owned(),
        false => format!("a script of the host, and no model, called {} for this.", tools.join(", ")),
    };
    Part::Remark { text }
}

fn message_parts(spans: &[Span], body: &str, principal: &str, parts: &mut Vec<Part>) {
    let principal: Option<PersonId> = principal.parse().ok();
    let mut start = 0;
    for span in spans {
        let end = start + span.bytes;
        let text = body.get(start..end).unwrap_or_default().to_owned();
        start = end;
        let context = |author: String, text: String| Part::Context { author, text };
        parts.push(match &span.author {
            Author::Person { person } if Some(*person) == principal => Part::Person { text },
            Author::Person { .. } => context("another person".to_owned(), text),
            Author::Quoted => context("quoted by the sender".to_owned(), text),
            Author::File { name } => context(format!("file {name}"), text),
            Author::Model => context("a model".to_owned(), text),
            Author::Agent { agent } => context(format!("agent {agent}"), text),
            Author::Tool { tool } => context(format!("tool {tool}"), text),
            Author::Host => Part::Told { text },
        });
    }
}
