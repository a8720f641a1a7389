//! Secrets of the operator: `/v1/secrets`.
//!
//! Never a value in an answer: values go toward the host only. See [`SecretValue`].

use serde::{Deserialize, Serialize};
use std::fmt;
use zeroize::{Zeroize, ZeroizeOnDrop};

/// The text of a secret on its way to the host. It does not print, and wipes itself.
#[derive(Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(transparent)]
pub struct SecretValue(String);

impl SecretValue {
    /// Wraps the text of a secret.
    pub fn new(text: String) -> Self {
        Self(text)
    }

    /// Returns the text, and leaves an empty one to wipe.
    pub fn take(mut self) -> String {
        std::mem::take(&mut self.0)
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue")
    }
}

ironclaw_contract::words! {
    /// The source of the value of a secret.
    pub enum SecretSource {
        Stored = "stored",
        /// A credential of systemd; it has precedence over a stored value.
        Credential = "systemd",
    }
}

/// A secret without its value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Secret {
    /// Its name; settings refer to it as `secret:NAME`.
    pub name: String,
    /// `stored`, or `systemd` for a credential of the service, which has precedence.
    pub source: SecretSource,
    /// The time at which it was first stored, RFC 3339; absent for a credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub created_at: Option<String>,
    /// The time at which its value was last replaced, RFC 3339; absent for a credential.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changed_at: Option<String>,
    /// The objects that refer to it, e.g. `model openai`.
    pub used_by: Vec<String>,
}

/// `POST /v1/secrets`: a new secret.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewSecret {
    /// 1–64 characters of `a-z 0-9 - _`, starting with a letter or a digit.
    pub name: String,
    /// 1 to 8,192 bytes without control characters.
    pub value: SecretValue,
}

/// `POST /v1/secrets/{secret}/rotate`: another value for an existing secret.
#[derive(Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewSecretValue {
    /// 1 to 8,192 bytes without control characters.
    pub value: SecretValue,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_does_not_print() {
        let new = NewSecret { name: "openai".to_owned(), value: SecretValue::new("sk-zinnober".to_owned()) };
        assert_eq!(format!("{new:?}"), r#"NewSecret { name: "openai", value: SecretValue }"#);
        assert_eq!(new.value.take(), "sk-zinnober");
    }
}
