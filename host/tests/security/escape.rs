//! A sandbox under an attacker's control: it speaks the protocol and has the key, both queues, the model socket and the link.
//!
//! `jail` tests the walls from outside. See `attempt` for the form of an attempt, `turns` for a table of them.

pub(crate) mod attack;
mod attempt;
mod calls;
mod floods;
mod forged;
mod frames;
mod hostile;
mod queue;
mod rows;
mod screen;
mod seals;
mod turns;
mod workspace;

/// The fewest attempts in the tables; a change must not lower it.
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
        assert!(plain && name.split('_').count() >= 4, "{name} is no sentence");
    }
    assert!(names.len() >= ATTEMPTS_MIN, "{} attempts are left", names.len());
}
