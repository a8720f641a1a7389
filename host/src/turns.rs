//! What a turn is made of: its messages, items and context, its calls, its budget, and the notes that an agent keeps.
//!
//! All of it is rows of the record and rules about them. [`crate::runtime`] and [`crate::model_socket`] work on turns.

pub mod budget;
pub mod calls;
pub mod context;
pub mod items;
pub mod memories;
pub mod turn;
