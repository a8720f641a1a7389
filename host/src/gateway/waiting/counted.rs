//! The count of approvals: those that are valid now, by different people who are independent of each other.
//!
//! Takes back every other approval, with its reason. Never approves anything. See [`crate::gateway::approval`] and
//! [`crate::gateway::independence`].

use super::ballot::{Ballot, ValidApproval};
use super::gateway::Gateway;
use super::steps::words_of;
use crate::gateway::approval::{self, Token};
use crate::gateway::independence::{self, NOT_INDEPENDENT};
use crate::registry::{self, TokenId, TokenState, tokens};
use ironclaw_ledger::Entry;
use ironclaw_operator::{DenialCode, LedgerEvent};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::tables::approvals::{self, Approval, ApprovalState};
use ironclaw_store::tables::waiting::Waiting;
use std::collections::BTreeSet;

/// An approval that does not count beside others, with the reason.
type Dependent = (Approval, String);

/// Divides valid approvals into those that are independent of each other, and the others with the reason for each.
fn independent(
    tx: &ReadTx<'_>,
    ballot: &Ballot,
    mut approvals: Vec<ValidApproval>,
) -> Result<(Vec<ValidApproval>, Vec<Dependent>), ironclaw_state::Error> {
    // Approvals with one backer come first. Otherwise a person that an approver created could displace that approver.
    approvals.sort_by_key(|approval| !approval.backers.is_direct());
    let (mut counted, mut people, mut others) = (Vec::new(), BTreeSet::new(), Vec::new());
    for approval in approvals {
        // The requester may approve the reasons that are theirs, also if the rule excludes requesters.
        let is_own = ballot.own_counts && approval.given.person == ballot.asked.principal;
        let dependence = match is_own && !ballot.rule.requester_may_approve {
            true => independence::own_dependence(&approval.backers, &people),
            false => independence::dependence(&approval.backers, &people, ballot.asked, &ballot.rule),
        };
        match dependence {
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
    of: &Waiting,
    given: &Approval,
    code: DenialCode,
    words: &str,
) -> Result<(), ironclaw_state::Error> {
    approvals::void(tx, given.id)?;
    Entry::new(LedgerEvent::ApprovalRefused)
        .with(words_of(of.id).key, of.id)
        .with("approval", given.id)
        .with("code", code)
        .reason(words)
        .append(tx)?;
    Ok(())
}

/// Returns the approvals that are valid for this subject now, by different and independent people. Takes back the others, each with its
/// reason.
pub fn count(tx: &mut WriteTx<'_>, all: &Gateway, of: &Waiting, ballot: &Ballot) -> Result<Vec<ValidApproval>, Error> {
    let now = tx.wall();
    let mut valid: Vec<ValidApproval> = Vec::new();
    for given in approvals::list(tx, of.id)? {
        if given.state != ApprovalState::Live {
            continue;
        }
        let found = Token::from_json(&given.token).and_then(|token| {
            // If the clock was set back, an approval of the record must not count as one from the future.
            approval::verify(all.root(), &token, &ballot.subject, now.max(token.issued()))
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
                Some(person) if all.kind(of.id).rights(tx, all, &person, of)?.decides => {
                    let again = valid.iter().any(|other| other.given.person == given.person);
                    let own = !ballot.own_counts && given.person == ballot.asked.principal;
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
                let backers = independence::backers(tx, ballot.asked, &ballot.rule, given.person, &proof)?;
                valid.push(ValidApproval { given, proof, backers });
            }
            Some((code, words)) => take_back(tx, of, &given, code, &words)?,
        }
    }
    let (counted, others) = independent(tx, ballot, valid)?;
    for (given, words) in others {
        take_back(tx, of, &given, NOT_INDEPENDENT, &words)?;
    }
    Ok(counted)
}

/// Returns whether the token of an approval was revoked since: another person may have used it. A token that has only expired was valid
/// at the time of the approval.
fn is_revoked(tx: &ReadTx<'_>, proof: &str) -> Result<bool, ironclaw_state::Error> {
    let Ok(token) = proof.parse::<TokenId>() else { return Ok(false) };
    Ok(tokens::find_token(tx, &token)?.is_some_and(|token| token.state == TokenState::Revoked))
}
