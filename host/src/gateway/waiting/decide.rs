//! Decisions of people. An approval is used once, for exactly the page that was shown, and only while its subject is unchanged.
//!
//! No flag counts as an approval: the transaction that makes the effect counts the approvals in the record again. See [`super::counted`] for
//! the count, and [`crate::gateway::approval`] for the subject of an approval.

use super::ballot::{Ballot, ValidApproval};
use super::counted;
use super::ending;
use super::gateway::Gateway;
use super::kind::{Kind, Rights};
use super::steps::{entry, words_of};
use super::words::Step;
use crate::channels::notifications;
use crate::gateway::approval::{self, Approver};
use crate::gateway::independence::{self, NOT_INDEPENDENT};
use crate::registry::{self, Face, Person, Signer, tokens};
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::ApprovalId;
use ironclaw_contract::seam::limits::REASON_BYTES_MAX;
use ironclaw_operator::{Bound, DenialCode};
use ironclaw_state::{ReadTx, WriteTx, failpoint};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Decide, Denied, Refusal};
use ironclaw_store::tables::approvals;
use ironclaw_store::tables::waiting::{self, DecidedBy, Ending, Status, Waiting, WaitingId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Milliseconds for which a code confirms the person of a session of the console.
const CONFIRMED_MS: i64 = 600_000;

/// The outcome of what was not decided in time.
pub const OVERDUE: &str = "no decision in time";

impl Gateway {
    /// Records the approval of a person for the page with this digest.
    ///
    /// # Errors
    /// Refuses as [`approve`] does.
    pub async fn approve(self: &Arc<Self>, by: &Signer, id: WaitingId, shown: Digest) -> Result<(), Denied<Error>> {
        let (all, by) = (Arc::clone(self), by.clone());
        let approved = self.record.state.decide(move |tx| approve(tx, &all, &by, id, &shown)).await;
        failpoint::reach("approved");
        self.announce();
        approved
    }

    /// Records the rejection by a person, with a reason for the requester.
    ///
    /// # Errors
    /// Refuses as [`reject`] does.
    pub async fn reject(self: &Arc<Self>, by: &Signer, id: WaitingId, reason: String) -> Result<(), Denied<Error>> {
        let (all, by) = (Arc::clone(self), by.clone());
        let rejected = self.record.state.decide(move |tx| reject(tx, &all, &by, id, &reason)).await;
        failpoint::reach("rejected");
        self.announce();
        rejected
    }
}

/// Returns what has this id, whether it waits or not.
///
/// # Errors
/// Refuses an id that none has.
pub fn known(tx: &ReadTx<'_>, id: WaitingId) -> Result<Waiting, Denied<Error>> {
    waiting::find(tx, id)?.ok_or_else(|| unknown(id).into())
}

/// Returns the refusal of an id that none has. It is the same for what a person may not see, so that ids cannot be probed.
pub fn unknown(id: WaitingId) -> Refusal {
    let words = words_of(id);
    Refusal::new(words.unknown, format!("there is no {} {id}", words.noun))
        .hint("`ironctl inbox` shows what waits for you")
}

/// Returns what this person may see, with their rights.
///
/// # Errors
/// Refuses any other as unknown.
pub fn seen(tx: &ReadTx<'_>, all: &Gateway, by: &Person, id: WaitingId) -> Result<(Waiting, Rights), Denied<Error>> {
    let of = known(tx, id)?;
    let rights = all.kind(id).rights(tx, all, by, &of)?;
    if rights.sight.is_some() { Ok((of, rights)) } else { Err(unknown(id).into()) }
}

/// Returns a person as the record has them now: a role may have been revoked while a request was in flight.
///
/// # Errors
/// Refuses a person who was removed.
pub fn present(tx: &ReadTx<'_>, by: &Person) -> Result<Person, Denied<Error>> {
    let found = registry::person_by_id(tx, by.id)?;
    found.ok_or_else(|| Refusal::new(DenialCode::PersonUnknown, format!("{} no longer exists", by.name)).into())
}

/// What waits, with its kind and the person who decides, as the record has them now.
pub(in crate::gateway) struct Open {
    pub(in crate::gateway) kind: &'static dyn Kind,
    pub(in crate::gateway) of: Waiting,
    pub(in crate::gateway) by: Person,
    pub(in crate::gateway) face: Face,
    pub(in crate::gateway) rights: Rights,
}

impl Open {
    /// Returns what this person may see, with their rights now.
    ///
    /// # Errors
    /// Refuses any other as unknown, with a ledger entry.
    pub(in crate::gateway) fn find(
        tx: &mut WriteTx<'_>,
        all: &Gateway,
        by: &Signer,
        id: WaitingId,
    ) -> Result<Self, Denied<Error>> {
        let (of, face, by) = (known(tx, id)?, by.face, present(tx, &by.person)?);
        let (kind, rights) = (all.kind(id), all.kind(id).rights(tx, all, &by, &of)?);
        let open = Self { kind, of, by, face, rights };
        match open.rights.sight {
            Some(_) => Ok(open),
            None => Err(open.refuse(tx, unknown(id), "the person may not see it")?),
        }
    }

    /// Returns the person and the face of the decision.
    pub(in crate::gateway) const fn decided_by(&self) -> DecidedBy {
        DecidedBy { person: self.by.id, face: self.face }
    }

    /// Refuses what does not wait, and ends what was not decided in time.
    pub(in crate::gateway) fn check_waits(&self, tx: &mut WriteTx<'_>, all: &Gateway) -> Result<(), Denied<Error>> {
        if !self.of.status.is_open() {
            return Err(closed(&self.of).into());
        }
        if self.of.status == Status::Pending && self.of.expires_at <= tx.wall() {
            return Err(self.end(tx, all, Status::Expired, OVERDUE)?);
        }
        Ok(())
    }

    /// Refuses a grave approval in a session of the console whose person was not confirmed a moment ago.
    fn check_confirmed(&self, tx: &mut WriteTx<'_>, by: &Signer) -> Result<(), Denied<Error>> {
        if is_confirmed(tx, by)? || !self.kind.is_grave(tx, &self.of)? {
            return Ok(());
        }
        let message =
            format!("the approval of {} needs a fresh code: this session was confirmed too long ago", self.of.id);
        let refusal = Refusal::new(DenialCode::NotConfirmed, message);
        let refusal = refusal.hint("get a code with `ironctl console --print`, and type it on the page");
        Err(self.refuse(tx, refusal, "the session was not confirmed")?)
    }

    /// Ends it in place of a decision, and returns the refusal of the decision.
    fn end(&self, tx: &mut WriteTx<'_>, all: &Gateway, status: Status, why: &str) -> Result<Denied<Error>, Error> {
        ending::end(tx, all, &self.of, &Ending { status, by: None, outcome: why })?;
        Ok(closed(&Waiting { status, outcome: Some(why.to_owned()), ..self.of.clone() }).into())
    }

    /// Records that a decision was refused, and returns the refusal.
    pub(in crate::gateway) fn refuse(
        &self,
        tx: &mut WriteTx<'_>,
        refusal: Refusal,
        why: &str,
    ) -> Result<Denied<Error>, Error> {
        let refused = entry(&self.of, Step::Refused).with("by", self.by.id).with("code", refusal.code);
        refused.reason(why).append(tx)?;
        Ok(refusal.into())
    }

    /// Returns the refusal of a person whose role does not decide.
    pub(in crate::gateway) fn not_theirs(&self, tx: &mut WriteTx<'_>, all: &Gateway) -> Result<Denied<Error>, Error> {
        let (id, name, who) = (self.of.id, &self.by.name, self.kind.deciders(tx, all, &self.of)?);
        let message = format!("{id} cannot be decided by {name}: it needs {who}");
        let refusal = Refusal::new(DenialCode::NotYoursToDecide, message);
        let refusal = match self.rights.rejects && self.of.status.is_open() {
            true => refusal.hint(format!("you may end it: `ironctl reject {id}`")),
            false => refusal,
        };
        self.refuse(tx, refusal, "the role of the person does not decide")
    }

    /// Returns the refusal of an approval that is not independent: since the request, the person got their role or their token from
    /// another approver, from a requester who must not approve, or from an unknown giver.
    fn not_independent(
        &self,
        tx: &mut WriteTx<'_>,
        ballot: &Ballot,
        proof: &str,
        counted: &[ValidApproval],
    ) -> Result<Option<Denied<Error>>, Error> {
        if ballot.has_own_reasons && self.by.id == self.of.principal {
            return Ok(None);
        }
        let backers = independence::backers(tx, ballot.asked, &ballot.rule, self.by.id, proof)?;
        // An approval with one backer counts, and the next count takes back the approvals that depend on this person.
        let others = match backers.is_direct() {
            true => BTreeSet::new(),
            false => counted.iter().flat_map(ValidApproval::people).collect(),
        };
        let dependence = independence::dependence(&backers, &others, ballot.asked, &ballot.rule);
        let Some(why) = dependence.map(|dependence| dependence.words(tx)).transpose()? else { return Ok(None) };
        let message = format!("the approval of {} does not count for {}: {why}", self.by.name, self.of.id);
        let hint = "let another person approve it, or reject it and request it again: an approval counts if its role and its token are \
                    older than the request";
        self.refuse(tx, Refusal::new(NOT_INDEPENDENT, message).hint(hint), &why).map(Some)
    }
}

/// Returns whether a code confirmed the person a moment ago. A program needs none: its token is proof enough.
pub fn is_confirmed(tx: &ReadTx<'_>, by: &Signer) -> Result<bool, ironclaw_state::Error> {
    match by.face {
        Face::Program => Ok(true),
        Face::Console => {
            let token = by.token.as_ref().map(|id| tokens::find_token(tx, id)).transpose()?.flatten();
            let confirmed_at = token.and_then(|token| token.confirmed_at);
            Ok(confirmed_at.is_some_and(|at| (0..CONFIRMED_MS).contains(&(tx.wall() - at))))
        }
    }
}

/// Returns the refusal of a decision about what does not wait.
fn closed(of: &Waiting) -> Refusal {
    let (words, id) = (words_of(of.id), of.id);
    let outcome = of.outcome.as_deref().unwrap_or_default();
    match of.status {
        Status::Expired => Refusal::new(words.expired, format!("{id} has expired: {outcome}"))
            .hint("request it again if it is still wanted"),
        Status::Withdrawn => Refusal::new(words.withdrawn, format!("{id} is withdrawn: {outcome}"))
            .hint("request it again if it is still wanted"),
        status => Refusal::new(words.decided, format!("{id} is {status} already")),
    }
}

/// Records the approval of a person for exactly the page with the digest `shown`.
///
/// # Errors
/// Refuses a person who may not decide, what is decided, over or stale, and a page that differs from the present one. To a person who may
/// not see it, it is unknown.
pub fn approve(
    tx: &mut WriteTx<'_>,
    all: &Gateway,
    by: &Signer,
    id: WaitingId,
    shown: &Digest,
) -> Result<(), Denied<Error>> {
    let (open, proof) = (Open::find(tx, all, by, id)?, by.proof());
    if !open.rights.decides {
        return Err(open.not_theirs(tx, all)?);
    }
    open.check_waits(tx, all)?;
    open.check_confirmed(tx, by)?;
    let Open { kind, of, by, .. } = &open;
    if let Some(why) = kind.why_stale(tx, all, of)? {
        return Err(open.end(tx, all, Status::Withdrawn, &why)?);
    }
    let page = kind.show(tx, all, of)?;
    let ballot = kind.ballot(tx, all, of, &page)?;
    if !ballot.own_counts && by.id == of.principal {
        let message = format!("{id} was requested by {} or on their behalf: another person has to approve it", by.name);
        let refusal = Refusal::new(DenialCode::NotYoursToDecide, message);
        return Err(open.refuse(tx, refusal, "the requester must not approve")?);
    }
    if page.digest != *shown {
        let refusal = Refusal::new(DenialCode::ShownDiffers, format!("{id} differs from the page that was shown"));
        let refusal = refusal.hint(format!("read it again: `ironctl inbox show {id}`"));
        return Err(open.refuse(tx, refusal, "another page was shown")?);
    }
    // This takes back approvals that are no longer valid, so that their people may approve again.
    let counted = counted::count(tx, all, of, &ballot)?;
    if counted.iter().any(|approval| approval.given.person == by.id) {
        let needed = ballot.rule.approvals;
        let message = format!("{} already approved {id}: {needed} different people have to approve", by.name);
        return Err(Refusal::new(words_of(id).decided, message).into());
    }
    if let Some(refused) = open.not_independent(tx, &ballot, &proof, &counted)? {
        return Err(refused);
    }
    let approver = Approver::new(by.id, &proof);
    let token = approval::mint(all.root(), ballot.subject.clone(), approver, tx.wall(), ballot.valid_until)?;
    let given = approvals::insert(tx, id, by.id, &token.to_json())?;
    let mut approved_by = entry(of, Step::ApprovedBy).with("approval", given).with("by", by.id).with("face", open.face);
    if !page.reasons.is_empty() {
        let codes: Vec<&str> = page.reasons.iter().map(|reason| reason.reason.name()).collect();
        approved_by = approved_by.with("reasons", codes.join(" "));
    }
    approved_by.with("shown", page.digest).append(tx)?;
    let valid = counted::count(tx, all, of, &ballot)?;
    if kind.is_approved(tx, of, &ballot, &valid)? {
        waiting::mark_approved(tx, id, by.id, &page.digest, ballot.use_until)?;
        notifications::withdraw(tx, id)?;
        let approved = entry(of, Step::Approved).with(words_of(id).digest, of.digest);
        approved.with("shown", page.digest).append(tx)?;
    }
    Ok(())
}

/// Records the rejection by a person, or the withdrawal by a requester.
///
/// # Errors
/// Refuses a person who may not end it, what is decided or over, and a reason that is too long. To a person who may not see it, it is
/// unknown.
pub fn reject(
    tx: &mut WriteTx<'_>,
    all: &Gateway,
    by: &Signer,
    id: WaitingId,
    reason: &str,
) -> Result<(), Denied<Error>> {
    check_reason(reason)?;
    let open = Open::find(tx, all, by, id)?;
    if !open.rights.rejects {
        return Err(open.not_theirs(tx, all)?);
    }
    open.check_waits(tx, all)?;
    let status = match open.rights.decides || !words_of(id).requester_withdraws {
        true => Status::Rejected,
        false => Status::Withdrawn,
    };
    ending::end(tx, all, &open.of, &Ending { status, by: Some(open.decided_by()), outcome: reason })?;
    Ok(())
}

/// Refuses a reason that is too long.
pub fn check_reason(reason: &str) -> Result<(), Refusal> {
    if reason.len() <= REASON_BYTES_MAX {
        return Ok(());
    }
    let bound = Bound::new("bytes of a reason", REASON_BYTES_MAX, reason.len(), "write a shorter reason");
    Err(Refusal::over(DenialCode::ReasonTooLong, bound))
}

/// Takes back the approvals of what waits that are no longer valid, for example after a change of the policy.
pub fn recount(tx: &mut WriteTx<'_>, all: &Gateway) -> Result<(), Error> {
    for id in approvals::partially_approved(tx)? {
        let Some(of) = waiting::find(tx, id)? else { continue };
        let shown = all.kind(id).show(tx, all, &of)?;
        match all.kind(id).ballot(tx, all, &of, &shown) {
            Ok(ballot) => drop(counted::count(tx, all, &of, &ballot)?),
            Err(Denied::Refused(_)) => {}
            // No approval of it can be used, and it holds up no other.
            Err(Denied::Failed(error)) if error.is_damage() => {
                tracing::error!(%id, %error, "cannot count the approvals of a damaged request");
            }
            Err(Denied::Failed(error)) => return Err(error),
        }
    }
    Ok(())
}

/// Uses approvals up, and returns their ids as canonical JSON.
///
/// # Errors
/// Refuses an approval that is used already.
pub(in crate::gateway) fn use_up(
    tx: &mut WriteTx<'_>,
    of: WaitingId,
    valid: &[ValidApproval],
) -> Result<String, Denied<Error>> {
    for approval in valid {
        if !approvals::mark_used(tx, approval.given.id)? {
            let words = format!("an approval of {of} is already used");
            return Err(Refusal::new(DenialCode::ApprovalUsed, words).into());
        }
    }
    let ids: Vec<ApprovalId> = valid.iter().map(|approval| approval.given.id).collect();
    Ok(canonical::to_string(&ids))
}
