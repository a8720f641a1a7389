//! Records the decisions of people, and uses an approval once, for exactly the page that was shown, while nothing has changed.
//!
//! Never takes a flag for an approval: the transaction that acts counts the approvals in the record again. See `counted` for the
//! count, [`crate::approval`] for the subject of an approval, [`crate::gateway::apply`] for its effect.

mod counted;
pub mod proof;

use super::checks;
use super::kinds::is_of_agent;
use super::policy::{Policy, Rule};
use super::review_page::{self, Asker, View};
use super::store::{self, Row, Status};
use super::voices::{self, NOT_INDEPENDENT};
use super::{Checked, Grounds, Requester};
use crate::approval::{self, Approver, Domain, Thing};
use crate::refusal::{Denied, Refusal};
use crate::registry::{self, Giver, Person, Role, roles};
use counted::{Voice, count};
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{AgentId, ChangeId, PersonId};
use ironclaw_contract::operator::{DenialCode, LedgerEvent};
use ironclaw_contract::seam::change::ChangeKind;
use ironclaw_contract::seam::limits::REASON_BYTES_MAX;
use ironclaw_ledger::Entry;
use ironclaw_state::keys::{self, ApprovalRoot};
use ironclaw_state::{ReadTx, WriteTx};
use proof::{Approved, Direct};
use std::collections::BTreeSet;

/// Why a change is over about which nobody decided.
pub const OVERDUE: &str = "nobody decided in time";

/// What is decided beside.
pub struct DecisionContext<'a> {
    /// Who may decide.
    pub policy: &'a Policy,
    /// What the operator set.
    pub grounds: &'a Grounds,
    /// Where the keys of approvals come from.
    pub root: &'a ApprovalRoot,
}

/// Why nothing could be decided.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The record.
    #[error(transparent)]
    State(#[from] ironclaw_state::Error),
    /// A key, or chance.
    #[error(transparent)]
    Key(#[from] keys::Error),
}

impl From<Error> for Denied<Error> {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Denied> for Denied<Error> {
    fn from(denied: Denied) -> Self {
        denied.widen()
    }
}

/// Why a person did not decide.
#[derive(Debug)]
pub enum Undecided {
    /// Refused, and the change is as it was.
    Refused(Refusal),
    /// Refused, and the change ended by that: its requester has to be told.
    Ended(Refusal, Box<Row>),
    /// Broken.
    Failed(Error),
}

impl Undecided {
    /// Tells the requester with `tell` if the change ended.
    pub fn told<E: From<Error>>(self, tell: impl FnOnce(&Row) -> Result<(), E>) -> Denied<E> {
        match self {
            Self::Refused(refusal) => Denied::Refused(refusal),
            Self::Ended(refusal, row) => Denied::Refused(refusal).noted(|_| tell(&row)),
            Self::Failed(error) => Denied::Failed(error.into()),
        }
    }
}

impl<E: Into<Error>> From<Denied<E>> for Undecided {
    fn from(denied: Denied<E>) -> Self {
        match denied {
            Denied::Refused(refusal) => Self::Refused(refusal),
            Denied::Failed(error) => Self::Failed(error.into()),
        }
    }
}

impl From<Refusal> for Undecided {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl From<Error> for Undecided {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<ironclaw_state::Error> for Undecided {
    fn from(error: ironclaw_state::Error) -> Self {
        Self::Failed(error.into())
    }
}

impl From<keys::Error> for Undecided {
    fn from(error: keys::Error) -> Self {
        Self::Failed(error.into())
    }
}

/// What a yes came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// More people have to say yes; so many have by now.
    Counted(u32),
    /// Enough did: it is about to be applied.
    Approved,
}

/// What a person may have who decides about a kind of change of an agent: their role on this host, or their role of that agent
/// where it is enough. An identity that is linked to nobody has none.
pub fn standing(
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

/// Whether this person decides about this change.
pub fn may_decide(tx: &ReadTx<'_>, policy: &Policy, by: &Person, row: &Row) -> Result<bool, ironclaw_state::Error> {
    Ok(row.rule(policy).admits(standing(tx, by, row.kind, row.agent)?))
}

/// Checks that a person may do by a command of their own what a change of this kind does, because one yes of theirs would be enough.
///
/// # Errors
/// Refuses what takes more than that.
pub fn direct(rule: &Rule, kind: ChangeKind, person: &Person) -> Result<Direct, Refusal> {
    let role = person.role;
    if rule.is_one_alone() && rule.admits(role) {
        return Ok(Direct::new(person.id));
    }
    let message = format!("the policy of this host asks for more than a command of one {role} here");
    let refusal = Refusal::new(DenialCode::PolicyAsksForMore, message);
    Err(refusal.hint(format!("propose it, and let others decide: `ironctl change submit --kind {kind}`")))
}

/// What a person is shown of a change, and its digest.
pub fn show(tx: &ReadTx<'_>, policy: &Policy, row: &Row) -> Result<(String, Digest), ironclaw_state::Error> {
    let name = |person: PersonId| -> Result<String, ironclaw_state::Error> {
        let found = registry::person_by_id(tx, person)?;
        Ok(found.map_or_else(|| "(removed)".to_owned(), |person| person.name))
    };
    let agent = store::agent_of(tx, row)?;
    let agent_name = agent.as_ref().map_or("(removed)", |agent| agent.name.as_str());
    let principal = name(row.principal())?;
    let requester = match &row.requester {
        Requester::Person(person) => Asker::Person(*person, &principal),
        Requester::Agent { principal: person, origin } => Asker::Agent {
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
    let concerns = row.concerned().map(|id| (id, agent_name));
    let view = View {
        id: row.id,
        change: &row.change,
        agent: concerns,
        requester,
        labels: &row.labels,
        reason: &row.reason,
        before: &row.before,
        facts: &row.facts,
        rule: &row.rule(policy),
        created_at: ironclaw_ledger::rfc3339(row.created_at),
        expires_at: ironclaw_ledger::rfc3339(row.expires_at),
        generation: row.generation,
    };
    let text = review_page::render(&view);
    let digest = Digest::of(text.as_bytes());
    Ok((text, digest))
}

/// What an approval of this change has to be good for, as everything stands now.
fn thing(row: &Row, rule: &Rule, shown: Digest) -> Thing {
    let arguments =
        canonical::to_vec(&serde_json::json!([canonical::RECIPE, row.change.payload(), row.before, row.facts]));
    Thing {
        domain: Domain::Change,
        id: row.id.to_string(),
        session: row.session().map(|session| session.to_string()),
        agent: row.agent.map(|agent| agent.to_string()),
        name: row.kind.name().to_owned(),
        schema: Digest::of(ironclaw_contract::seam::fingerprint().as_bytes()),
        server: None,
        arguments: Digest::of(&arguments),
        principal: row.principal().to_string(),
        labels: Digest::of(&canonical::to_vec(&row.labels)),
        policy: rule.digest(row.kind),
        shown,
        generation: row.generation,
    }
}

/// Returns in the host's words why a change is not what it was when it was asked for, if so: it does not pass every check, is not
/// completed to the same, or what it would alter or what its names mean is not as it was.
fn why_stale(tx: &ReadTx<'_>, grounds: &Grounds, row: &Row) -> Result<Option<String>, ironclaw_state::Error> {
    const OTHERWISE: &str = "what it would alter is not as it was when this was asked for";
    Ok(match checks::check(tx, grounds, row.proposed()) {
        Ok(Checked { proposed, standing }) => {
            let same = proposed.change == row.change && standing.before == row.before && standing.facts == row.facts;
            if same { None } else { Some(OTHERWISE.to_owned()) }
        }
        Err(Denied::Failed(error)) => return Err(error),
        Err(Denied::Refused(refusal)) if refusal.code == DenialCode::ChangeEmpty => Some(OTHERWISE.to_owned()),
        Err(Denied::Refused(refusal)) if refusal.code == DenialCode::AgentGone => Some(refusal.message),
        Err(Denied::Refused(refusal)) => Some(format!("it does not pass the checks any more: {}", refusal.message)),
    })
}

fn decided(row: &Row) -> Refusal {
    let id = row.id;
    match row.status {
        Status::Expired => Refusal::new(DenialCode::ChangeExpired, format!("{id} has expired: nobody decided in time"))
            .hint("whoever wants it asks again"),
        Status::Withdrawn => {
            let why = row.outcome.as_deref().unwrap_or("it cannot be decided any more");
            Refusal::new(DenialCode::ChangeStale, format!("{id} is withdrawn: {why}"))
                .hint("whoever wants it asks again")
        }
        Status::Pending | Status::Unknown | Status::Approved | Status::Applied | Status::Rejected | Status::Failed => {
            Refusal::new(DenialCode::ChangeDecided, format!("{id} is {} already", row.status.name()))
        }
    }
}

/// Returns the row that this person may decide about, and the person as they are now.
fn open(
    tx: &mut WriteTx<'_>,
    context: &DecisionContext<'_>,
    by: &Person,
    id: ChangeId,
) -> Result<(Row, Person), Undecided> {
    let row = store::known(tx, id)?;
    // As they stand now: a role may have been taken while the request was on its way.
    let Some(by) = registry::person_by_id(tx, by.id)? else {
        return Err(Refusal::new(DenialCode::PersonUnknown, "the deciding person no longer exists").into());
    };
    if !may_decide(tx, context.policy, &by, &row)? {
        Entry::new(LedgerEvent::ChangeDecisionRefused)
            .with("change", id)
            .with("by", by.id)
            .reason("whoever decided has no role that may")
            .append(tx)?;
        let rule = row.rule(context.policy);
        let roles: Vec<&str> = rule.roles.iter().map(|role| role.name()).collect();
        let message =
            format!("{id} is not {}'s to decide: a change of kind {} takes {}", by.name, row.kind, roles.join(" or "));
        return Err(Refusal::new(DenialCode::NotYoursToDecide, message).into());
    }
    if !row.status.is_open() {
        return Err(decided(&row).into());
    }
    if row.status == Status::Pending && row.expires_at <= tx.wall() {
        let row = store::end(tx, &row, Status::Expired, None, OVERDUE)?;
        return Err(Undecided::Ended(decided(&row), Box::new(row)));
    }
    Ok((row, by))
}

/// Records that a person says yes to exactly what has the digest `shown`.
///
/// # Errors
/// Refuses a person who may not decide, a change that is decided, over or not as it was, and another text than the present one.
pub fn approve(
    tx: &mut WriteTx<'_>,
    context: &DecisionContext<'_>,
    by: &Person,
    proof: &str,
    id: ChangeId,
    shown: &Digest,
) -> Result<Said, Undecided> {
    let (row, by) = open(tx, context, by, id)?;
    let rule = &row.rule(context.policy);
    if !rule.requester_may_approve && by.id == row.principal() {
        let message = format!("{id} was asked for by {} or on their behalf: somebody else has to approve it", by.name);
        return Err(Refusal::new(DenialCode::NotYoursToDecide, message).into());
    }
    if let Some(outcome) = why_stale(tx, context.grounds, &row)? {
        let row = store::end(tx, &row, Status::Withdrawn, None, &outcome)?;
        return Err(Undecided::Ended(decided(&row), Box::new(row)));
    }
    let (_, digest) = show(tx, context.policy, &row)?;
    if digest != *shown {
        let refusal = Refusal::new(DenialCode::ShownDiffers, format!("{id} is not what was shown any more"));
        return Err(refusal.hint(format!("look at it again: `ironctl change show {id}`")).into());
    }
    // One that is not good any more is no yes: whoever gave it may give another.
    let counted = count(tx, context, &row, digest)?;
    if counted.iter().any(|voice| voice.given.person == by.id) {
        let message = format!("{} approved {id} already: {} different people have to", by.name, rule.approvals);
        return Err(Refusal::new(DenialCode::ChangeDecided, message).into());
    }
    if let Some(refusal) = not_independent(tx, &row, rule, &by, proof, &counted)? {
        return Err(refusal.into());
    }
    let now = tx.wall();
    let expires = now + i64::from(rule.expires_hours) * 3_600_000;
    let approver = Approver { person: by.id.to_string(), proof: proof.to_owned() };
    let token = approval::mint(context.root, thing(&row, rule, digest), approver, now, expires)?;
    let given = store::give(tx, id, by.id, &token)?;
    Entry::new(LedgerEvent::ChangeApprovedBy)
        .with("change", id)
        .with("approval", given)
        .with("by", by.id)
        .with("shown", digest)
        .append(tx)?;
    let good = count(tx, context, &row, digest)?;
    let so_far = u32::try_from(good.len()).unwrap_or(u32::MAX);
    if so_far < rule.approvals {
        return Ok(Said::Counted(so_far));
    }
    store::set_approved(tx, &row, by.id, &digest)?;
    Ok(Said::Approved)
}

/// Refuses the yes of whoever has their role or their token, since the change was asked for, from a person who approves it too.
fn not_independent(
    tx: &mut WriteTx<'_>,
    row: &Row,
    rule: &Rule,
    by: &Person,
    proof: &str,
    counted: &[Voice],
) -> Result<Option<Refusal>, ironclaw_state::Error> {
    let behind = voices::behind(tx, row, rule, by.id, proof)?;
    // Where the person alone is behind it, it counts, and the voices that come from them do not any more.
    let others = match behind.is_direct() {
        true => BTreeSet::new(),
        false => counted.iter().flat_map(|voice| voice.people()).collect(),
    };
    let Some(dependence) = voices::depends(&behind, &others, row, rule) else { return Ok(None) };
    let why = dependence.words(tx)?;
    Entry::new(LedgerEvent::ChangeDecisionRefused)
        .with("change", row.id)
        .with("by", by.id)
        .with("code", NOT_INDEPENDENT)
        .reason(&why)
        .append(tx)?;
    let message = format!("the yes of {} does not count for {}: {why}", by.name, row.id);
    let hint = "another person approves it, or it is rejected and asked for again: a yes counts with a role and a token that are \
                older than the request";
    Ok(Some(Refusal::new(NOT_INDEPENDENT, message).hint(hint)))
}

/// Records that a person says no, and returns the change, which ended by that: its requester has to be told.
///
/// # Errors
/// Refuses a person who may not decide, unless it is their own request, and a change that is decided or over.
pub fn reject(
    tx: &mut WriteTx<'_>,
    context: &DecisionContext<'_>,
    by: &Person,
    id: ChangeId,
    reason: &str,
) -> Result<Row, Undecided> {
    if reason.len() > REASON_BYTES_MAX {
        let message = format!("a reason has at most {REASON_BYTES_MAX} bytes");
        return Err(Refusal::new(DenialCode::ReasonTooLong, message).into());
    }
    let own = store::find(tx, id)?.filter(|row| row.requester == Requester::Person(by.id) && row.status.is_open());
    let (row, by, status) = match own {
        Some(row) if !may_decide(tx, context.policy, by, &row)? => (row, by.clone(), Status::Withdrawn),
        _ => {
            let (row, by) = open(tx, context, by, id)?;
            (row, by, Status::Rejected)
        }
    };
    Ok(store::end(tx, &row, status, Some(by.id), reason)?)
}

/// Withdraws what cannot be decided any more once a change of an agent was applied: the other open changes of its kind, as far as what
/// they would alter is not as it was. Whoever asked is told by the caller.
pub fn supersede(tx: &mut WriteTx<'_>, context: &DecisionContext<'_>, applied: &Row) -> Result<Vec<Row>, Error> {
    let mut ended = Vec::new();
    for row in store::find_similar(tx, applied)? {
        if let Some(outcome) = why_stale(tx, context.grounds, &row)? {
            ended.push(store::end(tx, &row, Status::Withdrawn, None, &outcome)?);
        }
    }
    Ok(ended)
}

/// Takes back the approvals of changes that wait which are not good any more, as where the policy is another one now.
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
/// Refuses as [`still_approved`] does, and where an approval was used already; nothing is applied then.
pub fn approved(tx: &mut WriteTx<'_>, context: &DecisionContext<'_>, row: &Row) -> Result<Approved, Denied<Error>> {
    let Still { row, voices } = still_approved(tx, context, row)?;
    for voice in &voices {
        if !store::use_approval(tx, voice.given.id)? {
            let words = format!("an approval of {} was used already", row.id);
            return Err(Refusal::new(DenialCode::ApprovalUsed, words).into());
        }
    }
    let givers =
        voices.iter().map(|voice| Giver { person: voice.given.person, token: voice.proof.parse().ok() }).collect();
    Ok(Approved::new(row.id, row.agent, row.change, row.facts, givers))
}

/// A change that is approved as everything stands now. Permits nothing that the transaction which applies it does not check again.
pub struct Still {
    row: Row,
    voices: Vec<Voice>,
}

/// Checks that a change is still approved, and uses up nothing; takes back the approvals that are not good any more.
///
/// # Errors
/// Refuses what is not as it was when people approved, by name.
pub fn still_approved(tx: &mut WriteTx<'_>, context: &DecisionContext<'_>, row: &Row) -> Result<Still, Denied<Error>> {
    let refuse = |code, words: String| Err(Refusal::new(code, words).into());
    let Some(row) = store::find(tx, row.id)?.filter(|row| row.status == Status::Approved) else {
        return refuse(DenialCode::ChangeDecided, format!("{} is not approved, or applied already", row.id));
    };
    if row.generation != store::generation(tx)? {
        return refuse(
            DenialCode::ApprovalForAnother,
            format!("{} was approved in another generation of the record", row.id),
        );
    }
    if let Some(why) = why_stale(tx, context.grounds, &row)? {
        return refuse(DenialCode::ChangeStale, why);
    }
    let (_, shown) = show(tx, context.policy, &row)?;
    let before = store::approvals(tx, row.id)?.iter().filter(|given| given.state == "live").count();
    let voices = count(tx, context, &row, shown)?;
    let needed = row.rule(context.policy).approvals;
    if voices.len() < needed as usize {
        let words = format!(
            "of {before} approvals {} are still good, and {needed} are needed: a role was lost, or the policy, the text or the time is another",
            voices.len()
        );
        return refuse(DenialCode::ApprovalLost, words);
    }
    Ok(Still { row, voices })
}
