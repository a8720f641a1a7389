//! The change that a command submits: the caller decides on it at once if the policy lets them, otherwise it waits for other people.
//!
//! Never approves without a person at a terminal or `--yes`. See [`crate::commands::review`] and [`crate::commands::waiting`].

use super::review::{self, Words};
use super::waiting::{self, Asked, OUTCOME_TIMEOUT};
use crate::at::At;
use crate::client::Client;
use crate::failure::Error;
use ironclaw_operator::{
    ChangeKind, Decision, DenialCode, NewChange, Payload, SubmittedChange, Waiting, WaitingStatus, routes,
};
use serde_json::Value;
use std::time::Duration;

/// The code of a change that waits for a decision.
const PENDING: &str = "change_pending";

/// The code of a change that the caller did not approve.
const DECLINED: &str = "not_confirmed";

/// Submits a change and applies the decision of the caller, if the policy lets them approve: at a terminal after a question, elsewhere
/// only with `yes`. Returns the decided change, or `None` if the setting already has this value.
///
/// Fails with `change_pending` if the change waits.
pub async fn decide(
    at: &At,
    client: &Client,
    kind: ChangeKind,
    agent: Option<&str>,
    payload: Value,
    yes: bool,
) -> Result<Option<Waiting>, Error> {
    let submitted = submit(client, kind, agent, payload).await;
    decide_submitted(at, client, submitted, yes, OUTCOME_TIMEOUT).await
}

/// Does the same, and prints the decided change for a script.
pub async fn decide_and_print(
    at: &At,
    kind: ChangeKind,
    agent: Option<&str>,
    payload: Value,
    yes: bool,
) -> Result<(), Error> {
    at.out.json(&decide(at, &at.client()?, kind, agent, payload, yes).await?)
}

/// Submits a change of an agent, named by its name or id, or of the host.
pub async fn submit(
    client: &Client,
    kind: ChangeKind,
    agent: Option<&str>,
    payload: Value,
) -> Result<SubmittedChange, Error> {
    let payload = Payload::try_from(payload).map_err(|what| Error::failed("request", what))?;
    let new = NewChange { kind, agent: agent.map(str::to_owned), payload, reason: String::new() };
    client.post(routes::SUBMIT_CHANGE, [], &new).await
}

/// Applies the decision of the caller on a submitted change, as [`decide`] does, and waits for at most `patience` until it is applied.
pub async fn decide_submitted(
    at: &At,
    client: &Client,
    submitted: Result<SubmittedChange, Error>,
    yes: bool,
    patience: Duration,
) -> Result<Option<Waiting>, Error> {
    match apply(at, client, submitted, yes, patience, Words::One).await? {
        Proposed::Nothing | Proposed::Edit => Ok(None),
        Proposed::Decided(decided) => Ok(Some(*decided)),
    }
}

/// What became of a submitted change.
pub enum Proposed {
    /// The setting has this value already.
    Nothing,
    Decided(Box<Waiting>),
    /// The person wants to change its text; it is rejected.
    Edit,
}

/// Does the same with the words of the question.
pub async fn apply(
    at: &At,
    client: &Client,
    submitted: Result<SubmittedChange, Error>,
    yes: bool,
    patience: Duration,
    words: Words,
) -> Result<Proposed, Error> {
    let submitted = match submitted {
        Err(Error::Refused(refused)) if refused.error.code == DenialCode::ChangeEmpty.name() => {
            at.out.line(refused.error.message)?;
            return Ok(Proposed::Nothing);
        }
        submitted => submitted?,
    };
    if !submitted.yours || !(yes || review::is_possible(at.out)) {
        return Err(waits(&submitted));
    }
    let waiting = waiting::read(client, submitted.id.into()).await?;
    let approved = match yes {
        true => waiting::approve_printed(at.out, client, &waiting).await?,
        false => match ask(at, client, &submitted, &waiting, words).await? {
            Some(approved) => approved,
            None => return Ok(Proposed::Edit),
        },
    };
    if approved.entry.status.is_underway() && patience > OUTCOME_TIMEOUT {
        at.out.remark(format!("the host applies {}; Ctrl-C does not stop it", submitted.id))?;
    }
    let decided = waiting::settled(client, approved, patience).await?;
    if decided.entry.status.is_open() {
        return Err(waits(&SubmittedChange { yours: false, ..submitted }));
    }
    waiting::outcome(at.out, &decided)?;
    Ok(Proposed::Decided(Box::new(decided)))
}

/// Shows the review page and applies the decision of the person; `None` if they want to edit the change. Without an approval nothing is
/// changed.
async fn ask(
    at: &At,
    client: &Client,
    submitted: &SubmittedChange,
    waiting: &Waiting,
    words: Words,
) -> Result<Option<Waiting>, Error> {
    let id = submitted.id;
    match waiting::ask(at.out, client, waiting, words, 0).await? {
        Asked::Decided(decided) if decided.entry.status != WaitingStatus::Rejected => return Ok(Some(*decided)),
        Asked::Decided(_) => {}
        Asked::Edit => {
            waiting::decide(client, id.into(), Decision::Reject(String::new())).await?;
            return Ok(None);
        }
        Asked::Left | Asked::Quit if submitted.again => {
            return Err(Error::failed(DECLINED, format!("nothing was changed; {id} still waits")));
        }
        Asked::Left | Asked::Quit => {
            waiting::decide(client, id.into(), Decision::Reject(String::new())).await?;
        }
    }
    Err(Error::failed(DECLINED, format!("nothing was changed; {id} is rejected")))
}

/// Submits a change if the host refused because the policy requires more people; returns the failure of the command.
pub async fn instead(
    at: &At,
    client: &Client,
    refused: Error,
    kind: ChangeKind,
    agent: Option<&str>,
    payload: Value,
) -> Error {
    let Error::Refused(failure) = &refused else { return refused };
    if failure.error.code != DenialCode::PolicyAsksForMore.name() {
        return refused;
    }
    match submit(client, kind, agent, payload).await {
        // Also if the caller may give one of the approvals: `--yes` is no answer here.
        Ok(submitted) => waits(&SubmittedChange { yours: false, ..submitted }),
        // The first refusal names the command, so it is returned; the second failure is printed.
        Err(error) => {
            at.out.failure(&error);
            refused
        }
    }
}

/// Returns whether this is the failure of a change that waits.
pub fn is_pending(error: &Error) -> bool {
    matches!(error, Error::Failed { code: PENDING, .. })
}

/// Returns whether this is the failure of a change that the caller did not approve.
pub fn is_declined(error: &Error) -> bool {
    matches!(error, Error::Failed { code: DECLINED, .. })
}

/// Creates the failure for a change that waits, with the people who must approve it and their command.
fn waits(submitted: &SubmittedChange) -> Error {
    let SubmittedChange { id, yours, waits_for, .. } = submitted;
    let by = if waits_for.is_empty() { String::new() } else { format!(" by {waits_for}") };
    let message = format!("nothing was changed yet: {id} waits for approval{by}");
    Error::failed(PENDING, message).hinting(match yours {
        true => format!("you may approve it: ironctl approve {id}; or repeat the command with --yes"),
        false => format!("they decide with: ironctl inbox, or: ironctl approve {id}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_change_names_its_approvers_and_their_command() {
        let id = "chg_00000000000000000000000001".parse().expect("an id");
        let by = "2 different people, each an owner of this host".to_owned();
        let submitted =
            SubmittedChange { id, status: WaitingStatus::Pending, again: false, yours: false, waits_for: by.clone() };
        let failure = waits(&submitted);
        assert!(is_pending(&failure) && !is_pending(&Error::failed("other", "")));
        let report = failure.report().expect("reported").error;
        assert!(report.message.ends_with(&format!("{id} waits for approval by {by}")), "{}", report.message);
        assert!(report.hint.starts_with("they decide") && report.hint.contains(&format!("ironctl approve {id}")));
        let own = waits(&SubmittedChange { yours: true, ..submitted }).report().expect("reported").error;
        assert!(own.hint.contains("--yes"), "{}", own.hint);
    }
}
