//! Takes the rows of an outbound queue, one by one, and replaces a reader that died.
//!
//! Judges no row. Next: `pipeline::accept`.

use super::Error;
use super::accept::{self, Accepted};
use super::actor::{Actor, Slept};
use super::command::Phase;
use super::launch::{self, Awake};
use super::model_socket::REFUSALS_MAX;
use crate::failpoint;
use crate::session::store::Why;
use ironclaw_jail::reader;
use std::sync::Arc;

/// Rows that are taken before the actor looks at its mailbox again.
const ROWS_AT_ONCE_MAX: usize = 64;

/// What a look at the outbound queue came to.
pub(super) struct Taken {
    /// Whether there may be more.
    pub(super) more: bool,
    /// Whether the turn was closed.
    pub(super) closed: bool,
}

impl Actor {
    /// Takes everything that lies in the outbound queue.
    pub(super) async fn drain(&mut self, awake: &mut Awake) -> Result<Option<Slept>, Error> {
        loop {
            match self.take(awake).await? {
                Ok(Taken { more: true, .. }) => {}
                Ok(Taken { more: false, .. }) => return Ok(None),
                Err(slept) => return Ok(Some(slept)),
            }
        }
    }

    /// Takes rows out of the outbound queue, row by row, up to a bound.
    pub(super) async fn take(&mut self, awake: &mut Awake) -> Result<Result<Taken, Slept>, Error> {
        let mut taken = Taken { more: false, closed: false };
        let found = match awake.reader.look(awake.cursor).await {
            Ok(found) => found,
            Err(reader::Error::NeedsRecovery) => return Ok(Ok(taken)),
            Err(reader::Error::Locked) => return Ok(Err(Slept::died("it held the lock of its outbound queue"))),
            Err(reader::Error::Failed(detail)) => {
                let words = "its outbound queue could not be read now".to_owned();
                return Ok(Err(Slept::Died(Why { words, detail })));
            }
            Err(reader::Error::Violation(detail)) => {
                return Ok(Err(Slept::Violated(Why { words: reader::VIOLATION.to_owned(), detail })));
            }
            Err(reader::Error::Dead(error)) => {
                tracing::warn!(session = %self.id, %error, "the reader died");
                return Ok(match self.second_reader(awake).await? {
                    Some(slept) => Err(slept),
                    None => Ok(Taken { more: true, closed: false }),
                });
            }
        };
        self.shown.lock().expect("no holder panics").progress = found.progress;
        if !found.taken.is_empty() {
            let (session, seen) = (Arc::clone(&awake.session), found.taken);
            let check = self.core.state.read(move |tx| Ok::<_, Error>(accept::check_taken(tx, &session, &seen)?));
            if let Some(what) = check.await? {
                return Ok(Err(Slept::violated(what)));
            }
        }
        taken.more = found.more || found.rows.len() > ROWS_AT_ONCE_MAX;
        for row in found.rows.into_iter().take(ROWS_AT_ONCE_MAX) {
            let (core, session, key) = (Arc::clone(&self.core), Arc::clone(&awake.session), Arc::clone(&awake.key));
            let accept = self.core.state.write(move |tx| accept::accept(tx, &core, &session, &key, row));
            let (accepted, cursor) = accept.await?;
            awake.cursor = cursor;
            failpoint::reach("accept");
            awake.reader_died = false;
            match accepted {
                Accepted::Closed(delivery) => {
                    failpoint::reach("intent");
                    self.core.drafts.end(self.id);
                    awake.unreceipted.add(&delivery);
                    self.deliver_one(delivery).await?;
                    taken.closed = true;
                }
                Accepted::Called => awake.results.send_modify(|count| *count += 1),
                Accepted::Refused => {
                    awake.refused_rows += 1;
                    if awake.refused_rows > REFUSALS_MAX {
                        return Ok(Err(Slept::violated("too many of its rows were refused")));
                    }
                }
                Accepted::Violation(what) => return Ok(Err(Slept::violated(what))),
            }
        }
        Ok(Ok(taken))
    }

    /// A reader may die once at the same cursor; a second death there is not an accident, unless everything dies.
    pub(super) async fn second_reader(&mut self, awake: &mut Awake) -> Result<Option<Slept>, Error> {
        if self.core.latch.is_shut() {
            return Ok(Some(Slept::Halted));
        }
        if self.launcher_died().await {
            awake.reader_gone = true;
            return Ok(Some(Slept::died("the launcher died, and its reader with it")));
        }
        if awake.reader_died {
            return Ok(Some(Slept::violated("the reader of its outbound queue died twice")));
        }
        awake.reader_died = true;
        let Some(session) = self.session().await? else { return Ok(Some(Slept::Ended(None))) };
        match launch::start_reader(&self.core, &session, &awake.queue).await {
            Ok((process, reader)) => {
                self.show(Phase::Awake, Some(awake.sandbox.process()), Some(process.process()));
                awake.reader_process = process;
                awake.reader = reader;
                Ok(None)
            }
            Err(error) => {
                // The last rows wait for the next launch; looking for them now would count as a second death.
                awake.reader_gone = true;
                Ok(Some(match error.shortage() {
                    Some(shortage) => Slept::Short(shortage),
                    None => Slept::Died(error.why()),
                }))
            }
        }
    }
}
