//! The callers of the API: the cache of their tokens, and the bounds on requests that fail.
//!
//! Authenticates nothing. See [`super::auth`].

use super::auth::failures::Failures;
use super::health::probed::Probed;
use super::large_bodies::LargeBodies;
use super::refusals::Refusals;
use crate::registry::{Token, TokenId, tokens};
use ironclaw_contract::canonical::Digest;
use ironclaw_operator::LedgerEvent;
use ironclaw_state::State;
use ironclaw_store::times::DAY_MS;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use subtle::ConstantTimeEq;
use tokio::sync::Notify;
use tokio::time::Instant;

/// Lifetime of the token cache. Changes by another process (`ironclaw-host init` makes a new owner's token beside a running host) take
/// effect after it; changes by this process take effect at once.
const CACHE_TIME_MAX: Duration = Duration::from_secs(1);

/// The callers of the API: their tokens, failures and refusals.
pub struct Callers {
    pub(super) tokens: TokenCache,
    /// Limits requests without a valid token.
    pub(super) failures: Failures,
    /// Refusals for the ledger, at a bounded rate.
    pub(super) refusals: Refusals,
    /// Notified after each change of tokens.
    pub(super) token_changes: Notify,
    /// The last probe of the record for writability.
    pub(super) probed: Probed,
    /// Permits for large bodies.
    pub(super) large: Arc<LargeBodies>,
    /// The tokens whose use was noted since the start, with the day.
    noted: Mutex<HashMap<TokenId, i64>>,
    /// Held while a token is replaced: the file has room for one next token.
    pub(super) rotating: tokio::sync::Mutex<()>,
}

impl Callers {
    /// Returns the callers of an API without requests so far; `large` is shared with the port for webhooks.
    pub fn new(state: &State, large: Arc<LargeBodies>) -> Self {
        Self {
            tokens: TokenCache::default(),
            failures: Failures::default(),
            refusals: Refusals::new(state.clone(), LedgerEvent::ApiRefused),
            token_changes: Notify::new(),
            probed: Probed::default(),
            large,
            noted: Mutex::default(),
            rotating: tokio::sync::Mutex::default(),
        }
    }

    /// Notes the use of a token in the record, once a day. A request does not wait for it.
    pub(super) fn record_use(&self, state: &State, token: &Token) {
        let now = ironclaw_state::wall_clock();
        let day = now.div_euclid(DAY_MS);
        if token.used_at.is_some_and(|at| at.div_euclid(DAY_MS) >= day) {
            return;
        }
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.insert(token.id.clone(), day) == Some(day) {
            return;
        }
        let (state, id) = (state.clone(), token.id.clone());
        tokio::spawn(async move {
            let note = state.write(move |tx| {
                tx.defer();
                tokens::record_use(tx, &id, now)
            });
            if let Err(error) = note.await {
                tracing::debug!(%error, "the use of a token was not noted");
            }
        });
    }
}

/// The required freshness of the token cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Freshness {
    Cached,
    Now,
}

/// The token cache, so that a request costs no lookup in the record.
#[derive(Clone, Default)]
pub struct TokenCache(Arc<Mutex<CachedTokens>>);

#[derive(Default)]
struct CachedTokens {
    tokens: Option<(Instant, Arc<Vec<Token>>)>,
    /// Counts invalidations: a result read before one is not cached after it.
    generation: u64,
}

impl TokenCache {
    /// Empties the cache. Call it after each committed change of a token or a person.
    pub fn invalidate(&self) {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cached.tokens = None;
        cached.generation += 1;
    }

    pub(super) async fn find(
        &self,
        state: &State,
        digest: &Digest,
        fresh: Freshness,
    ) -> Result<Option<Token>, ironclaw_state::Error> {
        let (kept, generation) = {
            let cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let kept = cached.tokens.as_ref().filter(|(at, _)| at.elapsed() < CACHE_TIME_MAX);
            (kept.filter(|_| fresh == Freshness::Cached).map(|(_, tokens)| Arc::clone(tokens)), cached.generation)
        };
        let tokens = match kept {
            Some(tokens) => tokens,
            None => {
                let asked = Instant::now();
                let tokens = Arc::new(state.read_committed(tokens::tokens).await?);
                let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                if cached.generation == generation {
                    cached.tokens = Some((asked, Arc::clone(&tokens)));
                }
                tokens
            }
        };
        let mut found = None;
        // Compares all of them: the duration says nothing about the tokens.
        for token in tokens.iter() {
            if bool::from(token.digest.as_bytes().ct_eq(digest.as_bytes())) {
                found = Some(token);
            }
        }
        Ok(found.cloned())
    }
}
