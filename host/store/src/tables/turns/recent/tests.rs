use super::*;
use crate::record;
use ironclaw_contract::ids::{CallId, ItemId, RequestId, SessionId, TurnId};
use ironclaw_state::WriteTx;

/// The number of turns, each with four calls, of which one asks.
const TURNS: i64 = 40;

/// Inserts turns an hour apart, the first at the epoch, by two people in turn.
fn insert(tx: &mut WriteTx<'_>, turns: i64, people: [PersonId; 2]) -> SessionId {
    let session = SessionId::new();
    let sql = "INSERT INTO sessions (id, agent_id, channel, platform_id, thread_id, uid_offset, state, last_seq, cursor, failures, \
               created_at, last_active_at, person_id, runs) VALUES (?1, 'a', 'loopback', 'p', '', 1, 'live', 0, 0, 0, 0, ?2, ?3, '')";
    tx.execute(sql, params![session, turns * 3_600_000, people[0]]).expect("inserted");
    let digest = ironclaw_contract::canonical::Digest::of(b"x");
    for number in 0..turns {
        let (turn, person) = (TurnId::new(), people[usize::from(number % 2 == 1)]);
        let sql = "INSERT INTO turns (ordinal, id, session_id, principal, scope, state, opened_at, deadline, model_calls, tool_calls, \
                   result_bytes, principal_kind) VALUES (?1, ?2, ?3, ?4, 'read', 'closed', ?5, 0, 0, 0, 0, 'person')";
        tx.execute(sql, params![number + 1, turn, session, person, number * 3_600_000]).expect("inserted");
        for (position, stages) in
            ["scope=pass", "scope=ask:call_scope", "scope=pass", "scope=lifted"].iter().enumerate()
        {
            let call = CallId::new();
            let sql = "INSERT INTO calls (id, session_id, turn_id, output_item, position, tool, class, runs, digest, state, stages) \
                       VALUES (?1, ?2, ?3, ?4, ?5, 't', 'send', 'await', ?6, 'done', ?7)";
            tx.execute(sql, params![call, session, turn, ItemId::new(), position as i64, digest, stages])
                .expect("inserted");
            if position == 1 {
                let sql = "INSERT INTO waiting (id, subject, status, agent_id, principal, session_id, turn_id, call_id, root, digest, \
                           labels, generation, created_at, expires_at) VALUES (?1, 't', 'done', 'a', ?2, ?3, ?4, ?5, ?6, ?7, '[]', 0, ?8, ?8)";
                let root = ironclaw_contract::ids::MessageId::new();
                let at = number * 3_600_000;
                tx.execute(sql, params![RequestId::new(), person, session, turn, call, root, digest, at])
                    .expect("inserted");
            }
        }
    }
    session
}

#[test]
fn report_has_no_turn_of_another_person_or_before_its_begin() {
    record::in_a_new_one(|tx, _| {
        let people = [PersonId::new(), PersonId::new()];
        let of = |person| Whose { person: Some(person), agent: None };
        let found = since(tx, 0, Whose::default(), 10).expect("read");
        assert_eq!((found.since, calls(tx, &found).expect("read").len(), tasks(tx, &found).expect("read")), (0, 0, 0));
        insert(tx, TURNS, people);
        let count =
            |tx: &WriteTx<'_>, turns: &Turns| calls(tx, turns).expect("read").iter().map(|one| one.count).sum::<u64>();
        let all = since(tx, 0, Whose::default(), 100).expect("read");
        assert_eq!((count(tx, &all), tasks(tx, &all).expect("read")), (160, 40));
        let own = since(tx, 0, of(people[1]), 100).expect("read");
        assert_eq!((count(tx, &own), tasks(tx, &own).expect("read")), (80, 20));
        let begin = 30 * 3_600_000;
        let late = since(tx, begin, Whose::default(), 100).expect("read");
        assert_eq!((count(tx, &late), late.since), (40, begin));
        let bounded = since(tx, 0, Whose::default(), 5).expect("read");
        assert_eq!((count(tx, &bounded), bounded.since), (20, 35 * 3_600_000), "it begins later");
        let requests =
            |since, whose| crate::tables::waiting::requests::reported_since(tx, since, whose).expect("read").len();
        assert_eq!([requests(0, all.whose), requests(begin, all.whose), requests(begin, of(people[0]))], [40, 10, 5]);
    });
}

#[test]
fn report_of_an_agent_has_no_turn_of_another_one() {
    record::in_a_new_one(|tx, _| {
        let people = [PersonId::new(), PersonId::new()];
        let (own, other) = (AgentId::new(), AgentId::new());
        let session = insert(tx, 4, people);
        tx.execute("UPDATE sessions SET agent_id = ?2 WHERE id = ?1", params![session, own]).expect("changed");
        tx.execute("UPDATE waiting SET agent_id = ?1", [own]).expect("changed");
        let counted = |whose: Whose| {
            let turns = since(tx, 0, whose, 100).expect("read");
            let requests = crate::tables::waiting::requests::reported_since(tx, 0, whose).expect("read").len();
            let calls: u64 = calls(tx, &turns).expect("read").iter().map(|one| one.count).sum();
            (calls, tasks(tx, &turns).expect("read"), requests)
        };
        assert_eq!(counted(Whose { person: None, agent: Some(other) }), (0, 0, 0));
        assert_eq!(counted(Whose { person: None, agent: Some(own) }), (16, 4, 4));
        assert_eq!(counted(Whose { person: Some(people[0]), agent: Some(own) }), (8, 2, 2));
    });
}

#[test]
fn call_is_counted_with_those_that_are_alike() {
    record::in_a_new_one(|tx, _| {
        let session = insert(tx, 1, [PersonId::new(), PersonId::new()]);
        let turns = since(tx, 0, Whose::default(), 10).expect("read");
        let found = calls(tx, &turns).expect("read");
        let told = |one: &AlikeCalls| (one.is_asked, one.is_lifted, one.is_allowed, one.takes_typed, one.count);
        let mut all: Vec<_> = found.iter().map(told).collect();
        all.sort_unstable();
        assert_eq!(
            all,
            [(false, false, false, false, 2), (false, true, false, false, 1), (true, false, false, false, 1)]
        );
        tx.execute("UPDATE calls SET allowance = 3 WHERE position = 1", []).expect("changed");
        tx.execute("DELETE FROM waiting", []).expect("changed");
        let sql = "INSERT INTO call_inputs (call_id, session_id, handle) SELECT id, session_id, 'm1.email.1' FROM calls WHERE position = 0";
        tx.execute(sql, []).expect("changed");
        let found = calls(tx, &turns).expect("read");
        assert!(found.iter().any(|one| one.is_allowed && !one.is_asked), "{found:?}");
        assert!(found.iter().any(|one| one.takes_typed && !one.takes_returned && one.count == 1), "{found:?}");
        assert_eq!(incomplete(tx, &turns).expect("read"), Incomplete { removed: 0, shortened: 0 });
        tx.execute("UPDATE sessions SET pruned_seq = 2 WHERE id = ?1", [session]).expect("changed");
        assert_eq!(incomplete(tx, &turns).expect("read"), Incomplete { removed: 0, shortened: 1 });
    });
}
