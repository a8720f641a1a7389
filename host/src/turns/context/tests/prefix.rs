//! The stable beginning of prompts: each prompt begins with the bytes of the previous one, for every sequence of events.

use super::fixture::{ANN, BOB, Ending, Fixture, with_fixture};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
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

/// A conversation, and the last prompt of each person in it.
struct Watched<'s, 'a, 'tx> {
    fixture: &'s mut Fixture<'a, 'tx>,
    words: u32,
    prompts: HashMap<String, String>,
}

impl Watched<'_, '_, '_> {
    fn words(&mut self, kind: &str) -> String {
        self.words += 1;
        format!("{kind} {}", self.words)
    }

    /// Checks the prompt against the previous one of its person, and keeps it up to the end of its last text.
    fn look(&mut self) -> Result<(), TestCaseError> {
        let request = self.fixture.request();
        let text = request["messages"].to_string();
        let open = text.strip_suffix(r#"","role":"user"}]"#).or_else(|| text.strip_suffix(']')).expect("a list");
        let before = self.prompts.insert(self.fixture.principal(), open.to_owned());
        let before = before.unwrap_or_default();
        prop_assert!(text.starts_with(&before), "the prompt does not begin with\n{before}\nbut is:\n{text}");
        Ok(())
    }

    fn turn(&mut self, calls: u8, chatter: bool, ends: Option<Ending>) -> Result<(), TestCaseError> {
        if !self.fixture.open() {
            return Ok(());
        }
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
        if moves {
            self.prompts.clear();
        }
        Ok(())
    }
}

fn play(fixture: &mut Fixture<'_, '_>, case: u32, events: Vec<Event>) -> Result<(), TestCaseError> {
    fixture.thread = format!("t{case}");
    let mut watched = Watched { fixture, words: 0, prompts: HashMap::new() };
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
