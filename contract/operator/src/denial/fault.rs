//! The party at fault for a refusal. Never decides what follows from it.

/// The party that can remove the cause of a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The sender of a message.
    Sender,
    /// The agent's process.
    Sandbox,
    /// The person who operates the host.
    Operator,
    /// The host, which cannot do the work now.
    Host,
}

impl Fault {
    /// Returns its word in the ledger.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sender => "sender",
            Self::Sandbox => "sandbox",
            Self::Operator => "operator",
            Self::Host => "host",
        }
    }
}
