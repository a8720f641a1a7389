//! `ironctl why`: shows each step of a message, each stage of a call, or what waits for people, and the reason for its state.
//!
//! Never guesses: every line is in the record. See [`crate::commands::audit`] for the ledger itself.

use super::mcp::quotation;
use super::sources;
use super::waiting::words::{one_line, requester};
use super::waiting::{self, question};
use crate::at::At;
use crate::clock;
use crate::failure::Error;
use crate::output::{Output, joined};
use ironclaw_operator::{CallStage, ChainLink, DenialCode, EndpointWords, RequestReason, WaitingId, Why, routes};

/// The host's alias for the newest message of the caller.
pub const LAST: &str = "last";

/// The first characters of the id of a call.
const CALL_PREFIX: &str = "call_";

/// Options of `ironctl why`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl why\n  ironctl why msg_01J9ZQ4W0V2M6N8P0R2T4V6X8Z\n  ironctl why call_01J9ZQ4W0V2M6N8P0R2T4V6X8Z\n  ironctl why req_01j9zq4w0v2m6n8p0r2t4v6x8z\n  ironctl why chg_01j9zq4w0v2m6n8p0r2t4v6x8z"
)]
pub struct Args {
    /// Id of the message, the call, the approval request, the question or the change [default: your newest message]
    id: Option<String>,
    /// Print the whole diff of a push instead; the id is that of its approval request
    #[arg(long, requires = "id")]
    diff: bool,
}

/// Prints the stages of a message and a summary.
pub async fn run(at: &At, args: &Args) -> Result<(), Error> {
    let id = args.id.as_deref().unwrap_or(LAST);
    if args.diff {
        return diff(at, id).await;
    }
    if id.starts_with(CALL_PREFIX) {
        return call(at, id).await;
    }
    if let Ok(id) = id.parse() {
        return waiting(at, id).await;
    }
    let why = at.client()?.call(routes::WHY_MESSAGE, [&id]).await?;
    at.out.json(&why)?;
    print(at.out, why)
}

async fn call(at: &At, id: &str) -> Result<(), Error> {
    let client = at.client()?;
    let why = client.call(routes::WHY_CALL, [&id]).await?;
    at.out.json(&why)?;
    let class = why.class.map(|class| format!(" ({class})")).unwrap_or_default();
    at.out.line(format!("{}: {}{class} in {}: {}", why.call_id, why.tool, why.session_id, why.status))?;
    at.out.table(["STAGE", "ANSWER", "CODE", "MEANING"], stage_rows(why.stages))?;
    if !why.would_have_blocked.is_empty() {
        at.out.line(format!("mode enforce would have stopped it: {}", joined(why.would_have_blocked, " ")))?;
    }
    at.out.line(why.summary)?;
    if let Some(result) = why.result.filter(|result| !result.is_empty()) {
        at.out.line("result, as the model got it:")?;
        quotation(at.out, &result).into_iter().try_for_each(|line| at.out.line(line))?;
    }
    match why.request {
        // Another person may see the call and not its request.
        Some(request) if !at.out.is_json() => match waiting::read(&client, request.into()).await {
            Ok(found) => at.out.line(format!("approval request: {}", one_line(&found.summary))),
            Err(Error::Refused(_)) => at.out.line(format!("approval request: {request}")),
            Err(error) => Err(error),
        },
        Some(_) | None => Ok(()),
    }
}

async fn waiting(at: &At, id: WaitingId) -> Result<(), Error> {
    let found = waiting::read(&at.client()?, id).await?;
    at.out.json(&found)?;
    let entry = &found.entry;
    let agent = entry.agent.as_ref().map(|agent| format!(" of agent {agent}")).unwrap_or_default();
    let (kind, subject, requester) = (entry.kind, &entry.subject, requester(&entry.requested_by));
    at.out.line(format!("{id}: {kind} {subject}{agent}, requested by {requester}"))?;
    at.out.line(one_line(&entry.effect))?;
    let row = |reason: &RequestReason| {
        [reason.reason.to_string(), reason.decider.to_string(), reason.arguments.join(" "), reason.meaning.clone()]
    };
    if !entry.reasons.is_empty() {
        at.out.table(["REASON", "DECIDED BY", "ARGUMENTS", "MEANING"], entry.reasons.iter().map(row))?;
    }
    let message = entry.origin.as_ref().and_then(|origin| Some(format!(" for {}", origin.message?)));
    let [asked, until] = [&entry.created_at, &entry.expires_at].map(|at| clock::date_and_time(at));
    at.out.line(format!("asked at {asked}{}, expires at {until}", message.unwrap_or_default()))?;
    if !entry.told.is_empty() {
        at.out.line(format!("people were notified in: {}", entry.told.join(", ")))?;
    }
    waiting::print_end(at.out, &found)?;
    if let Some(answer) = question::recorded(&found) {
        at.out.line(format!("the turn of the answer: ironctl why {}", answer.message_id))?;
    }
    match &entry.origin {
        Some(origin) => {
            at.out.line(format!("each stage of the call in {}: ironctl why {}", origin.session, origin.call))
        }
        None => Ok(()),
    }
}

/// Prints every line of the diff of a push.
async fn diff(at: &At, id: &str) -> Result<(), Error> {
    let no_request =
        |_| Error::usage(format!("{id} is no approval request"), "name the request of a push: ironctl inbox");
    let diff = at.client()?.push_diff(id.parse().map_err(no_request)?).await?;
    at.out.json(&diff)?;
    at.out.exact(&diff.text)?;
    match diff.left_off {
        0 => at.out.line(format!("digest of the diff: {}", diff.digest)),
        more => at.out.line(format!("{more} more lines; the digest covers them: {}", diff.digest)),
    }
}

/// Returns the rows of a table of stages.
pub fn stage_rows(stages: Vec<CallStage>) -> impl Iterator<Item = [String; 4]> {
    let row = |stage: CallStage| {
        let code = stage.code.map_or("", DenialCode::name).to_owned();
        [stage.stage.to_string(), stage.answer.to_string(), code, stage.meaning.unwrap_or_default()]
    };
    stages.into_iter().map(row)
}

/// Prints what endpoints said when they gave no answer, each as a quotation of the provider.
pub fn endpoint_words(out: Output, all: &[EndpointWords]) -> Result<(), Error> {
    for EndpointWords { endpoint, at, code, words, .. } in all {
        let at = clock::date_and_time(at);
        out.line(format!("words of the model endpoint {endpoint} at {at} ({code}), not of the host:"))?;
        quotation(out, words).into_iter().try_for_each(|line| out.line(line))?;
    }
    Ok(())
}

/// Prints the stages as a table, then the notes of the agent's process and the summary.
pub fn print(out: Output, why: Why) -> Result<(), Error> {
    let message = &why.message;
    out.line(format!("{} in {}: {}", message.message_id, message.session_id, message.status))?;
    let rows = why
        .stages
        .into_iter()
        .map(|stage| [clock::time_of_day(&stage.at), stage.stage, stage.outcome.to_string(), stage.reason]);
    out.table(["TIME", "STAGE", "OUTCOME", "REASON"], rows)?;
    if !why.chain.is_empty() {
        let link =
            |link: ChainLink| [link.hop.to_string(), link.agent, link.session.to_string(), link.message.to_string()];
        out.table(["HOP", "AGENT", "SESSION", "MESSAGE"], why.chain.into_iter().map(link))?;
    }
    endpoint_words(out, &why.words)?;
    for note in &why.progress {
        out.line(format!("note of the agent's process: {note}"))?;
    }
    out.line(why.summary)?;
    match &why.message.sources {
        Some(found) => sources::print(out, found),
        None => Ok(()),
    }
}
