//! Deadlines, partial outputs and progress of open turns, for the actors and the servers of the model sockets.
//!
//! Opens and closes no turn. See [`crate::turns::turn`].

pub mod deadlines;
pub mod progress;
pub mod streaming;

use crate::registry::live_settings::Live;
use crate::turns::open_turns::deadlines::Deadlines;
use crate::turns::open_turns::progress::RunningCalls;
use crate::turns::open_turns::streaming::PartialOutputs;
use crate::turns::turn;
use ironclaw_contract::ids::TurnId;
use ironclaw_store::record::Record;
use std::collections::HashSet;
use std::sync::Arc;

/// The state of open turns in memory.
pub struct OpenTurns {
    pub record: Arc<Record>,
    settings: Arc<Live>,
    pub deadlines: Deadlines,
    /// Partial outputs of requests in flight.
    pub partial_outputs: PartialOutputs,
    /// Progress of running calls.
    pub running_calls: RunningCalls,
    /// Turns that were open at this start: the host ended while they ran.
    pub cut: HashSet<TurnId>,
}

impl OpenTurns {
    /// Makes the state of a starting host from the open turns of the record.
    ///
    /// # Errors
    /// Fails if the record cannot be read.
    pub async fn start(record: Arc<Record>, settings: Arc<Live>) -> Result<Self, ironclaw_state::Error> {
        let open = record.state.read(turn::every_open).await?;
        let cut = open.iter().map(|turn| turn.id).collect();
        let (deadlines, partial_outputs, running_calls) = Default::default();
        Ok(Self { record, settings, deadlines, partial_outputs, running_calls, cut })
    }

    /// Returns the limits of a turn now.
    pub fn config(&self) -> turn::Config {
        self.settings.now().turn.clone()
    }
}
