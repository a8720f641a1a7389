//! The replies of an agent that no client of the person got before.
//!
//! Asking for them marks them as read, so each is printed once. See [`crate::commands::inbox`] for their number.

use crate::client::Client;
use crate::clock;
use crate::failure::Error;
use crate::output::Output;
use ironclaw_operator::{HistoryLine, Speaker, UnreadReply, routes};

/// Prints the unread replies of an agent, except for those among the lines that were printed. Ignores a failed request: they stay unread.
pub async fn print(out: Output, client: &Client, agent: &str, printed: &[HistoryLine]) -> Result<(), Error> {
    let Ok(unread) = client.call(routes::READ_UNREAD, [&agent]).await else { return Ok(()) };
    let is_printed = |reply: &UnreadReply| printed.iter().any(|line| line.at == reply.at && line.text == reply.text);
    for reply in unread.replies.iter().filter(|reply| !is_printed(reply)) {
        let thread = match (&reply.schedule, &reply.thread) {
            (Some(schedule), _) => format!(" of schedule {schedule}"),
            (None, Some(thread)) => format!(" in {thread}"),
            (None, None) => String::new(),
        };
        let author = if reply.author == Speaker::Host { "the host" } else { "the agent" };
        let text = reply.shown_as.as_ref().unwrap_or(&reply.text);
        out.remark(format!("unread{thread}, {}, {author}: {text}", clock::date_and_time(&reply.at)))?;
    }
    if unread.more { out.remark(format!("there are more unread replies: ironctl chat {agent}")) } else { Ok(()) }
}
