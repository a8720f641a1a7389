//! Decisions of people about calls. An approval is used once, for exactly the page that was shown.
//!
//! Each reason names its decider: the person of the turn, or people with the roles of the policy. A request is approved once every
//! reason has its yes. The executor counts the approvals again when it uses them up. See [`crate::gateway::decide::counted`].

use super::ending;
use super::host_requests::Requests;
use super::page::{self, Shown, reasons_of};
use super::reasons::StoredReason;
use crate::channels::notifications;
use crate::gateway::approval::{self, Approver, Domain, Subject, SubjectNames, Token};
use crate::gateway::decide::counted::{self, Ballot, ValidApproval};
use crate::gateway::independence::{self, Asked, NOT_INDEPENDENT};
use crate::gateway::store;
use crate::registry::policy::{Policy, Rule};
use crate::registry::tools::catalogue::Terms;
use crate::registry::{self, Person, Role, mcp};
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{PersonId, RequestId};
use ironclaw_contract::seam::limits::REASON_BYTES_MAX;
use ironclaw_judge::Class;
use ironclaw_ledger::Entry;
use ironclaw_operator::{Bound, DenialCode, LedgerEvent};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::facts;
use ironclaw_store::tables::requests::{self, ApprovalState, Row, Status};
use std::collections::BTreeSet;

/// Milliseconds for which the approvals of a request are valid before the call runs.
const USE_MS: i64 = 600_000;

/// Returns whether the person of a turn may remove reasons of their own call.
pub fn principal_may(rule: &Rule, class: Class, person: &Person) -> bool {
    rule.admits_principal(class, person.role)
}

/// A decision about a request.
#[derive(Debug, Clone, Copy)]
enum Decision {
    Approve,
    Reject,
}

/// A request with what its decision needs.
pub(super) struct Open {
    pub(super) row: Row,
    pub(super) class: Class,
    pub(super) reasons: Vec<StoredReason>,
}

impl Open {
    pub(super) fn from_row(row: Row) -> Result<Self, ironclaw_state::Error> {
        Ok(Self { class: row.class, reasons: reasons_of(&row)?, row })
    }

    fn rule<'p>(&self, policy: &'p Policy) -> &'p Rule {
        policy.call_rule(self.class, &self.row.tool)
    }

    fn needs_principal(&self) -> bool {
        self.reasons.iter().any(|reason| !reason.by_policy)
    }

    fn needs_policy(&self) -> bool {
        self.reasons.iter().any(|reason| reason.by_policy)
    }

    /// Returns whether this person can remove a reason.
    fn admits(&self, policy: &Policy, person: &Person) -> bool {
        let rule = self.rule(policy);
        let is_principal = person.id == self.row.principal;
        let as_principal = is_principal && self.needs_principal() && principal_may(rule, self.class, person);
        let as_policy =
            self.needs_policy() && rule.admits(person.role) && (rule.requester_may_approve || !is_principal);
        as_principal || as_policy
    }

    /// Returns whether these approvals remove every reason.
    pub(super) fn is_approved(
        &self,
        tx: &ReadTx<'_>,
        policy: &Policy,
        by: &[ValidApproval],
    ) -> Result<bool, ironclaw_state::Error> {
        let rule = self.rule(policy);
        let (mut principal, mut others) = (false, 0);
        for approval in by {
            let Some(person) = registry::person_by_id(tx, approval.given.person)? else { continue };
            let is_principal = person.id == self.row.principal;
            principal |= is_principal && principal_may(rule, self.class, &person);
            others += u32::from(rule.admits(person.role) && (rule.requester_may_approve || !is_principal));
        }
        Ok((principal || !self.needs_principal()) && (others >= rule.approvals || !self.needs_policy()))
    }

    fn asked(&self) -> Asked {
        Asked { seq: self.row.asked_seq, principal: self.row.principal, agent: None }
    }

    /// Returns the subject that an approval of this request must have now.
    fn subject(&self, tx: &ReadTx<'_>, policy: &Policy, shown: &Shown) -> Result<Subject, ironclaw_state::Error> {
        let row = &self.row;
        let terms = mcp::terms(tx, row.agent, &row.tool)?;
        let SubjectNames { id, session, agent, principal } =
            SubjectNames::new(row.id, Some(row.session), Some(row.agent), row.principal);
        Ok(Subject {
            domain: Domain::Call,
            id,
            session,
            agent,
            name: self.row.tool.clone(),
            schema: terms.as_ref().map_or(Digest::of(b""), Terms::digest),
            server: terms.and_then(|terms| terms.of_server).map(|of_server| of_server.server),
            arguments: self.row.digest,
            principal,
            labels: Digest::of(&canonical::to_vec(&self.row.labels)),
            policy: self.rule(policy).call_digest(self.class, &self.row.tool),
            shown: shown.digest,
            generation: self.row.generation,
            facts: shown.facts,
        })
    }

    /// Returns whether people approved this request for other facts of its call than these.
    pub(super) fn is_approved_for_other(
        &self,
        tx: &ReadTx<'_>,
        all: &Requests,
        facts: Digest,
    ) -> Result<bool, ironclaw_state::Error> {
        let given = store::approvals(tx, self.row.id)?;
        let id = SubjectNames::new(self.row.id, None, None, self.row.principal).id;
        let is_other = |given: &store::ApprovalRow| {
            // A token that is not authentic, or of another request, is no approval of this one.
            let token = Token::from_json(&given.token);
            let found = token.and_then(|token| approval::facts_of_token(all.root(), &token, &id));
            given.state == ApprovalState::Live && found.is_ok_and(|found| found != Some(facts))
        };
        Ok(given.iter().any(is_other))
    }

    pub(super) fn count(
        &self,
        tx: &mut WriteTx<'_>,
        all: &Requests,
        policy: &Policy,
        shown: &Shown,
    ) -> Result<Vec<ValidApproval>, ironclaw_state::Error> {
        let rule = self.rule(policy);
        let ballot = Ballot {
            sort: "request",
            subject: self.subject(tx, policy, shown)?,
            asked: self.asked(),
            rule,
            own_counts: self.needs_principal() || rule.requester_may_approve,
            may_decide: &|_, person| Ok(self.admits(policy, person)),
        };
        counted::count(tx, all.root(), &ballot)
    }
}

/// Returns the request of this id.
///
/// # Errors
/// Refuses an id that no request has.
pub fn known(tx: &ReadTx<'_>, id: RequestId) -> Result<Row, Denied<Error>> {
    requests::find(tx, id)?.ok_or_else(|| unknown(id).into())
}

/// Returns the refusal of an id that no request has. It is the same for a request that a person may not see.
pub fn unknown(id: RequestId) -> Refusal {
    Refusal::new(DenialCode::RequestUnknown, format!("there is no approval request {id}"))
        .hint("`ironctl inbox` shows the requests that wait")
}

/// Returns whether this person can remove a reason of a request.
pub fn may_decide(policy: &Policy, by: &Person, row: &Row) -> Result<bool, ironclaw_state::Error> {
    Ok(Open::from_row(row.clone())?.admits(policy, by))
}

/// Returns whether this person may see a request: its own person, the people who can decide it, admins and owners.
pub fn may_read(policy: &Policy, by: &Person, row: &Row) -> Result<bool, ironclaw_state::Error> {
    Ok(by.id == row.principal || matches!(by.role, Role::Owner | Role::Admin) || may_decide(policy, by, row)?)
}

/// Returns in the host's words the reason that a request can no longer be decided, if there is one.
pub(super) fn why_stale(tx: &ReadTx<'_>, open: &Open) -> Result<Option<String>, ironclaw_state::Error> {
    let row = &open.row;
    if row.generation != facts::generation(tx)? {
        return Ok(Some("the record was put back to an earlier state".to_owned()));
    }
    let Some(agent) = registry::agent_by_id(tx, row.agent)? else {
        return Ok(Some("the agent was removed".to_owned()));
    };
    match mcp::catalogue(tx, &agent)?.missing(&row.tool) {
        None => {}
        Some(DenialCode::CallServerChanged) => {
            return Ok(Some(format!("the MCP server lists {} in another form than people confirmed", row.tool)));
        }
        Some(_) => return Ok(Some(format!("the agent no longer has the tool {}", row.tool))),
    }
    if registry::person_by_id(tx, row.principal)?.is_none() {
        return Ok(Some("the person who asked was removed".to_owned()));
    }
    Ok(None)
}

fn already_decided(row: &Row) -> Refusal {
    let outcome = row.outcome.as_deref().unwrap_or_default();
    match row.status {
        Status::Expired => Refusal::new(DenialCode::CallExpired, format!("{} has expired", row.id)),
        Status::Withdrawn => Refusal::new(DenialCode::CallWithdrawn, format!("{} is withdrawn: {outcome}", row.id)),
        status => Refusal::new(DenialCode::RequestDecided, format!("{} is {status} already", row.id)),
    }
}

/// Returns whether this person may reject a request: a rejection permits nothing.
pub fn may_reject(policy: &Policy, by: &Person, row: &Row) -> Result<bool, ironclaw_state::Error> {
    // Who may read it may reject it: its own person, the people who can decide it, admins and owners.
    may_read(policy, by, row)
}

/// Returns the pending request, and the person with their present role. A rejection needs only the right to read it.
fn open(
    tx: &mut WriteTx<'_>,
    all: &Requests,
    by: &Person,
    id: RequestId,
    decision: Decision,
) -> Result<(Open, Person), Denied<Error>> {
    let row = known(tx, id)?;
    let policy = &all.settings.now().policy;
    // Read again: the role may have been revoked while the request was in flight.
    let Some(by) = registry::person_by_id(tx, by.id)? else {
        return Err(Refusal::new(DenialCode::PersonUnknown, "the deciding person no longer exists").into());
    };
    if !may_read(policy, &by, &row)? {
        return Err(unknown(id).into());
    }
    let open = Open::from_row(row)?;
    let may = match decision {
        Decision::Approve => open.admits(policy, &by),
        Decision::Reject => may_reject(policy, &by, &open.row)?,
    };
    if !may {
        refuse_decision(tx, &open.row, by.id, DenialCode::NotYoursToDecide, "the person can remove no reason")?;
        let message = format!("{id} cannot be decided by {}: other people decide on its reasons", by.name);
        let refusal = Refusal::new(DenialCode::NotYoursToDecide, message);
        return Err(refusal.hint(format!("you may reject it: `ironctl reject {id}`")).into());
    }
    if open.row.status != Status::Pending {
        return Err(already_decided(&open.row).into());
    }
    if open.row.expires_at <= tx.wall() {
        ending::end(tx, &all.record, &open.row, Status::Expired, None, "no decision in time")?;
        return Err(Refusal::new(DenialCode::CallExpired, format!("{id} has expired")).into());
    }
    Ok((open, by))
}

fn refuse_decision(
    tx: &mut WriteTx<'_>,
    row: &Row,
    by: PersonId,
    code: DenialCode,
    why: &str,
) -> Result<(), ironclaw_state::Error> {
    let entry = Entry::new(LedgerEvent::RequestDecisionRefused).session(row.session).with("request", row.id);
    entry.with("by", by).with("code", code).reason(why).append(tx)?;
    Ok(())
}

/// Records the approval of a person for exactly the page with the digest `shown`.
///
/// # Errors
/// Refuses a person who can remove no reason, a request that is decided, over or stale, and a page that differs from the present one.
pub fn approve(
    tx: &mut WriteTx<'_>,
    all: &Requests,
    by: &Person,
    proof: &str,
    id: RequestId,
    shown: &Digest,
) -> Result<(), Denied<Error>> {
    let (open, by) = open(tx, all, by, id, Decision::Approve)?;
    let policy = &all.settings.now().policy;
    if let Some(why) = why_stale(tx, &open)? {
        ending::end(tx, &all.record, &open.row, Status::Withdrawn, None, &why)?;
        return Err(Refusal::new(DenialCode::CallWithdrawn, format!("{id} is withdrawn: {why}")).into());
    }
    let page = page::show(tx, all, &open.row)?;
    if page.digest != *shown {
        refuse_decision(tx, &open.row, by.id, DenialCode::ShownDiffers, "another page was shown")?;
        let refusal = Refusal::new(DenialCode::ShownDiffers, format!("{id} differs from the page that was shown"));
        return Err(refusal.hint("read it again: `ironctl inbox`").into());
    }
    let counted = open.count(tx, all, policy, &page)?;
    if counted.iter().any(|approval| approval.given.person == by.id) {
        return Err(Refusal::new(DenialCode::RequestDecided, format!("{} already approved {id}", by.name)).into());
    }
    let rule = open.rule(policy);
    if let Some(refusal) = not_independent(tx, &open, rule, &by, proof, &counted)? {
        return Err(refusal.into());
    }
    let now = tx.wall();
    let approver = Approver::new(by.id, proof);
    // The request itself expires before an approval that waits for others does.
    let expires = open.row.expires_at.max(now) + USE_MS;
    let subject = open.subject(tx, policy, &page)?;
    let token = approval::mint(all.root(), subject, approver, now, expires).map_err(Error::Key)?;
    let given = store::add_approval(tx, id, by.id, &token)?;
    let codes: Vec<&str> = open.reasons.iter().map(|reason| reason.code.name()).collect();
    Entry::new(LedgerEvent::RequestApprovedBy)
        .session(open.row.session)
        .with("request", id)
        .with("approval", given)
        .with("by", by.id)
        .with("shown", page.digest)
        .with("reasons", codes.join(" "))
        .append(tx)?;
    let valid = open.count(tx, all, policy, &page)?;
    if open.is_approved(tx, policy, &valid)? {
        requests::mark_approved(tx, id, by.id, now + USE_MS)?;
        notifications::withdraw(tx, id)?;
        let entry = Entry::new(LedgerEvent::RequestApproved).session(open.row.session).with("request", id);
        entry.with("arguments_digest", open.row.digest).with("shown", page.digest).append(tx)?;
    }
    Ok(())
}

/// Returns the refusal of an approval that is not independent of another approver, or of a requester who must not approve.
fn not_independent(
    tx: &mut WriteTx<'_>,
    open: &Open,
    rule: &Rule,
    by: &Person,
    proof: &str,
    counted: &[ValidApproval],
) -> Result<Option<Refusal>, Denied<Error>> {
    let backers = independence::backers(tx, open.asked(), rule, by.id, proof)?;
    let others = match backers.is_direct() {
        true => BTreeSet::new(),
        false => counted.iter().flat_map(ValidApproval::people).collect(),
    };
    let Some(dependence) = independence::dependence(&backers, &others, open.asked(), rule) else { return Ok(None) };
    if by.id == open.row.principal && open.needs_principal() {
        return Ok(None);
    }
    let why = dependence.words(tx)?;
    refuse_decision(tx, &open.row, by.id, NOT_INDEPENDENT, &why)?;
    let message = format!("the approval of {} does not count for {}: {why}", by.name, open.row.id);
    Ok(Some(Refusal::new(NOT_INDEPENDENT, message)))
}

/// Records the rejection by a person.
///
/// # Errors
/// Refuses a person who may not see it, and a request that is decided or over.
pub fn reject(
    tx: &mut WriteTx<'_>,
    all: &Requests,
    by: &Person,
    id: RequestId,
    reason: &str,
) -> Result<(), Denied<Error>> {
    if reason.len() > REASON_BYTES_MAX {
        let bound = Bound::new("bytes of a reason", REASON_BYTES_MAX, reason.len(), "write a shorter reason");
        return Err(Refusal::over(DenialCode::ReasonTooLong, bound).into());
    }
    let (open, by) = open(tx, all, by, id, Decision::Reject)?;
    ending::end(tx, &all.record, &open.row, Status::Rejected, Some(by.id), reason)?;
    Ok(())
}
