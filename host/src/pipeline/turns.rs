//! What every turn of this host works with, whoever works on it: the actor of its session or the server of its model socket.
//!
//! Opens and closes no turn. See [`crate::turn`].

pub(in crate::pipeline) mod deadlines;
pub(in crate::pipeline) mod streaming;

use crate::pipeline::{Deadlines, Drafts};
use crate::record::Record;
use crate::turn;
use ironclaw_contract::ids::TurnId;
use std::collections::HashSet;
use std::sync::Arc;

/// The turns of this host.
pub struct Turns {
    /// The record that they are in.
    pub record: Arc<Record>,
    /// `[turn]`
    pub config: turn::Config,
    /// The time of each open turn.
    pub deadlines: Deadlines,
    /// Words of outputs that are being made.
    pub drafts: Drafts,
    /// Turns that were open at this start: the host ended while they ran.
    pub cut: HashSet<TurnId>,
}

impl Turns {
    /// The turns of a host that has just started.
    ///
    /// # Errors
    /// Those of the record.
    pub async fn start(record: Arc<Record>, config: turn::Config) -> Result<Self, ironclaw_state::Error> {
        let open = record.state.read(|tx| turn::every_open(tx)).await?;
        let cut = open.iter().map(|turn| turn.id).collect();
        Ok(Self { record, config, deadlines: Deadlines::default(), drafts: Drafts::default(), cut })
    }
}
