//! The definitions of the built-in tools for a model: descriptions, and the schemas of the arguments.
//!
//! Never decides which agent has a tool. See [`crate::registry::tools`].

use super::find;
use super::names::{
    ACTIONS, ASK_QUESTION, COMMAND_SECONDS_MAX, FIND_TOOLS, GIT_PUSH, HTTP_FETCH, MANAGE_SCHEDULES, MEMORY,
    NETWORK_COMMAND, QUESTION_OPTIONS_MAX, READ_SKILL, RECALLED_MAX, REMEMBERED_BYTES_MAX, REQUEST_CHANGE, RUN_COMMAND,
    SEND_FILE, SEND_MESSAGE, SKILL_INSTALL, WORKSPACE,
};
use ironclaw_contract::seam::change::ChangeKind;
use ironclaw_contract::seam::limits::{ENTRIES_MAX, REASON_BYTES_MAX};
use ironclaw_store::tables::turns::Runs;
use serde_json::{Value, json};

/// Most results of one `search_files`.
const SEARCH_HITS_MAX: u32 = 200;
/// Default seconds of a command.
const COMMAND_SECONDS_USUAL: u32 = 30;

/// A tool as a model sees it and as the host judges it.
#[derive(Debug, Clone, PartialEq)]
pub struct Tool {
    pub name: &'static str,
    /// Its description, for a model.
    pub description: &'static str,
    /// The place of execution.
    pub runs: Runs,
    /// JSON Schema of its arguments: an object without additional properties at any depth, except in the payload of a change, which has a
    /// schema of its own.
    pub parameters: Value,
}

/// Keywords of a schema that a model does not need: the sandbox and the host check them, and they cost tokens in each request.
pub(super) const CHECKED_KEYWORDS: [&str; 4] = ["additionalProperties", "maxLength", "minLength", "minimum"];

/// The keyword of an argument that the host alone writes: people see it on a page, and no model sees it.
const HOST_WRITES: &str = "readOnly";

impl Tool {
    /// Returns the names of the arguments that the host alone writes.
    pub fn host_arguments(&self) -> impl Iterator<Item = &str> {
        let properties = self.parameters["properties"].as_object().into_iter().flatten();
        properties.filter(|(_, schema)| is_of_host(schema)).map(|(name, _)| name.as_str())
    }

    /// Returns the schema of its arguments as a model gets it: names, types and descriptions of those that a model writes.
    pub fn parameters_for_model(&self) -> Value {
        without_checks(&self.parameters)
    }
}

fn is_of_host(schema: &Value) -> bool {
    schema.get(HOST_WRITES) == Some(&Value::Bool(true))
}

fn without_checks(schema: &Value) -> Value {
    match schema {
        Value::Object(fields) => fields
            .iter()
            .filter(|(name, value)| !CHECKED_KEYWORDS.contains(&name.as_str()) && !is_of_host(value))
            .map(|(name, value)| (name.clone(), without_checks(value)))
            .collect(),
        other => other.clone(),
    }
}

pub(super) fn workspace() -> [Tool; WORKSPACE.len()] {
    let path = || json!({ "type": "string", "minLength": 1 });
    let local = |name, description, required, properties| Tool {
        name,
        description,
        runs: Runs::Local,
        parameters: object(required, properties),
    };
    [
        local(
            "read_file",
            "Reads a text file.",
            &["path"],
            json!({
                "path": path(),
                "offset": { "type": "integer", "minimum": 0, "description": "Bytes to skip." },
                "limit": { "type": "integer", "minimum": 1, "description": "Most bytes." },
            }),
        ),
        local(
            "write_file",
            "Writes a text file, with the directories above it.",
            &["path", "content"],
            json!({
                "path": path(),
                "content": { "type": "string" },
                "append": { "type": "boolean", "description": "Add to the end." },
            }),
        ),
        local("list_dir", "Lists a directory.", &[], json!({ "path": path() })),
        local(
            "search_files",
            "Finds lines in files.",
            &["pattern"],
            json!({
                "pattern": { "type": "string", "minLength": 1, "description": "Regular expression." },
                "path": path(),
                "max": { "type": "integer", "minimum": 1, "maximum": SEARCH_HITS_MAX, "description": "Most lines." },
            }),
        ),
    ]
}

pub(super) fn memory() -> [Tool; MEMORY.len()] {
    let host = |name, description, required, properties| Tool {
        name,
        description,
        runs: Runs::Host,
        parameters: object(required, properties),
    };
    [
        host(
            "remember",
            "Keeps a note for later conversations with anyone.",
            &["text"],
            json!({
                "text": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": REMEMBERED_BYTES_MAX,
                    "description": "The note, complete in itself.",
                },
            }),
        ),
        host(
            "recall",
            "Finds notes by words, best first.",
            &["query"],
            json!({
                "query": { "type": "string", "minLength": 1, "description": "Words." },
                "max": { "type": "integer", "minimum": 1, "maximum": RECALLED_MAX, "description": "Most notes." },
            }),
        ),
    ]
}

pub(super) fn run_command() -> Tool {
    Tool {
        name: RUN_COMMAND,
        description: "Runs a shell command in the workspace with the programs in /usr, and returns its output and exit code. \
            There is no network; nothing outlives the call; /tmp is small and nothing in the workspace can be executed \
            directly, so name the interpreter: sh x.sh, python3 x.py.",
        runs: Runs::Local,
        parameters: object(&["command"], command_arguments(COMMAND_SECONDS_USUAL)),
    }
}

fn command_arguments(seconds_usual: u32) -> Value {
    json!({
        "command": { "type": "string", "minLength": 1, "description": "The command for /bin/sh -c." },
        "timeout_seconds": {
            "type": "integer",
            "minimum": 1,
            "maximum": COMMAND_SECONDS_MAX,
            "description": format!("Time limit in seconds; {seconds_usual} if absent."),
        },
    })
}

pub(super) fn network_command() -> Tool {
    Tool {
        name: NETWORK_COMMAND,
        description: "Runs a shell command as run_command does, and lets it reach the hosts that people granted to your commands. \
            Programs use their usual addresses, by the proxy that https_proxy names. Use run_command for all else: a person may have to \
            approve each network_command.",
        runs: Runs::Await,
        parameters: object(&["command"], command_arguments(COMMAND_SECONDS_MAX)),
    }
}

pub(super) fn git_push() -> Tool {
    let text = |description: &str| json!({ "type": "string", "minLength": 1, "description": description });
    Tool {
        name: GIT_PUSH,
        description: "Pushes commits of a repository in the workspace to one branch of a granted repository. The host reads the commits, a \
            person approves exactly these, and the host sends them. Fetch the branch with network_command before.",
        runs: Runs::Await,
        parameters: object(
            &["url", "branch"],
            json!({
                "url": text("The https address of the repository."),
                "branch": text("The branch that changes, such as main."),
                "directory": text("The repository in the workspace; the workspace itself if absent."),
                "commit": text("The commit; HEAD if absent."),
                "over": host_writes("string", "The commit of the branch before."),
                "commits": host_writes("string", "The commits."),
                "summary": host_writes("string", "The numbers of the changes."),
                "changes": host_writes("string", "The changed files."),
                "diff": host_writes("string", "The digest of the diff."),
            }),
        ),
    }
}

pub(super) fn http_fetch() -> Tool {
    let text = |description: &str| json!({ "type": "string", "description": description });
    let headers = json!({
        "accept": text("Types of content to accept."),
        "content-type": text("Type of the body."),
        "if-match": text("Version that a change is for."),
        "if-modified-since": text("Time of the known version."),
        "if-none-match": text("The known version."),
        "range": text("Part of the page."),
    });
    let mut headers = object(&[], headers);
    headers["description"] = "Headers; the host sets all others.".into();
    Tool {
        name: HTTP_FETCH,
        description: "Asks a granted host of the network for a page, or sends data to it. The host of this machine sends the request, \
            follows no redirect, and adds the secret of the grant.",
        runs: Runs::Await,
        parameters: object(
            &["url"],
            json!({
                "method": { "type": "string", "enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"], "description": "GET if absent." },
                "url": { "type": "string", "minLength": 1, "description": "The whole address." },
                "headers": headers,
                "body": { "type": "string", "description": "For POST, PUT and PATCH." },
            }),
        ),
    }
}

pub(super) fn find_tools() -> Tool {
    Tool {
        name: FIND_TOOLS,
        description: "Finds your tools of MCP servers by words about what you need, the best first, with their arguments. Then call \
            the tool by its name.",
        runs: Runs::Host,
        parameters: object(
            &["query"],
            json!({
                "query": { "type": "string", "minLength": 1, "description": "Words, such as: send letter." },
                "max": { "type": "integer", "minimum": 1, "maximum": find::FOUND_MAX, "description": "Most tools." },
            }),
        ),
    }
}

pub(super) fn read_skill() -> Tool {
    Tool {
        name: READ_SKILL,
        description: "Reads a text of one of your skills: SKILL.md, or a file of references that it names.",
        runs: Runs::Host,
        parameters: object(
            &["skill"],
            json!({
                "skill": { "type": "string", "minLength": 1, "description": "Name of the skill." },
                "path": { "type": "string", "minLength": 1, "description": "The file; SKILL.md if absent." },
            }),
        ),
    }
}

/// Returns the fields of a kind's payload for a model; `?` marks an optional one. `None` for a kind that no agent may propose.
///
/// Without the quotes of JSON, because a quote in a description costs two characters of each request.
pub(super) const fn payload(kind: ChangeKind) -> Option<&'static str> {
    Some(match kind {
        ChangeKind::Persona => "{instructions}",
        ChangeKind::EnabledTools => "{add?,remove?:[names]}|[all names]",
        ChangeKind::Packages => "{apt,npm:[all names]}",
        ChangeKind::Wiring => "{channel,engage:all|pattern|none,pattern?}",
        ChangeKind::Permissions => {
            "{access?:everyone|members,grant?:[{identity,role:admin|member}],revoke?:[identities]}"
        }
        ChangeKind::Mounts => "[all {source,target?,read_only?}]",
        ChangeKind::CreateAgent => "{name,persona?,enabled_tools?,members?,wirings?}",
        ChangeKind::McpAccess => "{server,tools?}",
        ChangeKind::McpRegister => "{name,url,headers?:[{name,secret}]} or {name,command}",
        ChangeKind::Egress => "{host,methods,paths?}",
        ChangeKind::Destinations => "{name,channel,address}|{name,agent}",
        ChangeKind::McpConfirm
        | ChangeKind::Settings
        | ChangeKind::Schedule
        | ChangeKind::Groups
        | ChangeKind::Skills => return None,
    })
}

/// Returns the descriptions of the payloads of all kinds.
fn payloads() -> String {
    let told = ChangeKind::ALL.iter().filter_map(|kind| payload(*kind).map(|payload| format!("{kind} {payload}")));
    told.chain([format!("{SKILL_INSTALL} {{skill,version}}")]).collect::<Vec<_>>().join("; ")
}

/// Returns the tools for actions. The arguments of an action are its JSON in the contract without `action`.
pub(super) fn actions() -> [Tool; ACTIONS.len()] {
    [schedule_task(), ask_user_question(), skill_install(), request_change()]
}

fn row(name: &'static str, description: &'static str, required: &[&str], properties: Value) -> Tool {
    Tool { name, description, runs: Runs::Row, parameters: object(required, properties) }
}

fn reason() -> Value {
    json!({ "type": "string", "maxLength": REASON_BYTES_MAX, "description": "For the person who decides." })
}

fn schedule_task() -> Tool {
    row(
        "schedule_task",
        "Asks for a schedule: you get the prompt at one time (run_at), repeatedly (recurrence), or both. A person decides.",
        &["prompt"],
        json!({
            "prompt": { "type": "string", "minLength": 1, "description": "The prompt that you get, complete in itself." },
            "run_at": { "type": "string", "description": "One time, or with recurrence the first time: RFC 3339, or a local time of the zone." },
            "recurrence": { "type": "string", "description": "hourly, daily, 90m, 2d or a cron expression of five fields." },
            "zone": { "type": "string", "description": "Time zone, such as Europe/Berlin." },
            "may": {
                "type": "array",
                "maxItems": ENTRIES_MAX,
                "items": { "type": "string", "minLength": 1 },
                "description": "Tools and classes (write, send, exec) that a run needs beside reading.",
            },
        }),
    )
}

pub(super) fn schedule_manage() -> Tool {
    Tool {
        name: MANAGE_SCHEDULES,
        description: "Lists the schedules that you asked for, or pauses, resumes or removes one. Ask for a new one with schedule_task.",
        runs: Runs::Host,
        parameters: object(
            &["verb"],
            json!({
                "verb": { "type": "string", "enum": ["list", "pause", "resume", "remove"], "description": "What to do." },
                "id": { "type": "string", "description": "The schedule, by its id or name; for all but list." },
            }),
        ),
    }
}

fn ask_user_question() -> Tool {
    row(
        ASK_QUESTION,
        "Asks the person a question when you cannot go on without their choice. The answer comes as a later message.",
        &["question"],
        json!({
            "question": { "type": "string", "minLength": 1, "description": "The question." },
            "options": {
                "type": "array",
                "maxItems": QUESTION_OPTIONS_MAX,
                "items": { "type": "string", "minLength": 1 },
                "description": "Short answers to choose from.",
            },
            "allow_freeform": { "type": "boolean", "description": "True if the person may type another answer." },
        }),
    )
}

fn skill_install() -> Tool {
    let mut skill = object(
        &["skill", "version"],
        json!({
            "skill": { "type": "string", "minLength": 1, "description": "Name of the skill." },
            "version": { "type": "string", "minLength": 1, "description": "Its version, or latest." },
        }),
    );
    skill["description"] = "The skill. The host looks up its content itself.".into();
    row(
        SKILL_INSTALL,
        "Proposes to install a skill by name. A person sees its content and decides.",
        &["payload"],
        json!({ "payload": skill, "reason": reason() }),
    )
}

fn request_change() -> Tool {
    let kinds: Vec<_> = ChangeKind::for_agents().map(ChangeKind::name).chain([SKILL_INSTALL]).collect();
    row(
        REQUEST_CHANGE,
        "Proposes a change of you. A person decides.",
        &["kind", "payload", "reason"],
        json!({
            "kind": { "type": "string", "enum": kinds },
            "payload": { "type": ["object", "array"], "description": payloads() },
            "reason": reason(),
        }),
    )
}

pub(super) fn send_message() -> Tool {
    Tool {
        name: SEND_MESSAGE,
        description: "Sends a message to one of your destinations, beside your answer in this conversation.",
        runs: Runs::Await,
        parameters: object(
            &["to", "text"],
            json!({
                "to": { "type": "string", "minLength": 1, "description": "Name of the destination." },
                "text": { "type": "string", "minLength": 1, "description": "The message." },
                "recipient": host_writes("string", "The address."),
                "thread": host_writes("string", "The thread of the address."),
            }),
        ),
    }
}

pub(super) fn send_file() -> Tool {
    let text = |description: &str| json!({ "type": "string", "minLength": 1, "description": description });
    Tool {
        name: SEND_FILE,
        description: "Sends a file of the workspace into this conversation, or to one of your destinations. The host copies it now; a \
            person decides about the copy.",
        runs: Runs::Await,
        parameters: object(
            &["path"],
            json!({
                "path": { "type": "string", "minLength": 1 },
                "to": text("Name of the destination; this conversation if absent."),
                "text": text("Words beside the file."),
                "recipient": host_writes("string", "The address."),
                "thread": host_writes("string", "The thread of the address."),
                "name": host_writes("string", "The name of the file."),
                "type": host_writes("string", "Its type."),
                "size": host_writes("integer", "Its size."),
                "digest": host_writes("string", "Its digest."),
            }),
        ),
    }
}

/// Returns the schema of an argument that the host alone writes.
fn host_writes(kind: &str, description: &str) -> Value {
    json!({ "type": kind, "description": description, HOST_WRITES: true })
}

fn object(required: &[&str], properties: Value) -> Value {
    json!({ "type": "object", "properties": properties, "required": required, "additionalProperties": false })
}
