//! The frozen seam: all types and files that host and sandbox share.
//!
//! A change here needs an entry in `docs/contract.md` first, and both sides in the same commit: two builds that disagree still
//! compile, and then misread each other. Holds no policy: the host alone decides which request is privileged. See
//! [`crate::seam::message`], then `inbound` and `outbound`.

mod bounds;
pub mod change;
#[cfg(feature = "queues")]
pub mod crypt;
pub mod destination;
pub mod egress;
mod field;
pub mod group;
#[cfg(feature = "queues")]
pub mod inbound;
pub mod limits;
pub mod link;
pub mod mcp;
pub mod message;
#[cfg(feature = "queues")]
pub mod outbound;
pub mod permissions;
pub mod schedule;
pub mod schema;
pub mod seal;
pub mod settings;
pub mod skill;
pub mod socket;
pub mod untrusted;
pub mod wiring;

/// Version of every frame and row shape; part of the fingerprint.
pub const WIRE_VERSION: u32 = 6;

/// Returns the SHA-256 over schema, cipher parameters and wire version, 64 hex characters.
///
/// The sandbox states it in its hello, and the host compares: it refuses to launch a sandbox of another build.
pub fn fingerprint() -> String {
    let parts =
        format!("wire={WIRE_VERSION}\n{}\n{}\n{}", schema::CIPHER_PARAMETERS, schema::INBOUND, schema::OUTBOUND);
    crate::canonical::Digest::of(parts.as_bytes()).to_string()
}
