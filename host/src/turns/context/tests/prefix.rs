//! The stable beginning of prompts: each prompt begins with the bytes of the previous one, for every sequence of events.

use super::fixture::{ANN, BOB, Ending, Fixture, with_fixture};
use ironclaw_model::Prompt;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use serde_json::Value;
use std::collections::HashMap;

const CASES: u32 = 48;
const EVENTS_MAX: usize = 24;

#[derive(Debug, Clone)]
enum Event {
    /// A message that asks for a turn.
    Ask(bool),
    /// A message that is only context.
    Chatter(bool),
    /// A notice of the host.
    Notify,
    /// The next turn, with this number of outputs with calls, and with messages while it is open.
    Turn { calls: u8, chatter: bool, ends: Option<Ending> },
}

fn event() -> impl Strategy<Value = Event> {
    let ends = prop_oneof![
        4 => Just(None),
        1 => Just(Some(Ending::Notice)),
        1 => Just(Some(Ending::ModelFailed)),
        1 => Just(Some(Ending::Interrupted)),
    ];
    prop_oneof![
        3 => any::<bool>().prop_map(Event::Ask),
        2 => any::<bool>().prop_map(Event::Chatter),
        1 => Just(Event::Notify),
        4 => (0u8..3, any::<bool>(), ends).prop_map(|(calls, chatter, ends)| Event::Turn { calls, chatter, ends }),
    ]
}

/// Minutes between two turns: hours, so that midnight passes often.
const MINUTES_BETWEEN: i64 = 437;

/// The mark of a cached beginning, which is no content of the prompt. In a text its quotes would be escaped.
const MARK: &str = r#""cache_control":{"type":"ephemeral"},"#;

/// A conversation, and the last prompt of each person in it.
struct Watched<'s, 'a, 'tx> {
    fixture: &'s mut Fixture<'a, 'tx>,
    words: u32,
    /// Minutes of the next turn.
    minutes: i64,
    /// A turn ended with a notice, and none was answered since.
    is_unresolved: bool,
    prompts: HashMap<String, [Beginning; 2]>,
}

/// The beginning of the prompts after a request, up to the end of its last text.
#[derive(Debug, Clone, Default)]
struct Beginning {
    /// The system text and the tools, in front of the messages.
    head: String,
    messages: String,
}

impl Beginning {
    /// Returns the beginnings of the requests for both APIs, and their whole messages.
    fn of(prompt: &Prompt) -> [(Self, String); 2] {
        let [chat, messages] = ironclaw_model::requests(prompt);
        let read = |request: &Value, ends: &[&str]| {
            let head = format!("{}{}", request["system"], request["tools"]);
            let text = request["messages"].to_string().replace(MARK, "");
            let open = ends.iter().find_map(|end| text.strip_suffix(end)).expect("a list").to_owned();
            (Self { head, messages: open }, text)
        };
        // A later part continues the last text of Chat Completions, and adds a block to the last message of Messages.
        [read(&chat, &[r#"","role":"user"}]"#, "]"]), read(&messages, &[r#"],"role":"user"}]"#])]
    }
}

impl Watched<'_, '_, '_> {
    fn words(&mut self, kind: &str) -> String {
        self.words += 1;
        format!("{kind} {}", self.words)
    }

    /// Checks the prompt against the previous one of its person, and keeps it up to the end of its last text.
    fn look(&mut self) -> Result<(), TestCaseError> {
        let seen = Beginning::of(&self.fixture.prompt());
        let now = seen.clone().map(|(beginning, _)| beginning);
        let Some(before) = self.prompts.insert(self.fixture.principal(), now) else { return Ok(()) };
        for (before, (now, text)) in before.iter().zip(&seen) {
            prop_assert_eq!(&before.head, &now.head);
            let before = &before.messages;
            prop_assert!(text.starts_with(before), "the prompt does not begin with\n{}\nbut is:\n{}", before, text);
        }
        Ok(())
    }

    fn turn(&mut self, calls: u8, chatter: bool, ends: Option<Ending>) -> Result<(), TestCaseError> {
        if !self.fixture.open() {
            return Ok(());
        }
        self.fixture.opened_after(self.minutes);
        self.minutes += MINUTES_BETWEEN;
        self.look()?;
        for at in 0..calls {
            if chatter {
                let words = self.words("in between");
                self.fixture.say(ANN, &words);
                self.fixture.notify(&words);
                let words = self.words("!meanwhile");
                self.fixture.say(BOB, &words);
            }
            // The last result of an interrupted turn may be missing.
            let lost = ends == Some(Ending::Interrupted) && at + 1 == calls;
            let result = (!lost).then_some((at == 0, "a result"));
            let words = self.words("thought");
            self.fixture.output(&words, &[("read_file", result)], false);
            if !lost {
                self.look()?;
            }
        }
        // If a turn of several messages is interrupted, all messages except the first move after the answer to the first.
        let moves = ends == Some(Ending::Interrupted) && self.fixture.own().len() > 1;
        match ends {
            None => {
                let words = self.words("answer");
                self.fixture.answer(&words);
            }
            Some(ends) => self.fixture.end(ends),
        }
        // After an answer, the notices before it leave the prompts.
        let resolves = ends.is_none() && self.is_unresolved;
        match ends {
            None => self.is_unresolved = false,
            Some(Ending::Notice | Ending::ModelFailed) => self.is_unresolved = true,
            Some(Ending::Interrupted) => {}
        }
        if moves || resolves {
            self.prompts.clear();
        }
        Ok(())
    }
}

fn play(fixture: &mut Fixture<'_, '_>, case: u32, events: Vec<Event>) -> Result<(), TestCaseError> {
    fixture.thread = format!("t{case}");
    let mut watched = Watched { fixture, words: 0, minutes: 0, is_unresolved: false, prompts: HashMap::new() };
    watched.fixture.say(ANN, "chatter before all");
    let sender = |of_ann: bool| if of_ann { ANN } else { BOB };
    for event in events {
        match event {
            Event::Ask(of_ann) => {
                let words = watched.words("!ask");
                watched.fixture.say(sender(of_ann), &words);
            }
            Event::Chatter(of_ann) => {
                let words = watched.words("chatter");
                watched.fixture.say(sender(of_ann), &words);
            }
            Event::Notify => {
                let words = watched.words("told");
                watched.fixture.notify(&words);
            }
            Event::Turn { calls, chatter, ends } => watched.turn(calls, chatter, ends)?,
        }
    }
    Ok(())
}

#[test]
fn each_prompt_begins_with_the_bytes_of_the_one_before() {
    with_fixture(|mut fixture| {
        let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
        let fixture = std::cell::RefCell::new((&mut fixture, 0));
        let events = prop::collection::vec(event(), 1..EVENTS_MAX);
        let held = TestRunner::new(config).run(&events, |events| {
            let (fixture, case) = &mut *fixture.borrow_mut();
            *case += 1;
            play(fixture, *case, events)
        });
        if let Err(broken) = held {
            panic!("{broken}");
        }
    });
}

#[test]
fn prompt_after_midnight_begins_with_the_one_before() {
    with_fixture(|mut fixture| {
        let mut seen = Vec::new();
        // From 23:59 to 00:01.
        for (minutes, words) in [(719, "!late"), (721, "!early")] {
            fixture.ask(ANN, words);
            fixture.opened_after(minutes);
            seen.push(Beginning::of(&fixture.prompt()));
            fixture.answer("answer");
        }
        let [before, after] = &seen[..] else { panic!("two prompts") };
        for ((before, _), (now, text)) in before.iter().zip(after) {
            assert_eq!(before.head, now.head);
            let new = text.strip_prefix(&before.messages).expect("the same beginning");
            assert!(before.messages.contains("it is now 23:59 on Sunday, 22 November 2026 (UTC+01:00)."), "{text}");
            assert!(new.contains("it is now 00:01 on Monday, 23 November 2026 (UTC+01:00)."), "{new}");
            assert!(!before.head.contains("2026"), "the head has no time");
        }
    });
}
