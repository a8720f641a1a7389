//! For authors: lint a directory, pack it, and sign the package.
//!
//! The host never uses it. A package is the same bytes for the same files, on every machine and at every time.

pub mod bundled;
pub mod foreign;
pub mod lint;
pub mod pack;
pub mod sign;

pub use foreign::{Imported, Source, import};
pub use lint::{Finding, Level, lint};
pub use pack::pack;
pub use sign::{KeyPair, SecretKey, generate_key, sign};

#[cfg(test)]
mod tests;
