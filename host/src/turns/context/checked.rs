//! The parts of a context that passed its check, with their items and the labels of an output over them.

use super::item_cache::Item;
use crate::registry::channels::own_senders;
use crate::sessions::store::{Origin, ScheduleRuns};
use crate::turns::items::Recorded;
use crate::turns::turn::{self, Task, Turn};
use ironclaw_contract::ids::{ItemId, PersonId, TurnId};
use ironclaw_contract::seam::message::Author;
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_judge::provenance::{Labels, Provenance};
use ironclaw_state::ReadTx;
use ironclaw_store::tables::messages;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// One part of a checked context.
pub enum Checked {
    /// An item of this session with a valid ref.
    Item(Arc<Item>),
    /// In a dangerous mode: text without a valid seal, shown as a quote.
    Quoted(String),
}

impl Checked {
    /// Returns the item; `None` for quoted text.
    pub const fn item(&self) -> Option<&Arc<Item>> {
        match self {
            Self::Item(item) => Some(item),
            Self::Quoted(_) => None,
        }
    }
}

/// Returns the parts that a turn of a session with this origin sees. A run with a context of its own sees the messages of its task, and
/// the items of its turns.
pub fn seen(
    tx: &ReadTx<'_>,
    turn: TurnId,
    origin: Option<&Origin>,
    checked: Vec<Checked>,
) -> Result<Vec<Checked>, ironclaw_state::Error> {
    if origin.is_none_or(|origin| origin.runs != ScheduleRuns::Fresh) {
        return Ok(checked);
    }
    let task = Task::find(tx, turn)?;
    let is_own = |part: &Checked| {
        let Some(item) = part.item() else { return false };
        let tuple = &item.tuple;
        match tuple.turn {
            Some(turn) => task.turns.contains(&turn),
            None => tuple.kind == ItemKind::Message && task.messages.contains(&tuple.item.message()),
        }
    };
    Ok(checked.into_iter().filter(is_own).collect())
}

/// Returns the items among these parts, in their order.
pub fn items(checked: &[Checked]) -> Vec<Arc<Item>> {
    checked.iter().filter_map(Checked::item).cloned().collect()
}

/// Returns the items among these parts with their numbers, in their order.
pub fn item_numbers(checked: &[Checked]) -> Vec<(ItemId, u64)> {
    let items = checked.iter().filter_map(Checked::item);
    items.map(|item| (item.tuple.item, item.tuple.seq)).collect()
}

/// The other authors of a session of several people, as the person of a turn sees them. A session of one person has none.
#[derive(Debug, Default)]
pub struct Others {
    /// The turns that work for another principal.
    pub turns: HashSet<TurnId>,
    /// Answers to questions, by option, of another person.
    pub answers: HashSet<ItemId>,
    /// The guests whose text the person calls theirs, each with the time of the declaration, in milliseconds since the epoch.
    pub own_guests: HashMap<PersonId, i64>,
}

impl Others {
    /// Reads the other authors of these items.
    pub fn read(tx: &ReadTx<'_>, turn: &Turn, checked: &[Checked]) -> Result<Self, ironclaw_state::Error> {
        let of_item = |part: &Checked| part.item()?.tuple.turn;
        let turns: HashSet<TurnId> = checked.iter().filter_map(of_item).filter(|other| *other != turn.id).collect();
        // The turn of an item may be forgotten, and then counts as another's.
        let own = turn::working_for(tx, &turns, &turn.principal)?;
        let own_guests = match turn.principal.parse() {
            Ok(person) => own_senders::guests_of(tx, person)?,
            Err(_) => HashMap::new(),
        };
        let answers = answers_of_others(tx, turn, checked)?;
        Ok(Self { turns: turns.difference(&own).copied().collect(), answers, own_guests })
    }

    /// Returns whether the person calls the text of this author in an item theirs. Its text from before the declaration stays text of others.
    fn is_own(&self, author: PersonId, item: &Recorded) -> bool {
        self.own_guests.get(&author).is_some_and(|since| item.tuple.issued_at > *since)
    }
}

/// A part of the authors of each message with a span of a model, as canonical JSON. Saves the parser the text of the others.
const BY_MODEL: &str = r#"{"by":"model""#;

/// Returns the messages among these items that a model wrote and another person than that of the turn chose: answers by option.
fn answers_of_others(
    tx: &ReadTx<'_>,
    turn: &Turn,
    checked: &[Checked],
) -> Result<HashSet<ItemId>, ironclaw_state::Error> {
    let mut of_others = HashSet::new();
    let by_model = |item: &&Arc<Item>| item.tuple.kind == ItemKind::Message && item.tuple.authors.contains(BY_MODEL);
    for item in checked.iter().filter_map(Checked::item).filter(by_model) {
        let spans = item.spans();
        let is_chosen = spans.iter().any(|span| span.author == Author::Model)
            && !spans.iter().any(|span| matches!(span.author, Author::Person { .. }));
        if is_chosen {
            let message = messages::find(tx, item.tuple.item.message())?;
            if message.is_none_or(|message| message.principal != turn.principal) {
                of_others.insert(item.tuple.item);
            }
        }
    }
    Ok(of_others)
}

/// Returns the labels of an output over this context in a turn of this person. The text of another author counts as text of others here,
/// unless the person calls it theirs, and so does all that came of a turn of another person.
pub fn output_labels(checked: &[Checked], principal: &str, others: &Others) -> Labels {
    let principal: Option<PersonId> = principal.parse().ok();
    let begin = principal.map(begin_of_typed);
    let anothers = |item: &Recorded| {
        item.tuple.kind == ItemKind::Message
            && !begin.as_deref().is_some_and(|begin| is_all_typed(&item.tuple.authors, begin))
            && item.spans().iter().any(|span| match &span.author {
                Author::Person { person } => Some(*person) != principal && !others.is_own(*person, item),
                _ => false,
            })
    };
    let labels_here = |part: &Checked| match part {
        Checked::Item(item) => {
            let recorded = Labels::recorded(&item.tuple.labels);
            let is_of_others = item.tuple.turn.is_some_and(|turn| others.turns.contains(&turn))
                || others.answers.contains(&item.tuple.item);
            let is_foreign = recorded.has_foreign() || is_of_others || anothers(item);
            recorded.join(if is_foreign { Labels::from_provenance(Provenance::Others) } else { Labels::NONE })
        }
        Checked::Quoted(_) => Labels::from_provenance(Provenance::Sandbox),
    };
    let mut context = Labels::NONE;
    for part in checked {
        // A model's output inherits nothing else.
        if context.has_foreign() {
            break;
        }
        context = context.join(labels_here(part));
    }
    Labels::from_provenance(Provenance::Model { context })
}

/// Returns the begin of the authors of a message that this person typed alone, as canonical JSON: all but the number of bytes.
pub(super) fn begin_of_typed(person: PersonId) -> String {
    format!(r#"[{{"author":{{"by":"person","person":"{person}"}},"bytes":"#)
}

/// Returns whether these authors are one span with this begin. Saves the parser the text of nearly every message.
pub(super) fn is_all_typed(authors: &str, begin: &str) -> bool {
    let bytes = authors.strip_prefix(begin).and_then(|rest| rest.strip_suffix("}]"));
    bytes.is_some_and(|bytes| bytes.parse::<usize>().is_ok())
}
