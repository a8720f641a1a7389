//! The methods of HTTP that a grant can list.
//!
//! Never another one: CONNECT and TRACE have other effects than a request.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Method {
    Get,
    /// Reads the headers of a page.
    Head,
    Post,
    Put,
    Patch,
    Delete,
}

impl Method {
    pub const ALL: [Self; 6] = [Self::Get, Self::Head, Self::Post, Self::Put, Self::Patch, Self::Delete];

    /// Returns its word in a request.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Head => "HEAD",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Returns whether it only reads, by its definition (RFC 9110), and so has no body.
    pub const fn only_reads(self) -> bool {
        match self {
            Self::Get | Self::Head => true,
            Self::Post | Self::Put | Self::Patch | Self::Delete => false,
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A word that is no method of a grant.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown method {0:?}: write one of GET, HEAD, POST, PUT, PATCH, DELETE, in upper case")]
pub struct UnknownMethod(pub String);

impl FromStr for Method {
    type Err = UnknownMethod;

    fn from_str(text: &str) -> Result<Self, UnknownMethod> {
        Self::ALL.into_iter().find(|method| method.name() == text).ok_or_else(|| UnknownMethod(text.to_owned()))
    }
}
