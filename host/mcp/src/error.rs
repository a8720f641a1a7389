//! The failures of a connection, with text of the server.
//!
//! The text is unchanged and not cut: the caller removes its secrets first, and then cuts it and writes invisible characters out. See
//! [`crate::Client`].

/// A failure of a connection or of one request.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The address of the server cannot be used. Nothing was sent.
    #[error("cannot use the address of the server: {0}")]
    Address(String),
    /// No connection was made, so the server got nothing.
    #[error("cannot reach the server: {0}; check its address and that it runs")]
    Unreachable(String),
    /// The server answered with an HTTP status that is not a success. A redirect is one of these.
    #[error("the server refused the request with HTTP status {code}{}", challenge(www_authenticate.as_deref()))]
    Refused {
        code: u16,
        /// The header `WWW-Authenticate`, at most 1,024 bytes of visible ASCII.
        www_authenticate: Option<String>,
    },
    /// The server answered the request with an error of JSON-RPC.
    #[error("the server answered with error {code}: {message}")]
    Answered {
        /// The code of JSON-RPC.
        code: i64,
        /// The server's text. Unchanged: it can have invisible characters.
        message: String,
    },
    /// The server broke the protocol.
    #[error("the server broke the protocol: {0}")]
    Protocol(String),
    /// An answer of the server has too many values, is nested too deeply, or is no JSON.
    #[error("the answer of the server cannot be read: {0}; ask for less, or report it to its author")]
    Unreadable(String),
    /// The server speaks no version of the protocol that this client knows.
    #[error("the server speaks no known version of the protocol; it names {0}")]
    Versions(String),
    /// A message, an answer or a listing is over its bound.
    #[error("the server sent more than {bytes_max} bytes, the bound of an answer; raise the limit or ask for less")]
    TooLarge { bytes_max: usize },
    /// The arguments of a call are over their bound. Nothing was sent.
    #[error("the arguments have more than {bytes_max} bytes of JSON; shorten them")]
    ArgumentsTooLarge { bytes_max: usize },
    #[error("the server did not answer in time")]
    Late,
    /// A listing has too many tools.
    #[error("the server lists more than {tools_max} tools; use a server with fewer")]
    TooManyTools { tools_max: usize },
    #[error("the connection to the server ended; connect again")]
    Gone,
}

impl Error {
    pub(crate) fn protocol(what: impl Into<String>) -> Self {
        Self::Protocol(what.into())
    }
}

fn challenge(www_authenticate: Option<&str>) -> &'static str {
    if www_authenticate.is_some() { "; it asks for a login" } else { "" }
}
