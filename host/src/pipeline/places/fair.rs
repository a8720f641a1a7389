//! Who gets a place among the awake sessions, and who gives one back: agents in turns, the oldest of an agent first.
//!
//! Pure: it knows no clock, no process and no lock, and never admits beyond a limit. Next: `pipeline::places`, which does what it says.

use ironclaw_contract::ids::{AgentId, SessionId};
use std::collections::VecDeque;

/// While others wait, an awake session gives its place back after so many turns: enough that a launch pays for itself.
pub const TURNS_IN_A_ROW_MAX: u32 = 4;

/// How many sessions may be awake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Of all agents together; at least 1.
    pub awake_max: usize,
    /// Of one agent; at least 1.
    pub awake_per_agent_max: usize,
}

/// Sessions that wait for a place.
#[derive(Debug, Clone, Default)]
pub struct Waiting {
    /// The agent at the front is served next; each has at least one session, oldest first.
    agents: VecDeque<(AgentId, VecDeque<SessionId>)>,
}

impl Waiting {
    /// A session waits from now on, behind the others of its agent; an agent that had none waits behind the others.
    pub fn join(&mut self, agent: AgentId, session: SessionId) {
        match self.agents.iter_mut().find(|(waiting, _)| *waiting == agent) {
            Some((_, sessions)) => sessions.push_back(session),
            None => self.agents.push_back((agent, VecDeque::from([session]))),
        }
    }

    /// A session does not wait any more, served or not. Only one that was served moves its agent behind the others.
    /// Gives its agent, if it waited.
    pub fn leave(&mut self, session: SessionId, served: bool) -> Option<AgentId> {
        let at = self.agents.iter().position(|(_, sessions)| sessions.contains(&session))?;
        let (agent, mut sessions) = self.agents.remove(at)?;
        sessions.retain(|waiting| *waiting != session);
        match (sessions.is_empty(), served) {
            (true, _) => {}
            (false, true) => self.agents.push_back((agent, sessions)),
            (false, false) => self.agents.insert(at, (agent, sessions)),
        }
        Some(agent)
    }

    /// How many wait.
    pub fn len(&self) -> usize {
        self.agents.iter().map(|(_, sessions)| sessions.len()).sum()
    }

    /// The order in which they will be served, as far as no agent is at its own limit and nobody else comes.
    pub fn order(&self) -> Vec<SessionId> {
        let longest = self.agents.iter().map(|(_, sessions)| sessions.len()).max().unwrap_or(0);
        let rounds = (0..longest).flat_map(|n| self.agents.iter().filter_map(move |(_, sessions)| sessions.get(n)));
        rounds.copied().collect()
    }
}

/// What an awake session does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// Starting, in a turn, or between two: so many turns since it had nothing to do.
    Busy { turns: u32 },
    /// Nothing; the larger the number, the shorter.
    Idle { since: u64 },
}

/// One place that is taken.
#[derive(Debug, Clone, Copy)]
struct Held {
    session: SessionId,
    agent: AgentId,
    doing: Doing,
    /// It was asked to give its place back, and has not done so yet.
    asked: bool,
}

/// The places that are taken. A session keeps its place until its processes are gone.
#[derive(Debug, Clone, Default)]
pub struct Awake {
    held: Vec<Held>,
    /// Counts up with each session that becomes idle.
    idle_count: u64,
}

impl Awake {
    /// A session takes a place.
    pub fn enter(&mut self, agent: AgentId, session: SessionId) {
        self.held.push(Held { session, agent, doing: Doing::Busy { turns: 0 }, asked: false });
    }

    /// A session has given its place back.
    pub fn leave(&mut self, session: SessionId) {
        self.held.retain(|held| held.session != session);
    }

    /// It has work again.
    pub fn busy(&mut self, session: SessionId) {
        if let Some(held) = self.find(session)
            && matches!(held.doing, Doing::Idle { .. })
        {
            held.doing = Doing::Busy { turns: 0 };
        }
    }

    /// It has come to the end of a turn.
    pub fn turn_ended(&mut self, session: SessionId) {
        if let Some(Held { doing: Doing::Busy { turns }, .. }) = self.find(session) {
            *turns = turns.saturating_add(1);
        }
    }

    /// It has nothing to do.
    pub fn idle(&mut self, session: SessionId) {
        let since = self.idle_count;
        if let Some(held) = self.find(session)
            && matches!(held.doing, Doing::Busy { .. })
        {
            held.doing = Doing::Idle { since };
            self.idle_count += 1;
        }
    }

    /// It is asked to give its place back as soon as it is in no turn.
    pub fn ask_back(&mut self, session: SessionId) {
        if let Some(held) = self.find(session) {
            held.asked = true;
        }
    }

    /// How many places are taken.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    fn find(&mut self, session: SessionId) -> Option<&mut Held> {
        self.held.iter_mut().find(|held| held.session == session)
    }

    fn count(&self, of: impl Fn(&Held) -> bool) -> usize {
        self.held.iter().filter(|held| of(held)).count()
    }

    /// Who can be asked for a place: whoever is idle the longest, else whoever has had the most turns in a row, at least
    /// [`TURNS_IN_A_ROW_MAX`].
    fn willing(&self, of: impl Fn(&Held) -> bool) -> Option<SessionId> {
        let rank = |held: &Held| match held.doing {
            Doing::Idle { since } => Some((0, since)),
            Doing::Busy { turns } if turns >= TURNS_IN_A_ROW_MAX => Some((1, u64::from(u32::MAX - turns))),
            Doing::Busy { .. } => None,
        };
        let free = self.held.iter().filter(|held| !held.asked && of(held));
        free.filter_map(|held| Some((rank(held)?, held.session))).min_by_key(|(rank, _)| *rank).map(|(_, who)| who)
    }
}

/// One step towards the places being where they are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// This session, which waits, gets a place now.
    Admit(SessionId),
    /// This session, which is awake, is asked to give its place back.
    AskBack(SessionId),
}

/// What is to be done next, if anything is; asked again after each step and after each change.
///
/// Agents are served in turns, each one's oldest session first; an agent at its own limit keeps its turn. If nobody can be
/// let in, as many places are asked back as there are sessions waiting for them, never more.
pub fn next(waiting: &Waiting, awake: &Awake, limits: Limits) -> Option<Step> {
    let full = awake.len() >= limits.awake_max;
    let at_limit = |agent: AgentId| awake.count(|held| held.agent == agent) >= limits.awake_per_agent_max;
    if !full && let Some((_, sessions)) = waiting.agents.iter().find(|(agent, _)| !at_limit(*agent)) {
        return sessions.front().copied().map(Step::Admit);
    }
    let of = |agent: AgentId| awake.count(|held| held.agent == agent);
    let asked_of = |agent: AgentId| awake.count(|held| held.asked && held.agent == agent);
    // As many of an agent's wishes as it has room for are met by any place. The others are met by its own alone: a place of
    // another agent is of no use to one that has as many as it may.
    let wishes = |agent: AgentId, sessions: usize| {
        let any = sessions.min(limits.awake_per_agent_max.saturating_sub(of(agent)));
        (any, sessions - any)
    };
    let (mut any_asked, mut any_wished) = (awake.count(|held| held.asked), 0);
    for (agent, sessions) in &waiting.agents {
        let (any, own) = wishes(*agent, sessions.len());
        any_asked -= asked_of(*agent).min(own);
        any_wished += any;
    }
    waiting.agents.iter().find_map(|(agent, sessions)| {
        let (any, own) = wishes(*agent, sessions.len());
        let of_its_own = || (asked_of(*agent) < own).then(|| awake.willing(|held| held.agent == *agent)).flatten();
        let of_anybody = || (any > 0 && any_asked < any_wished).then(|| awake.willing(|_| true)).flatten();
        of_its_own().or_else(of_anybody).map(Step::AskBack)
    })
}

#[cfg(test)]
mod tests;
