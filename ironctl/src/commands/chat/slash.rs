//! The parser of a line at the prompt: text for the agent, or a command that begins with a slash.
//!
//! Never passes on an unknown command as text, because the agent would answer it. See [`crate::commands::chat::conversation`].

use super::prompt::{Parts, TypedLine};
use crate::failure::Error;
use ironclaw_text::nearest::nearest;

/// The commands in `/help`, with their descriptions.
pub const COMMANDS: [(&str, &str); 11] = [
    ("/help", "shows these lines"),
    ("/why", "shows each step of the last message"),
    ("/sources", "lists what the last reply rests on"),
    ("/reasoning", "shows or hides the thoughts of the model behind each answer"),
    ("/new [NAME]", "begins a new conversation with the same agent"),
    ("/model [NAME]", "shows the model endpoint of the agent, or sets it"),
    ("/allow +CLASS -- TEXT", "asks for a class of calls too: read write send exec trade"),
    ("/files [DIRECTORY]", "lists the workspace of this conversation, or one directory"),
    ("/usage", "shows the usage of the agent in the last 7 days"),
    ("/inbox [NUMBER]", "asks you to decide on all that waits, or on one"),
    ("/quit", "leaves, as /exit and Ctrl-C at the prompt do"),
];

/// The names of all commands.
const NAMES: [&str; 12] =
    ["help", "allow", "why", "sources", "reasoning", "new", "model", "files", "usage", "inbox", "quit", "exit"];

/// Least similarity of a typed and a suggested name, from 0 to 1.
const SIMILARITY_MIN: f64 = 0.6;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// An empty line.
    Empty,
    /// Text for the agent, with the pasted parts.
    Say(Parts),
    Help,
    /// Explain the last message.
    Why,
    /// List what the last reply rests on.
    Sources,
    /// Show the thoughts of the model behind each answer, or stop that.
    Reasoning,
    /// Begin a new conversation, of this name if one is given.
    New(Option<String>),
    /// Show the model endpoint of the agent, or set the endpoint of this name.
    Model(Option<String>),
    /// List the workspace, or this directory in it.
    Files(Option<String>),
    /// Show the usage of the agent.
    Usage,
    /// Decide about the calls and changes that wait, or about the one with this number.
    Inbox(Option<usize>),
    Quit,
}

/// Parses a line of the prompt. Pasted text at its start is no command, and no part of a declaration.
pub fn read_line(line: &TypedLine) -> Result<Line, Error> {
    let Parts { text, quoted } = line.parts();
    if !line.begins_typed() {
        return Ok(Line::Say(Parts { text, quoted }));
    }
    // A pasted argument of a command is a part of it; in a message it is quoted.
    match read(line.text())? {
        Line::Say(_) => match read(&text)? {
            Line::Say(said) => Ok(Line::Say(Parts { quoted, ..said })),
            other => Ok(other),
        },
        command => Ok(command),
    }
}

/// Parses a line. Two slashes at its start mean a message that starts with one slash. Fails for an unknown command.
fn read(line: &str) -> Result<Line, Error> {
    let text = line.trim();
    if text.is_empty() {
        return Ok(Line::Empty);
    }
    let Some(command) = text.strip_prefix('/') else { return Ok(say(line)) };
    if command.starts_with('/') {
        return Ok(say(command));
    }
    let (name, rest) = command.split_once(char::is_whitespace).unwrap_or((command, ""));
    let rest = rest.trim();
    if name == "allow" {
        // A part of the message: the host reads it.
        return Ok(say(text));
    }
    match (name, rest) {
        ("help", "") => Ok(Line::Help),
        ("why", "") => Ok(Line::Why),
        ("sources", "") => Ok(Line::Sources),
        ("reasoning", "") => Ok(Line::Reasoning),
        ("new", "") => Ok(Line::New(None)),
        ("new", thread) => Ok(Line::New(Some(thread.to_owned()))),
        ("model", "") => Ok(Line::Model(None)),
        ("model", name) => Ok(Line::Model(Some(name.to_owned()))),
        ("files", "") => Ok(Line::Files(None)),
        ("files", directory) => Ok(Line::Files(Some(directory.to_owned()))),
        ("usage", "") => Ok(Line::Usage),
        ("inbox", "") => Ok(Line::Inbox(None)),
        ("inbox", number) => match number.parse() {
            Ok(number) => Ok(Line::Inbox(Some(number))),
            Err(_) => {
                let message =
                    format!("/inbox takes the number of a call or change, and {number} is none; nothing was sent");
                Err(Error::failed("command_unknown", message).hinting("/inbox without a number shows all of them"))
            }
        },
        ("quit" | "exit", "") => Ok(Line::Quit),
        _ => Err(unknown(name)),
    }
}

fn say(text: &str) -> Line {
    Line::Say(Parts { text: text.to_owned(), quoted: Vec::new() })
}

fn unknown(name: &str) -> Error {
    let message = match nearest(name, NAMES.into_iter(), SIMILARITY_MIN) {
        Some(known) if known == name => format!("/{name} takes no argument; nothing was sent"),
        Some(known) => format!("there is no command /{name}: did you mean /{known}? nothing was sent"),
        None => format!("there is no command /{name}; nothing was sent"),
    };
    Error::failed("command_unknown", message)
        .hinting("/help lists the commands; start with two slashes to send a text that starts with one")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_command_is_refused_with_the_nearest_not_sent() {
        for (line, named) in [("/exi", "/exit"), ("/wy", "/why"), ("/halp", "/help"), ("/inbx now", "/inbox")] {
            let report = read(line).expect_err(line).report().expect("reported").error;
            assert_eq!(report.code, "command_unknown");
            assert!(report.message.contains(named), "{line}: {}", report.message);
        }
        for line in
            ["/", "/etc/passwd", "/usage now", "/reasoning on", "/sources all", "/inbox one", "/inbox -1", "/quit now"]
        {
            assert!(read(line).is_err(), "{line}");
        }
    }

    #[test]
    fn line_is_a_command_with_its_argument_or_a_message() {
        for (line, wanted) in [
            ("/inbox 2", Line::Inbox(Some(2))),
            ("/inbox", Line::Inbox(None)),
            ("/model", Line::Model(None)),
            ("/model  openai ", Line::Model(Some("openai".into()))),
            ("/files", Line::Files(None)),
            ("/files my reports ", Line::Files(Some("my reports".into()))),
            ("/usage", Line::Usage),
            ("/reasoning", Line::Reasoning),
            ("/sources", Line::Sources),
            (" /exit ", Line::Quit),
            ("/new work", Line::New(Some("work".into()))),
            ("  ", Line::Empty),
            // Two slashes send a text with one.
            ("//etc/hosts", say("/etc/hosts")),
            ("a /quit", say("a /quit")),
        ] {
            assert_eq!(read(line).expect(line), wanted, "{line}");
        }
        for (usage, does) in COMMANDS {
            assert!(format!("{usage:<18} {does}").len() <= 80, "{usage}");
            let name = usage.trim_start_matches('/').split(' ').next().expect("a name");
            assert!(NAMES.contains(&name), "{usage}");
        }
    }
}
