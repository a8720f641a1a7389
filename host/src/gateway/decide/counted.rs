//! Which approvals of a change count: those that are good now, by different people who are independent of each other.
//!
//! Takes the others back, each by name. Never approves a change. Next: `approval`, `gateway::voices`.

use super::super::policy::Rule;
use super::super::store::{self, ApprovalRow, Row};
use super::super::voices::{self, Behind, NOT_INDEPENDENT};
use super::{DecisionContext, Error, may_decide, thing};
use crate::approval::{self, Token};
use crate::registry::{self, TokenId, TokenState, tokens};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::operator::{DenialCode, LedgerEvent};
use ironclaw_ledger::Entry;
use ironclaw_state::{ReadTx, WriteTx};
use std::collections::BTreeSet;

/// An approval that is good, with who is behind it.
pub(super) struct Voice {
    pub(super) given: ApprovalRow,
    pub(super) proof: String,
    behind: Behind,
}

impl Voice {
    pub(super) fn people(&self) -> impl Iterator<Item = PersonId> {
        match &self.behind {
            Behind::People(people) => people.iter().copied().collect::<Vec<_>>(),
            Behind::Unknown => vec![self.given.person],
        }
        .into_iter()
    }
}

/// An approval that does not count beside others, and why.
type Dependent = (ApprovalRow, String);

/// Of several good approvals those that are independent of each other, and why each of the others is not.
fn independent(
    tx: &ReadTx<'_>,
    row: &Row,
    rule: &Rule,
    mut voices: Vec<Voice>,
) -> Result<(Vec<Voice>, Vec<Dependent>), ironclaw_state::Error> {
    // Whoever speaks for themselves comes first: a person whom they made does not take their place.
    voices.sort_by_key(|voice| !voice.behind.is_direct());
    let (mut counted, mut people, mut others) = (Vec::new(), BTreeSet::new(), Vec::new());
    for voice in voices {
        match voices::depends(&voice.behind, &people, row, rule) {
            None => {
                people.extend(voice.people());
                counted.push(voice);
            }
            Some(dependence) => others.push((voice.given, dependence.words(tx)?)),
        }
    }
    Ok((counted, others))
}

/// Takes back an approval that is not good, by name.
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

/// The approvals that are good for this change now, by different and independent people; the others are taken back, each by name.
pub(super) fn count(
    tx: &mut WriteTx<'_>,
    context: &DecisionContext<'_>,
    row: &Row,
    shown: Digest,
) -> Result<Vec<Voice>, Error> {
    let rule = &row.rule(context.policy);
    let thing = thing(row, rule, shown);
    let now = tx.wall();
    let mut good: Vec<Voice> = Vec::new();
    for given in store::approvals(tx, row.id)? {
        if given.state != "live" {
            continue;
        }
        let found = Token::from_json(&given.token).and_then(|token| {
            // A clock that was set back makes nothing that stands in the record one of the future.
            approval::verify(context.root, &token, &thing, now.max(token.issued()))
        });
        let proof = found.as_ref().map_or_else(|_| String::new(), |verified| verified.approver().proof.clone());
        let why = match found {
            Err(fault) => Some((fault.code(), fault.to_string())),
            Ok(verified) if verified.approver().person != given.person.to_string() => {
                Some((DenialCode::ApprovalForged, "the approval stands under another person".to_owned()))
            }
            Ok(verified) if is_revoked(tx, &verified.approver().proof)? => {
                Some((DenialCode::ApproverProofLost, "the token that it came with was revoked".to_owned()))
            }
            Ok(_) => match registry::person_by_id(tx, given.person)? {
                Some(person) if may_decide(tx, context.policy, &person, row)? => {
                    let again = good.iter().any(|other| other.given.person == given.person);
                    let own = !rule.requester_may_approve && given.person == row.principal();
                    match (again, own) {
                        (false, false) => None,
                        (true, _) => Some((DenialCode::ApprovalTwice, "the same person approved twice".to_owned())),
                        (_, true) => Some((DenialCode::ApprovalOfRequester, "whoever asked does not count".to_owned())),
                    }
                }
                Some(_) => {
                    Some((DenialCode::ApproverRoleLost, "whoever approved has no role that may any more".to_owned()))
                }
                None => Some((DenialCode::ApproverRoleLost, "a person who approved no longer exists".to_owned())),
            },
        };
        match why {
            None => {
                let behind = voices::behind(tx, row, rule, given.person, &proof)?;
                good.push(Voice { given, proof, behind });
            }
            Some((code, words)) => take_back(tx, row, &given, code, &words)?,
        }
    }
    let (counted, others) = independent(tx, row, rule, good)?;
    for (given, words) in others {
        take_back(tx, row, &given, NOT_INDEPENDENT, &words)?;
    }
    Ok(counted)
}

/// Whether an approval came with a token that was taken from its holder since: it may not have been them. One that expired was good
/// when it was used.
fn is_revoked(tx: &ReadTx<'_>, proof: &str) -> Result<bool, ironclaw_state::Error> {
    let Ok(token) = proof.parse::<TokenId>() else { return Ok(false) };
    Ok(tokens::find_token(tx, &token)?.is_some_and(|token| token.state == TokenState::Revoked))
}
