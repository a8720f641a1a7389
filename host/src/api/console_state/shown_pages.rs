//! The texts of pages that the console showed a while ago, so that a stale page can say what changed.
//!
//! Decides nothing: the digest of a decision names one of them. See `api::console::decision`.

use ironclaw_contract::canonical::Digest;
use ironclaw_operator::TokenId;
use std::collections::{BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of the shown pages that are kept, to say what changed since.
const SHOWN_BYTES_MAX: usize = 4 << 20;

/// Long pages of one session whose steps are noted at once.
const LONG_MAX: usize = 32;

/// Long pages of all sessions whose steps are noted at once.
const ALL_LONG_MAX: usize = 4096;

/// The kept texts and steps.
#[derive(Default)]
pub struct ShownPages {
    /// The texts, the oldest first.
    texts: Mutex<VecDeque<Text>>,
    /// The steps of long pages that a session was shown, the oldest page first.
    long: Mutex<VecDeque<Long>>,
}

struct Text {
    /// The session that was shown it. No other one learns from it.
    session: TokenId,
    digest: Digest,
    text: Arc<str>,
}

struct Long {
    session: TokenId,
    digest: Digest,
    steps: BTreeSet<usize>,
}

impl ShownPages {
    /// Keeps the text of a page that is shown now.
    pub fn keep(&self, session: &TokenId, text: &str) {
        let (digest, mut kept) =
            (Digest::of(text.as_bytes()), self.texts.lock().unwrap_or_else(PoisonError::into_inner));
        kept.retain(|shown| shown.digest != digest || shown.session != *session);
        kept.push_back(Text { session: session.clone(), digest, text: text.into() });
        while kept.len() > 1 && kept.iter().map(|shown| shown.text.len()).sum::<usize>() > SHOWN_BYTES_MAX {
            kept.pop_front();
        }
    }

    /// Returns the text of the page with a digest that this session was shown, if it is kept.
    pub fn find(&self, session: &TokenId, digest: &Digest) -> Option<Arc<str>> {
        let kept = self.texts.lock().unwrap_or_else(PoisonError::into_inner);
        kept.iter()
            .find(|shown| shown.digest == *digest && shown.session == *session)
            .map(|shown| Arc::clone(&shown.text))
    }

    /// Notes that a session is shown a step of a page, from 1 to `steps`. Returns the first step that it was not shown.
    pub fn note_step(&self, session: &TokenId, digest: Digest, step: usize, steps: usize) -> Option<usize> {
        if steps <= 1 {
            return None;
        }
        let mut long = self.long.lock().unwrap_or_else(PoisonError::into_inner);
        let at = long.iter().position(|page| page.session == *session && page.digest == digest);
        let mut page = at.and_then(|at| long.remove(at)).unwrap_or_else(|| Long {
            session: session.clone(),
            digest,
            steps: BTreeSet::new(),
        });
        page.steps.insert(step);
        let unread = (1..=steps).find(|step| !page.steps.contains(step));
        long.push_back(page);
        let is_theirs = |page: &Long| page.session == *session;
        if long.iter().filter(|page| is_theirs(page)).count() > LONG_MAX
            && let Some(oldest) = long.iter().position(is_theirs)
        {
            long.remove(oldest);
        }
        if long.len() > ALL_LONG_MAX {
            long.pop_front();
        }
        unread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_page_gives_way_once_they_are_too_large() {
        let (kept, first) = (ShownPages::default(), "EFFECT\n  one\n");
        let [own, other]: [TokenId; 2] =
            ["tok_0123456789abcdef", "tok_0123456789abcde0"].map(|id| id.parse().expect("an id"));
        kept.keep(&own, first);
        let digest = Digest::of(first.as_bytes());
        assert_eq!(kept.find(&own, &digest).as_deref(), Some(first));
        assert_eq!(kept.find(&other, &digest), None, "another session learns nothing from it");
        for number in 0..10 {
            kept.keep(&own, &format!("{number}{}", "x".repeat(SHOWN_BYTES_MAX / 4)));
        }
        assert!(kept.find(&own, &digest).is_none());
    }

    #[test]
    fn long_page_is_read_once_each_step_was_shown() {
        let (pages, digest): (ShownPages, Digest) = (ShownPages::default(), Digest::of(b"page"));
        let (one, other) =
            ("tok_0123456789abcdef".parse().expect("an id"), "tok_0123456789abcde0".parse().expect("an id"));
        assert_eq!(pages.note_step(&one, digest, 3, 3), Some(1));
        assert_eq!(pages.note_step(&one, digest, 1, 3), Some(2));
        assert_eq!(pages.note_step(&other, digest, 2, 3), Some(1), "another session");
        assert_eq!(pages.note_step(&one, Digest::of(b"other"), 2, 3), Some(1), "another page");
        assert_eq!(pages.note_step(&one, digest, 2, 3), None);
    }
}
