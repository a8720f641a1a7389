//! The four places where the call of a built-in tool runs.
//!
//! A new tool of a place that the host runs has a word here, and the compiler names the code that has to run it.

use ironclaw_store::tables::turns::Runs;

/// The place where the calls of a tool run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In the jail of the session. `sandbox/src/tools.rs` runs it, and reports the result.
    Jail,
    /// In the transaction that records the call, because it concerns the record alone. [`crate::turns::calls::run`] runs it.
    Record(RecordTool),
    /// After a row of the sandbox that names the call. [`crate::runtime`] accepts it, and [`crate::turns::calls`] reads its action.
    Row,
    /// Outside of the session, when the sandbox asks for the result. [`crate::calls::executor`] runs it, at most once.
    Outside(OutsideTool),
}

/// A tool that runs in the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordTool {
    Remember,
    Recall,
    FindTools,
    ReadSkill,
    ManageSchedules,
}

/// A tool with an effect outside of the session. A tool of an MCP server has one too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutsideTool {
    HttpFetch,
    NetworkCommand,
    GitPush,
    SendMessage,
    SendFile,
}

impl Place {
    /// Returns its word in the record.
    pub const fn runs(self) -> Runs {
        match self {
            Self::Jail => Runs::Local,
            Self::Record(_) => Runs::Host,
            Self::Row => Runs::Row,
            Self::Outside(_) => Runs::Await,
        }
    }
}

impl OutsideTool {
    /// Returns whether its calls send a message or a file to an address.
    pub const fn sends(self) -> bool {
        match self {
            Self::SendMessage | Self::SendFile => true,
            Self::HttpFetch | Self::NetworkCommand | Self::GitPush => false,
        }
    }

    /// Returns whether the host reads files of the workspace before it judges a call, so that the call has their labels.
    pub const fn reads_workspace(self) -> bool {
        match self {
            Self::GitPush | Self::SendFile => true,
            Self::HttpFetch | Self::NetworkCommand | Self::SendMessage => false,
        }
    }
}
