//! Runs the built `ironctl` as an operator does: against no host, a fake one, and fake siblings.
//! Never needs a real host, a network or a privilege.
//! Next: the module of the promise that you are looking for.

mod chat;
mod command_line;
mod fake_host;
mod host;
mod inbox;
mod offline;
mod questions;
mod stops;
mod terminal;
