//! Requests to other machines: which addresses may be reached, clients that check them at the connection, bounded fetches, and waits
//! between tries.
//!
//! Never decides whether a request may be made; the caller does that. See [`reach`] and [`fetch`].

#![forbid(unsafe_code)]
// The crates of this workspace alone read this one, so only what a name does not say is documented.
#![allow(missing_docs)]

mod address;
pub mod backoff;
pub mod client;
pub mod fetch;
pub mod reach;

pub use address::check_url;
pub use client::{client_for, client_for_shown};
