//! The request of an operator to make a channel: one variant for each kind, with the settings of that kind alone.
//!
//! Never takes the settings of another kind. See [`crate::registry::channels`].

use super::webhook;
use super::webhook::signature::Secret;
use crate::registry::channels::ChannelDraft;
use ironclaw_operator::{ChannelKind, DenialCode, NewChannel};
use ironclaw_state::keys::{self, SecretText};
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_text::excerpt::quoted;
use url::Url;

/// A new channel, from an operator's request.
pub enum Registration {
    /// An address that takes signed HTTP, and the secret of both directions.
    Webhook {
        url: Url,
        secret: SecretText,
        /// `true` if the host made the secret; the operator already knows any other secret.
        is_fresh: bool,
        /// A remark on the reading of a secret that the operator brought.
        remark: Option<&'static str>,
        /// `true` if the other side shows a delivery once even if it is sent twice.
        idempotent: bool,
    },
}

impl Registration {
    /// Reads the settings of a request for its kind.
    ///
    /// # Errors
    /// Refuses an unknown kind and settings that do not fit it; fails without random bytes for a secret.
    pub fn read(new: NewChannel) -> Result<Self, Denied<keys::Error>> {
        match kind(&new.kind)? {
            ChannelKind::Webhook => {
                let url = webhook::check_url(&new.url).map_err(|why| {
                    let words = format!("{} is not a valid address for replies: {why}", quoted(&new.url));
                    let refusal = Refusal::new(DenialCode::ChannelUrl, words);
                    refusal.hint("use https anywhere, http only on this machine and in private networks")
                })?;
                let (secret, is_fresh) = match new.secret.map(SecretText::new) {
                    Some(brought) => (SecretText::new(brought.expose().trim().to_owned()), false),
                    None => (Secret::fresh().map_err(Denied::Failed)?, true),
                };
                let read = Secret::read(&secret).map_err(|why| {
                    let refusal = Refusal::new(DenialCode::ChannelSecret, why);
                    refusal.hint("give whsec_ and the base64 of 24 to 64 bytes, or a text of 24 to 128 bytes; or leave it out for a new one")
                })?;
                Ok(Self::Webhook { url, secret, is_fresh, remark: read.remark(), idempotent: new.idempotent })
            }
        }
    }

    pub const fn kind(&self) -> ChannelKind {
        match self {
            Self::Webhook { .. } => ChannelKind::Webhook,
        }
    }

    /// Returns the new secret, which the operator sees this once.
    pub fn fresh_secret(&self) -> Option<String> {
        match self {
            Self::Webhook { secret, is_fresh, .. } => is_fresh.then(|| secret.expose().to_owned()),
        }
    }

    /// Returns a remark on the reading of the secret, if it could be read in two ways.
    pub const fn remark(&self) -> Option<&'static str> {
        match self {
            Self::Webhook { remark, .. } => *remark,
        }
    }

    /// Makes the draft of the row under this name.
    pub fn draft(self, name: String) -> ChannelDraft {
        let kind = self.kind();
        match self {
            Self::Webhook { url, secret, idempotent, .. } => {
                ChannelDraft { name, kind, url: url.into(), idempotent, secret }
            }
        }
    }
}

/// Parses the name of a kind.
fn kind(name: &str) -> Result<ChannelKind, Refusal> {
    name.parse().map_err(|_| {
        let kinds: Vec<_> = ChannelKind::ALL.iter().map(|kind| kind.name()).collect();
        let refusal = Refusal::new(DenialCode::ChannelKind, format!("unknown kind of channel {}", quoted(name)));
        refusal.hint(format!("the kinds are: {}", kinds.join(", ")))
    })
}
