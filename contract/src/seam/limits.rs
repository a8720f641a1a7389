//! All bounds on the data that crosses the seam, by name.
//!
//! Never a policy: an operator may set a lower bound in the settings, and no setting raises one. See
//! [`crate::seam::untrusted`].

/// Bytes of the body of a message, an output or a result.
pub const BODY_BYTES_MAX: usize = 256 * 1024;
/// Bytes of a frame of the handshake on the link, without its length prefix.
pub const HANDSHAKE_BYTES_MAX: usize = 4 * 1024;
/// Bytes of a frame on a socket, without its length prefix.
pub const FRAME_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of the content of an outbound row.
pub const ROW_BYTES_MAX: usize = 1024;
/// Rows in an outbound queue that the host did not take yet; more is a violation of the seam.
pub const UNDRAINED_ROWS_MAX: usize = 256;
/// Rows of `processing_ack` that the host reads; it ignores the rest.
pub const PROGRESS_ROWS_MAX: usize = 32;
/// Items in one `generate` request.
pub const REFS_MAX: usize = 1024;
/// Items in one answer to `items`; the sandbox requests the rest separately.
pub const ITEMS_MAX: usize = 512;
/// Calls in one model output; the host refuses a longer list as a whole.
pub const OUTPUT_CALLS_MAX: usize = 16;
/// Bytes of the canonical arguments of one call.
pub const ARGUMENTS_BYTES_MAX: usize = 128 * 1024;
/// Bytes of a reason that a person or an agent gives.
pub const REASON_BYTES_MAX: usize = 2 * 1024;
/// Bytes of an identifier that a platform or an operator chose.
pub const NAME_BYTES_MAX: usize = 256;
/// Bytes of a path or of an address.
pub const PATH_BYTES_MAX: usize = 4 * 1024;
/// Bytes of an identity: its channel, a colon, the sender.
pub const IDENTITY_BYTES_MAX: usize = 320;
/// Bytes of a persona.
pub const INSTRUCTIONS_BYTES_MAX: usize = 32 * 1024;
/// Bytes of the text that a skill adds to the prompt.
pub const PERSONA_OF_SKILL_BYTES_MAX: usize = 2_000;
/// Bytes of the manifests of the tools of one MCP server.
pub const MANIFEST_BYTES_MAX: usize = 64 * 1024;
/// Entries of a list in the payload of a change.
pub const ENTRIES_MAX: usize = 64;
/// Flows of one schedule.
pub const FLOWS_MAX: usize = 4;
/// Directories of the host in one jail.
pub const MOUNTS_MAX: usize = 8;
/// A ceiling of tokens, or of millionths of a currency, on one day.
pub const CEILING_MAX: u64 = 1 << 40;
/// Bytes of the body of one request to a host of the network.
pub const UPLOAD_BYTES_MAX: u64 = 10 * 1024 * 1024;
/// Time from the launch of a sandbox to its hello.
pub const HELLO_MS_MAX: u64 = 10_000;
/// Time that an opener waits for a lock on a queue; after that the open or the statement fails.
pub const LOCK_WAIT_MS_MAX: u64 = 2_000;
