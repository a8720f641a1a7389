//! Jails in stock: when they are made ahead, and when they are released.
//!
//! Makes no process. A jail in stock is a process 1 without a spec, which the launcher gives to one session and never takes back. See
//! [`crate::launcher::server`] and [`crate::native`].

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Jails in stock: a session needs two, one for its sandbox and one for its reader.
pub const STOCK: usize = 2;
/// Pause after a launch, so that the work that caused it goes first: a waked session usually answers a message within 25 ms.
const PAUSE: Duration = Duration::from_millis(40);
/// Time without a launch after which the stock is released.
const KEPT: Duration = Duration::from_secs(300);

/// Decides when the launcher makes or releases jails in stock.
#[derive(Debug, Default)]
pub(super) struct Plan {
    /// The last launch; `None` if no stock is wanted before the next one.
    launched: Option<Instant>,
}

/// The next work on the stock.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Make one jail now.
    Make,
    /// End all jails in stock now.
    Release,
    /// Ask again at this time.
    At(Instant),
    /// Nothing before the next launch.
    Never,
}

impl Plan {
    pub(super) fn note_launch(&mut self, now: Instant) {
        self.launched = Some(now);
    }

    /// Wants no stock until the next launch.
    pub(super) fn forget(&mut self) {
        self.launched = None;
    }

    /// Returns the next work, with `stocked` jails in stock. A launch in progress goes first; its end wakes the launcher.
    pub(super) fn due(&self, now: Instant, stocked: usize, is_launching: bool) -> Due {
        let released = if stocked > 0 { Due::Release } else { Due::Never };
        let Some(launched) = self.launched else { return released };
        let (make, release) = (launched + PAUSE, launched + KEPT);
        match (now >= release, is_launching, stocked < STOCK) {
            (true, _, _) => released,
            (false, false, true) if now >= make => Due::Make,
            (false, false, true) => Due::At(make),
            (false, true, _) | (false, false, false) => Due::At(release),
        }
    }
}

/// The table of mounts of the host. A jail in stock has a copy of it, and its session must get the mounts of now.
pub(super) struct Mounts(File);

impl Mounts {
    /// Opens the table of this process.
    pub(super) fn open() -> io::Result<Self> {
        File::open("/proc/self/mountinfo").map(Self)
    }

    /// Returns the descriptor for a poll. The kernel reports each change once.
    pub(super) fn watched(&self) -> PollFd<'_> {
        PollFd::new(self.0.as_fd(), PollFlags::POLLPRI)
    }

    /// Returns whether a mount changed since the last poll; also true if the kernel does not answer.
    pub(super) fn have_changed(&self) -> bool {
        !matches!(poll(&mut [self.watched()], PollTimeout::ZERO), Ok(0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stock_is_made_after_a_launch_and_released_when_unused() {
        let begun = Instant::now();
        let mut plan = Plan::default();
        assert_eq!(plan.due(begun, 0, false), Due::Never);
        plan.note_launch(begun);
        let (make, release) = (begun + PAUSE, begun + KEPT);
        assert_eq!(plan.due(begun, 0, false), Due::At(make));
        for stocked in 0..STOCK {
            assert_eq!(plan.due(make, stocked, false), Due::Make, "{stocked}");
            assert_eq!(plan.due(make, stocked, true), Due::At(release), "{stocked}");
        }
        assert_eq!(plan.due(make, STOCK, false), Due::At(release));
        assert_eq!(plan.due(release, STOCK, false), Due::Release);
        assert_eq!(plan.due(release, 0, false), Due::Never);
    }

    #[test]
    fn forgotten_launch_ends_the_stock_and_makes_none() {
        let begun = Instant::now();
        let mut plan = Plan::default();
        plan.note_launch(begun);
        plan.forget();
        assert_eq!(plan.due(begun + PAUSE, STOCK, false), Due::Release);
        assert_eq!(plan.due(begun + PAUSE, 0, false), Due::Never);
        plan.note_launch(begun + PAUSE);
        assert_eq!(plan.due(begun + PAUSE + PAUSE, 0, false), Due::Make);
    }
}
