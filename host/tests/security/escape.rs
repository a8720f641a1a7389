//! A sandbox under the control of an attacker, who has the queue key, both queues, the model socket and the link.
//!
//! `jail` tests the walls from outside. See `attempt` for the form of an attempt and `turns` for a table of attempts.

pub(crate) mod attack;
mod attempt;
mod calls;
mod floods;
mod forged;
mod frames;
mod hostile;
mod queue;
mod ranges;
mod rows;
mod screen;
mod seals;
mod turns;
mod workspace;

/// The minimum number of attempts in the tables. A change must not lower it.
const ATTEMPTS_MIN: usize = 200;

#[test]
fn every_attempt_has_a_unique_name() {
    let tables = [
        turns::attempts(),
        calls::attempts(),
        seals::attempts(),
        rows::attempts(),
        queue::attempts(),
        frames::attempts(),
        floods::attempts(),
        screen::attempts(),
        workspace::attempts(),
    ];
    let names: Vec<&str> = tables.iter().flatten().map(|attempt| attempt.name).collect();
    for (place, name) in names.iter().enumerate() {
        assert!(!names[..place].contains(name), "{name} is repeated");
        let plain = name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
        assert!(plain && name.split('_').count() >= 4, "{name} is not a sentence");
    }
    assert!(names.len() >= ATTEMPTS_MIN, "only {} attempts are left", names.len());
}
