//! The class and the rules that fit the definition of a tool of an MCP server, for a person to confirm.
//!
//! A proposal permits nothing: its manifest holds once people confirm it, and each part that is looser than the strictest manifest has its
//! reason for their page. A server can choose any name, schema and hint, so a proposal is at its loosest what a name says, and the
//! values of a reading tool that leave this machine are outward. A template knows more, for a definition that people read. See
//! [`super::template`].

use super::server::{Loosening, loosenings};
use super::template::Template;
use super::{Argument, InputType, Manifest, Rule};
use crate::class::Class;
use serde_json::Value;

/// Words in the name of a tool that only reads.
const READS: [&str; 14] = [
    "describe", "diff", "fetch", "find", "get", "info", "list", "lookup", "ls", "read", "search", "show", "status",
    "tree",
];

/// Words in the name of a tool that changes something of its own.
const WRITES: [&str; 14] = [
    "add", "append", "copy", "create", "edit", "insert", "make", "mark", "move", "rename", "save", "set", "update",
    "write",
];

/// Words in the name of a tool that starts programs.
const RUNS: [&str; 8] = ["eval", "exec", "execute", "install", "kill", "run", "shell", "spawn"];

/// Words in the name of a tool that moves money or goods.
const TRADES: [&str; 16] = [
    "book", "buy", "donate", "donation", "funds", "money", "order", "pay", "payment", "payments", "payout", "purchase",
    "refund", "sell", "trade", "transfer",
];

/// Words in the name of a tool that tells others, or that takes something away: it keeps the strictest class.
const STRICT: [&str; 17] = [
    "clear", "delete", "destroy", "drop", "forward", "invite", "notify", "post", "publish", "purge", "push", "remove",
    "reply", "reset", "revoke", "send", "upload",
];

/// Words in the names of arguments with the type of value that they take.
const TYPES: [(&str, InputType); 31] = [
    ("account", InputType::Account),
    ("amount", InputType::Amount),
    ("assignee", InputType::Name),
    ("bcc", InputType::Email),
    ("cc", InputType::Email),
    ("channel", InputType::Name),
    ("date", InputType::Date),
    ("deadline", InputType::Date),
    ("directory", InputType::Path),
    ("email", InputType::Email),
    ("end", InputType::Date),
    ("file", InputType::Path),
    ("filename", InputType::Path),
    ("folder", InputType::Path),
    ("iban", InputType::Account),
    ("link", InputType::Url),
    ("owner", InputType::Name),
    ("path", InputType::Path),
    ("payee", InputType::Account),
    ("phone", InputType::Phone),
    ("price", InputType::Amount),
    ("recipient", InputType::Email),
    ("recipients", InputType::Email),
    ("repo", InputType::Name),
    ("repository", InputType::Name),
    ("since", InputType::Date),
    ("start", InputType::Date),
    ("to", InputType::Email),
    ("until", InputType::Date),
    ("url", InputType::Url),
    ("user", InputType::Name),
];

/// Words in the names of arguments with the content of a call.
const CONTENT: [&str; 10] =
    ["body", "comment", "content", "contents", "description", "html", "markdown", "message", "note", "text"];

/// Words in the names of numbers that only bound an answer.
const BOUNDS: [&str; 14] = [
    "count", "depth", "first", "head", "height", "last", "limit", "lines", "max", "offset", "page", "size", "tail",
    "width",
];

/// Words in the names of arguments that name something at the server, or narrow a list of it.
const NAMES: [&str; 44] = [
    "account",
    "board",
    "branch",
    "calendar",
    "category",
    "channel",
    "commit",
    "cursor",
    "database",
    "date",
    "day",
    "end",
    "event",
    "field",
    "fields",
    "file",
    "folder",
    "from",
    "group",
    "guid",
    "id",
    "ids",
    "issue",
    "key",
    "kind",
    "label",
    "list",
    "name",
    "number",
    "order",
    "owner",
    "path",
    "project",
    "ref",
    "repo",
    "repository",
    "since",
    "sort",
    "start",
    "state",
    "status",
    "table",
    "thread",
    "until",
];

/// Words in the names of arguments that may carry any text to the server, whatever the other words are.
const TEXTS: [&str; 15] = [
    "address", "body", "code", "content", "filter", "input", "link", "message", "prompt", "query", "search", "sql",
    "text", "uri", "url",
];

/// The surroundings of a server, which decide if its arguments leave this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Surroundings {
    /// It reaches nothing outside of its jail.
    Jail,
    /// It has a credential of its people, so it acts on an account of them.
    Account,
    /// It reaches a network without a credential: its operator is a third party.
    Public,
}

/// A manifest for a person to confirm.
#[derive(Debug, Clone, PartialEq)]
pub struct Proposal {
    pub manifest: Manifest,
    /// Why each part is looser than in the strictest manifest.
    pub reasons: Vec<Reason>,
}

/// The reason of one looser part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reason {
    pub part: Loosening,
    pub because: String,
}

/// Proposes a manifest for a tool: `strict` is its strictest one, and `entry` its entry in the listing. `template` is
/// that of its server: if it knows the definition of the tool, its rules are the proposal.
pub fn propose(strict: &Manifest, entry: &Value, surroundings: Surroundings, template: Option<&Template>) -> Proposal {
    let has_network = surroundings != Surroundings::Jail;
    if let Some((template, manifest)) = template.and_then(|template| Some((template, template.manifest(entry)?))) {
        return from_template(strict, manifest, has_network, template.name());
    }
    let tool = entry["name"].as_str().unwrap_or_default();
    let (class, why_class) = class_of(tool, &entry["annotations"], has_network);
    let mut manifest = Manifest { class, ..strict.clone() };
    let mut reasons = vec![Reason { part: Loosening::Class(class), because: why_class }];
    let properties = &entry["inputSchema"]["properties"];
    for (name, argument) in &mut manifest.arguments {
        let (proposed, because) = argument_of(name, &properties[name], class, surroundings);
        reasons.push(Reason { part: Loosening::Rule { argument: name.clone(), rule: proposed.rule }, because });
        *argument = proposed;
    }
    if !has_network {
        manifest.keep_inside();
    }
    let looser = loosenings(&manifest);
    reasons.retain(|reason| looser.contains(&reason.part));
    Proposal { manifest, reasons }
}

/// Returns the rules of a template as a proposal, under the name of the tool for a model.
fn from_template(strict: &Manifest, given: Manifest, has_network: bool, template: &str) -> Proposal {
    let mut manifest = Manifest { name: strict.name.clone(), ..given };
    if !has_network {
        manifest.keep_inside();
    }
    let because = format!("the template \"{template}\" has it for exactly this definition");
    let reasons = loosenings(&manifest).into_iter().map(|part| Reason { part, because: because.clone() });
    Proposal { reasons: reasons.collect(), manifest }
}

/// Returns the words of a name, in lower case: of `snake_case`, `kebab-case` and `camelCase`.
fn words(name: &str) -> Vec<String> {
    let (mut words, mut word) = (Vec::new(), String::new());
    let mut is_lower = false;
    for letter in name.chars() {
        if !letter.is_alphanumeric() || letter.is_uppercase() && is_lower {
            words.push(std::mem::take(&mut word));
        }
        if letter.is_alphanumeric() {
            word.extend(letter.to_lowercase());
        }
        is_lower = letter.is_lowercase() || letter.is_numeric();
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

/// Returns the class that the name and the hints of a tool agree on, with the reason.
fn class_of(tool: &str, hints: &Value, has_network: bool) -> (Class, String) {
    let words = words(tool);
    let found = |list: &[&str]| words.iter().find(|word| list.contains(&word.as_str()));
    if found(&TRADES).is_some() {
        return (Class::Trade, String::new());
    }
    if found(&STRICT).is_some() || hints["destructiveHint"] == true {
        return (Class::Send, String::new());
    }
    if found(&RUNS).is_some() {
        return (Class::Exec, "its name says that it runs something".to_owned());
    }
    if found(&WRITES).is_some() {
        // Behind a network others can see what it changes.
        return match has_network {
            true => (Class::Send, String::new()),
            false => {
                (Class::Write, "its name says that it changes something, and its server reaches no network".to_owned())
            }
        };
    }
    let because = match (found(&READS).is_some(), &hints["readOnlyHint"]) {
        (true, Value::Bool(true)) => "its name and its server say that it only reads",
        (false, Value::Bool(true)) => "its server says that it only reads",
        (true, hint) if *hint != Value::Bool(false) => "its name says that it only reads",
        (true | false, _) => return (Class::Send, String::new()),
    };
    (Class::Read, because.to_owned())
}

/// Returns the rule that the name and the schema of an argument say, with the reason.
fn argument_of(name: &str, schema: &Value, class: Class, surroundings: Surroundings) -> (Argument, String) {
    let words = words(name);
    let has = |list: &[&str]| words.iter().any(|word| list.contains(&word.as_str()));
    let is_of = |kind: &str| schema["type"] == kind;
    if is_of("boolean") {
        return (Argument::new(Rule::Free, false), "it is yes or no".to_owned());
    }
    if class == Class::Read && schema["enum"].is_array() {
        return (Argument::new(Rule::Free, false), "it is one of the values in the schema".to_owned());
    }
    if (is_of("integer") || is_of("number")) && has(&BOUNDS) {
        return (Argument::new(Rule::Free, false), "it is a number that bounds an answer".to_owned());
    }
    if class == Class::Read {
        let is_id = words.last().is_some_and(|word| word == "id" || word == "ids");
        let names_something = (is_id || has(&NAMES) && !has(&TEXTS)) && schema["format"] != "uri";
        let (outward, because) = match surroundings {
            Surroundings::Jail => (false, "the tool only reads, and no value leaves this machine"),
            Surroundings::Account if names_something => {
                (false, "the tool only reads an account of yours, and the value names something there")
            }
            Surroundings::Account | Surroundings::Public => {
                (true, "the tool only reads; after text of others, a value that no person typed needs a yes")
            }
        };
        return (Argument::new(Rule::Free, outward), because.to_owned());
    }
    if has(&CONTENT) {
        return (Argument::new(Rule::Content, true), "its name is that of a content".to_owned());
    }
    let kind = words.iter().rev().find_map(|word| TYPES.iter().find(|(named, _)| named == word));
    let kind = kind.map_or(InputType::Any, |(_, kind)| *kind);
    let kind = if is_of("integer") || is_of("number") { for_numbers(kind) } else { kind };
    (Argument { kind: Some(kind), ..Argument::new(Rule::Floor, surroundings != Surroundings::Jail) }, String::new())
}

/// Returns the type of the values that a field of numbers takes, by the type that its name says. An amount of money stays one: a count or
/// a year that a person typed is no amount.
const fn for_numbers(named: InputType) -> InputType {
    match named {
        InputType::Amount | InputType::Account | InputType::Phone | InputType::Any | InputType::Number => named,
        InputType::Email | InputType::Url | InputType::Date | InputType::Path | InputType::Title | InputType::Name => {
            InputType::Number
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest::server::Tools;
    use serde_json::json;

    fn proposed(entry: &Value, surroundings: Surroundings) -> Proposal {
        let tools = Tools::strictest("s", std::slice::from_ref(entry));
        propose(tools.manifests.values().next().expect("a fitting tool"), entry, surroundings, None)
    }

    fn tool(name: &str, hints: &Value, arguments: &Value) -> Value {
        json!({
            "name": name, "annotations": hints, "inputSchema": { "type": "object", "properties": arguments }
        })
    }

    #[test]
    fn name_or_hint_alone_loosens_no_tool_that_tells_others() {
        let said = json!({ "readOnlyHint": true });
        for name in ["send_mail", "postMessage", "delete-file", "drop_table", "get_and_forward", "transfer", "pay_list"]
        {
            let proposal = proposed(&tool(name, &said, &json!({ "to": { "type": "string" } })), Surroundings::Public);
            assert!(matches!(proposal.manifest.class, Class::Send | Class::Trade), "{name}");
            assert_eq!(proposal.reasons, [], "{name}");
        }
        for (name, hints) in [
            ("list_files", json!({ "readOnlyHint": false })),
            ("list_files", json!({ "destructiveHint": true })),
            ("frobnicate", json!({})),
            ("count", json!({})),
            ("query", json!({})),
            ("log_entry", json!({})),
            ("create_issue", json!({ "readOnlyHint": true })),
        ] {
            assert_eq!(
                proposed(&tool(name, &hints, &json!({})), Surroundings::Public).manifest.class,
                Class::Send,
                "{name} {hints}"
            );
        }
    }

    #[test]
    fn value_of_a_reading_tool_is_outward() {
        let arguments = json!({
            "query": { "type": "string" }, "limit": { "type": "integer" }, "deep": { "type": "boolean" },
            "sort": { "type": "string", "enum": ["up", "down"] }, "ids": { "type": "array" }
        });
        let manifest =
            proposed(&tool("searchMail", &json!({ "readOnlyHint": true }), &arguments), Surroundings::Public).manifest;
        assert_eq!(manifest.class, Class::Read);
        let outward: Vec<&str> =
            manifest.arguments.iter().filter(|(_, a)| a.outward).map(|(n, _)| n.as_str()).collect();
        assert_eq!(outward, ["ids", "query"]);
        assert!(manifest.arguments.values().all(|argument| argument.rule == Rule::Free));
    }

    #[test]
    fn field_that_directs_an_effect_keeps_its_floor() {
        let text = json!({ "type": "string" });
        let arguments = json!({ "to": text, "subject": text, "messageBody": text, "priority": { "enum": ["a"] } });
        let Proposal { manifest, reasons } = proposed(&tool("send_mail", &json!({}), &arguments), Surroundings::Public);
        let rule = |name: &str| (manifest.arguments[name].rule, manifest.arguments[name].kind);
        assert_eq!(rule("to"), (Rule::Floor, Some(InputType::Email)));
        assert_eq!(
            (rule("subject"), rule("priority")),
            ((Rule::Floor, Some(InputType::Any)), (Rule::Floor, Some(InputType::Any)))
        );
        assert_eq!(rule("messageBody"), (Rule::Content, None));
        assert!(manifest.arguments.values().all(|argument| argument.outward));
        let parts: Vec<String> = reasons.iter().map(|reason| reason.part.to_string()).collect();
        assert_eq!(parts, ["messageBody content"], "each looser part has its reason, and no other part has one");
    }

    #[test]
    fn field_of_numbers_takes_numbers_and_money_needs_its_currency() {
        let number = json!({ "type": "number" });
        let arguments = json!({
            "amount": number, "price": { "type": "integer" }, "user": { "type": "integer" }, "start": number,
            "count": number, "end": { "type": "string" }
        });
        let manifest = proposed(&tool("send_invoice", &json!({}), &arguments), Surroundings::Account).manifest;
        let kinds: Vec<String> = manifest
            .arguments
            .iter()
            .map(|(name, argument)| format!("{name} {}", argument.kind.map_or("", InputType::name)))
            .collect();
        assert_eq!(kinds, ["amount amount", "count ", "end date", "price amount", "start number", "user number"]);
        for name in ["send_money", "withdraw_funds", "donate"] {
            assert_eq!(
                proposed(&tool(name, &json!({}), &arguments), Surroundings::Account).manifest.class,
                Class::Trade,
                "{name}"
            );
        }
    }

    #[test]
    fn change_behind_a_network_is_no_plain_write() {
        let entry = tool("write_file", &json!({}), &json!({ "path": { "type": "string" }, "content": {} }));
        let inside = proposed(&entry, Surroundings::Jail);
        assert_eq!(inside.manifest.class, Class::Write);
        assert_eq!(inside.manifest.arguments["path"].kind, Some(InputType::Path));
        assert_eq!(inside.reasons.len(), loosenings(&inside.manifest).len());
        assert_eq!(proposed(&entry, Surroundings::Public).manifest.class, Class::Send);
    }

    #[test]
    fn text_for_an_account_is_outward_and_a_name_in_it_is_not() {
        let text = json!({ "type": "string" });
        let arguments = json!({
            "folder": text, "messageId": text, "since": text, "query": text, "searchText": text, "page_url": text,
            "link": { "type": "string", "format": "uri" }, "id": { "type": "string", "format": "uri" }, "x": text
        });
        let entry = tool("list_messages", &json!({}), &arguments);
        let outward = |surroundings| {
            let manifest = proposed(&entry, surroundings).manifest;
            let all: Vec<String> = manifest.arguments.into_iter().filter(|(_, a)| a.outward).map(|(n, _)| n).collect();
            all.join(" ")
        };
        assert_eq!(outward(Surroundings::Account), "id link page_url query searchText x");
        assert_eq!(outward(Surroundings::Jail), "");
        assert_eq!(outward(Surroundings::Public), "folder id link messageId page_url query searchText since x");
    }
}
