//! The worker of questions: it ends those whose time is over, and reminds their people once.
//!
//! A restart finds all due times in the record. See [`ironclaw_store::worker`] for the loop.

use super::ending;
use super::host_questions::Questions;
use crate::channels::notifications::{self, About, Notification};
use crate::sessions::Wake;
use ironclaw_contract::ids::SessionId;
use ironclaw_ledger::Entry;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::WriteTx;
use ironclaw_store::error::Error;
use ironclaw_store::shutdown::Shutdown;
use ironclaw_store::tables::questions::{self, Row, Status};
use ironclaw_store::worker::{self, Due, Wait};
use std::sync::Arc;
use std::time::Duration;

/// The bound on the questions that one pass ends, and on those of which it reminds.
const AT_ONCE_MAX: usize = 64;

pub struct QuestionWorker {
    questions: Arc<Questions>,
    wake: Arc<dyn Wake>,
}

impl QuestionWorker {
    pub fn new(questions: Arc<Questions>, wake: Arc<dyn Wake>) -> Self {
        Self { questions, wake }
    }

    /// Ends questions and reminds people, until the host stops.
    pub async fn run(self, shutdown: Shutdown) {
        let questions = Arc::clone(&self.questions);
        worker::run(self, &questions.bell, &shutdown).await;
    }
}

impl Due for QuestionWorker {
    const FAILED: &'static str = "ends and reminders of questions wait for a retry after an error of the host";
    const RETRY_AFTER: Duration = Duration::from_secs(30);
    const PAUSE_MAX: Duration = Duration::from_secs(3600);

    async fn process_due(&mut self) -> Result<Wait, Error> {
        let questions = Arc::clone(&self.questions);
        let passed = self.questions.record.state.write(move |tx| pass(tx, &questions)).await?;
        for session in passed.ended {
            self.wake.nudge(session);
        }
        Ok(passed.wait)
    }
}

/// The result of one pass.
struct Passed {
    /// The sessions whose questions ended.
    ended: Vec<SessionId>,
    wait: Wait,
}

/// Ends the questions whose time is over, and reminds of those that are due.
fn pass(tx: &mut WriteTx<'_>, all: &Questions) -> Result<Passed, Error> {
    let (now, expiry) = (tx.wall(), tx.expiry_time());
    let ended = questions::ended(tx, expiry, AT_ONCE_MAX)?;
    for row in &ended {
        ending::end(tx, &all.record, row, Status::Expired, None, "")?;
    }
    for row in questions::to_remind(tx, now, AT_ONCE_MAX)? {
        remind(tx, &row)?;
    }
    let wait = questions::next_due(tx)?.map_or(Wait::Bell, |at| Wait::until(at, expiry));
    Ok(Passed { ended: ended.into_iter().map(|row| row.session).collect(), wait })
}

/// Reminds the person of a question, once.
fn remind(tx: &mut WriteTx<'_>, row: &Row) -> Result<(), Error> {
    questions::set_reminded(tx, row.id)?;
    Entry::new(LedgerEvent::QuestionReminded)
        .session(row.session)
        .with("question", row.id)
        .with("person", row.principal)
        .append(tx)?;
    notifications::add(tx, row.principal, Notification::new(About::QuestionReminder, row.id), tx.wall())?;
    Ok(())
}
