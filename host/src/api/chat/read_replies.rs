//! The replies that the API gave to their people, before the record has the marks of it.
//!
//! The marks of a second share a change, because each change of its own would write a page for each message. If they are lost, a client
//! shows the replies once more. See [`super::unread`].

use ironclaw_contract::ids::TurnId;
use ironclaw_state::{Error, State};
use ironclaw_store::tables::deliveries;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Time after which a mark is recorded at the latest.
const RECORDED_AFTER: Duration = Duration::from_secs(1);

/// Marks in one change, so that it delays no other change for long.
const MARKS_MAX: usize = 64;

/// Replies whose marks are not recorded.
#[derive(Clone)]
pub struct ReadReplies {
    state: State,
    turns: Arc<Mutex<Vec<TurnId>>>,
}

impl ReadReplies {
    /// Makes an empty list.
    pub fn new(state: &State) -> Self {
        Self { state: state.clone(), turns: Arc::default() }
    }

    /// Notes that a person got the reply of a turn.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub async fn note(&self, turn: TurnId) -> Result<(), Error> {
        let count = {
            let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
            turns.push(turn);
            turns.len()
        };
        if count >= MARKS_MAX {
            return self.record().await;
        }
        if count == 1 {
            let own = self.clone();
            tokio::spawn(async move {
                tokio::time::sleep(RECORDED_AFTER).await;
                // The state is closed only after `record` at the end of the API.
                let _ = own.record().await;
            });
        }
        Ok(())
    }

    /// Submits the marks. Each later [`State::read`] and each later change finds them.
    ///
    /// # Errors
    /// [`Error::Closed`].
    pub async fn record(&self) -> Result<(), Error> {
        let turns = std::mem::take(&mut *self.turns.lock().unwrap_or_else(PoisonError::into_inner));
        if turns.is_empty() {
            return Ok(());
        }
        let marks = self.state.submit(move |tx| {
            let now = tx.wall();
            turns.iter().try_for_each(|turn| deliveries::mark_seen_of_turn(tx, *turn, now))
        });
        marks.await
    }
}
