//! The server of a connection, as it describes itself.
//!
//! Checks nothing. See [`crate::Client`].

/// The form of the protocol that a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// With `initialize`, up to version 2025-11-25.
    Session,
    /// Without a handshake, from version 2026-07-28.
    Stateless,
}

/// The server as it describes itself. None of the texts is checked or bounded beyond the bound of a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    pub era: Era,
    /// The version of the protocol, such as `2025-11-25`.
    pub protocol: String,
    /// The name of the program, or an empty text.
    pub name: String,
    /// The version of the program, or an empty text.
    pub version: String,
    /// The instructions for a model.
    pub instructions: Option<String>,
}
