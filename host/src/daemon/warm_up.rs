//! The first use of what each message needs, in the background of a start: patterns and tables are made, and the conversations in use
//! are waked, before a person waits for them.
//!
//! Decides nothing: what it finds in its fixed texts is dropped. See [`super::serve`] and [`crate::runtime::prepared`].

use crate::registry::tools;
use crate::runtime::sessions::Sessions;
use ironclaw_judge::provenance::spans::Span;
use ironclaw_judge::scope;

/// A message without words of any language, so that the reading tries each of them.
const MESSAGE: &str = "hello";

/// Begins it in a task of its own. A message that arrives earlier makes what it needs itself, or waits for the part that is being made.
pub(super) fn begin(sessions: Sessions) {
    tokio::spawn(async move {
        // Its end is no condition of a wake.
        let _ = tokio::task::spawn_blocking(run).await;
        if let Err(error) = sessions.prepare_recent().await {
            tracing::warn!(%error, "the conversations in use were not waked; their next messages wake them");
        }
    });
}

fn run() {
    let _ = scope::scope(&[Span { text: MESSAGE, typed: true }]);
    let _ = tools::builtin();
    // A start and the making of patterns leave a megabyte behind.
    ironclaw_jail::sys::give_free_memory_back();
}

#[cfg(test)]
mod tests {
    #[test]
    fn run_needs_no_host() {
        super::run();
    }
}
