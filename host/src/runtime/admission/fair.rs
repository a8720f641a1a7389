//! Who gets a place among the awake sessions, and who gives one back: agents in turns, of each agent the people in turns, and of each
//! person the oldest session first.
//!
//! Pure: it knows no clock, no process and no lock, and never admits beyond a limit. Next: `runtime::admission`, which does what it says.

use ironclaw_contract::ids::{AgentId, SessionId};
use std::collections::VecDeque;

/// While others wait, an awake session gives its place back after so many turns: enough that a launch pays for itself.
pub const TURNS_IN_A_ROW_MAX: u32 = 4;

/// While a person waits who holds no place at the agent, a session there gives its place back after so many turns.
const TURNS_BEFORE_ANOTHER_PERSON: u32 = 1;

/// How many sessions may be awake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Of all agents together; at least 1.
    pub awake_max: usize,
    /// Of one agent; at least 1.
    pub awake_per_agent_max: usize,
}

/// Sessions of one person that wait, oldest first; never empty.
type Queue = (String, VecDeque<SessionId>);

/// Sessions that wait for a place.
#[derive(Debug, Clone, Default)]
pub struct Waiting {
    /// The agent at the front is served next, and of it the person at the front; each has at least one session.
    agents: VecDeque<(AgentId, VecDeque<Queue>)>,
}

impl Waiting {
    /// A session waits from now on: behind the others of its person at this agent; a person who had none there waits behind the
    /// other people of the agent, but before those who are last and have a place; an agent that had none waits behind the others.
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
        let served = |(other, _): &&Queue| !awake.has_place(agent, person) && awake.has_place(agent, other);
        let behind = people.len() - people.iter().rev().take_while(served).count();
        people.insert(behind, (person.to_owned(), VecDeque::from([session])));
    }

    /// A session does not wait any more, served or not. Only one that was served moves its agent behind the other agents, and its
    /// person behind the other people of the agent. Gives both, if it waited.
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

    /// How many wait.
    pub fn len(&self) -> usize {
        self.agents.iter().map(|(_, people)| count(people)).sum()
    }

    /// The order in which they will be served, as far as no agent is at its own limit, no person has a place, and no other session comes.
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

/// The first of each, then the second of each, and so on.
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

/// What an awake session does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Doing {
    /// Starting, in a turn, or between two: so many turns since it had nothing to do.
    Busy { turns: u32 },
    /// Nothing; the larger the number, the shorter.
    Idle { since: u64 },
}

/// One place that is taken.
#[derive(Debug, Clone)]
struct Held {
    session: SessionId,
    agent: AgentId,
    person: String,
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
    pub fn enter(&mut self, agent: AgentId, person: String, session: SessionId) {
        self.held.push(Held { session, agent, person, doing: Doing::Busy { turns: 0 }, asked: false });
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

    /// Whether a person has a place at an agent.
    fn has_place(&self, agent: AgentId, person: &str) -> bool {
        self.held.iter().any(|held| held.agent == agent && held.person == person)
    }

    fn find(&mut self, session: SessionId) -> Option<&mut Held> {
        self.held.iter_mut().find(|held| held.session == session)
    }

    fn count(&self, of: impl Fn(&Held) -> bool) -> usize {
        self.held.iter().filter(|held| of(held)).count()
    }

    /// Which session can be asked for its place: the one that is idle the longest, else the one with the most turns in a row, at least
    /// what `turns_min` says of it.
    fn willing(&self, turns_min: impl Fn(&Held) -> u32, of: impl Fn(&Held) -> bool) -> Option<SessionId> {
        let rank = |held: &Held| match held.doing {
            Doing::Idle { since } => Some((0, since)),
            Doing::Busy { turns } if turns >= turns_min(held) => Some((1, u64::from(u32::MAX - turns))),
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
/// Agents are served in turns, the people of each in turns, and each person's oldest session first; an agent at its own limit keeps its
/// turn. If no session can be let in, as many places are asked back as there are sessions waiting for them, never more. A person who
/// holds no place at the agent waits for the end of one turn there, and not of several.
pub fn next(waiting: &Waiting, awake: &Awake, limits: Limits) -> Option<Step> {
    let full = awake.len() >= limits.awake_max;
    let at_limit = |agent: AgentId| awake.count(|held| held.agent == agent) >= limits.awake_per_agent_max;
    if !full && let Some((agent, people)) = waiting.agents.iter().find(|(agent, _)| !at_limit(*agent)) {
        let newcomer = people.iter().find(|(person, _)| !awake.has_place(*agent, person));
        let (_, sessions) = newcomer.or_else(|| people.front())?;
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
    for (agent, people) in &waiting.agents {
        let (any, own) = wishes(*agent, count(people));
        any_asked -= asked_of(*agent).min(own);
        any_wished += any;
    }
    let asked = awake.count(|held| held.asked);
    let without_place: usize =
        waiting.agents.iter().map(|(agent, people)| newcomers(*agent, people, awake).count()).sum();
    waiting.agents.iter().find_map(|(agent, people)| {
        let (any, own) = wishes(*agent, count(people));
        // A person's own place at another agent is no reason to end what this person has there.
        let is_waited_for = |held: &Held| newcomers(*agent, people, awake).any(|person| *person != held.person);
        let least = |soon: bool, held: &Held| {
            if soon && is_waited_for(held) { TURNS_BEFORE_ANOTHER_PERSON } else { TURNS_IN_A_ROW_MAX }
        };
        let of_its_own = || {
            let soon = asked_of(*agent) < newcomers(*agent, people, awake).count();
            (asked_of(*agent) < own)
                .then(|| awake.willing(|held| least(soon, held), |held| held.agent == *agent))
                .flatten()
        };
        let of_anybody = || {
            let soon = asked < without_place;
            (any > 0 && any_asked < any_wished).then(|| awake.willing(|held| least(soon, held), |_| true)).flatten()
        };
        of_its_own().or_else(of_anybody).map(Step::AskBack)
    })
}

/// The people who wait at an agent and hold no place there.
fn newcomers<'a>(agent: AgentId, people: &'a VecDeque<Queue>, awake: &'a Awake) -> impl Iterator<Item = &'a String> {
    people.iter().map(|(person, _)| person).filter(move |person| !awake.has_place(agent, person))
}

#[cfg(test)]
mod tests;
