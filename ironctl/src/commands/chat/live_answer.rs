//! An answer on the terminal while the model writes it.
//!
//! The streamed words are only a draft: if the final answer differs, it is shown whole. Words from the first URL or mark on wait for the
//! host, which knows their origin. An interrupted answer stays on the screen, with a line that says why. Without a terminal only the
//! final answer is shown. See [`crate::client`] for the events.

use super::final_answer::{print_remarks, print_reply, shown};
use crate::failure::Error;
use crate::output::Output;
use crate::output::flow::Flow;
use ironclaw_operator::{Draft, MessageView};
use ironclaw_text::urls;
use std::io::{self, IsTerminal};

/// The marks of a model at its claims. The host knows if a result is behind the answer.
const MARKS: [&str; 4] = ["[G]", "[g]", "[I]", "[i]"];

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
    /// The number of bytes of this attempt that came.
    received: u64,
    /// The words of this attempt on the screen.
    shown: String,
    /// The words of this attempt that wait for their end, or for the host.
    held: String,
    /// True if they wait for the host.
    is_held: bool,
    /// True if the last line has words and no end.
    is_open: bool,
    /// True if the host recorded the output of this attempt, so that no word of it is missing.
    is_whole: bool,
}

impl LiveAnswer {
    /// Creates an empty answer.
    pub fn new(out: Output, prefix: impl Into<String>) -> Self {
        let is_live = !out.is_json() && io::stdout().is_terminal();
        Self {
            out,
            prefix: prefix.into(),
            is_live,
            flow: Flow::default(),
            attempt: 0,
            received: 0,
            shown: String::new(),
            held: String::new(),
            is_held: false,
            is_open: false,
            is_whole: false,
        }
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
            (self.received, self.is_held, self.is_whole) = (0, false, false);
        }
        // A gap would be invisible, so words after a gap are not shown.
        if draft.from != self.received {
            return Ok(());
        }
        if !self.is_open {
            self.flow.add(self.out, &self.prefix)?;
            self.is_open = true;
        }
        self.received += draft.text.len() as u64;
        self.held.push_str(&draft.text);
        if self.is_held {
            return Ok(());
        }
        let Ready { bytes, is_held } = ready(&self.held);
        self.is_held = is_held;
        let ready: String = self.held.drain(..bytes).collect();
        self.flow.add(self.out, &ready)?;
        self.shown.push_str(&ready);
        Ok(())
    }

    /// Notes that the host recorded the output of this attempt, and shows its last word.
    pub fn sealed(&mut self) -> Result<(), Error> {
        self.is_whole = true;
        if self.is_held || !self.is_open {
            return Ok(());
        }
        let last = std::mem::take(&mut self.held);
        self.flow.add(self.out, &last)?;
        self.shown.push_str(&last);
        Ok(())
    }

    /// Shows the final answer: the missing rest, or the whole if it differs from the streamed words.
    pub fn finish(&mut self, view: &MessageView) -> Result<(), Error> {
        let reply = shown(view);
        if view.notice {
            self.interrupt("no more of this answer came")?;
            return print_reply(self.out, view);
        }
        let rest = reply.strip_prefix(self.shown.as_str()).filter(|_| self.is_open);
        if let Some(rest) = rest {
            self.is_open = false;
            self.flow.add(self.out, rest)?;
            self.flow.end(self.out)?;
            return print_remarks(self.out, view);
        }
        self.held.clear();
        self.end_line()?;
        self.out.line(format!("{}{reply}", self.prefix))?;
        print_remarks(self.out, view)
    }

    /// Ends the line of streamed words, and says why the answer ends there if words are missing.
    pub fn interrupt(&mut self, why: &str) -> Result<(), Error> {
        let is_cut = self.is_open && !self.is_whole;
        self.end_line()?;
        if is_cut { self.out.remark(format!("(interrupted: {why})")) } else { Ok(()) }
    }

    /// Ends the line of streamed words. The host says nothing about the URLs of such words, so none of them is a link.
    pub fn end_line(&mut self) -> Result<(), Error> {
        let held = std::mem::take(&mut self.held);
        if !std::mem::take(&mut self.is_open) {
            return Ok(());
        }
        self.flow.add(self.out, &urls::with_inert(&held, |_| true))?;
        self.flow.end(self.out)
    }
}

/// The part of the held words that can be shown.
#[derive(Debug, PartialEq, Eq)]
struct Ready {
    bytes: usize,
    /// True if the rest begins with a URL or a mark, which waits for the host.
    is_held: bool,
}

/// Returns the part of held words in front of the first URL or mark, and of a word that may become one.
fn ready(held: &str) -> Ready {
    let url = urls::find(held).first().map(|range| range.start);
    let mark = MARKS.iter().filter_map(|mark| held.find(mark)).min();
    if let Some(bytes) = url.into_iter().chain(mark).min() {
        return Ready { bytes, is_held: true };
    }
    let may_begin = |byte: &u8| byte.is_ascii_alphanumeric() || b"+.-:/[".contains(byte);
    let open = held.as_bytes().iter().rev().take_while(|byte| may_begin(byte)).count();
    Ready { bytes: held.len() - open, is_held: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_wait_from_the_first_url_or_mark_on() {
        for (held, shown, is_held) in [
            ("hello wor", "hello ", false),
            ("hello, ", "hello, ", false),
            ("see https", "see ", false),
            ("see https://a.example/x and more ", "see ", true),
            ("see www.a", "see ", true),
            ("it is so [", "it is so ", false),
            ("it is so [G] and ", "it is so ", true),
            ("天气好", "天气好", false),
        ] {
            assert_eq!(ready(held), Ready { bytes: shown.len(), is_held }, "{held}");
        }
    }
}
