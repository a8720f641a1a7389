//! The provenance of a value: its labels, the spans of a message that its person typed, the values in them, and what agents sent.
//!
//! The only module that mints a label and that finds a typed value. Pure. See [`Provenance`], [`spans`] and [`typed`].

mod labelled;
mod labels;
pub mod sent;
pub mod spans;
pub mod typed;

pub use labelled::Labelled;
pub use labels::{Labels, Provenance};
