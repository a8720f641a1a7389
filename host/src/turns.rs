//! The parts of a turn: its messages, items and context, its calls, its budget, the notes that an agent keeps, and what a
//! reply rests on.
//!
//! They are rows of the record, and the rules about these rows. [`crate::runtime`] and [`crate::calls::model_socket`] work on turns.

pub mod budget;
pub mod calls;
pub mod context;
pub mod endpoint_words;
pub mod items;
pub mod memories;
pub mod open_turns;
pub mod rests_on;
pub mod turn;
