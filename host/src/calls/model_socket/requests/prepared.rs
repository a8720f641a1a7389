//! A request to a model between its check and its output.

use crate::calls::model_socket::request_sizes::Size;
use crate::registry::Agent;
use crate::turns::budget::book::Booked;
use crate::turns::calls::TurnFacts;
use crate::turns::context;
use crate::turns::open_turns::streaming::ActiveRequest;
use crate::turns::rests_on::Ranges;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::ItemId;
use ironclaw_contract::seam::socket::Response;
use ironclaw_model::Prompt;
use ironclaw_model::endpoint::{Bounds, Endpoint};
use std::sync::Arc;

/// A checked and counted request, which needs a model or has its answer.
pub(super) enum Ready {
    Asks(Box<Prepared>, ActiveRequest),
    /// The refusal of a request that is longer than its model reads.
    TooLong(Response),
    /// The answer, and the items of the request for the cache.
    Answered(Response, Vec<Arc<context::Item>>),
}

/// A request to a model that was checked and counted.
pub(super) struct Prepared {
    pub(super) agent: Agent,
    pub(super) prompt: Prompt,
    /// The items of the prompt, for the cache.
    pub(super) named: Vec<Arc<context::Item>>,
    /// The numbers of the items that the model sees.
    pub(super) prompted: Ranges,
    /// The endpoints at the time when the request was booked.
    pub(super) chain: Vec<Arc<Endpoint>>,
    /// For the judgement of its calls, with the labels of its output.
    pub(super) facts: TurnFacts,
    /// For a summary: the items that it replaces.
    pub(super) covers: Option<Covers>,
    pub(super) booked: Booked,
    /// Its time limit, which ends before the turn by a monotonic clock, and the rest of the ceilings.
    pub(super) bounds: Bounds,
    pub(super) size: Size,
    /// The digest of the request, once it is sent.
    pub(super) request: Option<Digest>,
}

/// The items that a summary replaces, and the ordinal of their last turn.
#[derive(Clone)]
pub(super) struct Covers {
    pub(super) items: Vec<(ItemId, u64)>,
    pub(super) ordinal: i64,
    /// Bytes of the summary.
    pub(super) bytes_max: usize,
}
