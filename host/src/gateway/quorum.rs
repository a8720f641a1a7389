//! The check that a host has enough people for the approvals that its policy requires.
//!
//! Only counts people and refuses nothing. See [`crate::registry::policy`], and [`crate::gateway::decide`] for the approvals that count.

use super::kinds::{self, is_of_agent};
use crate::registry::policy::{Policy, Rule};
use crate::registry::{self, Role, roles};
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::seam::change::ChangeKind;
use ironclaw_state::ReadTx;
use std::collections::BTreeSet;
use std::fmt;

/// All people of a host, with the roles by which they may decide.
#[derive(Debug, Clone, Default)]
pub struct People {
    /// Each person with the role on this host.
    pub all: Vec<(PersonId, Role)>,
    /// The admins of each agent; one set for each agent.
    pub of_agents: Vec<BTreeSet<PersonId>>,
}

/// Reads the people from the record.
///
/// # Errors
/// Fails if the record cannot be read.
pub fn read_people(tx: &ReadTx<'_>) -> Result<People, ironclaw_state::Error> {
    let all = registry::people(tx)?.into_iter().map(|person| (person.id, person.role)).collect();
    let mut of_agents = Vec::new();
    for agent in registry::agents(tx)? {
        let admins: BTreeSet<PersonId> = roles::list_for_agent(tx, agent.id)?
            .into_iter()
            .filter(|(person, role)| roles::larger(person.role, Some(*role)).covers(Role::Admin))
            .map(|(person, _)| person.id)
            .collect();
        of_agents.push(admins);
    }
    Ok(People { all, of_agents })
}

/// The name of the default model among the kinds of change; it is a part of the kind `settings`.
const DEFAULT_MODEL: &str = "settings (default_model)";

/// The requests that a rule is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Requests {
    Changes,
    Calls,
}

/// A rule that the people of the host cannot meet, and its requests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unmet {
    /// The requests that the rule is about.
    pub of: Requests,
    /// The kinds of change, or the tables about calls.
    pub names: Vec<String>,
    pub rule: Rule,
    /// The number of people who can approve.
    pub available: usize,
    /// True if none of them can ever be approved; false if that holds only for those that one of these people requests.
    pub is_never: bool,
    /// True if `config check` refuses the policy for this rule; false if it only warns.
    pub is_refused: bool,
}

impl fmt::Display for Unmet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let roles: Vec<&str> = self.rule.roles.iter().map(|role| role.name()).collect();
        let (roles, names) = (roles.join(" or "), self.names.join(", "));
        let which = match (self.of, self.is_never) {
            (Requests::Changes, true) => format!("no change can be approved of kind {names}"),
            (Requests::Changes, false) => format!("no request of an owner or admin can be approved of kind {names}"),
            (Requests::Calls, true) => format!("no call can be approved under {names}"),
            (Requests::Calls, false) => format!("no call for a person with role {roles} can be approved under {names}"),
        };
        let beside = if self.rule.requester_may_approve { "" } else { ", and the requester does not count" };
        write!(
            f,
            "{which}: policy.toml requires {} with role {}, and there {}{beside} (`ironctl person add`, or change policy.toml)",
            people(self.rule.approvals as usize),
            roles,
            if self.available == 1 { "is 1".to_owned() } else { format!("are {}", self.available) },
        )
    }
}

fn people(count: usize) -> String {
    if count == 1 { "1 person".to_owned() } else { format!("{count} people") }
}

/// Returns the rules of the policy that these people cannot meet. Requests with the same rule and the same people are one entry.
pub fn unmet(found: &People, policy: &Policy) -> Vec<Unmet> {
    let of_kinds = ChangeKind::ALL.iter().map(|kind| {
        let rule = policy.rule(*kind);
        (Requests::Changes, kind.name().to_owned(), rule, too_few(found, &deciders(found, *kind, rule), rule))
    });
    let of_calls = policy.call_rules().map(|(calls, rule)| {
        (Requests::Calls, format!("[{calls}]"), rule, too_few(found, &approvers_on_host(found, rule), rule))
    });
    let mut unmet: Vec<Unmet> = Vec::new();
    for (of, name, rule, missing) in of_kinds.chain(of_calls) {
        let Some((available, is_never)) = missing else { continue };
        let mut own = Unmet { of, names: Vec::new(), rule: rule.clone(), available, is_never, is_refused: is_never };
        match unmet.iter_mut().find(|other| Unmet { names: Vec::new(), ..(*other).clone() } == own) {
            // A tool has a rule for each class of its calls.
            Some(other) if other.names.contains(&name) => {}
            Some(other) => other.names.push(name),
            None => {
                own.names.push(name);
                unmet.push(own);
            }
        }
    }
    unmet.extend(default_model(found, policy.rule(ChangeKind::Settings)));
    unmet
}

/// Returns the narrower rule for the default model, if other settings can be changed and the default model never can. Only a warning,
/// because the rule needs more owners and all other changes work without them.
fn default_model(found: &People, of_settings: &Rule) -> Option<Unmet> {
    let rule = kinds::for_default_model(of_settings.clone());
    let too_few = |rule: &Rule| too_few(found, &deciders(found, ChangeKind::Settings, rule), rule);
    match (too_few(of_settings), too_few(&rule)) {
        (None, Some((available, true))) => {
            let (of, names) = (Requests::Changes, vec![DEFAULT_MODEL.to_owned()]);
            Some(Unmet { of, names, rule, available, is_never: true, is_refused: false })
        }
        _ => None,
    }
}

/// Returns the number of people who can approve, if they are too few, and whether they are too few for every request.
fn too_few(found: &People, deciders: &BTreeSet<PersonId>, rule: &Rule) -> Option<(usize, bool)> {
    let available = deciders.len();
    let needed = rule.approvals as usize;
    let own = available.saturating_sub(usize::from(!rule.requester_may_approve));
    // If an agent makes a request or a call on behalf of a person who is no decider, each decider counts.
    let has_others = found.all.iter().any(|(person, _)| !deciders.contains(person));
    let best = if has_others { available } else { own };
    (own < needed).then_some((available, best < needed))
}

/// Returns the people who can approve. If admins of an agent can, it counts the agent with the most admins.
fn deciders(found: &People, kind: ChangeKind, rule: &Rule) -> BTreeSet<PersonId> {
    let of_host = approvers_on_host(found, rule);
    if !is_of_agent(kind) || !rule.admits(Role::Admin) {
        return of_host;
    }
    let with = found.of_agents.iter().map(|admins| of_host.union(admins).copied().collect::<BTreeSet<_>>());
    with.max_by_key(BTreeSet::len).unwrap_or(of_host)
}

/// Returns the people who can approve by their role on the host. For calls no other role counts, because a call concerns others than its
/// agent.
fn approvers_on_host(found: &People, rule: &Rule) -> BTreeSet<PersonId> {
    found.all.iter().filter(|(_, role)| rule.admits(*role)).map(|(person, _)| *person).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::policy;

    fn of(roles: &[Role]) -> People {
        People { all: roles.iter().map(|role| (PersonId::new(), *role)).collect(), of_agents: Vec::new() }
    }

    fn policy(text: &str) -> Policy {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("policy.toml");
        std::fs::write(&path, text).expect("written");
        policy::load(&path).expect("a policy")
    }

    /// Returns the number of unmet rules, and whether the policy is refused for one of them.
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
            // Only owners decide on the default model, so this is a warning.
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
            ("[call.trade]\napprovals = 2\n", of(&[Owner]), (1, true)),
            ("[call.trade]\napprovals = 2\n", of(&[Owner, Member]), (1, true)),
            ("[call.trade]\napprovals = 2\n", of(&[Owner, Admin]), (0, false)),
            ("[call.trade]\napprovals = 2\nroles = [\"owner\", \"member\"]\n", of(&[Owner, Member]), (0, false)),
            ("[call.read]\nroles = [\"member\"]\n", of(&[Owner]), (1, true)),
            ("[call.send]\nrequester_may_approve = false\n", of(&[Owner]), (1, true)),
            ("[call.send]\nrequester_may_approve = false\n", of(&[Owner, Member]), (1, false)),
            ("[call.send]\nroles = [\"admin\"]\n[tool.http_fetch]\nroles = [\"owner\"]\n", of(&[Owner]), (1, true)),
            // A call of `http_fetch` never trades.
            ("[call.trade]\nroles = [\"admin\"]\n[tool.http_fetch]\napprovals = 1\n", of(&[Owner]), (1, true)),
        ] {
            assert_eq!(found(text, &people), expected, "{text}");
        }
    }

    #[test]
    fn admins_of_an_agent_count_for_kinds_that_they_decide() {
        let mut people = of(&[Role::Owner, Role::Member]);
        people.of_agents = vec![BTreeSet::from([people.all[1].0])];
        let unmet = unmet(&people, &policy("[default]\napprovals = 2\n"));
        assert_eq!(unmet.len(), 1);
        assert!(!unmet[0].names.contains(&"persona".to_owned()), "{:?}", unmet[0].names);
        assert!(unmet[0].names.contains(&"mounts".to_owned()));
    }

    #[test]
    fn unmet_rule_of_calls_names_its_tables() {
        let mut people = of(&[Role::Owner, Role::Member]);
        // A role of an agent decides on no call.
        people.of_agents = vec![BTreeSet::from([people.all[1].0])];
        let text = "[call.send]\napprovals = 3\n[call.trade]\napprovals = 3\n[tool.http_fetch]\napprovals = 2\n";
        let unmet = unmet(&people, &policy(text));
        let found: Vec<_> = unmet.iter().map(|unmet| (unmet.names.join(" "), unmet.available)).collect();
        assert_eq!(found, [("[call.send] [call.trade]".to_owned(), 1), ("[tool.http_fetch]".to_owned(), 1)]);
        assert!(unmet.iter().all(|unmet| unmet.of == Requests::Calls && unmet.is_refused));
    }
}
