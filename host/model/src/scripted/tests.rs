//! The refusals of a script, and its rules in a conversation.

use super::*;
use crate::{PastCall, ToolSchema};
use ironclaw_contract::seam::socket::Purpose;
use proptest::prelude::*;
use serde_json::{Value, json};

fn person(text: &str) -> Part {
    Part::Person { text: text.to_owned() }
}

fn said(text: &str) -> Part {
    Part::Assistant { text: text.to_owned(), calls: Vec::new(), attached: None }
}

#[test]
fn chosen_option_is_answered_only_behind_the_words_of_the_host() {
    let context = || Part::Context { author: "a model".to_owned(), text: "red".to_owned() };
    let how = |text: &str| Part::HostNotice { text: text.to_owned() };
    let earlier = || vec![person("ask me which? red or blue"), said("I have asked.")];
    let chosen = [earlier(), vec![how("The person chose option 1:"), context()]].concat();
    assert_eq!(text(&Scripted::builtin(), chosen), "You chose: red");
    for parts in [vec![context()], vec![how("Something ended."), context()]] {
        assert_eq!(text(&Scripted::builtin(), [earlier(), parts].concat()), UNPROMPTED);
    }
}

#[test]
fn built_in_rules_are_those_of_an_operators_file() {
    let (checked, _) = rules::parse(BUILTIN, Origin::Operator).expect("each pattern is valid");
    let (assumed, _) = rules::parse(BUILTIN, Origin::BuiltIn).expect("they are valid");
    assert_eq!(checked.len(), assumed.len());
    for (checked, assumed) in checked.iter().zip(&assumed) {
        assert_eq!(checked.when.group_names(), assumed.when.group_names());
        if let (Ending::Recall(checked), Ending::Recall(assumed)) = (&checked.ending, &assumed.ending) {
            assert_eq!(checked.when.group_names(), assumed.when.group_names());
        }
    }
}

fn result(ok: bool, text: &str) -> Part {
    Part::Result { call_id: "call_1".to_owned(), tool: "any".to_owned(), ok, text: text.to_owned() }
}

fn prompt(parts: Vec<Part>) -> Prompt {
    Prompt { purpose: Purpose::Reply, system: "obey".to_owned(), tools: Vec::<ToolSchema>::new(), parts }
}

/// Returns the output for a conversation with an earlier answer, so without the preface.
fn output(script: &Scripted, parts: Vec<Part>) -> Output {
    let parts = [vec![said("Hello.")], parts].concat();
    script.generate(&prompt(parts)).expect("an output")
}

fn text(script: &Scripted, parts: Vec<Part>) -> String {
    let output = output(script, parts);
    assert_eq!(output.calls, []);
    output.text
}

/// Runs a request: each step of calls gets the next result. Returns all calls and the last answer.
fn talk(script: &Scripted, asked: &str, results: &[(bool, &str)]) -> (Vec<(String, Value)>, String) {
    let mut parts = vec![person(asked)];
    let mut calls = Vec::new();
    let mut results = results.iter();
    loop {
        let output = output(script, parts.clone());
        if output.calls.is_empty() {
            return (calls, output.text);
        }
        let Some(&(ok, text)) = results.next() else { return (calls, "no more results".to_owned()) };
        parts.push(past(&output));
        for call in output.calls {
            let arguments = serde_json::from_str(&call.arguments).expect("JSON");
            calls.push((call.tool, arguments));
            parts.push(result(ok, text));
        }
    }
}

fn past(output: &Output) -> Part {
    let calls = output.calls.iter().map(|call| PastCall {
        call_id: "call_1".to_owned(),
        tool: call.tool.clone(),
        arguments: call.arguments.clone(),
    });
    Part::Assistant { text: output.text.clone(), calls: calls.collect(), attached: None }
}

fn only(rules: &str) -> Scripted {
    Scripted::parse(&format!("builtin = false\n{rules}")).expect("a script")
}

#[test]
fn a_script_with_anything_unknown_is_refused_by_number_and_name() {
    let refused = |rule: &str| {
        let text = format!("[[rule]]\nwhen = 'a'\nreply = 'b'\n[[rule]]\nname = 'odd'\n{rule}");
        Scripted::parse(&text).expect_err(rule).to_string()
    };
    const SHAPE: &str = "a key is missing, unknown or of the wrong type";
    const ONE: &str = "it needs exactly one of reply, recall, loop, fail, empty and say_raw";
    for (rule, problem) in [
        ("when = '('\nreply = ''", "when is not a regular expression"),
        ("when = 'a'\nreply = ''\nanswer = ''", SHAPE),
        ("reply = ''", SHAPE),
        ("when = 'a'\nreply = 7", SHAPE),
        ("when = 'a'\nreply = ''\ncalls = [{ tool = 't', argument = {} }]", SHAPE),
        ("when = 'a'\nreply = '{who}'", r#"reply has the unknown placeholder "who""#),
        ("when = 'a'\nreply = '$who'", r#"reply has the unknown placeholder "who""#),
        ("when = 'a'\nreply = '{result}'", r#"reply has the unknown placeholder "result""#),
        ("when = 'a'\nreply = 'a } b'", "reply has a single brace; double it for a literal one"),
        (
            "when = 'a'\nreply = ''\ncalls = [{ tool = 't', arguments = { x = [{ y = '$z' }] } }]",
            r#"arguments has the unknown placeholder "z""#,
        ),
        (
            "when = 'a'\nreply = ''\ncalls = [{ tool = 't', arguments = { x = '{result}' } }]",
            r#"arguments has the unknown placeholder "result""#,
        ),
        (
            "when = 'a'\nreply = ''\ncalls = [{ tool = 't', arguments = { x = nan } }]",
            "arguments hold a number that JSON does not have",
        ),
        ("when = '(?P<result>a)'\nreply = ''", "a group must not be named result, ok or error"),
        ("when = 'a'", ONE),
        ("when = 'a'\nreply = ''\nempty = true", ONE),
        ("when = 'a'\nloop = true", "loop, then and reply_error need calls"),
        ("when = 'a'\nreply = ''\nreply_error = ''", "loop, then and reply_error need calls"),
        ("when = 'a'\nreply = ''\ncalls = [{ tool = 't' }]\nthen = [[]]", "a step of then has no calls"),
        (
            "when = 'a'\nrecall = { when = '(', over = 'person', reply = '', otherwise = '' }",
            "recall.when is not a regular expression",
        ),
        ("when = 'a'\nrecall = { when = 'a', over = 'context', reply = '', otherwise = '' }", SHAPE),
        (
            "when = 'a'\nrecall = { when = 'a', over = 'person', same = ['x'], reply = '', otherwise = '' }",
            "recall.same names a group that is not in both patterns",
        ),
    ] {
        assert_eq!(refused(rule), format!("rule 2 (odd): {problem}"), "{rule}");
    }
    for text in ["rule = 1", "other = 1", "[[rules]]", "not toml"] {
        assert!(matches!(Scripted::parse(text), Err(Error::File(_))), "{text}");
    }
    assert!(matches!(Scripted::parse(&"[[rule]]\n".repeat(1025)), Err(Error::TooMany(1025))));
    let unnamed = Scripted::parse("[[rule]]\nwhen = '('\nreply = ''").expect_err("a pattern").to_string();
    assert_eq!(unnamed, "rule 1: when is not a regular expression");
}

#[test]
fn words_of_others_are_never_a_request() {
    let script = Scripted::builtin();
    let context = |text: &str| Part::Context { author: "agent".to_owned(), text: text.to_owned() };
    assert_eq!(text(&script, vec![context("write a: b")]), UNPROMPTED);
    assert_eq!(text(&script, vec![person("echo a"), said("a"), context("write a: b")]), UNPROMPTED);
    assert_eq!(text(&script, vec![Part::Notice { text: "write a: b".to_owned() }]), UNPROMPTED);
    // A turn without an answer is not continued in the next one.
    let called = past(&output(&script, vec![person("loop forever")]));
    let parts =
        vec![person("loop forever"), called, result(true, ""), Part::Notice { text: "over".to_owned() }, context("x")];
    assert_eq!(text(&script, parts), UNPROMPTED);
    // Words of others before and after a request are ignored.
    assert_eq!(text(&script, vec![context("echo b"), person("echo a"), context("echo c")]), "a");
}

#[test]
fn only_what_a_person_typed_is_remembered() {
    let script = Scripted::builtin();
    let claims = vec![
        Part::Context { author: "bob".to_owned(), text: "my name is Bob".to_owned() },
        said("my name is Bob"),
        Part::Summary { text: "my name is Bob".to_owned() },
        Part::Notice { text: "my name is Bob".to_owned() },
        result(true, "my name is Bob"),
        person("what is my name?"),
    ];
    assert_eq!(text(&script, claims), "You have not told me your name in what I can see of this conversation.");
}

#[test]
fn the_newest_words_that_fit_are_recalled() {
    let script = Scripted::builtin();
    for (earlier, asked, answer) in [
        (vec!["my name is Ada"], "What is my name?", "Your name is Ada."),
        (vec!["Hi, my name is Ada Lovelace, hello"], "who am I", "Your name is Ada Lovelace."),
        (vec!["my name is Ada", "my name is Bob and I write"], "what's my name", "Your name is Bob."),
        (vec!["remember that my name is Ada King Noel"], "what is my name?", "Your name is Ada King Noel."),
        (vec!["remember that the code is 4$2{x}"], "what is The Code?", "You told me that the code is 4$2{x}."),
        (
            vec!["remember: tea is green", "remember that tea is black."],
            "what is tea",
            "You told me that tea is black.",
        ),
        (
            vec!["remember that .* is x"],
            "what is tea?",
            "You have not told me what tea is. I am a script and know nothing else.",
        ),
        (
            vec![],
            "what is [MSG_AUTH:(?P<x>?",
            "You have not told me what [MSG_AUTH:(?P<x> is. I am a script and know nothing else.",
        ),
    ] {
        let parts = earlier.into_iter().flat_map(|text| [person(text), said("Yes.")]).chain([person(asked)]).collect();
        assert_eq!(text(&script, parts), answer, "{asked}");
    }
}

#[test]
fn the_first_answer_says_that_it_is_a_script() {
    let script = Scripted::builtin();
    let first = script.generate(&prompt(vec![person("echo a")])).expect("an output");
    assert_eq!(first.text, format!("{PREFACE} a"));
    let silent =
        vec![person("x"), Part::Assistant { text: String::new(), calls: Vec::new(), attached: None }, person("echo a")];
    assert_eq!(script.generate(&prompt(silent)).expect("an output").text, format!("{PREFACE} a"));
    let later = vec![person("x"), said("y"), person("echo a")];
    assert_eq!(script.generate(&prompt(later)).expect("an output").text, "a");
}

#[test]
fn every_built_in_rule_calls_what_it_says() {
    let script = Scripted::builtin();
    for (asked, calls, answer) in [
        ("hello", json!([]), "Hello. Say help to see what I can do."),
        ("My name is Ada.", json!([]), "Hello, Ada."),
        ("remember that tea is green", json!([]), "I will remember that tea is green."),
        ("echo a\n{b} $c", json!([]), "a\n{b} $c"),
        ("say nothing", json!([]), ""),
        (
            "write a.txt: to be: or\nnot",
            json!([["write_file", { "path": "a.txt", "content": "to be: or\nnot" }]]),
            "I wrote a.txt.",
        ),
        (
            "Write hello to a to b.txt",
            json!([["write_file", { "path": "b.txt", "content": "hello to a" }]]),
            "I wrote b.txt.",
        ),
        (
            "append a.txt: x",
            json!([["write_file", { "path": "a.txt", "content": "x", "append": true }]]),
            "I added to a.txt.",
        ),
        (
            "append x y to a.txt",
            json!([["write_file", { "path": "a.txt", "content": "x y", "append": true }]]),
            "I added to a.txt.",
        ),
        ("keep tea is green", json!([["remember", { "text": "tea is green" }]]), "Noted: the result"),
        ("recall: green tea", json!([["recall", { "query": "green tea" }]]), "the result"),
        ("what does the summary say?", json!([]), "I can see no summary of an earlier part of this conversation."),
        ("read the file a.txt", json!([["read_file", { "path": "a.txt" }]]), "a.txt:\nthe result"),
        ("list", json!([["list_dir", {}]]), "the result"),
        ("list files in sub", json!([["list_dir", { "path": "sub" }]]), "the result"),
        ("search a.*b in sub", json!([["search_files", { "pattern": "a.*b", "path": "sub" }]]), "the result"),
        ("search a", json!([["search_files", { "pattern": "a" }]]), "the result"),
        ("run ls -l | wc", json!([["run_command", { "command": "ls -l | wc" }]]), "the result"),
        (
            "copy a to b",
            json!([["read_file", { "path": "a" }], ["write_file", { "path": "b", "content": "the result" }]]),
            "I copied a to b.",
        ),
        (
            "schedule daily: look",
            json!([["schedule_task", { "prompt": "look", "recurrence": "daily" }]]),
            "Scheduled: the result",
        ),
        (
            "schedule look at 2030-01-31T08:00:00Z",
            json!([["schedule_task", { "prompt": "look", "run_at": "2030-01-31T08:00:00Z" }]]),
            "Scheduled: the result",
        ),
        ("schedule look", json!([]), "Say when: schedule daily: PROMPT, or schedule PROMPT at 2030-01-31T08:00:00Z."),
        (
            "ask me how are you?",
            json!([["ask_user_question", { "question": "how are you?", "allow_freeform": true }]]),
            "I have asked: the result",
        ),
        (
            "ask me which? red or blue",
            json!([["ask_user_question", { "question": "which?", "options": ["red", "blue"] }]]),
            "I have asked: the result",
        ),
        (
            "change your persona to: a pirate",
            json!([["request_capability_change",
            { "kind": "persona", "payload": { "instructions": "a pirate" }, "reason": "The person asked for it in the chat." }]]),
            "Proposed: the result",
        ),
        (
            r#"change persona {"instructions":"be {brief}"} because I said so"#,
            json!([["request_capability_change",
            { "kind": "persona", "payload": { "instructions": "be {brief}" }, "reason": "I said so" }]]),
            "Proposed: the result",
        ),
        (
            r#"change mounts [{"source":"/srv/a","read_only":false}] because of work"#,
            json!([["request_capability_change",
            { "kind": "mounts", "payload": [{ "source": "/srv/a", "read_only": false }], "reason": "of work" }]]),
            "Proposed: the result",
        ),
        (
            "install skill a 1.0",
            json!([["skill_install", { "payload": { "skill": "a", "version": "1.0" } }]]),
            "Proposed: the result",
        ),
        ("send file a.txt here", json!([["send_file", { "path": "a.txt" }]]), "Sent: the result"),
        ("send file a.txt to team", json!([["send_file", { "path": "a.txt", "to": "team" }]]), "Sent: the result"),
        ("send see you to team", json!([["send_message", { "to": "team", "text": "see you" }]]), "Sent: the result"),
        ("send to team: see you", json!([["send_message", { "to": "team", "text": "see you" }]]), "Sent: the result"),
        (
            "make me a sandwich",
            json!([]),
            "I am only a script and do not understand that. Say help to see what I do understand.",
        ),
        ("", json!([]), "I am only a script and do not understand that. Say help to see what I do understand."),
    ] {
        let (made, said) = talk(&script, asked, &[(true, "the result"), (true, "done")]);
        assert_eq!((json!(made), said.as_str()), (calls, answer), "{asked}");
    }
    assert!(talk(&script, "help", &[]).1.starts_with("I understand:"));
}

#[test]
fn failed_result_ends_the_steps() {
    let script = Scripted::builtin();
    let (calls, said) = talk(&script, "copy a to b", &[(false, "no such file")]);
    assert_eq!((calls.len(), said.as_str()), (1, "I could not copy a to b: no such file"));
    let (_, said) =
        talk(&only("[[rule]]\nwhen=''\ncalls=[{tool='t'},{tool='u'}]\nreply='{ok}'"), "x", &[(false, "no")]);
    assert_eq!(said, "That did not work: no");

    let called = Part::Assistant {
        text: String::new(),
        calls: vec![PastCall { call_id: "c".to_owned(), tool: "read_file".to_owned(), arguments: "{}".to_owned() }],
        attached: None,
    };
    let parts = vec![person("read a"), called];
    assert_eq!(text(&script, parts), "I could not read a: no result came back");
}

#[test]
fn a_loop_asks_for_the_same_again_and_again() {
    let (calls, _) = talk(&Scripted::builtin(), "loop forever", &[(true, "a"), (false, "b"), (true, "c"), (true, "d")]);
    assert_eq!(calls, vec![("list_dir".to_owned(), json!({})); 4]);
}

#[test]
fn a_rule_can_fail_be_empty_or_say_anything() {
    let script = only(
        "[[rule]]\nwhen='^f$'\nfail='over {quota}'\n[[rule]]\nwhen='^e$'\nempty=true\n[[rule]]\nwhen='^r$'\nsay_raw='[MSG_AUTH:{1}]'",
    );
    let failed = script.generate(&prompt(vec![person("f")])).expect_err("fails");
    assert_eq!(failed.0, "over {quota}");
    let none = script.generate(&prompt(vec![person("x")])).expect_err("no rule");
    assert_eq!(none.0, "no rule fits what was said");
    assert_eq!(script.generate(&prompt(vec![person("e")])).expect("empty"), Output::default());
    assert_eq!(script.generate(&prompt(vec![person("r")])).expect("raw").text, "[MSG_AUTH:{1}]");
}

#[test]
fn arguments_keep_their_types() {
    let script = only(
        "[[rule]]\nwhen='(?P<a>x)|(?P<b>y)'\nreply=''\n[[rule.calls]]\ntool='t'\n\
        arguments={i=1,f=0.5,t=true,d=2030-01-01,s='$a-{b}',gone='$b',l=['$a','$b',[{k='{{$a'}]]}",
    );
    let arguments = json!({ "i": 1, "f": 0.5, "t": true, "d": "2030-01-01", "s": "x-", "l": ["x", [{ "k": "{x" }]] });
    assert_eq!(talk(&script, "x", &[(true, "")]).0, [("t".to_owned(), arguments)]);
}

#[test]
fn rules_of_the_operator_come_before_the_built_in_ones() {
    let script = Scripted::parse("[[rule]]\nwhen='^echo (?P<x>.)'\nreply='{{$x}} $$x $'").expect("a script");
    assert_eq!(text(&script, vec![person("ECHO ab")]), "{a} $x $");
    assert_eq!(text(&script, vec![person("echo")]), text(&Scripted::builtin(), vec![person("echo")]));
}

#[test]
fn a_huge_text_is_cut_and_costs_linear_time() {
    let script = Scripted::builtin();
    let huge = format!("echo {}", "é".repeat(BODY_BYTES_MAX));
    let echoed = text(&script, vec![person(&huge)]);
    assert!(echoed.len() <= BODY_BYTES_MAX && echoed.starts_with("éé"));
    let first = script.generate(&prompt(vec![person(&huge)])).expect("an output").text;
    assert!(first.len() <= BODY_BYTES_MAX && first.ends_with(CUT));
    // With quadratic time this test would take hours.
    for unit in ["write to ", "remember that is ", "a: ", "my name is ", "\\"] {
        let asked = unit.repeat(BODY_BYTES_MAX / unit.len());
        output(&script, vec![person(&asked), said("x"), person("what is my name?")]);
        output(&script, vec![person(&asked)]);
    }
}

proptest! {
    #[test]
    fn written_text_arrives_unchanged(content in "(?s)[^\\s].*", name in "[a-z0-9.\"'{}$\\\\\\[\\]]{1,12}") {
        let (calls, said) = talk(&Scripted::builtin(), &format!("write {name}: {content}"), &[(true, "")]);
        prop_assert_eq!(calls, vec![("write_file".to_owned(), json!({ "path": name, "content": content }))]);
        prop_assert_eq!(said, format!("I wrote {name}."));
    }

    #[test]
    fn the_same_prompt_has_the_same_output(asked in any::<String>(), earlier in any::<String>()) {
        let parts = vec![person(&earlier), said("x"), person(&asked)];
        let first = Scripted::builtin().generate(&prompt(parts.clone())).expect("an output");
        prop_assert_eq!(Scripted::builtin().generate(&prompt(parts)).expect("an output"), first);
    }
}

#[test]
fn json_template_is_read_strictly_and_else_stays_text() {
    let rule = |arguments: &str| {
        format!(
            "builtin = false\n[[rule]]\nwhen = '^call (?P<it>.*)$'\nreply = \"x\"\ncalls = [{{ tool = \"t\", arguments = {arguments} }}]"
        )
    };
    let script = Scripted::parse(&rule(r#"{ it = { "@json" = "$it" } }"#)).expect("a script");
    for (asked, value) in [
        (r#"call {"a":[1,true]}"#, json!({ "a": [1, true] })),
        ("call 7", json!(7)),
        (r#"call {"a":1,"a":2}"#, json!(r#"{"a":1,"a":2}"#)),
        ("call {", json!("{")),
        ("call 1e999", json!("1e999")),
    ] {
        let made = output(&script, vec![person(asked)]).calls;
        let arguments: Value = serde_json::from_str(&made[0].arguments).expect("JSON");
        assert_eq!(arguments["it"], value, "{asked}");
    }
    for bad in [r#"{ it = { "@json" = 7 } }"#, r#"{ it = { "@json" = "$it", b = 1 } }"#] {
        assert!(matches!(Scripted::parse(&rule(bad)), Err(Error::Shape { .. })), "{bad}");
    }
}
