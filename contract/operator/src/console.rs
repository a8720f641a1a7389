//! Codes for the console: `POST /v1/console/codes`.
//!
//! A code signs its person in once, or confirms a session that they have. See [`crate::tokens::Face`].

use serde::{Deserialize, Serialize};

/// `POST /v1/console/codes`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NewConsoleCode {
    /// True for a new origin, which ends every session of the console; for owners. Default: false.
    #[serde(default)]
    pub new_origin: bool,
}

/// A code for the console.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ConsoleCode {
    /// The address of the console. The page there has a form that posts the field `code` to `/sign-in`.
    pub url: String,
    /// The code: 16 characters in groups of four. It is valid once.
    pub code: String,
    /// RFC 3339: a minute from now.
    pub expires_at: String,
}
