//! Grants of hosts for requests that the host makes for an agent, and the judgement of one request against them.
//!
//! Never resolves a name, opens a connection or reads a secret: a grant has the name of a secret only. See [`verdict`].

pub mod canonical;
pub mod grant;
pub mod host;
pub mod method;
mod percent;
pub mod request;
pub mod template;
pub mod verdict;

pub use canonical::{CanonicalUrl, PLAIN, UrlError};
pub use grant::{Grant, GrantError, GrantText, NoSecretName, SECRET_CHARACTERS_MAX, SECRET_PREFIX, SecretName};
pub use host::{HostError, HostName, Loopback};
pub use ironclaw_contract::seam::egress::Commands;
pub use method::Method;
pub use request::{Request, RequestError, RequestText};
pub use template::{Slot, Template, TemplateError};
pub use verdict::{Allowed, Category, Difference, Missing, judge};

#[cfg(test)]
mod tests;
