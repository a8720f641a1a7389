//! The fair scheduling of slots: round robin over agents, then over the people of an agent, and the oldest session of a person first.
//!
//! Pure: it has no clock, no process and no lock, and never admits beyond a limit. See [`crate::runtime::admission`], which applies
//! its steps.

use ironclaw_contract::ids::{AgentId, SessionId};
use std::collections::VecDeque;

/// While others wait, an awake session gives its slot back after this many turns: enough to be worth a launch.
pub const TURNS_IN_A_ROW_MAX: u32 = 4;

/// While a person without a slot at the agent waits, a session there gives its slot back after this many turns.
const TURNS_BEFORE_ANOTHER_PERSON: u32 = 1;

/// The bounds on awake sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Of all agents together; at least 1.
    pub awake_max: usize,
    /// Of one agent; at least 1.
    pub awake_per_agent_max: usize,
}

/// Waiting sessions of one person, oldest first; never empty.
type Queue = (String, VecDeque<SessionId>);

/// Sessions that wait for a slot.
#[derive(Debug, Clone, Default)]
pub struct Waiting {
    /// The agent at the front is served next, and its person at the front; each has at least one session.
    agents: VecDeque<(AgentId, VecDeque<Queue>)>,
}

impl Waiting {
    /// Queues a session behind the other sessions of its person at this agent. A new person goes behind the other people of the agent, but
    /// before those at the end of the queue who already have a slot. A new agent goes behind the other agents.
    pub fn join(&mut self, agent: AgentId, person: &str, session: SessionId, awake: &Awake) {
        let at = match self.agents.iter().position(|(waiting, _)| *waiting == agent) {
            Some(at) => at,
            None => {
                self.agents.push_back((agent, VecDeque::new()));
                self.agents.len() - 1
            }
        };
        let people = &mut self.agents[at].1;
        if let Some((_, sessions)) = people.iter_mut().find(|(waiting, _)| waiting == person) {
            return sessions.push_back(session);
        }
        let served = |(other, _): &&Queue| !awake.has_slot(agent, person) && awake.has_slot(agent, other);
        let behind = people.len() - people.iter().rev().take_while(served).count();
        people.insert(behind, (person.to_owned(), VecDeque::from([session])));
    }

    /// Removes a waiting session, served or not. Only a served session moves its agent behind the other agents, and its person behind the
    /// other people of the agent. Returns both, if the session waited.
    pub fn leave(&mut self, session: SessionId, served: bool) -> Option<(AgentId, String)> {
        let waits = |(_, sessions): &Queue| sessions.contains(&session);
        let at = self.agents.iter().position(|(_, people)| people.iter().any(waits))?;
        let (agent, mut people) = self.agents.remove(at)?;
        let of = people.iter().position(waits)?;
        let (person, mut sessions) = people.remove(of)?;
        sessions.retain(|waiting| *waiting != session);
        if !sessions.is_empty() {
            people.insert(if served { people.len() } else { of }, (person.clone(), sessions));
        }
        if !people.is_empty() {
            self.agents.insert(if served { self.agents.len() } else { at }, (agent, people));
        }
        Some((agent, person))
    }

    /// Returns the number of waiting sessions.
    pub fn len(&self) -> usize {
        self.agents.iter().map(|(_, people)| count(people)).sum()
    }

    /// Returns the expected order of service. It assumes that no agent is at its own limit, no person has a slot, and no other session comes.
    pub fn order(&self) -> Vec<SessionId> {
        let agents = self
            .agents
            .iter()
            .map(|(_, people)| in_turns(people.iter().map(|(_, sessions)| sessions.iter()).collect()).into_iter());
        in_turns(agents.collect()).into_iter().copied().collect()
    }
}

fn count(people: &VecDeque<Queue>) -> usize {
    people.iter().map(|(_, sessions)| sessions.len()).sum()
}

/// Merges queues round robin: the first of each, then the second of each, and so on.
fn in_turns<T>(mut queues: Vec<impl Iterator<Item = T>>) -> Vec<T> {
    let mut order = Vec::new();
    loop {
        let before = order.len();
        order.extend(queues.iter_mut().filter_map(Iterator::next));
        if order.len() == before {
            return order;
        }
    }
}

/// The activity of an awake session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Activity {
    /// Starting, in a turn, or between two; with the number of turns since it was last idle.
    Busy { turns: u32 },
    /// Idle; a larger number means idle for a shorter time.
    Idle { since: u64 },
}

#[derive(Debug, Clone)]
struct Held {
    session: SessionId,
    agent: AgentId,
    person: String,
    activity: Activity,
    /// `true` if the session was asked to give its slot back, and still holds it.
    asked: bool,
}

/// The held slots. A session keeps its slot until its processes are gone.
#[derive(Debug, Clone, Default)]
pub struct Awake {
    held: Vec<Held>,
    /// Increases with each session that becomes idle.
    idle_count: u64,
}

impl Awake {
    /// Gives a slot to a session.
    pub fn enter(&mut self, agent: AgentId, person: String, session: SessionId) {
        self.held.push(Held { session, agent, person, activity: Activity::Busy { turns: 0 }, asked: false });
    }

    /// Removes the slot that a session gave back.
    pub fn leave(&mut self, session: SessionId) {
        self.held.retain(|held| held.session != session);
    }

    /// Records that a session has work again.
    pub fn busy(&mut self, session: SessionId) {
        if let Some(held) = self.find(session)
            && matches!(held.activity, Activity::Idle { .. })
        {
            held.activity = Activity::Busy { turns: 0 };
        }
    }

    /// Records that a session ended a turn.
    pub fn turn_ended(&mut self, session: SessionId) {
        if let Some(Held { activity: Activity::Busy { turns }, .. }) = self.find(session) {
            *turns = turns.saturating_add(1);
        }
    }

    /// Records that a session has no work.
    pub fn idle(&mut self, session: SessionId) {
        let since = self.idle_count;
        if let Some(held) = self.find(session)
            && matches!(held.activity, Activity::Busy { .. })
        {
            held.activity = Activity::Idle { since };
            self.idle_count += 1;
        }
    }

    /// Records that a session is asked to give its slot back when it is in no turn.
    pub fn ask_back(&mut self, session: SessionId) {
        if let Some(held) = self.find(session) {
            held.asked = true;
        }
    }

    /// Returns the number of held slots.
    pub fn len(&self) -> usize {
        self.held.len()
    }

    /// Returns whether a person has a slot at an agent.
    fn has_slot(&self, agent: AgentId, person: &str) -> bool {
        self.held.iter().any(|held| held.agent == agent && held.person == person)
    }

    fn find(&mut self, session: SessionId) -> Option<&mut Held> {
        self.held.iter_mut().find(|held| held.session == session)
    }

    fn count(&self, of: impl Fn(&Held) -> bool) -> usize {
        self.held.iter().filter(|held| of(held)).count()
    }

    /// Returns the session whose slot can be asked back: the one that is idle the longest, or else the one with the most turns in a row, if
    /// these are at least `turns_min`.
    fn reclaimable(&self, turns_min: impl Fn(&Held) -> u32, of: impl Fn(&Held) -> bool) -> Option<SessionId> {
        let rank = |held: &Held| match held.activity {
            Activity::Idle { since } => Some((0, since)),
            Activity::Busy { turns } if turns >= turns_min(held) => Some((1, u64::from(u32::MAX - turns))),
            Activity::Busy { .. } => None,
        };
        let free = self.held.iter().filter(|held| !held.asked && of(held));
        free.filter_map(|held| Some((rank(held)?, held.session))).min_by_key(|(rank, _)| *rank).map(|(_, who)| who)
    }
}

/// One step toward a fair distribution of the slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// This waiting session gets a slot now.
    Admit(SessionId),
    /// This awake session is asked to give its slot back.
    AskBack(SessionId),
}

/// Returns the next step, if any; the caller asks again after each step and each change.
///
/// Agents are served in turns, the people of each in turns, and each person's oldest session first; an agent at its own limit keeps its
/// turn. If no session can be admitted, as many slots are asked back as sessions wait for them, never more. A person without a slot at
/// the agent waits for the end of one turn there, and not of several.
pub fn next(waiting: &Waiting, awake: &Awake, limits: Limits) -> Option<Step> {
    let full = awake.len() >= limits.awake_max;
    let at_limit = |agent: AgentId| awake.count(|held| held.agent == agent) >= limits.awake_per_agent_max;
    if !full && let Some((agent, people)) = waiting.agents.iter().find(|(agent, _)| !at_limit(*agent)) {
        let without_slot = people.iter().find(|(person, _)| !awake.has_slot(*agent, person));
        let (_, sessions) = without_slot.or_else(|| people.front())?;
        return sessions.front().copied().map(Step::Admit);
    }
    let of = |agent: AgentId| awake.count(|held| held.agent == agent);
    let asked_of = |agent: AgentId| awake.count(|held| held.asked && held.agent == agent);
    // An agent below its limit can use any slot, up to the limit. Beyond that it can only use its own slots again: a slot of another
    // agent does not help an agent at its limit.
    let demand = |agent: AgentId, sessions: usize| {
        let any = sessions.min(limits.awake_per_agent_max.saturating_sub(of(agent)));
        (any, sessions - any)
    };
    let (mut any_asked, mut any_demand) = (awake.count(|held| held.asked), 0);
    for (agent, people) in &waiting.agents {
        let (any, own) = demand(*agent, count(people));
        any_asked -= asked_of(*agent).min(own);
        any_demand += any;
    }
    let asked = awake.count(|held| held.asked);
    let people_without_slot_count: usize =
        waiting.agents.iter().map(|(agent, people)| people_without_slot(*agent, people, awake).count()).sum();
    waiting.agents.iter().find_map(|(agent, people)| {
        let (any, own) = demand(*agent, count(people));
        // A person who waits here does not shorten the turns of their own session at another agent.
        let is_waited_for =
            |held: &Held| people_without_slot(*agent, people, awake).any(|person| *person != held.person);
        let least = |soon: bool, held: &Held| {
            if soon && is_waited_for(held) { TURNS_BEFORE_ANOTHER_PERSON } else { TURNS_IN_A_ROW_MAX }
        };
        let of_its_own = || {
            let soon = asked_of(*agent) < people_without_slot(*agent, people, awake).count();
            (asked_of(*agent) < own)
                .then(|| awake.reclaimable(|held| least(soon, held), |held| held.agent == *agent))
                .flatten()
        };
        let of_any = || {
            let soon = asked < people_without_slot_count;
            (any > 0 && any_asked < any_demand).then(|| awake.reclaimable(|held| least(soon, held), |_| true)).flatten()
        };
        of_its_own().or_else(of_any).map(Step::AskBack)
    })
}

/// Returns whether a session of this agent may hold a slot without work: no session waits for a slot, and fewer than half of the slots are
/// held, of all and of the agent. So the next work finds a free slot, and waits for no other session to end.
pub fn may_take_free(agent: AgentId, waiting: &Waiting, awake: &Awake, limits: Limits) -> bool {
    waiting.len() == 0
        && awake.len() < limits.awake_max / 2
        && awake.count(|held| held.agent == agent) < limits.awake_per_agent_max / 2
}

/// Returns the people who wait at an agent and hold no slot there.
fn people_without_slot<'a>(
    agent: AgentId,
    people: &'a VecDeque<Queue>,
    awake: &'a Awake,
) -> impl Iterator<Item = &'a String> {
    people.iter().map(|(person, _)| person).filter(move |person| !awake.has_slot(agent, person))
}

#[cfg(test)]
mod tests;
