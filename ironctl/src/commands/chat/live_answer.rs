//! An answer on the terminal while the model writes it.
//!
//! The streamed words are only a draft: if the final answer differs, it is shown whole. An interrupted answer stays on the screen, with a
//! line that says why. Without a terminal only the final answer is shown. See [`crate::client`] for the events.

use super::final_answer::print_reply;
use crate::failure::Error;
use crate::output::Output;
use crate::output::flow::Flow;
use ironclaw_operator::{Draft, MessageView};
use std::io::{self, IsTerminal};

/// The shown part of an answer that the model is writing.
#[derive(Debug)]
pub struct LiveAnswer {
    out: Output,
    /// Start of an answer on the screen, e.g. `assistant> `.
    prefix: String,
    is_live: bool,
    /// The open line.
    flow: Flow,
    attempt: u32,
    /// The words of this attempt.
    shown: String,
    /// True if the last line has words and no end.
    is_open: bool,
    /// True if the host recorded the output of this attempt, so that no word of it is missing.
    is_whole: bool,
}

impl LiveAnswer {
    /// Creates an empty answer.
    pub fn new(out: Output, prefix: impl Into<String>) -> Self {
        let is_live = !out.is_json() && io::stdout().is_terminal();
        let (prefix, shown) = (prefix.into(), String::new());
        Self { out, prefix, is_live, flow: Flow::default(), attempt: 0, shown, is_open: false, is_whole: false }
    }

    /// Returns whether streamed words are shown.
    pub fn is_live(&self) -> bool {
        self.is_live
    }

    /// Returns whether the last line has streamed words.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Shows more words; another attempt starts on a new line.
    pub fn add(&mut self, draft: &Draft) -> Result<(), Error> {
        if !self.is_live {
            return Ok(());
        }
        if draft.attempt != self.attempt {
            self.interrupt("the host asks the model again")?;
            self.attempt = draft.attempt;
            self.shown.clear();
            self.is_whole = false;
        }
        // A gap would be invisible, so words after a gap are not shown.
        if draft.from != self.shown.len() as u64 {
            return Ok(());
        }
        if !self.is_open {
            self.flow.add(self.out, &self.prefix)?;
            self.is_open = true;
        }
        self.shown.push_str(&draft.text);
        self.flow.add(self.out, &draft.text)
    }

    /// Notes that the host recorded the output of this attempt.
    pub fn sealed(&mut self) {
        self.is_whole = true;
    }

    /// Shows the final answer: the missing rest, or the whole if it differs from the streamed words.
    pub fn finish(&mut self, view: &MessageView) -> Result<(), Error> {
        let reply = view.reply.as_deref().unwrap_or_default();
        if view.notice {
            self.interrupt("no more of this answer came")?;
            return print_reply(self.out, view);
        }
        let rest = reply.strip_prefix(self.shown.as_str()).filter(|_| self.is_open);
        if let Some(rest) = rest {
            self.is_open = false;
            self.flow.add(self.out, rest)?;
            return self.flow.end(self.out);
        }
        self.end_line()?;
        self.out.line(format!("{}{reply}", self.prefix))
    }

    /// Ends the line of streamed words, and says why the answer ends there if words are missing.
    pub fn interrupt(&mut self, why: &str) -> Result<(), Error> {
        let is_cut = self.is_open && !self.is_whole;
        self.end_line()?;
        if is_cut { self.out.remark(format!("(interrupted: {why})")) } else { Ok(()) }
    }

    /// Ends the line of streamed words.
    pub fn end_line(&mut self) -> Result<(), Error> {
        if std::mem::take(&mut self.is_open) { self.flow.end(self.out) } else { Ok(()) }
    }
}
