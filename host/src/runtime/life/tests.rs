mod world;

use super::*;
use crate::runtime::command::Ticket;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{RngSeed, TestRunner};
use std::collections::BTreeSet;
use world::{FAILURES_MAX, World, live, script, unwritten};

/// Effects that begin something.
const BEGINNINGS: [&str; 4] = ["Join", "Launch", "Work {", "OpenTurn"];

fn begins(seen: &str) -> bool {
    // The event of a launch begins with the same letters.
    BEGINNINGS.iter().any(|word| seen.starts_with(word))
        && !seen.starts_with("Launched")
        && !seen.starts_with("Launcher")
}

/// The text between a place and the first one that begins so, or the whole rest.
fn until<'a>(rest: &'a [String], ends: &'a [&str]) -> &'a [String] {
    let at = rest.iter().position(|seen| ends.iter().any(|end| seen.starts_with(end)));
    &rest[..at.unwrap_or(rest.len())]
}

/// Everything after each place that begins so.
fn after_each<'a>(world: &'a World, what: &'a str) -> impl Iterator<Item = &'a [String]> {
    let places = world.trace.iter().enumerate().filter(move |(_, seen)| seen.starts_with(what));
    places.map(|(at, _)| &world.trace[at + 1..])
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// The world itself refuses a launch without a slot, a second sandbox, a second open turn, a slot that is given back twice or
    /// before the processes are gone, and anything that is left behind at the end.
    #[test]
    fn a_request_is_answered_or_dropped_exactly_once(script in script()) {
        let world = live(script);
        for (number, (ask, answers)) in world.answers.iter().enumerate() {
            let ticket = format!("Ticket({ask:?}, {number})");
            let is_heard = world.trace.iter().any(|seen| seen.contains(&ticket));
            let expected = if !Ticket::is_request(*ask) { 0..=1 } else if is_heard { 1..=1 } else { 0..=1 };
            prop_assert!(expected.contains(answers), "{ticket}: {answers}");
        }
    }

    #[test]
    fn nothing_begins_after_the_daemon_asked_to_stop(script in script()) {
        let world = live(script);
        let asleep = after_each(&world, "Asked { command: Ticket(Shutdown");
        for rest in asleep.chain(after_each(&world, "Asked(Ticket(Shutdown")) {
            let rest = until(rest, &["Failed", "Abandon(Ticket(Shutdown"]);
            prop_assert!(!rest.iter().any(|seen| begins(seen)), "{rest:#?}");
        }
    }

    #[test]
    fn nothing_begins_in_an_emergency_stop(script in script()) {
        let world = live(script);
        let heard = after_each(&world, "Halted").chain(after_each(&world, "Found { standing: Live, is_halted: true }"));
        for rest in heard {
            let rest = until(rest, &["Found { standing: Live, is_halted: false }"]);
            prop_assert!(!rest.iter().any(|seen| begins(seen)), "{rest:#?}");
        }
    }

    #[test]
    fn a_stopped_session_does_not_wake_by_itself(script in script()) {
        let world = live(script);
        for rest in after_each(&world, "StopNoted") {
            let rest = until(rest, &["Asked { command: Ticket(Wake", "Failed"]);
            prop_assert!(!rest.iter().any(|seen| begins(seen)), "{rest:#?}");
        }
    }

    #[test]
    fn a_violation_is_quarantined_before_anything_else(script in script()) {
        let world = live(script);
        let failed = "LaunchFailed { why: Why { words: \"no\", detail: \"\" }, is_violation: true";
        for event in ["Slept { reason: Violated", "Drained(Some", failed] {
            for rest in after_each(&world, event) {
                // What a killed process looks like counts for nothing.
                if world.trace[world.trace.len() - rest.len() - 1].contains("is_halted: true") {
                    continue;
                }
                let before = until(rest, &["Quarantine", "Failed"]);
                prop_assert!(before.len() < rest.len(), "there is one: {rest:#?}");
                let retries = ["CountFailure", "SetBackoff", "Find"];
                let is_retry = |seen: &String| begins(seen) || retries.iter().any(|word| seen.starts_with(word));
                prop_assert!(!before.iter().any(is_retry), "{before:#?}");
            }
        }
    }

    #[test]
    fn a_shortage_is_waited_out_and_never_counted(script in script()) {
        let world = live(script);
        for event in ["Slept { reason: Short", "Room(Some", "Probed(Some"] {
            for rest in after_each(&world, event) {
                let rest = until(rest, &["Find", "Slept", "Probed(None"]);
                let counts = |seen: &String| seen.starts_with("CountFailure") || seen.starts_with("Park");
                prop_assert!(!rest.iter().any(counts), "{rest:#?}");
            }
        }
    }

    #[test]
    fn after_a_shortage_the_open_turn_keeps_its_attempts(script in script()) {
        let world = live(script);
        for rest in after_each(&world, "NoteShortage(Some") {
            let closes = rest.iter().find(|seen| seen.starts_with("CloseLeftOver"));
            prop_assert!(closes.is_none_or(|closes| closes.contains("forgives: true")), "{closes:?}");
        }
    }

    #[test]
    fn a_session_is_parked_after_its_last_failure_only(script in script()) {
        let world = live(script);
        for rest in after_each(&world, "Counted(") {
            let counted = &world.trace[world.trace.len() - rest.len() - 1];
            let is_last = *counted >= format!("Counted({FAILURES_MAX})");
            prop_assert_eq!(rest[0].starts_with("Park"), is_last, "{}", counted);
            prop_assert_eq!(rest[0].starts_with("SetBackoff"), !is_last, "{}", counted);
        }
    }

    #[test]
    fn a_turn_that_was_open_is_closed_once_the_session_runs(script in script()) {
        let world = live(script);
        prop_assert!(world.opened - world.closed <= 1);
        let is_cut_short = world.has("Asked { command: Ticket(Shutdown") || world.has("Asked(Ticket(Shutdown");
        let may_work = world.standing == Standing::Live && !world.is_gone && !world.has("StopNoted") && !is_cut_short;
        if may_work && !world.is_halted {
            prop_assert_eq!((world.opened - world.closed, world.waiting), (0, 0), "all work is done");
        }
    }

    /// Events that cannot come where they come: nothing panics, and no command is lost.
    #[test]
    fn no_order_of_events_makes_it_panic(order in prop::collection::vec((0u8..28, any::<bool>()), 0..120)) {
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
    let slept = |reason| Event::Slept { reason, is_halted: flag, forgives: flag };
    let why = || Why::new("no");
    match kind {
        0 => Event::Begun,
        1..=3 => Event::Done,
        4 => Event::Failed(if flag { unwritten() } else { Error::Stopping }),
        5 => Event::Found { standing: Standing::Live, is_halted: flag },
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
        22 => slept(SleepReason::Violated(why())),
        23 => Event::Ended { is_reader_gone: flag },
        24 => Event::Drained(flag.then(why)),
        25 => Event::Probed(flag.then_some(Shortage::Memory)),
        26 => Event::Launcher { is_dead: flag },
        _ => Event::Counted(number as u32),
    }
}

/// Without this the properties could hold because what they are about never comes.
#[test]
fn the_scripts_lead_to_every_effect() {
    let mut runner = TestRunner::deterministic();
    let mut seen = BTreeSet::new();
    for _ in 0..500 {
        let script = script().new_tree(&mut runner).expect("a script can be made").current();
        let word = |text: &String| text.split(['(', ' ']).next().expect("there is a first").to_owned();
        seen.extend(live(script).trace.iter().map(word));
    }
    let effects = [
        "Join",
        "GiveSlotBack",
        "EndDrafts",
        "DropAwake",
        "SetBackoff",
        "Answer",
        "RefuseProof",
        "Abandon",
        "EndOverBound",
        "Launch",
        "NoteRefusedLaunch",
        "Work",
        "Requeue",
        "Quarantine",
        "Park",
        "CountFailure",
        "AwaitBackoff",
        "Pause",
        "NoteStop",
        "Obey",
        "LeaveOrWait",
        "LeaveRemoved",
        "CloseLeftOver",
        "OpenTurn",
        "EndTurn",
        "CloseTurn",
        "MissDeadline",
        "ReplaceReader",
        "FindEnd",
        "Cancel",
        "Prove",
        "Sleep",
        "LaunchFailed",
    ];
    let missing: Vec<_> = effects.iter().filter(|effect| !seen.contains(**effect)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// Takes events in order, and compares the effects of each.
fn table(life: &mut Life<Ticket>, rows: Vec<(Event<Ticket>, &[&str])>) {
    for (event, expected) in rows {
        let named = format!("{event:?}");
        let effects: Vec<String> = life.step(event).iter().map(|effect| format!("{effect:?}")).collect();
        assert_eq!(effects, expected, "after {named}");
    }
}

fn found() -> Event<Ticket> {
    Event::Found { standing: Standing::Live, is_halted: false }
}

fn slept(reason: SleepReason<Ticket>) -> Event<Ticket> {
    Event::Slept { reason, is_halted: false, forgives: false }
}

fn asked(ask: Ask) -> Event<Ticket> {
    Event::Asked { command: Ticket(ask, 7), is_halted: false }
}

/// An actor whose session has just been launched.
fn awake() -> Life<Ticket> {
    let mut life = Life::new(FAILURES_MAX);
    table(&mut life, vec![(Event::Begun, &["Deliver"]), (Event::Done, &["Show(Asleep)", "Find"])]);
    wakes(&mut life, true, "false");
    life
}

/// From the session's row to its work.
fn wakes(life: &mut Life<Ticket>, is_first: bool, forgives: &str) {
    let work = format!("Work {{ forgives: {forgives} }}");
    assert_eq!(life.shortages > 0, !is_first && life.forgives);
    table(
        life,
        vec![
            (found(), &["FindWork"]),
            (Event::Work(true), &["Measure"]),
            (Event::Measured(None), &["Join", "Show(Waiting)", "AwaitSlot"]),
            (Event::SlotHeld, &["CheckRoom"]),
            (Event::Room(None), &["Show(Starting)", "Launch"]),
            (Event::Launched, &["Show(Awake)", "NoteShortage(None)", &work]),
        ],
    );
}

#[test]
fn a_session_wakes_works_and_sleeps() {
    let mut life = awake();
    table(
        &mut life,
        vec![
            (slept(SleepReason::Idle), &["EndDrafts", "Show(Stopping)", "EndProcesses(Told)"]),
            (Event::Ended { is_reader_gone: false }, &["Drain"]),
            (Event::Drained(None), &["Requeue(\"put to sleep\")"]),
            (Event::Done, &["DropAwake", "Log(Asleep)", "GiveSlotBack", "Show(Asleep)", "Find"]),
            (found(), &["FindWork"]),
            (Event::Work(false), &["LeaveOrWait"]),
            (Event::Left, &["End"]),
        ],
    );
}

#[test]
fn a_crash_is_tried_again_with_longer_waits_then_parked() {
    let mut life = awake();
    for failures in 1..=FAILURES_MAX {
        table(
            &mut life,
            vec![
                (
                    slept(SleepReason::died("its process ended")),
                    &["EndDrafts", "Show(Stopping)", "EndProcesses(Killed)"],
                ),
                (Event::Ended { is_reader_gone: false }, &["Drain"]),
                (Event::Drained(None), &["DropAwake", "Log(Asleep)", "GiveSlotBack", "Probe(None)"]),
                (Event::Probed(None), &["Show(Asleep)", "CheckLauncher"]),
                (Event::Launcher { is_dead: false }, &["CountFailure"]),
            ],
        );
        if failures == FAILURES_MAX {
            break;
        }
        let backoff = format!("SetBackoff({failures})");
        table(
            &mut life,
            vec![
                (Event::Counted(failures), &[&backoff, "AwaitBackoff"]),
                // A wake does not end the wait.
                (asked(Ask::Wake), &["Deliver"]),
                (Event::Done, &["AwaitBackoff"]),
                (Event::TimeOver, &["Show(Asleep)", "Find"]),
            ],
        );
        wakes(&mut life, false, "false");
    }
    let parked = "Park(3, Why { words: \"its process ended\", detail: \"\" })";
    table(
        &mut life,
        vec![
            (Event::Counted(FAILURES_MAX), &[parked]),
            (Event::Done, &["Show(Asleep)", "Find"]),
            (Event::Found { standing: Standing::Parked, is_halted: false }, &["LeaveOrWait"]),
            (Event::Left, &["End"]),
        ],
    );
}

#[test]
fn a_shortage_waits_longer_each_time_until_a_sleep() {
    let mut life = awake();
    for (tries, waits) in ["SetBackoff(1)", "SetBackoff(2)"].into_iter().enumerate() {
        table(
            &mut life,
            vec![
                (slept(SleepReason::Short(Shortage::Memory)), &["EndDrafts", "Show(Stopping)", "EndProcesses(Killed)"]),
                (
                    Event::Ended { is_reader_gone: true },
                    &["DropAwake", "Log(Asleep)", "GiveSlotBack", "Show(Asleep)", "CheckLauncher"],
                ),
                (
                    Event::Launcher { is_dead: false },
                    &["Log(WaitsFor(Memory))", "NoteShortage(Some(Memory))", waits, "AwaitBackoff"],
                ),
                (Event::TimeOver, &["Show(Asleep)", "Find"]),
            ],
        );
        assert_eq!(life.shortages, tries as u32 + 1);
        wakes(&mut life, false, "true");
    }
    life.step(slept(SleepReason::Idle));
    life.step(Event::Ended { is_reader_gone: false });
    life.step(Event::Drained(None));
    life.step(Event::Done);
    assert_eq!(life.shortages, 0);
}

#[test]
fn an_emergency_stop_ends_both_and_counts_nothing() {
    let mut life = awake();
    let killed = Event::Slept { reason: SleepReason::died("its process ended"), is_halted: true, forgives: false };
    table(
        &mut life,
        vec![
            (killed, &["EndDrafts", "Show(Stopping)", "EndProcesses(KilledWithReader)"]),
            (Event::Ended { is_reader_gone: false }, &["Requeue(\"everything was stopped\")"]),
            (Event::Done, &["DropAwake", "Log(Asleep)", "GiveSlotBack", "Show(Asleep)", "Find"]),
            (Event::Found { standing: Standing::Live, is_halted: true }, &["LeaveOrWait"]),
            (
                Event::Asked { command: Ticket(Ask::Prove, 1), is_halted: true },
                &["RefuseProof(Ticket(Prove, 1))", "Show(Asleep)", "Find"],
            ),
        ],
    );
}

#[test]
fn a_stop_in_line_leaves_it_after_the_record_says_so() {
    let mut life = Life::new(FAILURES_MAX);
    for event in [Event::Begun, Event::Done, found(), Event::Work(true), Event::Measured(None)] {
        life.step(event);
    }
    table(
        &mut life,
        vec![
            (asked(Ask::Stop), &["Show(Asleep)", "Find"]),
            (found(), &["NoteStop(Ticket(Stop, 7))"]),
            (
                Event::StopNoted(Ticket(Ask::Stop, 7)),
                &["GiveSlotBack", "Answer(Ticket(Stop, 7))", "Show(Asleep)", "Find"],
            ),
            (found(), &["LeaveOrWait"]),
            (asked(Ask::Wake), &["Deliver"]),
            (Event::Done, &["Show(Asleep)", "Find"]),
            (found(), &["FindWork"]),
        ],
    );
}

#[test]
fn an_emergency_stop_in_line_leaves_it() {
    let mut life = Life::new(FAILURES_MAX);
    for event in [Event::Begun, Event::Done, found(), Event::Work(true), Event::Measured(None)] {
        life.step(event);
    }
    table(&mut life, vec![(Event::Halted, &["GiveSlotBack", "Show(Asleep)", "Find"])]);
}

#[test]
fn a_command_in_line_keeps_the_place_there() {
    let mut life = Life::new(FAILURES_MAX);
    for event in [Event::Begun, Event::Done, found(), Event::Work(true), Event::Measured(None)] {
        life.step(event);
    }
    table(
        &mut life,
        vec![
            (asked(Ask::Release), &["Show(Asleep)", "Find"]),
            (found(), &["Obey(Ticket(Release, 7))"]),
            (Event::Done, &["Show(Asleep)", "Find"]),
            (found(), &["FindWork"]),
            (Event::Work(true), &["Show(Waiting)", "AwaitSlot"]),
        ],
    );
}

#[test]
fn a_stop_during_a_breach_is_served_after_the_quarantine() {
    let mut life = awake();
    table(
        &mut life,
        vec![
            (slept(SleepReason::Asked(Ticket(Ask::Stop, 7))), &["EndDrafts", "Show(Stopping)", "EndProcesses(Told)"]),
            (Event::Ended { is_reader_gone: false }, &["Drain"]),
            (Event::Drained(Some(Why::new("a bad row"))), &["Quarantine(Why { words: \"a bad row\", detail: \"\" })"]),
            (Event::Done, &["Requeue(\"put to sleep\")"]),
            (Event::Done, &["DropAwake", "Log(Asleep)", "GiveSlotBack", "Show(Asleep)", "Find"]),
            (Event::Found { standing: Standing::Quarantined, is_halted: false }, &["NoteStop(Ticket(Stop, 7))"]),
        ],
    );
}

#[test]
fn an_error_of_the_host_drops_all_and_begins_anew() {
    let mut life = awake();
    life.step(slept(SleepReason::Asked(Ticket(Ask::Stop, 7))));
    life.step(Event::Ended { is_reader_gone: false });
    let effects: Vec<String> = life.step(Event::Failed(unwritten())).iter().map(|one| format!("{one:?}")).collect();
    let [abandon, drop, slot, log, show, probe] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!([abandon, drop, slot], ["Abandon(Ticket(Stop, 7))", "DropAwake", "GiveSlotBack"]);
    assert!(log.starts_with("Log(Waits("), "{log}");
    assert_eq!([show, probe], ["Show(Asleep)", "Probe(None)"]);
    table(
        &mut life,
        vec![
            (Event::Probed(Some(Shortage::Disk)), &["NoteShortage(Some(Disk))", "Pause"]),
            (Event::TimeOver, &["Deliver"]),
            (Event::Done, &["Show(Asleep)", "Find"]),
        ],
    );
    assert!(life.forgives);
}
