//! The texts of pages that the console showed a while ago, so that a stale page can say what changed.
//!
//! Decides nothing: the digest of a decision names one of them. See `api::console::decision`.

use ironclaw_contract::canonical::Digest;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of the shown pages that are kept, to say what changed since.
const SHOWN_BYTES_MAX: usize = 4 << 20;

/// The kept texts, the oldest first.
#[derive(Default)]
pub struct ShownPages(Mutex<VecDeque<(Digest, Arc<str>)>>);

impl ShownPages {
    /// Keeps the text of a page that is shown now.
    pub fn keep(&self, text: &str) {
        let (digest, mut kept) = (Digest::of(text.as_bytes()), self.0.lock().unwrap_or_else(PoisonError::into_inner));
        kept.retain(|shown| shown.0 != digest);
        kept.push_back((digest, text.into()));
        while kept.len() > 1 && kept.iter().map(|shown| shown.1.len()).sum::<usize>() > SHOWN_BYTES_MAX {
            kept.pop_front();
        }
    }

    /// Returns the text of the page with a digest, if it is kept.
    pub fn find(&self, digest: &Digest) -> Option<Arc<str>> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter().find(|shown| shown.0 == *digest).map(|shown| Arc::clone(&shown.1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_page_gives_way_once_they_are_too_large() {
        let (kept, first) = (ShownPages::default(), "EFFECT\n  one\n");
        kept.keep(first);
        assert_eq!(kept.find(&Digest::of(first.as_bytes())).as_deref(), Some(first));
        for number in 0..10 {
            kept.keep(&format!("{number}{}", "x".repeat(SHOWN_BYTES_MAX / 4)));
        }
        assert!(kept.find(&Digest::of(first.as_bytes())).is_none());
    }
}
