//! Files in the workspace of a session: `/v1/sessions/{id}/files`, and `/v1/agents/{agent}/session`, which finds the session.
//!
//! An agent chooses the names of its files, so a client prints only [`FileEntry::shown`]. See [`crate::Session`].

use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{SessionId, TurnId};
use serde::{Deserialize, Serialize};

/// Files of one message.
pub const MESSAGE_FILES_MAX: usize = 8;

/// The directory of a workspace for the files of messages.
pub const INBOX: &str = "inbox";

/// Bytes of a file that is in a message itself, decoded.
pub const MESSAGE_FILE_BYTES_MAX: usize = 1024 * 1024;

/// Bytes of a file that an agent sends.
pub const SENT_FILE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Bytes of a file that a person puts into a workspace.
pub const FILE_PUT_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Bytes of a file that a person gets from a workspace.
pub const FILE_GET_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Levels of directories in one list.
pub const FILE_LEVELS_MAX: usize = 8;

/// `GET /v1/sessions/{id}/files?path=DIRECTORY&levels=N`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FileList {
    /// The entries, sorted by path.
    pub files: Vec<FileEntry>,
    /// True if there are more entries than one list has.
    pub more: bool,
}

ironclaw_contract::words! {
    /// The kind of an entry of a workspace.
    pub enum FileKind {
        File = "file",
        Directory = "directory",
        /// A symbolic link; listed, never followed.
        Link = "link",
        /// A pipe, a socket or a device; listed, never opened.
        Special = "special",
    }

    /// The reason that the workspace no longer has a version of a file.
    pub enum FileLoss {
        /// Another file took its path.
        Overwritten = "overwritten",
        /// The path has no file.
        Deleted = "deleted",
        /// The same file got another content.
        Changed = "changed",
    }

    /// The reason that a file has no copy.
    #[derive(PartialOrd, Ord)]
    pub enum NoCopy {
        /// The file is too large.
        FileBytes = "file_bytes",
        /// The copies of the session would take too much space.
        SessionBytes = "session_bytes",
        /// The session has too many versions.
        Versions = "versions",
        /// There was no time left.
        Time = "time",
        /// The name is not UTF-8, or the path is too long.
        Name = "name",
        /// The permissions keep the host out, or the file is a hard link of another user.
        Unreadable = "unreadable",
    }
}

/// One entry of a workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FileEntry {
    /// Path below the workspace; absent if it is not UTF-8, and then no request can name it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The path for a person: characters that hide, reorder or control text are written as codes.
    pub shown: String,
    /// Its kind. Only a file can be read and removed.
    pub kind: FileKind,
    /// Its size; there if it is a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The time of its last change, as the agent's process set it, RFC 3339.
    pub modified_at: String,
}

/// The answer of `POST /v1/sessions/{id}/files?path=FILE`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FileStored {
    /// `ses_…`.
    pub session_id: SessionId,
    /// Path below the workspace.
    pub path: String,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its content.
    pub digest: Digest,
}

/// The answer of `DELETE /v1/sessions/{id}/files?path=FILE`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FileRemoved {
    /// `ses_…`.
    pub session_id: SessionId,
    /// Path below the workspace.
    pub path: String,
    /// The size that it had.
    pub bytes: u64,
}

/// `GET /v1/sessions/{id}/files/history?path=PATH`: kept versions that the workspace no longer has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FileHistory {
    /// The versions, the newest first.
    pub versions: Vec<FileVersion>,
    /// True if there are more versions than one list has.
    pub more: bool,
    /// The time at which the host last copied changed files, RFC 3339; absent if it never did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copied_at: Option<String>,
    /// The turn before whose call that was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// Files without a copy at that time, the first of them.
    pub left_out: Vec<FileLeftOut>,
    /// The number of all files without a copy.
    pub left_out_total: u64,
    /// The reason that the copying failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

/// A kept version of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FileVersion {
    /// Its number, unique in the session.
    pub id: u64,
    /// Path below the workspace.
    pub path: String,
    /// The path for a person: characters that hide, reorder or control text are written as codes.
    pub shown: String,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its content.
    pub digest: Digest,
    /// The time of the copy, RFC 3339.
    pub kept_at: String,
    /// The last turn with a call that may change files, before the host saw that the workspace lacks the version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnId>,
    /// The reason that the workspace no longer has it.
    pub why: FileLoss,
}

/// A file without a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FileLeftOut {
    /// The path for a person.
    pub shown: String,
    /// The reason.
    pub why: NoCopy,
}

/// `POST /v1/sessions/{id}/files/restore`: a kept version of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct FileRestore {
    /// Path below the workspace.
    pub path: String,
    /// The number of the version; by default the newest that the workspace does not have at this path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// The path of the restored file; by default the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

/// The answer of `POST /v1/sessions/{id}/files/restore`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct FileRestored {
    /// `ses_…`.
    pub session_id: SessionId,
    /// Path of the restored file, below the workspace.
    pub path: String,
    /// The number of the version.
    pub version: u64,
    /// Its size.
    pub bytes: u64,
    /// SHA-256 of its content.
    pub digest: Digest,
    /// The number of the version that has the replaced content; absent if the restore replaced no file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced: Option<u64>,
}

/// `POST /v1/agents/{agent}/session`: the conversation of the caller whose session is wanted.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewConversation {
    /// One of the caller's identities, as in a message.
    #[serde(default, rename = "as", skip_serializing_if = "Option::is_none")]
    pub speak_as: Option<String>,
    /// The name of the conversation, as in a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

/// The session of a conversation: `/v1/agents/{agent}/session`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Conversation {
    /// `ses_…`.
    pub session_id: SessionId,
}

/// A file that an agent sends: the copy that the host made when the agent asked for it. `GET /v1/calls/{id}/file` has its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SentFile {
    /// Its name, without a directory.
    pub name: String,
    /// Its media type, from its content.
    #[serde(rename = "type")]
    pub media_type: String,
    /// Its size.
    #[serde(rename = "size")]
    pub bytes: u64,
    /// SHA-256 of its content.
    pub digest: Digest,
}

/// An image of a message: a file that the sender put into the workspace of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MessageImage {
    /// Path below the workspace.
    pub path: String,
    /// SHA-256 of its content. A model that takes images gets the file only as long as it has this content.
    pub digest: Digest,
}
