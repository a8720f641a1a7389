//! `ironctl why`: shows each step of a message, each stage of a call, an approval request or a question, and the reason for its state.
//!
//! Never guesses: every line is in the record. See [`crate::commands::audit`] for the ledger itself.

use super::call_request::standing;
use super::decidable::REQUEST_PREFIX;
use super::mcp::{prose, quotation};
use super::question::QUESTION_PREFIX;
use super::sources;
use crate::at::At;
use crate::clock;
use crate::failure::Error;
use crate::output::{Output, joined};
use ironclaw_operator::{
    CallRequest, CallStage, ChainLink, DenialCode, EndpointWords, QuestionWhy, RequestReason, Why, routes,
};

/// The host's alias for the newest message of the caller.
pub const LAST: &str = "last";

/// The first characters of the id of a call.
const CALL_PREFIX: &str = "call_";

/// Options of `ironctl why`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl why\n  ironctl why msg_01J9ZQ4W0V2M6N8P0R2T4V6X8Z\n  ironctl why call_01J9ZQ4W0V2M6N8P0R2T4V6X8Z\n  ironctl why req_01J9ZQ4W0V2M6N8P0R2T4V6X8Z\n  ironctl why qst_01J9ZQ4W0V2M6N8P0R2T4V6X8Z"
)]
pub struct Args {
    /// Id of the message, the call, the approval request or the question [default: your newest message]
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
    if id.starts_with(REQUEST_PREFIX) {
        return request(at, id).await;
    }
    if id.starts_with(QUESTION_PREFIX) {
        return question(at, id).await;
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
        Some(request) if !at.out.is_json() => match client.call(routes::CALL_REQUEST, [&request]).await {
            Ok(found) => at.out.line(format!("approval request: {}", standing(&found))),
            Err(Error::Refused(_)) => at.out.line(format!("approval request: {request}")),
            Err(error) => Err(error),
        },
        Some(_) | None => Ok(()),
    }
}

async fn request(at: &At, id: &str) -> Result<(), Error> {
    let request = at.client()?.call(routes::CALL_REQUEST, [&id]).await?;
    at.out.json(&request)?;
    let CallRequest { tool, class, agent, session_id, requested_by, effect, call_id, message_id, .. } = &request;
    at.out.line(format!("{id}: {tool} ({class}) of agent {agent} in {session_id}, on behalf of {requested_by}"))?;
    at.out.line(effect)?;
    let row = |reason: &RequestReason| {
        [reason.reason.to_string(), reason.decider.to_string(), reason.arguments.join(" "), reason.meaning.clone()]
    };
    at.out.table(["REASON", "DECIDED BY", "ARGUMENTS", "MEANING"], request.reasons.iter().map(row))?;
    let (asked, until) = (clock::date_and_time(&request.created_at), clock::date_and_time(&request.expires_at));
    at.out.line(format!("asked at {asked} for {message_id}, expires at {until}"))?;
    if !request.told.is_empty() {
        at.out.line(format!("people were notified in: {}", request.told.join(", ")))?;
    }
    at.out.line(standing(&request))?;
    at.out.line(format!("each stage of the call: ironctl why {call_id}"))
}

/// Prints every line of the diff of a push.
async fn diff(at: &At, id: &str) -> Result<(), Error> {
    if !id.starts_with(REQUEST_PREFIX) {
        return Err(Error::usage(format!("{id} is no approval request"), "name the request of a push: ironctl inbox"));
    }
    let diff = at.client()?.push_diff(id).await?;
    at.out.json(&diff)?;
    at.out.exact(&diff.text)?;
    match diff.left_off {
        0 => at.out.line(format!("digest of the diff: {}", diff.digest)),
        more => at.out.line(format!("{more} more lines; the digest covers them: {}", diff.digest)),
    }
}

async fn question(at: &At, id: &str) -> Result<(), Error> {
    let why = at.client()?.call(routes::WHY_QUESTION, [&id]).await?;
    at.out.json(&why)?;
    let QuestionWhy { agent, person, session_id, message_id, call_id, status, answer, .. } = &why;
    at.out.line(format!("{id}: question of agent {agent} to {person} in {session_id}: {status}"))?;
    let (asked, until) = (clock::date_and_time(&why.created_at), clock::date_and_time(&why.expires_at));
    at.out.line(format!("asked at {asked} for {message_id}, expires at {until}"))?;
    if let Some(ended) = &why.ended_at {
        let by = why.ended_by.as_ref().map(|by| format!(" by {by}")).unwrap_or_default();
        let reason = why.reason.as_deref().map(|reason| format!(": {}", prose(reason))).unwrap_or_default();
        at.out.line(format!("{status} at {}{by}{reason}", clock::date_and_time(ended)))?;
    }
    at.out.line(&why.summary)?;
    if let Some(answer) = answer {
        at.out.line(format!("the turn of the answer: ironctl why {answer}"))?;
    }
    at.out.line(format!("each stage of the call: ironctl why {call_id}"))
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
