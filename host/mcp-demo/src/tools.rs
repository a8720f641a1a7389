//! The tools of the server: their listing and their calls.
//!
//! Each answer is one text. See [`crate::directory`] and [`crate::state`].

use crate::directory::Directory;
use crate::state::{Mail, State};
use serde_json::{Map, Value, json};

/// A tool as the server lists it.
#[derive(Debug, Clone, Copy)]
struct Tool {
    name: &'static str,
    description: &'static str,
    /// Name and meaning of each argument. All are texts, and none can be left out.
    arguments: &'static [(&'static str, &'static str)],
}

const TOOLS: [Tool; 5] = [
    Tool {
        name: "list_files",
        description: "Lists the files of the directory with their sizes in bytes.",
        arguments: &[],
    },
    Tool {
        name: "read_file",
        description: "Reads a text file of the directory.",
        arguments: &[("name", "Name of the file, without a path")],
    },
    Tool { name: "count", description: "Adds one to a counter and returns its value.", arguments: &[] },
    Tool {
        name: "send_mail",
        description: "Writes a mail into the mailbox of this server. No mail leaves the machine.",
        arguments: &[("to", "Address of the recipient"), ("subject", "Subject"), ("text", "Text of the mail")],
    },
    Tool { name: "read_mailbox", description: "Reads the newest mails of the mailbox.", arguments: &[] },
];

/// The reason why a call has no answer.
#[derive(Debug, PartialEq, Eq)]
pub enum Failure {
    /// There is no such tool.
    Unknown,
    /// The call is refused or failed, in words for the model.
    Refused(String),
}

impl From<String> for Failure {
    fn from(why: String) -> Self {
        Self::Refused(why)
    }
}

/// The tools with the directories that they use.
#[derive(Debug)]
pub struct Tools {
    /// The files that they read.
    pub files: Directory,
    /// The counter and the mailbox.
    pub state: State,
}

impl Tools {
    /// Returns each tool as `tools/list` shows it.
    pub fn listed() -> Vec<Value> {
        TOOLS.into_iter().map(listed).collect()
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// An unknown tool, arguments that it does not take, and a file that cannot be read or written.
    pub fn call(&self, name: &str, arguments: &Map<String, Value>) -> Result<String, Failure> {
        let Tool { name, arguments: wanted, .. } =
            TOOLS.into_iter().find(|tool| tool.name == name).ok_or(Failure::Unknown)?;
        if let Some(other) = arguments.keys().find(|given| wanted.iter().all(|(argument, _)| argument != given)) {
            return Err(Failure::Refused(format!("{name} has no argument {other:?}: leave it out")));
        }
        let text = |argument: &str| {
            let value = arguments.get(argument).and_then(Value::as_str);
            value.ok_or_else(|| Failure::Refused(format!("{name} needs the argument {argument:?}, a text")))
        };
        Ok(match name {
            "list_files" => self.files.list()?,
            "read_file" => self.files.read(text("name")?)?,
            "count" => self.state.count()?.to_string(),
            "send_mail" => {
                let mail = Mail { to: text("to")?, subject: text("subject")?, text: text("text")? };
                self.state.send(&mail)?;
                "the mail is in the mailbox of this server; it was not sent to another machine".to_owned()
            }
            "read_mailbox" => self.state.mailbox()?,
            _ => return Err(Failure::Unknown),
        })
    }
}

fn listed(Tool { name, description, arguments }: Tool) -> Value {
    let property = |(argument, meaning): &(&str, &str)| {
        ((*argument).to_owned(), json!({ "type": "string", "description": meaning }))
    };
    let properties: Map<String, Value> = arguments.iter().map(property).collect();
    let required: Vec<&str> = arguments.iter().map(|(argument, _)| *argument).collect();
    let schema = json!({
        "type": "object", "properties": properties, "required": required, "additionalProperties": false
    });
    json!({ "name": name, "description": description, "inputSchema": schema })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools(directory: &tempfile::TempDir) -> Tools {
        let path = |name: &str| {
            let path = directory.path().join(name);
            std::fs::create_dir_all(&path).expect("made");
            path
        };
        Tools { files: Directory::new(path("files")), state: State::new(path("state")) }
    }

    fn call(tools: &Tools, name: &str, arguments: Value) -> Result<String, Failure> {
        tools.call(name, arguments.as_object().expect("an object"))
    }

    #[test]
    fn each_listed_tool_can_be_called() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let tools = tools(&directory);
        std::fs::write(directory.path().join("files/x"), "text").expect("written");
        for tool in Tools::listed() {
            let required = tool["inputSchema"]["required"].as_array().expect("a list");
            let arguments: Map<String, Value> =
                required.iter().map(|name| (name.as_str().expect("a name").to_owned(), json!("x"))).collect();
            let name = tool["name"].as_str().expect("a name");
            assert!(tools.call(name, &arguments).is_ok(), "{name}");
            assert_eq!(tool["inputSchema"]["type"], "object");
        }
        assert_eq!(call(&tools, "format_disk", json!({})), Err(Failure::Unknown));
    }

    #[test]
    fn missing_and_unknown_arguments_are_named() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let tools = tools(&directory);
        for (name, arguments, word) in [
            ("read_file", json!({}), "name"),
            ("read_file", json!({ "name": 3 }), "name"),
            ("count", json!({ "by": "2" }), "by"),
            ("send_mail", json!({ "to": "a", "text": "b" }), "subject"),
        ] {
            let Err(Failure::Refused(why)) = call(&tools, name, arguments) else { panic!("{name}") };
            assert!(why.contains(word), "{name}: {why}");
        }
        assert_eq!(call(&tools, "count", json!({})), Ok("1".to_owned()), "a refused call counts nothing");
        assert_eq!(call(&tools, "read_mailbox", json!({})), Ok("the mailbox is empty".to_owned()));
    }
}
