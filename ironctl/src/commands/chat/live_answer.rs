//! An answer on the terminal while the model writes it.
//!
//! The streamed words are only a draft: if the final answer differs, it is shown whole. Without a terminal only the final answer is
//! shown. See [`crate::client`] for the events.

use super::print_reply;
use crate::failure::Error;
use crate::output::Output;
use ironclaw_contract::operator::{Draft, MessageView};
use std::io::{self, IsTerminal};

/// The shown part of an answer that the model is writing.
#[derive(Debug)]
pub struct LiveAnswer {
    out: Output,
    /// Start of an answer on the screen, e.g. `assistant> `.
    prefix: String,
    is_live: bool,
    attempt: u32,
    shown: String,
}

impl LiveAnswer {
    /// Creates an empty answer.
    pub fn new(out: Output, prefix: impl Into<String>) -> Self {
        let is_live = !out.is_json() && io::stdout().is_terminal();
        Self { out, prefix: prefix.into(), is_live, attempt: 0, shown: String::new() }
    }

    /// Returns whether streamed words are shown.
    pub fn is_live(&self) -> bool {
        self.is_live
    }

    /// Returns whether the last line has streamed words.
    pub fn has_begun(&self) -> bool {
        !self.shown.is_empty()
    }

    /// Shows more words; another attempt starts on a new line.
    pub fn add(&mut self, draft: &Draft) -> Result<(), Error> {
        if !self.is_live {
            return Ok(());
        }
        if draft.attempt != self.attempt {
            self.end_line()?;
            self.attempt = draft.attempt;
        }
        // A gap would be invisible, so words after a gap are not shown.
        if draft.from != self.shown.len() as u64 {
            return Ok(());
        }
        if self.shown.is_empty() {
            self.out.progress("")?;
            self.out.part(&self.prefix)?;
        }
        self.shown.push_str(&draft.text);
        self.out.part(&draft.text)
    }

    /// Shows the final answer: the missing rest, or the whole if it differs from the streamed words.
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

    /// Ends the line of streamed words.
    pub fn end_line(&mut self) -> Result<(), Error> {
        if !std::mem::take(&mut self.shown).is_empty() {
            self.out.line("")?;
        }
        Ok(())
    }
}
