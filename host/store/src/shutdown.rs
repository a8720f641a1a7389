//! The shutdown of the host, as one value with three phases: stopping, then stopped, then over.
//!
//! The daemon and an operator's request move it, and only forward. It is not the emergency stop, which the record keeps: see
//! `registry::latch`.

use std::sync::Arc;
use tokio::sync::watch;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Running,
    Stopping,
    Stopped,
    Over,
}

/// The shutdown of this host, shared by all tasks that end with it.
#[derive(Debug, Clone)]
pub struct Shutdown(Arc<watch::Sender<Phase>>);

impl Default for Shutdown {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Phase::Running)))
    }
}

impl Shutdown {
    /// Begins the first phase: sessions end, requests are still answered, and readiness says `stopping`.
    pub fn begin(&self) {
        self.advance(Phase::Stopping);
    }

    /// Begins the second phase, with or without the first: servers and workers end.
    pub fn finish(&self) {
        self.advance(Phase::Stopped);
    }

    /// Begins the last phase, in which no session works: streams of events end.
    pub fn end(&self) {
        self.advance(Phase::Over);
    }

    /// Returns true in each of the three phases.
    pub fn is_stopping(&self) -> bool {
        *self.0.borrow() >= Phase::Stopping
    }

    /// Returns true from the second phase on.
    pub fn is_stopped(&self) -> bool {
        *self.0.borrow() >= Phase::Stopped
    }

    /// Waits for the second phase.
    pub fn stopped(&self) -> impl Future<Output = ()> + Send + use<> {
        self.reached(Phase::Stopped)
    }

    /// Waits for the last phase.
    pub fn over(&self) -> impl Future<Output = ()> + Send + use<> {
        self.reached(Phase::Over)
    }

    fn reached(&self, aim: Phase) -> impl Future<Output = ()> + Send + use<> {
        let mut phase = self.0.subscribe();
        async move {
            // Without a sender no stop can come, and the wait ends as well.
            let _ = phase.wait_for(|phase| *phase >= aim).await;
        }
    }

    fn advance(&self, to: Phase) {
        self.0.send_if_modified(|phase| {
            let is_forward = to > *phase;
            if is_forward {
                *phase = to;
            }
            is_forward
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test]
    async fn shutdown_goes_forward_only_and_wakes_for_its_second_phase() {
        let shutdown = Shutdown::default();
        let phases = || (shutdown.is_stopping(), shutdown.is_stopped());
        assert_eq!(phases(), (false, false));
        let stopped = tokio::spawn(shutdown.stopped());
        shutdown.begin();
        assert_eq!(phases(), (true, false));
        timeout(Duration::from_millis(20), shutdown.stopped()).await.expect_err("it is only stopping");
        shutdown.finish();
        shutdown.begin();
        assert_eq!(phases(), (true, true), "it does not go back");
        stopped.await.expect("woken");
        shutdown.stopped().await;
        timeout(Duration::from_millis(20), shutdown.over()).await.expect_err("its sessions may work still");
        shutdown.end();
        shutdown.over().await;
    }
}
