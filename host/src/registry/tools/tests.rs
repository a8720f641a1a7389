//! Tests of the tools, and of the calls of the built-in script.

mod golden;

use super::builtin::request_change::payload;
use super::tool::CHECKED_KEYWORDS;
use super::*;
use ironclaw_contract::seam::change::ChangeKind;
use ironclaw_contract::seam::socket::Purpose;
use ironclaw_judge::Classes;
use ironclaw_judge::manifest::Reach;
use ironclaw_model::scripted::Scripted;
use ironclaw_model::{Part, Prompt};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A message for each built-in tool; the built-in script answers it with a call.
const ASKED: [&str; 21] = [
    "write a.txt: x",
    "append a.txt: x",
    "keep tea is green",
    "recall: green tea",
    "read the file a.txt",
    "list files in sub",
    "search a.*b in sub",
    "find a tool for sending letters",
    "run ls -l | wc",
    "run online git fetch",
    "push w to https://example.org/a/b branch main",
    "fetch https://a.example/",
    "schedule daily: look",
    "my schedules",
    "pause schedule sch_1",
    "ask me which? red or blue",
    "change your persona to: a pirate",
    "install skill a 1.0",
    "use skill a",
    "send see you to team",
    "send file a.txt to team",
];

fn class(tool: &Tool) -> Class {
    tool.manifest.class
}

#[test]
fn built_in_script_calls_every_tool_as_its_schema_says() {
    let script = Scripted::builtin();
    let mut used = BTreeSet::new();
    for asked in ASKED {
        let parts = vec![
            Part::Assistant { text: "Hello.".to_owned(), calls: Vec::new(), attached: None },
            Part::Person { text: asked.to_owned() },
        ];
        let prompt = Prompt { purpose: Purpose::Reply, system: String::new(), tools: Vec::new(), parts };
        for call in script.generate(&prompt).expect("an output").calls {
            let parameters = &find(&call.tool).expect("a built-in tool").parameters;
            let arguments: serde_json::Value = serde_json::from_str(&call.arguments).expect("JSON");
            let given = arguments.as_object().expect("an object");
            assert!(given.keys().all(|key| parameters["properties"].get(key).is_some()), "{asked}: {given:?}");
            let required = parameters["required"].as_array().expect("a list");
            assert!(required.iter().all(|key| given.contains_key(key.as_str().expect("a name"))), "{asked}");
            used.insert(call.tool);
        }
    }
    assert_eq!(used, builtin().iter().map(|tool| tool.name.to_owned()).collect());
}

#[test]
fn only_the_exact_name_of_a_tool_is_found() {
    for name in ["", "Read_File", "read_file ", "readfile", "exec", "persona"] {
        assert_eq!(find(name), None, "{name:?}");
    }
    for word in ["", "Read", "ask ", "admin"] {
        assert!(word.parse::<Class>().is_err(), "{word:?}");
        assert!(serde_json::from_value::<Class>(json!(word)).is_err(), "{word:?}");
    }
}

/// Properties whose name says all.
const CLEAR_NAMES: [&str; 3] = ["content", "kind", "path"];

/// Collects objects that accept unlisted properties. The payload of a change is an object or a list, and has its own parser.
fn open_objects(path: String, schema: &Value, found: &mut Vec<String>) {
    if schema["type"] == "object" && schema["additionalProperties"] != json!(false) {
        found.push(path.clone());
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let is_clear = CLEAR_NAMES.contains(&name.as_str());
        assert!(is_clear || property["description"].is_string(), "{path}.{name} has no description");
        assert!(property.get("type").is_some(), "{path}.{name} has no type");
        open_objects(format!("{path}.{name}"), property, found);
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().expect("required holds names");
        assert!(schema["properties"].get(name).is_some(), "{path}: {name} is required and not described");
    }
}

#[test]
fn no_tool_takes_a_property_that_is_not_listed() {
    let mut found = Vec::new();
    for tool in builtin() {
        assert_eq!(tool.parameters["type"], "object", "{}", tool.name);
        open_objects(tool.name.to_owned(), &tool.parameters, &mut found);
    }
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn schema_for_a_model_keeps_all_names_and_types() {
    for tool in builtin() {
        let (whole, sent) = (&tool.parameters, tool.parameters_for_model());
        let names = |schema: &Value| -> Vec<String> {
            let of = |(name, schema): (&String, &Value)| format!("{name} {} {}", schema["type"], schema["description"]);
            schema["properties"].as_object().into_iter().flatten().map(of).collect()
        };
        let of_host: Vec<&str> = tool.host_arguments().collect();
        let is_sent = |line: &String| !of_host.iter().any(|name| line.starts_with(&format!("{name} ")));
        let wanted: Vec<String> = names(whole).into_iter().filter(is_sent).collect();
        assert_eq!(names(&sent), wanted, "{}", tool.name);
        assert!(!sent.to_string().contains("readOnly"), "{}", tool.name);
        // A call without them is complete.
        let required = whole["required"].as_array().expect("a list");
        assert!(!of_host.iter().any(|name| required.contains(&json!(name))), "{}", tool.name);
        assert_eq!((&sent["required"], &sent["type"]), (&whole["required"], &whole["type"]), "{}", tool.name);
        assert!(!CHECKED_KEYWORDS.iter().any(|keyword| sent.to_string().contains(keyword)), "{}", tool.name);
    }
}

#[test]
fn tools_that_send_have_arguments_of_the_host() {
    for (tool, wanted) in [
        (SEND_MESSAGE, &["recipient", "thread"][..]),
        (SEND_FILE, &["digest", "name", "recipient", "size", "thread", "type"]),
        (GIT_PUSH, &["changes", "commits", "diff", "over", "summary"]),
    ] {
        assert_eq!(find(tool).expect("built in").host_arguments().collect::<Vec<_>>(), wanted);
    }
    assert_eq!(builtin().iter().filter(|tool| tool.host_arguments().count() > 0).count(), 3);
}

#[test]
fn every_manifest_is_complete() {
    for tool in builtin() {
        tool.manifest.check().unwrap_or_else(|error| panic!("{error}"));
        let arguments = tool.parameters["properties"].as_object().expect("properties").keys();
        assert!(arguments.eq(tool.manifest.arguments.keys()), "{}", tool.name);
        assert_eq!(find(tool.name), Some(tool));
        let is_outside = !matches!(tool.manifest.reach, Reach::Contained | Reach::Action);
        assert_eq!(tool.outside().is_some(), is_outside, "{}", tool.name);
        let written = serde_json::to_value(&tool.manifest).expect("JSON");
        assert_eq!(serde_json::from_value::<Manifest>(written).expect("a manifest"), tool.manifest);
    }
    assert!(manifest("rm").is_none());
}

#[test]
fn tools_that_leave_the_jail_are_not_contained() {
    for (tool, is_contained) in [(READ_FILE, true), (RUN_COMMAND, true), (HTTP_FETCH, false), (SEND_MESSAGE, false)] {
        assert_eq!(manifest(tool).expect("known").is_contained(), is_contained, "{tool}");
    }
    assert_eq!(manifest(HTTP_FETCH).expect("known").classes(), Classes::new(&[Class::Read, Class::Send]));
}

#[test]
fn automatic_tool_is_in_no_offer_and_cannot_be_enabled() {
    let all: Vec<String> = builtin().iter().map(|tool| tool.name.to_owned()).collect();
    let offered: Vec<&str> = offered(&all).map(|tool| tool.name).collect();
    let automatic = builtin().iter().filter(|tool| matches!(tool.held, Held::Automatic(_))).map(|tool| tool.name);
    let automatic: Vec<&str> = automatic.collect();
    assert_eq!(automatic, [NETWORK_COMMAND, GIT_PUSH, FIND_TOOLS, READ_SKILL, SEND_MESSAGE]);
    assert_eq!(offered.len() + automatic.len(), all.len());
    assert!(!offered.iter().any(|name| automatic.contains(name)));
    assert!(usual().all(|name| offered.contains(&name)));
    for name in automatic {
        let refusal = check(&["read_file".to_owned(), name.to_owned()]).expect_err(name);
        assert_eq!(refusal.code, DenialCode::ToolUnhandled);
        assert!(refusal.hint.contains(REQUEST_CHANGE));
    }
    assert_eq!(check(&["Read_File".to_owned()]).expect_err("no tool").code, DenialCode::ToolUnknown);
    assert!(check(&all[..1]).is_ok());
}

#[test]
fn no_agent_runs_commands_unless_its_configuration_says_so() {
    assert!(usual().all(|name| find(name).is_some_and(|tool| class(tool) != Class::Exec)));
    let exec = builtin().iter().filter(|tool| class(tool) == Class::Exec).map(|tool| tool.name);
    assert_eq!(exec.collect::<Vec<_>>(), [RUN_COMMAND, NETWORK_COMMAND]);
}

#[test]
fn model_sees_the_payload_of_each_kind_for_agents() {
    let told: Vec<_> = ChangeKind::ALL.iter().copied().filter(|kind| payload(*kind).is_some()).collect();
    assert_eq!(told, ChangeKind::for_agents().collect::<Vec<_>>());
}
