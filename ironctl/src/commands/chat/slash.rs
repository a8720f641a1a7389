//! Meaning of a line at the prompt: words for the agent, or one of the commands that begin with a slash.
//!
//! Never sends an unknown command to the agent: it would be answered as if it were said. See
//! [`crate::commands::chat::conversation`], which does it.

use crate::failure::Error;
use crate::nearest::nearest;

/// Names that are shown in `/help`, and what they do.
pub const COMMANDS: [(&str, &str); 5] = [
    ("/help", "shows these lines"),
    ("/why", "explains what became of the last message"),
    ("/new [NAME]", "begins a new conversation with the same agent"),
    ("/inbox", "shows the changes that wait for you, and asks"),
    ("/quit", "leaves, as /exit and Ctrl-C at the prompt do"),
];

/// Every name that is taken.
const NAMES: [&str; 6] = ["help", "why", "new", "inbox", "quit", "exit"];

/// Least likeness between a word and a name for the name to be suggested, from 0 to 1.
const LIKENESS_MIN: f64 = 0.6;

/// Meaning of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// Nothing was typed.
    Empty,
    /// Words for the agent.
    Say(String),
    /// Show the commands.
    Help,
    /// Explain the last message.
    Why,
    /// Begin a new conversation, of this name if one is given.
    New(Option<String>),
    /// Go through what waits for a decision.
    Inbox,
    /// Leave.
    Quit,
}

/// Reads a line; two slashes at its beginning mean a message that begins with one slash.
///
/// # Errors
/// An unknown command, with the nearest one.
pub fn read(line: &str) -> Result<Line, Error> {
    let text = line.trim();
    if text.is_empty() {
        return Ok(Line::Empty);
    }
    let Some(command) = text.strip_prefix('/') else { return Ok(Line::Say(line.to_owned())) };
    if command.starts_with('/') {
        return Ok(Line::Say(command.to_owned()));
    }
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let rest = rest.trim();
    match (name, rest) {
        ("help", "") => Ok(Line::Help),
        ("why", "") => Ok(Line::Why),
        ("new", "") => Ok(Line::New(None)),
        ("new", thread) => Ok(Line::New(Some(thread.to_owned()))),
        ("inbox", "") => Ok(Line::Inbox),
        ("quit" | "exit", "") => Ok(Line::Quit),
        _ => Err(unknown(name)),
    }
}

fn unknown(name: &str) -> Error {
    let message = match nearest(name, NAMES.into_iter(), LIKENESS_MIN) {
        Some(known) if known == name => format!("/{name} takes no words behind it; nothing was sent"),
        Some(known) => format!("there is no command /{name}: did you mean /{known}? nothing was sent"),
        None => format!("there is no command /{name}; nothing was sent"),
    };
    Error::failed("command_unknown", message)
        .hinting("/help lists the commands; begin with two slashes to say something that begins with one")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_command_is_refused_with_the_nearest_and_not_said() {
        for (line, named) in [("/exi", "/exit"), ("/wy", "/why"), ("/halp", "/help"), ("/inbx now", "/inbox")] {
            let told = read(line).expect_err(line).told().expect("told").error;
            assert_eq!(told.code, "command_unknown");
            assert!(told.message.contains(named), "{line}: {}", told.message);
        }
        for line in ["/", "/etc/passwd", "/model", "/quit now"] {
            assert!(read(line).is_err(), "{line}");
        }
    }

    #[test]
    fn two_slashes_say_what_begins_with_one() {
        assert_eq!(read("//etc/hosts").expect("words"), Line::Say("/etc/hosts".into()));
        assert_eq!(read("a /quit").expect("words"), Line::Say("a /quit".into()));
        assert_eq!(read(" /exit ").expect("a command"), Line::Quit);
        assert_eq!(read("/new work").expect("a command"), Line::New(Some("work".into())));
        assert_eq!(read("  ").expect("nothing"), Line::Empty);
    }
}
