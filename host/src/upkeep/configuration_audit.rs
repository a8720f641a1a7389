//! The audit of a configuration: findings about the reach of agents, the people, their rights and the copies of the record.
//!
//! Reads the record and the settings, and changes neither. The words of a finding and the commands that mend it are in
//! [`ironclaw_operator::Finding`].

mod people;
mod reach;
mod schedules;
mod unused;

use crate::registry::live_settings::LiveSettings;
use crate::registry::policy::{Policy, Rule};
use crate::registry::secret_users::users;
use crate::registry::{self, Person, secrets, skills};
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::seam::change::ChangeKind;
use ironclaw_judge::Class;
use ironclaw_operator::{BACKUP_DAYS_MAX, Finding, HeadsKept, Role, SECRET_DAYS_MAX};
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use ironclaw_store::tables::facts::{self, Fact};
use ironclaw_store::times::DAY_MS;

/// The classes of calls whose deciders are findings: those that leave the host, run programs or spend money.
const DECIDED: [Class; 3] = [Class::Send, Class::Exec, Class::Trade];

/// What the audit reads beside the record.
pub struct Outside<'a> {
    pub settings: &'a LiveSettings,
    /// The place of the heads of the ledger.
    pub heads: &'a HeadsKept,
    /// The newer versions of skills at the sources.
    pub newer: &'a [NewerSkill],
}

/// A skill of an agent for which a source has a newer version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewerSkill {
    pub agent: AgentId,
    pub skill: String,
    pub version: String,
}

/// Returns the findings, the most urgent first.
pub fn findings(tx: &ReadTx<'_>, outside: &Outside<'_>) -> Result<Vec<Finding>, Error> {
    let mut all = Vec::new();
    reach::find(tx, outside, &mut all)?;
    schedules::find(tx, &mut all)?;
    unused::find(tx, &mut all)?;
    people::find(tx, &mut all)?;
    find_secrets(tx, &mut all)?;
    find_deciders(&outside.settings.policy, &registry::people(tx)?, &mut all);
    find_copies(tx, outside.heads, &mut all)?;
    all.sort_by_key(|finding| (finding.level() as u8, finding.area() as u8));
    Ok(all)
}

/// Returns the whole days between two times.
fn days(from: i64, to: i64) -> u32 {
    u32::try_from((to - from).div_euclid(DAY_MS)).unwrap_or(0)
}

fn find_secrets(tx: &ReadTx<'_>, all: &mut Vec<Finding>) -> Result<(), ironclaw_state::Error> {
    for found in secrets::list(tx)? {
        let (secret, used_by) = (found.name.as_str().to_owned(), users(tx, &found.name)?);
        let age = found.stored.map_or(0, |(_, changed_at)| days(changed_at, tx.wall()));
        all.push(match used_by.is_empty() {
            true => Finding::SecretUnused { secret },
            false if age > SECRET_DAYS_MAX => Finding::SecretOld { secret, days: age, used_by },
            false => Finding::SecretUsed { secret, used_by },
        });
    }
    Ok(())
}

/// Finds who decides about calls and changes. A person without a second who could decide approves their own requests, by any policy.
fn find_deciders(policy: &Policy, people: &[Person], all: &mut Vec<Finding>) {
    let decides_own = |rule: &Rule| {
        let deciders = people.iter().filter(|person| rule.admits(person.role)).count();
        rule.is_one_alone() && deciders > 1
    };
    let classes = DECIDED.into_iter().map(|class| (class, format!("call.{class}"), policy.call_rule(class, "")));
    for (class, table, rule) in classes {
        let by_members = rule.admits(Role::Member) && class != Class::Send;
        all.push(if by_members {
            Finding::MembersDecide { table }
        } else if decides_own(rule) {
            Finding::ApprovesOwn { table }
        } else {
            Finding::DecidedBy { table, roles: rule.roles.clone(), approvals: rule.approvals }
        });
    }
    let own: Vec<ChangeKind> = ChangeKind::ALL.iter().copied().filter(|kind| decides_own(policy.rule(*kind))).collect();
    let table = match own.as_slice() {
        [] => return,
        [kind] => format!("kind.{}", kind.name()),
        _ => "default".to_owned(),
    };
    all.push(Finding::ApprovesOwn { table });
}

fn find_copies(tx: &ReadTx<'_>, heads: &HeadsKept, all: &mut Vec<Finding>) -> Result<(), ironclaw_state::Error> {
    let verified = facts::backup(tx, Fact::BackupVerified)?;
    match facts::backup(tx, Fact::BackupMade)? {
        None => all.push(Finding::BackupMissing),
        Some(made) => {
            let age = days(made.at, tx.wall());
            if age > BACKUP_DAYS_MAX {
                all.push(Finding::BackupOld { days: age });
            } else if verified.is_none_or(|verified| verified.id != made.id) {
                all.push(Finding::BackupUnverified { backup: made.id });
            }
        }
    }
    let reason = match (&heads.trouble, &heads.directory) {
        (Some(trouble), _) => Some(trouble.clone()),
        (None, None) => Some("no directory is set".to_owned()),
        (None, Some(_)) => None,
    };
    all.extend(reason.map(|reason| Finding::HeadsNotKept { reason }));
    Ok(())
}

/// Returns the installed skills of an agent with their versions.
pub fn installed(tx: &ReadTx<'_>, agent: AgentId) -> Result<Vec<(String, String)>, ironclaw_state::Error> {
    let held = skills::list_for_agent(tx, agent)?;
    Ok(held.into_iter().map(|held| (held.package.name, held.package.version)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::policy;
    use ironclaw_contract::ids::PersonId;
    use serde_json::json;

    fn people(roles: &[Role]) -> Vec<Person> {
        let person = |role: &Role| Person { id: PersonId::new(), name: "p".to_owned(), role: *role, created_at: 0 };
        roles.iter().map(person).collect()
    }

    /// Returns the findings about a policy, as `KIND TABLE`.
    fn found(text: &str, roles: &[Role]) -> Vec<String> {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("policy.toml");
        std::fs::write(&path, text).expect("written");
        let policy = policy::load(&path).unwrap_or_else(|error| panic!("{text}: {error}"));
        let mut all = Vec::new();
        find_deciders(&policy, &people(roles), &mut all);
        let shown = |finding: &Finding| {
            let value = json!(finding);
            format!("{} {}", value["finding"].as_str().unwrap_or(""), value["table"].as_str().unwrap_or(""))
        };
        all.iter().map(shown).filter(|shown| !shown.starts_with("decided_by")).collect()
    }

    #[test]
    fn policy_is_a_finding_if_a_second_person_could_decide() {
        let (alone, two) = (&[Role::Owner, Role::Member][..], &[Role::Owner, Role::Admin][..]);
        let own =
            ["approves_own call.send", "approves_own call.exec", "approves_own call.trade", "approves_own default"];
        let strict = "[default]\nrequester_may_approve = false\n[call.send]\nrequester_may_approve = false\n\
                      [call.exec]\napprovals = 2\n[call.trade]\nrequester_may_approve = false\n";
        for (text, roles, expected) in [
            ("", alone, &[][..]),
            ("", two, &own[..]),
            (strict, two, &[]),
            (
                "[default]\nrequester_may_approve = false\n[kind.persona]\nrequester_may_approve = true\n\
              [call.send]\napprovals = 2\n[call.exec]\napprovals = 2\n[call.trade]\napprovals = 2\n",
                two,
                &["approves_own kind.persona"],
            ),
            ("[call.exec]\nroles = [\"owner\", \"member\"]\n", &[Role::Owner], &["members_decide call.exec"]),
            ("[call.send]\nroles = [\"owner\", \"member\"]\n", &[Role::Owner], &[]),
        ] {
            assert_eq!(found(text, roles), expected, "{text}");
        }
    }

    #[test]
    fn days_between_times_are_whole() {
        for (from, to, expected) in
            [(0, 0, 0), (0, DAY_MS - 1, 0), (0, DAY_MS, 1), (DAY_MS, 0, 0), (0, 200 * DAY_MS, 200)]
        {
            assert_eq!(days(from, to), expected, "{from} {to}");
        }
    }
}
