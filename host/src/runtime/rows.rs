//! The taking of rows from an outbound queue, one by one, and the replacement of a dead reader.
//!
//! Judges no row. See [`crate::runtime::accept`].

use crate::calls::model_socket::REFUSALS_MAX;
use crate::runtime::accept::{self, Accepted};
use crate::runtime::actor::Actor;
use crate::runtime::command::Phase;
use crate::runtime::launch::{self, Awake};
use crate::runtime::sleep_reason::SleepReason;
use crate::runtime::work::Closed;
use crate::sessions::store::FailureReason;
use ironclaw_jail::reader;
use std::sync::Arc;

/// Rows that are taken before the actor checks its mailbox again.
const ROWS_AT_ONCE_MAX: usize = 64;

/// The result of one read of the outbound queue.
pub(crate) struct Taken {
    /// `true` if there may be more rows.
    pub(crate) more: bool,
    /// Present if a row closed the turn.
    pub(crate) closed: Option<Closed>,
}

impl Actor {
    /// Takes every row of the outbound queue.
    ///
    /// # Errors
    /// A reason to sleep.
    pub(crate) async fn drain(&mut self, awake: &mut Awake) -> Result<(), SleepReason> {
        while self.take(awake).await?.more {}
        Ok(())
    }

    /// Takes rows from the outbound queue one by one, up to a bound.
    ///
    /// # Errors
    /// A reason to sleep.
    pub(crate) async fn take(&mut self, awake: &mut Awake) -> Result<Taken, SleepReason> {
        let mut taken = Taken { more: false, closed: None };
        let found = match awake.reader.look(awake.cursor).await {
            Ok(found) => found,
            Err(reader::Error::NeedsRecovery) => return Ok(taken),
            Err(reader::Error::Locked) => return Err(SleepReason::died("it held the lock of its outbound queue")),
            Err(reader::Error::Failed(detail)) => {
                let words = "its outbound queue cannot be read now".to_owned();
                return Err(SleepReason::Died(FailureReason { words, detail }));
            }
            Err(reader::Error::Violation(detail)) => {
                return Err(SleepReason::Violated(FailureReason { words: reader::VIOLATION.to_owned(), detail }));
            }
            Err(reader::Error::Dead(error)) => {
                tracing::warn!(session = %self.id, %error, "the reader died");
                self.replace_reader(awake).await?;
                return Ok(Taken { more: true, closed: None });
            }
        };
        self.shown.lock().expect("no holder panics").progress = found.progress;
        let mut seen = found.taken;
        if found.rows.is_empty() && !seen.is_empty() {
            let (session, seen) = (Arc::clone(&awake.session), std::mem::take(&mut seen));
            let check = self.state().read(move |tx| accept::check_taken(tx, &session, &seen));
            if let Some(what) = check.await? {
                return Err(SleepReason::violated(what));
            }
        }
        taken.more = found.rows.len() > ROWS_AT_ONCE_MAX;
        for row in found.rows.into_iter().take(ROWS_AT_ONCE_MAX) {
            let before = awake.cursor;
            let accepted = self.runtime.outbound.outbound(awake.outbound(), std::mem::take(&mut seen), row).await;
            // A reader may die once at each cursor, even if the delivery of the answer fails.
            if awake.cursor != before {
                awake.reader_died = false;
            }
            match accepted? {
                Accepted::Closed { is_waiting, .. } => taken.closed = Some(Closed { is_waiting }),
                Accepted::Called => awake.results.send_modify(|count| *count += 1),
                Accepted::Refused => {
                    awake.refused_rows += 1;
                    if awake.refused_rows > REFUSALS_MAX {
                        return Err(SleepReason::violated("too many of its rows were refused"));
                    }
                }
                Accepted::Violation(what) => return Err(SleepReason::violated(what)),
            }
        }
        Ok(taken)
    }

    /// Replaces a dead reader. A reader may die once at the same cursor; a second death there is a violation, unless the launcher died.
    ///
    /// # Errors
    /// A reason to sleep.
    pub(crate) async fn replace_reader(&mut self, awake: &mut Awake) -> Result<(), SleepReason> {
        if self.runtime.latch.is_shut() {
            return Err(SleepReason::Halted);
        }
        if self.launcher_died().await {
            awake.reader_gone = true;
            return Err(SleepReason::died("the launcher died, and its reader with it"));
        }
        if awake.reader_died {
            return Err(SleepReason::violated("the reader of its outbound queue died twice"));
        }
        awake.reader_died = true;
        let Some(session) = self.session().await? else { return Err(SleepReason::Ended(None)) };
        match launch::start_reader(&self.runtime.jails, &session, &awake.queue).await {
            Ok((process, reader)) => {
                self.show(Phase::Awake, Some(awake.sandbox.process()), Some(process.process()));
                awake.reader_process = process;
                awake.reader = reader;
                Ok(())
            }
            Err(error) => {
                // The last rows wait for the next launch; a read now would count as a second death.
                awake.reader_gone = true;
                Err(match error.shortage() {
                    Some(shortage) => SleepReason::Short(shortage),
                    None => SleepReason::Died(error.why()),
                })
            }
        }
    }
}
