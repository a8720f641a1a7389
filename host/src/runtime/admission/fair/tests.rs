use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

/// A simulation without processes: sessions with a number of turns to do, in rounds in which each awake session may do one turn.
struct Simulation {
    agents: Vec<AgentId>,
    of: HashMap<SessionId, (AgentId, String)>,
    /// Turns that each session still has to do.
    work: HashMap<SessionId, u32>,
    waiting: Waiting,
    awake: Awake,
    admitted: Vec<SessionId>,
    asked: Vec<SessionId>,
    limits: Limits,
    round: usize,
    /// The round in which a session began to wait, and its position among its person's sessions at its agent.
    since: HashMap<SessionId, (usize, usize)>,
    people: usize,
}

impl Simulation {
    fn new(agents: usize, people: usize, limits: Limits) -> Self {
        Self {
            agents: (0..agents).map(|_| AgentId::new()).collect(),
            of: HashMap::new(),
            work: HashMap::new(),
            waiting: Waiting::default(),
            awake: Awake::default(),
            admitted: Vec::new(),
            asked: Vec::new(),
            limits,
            round: 0,
            since: HashMap::new(),
            people,
        }
    }

    fn queue(&mut self, session: SessionId) {
        let (agent, person) = self.of[&session].clone();
        self.waiting.join(agent, &person, session, &self.awake);
        let people = self.waiting.agents.iter().find(|(waiting, _)| *waiting == agent).map(|(_, people)| people);
        let own = people.into_iter().flatten().find(|(waiting, _)| *waiting == person).map_or(0, |(_, own)| own.len());
        self.since.insert(session, (self.round, own));
        self.settle();
    }

    fn add_work(&mut self, session: SessionId, turns: u32) {
        let work = self.work.entry(session).or_insert(0);
        let had = *work;
        *work += turns;
        if had == 0 && !self.admitted.contains(&session) {
            self.queue(session);
        } else {
            self.awake.busy(session);
        }
    }

    fn settle(&mut self) {
        while let Some(step) = next(&self.waiting, &self.awake, self.limits) {
            match step {
                Step::Admit(session) => {
                    let (since, place) = self.since.remove(&session).expect("it waited");
                    let in_turns = self.people * (self.agents.len() + 1);
                    let bound = place * in_turns * (TURNS_IN_A_ROW_MAX as usize + 1);
                    assert!(self.round - since <= bound, "{} rounds at place {place}", self.round - since);
                    self.waiting.leave(session, true);
                    let (agent, person) = self.of[&session].clone();
                    self.awake.enter(agent, person, session);
                    self.admitted.push(session);
                }
                Step::AskBack(session) => {
                    assert!(!self.asked.contains(&session), "no session is asked twice");
                    self.awake.ask_back(session);
                    self.asked.push(session);
                }
            }
            assert!(self.admitted.len() <= self.limits.awake_max, "the limit of all");
            for agent in &self.agents {
                let own = self.admitted.iter().filter(|session| self.of[*session].0 == *agent).count();
                assert!(own <= self.limits.awake_per_agent_max, "the limit of one agent");
            }
            assert!(self.asked.len() <= self.waiting.len(), "no slot is asked back without a waiting session");
        }
    }

    fn give_back(&mut self, session: SessionId) {
        self.admitted.retain(|awake| *awake != session);
        self.asked.retain(|asked| *asked != session);
        self.awake.leave(session);
        if self.work[&session] > 0 {
            self.queue(session);
        }
        self.settle();
    }

    /// Each awake session does one turn, or leaves if its slot was asked back.
    fn run_round(&mut self, order: &[usize]) {
        self.round += 1;
        let mut awake = self.admitted.clone();
        for (at, with) in order.iter().enumerate().take(awake.len()) {
            let with = with % awake.len();
            awake.swap(at, with);
        }
        for session in awake {
            if !self.asked.contains(&session) {
                let work = self.work.get_mut(&session).expect("known");
                if *work > 0 {
                    *work -= 1;
                    self.awake.turn_ended(session);
                }
                if self.work[&session] == 0 {
                    self.awake.idle(session);
                }
                self.settle();
            }
            if self.asked.contains(&session) {
                self.give_back(session);
            }
        }
    }
}

proptest! {
    #[test]
    fn no_session_starves_and_no_limit_is_exceeded(
        agents in 1usize..5,
        people in 1usize..4,
        awake_max in 1usize..6,
        per_agent in 1usize..6,
        events in prop::collection::vec((0usize..5, 0usize..4, 0usize..8, 1u32..12, prop::collection::vec(0usize..8, 0..6)), 1..60),
    ) {
        let limits = Limits { awake_max, awake_per_agent_max: per_agent.min(awake_max) };
        let mut simulation = Simulation::new(agents, people, limits);
        let mut sessions: HashMap<(usize, usize, usize), SessionId> = HashMap::new();
        for (agent, person, session, turns, order) in events {
            let (agent, person) = (agent % agents, person % people);
            let session = *sessions.entry((agent, person, session)).or_insert_with(SessionId::new);
            simulation.of.insert(session, (simulation.agents[agent], format!("per_{person}")));
            simulation.add_work(session, turns);
            simulation.run_round(&order);
        }
        let left: usize = simulation.work.values().map(|turns| *turns as usize).sum();
        for _ in 0..(left + sessions.len() + 1) * (TURNS_IN_A_ROW_MAX as usize + 1) {
            simulation.run_round(&[]);
        }
        prop_assert!(simulation.work.values().all(|turns| *turns == 0), "all work is done: {:?}", simulation.work);
        prop_assert_eq!(simulation.waiting.len(), 0);
    }

    /// This holds for any number of sessions and turns of other people.
    #[test]
    fn a_person_waits_for_one_turn_of_each_other_person(
        places in 1usize..5,
        crowd in prop::collection::vec((0usize..4, 1u32..12), 1..40),
        passes in 0usize..12,
        order in prop::collection::vec(0usize..8, 0..6),
    ) {
        let limits = Limits { awake_max: places, awake_per_agent_max: places };
        let mut simulation = Simulation::new(1, 5, limits);
        for (person, turns) in &crowd {
            let session = SessionId::new();
            simulation.of.insert(session, (simulation.agents[0], format!("per_{person}")));
            simulation.add_work(session, *turns);
        }
        (0..passes).for_each(|_| simulation.run_round(&order));
        let mine = SessionId::new();
        simulation.of.insert(mine, (simulation.agents[0], "me".to_owned()));
        simulation.add_work(mine, 1);
        let others = {
            let mut people: Vec<_> = crowd.iter().map(|(person, _)| person).collect();
            people.sort_unstable();
            people.dedup();
            people.len()
        };
        let mut rounds = 0;
        while !simulation.admitted.contains(&mine) {
            rounds += 1;
            prop_assert!(rounds <= others, "{rounds} rounds with {others} other people");
            simulation.run_round(&order);
        }
    }

    #[test]
    fn leaving_the_queue_changes_nothing_for_the_others(
        joins in prop::collection::vec((0usize..4, any::<bool>()), 1..30),
    ) {
        let agents: Vec<AgentId> = (0..4).map(|_| AgentId::new()).collect();
        let (mut all, mut patient) = (Waiting::default(), Waiting::default());
        // If an agent's first session left, the agent would join later; so the first session of each stays.
        let (mut gone, mut known) = (Vec::new(), Vec::new());
        for (agent, stays) in joins {
            let session = SessionId::new();
            all.join(agents[agent], "ann", session, &Awake::default());
            if stays || !known.contains(&agent) {
                patient.join(agents[agent], "ann", session, &Awake::default());
                known.push(agent);
            } else {
                gone.push(session);
            }
        }
        for session in gone {
            all.leave(session, false);
        }
        prop_assert_eq!(all.order(), patient.order());
    }
}

fn admitted(waiting: &mut Waiting, awake: &mut Awake, of: &[(SessionId, AgentId)], limits: Limits) -> Vec<SessionId> {
    let mut order = Vec::new();
    while let Some(Step::Admit(session)) = next(waiting, awake, limits) {
        let agent = of.iter().find(|(known, _)| *known == session).expect("known").1;
        waiting.leave(session, true);
        awake.enter(agent, "ann".to_owned(), session);
        order.push(session);
    }
    order
}

#[test]
fn agents_are_served_in_turns_and_each_ones_oldest_first() {
    let (a, b) = (AgentId::new(), AgentId::new());
    let ids: Vec<SessionId> = (0..5).map(|_| SessionId::new()).collect();
    let of = [(ids[0], a), (ids[1], a), (ids[2], a), (ids[3], b), (ids[4], b)];
    let mut waiting = Waiting::default();
    of.iter().for_each(|(session, agent)| waiting.join(*agent, "ann", *session, &Awake::default()));
    let expected = vec![ids[0], ids[3], ids[1], ids[4], ids[2]];
    assert_eq!(waiting.order(), expected);
    let limits = Limits { awake_max: 9, awake_per_agent_max: 9 };
    assert_eq!(admitted(&mut waiting, &mut Awake::default(), &of, limits), expected);
}

#[test]
fn an_agent_at_its_limit_lets_others_pass_and_keeps_its_turn() {
    let (a, b) = (AgentId::new(), AgentId::new());
    let ids: Vec<SessionId> = (0..4).map(|_| SessionId::new()).collect();
    let of = [(ids[0], a), (ids[1], a), (ids[2], b), (ids[3], b)];
    let mut waiting = Waiting::default();
    of.iter().for_each(|(session, agent)| waiting.join(*agent, "ann", *session, &Awake::default()));
    let mut awake = Awake::default();
    let limits = Limits { awake_max: 9, awake_per_agent_max: 1 };
    assert_eq!(admitted(&mut waiting, &mut awake, &of, limits), [ids[0], ids[2]]);
    // The agent's own slot is asked back only once it is idle, and another agent's slot does not help.
    assert_eq!(next(&waiting, &awake, limits), None);
    awake.idle(ids[2]);
    assert_eq!(next(&waiting, &awake, limits), Some(Step::AskBack(ids[2])));
    awake.ask_back(ids[2]);
    assert_eq!(next(&waiting, &awake, limits), None, "it was asked once for the one that waits");
    awake.leave(ids[0]);
    assert_eq!(next(&waiting, &awake, limits), Some(Step::Admit(ids[1])));
}

#[test]
fn longest_idle_slot_is_asked_back_only_if_a_session_waits() {
    let agent = AgentId::new();
    let ids: Vec<SessionId> = (0..4).map(|_| SessionId::new()).collect();
    let limits = Limits { awake_max: 3, awake_per_agent_max: 3 };
    let (mut waiting, mut awake) = (Waiting::default(), Awake::default());
    ids[..3].iter().for_each(|session| awake.enter(agent, "ann".to_owned(), *session));
    awake.idle(ids[1]);
    awake.idle(ids[0]);
    awake.idle(ids[1]);
    assert_eq!(next(&waiting, &awake, limits), None);
    waiting.join(agent, "ann", ids[3], &awake);
    assert_eq!(next(&waiting, &awake, limits), Some(Step::AskBack(ids[1])), "a second idle report changes nothing");
    awake.busy(ids[1]);
    assert_eq!(next(&waiting, &awake, limits), Some(Step::AskBack(ids[0])));
}

#[test]
fn busy_session_yields_after_its_turns_if_another_waits() {
    let (a, b) = (AgentId::new(), AgentId::new());
    let (busy, other) = (SessionId::new(), SessionId::new());
    let limits = Limits { awake_max: 1, awake_per_agent_max: 1 };
    let (mut waiting, mut awake) = (Waiting::default(), Awake::default());
    awake.enter(a, "ann".to_owned(), busy);
    (0..2 * TURNS_IN_A_ROW_MAX).for_each(|_| awake.turn_ended(busy));
    assert_eq!(next(&waiting, &awake, limits), None, "no session waits");
    awake.leave(busy);
    awake.enter(a, "ann".to_owned(), busy);
    waiting.join(b, "ann", other, &awake);
    for _ in 0..TURNS_IN_A_ROW_MAX {
        assert_eq!(next(&waiting, &awake, limits), None);
        awake.turn_ended(busy);
    }
    assert_eq!(next(&waiting, &awake, limits), Some(Step::AskBack(busy)));
}

#[test]
fn people_of_one_agent_are_served_in_turns() {
    let agent = AgentId::new();
    let ids: Vec<SessionId> = (0..14).map(|_| SessionId::new()).collect();
    let mut waiting = Waiting::default();
    ids[..12].iter().for_each(|session| waiting.join(agent, "bob", *session, &Awake::default()));
    waiting.join(agent, "ann", ids[12], &Awake::default());
    waiting.join(agent, "cem", ids[13], &Awake::default());
    assert_eq!(waiting.order()[..4], [ids[0], ids[12], ids[13], ids[1]]);
    assert_eq!(waiting.leave(ids[0], true), Some((agent, "bob".to_owned())));
    assert_eq!(waiting.order()[..3], [ids[12], ids[13], ids[1]], "bob's turn was used");
}

#[test]
fn a_person_without_a_slot_waits_for_one_turn_and_not_four() {
    let agent = AgentId::new();
    let ids: Vec<SessionId> = (0..3).map(|_| SessionId::new()).collect();
    let limits = Limits { awake_max: 1, awake_per_agent_max: 1 };
    let (mut waiting, mut awake) = (Waiting::default(), Awake::default());
    awake.enter(agent, "bob".to_owned(), ids[0]);
    awake.turn_ended(ids[0]);
    waiting.join(agent, "bob", ids[1], &awake);
    assert_eq!(next(&waiting, &awake, limits), None, "bob's other session waits for four");
    waiting.join(agent, "ann", ids[2], &awake);
    assert_eq!(next(&waiting, &awake, limits), Some(Step::AskBack(ids[0])));
}
