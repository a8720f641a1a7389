use super::*;
use crate::runtime::command::Ticket;
use ironclaw_store::error::Error;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const IDLE: Duration = Duration::from_secs(60);
const TURN_END: Duration = Duration::from_secs(30);
/// The effects of a session without a turn that may have work, and of one that waits.
const PROCEEDS: &[&str] = &["Watch { is_open: false }", "CheckSlot"];
const RESTS: &[&str] = &["MarkIdle", "Listen { until: 60s, is_free: true, has_more: false }"];

fn shown(effects: &[Effect<Ticket>]) -> Vec<String> {
    effects.iter().map(|effect| format!("{effect:?}")).collect()
}

impl Work<Ticket> {
    /// Takes events in order, each at its second, and compares the effects of each.
    fn takes(&mut self, rows: Vec<(u64, Event<Ticket>, &[&str])>) {
        for (now, event, expected) in rows {
            let named = format!("{event:?}");
            assert_eq!(shown(&self.step(Duration::from_secs(now), event)), expected, "after {named}");
        }
    }
}

/// Makes work after its first drain and before its first turn.
fn begun() -> Work<Ticket> {
    let mut work = Work::new(IDLE, true);
    work.takes(vec![
        (0, Event::Begun, &["Drain"]),
        (0, Event::Done, &["CloseLeftOver { keeps_attempts: true }"]),
        (0, Event::Done, &["Deliver"]),
        (0, Event::Done, &["Watch { is_open: false }", "CheckSlot"]),
        (0, Event::Slot { is_asked_back: false }, &["OpenTurn"]),
    ]);
    assert!(!work.keeps_attempts(), "it is used once");
    work
}

/// Makes work with a turn that is open until second 30.
fn with_turn() -> Work<Ticket> {
    let mut work = begun();
    let listen = "Listen { until: 30s, is_free: false, has_more: false }";
    let opened: &[&str] = &["Watch { is_open: true }", "MarkBusy", listen];
    work.takes(vec![(0, Event::Opened(Opening::Until(TURN_END)), opened)]);
    work
}

/// Makes work that listens and has no turn.
fn idle() -> Work<Ticket> {
    let mut work = begun();
    work.takes(vec![(0, Event::Opened(Opening::NoMessage), RESTS)]);
    work
}

fn taken(is_closed: bool) -> Event<Ticket> {
    Event::Taken { has_more: false, closed: is_closed.then_some(Closed { is_waiting: false }) }
}

const fn slot() -> Event<Ticket> {
    Event::Slot { is_asked_back: false }
}

const fn asked(ask: CommandKind) -> Event<Ticket> {
    Event::Asked(Ticket(ask, 7))
}

fn any_event(kind: u8, flag: bool, number: usize) -> Event<Ticket> {
    let ticket = Ticket::numbered(number);
    match kind {
        0 => Event::Begun,
        1..=6 => Event::Done,
        7 => Event::Slept(SleepReason::Broken(Error::Stopping)),
        8..=10 => Event::Slot { is_asked_back: false },
        11 => Event::Slot { is_asked_back: true },
        12 => Event::Opened(if flag { Opening::Undelivered } else { Opening::NoMessage }),
        13 | 14 => Event::Opened(if flag { Opening::Until(TURN_END) } else { Opening::NoMessage }),
        15 | 16 => {
            Event::Taken { has_more: flag, closed: flag.then_some(Closed { is_waiting: number.is_multiple_of(2) }) }
        }
        17 => Event::Cancelled { is_running: flag },
        18 => Event::Missed { is_models: flag },
        19 => Event::End("its process ended"),
        20 => Event::AskedBack,
        21 | 22 => Event::Asked(ticket),
        23 => Event::TimeOver,
        24 => Event::ReaderEnded,
        25 => Event::Full(Over::Bytes),
        26 => Event::Slept(SleepReason::Asked(ticket)),
        _ => Event::Rows,
    }
}

/// Makes events of any kind in any order, until it sleeps; possible events are more frequent than the others.
fn order() -> impl Strategy<Value = Vec<(u8, bool)>> {
    prop::collection::vec((0u8..30, any::<bool>()), 0..120)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 500,
        rng_seed: RngSeed::Fixed(1),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn no_order_of_events_makes_it_panic_or_lose_a_command(order in order()) {
        let mut work = begun();
        let (mut given, mut back) = (0, 0);
        for (number, (kind, flag)) in order.into_iter().enumerate() {
            let event = any_event(kind, flag, number);
            given += Ticket::requests(&event);
            back += Ticket::requests(&work.step(Duration::from_secs(number as u64), event));
        }
        back += Ticket::requests(&work.step(Duration::ZERO, Event::Slept(SleepReason::Idle)));
        prop_assert_eq!(given, back);
    }

    #[test]
    fn it_sleeps_once_and_does_nothing_after_that(order in order()) {
        let mut work = begun();
        let mut sleeps = 0;
        for (number, (kind, flag)) in order.into_iter().enumerate() {
            let effects = shown(&work.step(Duration::from_secs(number as u64), any_event(kind, flag, number)));
            prop_assert!(sleeps == 0 || effects.iter().all(|effect| effect.starts_with("Abandon")), "{effects:?}");
            sleeps += effects.iter().filter(|effect| effect.starts_with("Sleep")).count();
        }
        prop_assert!(sleeps <= 1);
    }

    /// An open turn bounds every wait, and its deadline always leads to an answer, a notice or a sleep.
    #[test]
    fn the_deadline_of_a_turn_always_ends_it(order in order(), is_closed: bool, is_models: bool) {
        let mut work = with_turn();
        for (number, (kind, flag)) in order.into_iter().enumerate() {
            let effects = work.step(Duration::from_secs(number as u64 / 8), any_event(kind, flag, number));
            let listens = effects.iter().find_map(|effect| match effect {
                Effect::Listen { until, .. } => Some(*until),
                _ => None,
            });
            if work.open_until.is_none() || matches!(work.stage, Stage::Over) {
                return Ok(());
            }
            prop_assert!(listens.is_none_or(|until| until <= TURN_END), "{listens:?}");
        }
        if matches!(work.stage, Stage::Listening) {
            let is_stopping = work.stopping.is_some();
            let effects = shown(&work.step(TURN_END, Event::TimeOver));
            if is_stopping {
                prop_assert!(effects[0].starts_with("Sleep { reason: Ended(Some(Ticket(Shutdown"), "{effects:?}");
                return Ok(());
            }
            prop_assert_eq!(&effects, &["Take"]);
            let effects = shown(&work.step(TURN_END, taken(is_closed)));
            prop_assert_eq!(effects[0].as_str(), if is_closed { "EndTurn" } else { "MissDeadline" });
            if !is_closed {
                let effects = shown(&work.step(TURN_END, Event::Missed { is_models }));
                prop_assert!(effects[0].starts_with("Sleep"), "{effects:?}");
            }
        }
    }

    #[test]
    fn a_respawn_or_a_shutdown_opens_no_further_turn(order in order(), is_shutdown: bool) {
        let mut work = with_turn();
        let ask = if is_shutdown { CommandKind::Shutdown } else { CommandKind::Respawn };
        let effects = shown(&work.step(Duration::from_secs(1), asked(ask)));
        prop_assert!(effects[1].starts_with("Listen"), "the open turn may end: {effects:?}");
        for (number, (kind, flag)) in order.into_iter().enumerate() {
            let effects = shown(&work.step(Duration::from_secs(1), any_event(kind, flag, number)));
            prop_assert!(!effects.iter().any(|effect| effect == "OpenTurn" || effect == "CheckSlot"), "{effects:?}");
        }
    }

    /// A turn is opened only if none is open, and only after the check of the slot.
    #[test]
    fn one_turn_is_open_at_a_time(order in order()) {
        let mut work = begun();
        for (number, (kind, flag)) in order.into_iter().enumerate() {
            let event = any_event(kind, flag, number);
            let is_free = matches!(event, Event::Slot { is_asked_back: false });
            let effects = shown(&work.step(Duration::from_secs(number as u64), event));
            let opens = effects.iter().any(|effect| effect == "OpenTurn");
            prop_assert!(!opens || (is_free && work.open_until.is_none()), "{effects:?}");
        }
    }
}

#[test]
fn an_emergency_stop_and_a_breach_end_it_at_once() {
    for make in [with_turn, idle] {
        make().takes(vec![(1, Event::Halted, &["Sleep { reason: Halted, shutdown: None }"])]);
        let violated = "Sleep { reason: Violated(FailureReason { words: \"noise\", detail: \"\" }), shutdown: None }";
        make().takes(vec![(1, Event::Violation("noise"), &[violated])]);
    }
}

#[test]
fn a_turn_is_opened_and_answered_then_it_sleeps() {
    let mut work = with_turn();
    let ended: &[&str] = &["EndTurn", "Watch { is_open: false }", "CheckSlot"];
    let free = "Listen { until: 65s, is_free: true, has_more: false }";
    work.takes(vec![
        (5, Event::Rows, &["Take"]),
        (5, taken(true), ended),
        (5, Event::Slot { is_asked_back: false }, &["MarkIdle", free]),
        (65, Event::TimeOver, &["Sleep { reason: Idle, shutdown: None }"]),
    ]);
}

#[test]
fn the_next_turn_opens_at_once_if_a_message_waits() {
    let mut work = with_turn();
    work.step(Duration::from_secs(5), Event::Rows);
    work.step(Duration::from_secs(5), Event::Taken { has_more: false, closed: Some(Closed { is_waiting: true }) });
    let listen = "Listen { until: 35s, is_free: false, has_more: false }";
    let next = Event::Opened(Opening::Until(Duration::from_secs(35)));
    work.takes(vec![
        (5, Event::Slot { is_asked_back: false }, &["OpenTurn"]),
        (5, next, &["Watch { is_open: true }", "MarkBusy", listen]),
    ]);
}

#[test]
fn each_command_without_a_turn_looks_for_messages() {
    idle().takes(vec![(1, asked(CommandKind::Wake), PROCEEDS), (1, slot(), &["OpenTurn"])]);
    idle().takes(vec![
        (1, asked(CommandKind::Prove), &["Prove(Ticket(Prove, 7))"]),
        (1, Event::Done, PROCEEDS),
        (1, slot(), &["OpenTurn"]),
    ]);
    idle().takes(vec![(1, Event::ReaderEnded, &["ReplaceReader"]), (1, Event::Done, PROCEEDS), (1, slot(), RESTS)]);
}

#[test]
fn a_wake_without_a_turn_delivers() {
    idle().takes(vec![
        (1, asked(CommandKind::Wake), PROCEEDS),
        (1, slot(), &["OpenTurn"]),
        (1, Event::Opened(Opening::Undelivered), &["Deliver"]),
        (1, Event::Done, PROCEEDS),
        (1, slot(), &["OpenTurn"]),
        (1, Event::Opened(Opening::NoMessage), RESTS),
    ]);
}

#[test]
fn a_missed_deadline_is_the_models_or_the_sandboxs() {
    for (is_models, reason) in [
        (true, "Sleep { reason: Cancelled, shutdown: None }"),
        (
            false,
            "Sleep { reason: Died(FailureReason { words: \"it missed the deadline of its turn\", detail: \"\" }), shutdown: None }",
        ),
    ] {
        with_turn().takes(vec![
            (30, Event::TimeOver, &["Take"]),
            (30, taken(false), &["MissDeadline"]),
            (30, Event::Missed { is_models }, &[reason]),
        ]);
    }
}

#[test]
fn a_reply_at_the_deadline_counts() {
    with_turn().takes(vec![
        (30, Event::TimeOver, &["Take"]),
        (30, taken(true), &["EndTurn", "Watch { is_open: false }", "CheckSlot"]),
    ]);
}

#[test]
fn a_shutdown_waits_for_the_turn_up_to_a_bound() {
    let mut work = with_turn();
    let listen = "Listen { until: 11s, is_free: false, has_more: false }";
    work.takes(vec![
        (1, asked(CommandKind::Shutdown), &["Watch { is_open: true }", listen]),
        (11, Event::TimeOver, &["Sleep { reason: Ended(Some(Ticket(Shutdown, 7))), shutdown: None }"]),
    ]);
    let ended = "Sleep { reason: Ended(Some(Ticket(Shutdown, 7))), shutdown: None }";
    idle().takes(vec![(1, asked(CommandKind::Shutdown), &["Watch { is_open: false }", ended])]);
}

#[test]
fn a_crash_during_a_shutdown_keeps_the_shutdown() {
    let mut work = with_turn();
    work.step(Duration::from_secs(1), asked(CommandKind::Shutdown));
    work.step(Duration::from_secs(2), Event::SandboxEnded);
    let sleep = "Sleep { reason: Died(FailureReason { words: \"its process ended\", detail: \"\" }), shutdown: Some(Ticket(Shutdown, 7)) }";
    work.takes(vec![(2, Event::End("its process ended"), &[sleep])]);
}

#[test]
fn a_full_workspace_ends_the_turn_or_restarts() {
    with_turn().takes(vec![
        (1, Event::Full(Over::Bytes), &["EndOverBound(Bytes)"]),
        (1, Event::Done, &["Sleep { reason: Cancelled, shutdown: None }"]),
    ]);
    idle().takes(vec![(1, Event::Full(Over::Bytes), &["Sleep { reason: Yielded, shutdown: None }"])]);
}

#[test]
fn commands_run_awake_or_put_the_session_to_sleep() {
    for ask in [CommandKind::Stop, CommandKind::Release, CommandKind::Remove] {
        let sleeps = format!("Sleep {{ reason: Asked(Ticket({ask:?}, 7)), shutdown: None }}");
        with_turn().takes(vec![(1, asked(ask), &[&sleeps])]);
    }
    with_turn().takes(vec![
        (1, asked(CommandKind::Wake), &["Deliver"]),
        (1, Event::Done, &["Watch { is_open: true }", "Listen { until: 30s, is_free: false, has_more: false }"]),
    ]);
    idle().takes(vec![(1, asked(CommandKind::Prove), &["Prove(Ticket(Prove, 7))"]), (1, Event::Done, PROCEEDS)]);
    with_turn().takes(vec![
        (1, asked(CommandKind::Cancel), &["Cancel(Ticket(Cancel, 7))"]),
        (1, Event::Cancelled { is_running: true }, &["Sleep { reason: Cancelled, shutdown: None }"]),
    ]);
    idle().takes(vec![
        (1, asked(CommandKind::Cancel), &["Cancel(Ticket(Cancel, 7))"]),
        (1, Event::Cancelled { is_running: false }, &["Deliver"]),
        (1, Event::Done, PROCEEDS),
    ]);
}
