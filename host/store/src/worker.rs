//! The loop of a worker: it does due work, then waits for a bell, a task in flight, a jump of the clock, or the next due time.
//!
//! [`Due::process_due`] has the rules of the work. The loop continues after an error of the host, and ends with a closed record or the
//! shutdown. Without a bell or a finished task it always pauses. See [`crate::shutdown`] for its end, and `runtime::changes`,
//! `channels::outbound::dispatch` and `upkeep::retention_worker` for the workers.

mod clock;

use crate::error::Error;
use crate::shutdown::Shutdown;
use clock::ClockJumps;
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;

/// The pause before a due time in the past: due work that cannot be done must not keep the host busy.
const SOON: Duration = Duration::from_millis(50);

/// The longest pause while the record cannot be written.
const UNWRITTEN_RETRY_AFTER: Duration = Duration::from_secs(1);

/// Work with due times.
pub trait Due: Send {
    /// The log message for work that waits because of an error of the host.
    const FAILED: &'static str;

    /// The pause after an error of the host. It is at most a second while the record cannot be written, such as on a full disk.
    const RETRY_AFTER: Duration;

    /// The longest pause. A jump of the clock ends a pause at once, if the kernel reports it.
    const PAUSE_MAX: Duration;

    /// The longest wait for tasks in flight after the shutdown.
    const IN_FLIGHT_TIME_MAX: Duration = Duration::ZERO;

    /// The log message for tasks in flight that take longer than that.
    const INTERRUPTED: &'static str = "the host stops before a worker has finished";

    /// Does the due work, and returns the wait until more is due. The loop never drops it, so a stop waits for its end.
    fn process_due(&mut self) -> impl Future<Output = Result<Wait, Error>> + Send;

    /// Finishes one of the tasks in flight, or returns `None` without one. It must be cancel-safe.
    fn finish_one(&mut self) -> impl Future<Output = Option<()>> + Send {
        std::future::ready(None)
    }
}

/// The wait until more work is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// Until the bell rings or a task in flight ends.
    Bell,
    /// The same, and at most for this long.
    AtMost(Duration),
}

impl Wait {
    /// Returns the wait until a time of the same clock; both are in milliseconds.
    pub fn until(at: i64, now: i64) -> Self {
        Self::AtMost(Duration::from_millis(u64::try_from(at.saturating_sub(now)).unwrap_or(0)))
    }

    /// Returns the duration of the sleep; `None` for no end.
    fn bounded(self, longest: Duration) -> Option<Duration> {
        match self {
            Self::Bell => None,
            Self::AtMost(Duration::ZERO) => Some(SOON.min(longest)),
            Self::AtMost(wait) => Some(wait.min(longest)),
        }
    }
}

/// Does due work until the host stops or its record is closed, then waits for the tasks in flight. A bell during the work takes effect
/// directly after it.
pub async fn run<W: Due>(mut work: W, bell: &Notify, shutdown: &Shutdown) {
    let stopped = shutdown.stopped();
    tokio::pin!(stopped);
    let jumps = ClockJumps::watch();
    let mut is_unwritten = false;
    loop {
        let done = work.process_due().await;
        let was_unwritten = std::mem::replace(&mut is_unwritten, done.as_ref().is_err_and(Error::is_unwritten));
        let wait = match done {
            Ok(wait) => wait.bounded(W::PAUSE_MAX),
            Err(Error::State(ironclaw_state::Error::Closed)) => break,
            Err(error) => {
                // A full disk has one line for each worker, not one for each try.
                if !(was_unwritten && is_unwritten) {
                    tracing::error!(%error, "{}", W::FAILED);
                }
                Some(retry_after::<W>(&error))
            }
        };
        tokio::select! {
            // The stop comes first, so that no bell delays it.
            biased;
            () = &mut stopped => break,
            () = bell.notified() => {}
            Some(()) = work.finish_one() => {}
            () = pass(wait, &jumps) => {}
        }
    }
    let finished = async { while work.finish_one().await.is_some() {} };
    if timeout(W::IN_FLIGHT_TIME_MAX, finished).await.is_err() {
        tracing::warn!("{}", W::INTERRUPTED);
    }
}

fn retry_after<W: Due>(error: &Error) -> Duration {
    if error.is_unwritten() { W::RETRY_AFTER.min(UNWRITTEN_RETRY_AFTER) } else { W::RETRY_AFTER }
}

/// Sleeps for this time, and at most until the clock jumps; or forever.
async fn pass(wait: Option<Duration>, jumps: &ClockJumps) {
    match wait {
        Some(wait) => {
            let _ = timeout(wait, jumps.next()).await;
        }
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use tokio::task::JoinSet;
    use tokio::time::{Instant, sleep};

    /// Work that returns each of these once, and then that its record is closed.
    struct Script {
        answers: std::vec::IntoIter<Result<Wait, Error>>,
        looks: Arc<AtomicU32>,
        in_flight: JoinSet<()>,
    }

    impl Script {
        fn new(answers: impl IntoIterator<Item = Result<Wait, Error>>) -> Self {
            let answers = answers.into_iter().collect::<Vec<_>>().into_iter();
            Self { answers, looks: Arc::default(), in_flight: JoinSet::new() }
        }
    }

    impl Due for Script {
        const FAILED: &'static str = "it waits";
        const RETRY_AFTER: Duration = Duration::from_millis(30);
        const PAUSE_MAX: Duration = Duration::from_secs(3600);
        const IN_FLIGHT_TIME_MAX: Duration = Duration::from_secs(1);

        async fn process_due(&mut self) -> Result<Wait, Error> {
            self.looks.fetch_add(1, Ordering::SeqCst);
            self.answers.next().unwrap_or_else(|| Err(ironclaw_state::Error::Closed.into()))
        }

        async fn finish_one(&mut self) -> Option<()> {
            self.in_flight.join_next().await.map(drop)
        }
    }

    /// Runs to the end; returns the number of passes and the time.
    async fn ran(script: Script, bell: &Notify, shutdown: &Shutdown) -> (u32, Duration) {
        let (looks, begun) = (Arc::clone(&script.looks), Instant::now());
        timeout(Duration::from_secs(60), run(script, bell, shutdown)).await.expect("it ends");
        (looks.load(Ordering::SeqCst), begun.elapsed())
    }

    fn a_moment() -> tokio::time::Sleep {
        sleep(Duration::from_millis(20))
    }

    #[test]
    fn wait_is_bounded_and_never_none_for_a_past_time() {
        let hour = Duration::from_secs(3600);
        assert_eq!(Wait::Bell.bounded(hour), None);
        assert_eq!(Wait::until(1_500, 1_000).bounded(hour), Some(Duration::from_millis(500)));
        assert_eq!(Wait::until(1_001, 1_000).bounded(hour), Some(Duration::from_millis(1)));
        assert_eq!(Wait::until(i64::MAX, i64::MIN).bounded(hour), Some(hour), "the machine may sleep meanwhile");
        for past in [1_000, 999, i64::MIN] {
            assert_eq!(Wait::until(past, 1_000).bounded(hour), Some(SOON), "{past}");
        }
    }

    #[tokio::test]
    async fn closed_record_ends_a_worker_at_once() {
        assert_eq!(ran(Script::new([]), &Notify::new(), &Shutdown::default()).await.0, 1);
    }

    #[tokio::test]
    async fn error_of_the_host_waits_and_is_tried_again() {
        let script = Script::new([Err(Error::Stopping), Err(Error::Stopping)]);
        let (looks, took) = ran(script, &Notify::new(), &Shutdown::default()).await;
        assert_eq!(looks, 3);
        assert!(took >= Script::RETRY_AFTER * 2, "{took:?}");
    }

    #[test]
    fn record_that_cannot_be_written_is_tried_again_within_a_second() {
        struct Rare;
        impl Due for Rare {
            const FAILED: &'static str = "it waits";
            const RETRY_AFTER: Duration = Duration::from_secs(30);
            const PAUSE_MAX: Duration = Duration::from_secs(30);
            async fn process_due(&mut self) -> Result<Wait, Error> {
                Ok(Wait::Bell)
            }
        }
        let unwritten = Error::State(ironclaw_state::Error::Unwritten(String::new()));
        assert_eq!(retry_after::<Rare>(&unwritten), UNWRITTEN_RETRY_AFTER);
        assert_eq!(retry_after::<Rare>(&Error::Stopping), Rare::RETRY_AFTER);
        assert_eq!(retry_after::<Script>(&unwritten), Script::RETRY_AFTER, "never longer than usual");
    }

    #[tokio::test]
    async fn bell_interrupts_a_wait_and_is_heard_while_working() {
        let bell = Arc::new(Notify::new());
        // This one rings before the wait.
        bell.notify_one();
        let ringing = Arc::clone(&bell);
        tokio::spawn(async move {
            a_moment().await;
            ringing.notify_one();
        });
        let script = Script::new([Ok(Wait::Bell), Ok(Wait::AtMost(Script::PAUSE_MAX))]);
        assert_eq!(ran(script, &bell, &Shutdown::default()).await.0, 3);
    }

    #[tokio::test]
    async fn past_time_does_not_make_a_worker_spin() {
        let script = Script::new((0..4).map(|_| Ok(Wait::until(0, 1))));
        let (looks, took) = ran(script, &Notify::new(), &Shutdown::default()).await;
        assert_eq!(looks, 5);
        assert!(took >= SOON * 4, "{took:?}");
    }

    #[tokio::test]
    async fn stop_ends_a_worker_once_its_tasks_in_flight_are_done() {
        let shutdown = Shutdown::default();
        // Before the bell, which rings anyway.
        shutdown.finish();
        let bell = Notify::new();
        bell.notify_one();
        let mut script = Script::new([Ok(Wait::Bell), Ok(Wait::Bell)]);
        let done = Arc::new(AtomicU32::new(0));
        for _ in 0..3 {
            let done = Arc::clone(&done);
            script.in_flight.spawn(async move {
                a_moment().await;
                done.fetch_add(1, Ordering::SeqCst);
            });
        }
        let (looks, _) = ran(script, &bell, &shutdown).await;
        assert_eq!((looks, done.load(Ordering::SeqCst)), (1, 3));
    }

    #[tokio::test]
    async fn stop_waits_for_tasks_in_flight_up_to_a_bound() {
        let shutdown = Shutdown::default();
        shutdown.finish();
        let mut script = Script::new([Ok(Wait::Bell)]);
        script.in_flight.spawn(std::future::pending());
        let (looks, took) = ran(script, &Notify::new(), &shutdown).await;
        assert_eq!(looks, 1);
        assert!(took >= Script::IN_FLIGHT_TIME_MAX, "{took:?}");
    }

    #[tokio::test]
    async fn finished_task_in_flight_wakes_the_worker() {
        let mut script = Script::new([Ok(Wait::Bell)]);
        script.in_flight.spawn(a_moment());
        assert_eq!(ran(script, &Notify::new(), &Shutdown::default()).await.0, 2);
    }
}
