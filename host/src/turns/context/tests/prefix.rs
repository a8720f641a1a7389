//! A prompt begins with the bytes of the one before it, whatever happened in between.

use super::stage::{ANN, BOB, Ends, Stage, on_stage};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use std::collections::HashMap;

const CASES: u32 = 48;
const EVENTS_MAX: usize = 24;

#[derive(Debug, Clone)]
enum Event {
    /// A message that asks.
    Ask(bool),
    /// A message that only informs.
    Chatter(bool),
    /// The host tells something.
    Tell,
    /// The next turn, with so many outputs that have calls, and messages in the middle of it.
    Turn { calls: u8, chatter: bool, ends: Option<Ends> },
}

fn event() -> impl Strategy<Value = Event> {
    let ends = prop_oneof![
        4 => Just(None),
        1 => Just(Some(Ends::Notice)),
        1 => Just(Some(Ends::ModelFailed)),
        1 => Just(Some(Ends::CutShort)),
    ];
    prop_oneof![
        3 => any::<bool>().prop_map(Event::Ask),
        2 => any::<bool>().prop_map(Event::Chatter),
        1 => Just(Event::Tell),
        4 => (0u8..3, any::<bool>(), ends).prop_map(|(calls, chatter, ends)| Event::Turn { calls, chatter, ends }),
    ]
}

/// A conversation, and the last prompt of each person in it.
struct Watched<'s, 'a, 'tx> {
    stage: &'s mut Stage<'a, 'tx>,
    words: u32,
    prompts: HashMap<String, String>,
}

impl Watched<'_, '_, '_> {
    fn words(&mut self, kind: &str) -> String {
        self.words += 1;
        format!("{kind} {}", self.words)
    }

    /// The prompt up to the end of its last words.
    fn look(&mut self) -> Result<(), TestCaseError> {
        let request = self.stage.request();
        let text = request["messages"].to_string();
        let open = text.strip_suffix(r#"","role":"user"}]"#).or_else(|| text.strip_suffix(']')).expect("a list");
        let before = self.prompts.insert(self.stage.principal(), open.to_owned());
        let before = before.unwrap_or_default();
        prop_assert!(text.starts_with(&before), "{before}\nis not how this begins:\n{text}");
        Ok(())
    }

    fn turn(&mut self, calls: u8, chatter: bool, ends: Option<Ends>) -> Result<(), TestCaseError> {
        if !self.stage.open() {
            return Ok(());
        }
        self.look()?;
        for at in 0..calls {
            if chatter {
                let words = self.words("in between");
                self.stage.say(ANN, &words);
                self.stage.tell(&words);
                let words = self.words("!meanwhile");
                self.stage.say(BOB, &words);
            }
            // The last result of a turn that is cut short may be missing.
            let lost = ends == Some(Ends::CutShort) && at + 1 == calls;
            let result = (!lost).then_some((at == 0, "a result"));
            let words = self.words("thought");
            self.stage.output(&words, &[("read_file", result)], false);
            if !lost {
                self.look()?;
            }
        }
        // Of several messages whose turn was cut short, all but the first move behind the first one's answer.
        let moves = ends == Some(Ends::CutShort) && self.stage.own().len() > 1;
        match ends {
            None => {
                let words = self.words("answer");
                self.stage.answer(&words);
            }
            Some(ends) => self.stage.end(ends),
        }
        if moves {
            self.prompts.clear();
        }
        Ok(())
    }
}

fn play(stage: &mut Stage<'_, '_>, case: u32, events: Vec<Event>) -> Result<(), TestCaseError> {
    stage.thread = format!("t{case}");
    let mut watched = Watched { stage, words: 0, prompts: HashMap::new() };
    watched.stage.say(ANN, "chatter before all");
    let sender = |of_ann: bool| if of_ann { ANN } else { BOB };
    for event in events {
        match event {
            Event::Ask(of_ann) => {
                let words = watched.words("!ask");
                watched.stage.say(sender(of_ann), &words);
            }
            Event::Chatter(of_ann) => {
                let words = watched.words("chatter");
                watched.stage.say(sender(of_ann), &words);
            }
            Event::Tell => {
                let words = watched.words("told");
                watched.stage.tell(&words);
            }
            Event::Turn { calls, chatter, ends } => watched.turn(calls, chatter, ends)?,
        }
    }
    Ok(())
}

#[test]
fn each_prompt_begins_with_the_bytes_of_the_one_before() {
    on_stage(|mut stage| {
        let config = Config { cases: CASES, failure_persistence: None, ..Config::default() };
        let stage = std::cell::RefCell::new((&mut stage, 0));
        let events = prop::collection::vec(event(), 1..EVENTS_MAX);
        let held = TestRunner::new(config).run(&events, |events| {
            let (stage, case) = &mut *stage.borrow_mut();
            *case += 1;
            play(stage, *case, events)
        });
        if let Err(broken) = held {
            panic!("{broken}");
        }
    });
}
