//! The policy for decisions: a file of the operator, read strictly.
//!
//! The file can require more people and fewer roles, but always at least one person. See [`crate::gateway::decide`].

mod calls;
mod receiver;

pub use calls::{Calls, decided_classes};

use crate::registry::{Agent, Role};
use calls::CallRules;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::seam::change::ChangeKind;
use ironclaw_judge::{Class, ReceiverPolicy};
use ironclaw_store::toml_file::{self, Error};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The bound on the approvals that a rule may require.
const APPROVALS_MAX: u32 = 8;

/// The bound on the wait of a change for a decision: 90 days.
const EXPIRES_HOURS_MAX: u32 = 90 * 24;

/// The beginning of a new home's policy; [`template`] adds the kinds of change and the calls.
const TEMPLATE: &str = "\
# The rules for decisions on changes of agents and on tool calls. Every line shows its default; remove the # to change it.
# The host reads this file at its start, and does not start with a wrong one. `ironctl config reload` reads it again.

[default]
# roles = [\"owner\", \"admin\"]   # the roles that may decide; only owner and admin are possible
# approvals = 1                # this number of different people has to approve; never 0
# requester_may_approve = true # false: the person who requests it, also by an agent, does not count
# expires_hours = 168          # an undecided change expires after this time
";

/// Returns the policy of a new home, as text.
pub fn template() -> String {
    let kinds: Vec<&str> = ChangeKind::ALL.iter().map(|kind| kind.name()).collect();
    let kinds = format!("\n# For one kind of change: {}\n# [kind.create_agent]\n# approvals = 2\n", kinds.join(" "));
    TEMPLATE.to_owned() + &kinds + &calls::template() + receiver::TEMPLATE
}

/// The rule for one kind of change, or for calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The roles that may decide; a person needs one of them.
    pub roles: Vec<Role>,
    /// The needed number of approvals by different people.
    pub approvals: u32,
    /// True if the requester counts as one of these people.
    pub requester_may_approve: bool,
    /// The hours after which an undecided change or call expires.
    pub expires_hours: u32,
}

impl Rule {
    /// Returns whether this role may decide.
    pub fn admits(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }

    /// Returns whether a person of this role may remove reasons of their own call of a class: any role for reading, writing and sending,
    /// and a role of the rule for everything else.
    pub fn admits_principal(&self, class: Class, role: Role) -> bool {
        match class {
            Class::Read | Class::Write | Class::Send | Class::Ask => true,
            Class::Exec | Class::Trade => self.admits(role),
        }
    }

    /// Returns the rule that is at least as strict as both: the roles of both, and of owners alone if they share none.
    #[must_use]
    pub fn with(self, other: &Self) -> Self {
        let shared: Vec<Role> = self.roles.iter().copied().filter(|role| other.admits(*role)).collect();
        Self {
            roles: if shared.is_empty() { vec![Role::Owner] } else { shared },
            approvals: self.approvals.max(other.approvals),
            requester_may_approve: self.requester_may_approve && other.requester_may_approve,
            expires_hours: self.expires_hours.min(other.expires_hours),
        }
    }

    /// Returns whether one approval of any person with the role is enough, also that of the requester.
    pub const fn is_one_alone(&self) -> bool {
        self.approvals == 1 && self.requester_may_approve
    }

    /// Returns the digest of the rule for this kind; another rule has another digest.
    pub fn digest(&self, kind: ChangeKind) -> Digest {
        self.digest_for(serde_json::json!({ "kind": kind }))
    }

    /// Returns the digest of the rule for calls of this class and tool; another rule has another digest.
    pub fn call_digest(&self, class: Class, tool: &str) -> Digest {
        self.digest_for(serde_json::json!({ "class": class, "tool": tool }))
    }

    /// Returns the digest of the rule, together with the fields of `what`.
    fn digest_for(&self, mut what: serde_json::Value) -> Digest {
        let roles: Vec<&str> = self.roles.iter().map(|role| role.name()).collect();
        what["roles"] = roles.into();
        what["approvals"] = self.approvals.into();
        what["requester_may_approve"] = self.requester_may_approve.into();
        what["expires_hours"] = self.expires_hours.into();
        Digest::of(&canonical::to_vec(&what))
    }
}

/// A rule for each kind of change and for each class of calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    rules: BTreeMap<&'static str, Rule>,
    calls: CallRules,
    receiver: ReceiverPolicy,
}

impl Default for Policy {
    fn default() -> Self {
        compile(&Written::default()).expect("an empty policy is one")
    }
}

impl Policy {
    /// Returns the digest of the whole policy.
    pub fn digest(&self) -> Digest {
        let of_kinds = ChangeKind::ALL.iter().map(|kind| self.rule(*kind).digest(*kind));
        let of_calls = self.calls.all().map(|(calls, class, rule)| rule.call_digest(class, &calls.to_string()));
        let of_receiver = (self.receiver != receiver::usual()).then(|| receiver::digest(&self.receiver));
        let all = of_kinds.chain(of_calls).chain(of_receiver);
        let rules: Vec<String> = all.map(|digest| digest.to_string()).collect();
        Digest::of(rules.join(" ").as_bytes())
    }

    /// Returns the classes that each kind of author may ever ask an agent of this host for.
    pub const fn receiver(&self) -> &ReceiverPolicy {
        &self.receiver
    }

    /// Returns the classes that an agent takes from each kind of author, within the bound of the host.
    pub fn receiver_of(&self, agent: &Agent) -> ReceiverPolicy {
        agent.receiver.policy().within(&self.receiver)
    }

    pub fn rule(&self, kind: ChangeKind) -> &Rule {
        &self.rules[kind.name()]
    }

    /// Returns the rule for a call of this class and tool that needs a person: that of the tool, else of the class, else the default of
    /// calls.
    pub fn call_rule(&self, class: Class, tool: &str) -> &Rule {
        self.calls.rule(class, tool)
    }

    /// Returns the table of the policy with the rule for a call of this class and tool; `None` if it has none and the defaults hold.
    pub fn call_table(&self, class: Class, tool: &str) -> Option<Calls> {
        self.calls.table(class, tool)
    }

    /// Returns the rule of each class of calls, and of each tool that the policy names for the classes that its calls can have.
    pub fn call_rules(&self) -> impl Iterator<Item = (Calls, &Rule)> {
        self.calls.all().map(|(calls, _, rule)| (calls, rule))
    }
}

/// Reads the policy of a home. Without a file every rule is the default.
///
/// # Errors
/// Refuses a policy that is not valid; the host then does not start.
pub fn load(path: &Path) -> Result<Policy, Error> {
    let text = match toml_file::read(path) {
        Err(Error::Read { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => String::new(),
        read => read?,
    };
    let written: Written = toml_file::parse(&text, path)?;
    compile(&written).map_err(|what| toml_file::refused(path, located(&text, what)))
}

/// Adds the number of the line to a sentence that begins with the name of a setting or of a kind.
fn located(text: &str, what: String) -> String {
    let name = what.split([' ', ':']).next().unwrap_or_default();
    let names = [name.to_owned(), format!("kind.{name}")];
    match names.iter().find_map(|name| toml_file::line_of(text, name)) {
        Some(line) => format!("line {line}: {what}"),
        None => what,
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    #[serde(default)]
    default: WrittenRule,
    #[serde(default)]
    kind: BTreeMap<String, WrittenRule>,
    #[serde(default)]
    call: BTreeMap<String, WrittenRule>,
    #[serde(default)]
    tool: BTreeMap<String, WrittenRule>,
    #[serde(default)]
    receiver: BTreeMap<String, Vec<String>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenRule {
    roles: Option<Vec<String>>,
    approvals: Option<u32>,
    requester_may_approve: Option<bool>,
    expires_hours: Option<u32>,
}

/// The values that a rule may have.
#[derive(Clone, Copy)]
struct Bounds {
    /// True if members may decide.
    has_members: bool,
    expires_hours_max: u32,
}

fn compile(written: &Written) -> Result<Policy, String> {
    let usual =
        Rule { roles: vec![Role::Owner, Role::Admin], approvals: 1, requester_may_approve: true, expires_hours: 168 };
    let bounds = Bounds { has_members: false, expires_hours_max: EXPIRES_HOURS_MAX };
    let default = rule("default", &written.default, &usual, bounds)?;
    if let Some(unknown) = written.kind.keys().find(|name| name.parse::<ChangeKind>().is_err()) {
        let known: Vec<&str> = ChangeKind::ALL.iter().map(|kind| kind.name()).collect();
        return Err(format!("kind.{unknown}: there is no kind of change {unknown:?}: use one of {}", known.join(", ")));
    }
    let rules = ChangeKind::ALL.iter().map(|kind| {
        let own = written.kind.get(kind.name());
        Ok((kind.name(), own.map_or_else(|| Ok(default.clone()), |own| rule(kind.name(), own, &default, bounds))?))
    });
    Ok(Policy {
        rules: rules.collect::<Result<_, String>>()?,
        calls: calls::compile(&written.call, &written.tool)?,
        receiver: receiver::compile(&written.receiver)?,
    })
}

fn rule(of: &str, written: &WrittenRule, default: &Rule, bounds: Bounds) -> Result<Rule, String> {
    let roles = match &written.roles {
        None => default.roles.clone(),
        Some(names) => {
            let mut roles = Vec::new();
            for name in names {
                match name.parse::<Role>() {
                    Ok(Role::Member) if !bounds.has_members => {
                        return Err(format!("{of}.roles: a member cannot decide on a change"));
                    }
                    Ok(role) if roles.contains(&role) => return Err(format!("{of}.roles: {name} is named twice")),
                    Ok(role @ (Role::Owner | Role::Admin | Role::Member)) => roles.push(role),
                    Err(why) => return Err(format!("{of}.roles: {why}")),
                }
            }
            roles
        }
    };
    if roles.is_empty() {
        let some = if bounds.has_members { "owner, admin, member or several of them" } else { "owner, admin or both" };
        return Err(format!("{of}.roles is empty: name {some}"));
    }
    let approvals = written.approvals.unwrap_or(default.approvals);
    if !(1..=APPROVALS_MAX).contains(&approvals) {
        return Err(format!("{of}.approvals must be 1 to {APPROVALS_MAX}: a person always decides"));
    }
    let expires_hours = written.expires_hours.unwrap_or(default.expires_hours);
    if !(1..=bounds.expires_hours_max).contains(&expires_hours) {
        return Err(format!("{of}.expires_hours must be 1 to {}", bounds.expires_hours_max));
    }
    let requester_may_approve = written.requester_may_approve.unwrap_or(default.requester_may_approve);
    Ok(Rule { roles, approvals, requester_may_approve, expires_hours })
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn parse(text: &str) -> Result<Policy, String> {
        let written: Written = toml_file::parse(text, Path::new("p.toml")).map_err(|error| error.to_string())?;
        compile(&written)
    }

    #[test]
    fn policy_without_a_person_or_with_a_bad_rule_is_refused() {
        for (text, why) in [
            ("[default]\napprovals = 0", "a person always decides"),
            ("[kind.persona]\napprovals = 0", "a person always decides"),
            ("[default]\napprovals = 9", "1 to 8"),
            ("[default]\nroles = []", "roles is empty"),
            ("[default]\nroles = [\"member\"]", "a member cannot decide"),
            ("[default]\nroles = [\"owner\", \"owner\"]", "twice"),
            ("[default]\nroles = [\"everyone\"]", "unknown role"),
            ("[default]\nauto_approve = true", "auto_approve"),
            ("[kind.exec]\napprovals = 1", "no kind of change"),
            ("[kind.skill_install]\napprovals = 1", "no kind of change"),
            ("[default]\nexpires_hours = 0", "expires_hours"),
            ("approve = true", "approve"),
            ("[default]\naprovals = 2", "did you mean `approvals`?"),
            ("[receiver]\nunsigned = []", "receiver.unsigned"),
            ("[receiver]\nguests = []", "receiver.guests"),
            ("[receiver]\nguest = [\"delete\"]", "receiver.guest"),
            ("[receiver]\nguest = [\"read\", \"read\"]", "twice"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn rule_of_a_kind_extends_the_default_and_changes_its_digest() {
        let policy = parse("[default]\napprovals = 2\n[kind.persona]\nroles = [\"owner\"]").expect("a policy");
        assert_eq!(policy.rule(ChangeKind::Persona).approvals, 2);
        assert!(!policy.rule(ChangeKind::Persona).admits(Role::Admin));
        assert!(policy.rule(ChangeKind::Mounts).admits(Role::Admin));
        let usual = Policy::default();
        let of = |policy: &Policy, kind| policy.rule(kind).digest(kind);
        assert_ne!(of(&policy, ChangeKind::Persona), of(&usual, ChangeKind::Persona));
        assert_ne!(of(&usual, ChangeKind::Persona), of(&usual, ChangeKind::Mounts));
    }

    #[test]
    fn the_template_is_the_default_with_and_without_its_comments() {
        assert_eq!(parse(&template()).expect("reads"), Policy::default());
        let open: String = TEMPLATE
            .lines()
            .map(|line| line.strip_prefix("# ").filter(|rest| rest.contains(" = ")).unwrap_or(line).to_owned() + "\n")
            .collect();
        assert_eq!(parse(&open).expect("reads"), Policy::default());
    }
}
