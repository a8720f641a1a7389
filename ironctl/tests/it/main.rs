//! Tests of the built `ironctl` against no host, a fake host and fake binaries.
//!
//! They need no real host, no network and no privilege. See [`fake_host`].

mod chat;
mod command_line;
mod everyday;
mod fake_host;
mod files;
mod foreign_skills;
mod golden;
mod host;
mod inbox;
mod inline;
mod lists;
mod mcp;
mod offline;
mod paste;
mod questions;
mod requests;
mod screens;
mod service;
mod skills;
mod stops;
mod terminal;
mod typed_ahead;
mod waiting;
mod wrapping;
