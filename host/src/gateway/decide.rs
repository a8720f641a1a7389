//! Decisions of people. An approval is used once, for exactly the page that was shown, and only while its subject is unchanged.
//!
//! No flag counts as an approval: the transaction that applies a change counts the approvals in the record again. See `counted` for the
//! count, [`crate::gateway::approval`] for the subject of an approval, [`crate::gateway::apply`] for its effect.

pub mod counted;
pub mod proof;
mod undecided;

use super::checks;
use super::independence::{self, NOT_INDEPENDENT};
use super::kinds::is_of_agent;
use super::review_page::{self, PageRequester, View};
use super::store::{self, Row, Status};
use super::{Checked, Requester};
use crate::gateway::approval::{self, Approver, Domain, Subject, SubjectNames};
use crate::registry::live_settings::HostPolicy;
use crate::registry::policy::{Policy, Rule};
use crate::registry::{self, Giver, Person, Role, roles};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::requests::ApprovalState;
use ironclaw_store::times::HOUR_MS;
pub use undecided::Undecided;

use counted::{Ballot, ValidApproval};
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{AgentId, ChangeId, PersonId};
use ironclaw_contract::seam::change::ChangeKind;
use ironclaw_contract::seam::limits::REASON_BYTES_MAX;
use ironclaw_ledger::Entry;
use ironclaw_operator::{Bound, DenialCode, LedgerEvent};
use ironclaw_state::keys::ApprovalRoot;
use ironclaw_state::{ReadTx, WriteTx};
use proof::{Approved, Direct};
use std::collections::BTreeSet;

/// The outcome of an expired change.
pub const OVERDUE: &str = "no decision in time";

/// The context of a decision: policy, settings and keys.
pub struct DecisionContext<'a> {
    /// The rules for decisions.
    pub policy: &'a Policy,
    /// The settings of the operator.
    pub host_policy: &'a HostPolicy,
    /// The root of the keys of approvals.
    pub root: &'a ApprovalRoot,
}

/// The result of an approval by one person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vote {
    /// More approvals are needed; has the present number.
    Recorded(u32),
    /// The change has enough approvals, and is applied next.
    Approved,
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
    Ok(store::rule(row, policy).admits(deciding_role(tx, by, row.kind, row.agent)?))
}

/// Returns whether this person may read the whole page of this change. The person who asked for it sees its status at least.
pub fn may_read(tx: &ReadTx<'_>, policy: &Policy, by: &Person, row: &Row) -> Result<bool, ironclaw_state::Error> {
    Ok(by.role.covers(Role::Admin) || may_decide(tx, policy, by, row)?)
}

/// Returns whether this person may withdraw this change: it waits, and they asked for it, in person or through an agent. A withdrawal
/// permits nothing.
pub fn may_withdraw(by: &Person, row: &Row) -> bool {
    row.principal() == by.id && row.status.is_open()
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

/// Returns the review page of a change, and its digest.
pub fn show(tx: &ReadTx<'_>, policy: &Policy, row: &Row) -> Result<(String, Digest), ironclaw_state::Error> {
    let name = |person: PersonId| -> Result<String, ironclaw_state::Error> {
        let found = registry::person_by_id(tx, person)?;
        Ok(found.map_or_else(|| "(removed)".to_owned(), |person| person.name))
    };
    let agent = store::agent_of(tx, row)?;
    let agent_name = agent.as_ref().map_or("(removed)", |agent| agent.name.as_str());
    let principal = name(row.principal())?;
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
    let concerns = store::concerned(row).map(|id| (id, agent_name));
    let view = View {
        id: row.id,
        change: &row.change,
        agent: concerns,
        requester,
        labels: row.labels,
        reason: &row.reason,
        before: &row.before,
        facts: &row.facts,
        rule: &store::rule(row, policy),
        created_at: ironclaw_ledger::rfc3339(row.created_at),
        expires_at: ironclaw_ledger::rfc3339(row.expires_at),
        generation: row.generation,
    };
    let text = review_page::render(&view);
    let digest = Digest::of(text.as_bytes());
    Ok((text, digest))
}

/// Returns the subject that an approval of this change must have now.
fn subject(row: &Row, rule: &Rule, shown: Digest) -> Subject {
    let arguments =
        canonical::to_vec(&serde_json::json!([canonical::RECIPE, row.change.payload(), row.before, row.facts]));
    let SubjectNames { id, session, agent, principal } =
        SubjectNames::new(row.id, row.session(), row.agent, row.principal());
    Subject {
        domain: Domain::Change,
        id,
        session,
        agent,
        name: row.kind.name().to_owned(),
        schema: Digest::of(ironclaw_contract::seam::fingerprint().as_bytes()),
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
fn why_stale(tx: &ReadTx<'_>, host_policy: &HostPolicy, row: &Row) -> Result<Option<String>, ironclaw_state::Error> {
    const DIFFERS: &str = "the present setting, or the meaning of a name in it, differs from the time of the request";
    Ok(match checks::check(tx, host_policy, store::proposed(row)) {
        Ok(Checked { proposed, standing }) => {
            let same = proposed.change == row.change && standing.before == row.before && standing.facts == row.facts;
            if same { None } else { Some(DIFFERS.to_owned()) }
        }
        Err(Denied::Failed(error)) => return Err(error),
        Err(Denied::Refused(refusal)) if refusal.code == DenialCode::ChangeEmpty => Some(DIFFERS.to_owned()),
        Err(Denied::Refused(refusal)) if refusal.code == DenialCode::AgentGone => Some(refusal.message),
        Err(Denied::Refused(refusal)) => Some(format!("it no longer passes the checks: {}", refusal.message)),
    })
}

fn already_decided(row: &Row) -> Refusal {
    let id = row.id;
    match row.status {
        Status::Expired => Refusal::new(DenialCode::ChangeExpired, format!("{id} has expired: {OVERDUE}"))
            .hint("request it again if it is still wanted"),
        Status::Withdrawn => {
            let why = row.outcome.as_deref().unwrap_or("it can no longer be decided");
            Refusal::new(DenialCode::ChangeStale, format!("{id} is withdrawn: {why}"))
                .hint("request it again if it is still wanted")
        }
        Status::Pending | Status::Unknown | Status::Approved | Status::Applied | Status::Rejected | Status::Failed => {
            Refusal::new(DenialCode::ChangeDecided, format!("{id} is {} already", row.status.name()))
        }
    }
}

/// Returns the open change that this person may decide on, and the person with their present role.
fn open(
    tx: &mut WriteTx<'_>,
    context: &DecisionContext<'_>,
    by: &Person,
    id: ChangeId,
) -> Result<(Row, Person), Undecided> {
    let row = store::known(tx, id)?;
    // Read again: the role may have been revoked while the request was in flight.
    let Some(by) = registry::person_by_id(tx, by.id)? else {
        return Err(Refusal::new(DenialCode::PersonUnknown, "the deciding person no longer exists").into());
    };
    if !may_decide(tx, context.policy, &by, &row)? {
        Entry::new(LedgerEvent::ChangeDecisionRefused)
            .with("change", id)
            .with("by", by.id)
            .reason("the person has no role that may decide")
            .append(tx)?;
        if by.id != row.principal() && !may_read(tx, context.policy, &by, &row)? {
            return Err(store::unknown(id).into());
        }
        let rule = store::rule(&row, context.policy);
        let roles: Vec<&str> = rule.roles.iter().map(|role| role.name()).collect();
        let (name, kind, roles) = (&by.name, row.kind, roles.join(" or "));
        let message = format!("{id} cannot be decided by {name}: a change of kind {kind} needs role {roles}");
        let refusal = Refusal::new(DenialCode::NotYoursToDecide, message);
        let refusal = match may_withdraw(&by, &row) {
            true => refusal.hint(format!("you may withdraw it: `ironctl reject {id}`")),
            false => refusal,
        };
        return Err(refusal.into());
    }
    if !row.status.is_open() {
        return Err(already_decided(&row).into());
    }
    if row.status == Status::Pending && row.expires_at <= tx.wall() {
        let row = store::end(tx, &row, Status::Expired, None, OVERDUE)?;
        return Err(Undecided::Ended(already_decided(&row), Box::new(row)));
    }
    Ok((row, by))
}

/// Counts the approvals of a change that are valid now.
fn count(
    tx: &mut WriteTx<'_>,
    context: &DecisionContext<'_>,
    row: &Row,
    shown: Digest,
) -> Result<Vec<ValidApproval>, ironclaw_state::Error> {
    let rule = &store::rule(row, context.policy);
    let ballot = Ballot {
        sort: "change",
        subject: subject(row, rule, shown),
        asked: row.into(),
        rule,
        own_counts: rule.requester_may_approve,
        may_decide: &|tx, person| may_decide(tx, context.policy, person, row),
    };
    counted::count(tx, context.root, &ballot)
}

/// Records the approval of a person for exactly the page with the digest `shown`.
///
/// # Errors
/// Refuses a person who may not decide, a change that is decided, over or stale, and a page that differs from the present one. To a
/// person who may not see the change, it is unknown.
pub fn approve(
    tx: &mut WriteTx<'_>,
    context: &DecisionContext<'_>,
    by: &Person,
    proof: &str,
    id: ChangeId,
    shown: &Digest,
) -> Result<Vote, Undecided> {
    let (row, by) = open(tx, context, by, id)?;
    let rule = &store::rule(&row, context.policy);
    if !rule.requester_may_approve && by.id == row.principal() {
        let message = format!("{id} was requested by {} or on their behalf: another person has to approve it", by.name);
        return Err(Refusal::new(DenialCode::NotYoursToDecide, message).into());
    }
    if let Some(outcome) = why_stale(tx, context.host_policy, &row)? {
        let row = store::end(tx, &row, Status::Withdrawn, None, &outcome)?;
        return Err(Undecided::Ended(already_decided(&row), Box::new(row)));
    }
    let (_, digest) = show(tx, context.policy, &row)?;
    if digest != *shown {
        let refusal = Refusal::new(DenialCode::ShownDiffers, format!("{id} differs from the page that was shown"));
        return Err(refusal.hint(format!("read it again: `ironctl change show {id}`")).into());
    }
    // This takes back approvals that are no longer valid, so that their people may approve again.
    let counted = count(tx, context, &row, digest)?;
    if counted.iter().any(|approval| approval.given.person == by.id) {
        let message = format!("{} already approved {id}: {} different people have to approve", by.name, rule.approvals);
        return Err(Refusal::new(DenialCode::ChangeDecided, message).into());
    }
    if let Some(refusal) = not_independent(tx, &row, rule, &by, proof, &counted)? {
        return Err(refusal.into());
    }
    let now = tx.wall();
    let expires = now + i64::from(rule.expires_hours) * HOUR_MS;
    let approver = Approver::new(by.id, proof);
    let token = approval::mint(context.root, subject(&row, rule, digest), approver, now, expires)?;
    let given = store::add_approval(tx, id, by.id, &token)?;
    Entry::new(LedgerEvent::ChangeApprovedBy)
        .with("change", id)
        .with("approval", given)
        .with("by", by.id)
        .with("shown", digest)
        .append(tx)?;
    let valid = count(tx, context, &row, digest)?;
    let so_far = u32::try_from(valid.len()).unwrap_or(u32::MAX);
    if so_far < rule.approvals {
        return Ok(Vote::Recorded(so_far));
    }
    store::set_approved(tx, &row, by.id, &digest)?;
    Ok(Vote::Approved)
}

/// Returns the refusal of an approval that is not independent: since the request, the person got their role or their token from another
/// approver, from a requester who must not approve, or from an unknown giver.
fn not_independent(
    tx: &mut WriteTx<'_>,
    row: &Row,
    rule: &Rule,
    by: &Person,
    proof: &str,
    counted: &[ValidApproval],
) -> Result<Option<Refusal>, ironclaw_state::Error> {
    let backers = independence::backers(tx, row.into(), rule, by.id, proof)?;
    // An approval with one backer counts, and the next count takes back the approvals that depend on this person.
    let others = match backers.is_direct() {
        true => BTreeSet::new(),
        false => counted.iter().flat_map(|approval| approval.people()).collect(),
    };
    let Some(dependence) = independence::dependence(&backers, &others, row.into(), rule) else { return Ok(None) };
    let why = dependence.words(tx)?;
    Entry::new(LedgerEvent::ChangeDecisionRefused)
        .with("change", row.id)
        .with("by", by.id)
        .with("code", NOT_INDEPENDENT)
        .reason(&why)
        .append(tx)?;
    let message = format!("the approval of {} does not count for {}: {why}", by.name, row.id);
    let hint = "let another person approve it, or reject it and request it again: an approval counts if its role and its token are \
                older than the request";
    Ok(Some(Refusal::new(NOT_INDEPENDENT, message).hint(hint)))
}

/// Records the rejection by a person, and returns the ended change. The caller notifies its requester.
///
/// # Errors
/// Refuses a person who may not decide, unless it is their own request, and a change that is decided or over. To a person who may not
/// see the change, it is unknown.
pub fn reject(
    tx: &mut WriteTx<'_>,
    context: &DecisionContext<'_>,
    by: &Person,
    id: ChangeId,
    reason: &str,
) -> Result<Row, Undecided> {
    if reason.len() > REASON_BYTES_MAX {
        let bound = Bound::new("bytes of a reason", REASON_BYTES_MAX, reason.len(), "write a shorter reason");
        return Err(Refusal::over(DenialCode::ReasonTooLong, bound).into());
    }
    let own = store::find(tx, id)?.filter(|row| may_withdraw(by, row));
    let (row, by, status) = match own {
        Some(row) if !may_decide(tx, context.policy, by, &row)? => (row, by.clone(), Status::Withdrawn),
        _ => {
            let (row, by) = open(tx, context, by, id)?;
            (row, by, Status::Rejected)
        }
    };
    Ok(store::end(tx, &row, status, Some(by.id), reason)?)
}

/// Withdraws the other open changes of the agent and the kind that are stale after this change was applied. The caller notifies their
/// requesters.
pub fn supersede(tx: &mut WriteTx<'_>, context: &DecisionContext<'_>, applied: &Row) -> Result<Vec<Row>, Error> {
    let mut ended = Vec::new();
    for row in store::find_similar(tx, applied)? {
        if let Some(outcome) = why_stale(tx, context.host_policy, &row)? {
            ended.push(store::end(tx, &row, Status::Withdrawn, None, &outcome)?);
        }
    }
    Ok(ended)
}

/// Takes back the approvals of waiting changes that are no longer valid, for example after a change of the policy.
pub fn recount(tx: &mut WriteTx<'_>, context: &DecisionContext<'_>) -> Result<(), Error> {
    for row in store::partially_approved(tx)? {
        let (_, shown) = show(tx, context.policy, &row)?;
        count(tx, context, &row, shown)?;
    }
    Ok(())
}

/// Uses up the approvals of an approved change, in the transaction that applies it.
///
/// # Errors
/// Refuses as [`recheck_approvals`] does, and if an approval is already used; nothing is applied then.
pub fn use_approvals(
    tx: &mut WriteTx<'_>,
    context: &DecisionContext<'_>,
    row: &Row,
) -> Result<Approved, Denied<Error>> {
    let StillApproved { row, approvals } = recheck_approvals(tx, context, row)?;
    for approval in &approvals {
        if !store::use_approval(tx, approval.given.id)? {
            let words = format!("an approval of {} is already used", row.id);
            return Err(Refusal::new(DenialCode::ApprovalUsed, words).into());
        }
    }
    let giver = |approval: &ValidApproval| Giver { person: approval.given.person, token: approval.proof.parse().ok() };
    let givers = approvals.iter().map(giver).collect();
    Ok(Approved::new(row.id, row.agent, row.change, row.facts, givers))
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
pub fn recheck_approvals(
    tx: &mut WriteTx<'_>,
    context: &DecisionContext<'_>,
    row: &Row,
) -> Result<StillApproved, Denied<Error>> {
    let refuse = |code, words: String| Err(Refusal::new(code, words).into());
    let Some(row) = store::find(tx, row.id)?.filter(|row| row.status == Status::Approved) else {
        return refuse(DenialCode::ChangeDecided, format!("{} is not approved, or is already applied", row.id));
    };
    if row.generation != store::generation(tx)? {
        return refuse(
            DenialCode::ApprovalForAnother,
            format!("{} was approved in another generation of the record", row.id),
        );
    }
    if let Some(why) = why_stale(tx, context.host_policy, &row)? {
        return refuse(DenialCode::ChangeStale, why);
    }
    let (_, shown) = show(tx, context.policy, &row)?;
    let before = store::approvals(tx, row.id)?.iter().filter(|given| given.state == ApprovalState::Live).count();
    let approvals = count(tx, context, &row, shown)?;
    let needed = store::rule(&row, context.policy).approvals;
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
