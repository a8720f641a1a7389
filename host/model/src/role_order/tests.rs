//! Random conversations against the rules of strict servers, and the rules against conversations that break them.

use crate::{Part, PastCall, Prompt, ToolSchema, requests};
use ironclaw_contract::seam::socket::Purpose;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::HashSet;

/// A rule about a list of messages in the form of Chat Completions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// A system message is only the first one.
    SystemFirst,
    /// The first other message is from the user.
    UserBegins,
    /// Neither a user nor the model speaks twice in a row.
    Alternates,
    /// A result is followed by a result or by the model.
    ModelBehindTool,
    /// Each call is followed at once by all results of its message, in order, and no result comes without its call.
    ResultsBehindCalls,
    /// No id of a call occurs twice.
    IdsOnce,
    /// A message with calls follows a user or a result.
    CallsBehindInput,
    /// The last message is not from the model.
    ModelIsNext,
    /// No text is empty.
    Words,
    /// A message of the model has words or calls.
    Substance,
    /// The arguments of a call are the text of an object.
    Objects,
}

use Rule as R;

/// The rules of servers, as their errors and templates state them.
const SERVERS: [(&str, &[Rule]); 6] = [
    (
        "mistral",
        &[
            R::SystemFirst,
            R::UserBegins,
            R::Alternates,
            R::ModelBehindTool,
            R::ResultsBehindCalls,
            R::IdsOnce,
            R::ModelIsNext,
            R::Substance,
        ],
    ),
    ("gemini", &[R::CallsBehindInput, R::ResultsBehindCalls, R::Words, R::Substance, R::ModelIsNext, R::Objects]),
    ("deepseek", &[R::Alternates, R::ResultsBehindCalls, R::ModelIsNext, R::Substance]),
    ("openai", &[R::ResultsBehindCalls, R::IdsOnce, R::Substance]),
    (
        "llama.cpp",
        &[R::SystemFirst, R::UserBegins, R::Alternates, R::ModelBehindTool, R::ModelIsNext, R::Objects, R::Words],
    ),
    ("gateway to bedrock", &[R::UserBegins, R::Alternates, R::Words, R::ResultsBehindCalls, R::ModelIsNext]),
];

fn role(message: &Value) -> &str {
    message["role"].as_str().expect("a role")
}

fn calls(message: &Value) -> Vec<&str> {
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    calls.map(|call| call["id"].as_str().expect("an id")).collect()
}

/// Returns whether a content has words; `null` has none and is no empty text.
fn has_words(content: &Value) -> bool {
    match content {
        Value::String(text) => !text.trim().is_empty(),
        Value::Array(blocks) => !blocks.is_empty(),
        _ => false,
    }
}

fn has_results_behind_calls(messages: &[Value]) -> bool {
    let mut open: Vec<&str> = Vec::new();
    for message in messages {
        if role(message) == "tool" {
            if open.is_empty() || message["tool_call_id"] != open.remove(0) {
                return false;
            }
            continue;
        }
        if !open.is_empty() {
            return false;
        }
        open = calls(message);
    }
    open.is_empty()
}

fn holds(rule: Rule, messages: &[Value]) -> bool {
    let pairs = || messages.windows(2).map(|pair| (&pair[0], &pair[1]));
    let said = || messages.iter().filter(|message| role(message) != "system");
    match rule {
        Rule::SystemFirst => messages.iter().skip(1).all(|message| role(message) != "system"),
        Rule::UserBegins => said().next().is_some_and(|first| role(first) == "user"),
        Rule::Alternates => pairs().all(|(a, b)| role(a) != role(b) || role(a) == "tool"),
        Rule::ModelBehindTool => pairs().all(|(a, b)| role(a) != "tool" || matches!(role(b), "tool" | "assistant")),
        Rule::ResultsBehindCalls => has_results_behind_calls(messages),
        Rule::IdsOnce => {
            let mut ids = HashSet::new();
            messages.iter().flat_map(calls).all(|id| ids.insert(id))
        }
        Rule::CallsBehindInput => pairs().all(|(a, b)| calls(b).is_empty() || matches!(role(a), "user" | "tool")),
        Rule::ModelIsNext => messages.last().is_none_or(|last| role(last) != "assistant"),
        Rule::Words => {
            let is_null = |message: &Value| message["content"].is_null() && !calls(message).is_empty();
            messages.iter().all(|message| has_words(&message["content"]) || is_null(message))
        }
        Rule::Substance => said().all(|message| has_words(&message["content"]) || !calls(message).is_empty()),
        Rule::Objects => {
            let all = messages.iter().flat_map(|message| message["tool_calls"].as_array().into_iter().flatten());
            let text = |call: &Value| call["function"]["arguments"].as_str().unwrap_or_default().to_owned();
            all.map(text).all(|text| serde_json::from_str::<Value>(&text).is_ok_and(|read| read.is_object()))
        }
    }
}

/// Checks a body of the Messages API: roles alternate, a user begins and ends, results follow their calls in a message of their own.
fn check_messages(body: &Value) -> Result<(), String> {
    let messages = body["messages"].as_array().ok_or("no messages")?;
    let ends = [messages.first(), messages.last()];
    if !ends.into_iter().all(|message| message.is_some_and(|message| role(message) == "user")) {
        return Err("a user begins and ends".to_owned());
    }
    let mut open: Vec<&Value> = Vec::new();
    let mut last = "";
    for message in messages {
        let blocks = message["content"].as_array().ok_or("no blocks")?;
        if blocks.is_empty() || role(message) == last {
            return Err(format!("twice {last}, or no block"));
        }
        last = role(message);
        if blocks.iter().any(|block| block["type"] == "text" && !has_words(&block["text"])) {
            return Err("an empty text".to_owned());
        }
        let results: Vec<&Value> =
            blocks.iter().filter(|block| block["type"] == "tool_result").map(|block| &block["tool_use_id"]).collect();
        if results != open || (!results.is_empty() && results.len() != blocks.len()) {
            return Err(format!("results {results:?} of calls {open:?}"));
        }
        open = blocks.iter().filter(|block| block["type"] == "tool_use").map(|block| &block["id"]).collect();
    }
    if open.is_empty() { Ok(()) } else { Err("calls without results".to_owned()) }
}

/// A beginning of a turn.
fn beginning() -> impl Strategy<Value = Vec<Part>> {
    let text = prop_oneof![Just(String::new()), Just(" \n".to_owned()), "[a-z ]{1,20}"];
    let said = text.prop_flat_map(|text| {
        let (person, task, agent, context) = (text.clone(), text.clone(), text.clone(), text);
        prop_oneof![
            4 => Just(Part::Person { text: person }),
            1 => Just(Part::Task { text: task }),
            1 => Just(Part::Agent { agent: "b".into(), answers: false, text: agent }),
            1 => Just(Part::Context { author: "file x".into(), text: context }),
        ]
    });
    (prop::collection::vec(said, 0..3), any::<bool>()).prop_map(|(mut parts, dated)| {
        if dated {
            parts.push(Part::Time { text: "it is now noon.".into() });
        }
        parts
    })
}

/// One output with calls: its words, its results, some of them missing, and whether these are in the other order.
type Step = (String, Vec<(bool, String)>, bool);

/// The beginning of a turn, its outputs with calls, and its end.
type Turn = (Vec<Part>, Vec<Step>, Vec<Part>);

fn step() -> impl Strategy<Value = Step> {
    let result = (any::<bool>(), prop_oneof![Just(String::new()), "[a-z]{1,8}"]);
    (prop_oneof![Just(String::new()), "[a-z ]{1,12}"], prop::collection::vec(result, 1..4), any::<bool>())
}

/// An end of a turn: an answer, an empty answer, a notice, a failed model, an end without words, or a cut answer.
fn ending() -> impl Strategy<Value = Vec<Part>> {
    let answer = |text: &str| Part::Assistant { text: text.into(), calls: Vec::new(), attached: None };
    prop_oneof![
        2 => Just(vec![answer("done")]),
        1 => Just(vec![answer(" ")]),
        1 => Just(vec![answer("half"), Part::Remark { text: "your answer was cut off there.".into() }]),
        1 => Just(vec![Part::Notice { text: "This was cancelled.".into() }]),
        1 => Just(vec![Part::Failure { text: "no model answered this.".into() }]),
        1 => Just(vec![Part::HostNotice { text: "a change was applied".into() }]),
        1 => Just(vec![answer("one"), answer("two")]),
        1 => Just(vec![Part::Summary { text: "minutes".into() }]),
        2 => Just(Vec::new()),
    ]
}

fn turn() -> impl Strategy<Value = Turn> {
    (beginning(), prop::collection::vec(step(), 0..3), ending())
}

/// Returns the parts of these turns. Each call has an id of its own.
fn parts(turns: Vec<Turn>) -> Vec<Part> {
    let (mut parts, mut number) = (Vec::new(), 0);
    for (beginning, steps, ending) in turns {
        parts.extend(beginning);
        for (text, results, is_reversed) in steps {
            let mut calls = Vec::new();
            let mut found = Vec::new();
            for (is_there, text) in results {
                let call_id = format!("cal_{number}");
                number += 1;
                calls.push(PastCall { call_id: call_id.clone(), tool: "read file".into(), arguments: "[".into() });
                if is_there {
                    found.push(Part::Result { call_id, tool: "read_file".into(), ok: true, text });
                }
            }
            if is_reversed {
                found.reverse();
            }
            parts.push(Part::Assistant { text, calls, attached: None });
            parts.extend(found);
        }
        parts.extend(ending);
    }
    parts
}

fn prompt(parts: Vec<Part>) -> Prompt {
    let tool = ToolSchema { name: "read_file".into(), description: "reads".into(), parameters: json!({}) };
    Prompt { purpose: Purpose::Reply, system: "be brief".into(), tools: vec![tool], parts }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_end_of_a_turn_is_accepted_by_strict_servers(
        turns in prop::collection::vec(turn(), 1..5),
        dropped in 0..6_usize,
        cut in 0..4_usize,
    ) {
        let all = parts(turns);
        // A summary replaces the beginning, and a kill ends a turn anywhere.
        let upto = all.len().saturating_sub(cut).max(1.min(all.len()));
        let kept = all[dropped.min(upto)..upto].to_vec();
        let [chat, messages] = requests(&prompt(kept.clone()));
        let sent = chat["messages"].as_array().expect("messages");
        for (server, rules) in SERVERS {
            for rule in rules {
                prop_assert!(holds(*rule, sent), "{server}: {rule:?}\n{kept:#?}\n{chat:#}");
            }
        }
        let checked = check_messages(&messages);
        prop_assert!(checked.is_ok(), "{checked:?}\n{kept:#?}\n{messages:#}");
    }
}

#[test]
fn each_rule_refuses_what_it_names() {
    let say = |role: &str, text: &str| json!({ "role": role, "content": text });
    let calls = |ids: &[&str], arguments: &str| {
        let call = |id: &&str| json!({ "id": id, "function": { "name": "a", "arguments": arguments } });
        json!({ "role": "assistant", "content": null, "tool_calls": ids.iter().map(call).collect::<Vec<_>>() })
    };
    let result = |id: &str| json!({ "role": "tool", "tool_call_id": id, "content": "x" });
    let user = || say("user", "a");
    for (rule, broken) in [
        (Rule::SystemFirst, vec![user(), say("system", "b")]),
        (Rule::UserBegins, vec![say("system", "a"), say("assistant", "b"), user()]),
        (Rule::Alternates, vec![user(), user()]),
        (Rule::ModelBehindTool, vec![user(), calls(&["1"], "{}"), result("1"), user()]),
        (Rule::ResultsBehindCalls, vec![user(), calls(&["1", "2"], "{}"), result("1"), user()]),
        (Rule::ResultsBehindCalls, vec![user(), calls(&["1", "2"], "{}"), result("2"), result("1")]),
        (Rule::ResultsBehindCalls, vec![user(), result("1")]),
        (Rule::IdsOnce, vec![calls(&["1"], "{}"), result("1"), calls(&["1"], "{}"), result("1")]),
        (Rule::CallsBehindInput, vec![user(), say("assistant", "b"), calls(&["1"], "{}"), result("1")]),
        (Rule::ModelIsNext, vec![user(), say("assistant", "b")]),
        (Rule::Words, vec![user(), say("assistant", "")]),
        (Rule::Substance, vec![json!({ "role": "assistant", "content": null })]),
        (Rule::Objects, vec![user(), calls(&["1"], "["), result("1")]),
    ] {
        assert!(!holds(rule, &broken), "{rule:?} {broken:?}");
    }
}
