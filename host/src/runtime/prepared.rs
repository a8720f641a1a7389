//! The conversations that were in use when the host stopped, and that a start wakes before their next message.
//!
//! Has no wake of its own: an actor decides, takes a slot only if one is free for it, and the session goes to sleep as each idle session
//! does. Never wakes a session that a person stopped. See `runtime::life` and [`crate::runtime::admission`].

use crate::runtime::command::Command;
use crate::runtime::sessions::Sessions;
use crate::sessions::store;
use ironclaw_contract::ids::SessionId;
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::tables::facts;
use tokio::sync::oneshot;

/// Sessions that a start wakes without work. A person writes in few conversations at a time, and each costs some 12 MiB and a tenth of a
/// second of a processor.
const PREPARED_MAX: usize = 4;

impl Sessions {
    /// Wakes the conversations that would still be awake without the restart, one at a time, the newest first. One that cannot wake now is
    /// skipped.
    pub async fn prepare_recent(&self) -> Result<(), Error> {
        let idle_seconds = self.runtime.settings.now().session.idle_seconds;
        let recent = self.state().read(move |tx| Ok::<_, Error>(recent(tx, idle_seconds)?)).await?;
        for session in recent {
            // A session with an actor has work or a command.
            if self.shown(session).is_none() {
                self.wake_without_work(session).await;
            }
        }
        Ok(())
    }

    /// Wakes a session without work. Returns once it is awake, or does not wake.
    async fn wake_without_work(&self, session: SessionId) {
        if self.runtime.latch.is_shut() {
            return;
        }
        let (reply, answer) = oneshot::channel();
        if self.send(session, Command::Prepare(reply)).is_ok() {
            // Without an answer it did not wake.
            let _ = answer.await;
        }
    }
}

/// Returns the conversations that would be awake if the host had not stopped, the newest first.
fn recent(tx: &ReadTx<'_>, idle_seconds: u64) -> Result<Vec<SessionId>, ironclaw_state::Error> {
    let since = tx.now().saturating_sub(i64::try_from(idle_seconds).unwrap_or(i64::MAX).saturating_mul(1000));
    let stopped = facts::stopped_sessions(tx)?;
    let stopped_at = |id| stopped.iter().find(|(session, _)| *session == id).map(|(_, at)| *at);
    let active = store::recently_active(tx, since, PREPARED_MAX + stopped.len())?.into_iter();
    let awake = active.filter(|session| stopped_at(session.id).is_none_or(|at| at < session.last_active_at));
    Ok(awake.take(PREPARED_MAX).map(|session| session.id).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::store::tests::with_session;
    use ironclaw_store::tables::sessions;

    const IDLE_SECONDS: u64 = 300;

    #[test]
    fn only_a_conversation_in_use_is_prepared() {
        with_session(|tx, _, session| {
            let (id, now) = (session.id, tx.now());
            assert!(recent(tx, IDLE_SECONDS).expect("read").is_empty(), "it has no answer yet");
            sessions::move_cursor(tx, id, 1, now - 300_001).expect("moved");
            assert!(recent(tx, IDLE_SECONDS).expect("read").is_empty(), "it would sleep by now");
            sessions::move_cursor(tx, id, 1, now - 1).expect("moved");
            assert_eq!(recent(tx, IDLE_SECONDS).expect("read"), [id]);
            sessions::count_failure(tx, id).expect("counted");
            assert!(recent(tx, IDLE_SECONDS).expect("read").is_empty(), "its last launch failed");
        });
    }

    #[test]
    fn a_stopped_conversation_stays_asleep_until_its_next_use() {
        with_session(|tx, _, session| {
            let (id, now) = (session.id, tx.now());
            sessions::move_cursor(tx, id, 1, now - 1).expect("moved");
            for _ in 0..2 {
                facts::add_stopped_session(tx, id).expect("recorded");
                assert!(recent(tx, IDLE_SECONDS).expect("read").is_empty());
            }
            assert_eq!(facts::stopped_sessions(tx).expect("read"), [(id, now)], "the newest stop");
            sessions::move_cursor(tx, id, 2, now + 1).expect("moved");
            assert_eq!(recent(tx, IDLE_SECONDS).expect("read"), [id]);
        });
    }
}
