//! The context of a model request: the check of its refs, and the prompt for the model.
//!
//! A sandbox only names items. Their text comes from the record, and the system text from the host. See [`ironclaw_model`].

mod checked;
pub mod found;
mod hosts;
pub mod images;
mod item_cache;
pub mod item_caches;
mod order;
mod parts;
pub mod reading;
mod speakers;
pub mod summary;
mod system;
mod values;

pub use crate::turns::calls::OutputBody;
pub use checked::{Checked, Others, item_numbers, items, output_labels, seen};
pub use item_cache::{Item, ItemCache};
pub use system::Reader;

use crate::registry::tools::catalogue::Offered;
use crate::registry::{Mode, mcp};
use crate::turns::items as index;
use ironclaw_contract::ids::{ItemId, SessionId};
use ironclaw_contract::seam::limits::REFS_MAX;
use ironclaw_contract::seam::seal::Ref;
use ironclaw_contract::seam::socket::{Context, Earlier, Purpose, RefusalCode};
use ironclaw_judge::Principal;
use ironclaw_model::{Prompt, ToolSchema};
use ironclaw_state::ReadTx;
use ironclaw_state::keys::ContentKey;
use ironclaw_state::seal::{Sealer, SessionSealer};
use ironclaw_store::error::Error;
use std::sync::Arc;

/// The refusal of a context: a code and a sentence.
#[derive(Debug, Clone)]
pub struct Refused {
    /// The code for the sandbox.
    pub code: RefusalCode,
    /// The sentence for people and the ledger.
    pub message: String,
}

/// The reason why a request of a sandbox has no answer. `?` converts a refusal and an error into it.
#[derive(Debug)]
pub enum Unanswered<E = ironclaw_state::Error> {
    /// The host refused it on purpose.
    Refused(Refused),
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

/// Refusals that the mode `dangerous_warn` turned into warnings, for the ledger.
pub type Warnings = Vec<String>;

/// The parts of a context that passed so far.
struct Admitted {
    checked: Vec<Checked>,
    last_seq: u64,
    /// Bytes of all bodies.
    bytes: u64,
}

impl Admitted {
    fn new(parts: usize) -> Self {
        Self { checked: Vec::with_capacity(parts), last_seq: 0, bytes: 0 }
    }

    /// Adds an item after the others.
    ///
    /// # Errors
    /// Refuses an item out of order, and one too many.
    fn add(&mut self, item: Arc<Item>) -> Result<(), Refused> {
        if item.tuple.seq <= self.last_seq {
            let message = format!("{} is out of order or occurs twice", item.tuple.item);
            return Err(Refused { code: RefusalCode::Order, message });
        }
        self.last_seq = item.tuple.seq;
        self.bytes += item.bytes;
        self.push(Checked::Item(item))
    }

    /// Adds a part.
    ///
    /// # Errors
    /// Refuses one too many.
    fn push(&mut self, part: Checked) -> Result<(), Refused> {
        if self.checked.len() >= REFS_MAX {
            let message = format!("the context has over {REFS_MAX} parts, which is the limit");
            return Err(Refused { code: RefusalCode::Frame, message });
        }
        self.checked.push(part);
        Ok(())
    }
}

/// Checks every part of a context under a guard mode. Each part is sealed, belongs to this session, is in order and occurs once. The
/// context contains the turn's own messages.
///
/// All bodies together have at most twice `bytes_max` bytes. Also returns the warnings of `dangerous_warn`. The mode `dangerous_off`
/// refuses no seal and records no warning, but even then no item of another session passes. A range of an unknown request is refused in
/// each mode, because it names no text.
///
/// # Errors
/// Refuses at the first part that violates a rule.
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
    let dropped = index::dropped_upto(tx, session)?;
    cache.wake(tx, session)?;
    let (mut admitted, mut warnings) = (Admitted::new(refs.len()), Vec::new());
    let mut seals = sealer.for_session(session);
    for part in refs {
        let (refused, quote) = match part {
            Context::Earlier(range) => {
                for item in earlier(range, dropped, mode, cache)? {
                    admitted.add(Arc::clone(item))?;
                }
                continue;
            }
            Context::Ref(reference) => match check_ref(tx, session, reference, dropped, mode, &mut seals, cache) {
                Ok(item) => {
                    admitted.add(item)?;
                    continue;
                }
                Err(Unanswered::Refused(refused)) => {
                    (refused, format!("{} {}, whose seal is not valid", reference.kind, reference.item))
                }
                Err(failed) => return Err(failed),
            },
            Context::Text(text) => {
                let message = "text without a seal".to_owned();
                (Refused { code: RefusalCode::Unsealed, message }, text.text.clone())
            }
        };
        match mode {
            Mode::Enforce => return Err(refused.into()),
            Mode::DangerousWarn => warnings.push(refused.message),
            Mode::DangerousOff => {}
        }
        admitted.push(Checked::Quoted(quote))?;
    }
    let Admitted { checked, bytes, .. } = admitted;
    // Twice, because a stored body is JSON text and may be longer than the bytes that the sandbox counts.
    if bytes > 2 * bytes_max {
        return refuse(RefusalCode::Budget, format!("the context has {bytes} bytes, over the limit of {bytes_max}"));
    }
    let is_named =
        |own: &ItemId| checked.iter().rev().any(|part| part.item().is_some_and(|item| item.tuple.item == *own));
    if let Some(missing) = own.iter().find(|own| !is_named(own)) {
        return refuse(RefusalCode::Order, format!("{missing} is a message of the turn and is missing in the context"));
    }
    Ok((checked, warnings))
}

/// Returns the items of a range. They were verified when the session named them before.
fn earlier<'a>(
    range: &Earlier,
    dropped_upto: u64,
    mode: Mode,
    cache: &'a ItemCache,
) -> Result<&'a [Arc<Item>], Refused> {
    let Earlier { output, from, upto } = range;
    let refuse = |message| Err(Refused { code: RefusalCode::Unknown, message });
    if *from <= dropped_upto {
        return refuse(format!("item {from} was dropped: request the items again"));
    }
    match cache.earlier(range, mode) {
        Some(items) => Ok(items),
        None => refuse(format!(
            "no answered request that gave {output} is known with items {from} to {upto}: name each item"
        )),
    }
}

fn check_ref(
    tx: &ReadTx<'_>,
    session: SessionId,
    reference: &Ref,
    dropped_upto: u64,
    mode: Mode,
    seals: &mut SessionSealer,
    cache: &mut ItemCache,
) -> Result<Arc<Item>, Unanswered> {
    let refuse = |code, message: String| Err(Refused { code, message }.into());
    if (1..=dropped_upto).contains(&reference.seq) {
        let message = format!("{} was dropped: request the items again", reference.item);
        return refuse(RefusalCode::Unknown, message);
    }
    if let Some(known) = cache.recall(reference) {
        return Ok(known);
    }
    let Some(recorded) = index::find(tx, reference.item)? else {
        return refuse(RefusalCode::Unknown, format!("{} is not in the record", reference.item));
    };
    if recorded.tuple.session != session {
        return refuse(RefusalCode::Seal, format!("{} belongs to another session", reference.item));
    }
    let is_valid = reference.boot == seals.boot() && seals.verify(reference, &recorded.tuple);
    if !is_valid && mode == Mode::DangerousOff {
        // Not cached: a cached item counts as verified, also after a change of the mode.
        return Ok(Item::new(recorded, false));
    }
    if reference.boot != seals.boot() {
        let message = format!("the seal of {} is from an earlier start: request the items again", reference.item);
        return refuse(RefusalCode::Seal, message);
    }
    if !is_valid {
        return refuse(RefusalCode::Seal, format!("the seal of {} is not valid", reference.item));
    }
    Ok(cache.learn(reference, recorded))
}

/// Composes the prompt: the system text and the tools from the host, then the items with the turn's own last.
pub fn compose(
    tx: &ReadTx<'_>,
    reader: &Reader<'_>,
    checked: Vec<Checked>,
    key: &ContentKey,
    cache: &mut ItemCache,
) -> Result<Prompt, Error> {
    let catalogue = mcp::catalogue(tx, reader.agent)?.with_room(reader.room);
    let values = values::Values::for_tools(tx, reader, &catalogue)?;
    let beside = parts::Beside { dates: parts::Dates::Said, values };
    let (parts, _) = parts::compose(tx, reader, checked, key, cache, beside)?;
    let found = if catalogue.is_large() { found::names(tx, reader.turn.session, key)? } else { Vec::new() };
    let schema = |Offered { name, description, parameters }: Offered<'_>| ToolSchema {
        name: name.to_owned(),
        description: description.into_owned(),
        parameters,
    };
    let may = reader.agent.receiver.policy().allowed(Principal::Guest).may;
    let is_of_guest = |name: &str| catalogue.manifest(name).is_some_and(|manifest| may.has(manifest.class));
    let tools = match reader.turn.principal_kind {
        // The judgement refuses each other call of a guest.
        Principal::Guest => catalogue.offered(&found).filter(|tool| is_of_guest(tool.name)).map(schema).collect(),
        Principal::Person | Principal::Agent | Principal::Schedule | Principal::Unsigned => {
            catalogue.offered(&found).map(schema).collect()
        }
    };
    let system = system::text(tx, reader, &catalogue)?;
    Ok(Prompt { purpose: Purpose::Reply, system, tools, parts })
}

#[cfg(test)]
mod tests;
