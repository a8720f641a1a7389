//! An answer as it is being made: its words on a terminal as they come, and the whole of it in the end.
//!
//! Never takes them for the answer: where that differs, it is shown whole. Elsewhere than on a terminal nothing is shown before
//! it. See `ironctl::client` for where they come from.

use super::print_reply;
use crate::failure::Error;
use crate::output::Output;
use ironclaw_contract::operator::{Draft, MessageView};
use std::io::{self, IsTerminal};

/// The shown part of an answer that is being made.
#[derive(Debug)]
pub struct Words {
    out: Output,
    /// Beginning of an answer on the screen, e.g. `assistant> `.
    prefix: String,
    is_live: bool,
    attempt: u32,
    shown: String,
}

impl Words {
    /// Makes it without any words.
    pub fn new(out: Output, prefix: impl Into<String>) -> Self {
        let is_live = !out.is_json() && io::stdout().is_terminal();
        Self { out, prefix: prefix.into(), is_live, attempt: 0, shown: String::new() }
    }

    /// Returns whether words are shown as they come.
    pub fn is_live(&self) -> bool {
        self.is_live
    }

    /// Returns whether there are any on the last line.
    pub fn has_begun(&self) -> bool {
        !self.shown.is_empty()
    }

    /// Shows more words; a further try begins on a line of its own.
    pub fn more(&mut self, draft: &Draft) -> Result<(), Error> {
        if !self.is_live {
            return Ok(());
        }
        if draft.attempt != self.attempt {
            self.end_line()?;
            self.attempt = draft.attempt;
        }
        // Words that do not follow on those on the screen would be read as if they did.
        if draft.from != self.shown.len() as u64 {
            return Ok(());
        }
        if self.shown.is_empty() {
            self.out.progress("")?;
            self.out.words(&self.prefix)?;
        }
        self.shown.push_str(&draft.text);
        self.out.words(&draft.text)
    }

    /// Shows the answer that counts: what is missing of it, or the whole.
    pub fn finish(mut self, view: &MessageView) -> Result<(), Error> {
        let reply = view.reply.as_deref().unwrap_or_default();
        if view.notice {
            self.end_line()?;
            return print_reply(self.out, view);
        }
        match reply.strip_prefix(self.shown.as_str()).filter(|_| self.has_begun()) {
            Some(rest) => self.out.line(rest),
            None => {
                self.end_line()?;
                self.out.line(format!("{}{reply}", self.prefix))
            }
        }
    }

    /// Ends the line: the shown words stay, and are not continued.
    pub fn end_line(&mut self) -> Result<(), Error> {
        if !std::mem::take(&mut self.shown).is_empty() {
            self.out.line("")?;
        }
        Ok(())
    }
}
