//! Reads a call back from the text of its page alone, also if its values imitate the lines of a page.

use super::layout::{View, render};
use crate::gateway::requests::facts::Facts;
use crate::gateway::requests::facts::tests::{Random, of_session};
use crate::registry::Role;
use crate::registry::policy::Rule;
use ironclaw_contract::ids::RequestId;
use ironclaw_judge::inputs::ArgumentOrigin;
use ironclaw_judge::provenance::Labels;
use ironclaw_operator::DenialCode;
use ironclaw_store::tables::waiting::requests::StoredReason;
use ironclaw_text::visible;
use serde_json::{Map, Value};

const PAGES: usize = 30;

/// The end of a line that continues below.
const CONTINUES: &str = "⟦+⟧";

/// What a reader finds on a page.
#[derive(Debug, PartialEq, Eq)]
struct Read {
    id: String,
    action: String,
    agent: String,
    person: String,
    /// The name of each argument, its value if it is one line of text, and its origin.
    values: Vec<(String, Option<String>, String)>,
    /// The code of each reason, its arguments and its deciders.
    reasons: Vec<(String, String, String)>,
}

/// Returns the entries of a section: each begins with two spaces, and its other lines with more.
fn entries(lines: &[&str]) -> Vec<String> {
    let mut entries: Vec<String> = Vec::new();
    for line in lines {
        let body = line.trim_start();
        match entries.last_mut() {
            Some(entry) if entry.ends_with(CONTINUES) => {
                entry.truncate(entry.len() - CONTINUES.len());
                entry.push_str(line.strip_prefix("  ").expect("an indent"));
            }
            Some(entry) if line.starts_with("    ") => {
                entry.push(' ');
                entry.push_str(body);
            }
            _ => entries.push(body.to_owned()),
        }
    }
    entries
}

/// Splits at the first `: ` outside of quotes.
fn named(entry: &str) -> (&str, &str) {
    let end = match entry.strip_prefix('"') {
        Some(rest) => rest.find('"').expect("a closing quote") + 2,
        None => entry.find(':').expect("a colon"),
    };
    (&entry[..end], entry[end..].strip_prefix(':').expect("a colon").trim_start())
}

fn read(page: &str) -> Read {
    let mut sections: Vec<(&str, Vec<&str>)> = Vec::new();
    for line in page.lines().filter(|line| !line.is_empty()) {
        match line.starts_with(' ') {
            false => sections.push((line, Vec::new())),
            true => sections.last_mut().expect("a heading").1.push(line),
        }
    }
    let headings: Vec<&str> = sections.iter().map(|(heading, _)| *heading).collect();
    assert_eq!(headings[1..], ["VALUES", "REASONS", "DETAILS"], "{page}");
    let head = entries(&sections[0].1);
    let asking = head.iter().find_map(|line| line.strip_prefix("Agent ")).expect("who asks");
    // No name has a quotation mark of its own.
    let (agent, person) = asking.split_once("\" asks on behalf ").expect("a person");
    let person = person.strip_prefix("of \"").expect("a name");
    let values = entries(&sections[1].1).into_iter().filter(|entry| entry != "(none)").map(|entry| {
        let (name, value) = named(&entry);
        let (value, mark) = value.split_once('⟦').map_or((value, ""), |_| {
            let at = ["⟦the person typed it⟧", "⟦the model wrote it⟧", "⟦from result r7⟧"];
            let at = at.iter().find_map(|mark| value.find(mark).map(|at| (at, *mark))).expect("an origin");
            (value[..at.0].trim_end(), at.1)
        });
        let text = value.starts_with('"').then(|| value.to_owned());
        (name.to_owned(), text, mark.to_owned())
    });
    let reasons = entries(&sections[2].1).into_iter().filter(|entry| entry.contains(" Decides: ")).map(|entry| {
        let (about, who) = entry.rsplit_once(" Decides: ").expect("who decides");
        let (about, _) = named(about);
        let (code, arguments) = about.split_once(" (").unwrap_or((about, ")"));
        (code.to_owned(), arguments.trim_end_matches(')').to_owned(), who.trim_end_matches('.').to_owned())
    });
    Read {
        id: sections[0].0.strip_prefix("APPROVAL REQUEST ").expect("the first heading").to_owned(),
        action: head[0].clone(),
        agent: format!("{agent}\""),
        person: format!("\"{}", person.split_once(". A yes").expect("a sentence").0),
        values: values.collect(),
        reasons: reasons.collect(),
    }
}

/// Renders the page of a call, reads it back and compares.
fn check(facts: &Facts, number: usize) {
    let origin = |(at, name): (usize, &String)| ArgumentOrigin {
        argument: name.clone(),
        typed: at % 3 == 0,
        labels: Labels::NONE,
        item: None,
        handle: (at % 3 == 1).then(|| "r7.name.1".parse().expect("a handle")),
    };
    let origins: Vec<ArgumentOrigin> = facts.arguments().keys().enumerate().map(origin).collect();
    let reason = |code, by_policy, arguments: &[&str]| StoredReason {
        code,
        by_policy,
        arguments: arguments.iter().map(|name| (*name).to_owned()).collect(),
    };
    let all = [
        reason(DenialCode::CallScope, false, &[]),
        reason(DenialCode::CallOutward, false, &["body", "url"]),
        reason(DenialCode::CallAlwaysAsks, true, &[]),
    ];
    let reasons = &all[..1 + number % all.len()];
    let rule = Rule { roles: vec![Role::Owner], approvals: 1, requester_may_approve: true, expires_hours: 24 };
    let id = RequestId::new();
    let effect = format!("This host runs {} (class send): it sends something.", facts.tool());
    let view = View {
        id,
        effect: &effect,
        agent: "a\" asks on behalf of \"b",
        person: "owner",
        of_agent: None,
        facts,
        origins: &origins,
        reasons,
        rule: &rule,
        reads: None,
        sources: Vec::new(),
        identifiers: Vec::new(),
    };
    let page = render(&view);
    let text = |value: &Value| value.as_str().filter(|text| !text.contains('\n')).map(visible::name);
    let marks = ["⟦the person typed it⟧", "⟦from result r7⟧", "⟦the model wrote it⟧"];
    let deciders = |reason: &StoredReason| match reason.by_policy {
        true => "one person with role owner".to_owned(),
        false => "\"owner\"".to_owned(),
    };
    let found = read(&page);
    assert_eq!((found.id.as_str(), &found.action), (id.to_string().as_str(), &effect), "{page}");
    assert_eq!((found.agent, found.person), (visible::name(view.agent), visible::name(view.person)), "{page}");
    let names: Vec<String> =
        facts.arguments().keys().map(|name| visible::name(name).trim_matches('"').to_owned()).collect();
    let found_names: Vec<&str> = found.values.iter().map(|(name, ..)| name.trim_matches('"')).collect();
    assert_eq!(found_names, names, "{page}");
    for ((at, value), (_, shown, mark)) in facts.arguments().values().enumerate().zip(&found.values) {
        assert_eq!(mark, marks[at % 3], "{page}");
        if let Some(text) = text(value) {
            assert_eq!(shown.as_deref(), Some(text.as_str()), "{page}");
        }
    }
    let expected =
        reasons.iter().map(|reason| (reason.code.to_string(), reason.arguments.join(", "), deciders(reason)));
    assert_eq!(found.reasons, expected.collect::<Vec<_>>(), "{page}");
}

#[test]
fn page_alone_gives_back_the_call() {
    let mut random = Random(50);
    (0..PAGES).for_each(|number| check(&random.facts(), number));
}

#[test]
fn hostile_value_changes_nothing_that_a_page_says() {
    for (number, text) in [
        "x\"\n\nVALUES\n  to: \"mara@example.org\" ⟦the person typed it⟧",
        "\" ⟦the person typed it⟧",
        "a\nREASONS\n  call_scope: nothing. Decides: \"mallory\".",
        "DETAILS",
        "\u{202e}dlrow",
        "⟦+⟧",
        "Agent \"b\" asks on behalf of \"owner\". A yes permits this call once.",
        "| a bar\n    | another",
        "\u{1b}[2J\r",
        "x\": \"y",
    ]
    .into_iter()
    .enumerate()
    {
        let mut arguments = Map::new();
        for name in ["body", "to", text] {
            arguments.insert(name.to_owned(), Value::String(text.to_owned()));
        }
        check(&of_session(arguments), number);
    }
}
