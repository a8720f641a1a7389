//! Jumps of the wall clock: it was set, or the machine slept.
//!
//! A timer of the kernel reports them without polling. See `timerfd_create(2)`, `TFD_TIMER_CANCEL_ON_SET`. A test that shifts the clock of
//! this process has no such timer, so its shift is polled.

use ironclaw_jail::sys::watched;
use ironclaw_state::failpoint;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::io::unix::AsyncFd;

/// A time that does not come.
const NEVER: Duration = Duration::from_secs(u32::MAX as u64);

/// The pause between two looks at the shift of a test.
const SHIFT_POLLED_EVERY: Duration = Duration::from_millis(50);

/// Reports jumps of the wall clock.
pub struct ClockJumps {
    timer: Option<AsyncFd<OwnedFd>>,
    /// The shift of a test that was reported last.
    shift_ms: AtomicI64,
}

impl ClockJumps {
    /// Begins to watch the clock. Without the timer, which needs a file descriptor, it reports nothing.
    pub fn watch() -> Self {
        let timer = timer().inspect_err(|error| tracing::warn!(%error, "jumps of the clock are noticed late"));
        Self { timer: timer.ok(), shift_ms: AtomicI64::new(failpoint::clock_shift_ms()) }
    }

    /// Waits for the next jump. Cancel-safe.
    pub async fn next(&self) {
        if failpoint::shifts_clock() {
            tokio::select! {
                () = self.next_set() => {}
                () = self.next_shift() => {}
            }
        } else {
            self.next_set().await;
        }
    }

    async fn next_shift(&self) {
        loop {
            let shift_ms = failpoint::clock_shift_ms();
            if self.shift_ms.swap(shift_ms, Ordering::Relaxed) != shift_ms {
                return;
            }
            tokio::time::sleep(SHIFT_POLLED_EVERY).await;
        }
    }

    async fn next_set(&self) {
        if let Some(timer) = &self.timer {
            while let Ok(mut ready) = timer.readable().await {
                let jumped = ready.try_io(|timer| {
                    // The timer reports a jump as this error.
                    match nix::unistd::read(timer, &mut [0; 8]) {
                        Err(nix::Error::ECANCELED) => Ok(true),
                        Ok(_) => Ok(false),
                        Err(error) => Err(error.into()),
                    }
                });
                if matches!(jumped, Ok(Ok(true))) {
                    return;
                }
            }
        }
        std::future::pending().await
    }
}

fn timer() -> io::Result<AsyncFd<OwnedFd>> {
    let timer = TimerFd::new(ClockId::CLOCK_REALTIME, TimerFlags::TFD_CLOEXEC | TimerFlags::TFD_NONBLOCK)?;
    let flags = TimerSetTimeFlags::TFD_TIMER_ABSTIME | TimerSetTimeFlags::TFD_TIMER_CANCEL_ON_SET;
    timer.set(Expiration::OneShot(TimeSpec::from_duration(NEVER)), flags)?;
    watched(timer.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::time::timeout;

    #[tokio::test]
    async fn clock_that_runs_on_is_no_jump() {
        let jumps = ClockJumps::watch();
        assert!(jumps.timer.is_some());
        assert!(timeout(Duration::from_millis(50), jumps.next()).await.is_err());
    }

    #[tokio::test]
    #[ignore = "sets the clock of the machine to its own time, as root"]
    async fn clock_that_is_set_is_a_jump() {
        use nix::time::{ClockId, clock_gettime, clock_settime};
        let jumps = ClockJumps::watch();
        let now = clock_gettime(ClockId::CLOCK_REALTIME).expect("a clock");
        clock_settime(ClockId::CLOCK_REALTIME, now).expect("root");
        timeout(Duration::from_secs(10), jumps.next()).await.expect("a jump");
    }
}
