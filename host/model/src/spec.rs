//! The spec of an endpoint, as the operator wrote it.
//!
//! Never opens an endpoint. See [`crate::endpoint`].

use super::prices::Prices;
use super::{Prompt, Usage, scripted};
use url::Url;

pub use ironclaw_operator::EndpointSettings;
pub use ironclaw_operator::ModelKind as Kind;

/// Spec of an endpoint from the operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// Its name on this host.
    pub name: String,
    pub kind: Kind,
    /// Its base URL; `None` for `scripted`.
    pub base_url: Option<Url>,
    /// The provider's name of the model; empty for `scripted`.
    pub model: String,
    /// Name of the secret that holds its key.
    pub key: Option<String>,
    /// Names of the endpoints that are asked if this one fails, in order.
    pub fallbacks: Vec<String>,
    /// Prices of its tokens.
    pub prices: Prices,
    /// `true` if requests ask for a stream.
    pub streams: bool,
    /// `true` if its model takes images.
    pub takes_images: bool,
    /// What the operator set in place of the settings of the host and of the profile.
    pub settings: EndpointSettings,
}

impl Spec {
    /// Returns whether it may cost money that the host does not count: it is not a script and has no prices.
    pub fn is_unpriced(&self) -> bool {
        self.kind != Kind::Scripted && self.prices == Prices::default()
    }

    /// Returns the estimated usage of a request with this prompt. The words of a script are no tokens, unless it has prices: then it
    /// replaces a model, so that an operator can try the ceilings.
    pub fn estimate(&self, prompt: &Prompt) -> Usage {
        if self.counts_tokens() { prompt.estimate(self.prices, self.takes_images) } else { Usage::default() }
    }

    pub(crate) fn counts_tokens(&self) -> bool {
        self.kind != Kind::Scripted || self.prices != Prices::default()
    }

    /// Returns the built-in endpoint, which has no row.
    pub fn builtin() -> Self {
        Self {
            name: scripted::NAME.to_owned(),
            kind: Kind::Scripted,
            base_url: None,
            model: String::new(),
            key: None,
            fallbacks: Vec::new(),
            prices: Prices::default(),
            streams: false,
            takes_images: false,
            settings: EndpointSettings::default(),
        }
    }
}
