//! The count of the approvals of a change: those that are valid now, by different people who are independent of each other.
//!
//! Takes back every other approval, with its reason. Never approves a change. See [`crate::approval`] and
//! [`crate::gateway::independence`].

use super::super::independence::{self, Backers, NOT_INDEPENDENT};
use super::super::policy::Rule;
use super::super::store::{self, ApprovalRow, Row};
use super::{DecisionContext, Error, may_decide, subject};
use crate::approval::{self, Token};
use crate::registry::{self, TokenId, TokenState, tokens};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::operator::{DenialCode, LedgerEvent};
use ironclaw_ledger::Entry;
use ironclaw_state::{ReadTx, WriteTx};
use std::collections::BTreeSet;

/// A valid approval with its backers.
pub(super) struct ValidApproval {
    pub(super) given: ApprovalRow,
    pub(super) proof: String,
    backers: Backers,
}

impl ValidApproval {
    pub(super) fn people(&self) -> impl Iterator<Item = PersonId> {
        match &self.backers {
            Backers::People(people) => people.iter().copied().collect::<Vec<_>>(),
            Backers::Unknown => vec![self.given.person],
        }
        .into_iter()
    }
}

/// An approval that does not count beside others, with the reason.
type Dependent = (ApprovalRow, String);

/// Divides valid approvals into those that are independent of each other, and the others with the reason for each.
fn independent(
    tx: &ReadTx<'_>,
    row: &Row,
    rule: &Rule,
    mut approvals: Vec<ValidApproval>,
) -> Result<(Vec<ValidApproval>, Vec<Dependent>), ironclaw_state::Error> {
    // Approvals with one backer come first. Otherwise a person that an approver created could displace that approver.
    approvals.sort_by_key(|approval| !approval.backers.is_direct());
    let (mut counted, mut people, mut others) = (Vec::new(), BTreeSet::new(), Vec::new());
    for approval in approvals {
        match independence::dependence(&approval.backers, &people, row, rule) {
            None => {
                people.extend(approval.people());
                counted.push(approval);
            }
            Some(dependence) => others.push((approval.given, dependence.words(tx)?)),
        }
    }
    Ok((counted, others))
}

/// Takes back an approval that is not valid, and records the reason.
fn take_back(
    tx: &mut WriteTx<'_>,
    row: &Row,
    given: &ApprovalRow,
    code: DenialCode,
    words: &str,
) -> Result<(), ironclaw_state::Error> {
    store::void_approval(tx, given.id)?;
    Entry::new(LedgerEvent::ApprovalRefused)
        .with("change", row.id)
        .with("approval", given.id)
        .with("code", code)
        .reason(words)
        .append(tx)?;
    Ok(())
}

/// Returns the approvals that are valid for this change now, by different and independent people. Takes back the others, each with its
/// reason.
pub(super) fn count(
    tx: &mut WriteTx<'_>,
    context: &DecisionContext<'_>,
    row: &Row,
    shown: Digest,
) -> Result<Vec<ValidApproval>, Error> {
    let rule = &row.rule(context.policy);
    let subject = subject(row, rule, shown);
    let now = tx.wall();
    let mut valid: Vec<ValidApproval> = Vec::new();
    for given in store::approvals(tx, row.id)? {
        if given.state != "live" {
            continue;
        }
        let found = Token::from_json(&given.token).and_then(|token| {
            // If the clock was set back, an approval of the record must not count as one from the future.
            approval::verify(context.root, &token, &subject, now.max(token.issued()))
        });
        let proof = found.as_ref().map_or_else(|_| String::new(), |verified| verified.approver().proof.clone());
        let why = match found {
            Err(fault) => Some((fault.code(), fault.to_string())),
            Ok(verified) if verified.approver().person != given.person.to_string() => {
                Some((DenialCode::ApprovalForged, "the approval is stored for another person".to_owned()))
            }
            Ok(verified) if is_revoked(tx, &verified.approver().proof)? => {
                Some((DenialCode::ApproverProofLost, "the token of the approver was revoked".to_owned()))
            }
            Ok(_) => match registry::person_by_id(tx, given.person)? {
                Some(person) if may_decide(tx, context.policy, &person, row)? => {
                    let again = valid.iter().any(|other| other.given.person == given.person);
                    let own = !rule.requester_may_approve && given.person == row.principal();
                    match (again, own) {
                        (false, false) => None,
                        (true, _) => Some((DenialCode::ApprovalTwice, "the same person approved twice".to_owned())),
                        (_, true) => {
                            Some((DenialCode::ApprovalOfRequester, "the requester must not approve".to_owned()))
                        }
                    }
                }
                Some(_) => {
                    Some((DenialCode::ApproverRoleLost, "the approver no longer has a role that may decide".to_owned()))
                }
                None => Some((DenialCode::ApproverRoleLost, "the approver no longer exists".to_owned())),
            },
        };
        match why {
            None => {
                let backers = independence::backers(tx, row, rule, given.person, &proof)?;
                valid.push(ValidApproval { given, proof, backers });
            }
            Some((code, words)) => take_back(tx, row, &given, code, &words)?,
        }
    }
    let (counted, others) = independent(tx, row, rule, valid)?;
    for (given, words) in others {
        take_back(tx, row, &given, NOT_INDEPENDENT, &words)?;
    }
    Ok(counted)
}

/// Returns whether the token of an approval was revoked since: another person may have used it. A token that has only expired was valid
/// at the time of the approval.
fn is_revoked(tx: &ReadTx<'_>, proof: &str) -> Result<bool, ironclaw_state::Error> {
    let Ok(token) = proof.parse::<TokenId>() else { return Ok(false) };
    Ok(tokens::find_token(tx, &token)?.is_some_and(|token| token.state == TokenState::Revoked))
}
