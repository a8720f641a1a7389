//! The turns and the calls of a time, as a report counts them. Tables: `turns`, `calls`, `call_inputs`, `messages`, `sessions`.
//!
//! Reads no turn from before the time: turns are numbered in the order of their begin.

use super::call::runs;
use super::{CallState, Runs, class_of_call, code_of_call};
use crate::rows::rows;
use ironclaw_contract::ids::{AgentId, PersonId};
use ironclaw_judge::{Class, Principal};
use ironclaw_operator::DenialCode;
use ironclaw_state::{Error, ReadTx};
use rusqlite::params;

/// The turns of a time, by the number of the turn before them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turns {
    after: i64,
    /// Milliseconds since the epoch; later than asked if there are too many turns.
    pub since: i64,
    pub whose: Whose,
}

/// The person and the agent of turns; `None` for all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Whose {
    /// The person on whose behalf they work.
    pub person: Option<PersonId>,
    pub agent: Option<AgentId>,
}

rows! {
    /// Calls that are alike.
    #[derive(Debug, Clone)]
    pub struct AlikeCalls {
        /// Their class; `None` for calls that their judgement refused.
        pub class: Option<Class> as class_of_call,
        /// The place where they run; `None` for these too.
        pub runs: Option<Runs> as runs,
        pub state: CallState,
        /// The code of refused calls.
        pub code: Option<DenialCode> as code_of_call,
        /// The kind of the principal of their turns.
        pub principal: Principal = "principal_kind" as word,
        /// True if a stage asked and no allowance covered it, or if they have a request.
        pub is_asked: bool,
        /// True if an allowance covered them.
        pub is_allowed: bool,
        /// True if a flow covered them.
        pub is_covered: bool,
        /// True if a guard mode lifted a stage.
        pub is_lifted: bool,
        /// True if they take a value that a person typed.
        pub takes_typed: bool,
        /// True if they take a value that a server returned.
        pub takes_returned: bool,
        /// Their number.
        pub count: u64,
    }

    /// The conversations of a time whose record is not whole.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    pub struct Incomplete {
        pub removed: u64,
        /// Those whose oldest items are gone, with their calls.
        pub shortened: u64,
    }
}

/// The turns of a time. The parameters are those of [`Turns`].
const OF_TIME: &str = "t.ordinal > ?1 AND (?2 IS NULL OR t.principal = ?2) \
                       AND (?3 IS NULL OR (SELECT s.agent_id FROM sessions s WHERE s.id = t.session_id) = ?3)";

/// Returns the turns since a time, at most the newest `limit` of all.
pub fn since(tx: &ReadTx<'_>, since: i64, whose: Whose, limit: u32) -> Result<Turns, Error> {
    let sql = "SELECT ordinal FROM turns ORDER BY ordinal DESC LIMIT 1 OFFSET ?1";
    let bound: i64 = tx.find(sql, [limit], |row| row.get(0))?.unwrap_or(0);
    let sql = "SELECT ordinal FROM turns WHERE ordinal > ?2 AND opened_at < ?1 ORDER BY ordinal DESC LIMIT 1";
    if let Some(after) = tx.find(sql, [since, bound], |row| row.get(0))? {
        return Ok(Turns { after, since, whose });
    }
    let sql = "SELECT opened_at FROM turns WHERE ordinal > ?1 ORDER BY ordinal LIMIT 1";
    let first = tx.find(sql, [bound], |row| row.get(0))?.filter(|_| bound > 0);
    Ok(Turns { after: bound, since: first.unwrap_or(since).max(since), whose })
}

/// Returns the calls of turns, each with those that are alike.
pub fn calls(tx: &ReadTx<'_>, turns: &Turns) -> Result<Vec<AlikeCalls>, Error> {
    let sql = format!(
        "SELECT c.class, c.runs, c.state, c.code, t.principal_kind, \
         (instr(c.stages, '=ask:') > 0 AND c.allowance IS NULL) \
           OR EXISTS (SELECT 1 FROM waiting w WHERE w.call_id = c.id AND w.kind = 'req') AS is_asked, \
         c.allowance IS NOT NULL AS is_allowed, instr(c.stages, '=covered:') > 0 AS is_covered, \
         instr(c.stages, '=lifted') > 0 AS is_lifted, \
         EXISTS (SELECT 1 FROM call_inputs i WHERE i.call_id = c.id AND i.handle LIKE 'm%') AS takes_typed, \
         EXISTS (SELECT 1 FROM call_inputs i WHERE i.call_id = c.id AND i.handle LIKE 'r%') AS takes_returned, \
         count(*) AS count \
         FROM turns t JOIN calls c ON c.turn_id = t.id WHERE {OF_TIME} GROUP BY 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11"
    );
    tx.list(&sql, params![turns.after, turns.whose.person, turns.whose.agent], AlikeCalls::read)
}

/// Returns the number of tasks that turns belong to.
pub fn tasks(tx: &ReadTx<'_>, turns: &Turns) -> Result<u64, Error> {
    let newest = "json_extract(t.message_ids, '$[#-1]')";
    let sql = format!(
        "SELECT count(DISTINCT coalesce(m.root, {newest}, t.id)) FROM turns t LEFT JOIN messages m ON m.id = {newest} \
         WHERE {OF_TIME}"
    );
    tx.get(&sql, params![turns.after, turns.whose.person, turns.whose.agent], |row| row.get(0))
}

/// Returns the conversations that were used since the begin of turns, and whose record is not whole: those that the person began with the agent.
pub fn incomplete(tx: &ReadTx<'_>, turns: &Turns) -> Result<Incomplete, Error> {
    let sql = "SELECT count(*) FILTER (WHERE state = 'removed') AS removed, \
               count(*) FILTER (WHERE state <> 'removed' AND pruned_seq > 0) AS shortened \
               FROM sessions WHERE last_active_at >= ?1 AND (?2 IS NULL OR person_id = ?2) AND (?3 IS NULL OR agent_id = ?3)";
    tx.get(sql, params![turns.since, turns.whose.person, turns.whose.agent], Incomplete::read)
}

#[cfg(test)]
mod tests;
