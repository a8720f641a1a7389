//! Whether the people of a host can decide what its policy asks for.
//!
//! Only counts; refuses nothing. Next: `gateway::policy`, `gateway::decide` for who counts in the end.

use super::kinds::{self, is_of_agent};
use super::policy::{Policy, Rule};
use crate::registry::{self, Role, roles};
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::seam::change::ChangeKind;
use ironclaw_state::ReadTx;
use std::collections::BTreeSet;
use std::fmt;

/// Everybody who may decide something.
#[derive(Debug, Clone, Default)]
pub struct People {
    /// Each person with the role on this host.
    pub all: Vec<(PersonId, Role)>,
    /// The admins of each agent that has some.
    pub of_agents: Vec<BTreeSet<PersonId>>,
}

/// Reads them from the record.
///
/// # Errors
/// Those of the record.
pub fn look(tx: &ReadTx<'_>) -> Result<People, ironclaw_state::Error> {
    let all = registry::people(tx)?.into_iter().map(|person| (person.id, person.role)).collect();
    let mut of_agents = Vec::new();
    for agent in registry::agents(tx)? {
        let admins: BTreeSet<PersonId> = roles::of(tx, agent.id)?
            .into_iter()
            .filter(|(person, role)| roles::larger(person.role, Some(*role)).covers(Role::Admin))
            .map(|(person, _)| person.id)
            .collect();
        of_agents.push(admins);
    }
    Ok(People { all, of_agents })
}

/// What the default model, a part of the kind `settings`, is called beside the kinds of change.
const DEFAULT_MODEL: &str = "settings (default_model)";

/// A rule that cannot be met, and the kinds of change that it holds for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmet {
    /// Names of the kinds.
    pub kinds: Vec<&'static str>,
    /// What is asked for.
    pub rule: Rule,
    /// So many people can say yes.
    pub there: usize,
    /// Whether no change of these kinds can ever be approved; else only those cannot that one of these people asks for.
    pub is_never: bool,
    /// Whether `config check` refuses the policy for it; else it is a warning.
    pub is_refused: bool,
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let roles: Vec<&str> = self.rule.roles.iter().map(|role| role.name()).collect();
        let which =
            if self.is_never { "no change can be approved" } else { "no request of an owner or admin can be approved" };
        let beside = if self.rule.requester_may_approve { "" } else { ", and whoever asks does not count" };
        write!(
            f,
            "{which} of kind {}: policy.toml asks for {} with role {}, there {}{beside} (`ironctl person add`, or change policy.toml)",
            self.kinds.join(", "),
            people(self.rule.approvals as usize),
            roles.join(" or "),
            if self.there == 1 { "is 1".to_owned() } else { format!("are {}", self.there) },
        )
    }
}

fn people(count: usize) -> String {
    if count == 1 { "1 person".to_owned() } else { format!("{count} people") }
}

/// What the policy asks for that these people cannot give; kinds with the same rule and the same people are one.
pub fn unmet(found: &People, policy: &Policy) -> Vec<Unmet> {
    let mut unmet: Vec<Unmet> = Vec::new();
    for kind in ChangeKind::ALL.iter().copied() {
        let rule = policy.rule(kind);
        let Some((there, is_never)) = too_few(found, kind, rule) else { continue };
        let same = |other: &&mut Unmet| other.rule == *rule && other.there == there && other.is_never == is_never;
        match unmet.iter_mut().find(same) {
            Some(other) => other.kinds.push(kind.name()),
            None => {
                let kinds = vec![kind.name()];
                unmet.push(Unmet { kinds, rule: rule.clone(), there, is_never, is_refused: is_never });
            }
        }
    }
    unmet.extend(default_model(found, policy.rule(ChangeKind::Settings)));
    unmet
}

/// The narrower rule for the default model, if no change of it can ever be approved and other settings can be. It takes more owners,
/// and everything else works without them.
fn default_model(found: &People, of_settings: &Rule) -> Option<Unmet> {
    let rule = kinds::for_default_model(of_settings.clone());
    match (too_few(found, ChangeKind::Settings, of_settings), too_few(found, ChangeKind::Settings, &rule)) {
        (None, Some((there, true))) => {
            Some(Unmet { kinds: vec![DEFAULT_MODEL], rule, there, is_never: true, is_refused: false })
        }
        _ => None,
    }
}

/// How many people can say yes, if those are too few, and whether they are for each change of this kind.
fn too_few(found: &People, kind: ChangeKind, rule: &Rule) -> Option<(usize, bool)> {
    let deciders = deciders(found, kind, rule);
    let there = deciders.len();
    let needed = rule.approvals as usize;
    let own = there.saturating_sub(usize::from(!rule.requester_may_approve));
    // Where somebody else is there on whose behalf an agent asks, each of these people counts.
    let is_others = found.all.iter().any(|(person, _)| !deciders.contains(person));
    let best = if is_others { there } else { own };
    (own < needed).then_some((there, best < needed))
}

/// The people who can say yes; where admins of an agent can, those of the agent that has most.
fn deciders(found: &People, kind: ChangeKind, rule: &Rule) -> BTreeSet<PersonId> {
    let of_host: BTreeSet<PersonId> =
        found.all.iter().filter(|(_, role)| rule.admits(*role)).map(|(person, _)| *person).collect();
    if !is_of_agent(kind) || !rule.admits(Role::Admin) {
        return of_host;
    }
    let with = found.of_agents.iter().map(|admins| of_host.union(admins).copied().collect::<BTreeSet<_>>());
    with.max_by_key(BTreeSet::len).unwrap_or(of_host)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gateway::policy;

    fn of(roles: &[Role]) -> People {
        People { all: roles.iter().map(|role| (PersonId::new(), *role)).collect(), of_agents: Vec::new() }
    }

    fn policy(text: &str) -> Policy {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("policy.toml");
        std::fs::write(&path, text).expect("written");
        policy::load(&path).expect("a policy")
    }

    /// How many rules cannot be met, and whether the policy is refused for one.
    fn found(text: &str, people: &People) -> (usize, bool) {
        let unmet = unmet(people, &policy(text));
        (unmet.len(), unmet.iter().any(|unmet| unmet.is_refused))
    }

    #[test]
    fn policy_that_cannot_be_met_is_found() {
        use Role::{Admin, Member, Owner};
        let own = "[default]\nrequester_may_approve = false\n";
        for (text, people, expected) in [
            ("", of(&[Owner]), (0, false)),
            ("[default]\napprovals = 5\n", of(&[Owner]), (1, true)),
            ("[default]\napprovals = 2\n", of(&[Owner, Member]), (1, true)),
            // The default model is for owners to decide about: a warning.
            ("[default]\napprovals = 2\n", of(&[Owner, Admin]), (1, false)),
            ("[default]\napprovals = 2\n", of(&[Owner, Owner]), (0, false)),
            (
                "[default]\napprovals = 2\n[kind.settings]\nroles = [\"admin\"]\n",
                of(&[Owner, Admin, Admin]),
                (0, false),
            ),
            ("[kind.mounts]\nroles = [\"admin\"]\n", of(&[Owner]), (1, true)),
            (own, of(&[Owner]), (1, true)),
            (own, of(&[Owner, Member]), (1, false)),
            (own, of(&[Owner, Admin]), (0, false)),
            ("[default]\napprovals = 2\nrequester_may_approve = false\n", of(&[Owner, Admin]), (1, true)),
            ("[default]\napprovals = 2\n[kind.persona]\napprovals = 1\n", of(&[Owner]), (1, true)),
        ] {
            assert_eq!(found(text, &people), expected, "{text}");
        }
    }

    #[test]
    fn admins_of_an_agent_count_for_what_is_theirs_to_decide() {
        let mut people = of(&[Role::Owner, Role::Member]);
        people.of_agents = vec![BTreeSet::from([people.all[1].0])];
        let unmet = unmet(&people, &policy("[default]\napprovals = 2\n"));
        assert_eq!(unmet.len(), 1);
        assert!(!unmet[0].kinds.contains(&"persona"), "{:?}", unmet[0].kinds);
        assert!(unmet[0].kinds.contains(&"mounts"));
    }
}
