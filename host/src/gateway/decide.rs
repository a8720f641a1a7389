//! The rules of decisions on changes: who decides, what an approval is for, and when a change is stale.
//!
//! No flag counts as an approval: the transaction that applies a change counts the approvals in the record again. See
//! [`crate::gateway::waiting::decide`] for the decision, and [`crate::gateway::apply`] for its effect.

pub mod proof;

use super::approval::{Domain, Subject, SubjectNames};
use super::kinds::{self, concerns_agent, is_of_agent};
use super::review_page::{self, PageRequester, View};
use super::waiting::ValidApproval;
use super::waiting::{self, Ending, Gateway, Status};
use super::{Checked, Proposed, Requester, checks};
use crate::registry::live_settings::HostPolicy;
use crate::registry::policy::{Policy, Rule};
use crate::registry::{self, Giver, Person, Role, roles};
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{AgentId, ChangeId, PersonId};
use ironclaw_contract::seam::change::ChangeKind;
use ironclaw_operator::DenialCode;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::approvals::{self, ApprovalState};
use ironclaw_store::tables::facts;
use ironclaw_store::tables::waiting::changes::{self, Row};
use proof::{Approved, Direct};

/// Returns the rule for the decision on a change.
pub fn rule(row: &Row, policy: &Policy) -> Rule {
    kinds::rule(policy, &row.change, &row.own.before, &row.own.facts)
}

/// Returns the role of a person for decisions on a kind of change of an agent: their role on this host, or their role of the agent if
/// the kind is one of the agent and that role is higher.
pub fn deciding_role(
    tx: &ReadTx<'_>,
    person: &Person,
    kind: ChangeKind,
    agent: Option<AgentId>,
) -> Result<Role, ironclaw_state::Error> {
    let own = match agent {
        Some(agent) if is_of_agent(kind) => roles::role_of(tx, agent, person.id)?,
        _ => None,
    };
    Ok(roles::larger(person.role, own))
}

/// Returns whether this person may decide on this change.
pub fn may_decide(tx: &ReadTx<'_>, policy: &Policy, by: &Person, row: &Row) -> Result<bool, ironclaw_state::Error> {
    Ok(rule(row, policy).admits(deciding_role(tx, by, row.kind, row.agent)?))
}

/// Checks that a person may do the work of a change of this kind by a command of their own, because their one approval is enough.
///
/// # Errors
/// Refuses if the rule requires more than that.
pub fn check_direct(rule: &Rule, kind: ChangeKind, person: &Person) -> Result<Direct, Refusal> {
    let role = person.role;
    if rule.is_one_alone() && rule.admits(role) {
        return Ok(Direct::new(person.id));
    }
    let message = format!("the policy of this host asks for more than the command of one {role}");
    let refusal = Refusal::new(DenialCode::PolicyAsksForMore, message);
    Err(refusal.hint(format!("propose it as a change, and other people decide: `ironctl change submit --kind {kind}`")))
}

/// Returns the review page of a change.
pub(super) fn page(tx: &ReadTx<'_>, policy: &Policy, row: &Row) -> Result<String, ironclaw_state::Error> {
    let name = |person: PersonId| -> Result<String, ironclaw_state::Error> {
        let found = registry::person_by_id(tx, person)?;
        Ok(found.map_or_else(|| "(removed)".to_owned(), |person| person.name))
    };
    let agent = row.agent.map(|agent| registry::agent_by_id(tx, agent)).transpose()?.flatten();
    let agent_name = agent.as_ref().map_or("(removed)", |agent| agent.name.as_str());
    let principal = name(row.requester.principal())?;
    let requester = match &row.requester {
        Requester::Person(person) => PageRequester::Person(*person, &principal),
        Requester::Agent { principal: person, origin } => PageRequester::Agent {
            agent: (
                row.agent.ok_or_else(|| ironclaw_state::Error::Stored(format!("{}: its agent", row.id)))?,
                agent_name,
            ),
            principal: (*person, &principal),
            session: origin.session,
            turn: origin.turn,
            message: origin.message,
            call: origin.call,
        },
    };
    let concerns = concerned(row).map(|id| (id, agent_name));
    let view = View {
        id: row.id,
        change: &row.change,
        agent: concerns,
        requester,
        labels: row.labels,
        reason: &row.own.reason,
        before: &row.own.before,
        facts: &row.own.facts,
        rule: &rule(row, policy),
        created_at: ironclaw_ledger::rfc3339(row.created_at),
        expires_at: ironclaw_ledger::rfc3339(row.expires_at),
        generation: row.generation,
    };
    Ok(review_page::render(&view))
}

/// Returns the agent that the change concerns, if its kind concerns one.
pub fn concerned(row: &Row) -> Option<AgentId> {
    row.agent.filter(|_| concerns_agent(row.kind))
}

/// The format of the payloads of changes, to which each approval is bound. Replace it when a payload gets another meaning. Its first value
/// is the fingerprint of the seam to which earlier versions bound their approvals, so that these still count.
const PAYLOAD_FORMAT: &str = "191a13ea683e561e1afa9176a8e8583cf32ca3d2af727192f5c97b4250853446";

/// Returns the subject that an approval of this change must have now.
pub(super) fn subject(row: &Row, rule: &Rule, shown: Digest) -> Subject {
    let arguments =
        canonical::to_vec(&serde_json::json!([canonical::RECIPE, row.change.payload(), row.own.before, row.own.facts]));
    let session = row.requester.origin().map(|origin| origin.session);
    let SubjectNames { id, session, agent, principal } =
        SubjectNames::new(row.id, session, row.agent, row.requester.principal());
    Subject {
        domain: Domain::Change,
        id,
        session,
        agent,
        name: row.kind.name().to_owned(),
        schema: Digest::of(PAYLOAD_FORMAT.as_bytes()),
        server: None,
        arguments: Digest::of(&arguments),
        principal,
        labels: Digest::of(&canonical::to_vec(&row.labels)),
        policy: rule.digest(row.kind),
        shown,
        generation: row.generation,
        facts: None,
    }
}

/// Returns in the host's words the reason that a change is stale, if it is. A stale change fails a check, is completed to another
/// change, or alters a setting or has a name whose meaning differs from the time of the request.
pub(super) fn why_stale(
    tx: &ReadTx<'_>,
    host_policy: &HostPolicy,
    row: &Row,
) -> Result<Option<String>, ironclaw_state::Error> {
    const DIFFERS: &str = "the present setting, or the meaning of a name in it, differs from the time of the request";
    let proposed = Proposed {
        change: row.change.clone(),
        agent: row.agent,
        requester: row.requester.clone(),
        reason: row.own.reason.clone(),
        labels: row.labels,
    };
    Ok(match checks::check(tx, host_policy, proposed) {
        Ok(Checked { proposed, standing }) => {
            let same =
                proposed.change == row.change && standing.before == row.own.before && standing.facts == row.own.facts;
            if same { None } else { Some(DIFFERS.to_owned()) }
        }
        Err(Denied::Failed(error)) => return Err(error),
        Err(Denied::Refused(refusal)) if refusal.code == DenialCode::ChangeEmpty => Some(DIFFERS.to_owned()),
        Err(Denied::Refused(refusal)) if refusal.code == DenialCode::AgentGone => Some(refusal.message),
        Err(Denied::Refused(refusal)) => Some(format!("it no longer passes the checks: {}", refusal.message)),
    })
}

/// Withdraws the other changes of the agent and the kind that wait and are stale after this change was applied.
pub fn supersede(tx: &mut WriteTx<'_>, all: &Gateway, applied: &Row) -> Result<(), Error> {
    for row in changes::find_similar(tx, applied)? {
        if let Some(outcome) = why_stale(tx, &all.now().host_policy, &row)? {
            let ending = Ending { status: Status::Withdrawn, by: None, outcome: &outcome };
            waiting::end_active(tx, all, row.waiting_id(), &ending)?;
        }
    }
    Ok(())
}

/// Uses up the approvals of an approved change, in the transaction that applies it.
///
/// # Errors
/// Refuses as [`recheck_approvals`] does, and if an approval is already used; nothing is applied then.
pub fn use_approvals(tx: &mut WriteTx<'_>, all: &Gateway, id: ChangeId) -> Result<Approved, Denied<Error>> {
    let StillApproved { row, approvals } = recheck_approvals(tx, all, id)?;
    waiting::decide::use_up(tx, row.waiting_id(), &approvals)?;
    let giver = |approval: &ValidApproval| Giver { person: approval.given.person, token: approval.proof.parse().ok() };
    let givers = approvals.iter().map(giver).collect();
    Ok(Approved::new(row.id, row.agent, row.change, row.own.facts, givers))
}

/// A change that is approved now. It permits nothing by itself: the transaction that applies the change checks it again.
pub struct StillApproved {
    row: Row,
    approvals: Vec<ValidApproval>,
}

/// Checks that a change is still approved without using its approvals, and takes back those that are no longer valid.
///
/// # Errors
/// Refuses a change that is no longer approved, and names the difference.
pub fn recheck_approvals(tx: &mut WriteTx<'_>, all: &Gateway, id: ChangeId) -> Result<StillApproved, Denied<Error>> {
    let refuse = |code, words: String| Err(Refusal::new(code, words).into());
    let of = waiting::find(tx, id.into())?.filter(|of| of.status == Status::Approved);
    let (Some(of), Some(row)) = (of, changes::find(tx, id)?) else {
        return refuse(DenialCode::ChangeDecided, format!("{id} is not approved, or is already applied"));
    };
    if of.generation != facts::generation(tx)? {
        return refuse(
            DenialCode::ApprovalForAnother,
            format!("{id} was approved in another generation of the record"),
        );
    }
    if let Some(why) = why_stale(tx, &all.now().host_policy, &row)? {
        return refuse(DenialCode::ChangeStale, why);
    }
    let kind = all.kind(of.id);
    let shown = kind.show(tx, all, &of)?;
    let ballot = kind.ballot(tx, all, &of, &shown)?;
    let before = approvals::list(tx, of.id)?.iter().filter(|given| given.state == ApprovalState::Live).count();
    let approvals = waiting::count(tx, all, &of, &ballot)?;
    let needed = ballot.rule.approvals;
    if approvals.len() < needed as usize {
        let words = format!(
            "of {before} approvals {} are still valid, and {needed} are needed: a role was lost, an approval expired, or the policy or the \
             page changed",
            approvals.len()
        );
        return refuse(DenialCode::ApprovalLost, words);
    }
    Ok(StillApproved { row, approvals })
}
