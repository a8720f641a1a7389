//! Every bound on what crosses the seam, by name.
//!
//! Never a policy: an operator may set less in the configuration, nobody more. Next: `untrusted`.

/// Bytes of the body of a message, an output or a result.
pub const BODY_BYTES_MAX: usize = 256 * 1024;
/// Bytes of a frame of the handshake on the link, without its length prefix.
pub const HANDSHAKE_BYTES_MAX: usize = 4 * 1024;
/// Bytes of a frame on a socket, without its length prefix.
pub const FRAME_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of the content of an outbound row: an action with its payload, or the name of an output.
pub const ROW_BYTES_MAX: usize = 256 * 1024;
/// Rows that may lie undrained in an outbound queue; a sandbox that writes more is out of control.
pub const UNDRAINED_ROWS_MAX: usize = 256;
/// Rows of `processing_ack` and `session_state` that are read; the rest is ignored.
pub const PROGRESS_ROWS_MAX: usize = 64;
/// Refs in one `generate` request.
pub const REFS_MAX: usize = 1024;
/// Items in one answer to `items`; the sandbox asks again for the rest.
pub const ITEMS_MAX: usize = 512;
/// Calls in one model output; a longer list is refused as a whole.
pub const OUTPUT_CALLS_MAX: usize = 16;
/// Bytes of the canonical arguments of one call.
pub const ARGUMENTS_BYTES_MAX: usize = 128 * 1024;
/// Bytes of a reason that somebody gives.
pub const REASON_BYTES_MAX: usize = 2 * 1024;
/// Bytes of an identifier that a platform or an operator chose.
pub const NAME_BYTES_MAX: usize = 256;
/// Bytes of a path or of an address.
pub const PATH_BYTES_MAX: usize = 4 * 1024;
/// Bytes of an identity: its channel, a colon, the sender.
pub const IDENTITY_BYTES_MAX: usize = 320;
/// Bytes of what an agent is told about itself.
pub const INSTRUCTIONS_BYTES_MAX: usize = 32 * 1024;
/// Entries of a list in the payload of a change.
pub const ENTRIES_MAX: usize = 64;
/// Directories of the host in one jail.
pub const MOUNTS_MAX: usize = 8;
/// A ceiling of tokens, or of millionths of a currency, on one day.
pub const CEILING_MAX: u64 = 1 << 40;
/// Options of a question.
pub const OPTIONS_MAX: usize = 16;
/// The hello must come this soon after the launch.
pub const HELLO_MS_MAX: u64 = 10_000;
/// A lock on a queue is waited for this long, then whoever holds it is out of order.
pub const LOCK_WAIT_MS_MAX: u64 = 2_000;
