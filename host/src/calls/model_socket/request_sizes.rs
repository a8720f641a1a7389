//! The sizes of the requests of one session: shorter for a model that reads less, and the counts of its endpoints.
//!
//! Never shortens a prompt: the sandbox names fewer items after a refusal. See [`crate::turns::context::reading`].

use crate::turns::context::reading::Reads;
use crate::turns::context::{Checked, Refused, Unanswered};
use crate::turns::turn::{self, Turn};
use ironclaw_contract::ids::{ItemId, TurnId};
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_contract::seam::socket::{Purpose, RefusalCode, Response};
use ironclaw_model::Prompt;
use ironclaw_model::context_size::Counts;
use ironclaw_store::error::Error;
use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Requests of one turn that are refused because of their size, until they count against the sandbox. Each one is a quarter shorter.
const REFUSALS_MAX: u32 = 32;

/// The sizes of the requests of one awake session.
#[derive(Debug, Default)]
pub(crate) struct Sizes(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// The counts of each endpoint.
    counts: HashMap<String, Counts>,
    /// The turn with the newest request.
    turn: Option<TurnId>,
    /// Bytes of its conversation after its endpoint refused a longer one.
    bytes_max: Option<u64>,
    refusals: u32,
}

/// The size of one request, and whether the sandbox can name fewer items.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    /// Bytes of the conversation.
    bytes: u64,
    /// Bytes of the conversation that the model reads, if that is known.
    pub(crate) bytes_max: Option<u64>,
    can_shrink: bool,
    /// True if the turn may ask for a summary and an answer after this request.
    has_calls_left: bool,
}

impl Size {
    /// Returns the size of a request of a turn. `reads` is what its model reads, if that is known.
    pub(crate) fn new(
        prompt: &Prompt,
        can_shrink: bool,
        reads: Option<Reads>,
        turn: &Turn,
        limits: &turn::Config,
    ) -> Self {
        Self {
            bytes: prompt.conversation_bytes() as u64,
            bytes_max: reads.map(|reads| reads.bytes_max(prompt.fixed_bytes())),
            can_shrink,
            has_calls_left: turn.model_calls + 2 < limits.model_calls_max,
        }
    }
}

/// Returns whether a request has items that a shorter one leaves out: not the messages and items of the turn, and for a summary more
/// than one item.
pub(crate) fn can_shrink(purpose: Purpose, turn: &Turn, own: &[ItemId], checked: &[Checked]) -> bool {
    let items = checked.iter().filter_map(Checked::item);
    match purpose {
        Purpose::Compact => items.filter(|item| item.tuple.kind != ItemKind::Summary).count() > 1,
        Purpose::Reply | Purpose::Plan => {
            items.clone().any(|item| item.tuple.turn != Some(turn.id) && !own.contains(&item.tuple.item))
        }
    }
}

impl Sizes {
    fn at(&self, turn: TurnId) -> MutexGuard<'_, State> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if state.turn != Some(turn) {
            (state.turn, state.bytes_max, state.refusals) = (Some(turn), None, 0);
        }
        state
    }

    /// Checks the size of a request against what the first endpoint reads. Returns the refusal for the sandbox.
    ///
    /// # Errors
    /// Refuses a sandbox that does not name fewer items.
    pub(crate) fn check(&self, turn: TurnId, size: Size) -> Result<Option<Response>, Unanswered<Error>> {
        let mut state = self.at(turn);
        let bytes_max = size.bytes_max.into_iter().chain(state.bytes_max).min();
        let Some(bytes_max) = bytes_max.filter(|max| size.can_shrink && size.bytes > *max) else { return Ok(None) };
        state.refusals += 1;
        let message = format!("the conversation has {} bytes, and the model reads {bytes_max}", size.bytes);
        if state.refusals > REFUSALS_MAX {
            return Err(Unanswered::Refused(Refused { code: RefusalCode::Budget, message }));
        }
        // No party is at fault: only the host knows the model.
        Ok(Some(Response::Refused { code: RefusalCode::Frame, message }))
    }

    /// Notes that an endpoint refused a request of this size, and whether it named what it reads. Returns whether the turn may ask once more with a shorter one.
    pub(crate) fn refused(&self, turn: TurnId, size: Size, is_known: bool) -> bool {
        let mut state = self.at(turn);
        let is_first = state.bytes_max.is_none();
        if is_first {
            // The size that the server named bounds the next request too.
            state.bytes_max = Some(size.bytes - size.bytes / if is_known { 8 } else { 2 });
        }
        is_first && size.can_shrink && size.has_calls_left
    }

    /// Notes the count of an endpoint. Returns the tokens that its model reads, if the count shows it.
    pub(crate) fn count(&self, turn: TurnId, endpoint: &str, bytes: u64, tokens: u64) -> Option<u64> {
        let mut state = self.at(turn);
        state.counts.entry(endpoint.to_owned()).or_default().note(bytes, tokens)
    }
}
