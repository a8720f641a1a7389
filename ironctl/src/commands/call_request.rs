//! The approval request of a call after a decision: the wait for the outcome, and its words.
//!
//! Never decides. See [`crate::commands::decidable`], which also has changes, and [`crate::commands::why`].

use super::change::{APPLY_TIMEOUT, POLL_PAUSE, in_words};
use crate::client::Client;
use crate::failure::Error;
use crate::output::Output;
use ironclaw_operator::{CallRequest, RequestStatus, routes};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// Pause before the first request for the outcome; most calls take milliseconds. Each further pause is twice as long, up to
/// [`POLL_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_millis(20);

/// Returns whether people can still decide on a call.
pub fn is_open(request: &CallRequest) -> bool {
    request.status == RequestStatus::Pending
}

/// Waits a short time for the outcome of an approved call.
pub async fn settled(client: &Client, mut decided: CallRequest) -> Result<CallRequest, Error> {
    let until = Instant::now() + APPLY_TIMEOUT;
    let mut pause = FIRST_PAUSE;
    while matches!(decided.status, RequestStatus::Approved | RequestStatus::Running) && Instant::now() < until {
        sleep(pause).await;
        pause = POLL_PAUSE.min(pause * 2);
        decided = client.call(routes::CALL_REQUEST, [&decided.id]).await?;
    }
    Ok(decided)
}

/// Prints the result of a decision; a call that did not run, or that may not have run, is a failure.
pub fn outcome(out: Output, request: &CallRequest) -> Result<(), Error> {
    out.line(standing(request))?;
    let id = &request.id;
    let (code, message) = match request.status {
        RequestStatus::Failed => ("call_failed", format!("{id} was approved, and the call was made and failed")),
        RequestStatus::Unknown => {
            ("call_unknown", format!("{id} was approved, and nothing shows if the call had its effect"))
        }
        RequestStatus::Expired | RequestStatus::Withdrawn => {
            ("call_not_made", format!("{id} is {}, and the call was not made", request.status))
        }
        _ => return Ok(()),
    };
    Err(Error::failed(code, message).hinting(format!("ironctl why {id}")))
}

/// Returns a sentence about the status of a request.
pub fn standing(request: &CallRequest) -> String {
    let CallRequest { id, status, yours, .. } = request;
    match status {
        RequestStatus::Pending if *yours => format!("{id} waits for you: ironctl inbox"),
        RequestStatus::Pending => format!("{id} waits for other people"),
        RequestStatus::Approved => format!("{id} is approved; the call was not made yet: ironctl why {id}"),
        RequestStatus::Running => format!("{id} is approved, and the call runs: ironctl why {id}"),
        RequestStatus::Queued => format!("{id} is made; its message waits for its delivery: ironctl why {id}"),
        status => format!("{id} is {status}{}", in_words(request.outcome.as_deref())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_operator::Digest;
    use serde_json::json;

    /// Returns a request with this number and status.
    fn request(number: u32, status: &str, yours: bool) -> CallRequest {
        let page = "EFFECT\n  Much.\n";
        let id = |prefix: &str| format!("{prefix}_0000000000000000000000000{number}");
        serde_json::from_value(json!({
            "id": id("req"), "agent": "assistant", "status": status, "call_id": id("call"), "tool": "http_fetch", "class": "send",
            "session_id": id("ses"), "turn_id": id("trn"), "message_id": id("msg"), "requested_by": "owner",
            "effect": "Much.", "arguments": {}, "origins": [], "reasons": [], "shown": page,
            "shown_digest": Digest::of(page.as_bytes()), "created_at": "t", "expires_at": "t", "told": [],
            "yours": yours, "outcome": (status == "rejected").then_some("no\n\nEFFECT"), "position": number, "of": 2
        }))
        .expect("the shape of a request")
    }

    #[test]
    fn outcome_is_one_line_and_a_lost_call_is_a_failure() {
        let out = Output::new(true);
        assert_eq!(
            standing(&request(1, "rejected", false)),
            format!("{} is rejected: no EFFECT", request(1, "pending", false).id)
        );
        for status in ["pending", "approved", "running", "done", "queued", "rejected"] {
            assert!(outcome(out, &request(1, status, true)).is_ok(), "{status}");
        }
        for (status, code) in [
            ("failed", "call_failed"),
            ("unknown", "call_unknown"),
            ("expired", "call_not_made"),
            ("withdrawn", "call_not_made"),
        ] {
            let report = outcome(out, &request(1, status, true)).expect_err(status).report().expect("reported");
            assert_eq!(report.error.code, code);
        }
    }
}
