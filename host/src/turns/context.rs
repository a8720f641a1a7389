//! Checks the refs of a request and composes the prompt that a model sees.
//!
//! A sandbox names items; their words come from the record, and system text from the host alone. Next: `model`.

mod item_cache;
mod order;
mod parts;
pub mod summary;
mod system;

pub use item_cache::ItemCache;

use crate::registry::{Agent, Mode};
use crate::tools;
use crate::turns::calls::Call;
use crate::turns::items::{self, BodyError, Recorded};
use crate::turns::turn::Turn;
use ironclaw_contract::ids::{ItemId, PersonId, SessionId};
use ironclaw_contract::seam::limits::REFS_MAX;
use ironclaw_contract::seam::message::Author;
use ironclaw_contract::seam::seal::{ItemKind, Label, Ref};
use ironclaw_contract::seam::socket::{Context, Purpose, RefusalCode};
use ironclaw_model::{Prompt, ToolSchema};
use ironclaw_state::ReadTx;
use ironclaw_state::keys::ContentKey;
use ironclaw_state::seal::Sealer;
use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::sync::Arc;

/// The body of an output item.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputBody {
    /// What the model said.
    pub text: String,
    /// The calls that it wants.
    pub calls: Vec<Call>,
}

/// Why a context is refused: what it is about, and a sentence.
#[derive(Debug, Clone)]
pub struct Refused {
    /// For the sandbox.
    pub code: RefusalCode,
    /// For people and the ledger.
    pub message: String,
}

/// Why a request of a sandbox has no answer. `?` makes one of a refusal and of an error.
#[derive(Debug)]
pub enum Unanswered<E = ironclaw_state::Error> {
    /// Refused on purpose.
    Refused(Refused),
    /// Broken.
    Failed(E),
}

impl<E> From<Refused> for Unanswered<E> {
    fn from(refused: Refused) -> Self {
        Self::Refused(refused)
    }
}

impl From<ironclaw_state::Error> for Unanswered {
    fn from(error: ironclaw_state::Error) -> Self {
        Self::Failed(error)
    }
}

/// What passed only because of the mode `dangerous_warn`, for the ledger.
pub type Warnings = Vec<String>;

/// One part of a checked context.
pub enum Checked {
    /// An item of this session that its ref vouches for.
    Item(Arc<Recorded>),
    /// In a dangerous mode: words without a valid seal, to be shown as quoted text.
    Quoted(String),
}

/// Checks every part of a context, in a mode: sealed, of this session, in order, each once, the turn's own messages among them.
///
/// All bodies together have at most twice `bytes_max` bytes. Returns also what passed only because of `dangerous_warn`, for the
/// ledger; `dangerous_off` looks at no seal and notes nothing, and still takes no item of another session.
///
/// # Errors
/// Refuses the first part that is not so.
#[allow(clippy::too_many_arguments)]
pub fn check(
    tx: &ReadTx<'_>,
    session: SessionId,
    own: &[ItemId],
    refs: &[Context],
    mode: Mode,
    bytes_max: u64,
    sealer: &Sealer,
    cache: &mut ItemCache,
) -> Result<(Vec<Checked>, Warnings), Unanswered> {
    let refuse = |code, message: String| Err(Refused { code, message }.into());
    if refs.len() > REFS_MAX {
        return refuse(RefusalCode::Frame, format!("{} refs are over the limit of {REFS_MAX}", refs.len()));
    }
    let dropped = items::dropped_upto(tx, session)?;
    let (mut checked, mut warnings) = (Vec::with_capacity(refs.len()), Vec::new());
    let mut last_seq = 0;
    let mut bytes: u64 = 0;
    let mut seen = HashSet::new();
    for part in refs {
        match check_part(tx, session, part, dropped, mode, sealer, cache) {
            Ok(item) => {
                if item.tuple.seq <= last_seq {
                    return refuse(RefusalCode::Order, format!("{} stands out of order or twice", item.tuple.item));
                }
                last_seq = item.tuple.seq;
                bytes += item.bytes;
                seen.insert(item.tuple.item);
                checked.push(Checked::Item(item));
            }
            Err(Unanswered::Refused(refused)) => {
                match mode {
                    Mode::Enforce => return Err(refused.into()),
                    Mode::DangerousWarn => warnings.push(refused.message),
                    Mode::DangerousOff => {}
                }
                checked.push(Checked::Quoted(quoted(part)));
            }
            Err(Unanswered::Failed(error)) => return Err(error.into()),
        }
    }
    // Twice, because a stored body is JSON text and may be longer than what the sandbox was told to count.
    if bytes > 2 * bytes_max {
        return refuse(RefusalCode::Budget, format!("the context has {bytes} bytes, over the limit of {bytes_max}"));
    }
    if let Some(missing) = own.iter().find(|item| !seen.contains(item)) {
        return refuse(RefusalCode::Order, format!("{missing} is a message of the turn and was left out"));
    }
    Ok((checked, warnings))
}

fn check_part(
    tx: &ReadTx<'_>,
    session: SessionId,
    part: &Context,
    dropped_upto: u64,
    mode: Mode,
    sealer: &Sealer,
    cache: &mut ItemCache,
) -> Result<Arc<Recorded>, Unanswered> {
    let (code, message) = match part {
        Context::Ref(reference) if (1..=dropped_upto).contains(&reference.seq) => {
            (RefusalCode::Unknown, format!("{} is not kept any more: ask for items", reference.item))
        }
        Context::Ref(reference) => return check_ref(tx, session, reference, mode, sealer, cache),
        Context::Text(_) => (RefusalCode::Unsealed, "words without a seal".to_owned()),
    };
    Err(Refused { code, message }.into())
}

/// Returns what a model is shown of a part that passed only because of a dangerous mode.
fn quoted(part: &Context) -> String {
    match part {
        Context::Text(text) => text.text.clone(),
        Context::Ref(reference) => format!("{} {}, whose seal does not hold", reference.kind, reference.item),
    }
}

fn check_ref(
    tx: &ReadTx<'_>,
    session: SessionId,
    reference: &Ref,
    mode: Mode,
    sealer: &Sealer,
    cache: &mut ItemCache,
) -> Result<Arc<Recorded>, Unanswered> {
    if let Some(recorded) = cache.recall(reference) {
        return Ok(recorded);
    }
    let refuse = |code, message: String| Err(Refused { code, message }.into());
    let Some(recorded) = items::find(tx, reference.item)? else {
        return refuse(RefusalCode::Unknown, format!("{} does not stand in the record", reference.item));
    };
    if recorded.tuple.session != session {
        return refuse(RefusalCode::Seal, format!("{} belongs to another session", reference.item));
    }
    if mode == Mode::DangerousOff {
        // Not learned: what is known here counts as verified, also after the mode was changed.
        return Ok(Arc::new(recorded));
    }
    if reference.boot != sealer.boot() {
        return refuse(
            RefusalCode::Seal,
            format!("the seal of {} is of an earlier start: ask for items", reference.item),
        );
    }
    if !sealer.verify(reference, &recorded.tuple) {
        return refuse(RefusalCode::Seal, format!("the seal of {} does not hold", reference.item));
    }
    Ok(cache.learn(reference, recorded))
}

/// The items among these parts with their numbers, in their order.
pub fn item_numbers(checked: &[Checked]) -> Vec<(ItemId, u64)> {
    let number = |part: &Checked| match part {
        Checked::Item(item) => Some((item.tuple.item, item.tuple.seq)),
        Checked::Quoted(_) => None,
    };
    checked.iter().filter_map(number).collect()
}

/// The labels of what a model makes of this context in a turn of this person. What came from outside stays so, what another
/// person wrote is from outside here, and no endorsement is inherited.
pub fn joined_labels(checked: &[Checked], principal: &str) -> Vec<Label> {
    let principal: Option<PersonId> = principal.parse().ok();
    let anothers = |item: &Recorded| {
        item.tuple.kind == ItemKind::Message
            && item.spans().iter().any(|span| match &span.author {
                Author::Person { person } => Some(*person) != principal,
                _ => false,
            })
    };
    let external = checked.iter().any(|part| match part {
        Checked::Item(item) => item.tuple.labels.contains(&Label::External) || anothers(item),
        Checked::Quoted(_) => true,
    });
    if external { vec![Label::External, Label::LlmDerived] } else { vec![Label::LlmDerived] }
}

/// For whom a prompt is composed.
pub struct Reader<'a> {
    /// Whose prompt it is.
    pub agent: &'a Agent,
    /// The turn that is open.
    pub turn: &'a Turn,
    /// Whether the built-in script is asked, and no model.
    pub is_script: bool,
    /// Where the host is, for the dates that it tells.
    pub zone: &'a TimeZone,
}

/// Composes the prompt: system text and tools from the host, then the items, the turn's own last.
pub fn compose(
    tx: &ReadTx<'_>,
    reader: &Reader<'_>,
    checked: Vec<Checked>,
    key: &ContentKey,
    cache: &mut ItemCache,
) -> Result<Prompt, BodyError> {
    let (parts, _) = parts::compose(tx, reader, checked, key, cache, parts::Dates::Said)?;
    let system = system::text(tx, reader)?;
    Ok(Prompt { purpose: Purpose::Reply, system, tools: offered_tools(reader.agent), parts })
}

fn offered_tools(agent: &Agent) -> Vec<ToolSchema> {
    let schema = |tool: &tools::Tool| ToolSchema {
        name: tool.name.to_owned(),
        description: tool.description.to_owned(),
        parameters: tool.parameters.clone(),
    };
    tools::offered(&agent.enabled_tools).map(schema).collect()
}

fn own_json<T: serde::de::DeserializeOwned>(body: &str) -> Result<T, ironclaw_state::Error> {
    serde_json::from_str(body)
        .map_err(|_| ironclaw_state::Error::Stored("the body of an item has another shape than its kind".to_owned()))
}

#[cfg(test)]
mod tests;
