//! The deadlines and partial outputs of the turns that are open, for the actors and for the servers of the model sockets.
//!
//! Opens and closes no turn. See [`crate::turns::turn`].

pub mod deadlines;
pub mod streaming;

use crate::open_turns::deadlines::Deadlines;
use crate::open_turns::streaming::Drafts;
use crate::record::Record;
use crate::turns::turn;
use ironclaw_contract::ids::TurnId;
use std::collections::HashSet;
use std::sync::Arc;

/// The state in memory of the turns that are open.
pub struct OpenTurns {
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

impl OpenTurns {
    /// Makes the state of a host that has just started, from the turns that the record has as open.
    ///
    /// # Errors
    /// Those of the record.
    pub async fn start(record: Arc<Record>, config: turn::Config) -> Result<Self, ironclaw_state::Error> {
        let open = record.state.read(turn::every_open).await?;
        let cut = open.iter().map(|turn| turn.id).collect();
        Ok(Self { record, config, deadlines: Deadlines::default(), drafts: Drafts::default(), cut })
    }
}
