mod simulation;
mod tables;

use super::*;
use crate::runtime::command::Ticket;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngSeed, TestRunner};
use simulation::{FAILURES_MAX, Simulation, script, simulate, unwritten};
use std::collections::BTreeSet;

/// Effects that start work.
const STARTING_EFFECTS: [&str; 5] = ["Join", "TakeFreeSlot", "Launch", "Work {", "OpenTurn"];

fn starts_work(seen: &str) -> bool {
    // The events of a launch start with the same letters.
    STARTING_EFFECTS.iter().any(|word| seen.starts_with(word))
        && !seen.starts_with("Launched")
        && !seen.starts_with("Launcher")
}

/// Returns the entries up to the first one with one of these prefixes, or the whole rest.
fn until<'a>(rest: &'a [String], ends: &'a [&str]) -> &'a [String] {
    let at = rest.iter().position(|seen| ends.iter().any(|end| seen.starts_with(end)));
    &rest[..at.unwrap_or(rest.len())]
}

/// Returns the rest of the trace after each entry with this prefix.
fn after_each<'a>(simulation: &'a Simulation, what: &'a str) -> impl Iterator<Item = &'a [String]> {
    let places = simulation.trace.iter().enumerate().filter(move |(_, seen)| seen.starts_with(what));
    places.map(|(at, _)| &simulation.trace[at + 1..])
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// The simulation itself refuses a launch without a slot, a second sandbox, a second open turn, a slot that is given back twice or
    /// before the processes are gone, and resources that remain at the end.
    #[test]
    fn a_request_is_answered_or_dropped_exactly_once(script in script()) {
        let simulation = simulate(script);
        for (number, (ask, answers)) in simulation.answers.iter().enumerate() {
            let ticket = format!("Ticket({ask:?}, {number})");
            let is_heard = simulation.trace.iter().any(|seen| seen.contains(&ticket));
            let expected = if !Ticket::is_request(*ask) { 0..=1 } else if is_heard { 1..=1 } else { 0..=1 };
            prop_assert!(expected.contains(answers), "{ticket}: {answers}");
        }
    }

    #[test]
    fn nothing_begins_after_the_daemon_asked_to_stop(script in script()) {
        let simulation = simulate(script);
        let asleep = after_each(&simulation, "Asked { command: Ticket(Shutdown");
        for rest in asleep.chain(after_each(&simulation, "Asked(Ticket(Shutdown")) {
            prop_assert!(!rest.iter().any(|seen| starts_work(seen)), "{rest:#?}");
            prop_assert!(!rest.iter().any(|seen| seen == "Pause" || seen.starts_with("AwaitBackoff")), "{rest:#?}");
        }
    }

    #[test]
    fn nothing_begins_in_an_emergency_stop(script in script()) {
        let simulation = simulate(script);
        let heard = after_each(&simulation, "Halted").chain(after_each(&simulation, "Found { standing: Active, is_halted: true }"));
        for rest in heard {
            let rest = until(rest, &["Found { standing: Active, is_halted: false }"]);
            prop_assert!(!rest.iter().any(|seen| starts_work(seen)), "{rest:#?}");
        }
    }

    #[test]
    fn a_stopped_session_does_not_wake_by_itself(script in script()) {
        let simulation = simulate(script);
        for rest in after_each(&simulation, "StopNoted") {
            let rest = until(rest, &["Asked { command: Ticket(Wake"]);
            prop_assert!(!rest.iter().any(|seen| starts_work(seen)), "{rest:#?}");
        }
    }

    #[test]
    fn a_violation_is_quarantined_before_anything_else(script in script()) {
        let simulation = simulate(script);
        let failed = "LaunchFailed { why: FailureReason { words: \"no\", detail: \"\" }, is_violation: true";
        for event in ["Slept { reason: Violated", "Drained(Some", failed] {
            for rest in after_each(&simulation, event) {
                // The end of a killed process does not count.
                if simulation.trace[simulation.trace.len() - rest.len() - 1].contains("is_halted: true") {
                    continue;
                }
                let before = until(rest, &["Quarantine", "Failed"]);
                prop_assert!(before.len() < rest.len(), "a quarantine follows: {rest:#?}");
                let retries = ["CountFailure", "SetBackoff", "Find"];
                let is_retry = |seen: &String| starts_work(seen) || retries.iter().any(|word| seen.starts_with(word));
                prop_assert!(!before.iter().any(is_retry), "{before:#?}");
            }
        }
    }

    #[test]
    fn a_shortage_is_waited_out_and_never_counted(script in script()) {
        let simulation = simulate(script);
        for event in ["Slept { reason: Short", "Room(Some", "Probed(Some"] {
            for rest in after_each(&simulation, event) {
                let rest = until(rest, &["Find", "Slept", "Probed(None"]);
                let counts = |seen: &String| seen.starts_with("CountFailure") || seen.starts_with("Park");
                prop_assert!(!rest.iter().any(counts), "{rest:#?}");
            }
        }
    }

    #[test]
    fn after_a_shortage_the_open_turn_keeps_its_attempts(script in script()) {
        let simulation = simulate(script);
        for rest in after_each(&simulation, "NoteShortage(Some") {
            let closes = rest.iter().find(|seen| seen.starts_with("CloseLeftOver"));
            prop_assert!(closes.is_none_or(|closes| closes.contains("keeps_attempts: true")), "{closes:?}");
        }
    }

    #[test]
    fn a_session_is_parked_after_its_last_failure_only(script in script()) {
        let simulation = simulate(script);
        for rest in after_each(&simulation, "Counted(") {
            let counted = &simulation.trace[simulation.trace.len() - rest.len() - 1];
            let is_last = *counted >= format!("Counted({FAILURES_MAX})");
            prop_assert_eq!(rest[0].starts_with("Park"), is_last, "{}", counted);
            let is_stopping = rest[0] == "Show(Asleep)";
            prop_assert_eq!(rest[0].starts_with("SetBackoff"), !is_last && !is_stopping, "{}", counted);
        }
    }

    #[test]
    fn a_turn_that_was_open_is_closed_once_the_session_runs(script in script()) {
        let simulation = simulate(script);
        prop_assert!(simulation.opened - simulation.closed <= 1);
        let is_cut_short = simulation.has("Asked { command: Ticket(Shutdown") || simulation.has("Asked(Ticket(Shutdown");
        let may_work = simulation.standing == SessionState::Active && !simulation.is_gone && !simulation.has("StopNoted") && !is_cut_short;
        if may_work && !simulation.is_halted {
            prop_assert_eq!((simulation.opened - simulation.closed, simulation.waiting), (0, 0), "all work is done");
        }
    }

    /// Impossible events cause no panic, and lose no command.
    #[test]
    fn no_order_of_events_makes_it_panic(order in prop::collection::vec((0u8..29, any::<bool>()), 0..120)) {
        let mut life = Life::new(FAILURES_MAX);
        let (mut given, mut back) = (0, 0);
        for (number, (kind, flag)) in order.into_iter().enumerate() {
            let event = any_event(kind, flag, number);
            given += Ticket::requests(&event);
            back += Ticket::requests(&life.step(event));
        }
        back += Ticket::requests(&life.step(Event::Failed(unwritten())));
        prop_assert_eq!(given, back);
    }
}

fn any_event(kind: u8, flag: bool, number: usize) -> Event<Ticket> {
    let ticket = Ticket::numbered(number);
    let slept = |reason| Event::Slept { reason, shutdown: None, is_halted: flag, keeps_attempts: flag };
    let why = || FailureReason::new("no");
    match kind {
        0 => Event::Begun,
        1..=3 => Event::Done,
        4 => Event::Failed(if flag { unwritten() } else { Error::Stopping }),
        5 => Event::Found { standing: SessionState::Active, is_halted: flag },
        6 => Event::Gone,
        7 => Event::Work(flag),
        8 => Event::Measured(None),
        9 => Event::Room(flag.then_some(Shortage::Disk)),
        10..=12 => Event::Asked { command: ticket, is_halted: flag },
        13 => Event::MailboxClosed,
        14 => Event::Halted,
        15 => Event::SlotHeld,
        16 => Event::TimeOver,
        17 => Event::Left,
        18 => Event::Launched,
        19 => Event::LaunchFailed { why: why(), is_violation: flag, reported: None, is_halted: false },
        20 => slept(SleepReason::Asked(ticket)),
        21 => slept(SleepReason::Ended(Some(ticket))),
        22 => Event::Slept {
            reason: SleepReason::Violated(why()),
            shutdown: Some(ticket),
            is_halted: flag,
            keeps_attempts: flag,
        },
        23 => Event::Ended { is_reader_gone: flag },
        24 => Event::Drained(flag.then(why)),
        25 => Event::Probed(flag.then_some(Shortage::Memory)),
        26 => Event::Launcher { is_dead: flag },
        27 => Event::NoSlot,
        _ => Event::Counted(number as u32),
    }
}

/// Without this the properties could hold only because the events never come.
#[test]
fn the_scripts_lead_to_every_effect() {
    let mut runner = TestRunner::deterministic();
    let mut seen = BTreeSet::new();
    for _ in 0..2_000 {
        let script = script().new_tree(&mut runner).expect("a script can be made").current();
        let word = |text: &String| text.split(['(', ' ']).next().expect("there is a first").to_owned();
        seen.extend(simulate(script).trace.iter().map(word));
    }
    let effects = "Join TakeFreeSlot NoSlot GiveSlotBack EndDrafts DropAwake SetBackoff Answer RefuseProof Abandon EndOverBound Launch \
        NoteRefusedLaunch Work Requeue Quarantine Park CountFailure AwaitBackoff Pause NoteStop RunCommand LeaveOrWait \
        LeaveRemoved CloseLeftOver OpenTurn EndTurn MissDeadline ReplaceReader FindEnd Cancel Prove Sleep \
        LaunchFailed";
    let missing: Vec<_> = effects.split(' ').filter(|effect| !seen.contains(*effect)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}
