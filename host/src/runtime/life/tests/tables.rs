//! Typical lives, event by event.

use super::simulation::{FAILURES_MAX, unwritten};
use crate::registry::quota::workspace::Over;
use crate::runtime::command::{CommandKind, Ticket};
use crate::runtime::life::{Event, Life};
use crate::runtime::sleep_reason::SleepReason;
use crate::sessions::store::{FailureReason, SessionState};
use ironclaw_jail::shortage::Shortage;

impl Life<Ticket> {
    /// Takes events in order, and compares the effects of each.
    fn takes(&mut self, rows: Vec<(Event<Ticket>, &[&str])>) {
        for (event, expected) in rows {
            let named = format!("{event:?}");
            let effects: Vec<String> = self.step(event).iter().map(|effect| format!("{effect:?}")).collect();
            assert_eq!(effects, expected, "after {named}");
        }
    }
}

fn found() -> Event<Ticket> {
    Event::Found { standing: SessionState::Active, is_halted: false }
}

fn slept(reason: SleepReason<Ticket>) -> Event<Ticket> {
    Event::Slept { reason, shutdown: None, is_halted: false, keeps_attempts: false }
}

fn asked(ask: CommandKind) -> Event<Ticket> {
    Event::Asked { command: Ticket(ask, 7), is_halted: false }
}

/// Makes the life of a session that has just been launched.
fn awake() -> Life<Ticket> {
    let mut life = Life::new(FAILURES_MAX);
    life.takes(vec![(Event::Begun, &["Deliver"]), (Event::Done, &["Show(Asleep)", "Find"])]);
    wakes(&mut life, true, "false");
    life
}

/// Takes the events from the session's row to its work.
fn wakes(life: &mut Life<Ticket>, is_first: bool, keeps_attempts: &str) {
    let work = format!("Work {{ keeps_attempts: {keeps_attempts} }}");
    assert_eq!(life.shortages > 0, !is_first && life.keeps_attempts);
    life.takes(vec![
        (found(), &["FindWork"]),
        (Event::Work(true), &["Measure"]),
        (Event::Measured(None), &["Join", "Show(Waiting)", "AwaitSlot"]),
        (Event::SlotHeld, &["CheckRoom"]),
        (Event::Room(None), &["Show(Starting)", "Launch"]),
        (Event::Launched, &["Show(Awake)", "NoteShortage(None)", &work]),
    ]);
}

/// Makes the life of a session without work that is asked to wake.
fn prepares() -> Life<Ticket> {
    let mut life = Life::new(FAILURES_MAX);
    life.takes(vec![
        (Event::Begun, &["Deliver"]),
        (Event::Done, &["Show(Asleep)", "Find"]),
        (found(), &["FindWork"]),
        (Event::Work(false), &["LeaveOrWait"]),
        (asked(CommandKind::Prepare), &["Show(Asleep)", "Find"]),
    ]);
    life
}

/// Makes a life that waits for a slot.
fn in_line() -> Life<Ticket> {
    let mut life = Life::new(FAILURES_MAX);
    for event in [Event::Begun, Event::Done, found(), Event::Work(true), Event::Measured(None)] {
        life.step(event);
    }
    life
}

/// Makes the life of a session that sleeps for this reason, before its resources are dropped.
fn put_to_sleep(reason: SleepReason<Ticket>) -> Life<Ticket> {
    let mut life = awake();
    life.takes(vec![
        (slept(reason), &["EndDrafts", "Show(Stopping)", "EndProcesses(Told)"]),
        (Event::Ended { is_reader_gone: false }, &["Drain"]),
        (Event::Drained(None), &["Requeue(PutToSleep)"]),
    ]);
    life
}

#[test]
fn a_session_wakes_works_and_sleeps() {
    put_to_sleep(SleepReason::Idle).takes(vec![
        (Event::Done, &["DropAwake", "Log(Asleep)", "GiveSlotBack", "Show(Asleep)", "Find"]),
        (found(), &["FindWork"]),
        (Event::Work(false), &["LeaveOrWait"]),
        (Event::Left, &["End"]),
    ]);
}

#[test]
fn a_session_that_yields_delivers_before_it_sleeps() {
    put_to_sleep(SleepReason::Yielded).takes(vec![
        (Event::Done, &["DropAwake", "Log(Asleep)", "GiveSlotBack", "Deliver"]),
        (Event::Done, &["Show(Asleep)", "Find"]),
    ]);
}

#[test]
fn a_crash_is_retried_with_backoff_then_parked() {
    let mut life = awake();
    for failures in 1..=FAILURES_MAX {
        life.takes(vec![
            (slept(SleepReason::died("its process ended")), &["EndDrafts", "Show(Stopping)", "EndProcesses(Killed)"]),
            (Event::Ended { is_reader_gone: false }, &["Drain"]),
            (Event::Drained(None), &["DropAwake", "Log(Asleep)", "GiveSlotBack", "Probe(None)"]),
            (Event::Probed(None), &["Show(Asleep)", "CheckLauncher"]),
            (Event::Launcher { is_dead: false }, &["CountFailure"]),
        ]);
        if failures == FAILURES_MAX {
            break;
        }
        let backoff = format!("SetBackoff({failures})");
        life.takes(vec![
            (Event::Counted(failures), &[&backoff, "AwaitBackoff"]),
            // A wake does not end the wait.
            (asked(CommandKind::Wake), &["Deliver"]),
            (Event::Done, &["AwaitBackoff"]),
            (Event::TimeOver, &["Show(Asleep)", "Find"]),
        ]);
        wakes(&mut life, false, "false");
    }
    let parked = "Park(3, FailureReason { words: \"its process ended\", detail: \"\" })";
    life.takes(vec![
        (Event::Counted(FAILURES_MAX), &[parked]),
        (Event::Done, &["Show(Asleep)", "Find"]),
        (Event::Found { standing: SessionState::Parked, is_halted: false }, &["LeaveOrWait"]),
        (Event::Left, &["End"]),
    ]);
}

#[test]
fn a_shortage_waits_longer_each_time_until_the_next_sleep() {
    let mut life = awake();
    for (tries, waits) in ["SetBackoff(1)", "SetBackoff(2)"].into_iter().enumerate() {
        life.takes(vec![
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
        ]);
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
fn an_emergency_stop_ends_both_and_counts_no_failure() {
    let mut life = awake();
    let killed = Event::Slept {
        reason: SleepReason::died("its process ended"),
        shutdown: None,
        is_halted: true,
        keeps_attempts: false,
    };
    life.takes(vec![
        (killed, &["EndDrafts", "Show(Stopping)", "EndProcesses(KilledWithReader)"]),
        (Event::Ended { is_reader_gone: false }, &["Requeue(Stopped)"]),
        (Event::Done, &["DropAwake", "Log(Asleep)", "GiveSlotBack", "Show(Asleep)", "Find"]),
        (Event::Found { standing: SessionState::Active, is_halted: true }, &["LeaveOrWait"]),
        (
            Event::Asked { command: Ticket(CommandKind::Prove, 1), is_halted: true },
            &["RefuseProof(Ticket(Prove, 1))", "Show(Asleep)", "Find"],
        ),
    ]);
}

#[test]
fn a_waiting_session_leaves_the_queue_after_its_recorded_stop() {
    let mut life = in_line();
    life.takes(vec![
        (asked(CommandKind::Stop), &["Show(Asleep)", "Find"]),
        (found(), &["NoteStop(Ticket(Stop, 7))"]),
        (
            Event::StopNoted(Ticket(CommandKind::Stop, 7)),
            &["GiveSlotBack", "Answer(Ticket(Stop, 7))", "Show(Asleep)", "Find"],
        ),
        (found(), &["LeaveOrWait"]),
        (asked(CommandKind::Wake), &["Deliver"]),
        (Event::Done, &["Show(Asleep)", "Find"]),
        (found(), &["FindWork"]),
    ]);
}

#[test]
fn a_waiting_session_leaves_the_queue_at_an_emergency_stop() {
    let mut life = in_line();
    life.takes(vec![(Event::Halted, &["GiveSlotBack", "Show(Asleep)", "Find"])]);
}

#[test]
fn a_command_keeps_the_position_in_the_queue() {
    let mut life = in_line();
    life.takes(vec![
        (asked(CommandKind::Release), &["Show(Asleep)", "Find"]),
        (found(), &["RunCommand(Ticket(Release, 7))"]),
        (Event::Done, &["Show(Asleep)", "Find"]),
        (found(), &["FindWork"]),
        (Event::Work(true), &["Show(Waiting)", "AwaitSlot"]),
    ]);
}

#[test]
fn a_stop_during_a_breach_is_served_after_the_quarantine() {
    let mut life = awake();
    life.takes(vec![
        (
            slept(SleepReason::Asked(Ticket(CommandKind::Stop, 7))),
            &["EndDrafts", "Show(Stopping)", "EndProcesses(Told)"],
        ),
        (Event::Ended { is_reader_gone: false }, &["Drain"]),
        (
            Event::Drained(Some(FailureReason::new("a bad row"))),
            &["Quarantine(FailureReason { words: \"a bad row\", detail: \"\" })"],
        ),
        (Event::Done, &["Requeue(PutToSleep)"]),
        (Event::Done, &["DropAwake", "Log(Asleep)", "GiveSlotBack", "Show(Asleep)", "Find"]),
        (Event::Found { standing: SessionState::Quarantined, is_halted: false }, &["NoteStop(Ticket(Stop, 7))"]),
    ]);
}

#[test]
fn a_crash_during_a_shutdown_is_counted_and_not_retried() {
    let mut life = awake();
    let crash = Event::Slept {
        reason: SleepReason::died("its process ended"),
        shutdown: Some(Ticket(CommandKind::Shutdown, 7)),
        is_halted: false,
        keeps_attempts: false,
    };
    life.takes(vec![
        (crash, &["EndDrafts", "Show(Stopping)", "EndProcesses(Killed)"]),
        (Event::Ended { is_reader_gone: true }, &["DropAwake", "Log(Asleep)", "GiveSlotBack", "Probe(None)"]),
        (Event::Probed(None), &["Show(Asleep)", "CheckLauncher"]),
        (Event::Launcher { is_dead: false }, &["CountFailure"]),
        (Event::Counted(1), &["Show(Asleep)", "Find"]),
        (found(), &["Answer(Ticket(Shutdown, 7))", "End"]),
    ]);
}

#[test]
fn an_error_of_the_host_during_a_shutdown_ends_the_actor() {
    let mut life = awake();
    life.step(slept(SleepReason::Ended(Some(Ticket(CommandKind::Shutdown, 7)))));
    let effects = life.step(Event::Failed(unwritten()));
    let effects: Vec<String> = effects.iter().map(|effect| format!("{effect:?}")).collect();
    assert_eq!(effects[..3], ["Abandon(Ticket(Shutdown, 7))", "DropAwake", "GiveSlotBack"]);
    assert_eq!(effects[4..], ["Show(Asleep)", "End"]);
}

#[test]
fn an_error_of_the_host_drops_all_and_restarts() {
    let mut life = awake();
    life.step(slept(SleepReason::Asked(Ticket(CommandKind::Stop, 7))));
    life.step(Event::Ended { is_reader_gone: false });
    let effects: Vec<String> = life.step(Event::Failed(unwritten())).iter().map(|one| format!("{one:?}")).collect();
    let [abandon, drop, slot, log, show, probe] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!([abandon, drop, slot], ["Abandon(Ticket(Stop, 7))", "DropAwake", "GiveSlotBack"]);
    assert!(log.starts_with("Log(Waits("), "{log}");
    assert_eq!([show, probe], ["Show(Asleep)", "Probe(None)"]);
    life.takes(vec![
        (Event::Probed(Some(Shortage::Disk)), &["NoteShortage(Some(Disk))", "Pause"]),
        (Event::TimeOver, &["Deliver"]),
        (Event::Done, &["Show(Asleep)", "Find"]),
    ]);
    assert!(life.keeps_attempts);
}

#[test]
fn a_session_without_work_wakes_into_a_free_slot_only() {
    let dropped = ["Abandon(Ticket(Prepare, 7))", "LeaveOrWait"];
    for refusal in [Event::NoSlot, Event::SlotHeld] {
        let mut life = prepares();
        life.takes(vec![
            (found(), &["FindWork"]),
            (Event::Work(false), &["Measure"]),
            (Event::Measured(None), &["TakeFreeSlot"]),
        ]);
        if matches!(refusal, Event::NoSlot) {
            life.takes(vec![(refusal, &dropped)]);
            continue;
        }
        life.takes(vec![
            (refusal, &["CheckRoom"]),
            (Event::Room(None), &["Show(Starting)", "Launch"]),
            (
                Event::Launched,
                &["Show(Awake)", "NoteShortage(None)", "Answer(Ticket(Prepare, 7))", "Work { keeps_attempts: false }"],
            ),
        ]);
    }
}

#[test]
fn a_session_without_work_stays_asleep_if_it_may_not_run() {
    let dropped = ["Abandon(Ticket(Prepare, 7))", "LeaveOrWait"];
    prepares().takes(vec![(Event::Found { standing: SessionState::Active, is_halted: true }, &dropped)]);
    for standing in [SessionState::Parked, SessionState::Quarantined] {
        prepares().takes(vec![(Event::Found { standing, is_halted: false }, &dropped)]);
    }
    let mut stopped = prepares();
    stopped.takes(vec![(found(), &["FindWork"]), (Event::Work(false), &["Measure"])]);
    stopped.takes(vec![(Event::Measured(Some(Over::Bytes)), &dropped)]);
    stopped.takes(vec![
        (asked(CommandKind::Stop), &["NoteStop(Ticket(Stop, 7))"]),
        (Event::StopNoted(Ticket(CommandKind::Stop, 7)), &["Answer(Ticket(Stop, 7))", "Show(Asleep)", "Find"]),
        (found(), &["LeaveOrWait"]),
        (asked(CommandKind::Prepare), &["Show(Asleep)", "Find"]),
        (found(), &dropped),
    ]);
    let mut short = prepares();
    short.takes(vec![
        (found(), &["FindWork"]),
        (Event::Work(false), &["Measure"]),
        (Event::Measured(None), &["TakeFreeSlot"]),
        (Event::SlotHeld, &["CheckRoom"]),
        (Event::Room(Some(Shortage::Disk)), &["Abandon(Ticket(Prepare, 7))", "GiveSlotBack", "LeaveOrWait"]),
    ]);
}

#[test]
fn a_session_with_work_takes_its_place_in_the_line() {
    prepares().takes(vec![
        (found(), &["FindWork"]),
        (Event::Work(true), &["Abandon(Ticket(Prepare, 7))", "Measure"]),
        (Event::Measured(None), &["Join", "Show(Waiting)", "AwaitSlot"]),
    ]);
    let mut waits = in_line();
    waits.takes(vec![(asked(CommandKind::Prepare), &["Abandon(Ticket(Prepare, 7))", "AwaitSlot"])]);
}
