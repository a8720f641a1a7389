//! The bounds on the event streams of the console.
//!
//! Sends nothing. See `api::console::live` for the streams.

use crate::registry::TokenId;
use ironclaw_operator::{Bound, DenialCode};
use ironclaw_store::refusal::Refusal;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Streams of one session; a browser has one for each open page.
const OF_SESSION_MAX: usize = 16;

/// Streams of all sessions.
const ALL_MAX: usize = 192;

/// The open streams by session.
#[derive(Clone, Default)]
pub struct Streams(Arc<Mutex<HashMap<TokenId, usize>>>);

impl Streams {
    /// Takes a place for a stream of this session.
    ///
    /// # Errors
    /// Refuses a stream beyond the bounds.
    pub fn enter(&self, session: &TokenId) -> Result<Place, Refusal> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (own, all) = (open.get(session).copied().unwrap_or(0), open.values().sum::<usize>());
        for (what, bound, used) in
            [("event streams of this session", OF_SESSION_MAX, own), ("event streams of the console", ALL_MAX, all)]
        {
            if used >= bound {
                let remedy = "close other pages of the console; this one works without its live parts";
                return Err(Refusal::over(DenialCode::TooManyConnections, Bound::new(what, bound, used, remedy)));
            }
        }
        open.insert(session.clone(), own + 1);
        Ok(Place { streams: self.clone(), session: session.clone() })
    }
}

/// The place of an open stream, which its end frees.
pub struct Place {
    streams: Streams,
    session: TokenId,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut open = self.streams.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.session) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.session);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_has_few_streams_and_an_end_frees_its_place() {
        let (streams, token): (Streams, TokenId) = (Streams::default(), "tok_0123456789abcdef".parse().expect("an id"));
        let mut open: Vec<Place> =
            (0..OF_SESSION_MAX).map(|_| streams.enter(&token).unwrap_or_else(|_| panic!("room"))).collect();
        assert_eq!(streams.enter(&token).err().map(|refusal| refusal.code), Some(DenialCode::TooManyConnections));
        open.pop();
        assert!(streams.enter(&token).is_ok());
        drop(open);
        assert!(streams.0.lock().expect("no panic").is_empty());
    }
}
