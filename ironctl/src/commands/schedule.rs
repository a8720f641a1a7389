//! `ironctl schedule`: adds, changes, lists, runs, pauses, resumes and removes the schedules of agents.
//!
//! Never adds or changes one itself: the change goes through the gateway. See [`crate::commands::propose`].

use super::propose;
use crate::at::At;
use crate::failure::Error;
use crate::output::table::Columns;
use clap::{ArgGroup, Subcommand};
use ironclaw_operator::{
    ChangeKind, DryRun, Occurrence, OccurrenceState, ScheduleFlow, ScheduleState, ScheduleView, Waiting, routes,
};
use serde_json::{Value, json};

/// The beginning of the addresses on this host.
const LOOPBACK: &str = "loopback:";

/// The verbs of `ironctl schedule`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Give an agent a prompt at given times
    Add(Add),
    /// List schedules, of all agents or of one
    #[command(after_help = "Example:\n  ironctl schedule list\n  ironctl schedule list assistant")]
    List {
        /// Name or id of the agent
        agent: Option<String>,
    },
    /// Show a schedule
    #[command(after_help = "Example:\n  ironctl schedule show report")]
    Show {
        /// Name or id of the schedule
        id: String,
    },
    /// Change a schedule of yours; what you do not name stays, and its next time counts from now
    Set(Set),
    /// Start a run now, or show the next ten times with --dry-run
    #[command(after_help = "Example:\n  ironctl schedule run report\n  ironctl schedule run report --dry-run")]
    Run {
        /// Name or id of the schedule
        id: String,
        /// Start nothing: show the next ten times, and what a run may do
        #[arg(long)]
        dry_run: bool,
    },
    /// Pause a schedule
    #[command(after_help = "Example:\n  ironctl schedule pause report")]
    Pause {
        /// Name or id of the schedule
        id: String,
    },
    /// Resume a paused schedule; times that passed do not run
    #[command(after_help = "Example:\n  ironctl schedule resume report")]
    Resume {
        /// Name or id of the schedule
        id: String,
    },
    /// Show the occurrences of a schedule, oldest first
    #[command(after_help = "Example:\n  ironctl schedule history report")]
    History {
        /// Name or id of the schedule
        id: String,
    },
    /// Remove a schedule; its history stays
    #[command(after_help = "Example:\n  ironctl schedule remove report")]
    Remove {
        /// Name or id of the schedule
        id: String,
    },
}

/// Options of `ironctl schedule add`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl schedule add assistant report --every 1d --zone Europe/Berlin\n  ironctl schedule add assistant 'water' --every 2d --catch-up once --may write\n  ironctl schedule add assistant 'call' --at 2027-03-01T08:00\n  ironctl schedule add assistant 'report' --every 1w --send-to me --from /notes"
)]
pub struct Add {
    /// Name or id of the agent
    agent: String,
    /// The prompt that the agent gets
    prompt: String,
    #[command(flatten)]
    options: Options,
    /// Approve the change without a question
    #[arg(long)]
    yes: bool,
}

/// Options of `ironctl schedule set`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl schedule set report --every 12h\n  ironctl schedule set report --catch-up all"
)]
pub struct Set {
    /// Name or id of the schedule
    id: String,
    /// The new prompt
    #[arg(long)]
    prompt: Option<String>,
    #[command(flatten)]
    options: Options,
    /// Let a run only read and answer
    #[arg(long, conflicts_with_all = ["may", "ways"])]
    may_only_read: bool,
    /// Let each run begin anew
    #[arg(long, conflicts_with = "continues")]
    fresh: bool,
    /// Approve the change without a question
    #[arg(long)]
    yes: bool,
}

/// The settings of a schedule.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("ways").args(["send_to", "send_file_to"]).multiple(true))]
pub struct Options {
    /// Times: a cron expression of five fields, in the time of the zone
    #[arg(long, group = "times")]
    cron: Option<String>,
    /// Times: a period such as 90m, 2h, 1d, 1w, hourly, daily or weekly
    #[arg(long, group = "times", value_name = "PERIOD")]
    every: Option<String>,
    /// One time: RFC 3339, or a local time of the zone such as 2027-03-01T08:00
    #[arg(long, group = "times", value_name = "TIME")]
    at: Option<String>,
    /// First time of --cron or --every, which follow it
    #[arg(long, value_name = "TIME", conflicts_with = "at")]
    first: Option<String>,
    /// Time zone, such as Europe/Berlin [default: that of the host]
    #[arg(long)]
    zone: Option<String>,
    /// Times that pass while the host is stopped: skip, once (the last of them) or all [default: skip]
    #[arg(long, value_name = "POLICY", value_parser = ["skip", "once", "all"])]
    catch_up: Option<String>,
    /// A class (write, send, exec) or a tool that a run may use without a question; repeatable [default: reading alone]
    #[arg(long, value_name = "CLASS|TOOL")]
    may: Vec<String>,
    /// A destination of the agent with an address of yours, to which a run may send without a question; repeatable
    #[arg(long, value_name = "DESTINATION")]
    send_to: Vec<String>,
    /// The same for a text file that the run wrote, in place of messages; repeatable
    #[arg(long, value_name = "NAME")]
    send_file_to: Vec<String>,
    /// A directory that the agent has read-only, whose text may go to each --send-to and --send-file-to; repeatable
    #[arg(long, value_name = "DIRECTORY", requires = "ways")]
    from: Vec<String>,
    /// Let the runs continue one conversation [default: each run begins anew]
    #[arg(long = "continue", conflicts_with = "ways")]
    continues: bool,
    /// Name for all commands, in place of the id [default: the first words of the prompt]
    #[arg(long)]
    name: Option<String>,
    /// Conversation of the replies, as CHANNEL:ADDRESS or the name of a destination of the agent [default: your chat with the agent]
    #[arg(long, value_name = "DESTINATION")]
    reply_to: Option<String>,
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    let client = at.client()?;
    match action {
        Action::Add(args) => add(at, args).await,
        Action::Set(args) => set(at, args).await,
        Action::List { agent } => list(at, client.query(routes::SCHEDULES, [], json!({ "agent": agent })).await?),
        Action::Show { id } => {
            let found = client.call(routes::SCHEDULE, [&id]).await?;
            at.out.json(&found)?;
            print(at, &found)
        }
        Action::Run { id, dry_run: true } => dry_run(at, &client.call(routes::NEXT_RUNS, [&id]).await?),
        Action::Run { id, dry_run: false } => {
            let started = client.call(routes::RUN_SCHEDULE, [&id]).await?;
            at.out.json(&started)?;
            let reason = started.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
            at.out.line(format!("{} {}{reason}", started.due, started.state))?;
            match started.state {
                OccurrenceState::Started | OccurrenceState::Done => Ok(()),
                state => {
                    let not_run = Error::failed("schedule_not_run", format!("the run was {state}{reason}"));
                    // The next times name the remedy. Without an answer the failure has no hint.
                    let next = client.call(routes::NEXT_RUNS, [&id]).await;
                    Err(match next.ok().and_then(|next| next.remedy) {
                        Some(remedy) => not_run.hinting(remedy),
                        None => not_run.hinting(format!("ironctl schedule history {id}")),
                    })
                }
            }
        }
        Action::Pause { id } => changed(at, client.call(routes::PAUSE_SCHEDULE, [&id]).await?),
        Action::Resume { id } => changed(at, client.call(routes::RESUME_SCHEDULE, [&id]).await?),
        Action::History { id } => history(at, client.call(routes::OCCURRENCES, [&id]).await?),
        Action::Remove { id } => changed(at, client.call(routes::REMOVE_SCHEDULE, [&id]).await?),
    }
}

async fn add(at: &At, args: Add) -> Result<(), Error> {
    let Add { agent, prompt, options, yes } = args;
    if options.cron.is_none() && options.every.is_none() && options.at.is_none() {
        return Err(Error::usage("no times", "give --cron, --every or --at"));
    }
    if options.zone.is_none() {
        remark_on_zone(at).await?;
    }
    let mut payload = json!({ "prompt": prompt });
    put(at, &agent, &mut payload, options).await?;
    let Some(change) = decide(at, &agent, payload, yes).await? else { return Ok(()) };
    let all = at.client()?.query(routes::SCHEDULES, [], json!({ "agent": agent })).await?;
    let Some(added) = all.into_iter().find(|schedule| change.entry.id == schedule.change.into()) else {
        return Err(Error::failed("schedule_not_added", "the host did not add the schedule"));
    };
    changed(at, added)
}

async fn set(at: &At, args: Set) -> Result<(), Error> {
    let Set { id, prompt, options, may_only_read, fresh, yes } = args;
    let client = at.client()?;
    let ScheduleView { id, agent, .. } = client.call(routes::SCHEDULE, [&id]).await?;
    let mut payload = json!({ "id": id });
    if let Some(prompt) = prompt {
        payload["prompt"] = prompt.into();
    }
    put(at, &agent, &mut payload, options).await?;
    if may_only_read {
        payload["may"] = json!([]);
        payload["flows"] = json!([]);
    }
    if fresh {
        payload["context"] = "fresh".into();
    }
    if decide(at, &agent, payload, yes).await?.is_none() {
        return Ok(());
    }
    changed(at, client.call(routes::SCHEDULE, [&id.to_string()]).await?)
}

async fn decide(at: &At, agent: &str, payload: Value, yes: bool) -> Result<Option<Waiting>, Error> {
    propose::decide(at, &at.client()?, ChangeKind::Schedule, Some(agent), payload, yes).await
}

/// Writes the given settings into the payload of a change.
async fn put(at: &At, agent: &str, payload: &mut Value, options: Options) -> Result<(), Error> {
    if let Some(named) = &options.reply_to {
        payload["reply_to"] = place(at, agent, named).await?;
    }
    let Options {
        cron,
        every,
        at,
        first,
        zone,
        catch_up,
        may,
        send_to,
        send_file_to,
        from,
        continues,
        name,
        reply_to: _,
    } = options;
    if first.is_some() && cron.is_none() && every.is_none() {
        return Err(Error::usage("--first is the first time of a recurrence", "give --cron or --every too"));
    }
    let first = first.map(|first| format!(" from {first}")).unwrap_or_default();
    let [cron, every] = [cron, every].map(|text| text.map(|text| format!("{text}{first}")));
    let times = [("cron", cron), ("every", every), ("at", at)];
    for (field, value) in times.into_iter().chain([("zone", zone), ("catch_up", catch_up), ("name", name)]) {
        if let Some(value) = value {
            payload[field] = value.into();
        }
    }
    if !may.is_empty() {
        payload["may"] = json!(may);
    }
    if !(send_to.is_empty() && send_file_to.is_empty()) {
        let from: Vec<Value> = from.iter().map(|directory| json!({ "directory": directory })).collect();
        let message = |to: &String| json!({ "to": to, "from": from });
        let file = |to: &String| json!({ "to": to, "from": from, "tool": "send_file" });
        payload["flows"] = send_to.iter().map(message).chain(send_file_to.iter().map(file)).collect();
    }
    if continues {
        payload["context"] = "continue".into();
    }
    Ok(())
}

/// Names the time zone of a schedule without one, if that of the host is not sure.
async fn remark_on_zone(at: &At) -> Result<(), Error> {
    // A member may not read the status, and sees the zone on the page.
    let Ok(status) = at.client()?.call(routes::STATUS, []).await else { return Ok(()) };
    match status.host.zone_doubt {
        Some(doubt) => at.out.remark(format!(
            "the times are in {}, but {doubt}: give --zone, or set `zone` below [time] in config.toml",
            status.host.zone
        )),
        None => Ok(()),
    }
}

/// Returns the conversation CHANNEL:ADDRESS, or that of a destination of the agent.
async fn place(at: &At, agent: &str, named: &str) -> Result<Value, Error> {
    match named.split_once(':') {
        Some((channel, address)) if !channel.is_empty() && !address.is_empty() => {
            return Ok(json!({ "channel": channel, "address": address }));
        }
        Some(_) => {
            return Err(Error::usage(format!("--reply-to {named:?} has no address"), "write CHANNEL:ADDRESS"));
        }
        None => {}
    }
    let held = at.client()?.call(routes::DESTINATIONS_OF_AGENT, [&agent]).await?;
    let Some(found) = held.into_iter().find(|held| held.name == named && held.to_agent.is_none()) else {
        let hint = format!("write CHANNEL:ADDRESS, or an address of `ironctl destination list {agent}`");
        return Err(Error::usage(format!("--reply-to {named:?} names no address"), hint));
    };
    let mut place = json!({ "channel": found.channel, "address": found.address });
    if let Some(thread) = found.thread {
        place["thread"] = thread.into();
    }
    Ok(place)
}

fn changed(at: &At, schedule: ScheduleView) -> Result<(), Error> {
    at.out.json(&schedule)?;
    let next = schedule.next_local.map(|next| format!("; next: {next}")).unwrap_or_default();
    let ScheduleView { name, id, agent, state, .. } = schedule;
    at.out.line(format!("schedule {name} of {agent} is {state}{next} ({id})"))
}

/// Returns whether the runs of a schedule fail, or the host paused it.
pub fn needs_person(schedule: &ScheduleView) -> bool {
    let is_failing = schedule.failing_since.is_some() && schedule.state != ScheduleState::Removed;
    is_failing || schedule.remedy.is_some()
}

/// Returns the state of a schedule in words, with the end of its last run if that is no success. A mark is in front of a state that needs
/// a person.
pub fn state_in_words(schedule: &ScheduleView) -> String {
    let because = |reason: &Option<String>| reason.as_deref().map(|reason| format!(" ({reason})")).unwrap_or_default();
    let state = format!("{}{}", schedule.state, because(&schedule.reason));
    let last = schedule.last.as_ref().filter(|last| last.state != OccurrenceState::Done);
    if !needs_person(schedule) {
        return last.map_or(state.clone(), |last| format!("{state}, last {}{}", last.state, because(&last.reason)));
    }
    if schedule.failing_since.is_none() {
        return format!("! {state}");
    }
    let failing = format!("failing{}", last.map(|last| because(&last.reason)).unwrap_or_default());
    if schedule.state == ScheduleState::Active { format!("! {failing}") } else { format!("! {state}, {failing}") }
}

fn list(at: &At, mut all: Vec<ScheduleView>) -> Result<(), Error> {
    // Those that need a person come first.
    all.sort_by_key(|schedule| !needs_person(schedule));
    let row = |schedule: ScheduleView| {
        let state = state_in_words(&schedule);
        let next = schedule.next_local.unwrap_or_else(|| "-".to_owned());
        let id = schedule.id.to_string();
        [schedule.name, schedule.agent, schedule.creator, schedule.recurrence, state, next, id]
    };
    let none = "no schedules; add one with `ironctl schedule add AGENT PROMPT --every 1d`";
    let columns = Columns::new(["NAME", "AGENT", "CREATOR", "TIMES", "STATE", "NEXT", "ID"]);
    at.out.list(all, none, columns.with_least(&["ID"]), row)
}

fn print(at: &At, schedule: &ScheduleView) -> Result<(), Error> {
    let failing = schedule.failing_since.as_deref().unwrap_or("-");
    let lines = [
        ("schedule", format!("{} ({})", schedule.name, schedule.id)),
        ("agent", schedule.agent.clone()),
        ("creator", schedule.creator.clone()),
        ("times", format!("{} ({})", schedule.recurrence, schedule.zone)),
        ("catch-up", schedule.catch_up.to_string()),
        ("context", schedule.context.to_string()),
        ("may", listed(&schedule.may)),
        ("replies to", replies(schedule)),
        ("state", state_in_words(schedule)),
        ("next", schedule.next_local.clone().unwrap_or_else(|| "-".to_owned())),
        ("failing since", failing.to_owned()),
        ("written by", schedule.written_by.to_string()),
        ("prompt", schedule.prompt.clone()),
    ];
    lines.into_iter().try_for_each(|(name, value)| at.out.line(format!("{name}: {value}")))?;
    if let Some(remedy) = &schedule.remedy {
        at.out.line(format!("remedy: {remedy}"))?;
    }
    flows(at, &schedule.flows)
}

/// Returns the conversation of the replies, with the command that shows those on this host.
fn replies(schedule: &ScheduleView) -> String {
    match schedule.reply_to.starts_with(LOOPBACK) {
        true => format!("{} (ironctl chat {} shows them)", schedule.reply_to, schedule.agent),
        false => schedule.reply_to.clone(),
    }
}

/// Prints each way out of a run.
fn flows(at: &At, flows: &[ScheduleFlow]) -> Result<(), Error> {
    flows.iter().try_for_each(|flow| {
        let ScheduleFlow { tool, to, recipient, from, lost } = flow;
        let from = if from.is_empty() { "no directory".to_owned() } else { from.join(" ") };
        let lost = lost.as_ref().map(|lost| format!(" (no longer: {lost})")).unwrap_or_default();
        at.out.line(format!("sends to: {to} ({recipient}) by {tool}, text of {from}{lost}"))
    })
}

fn listed(may: &[String]) -> String {
    if may.is_empty() { "read".to_owned() } else { format!("read {}", may.join(" ")) }
}

fn dry_run(at: &At, dry: &DryRun) -> Result<(), Error> {
    at.out.json(dry)?;
    at.out.table(["DUE", "LOCAL"], dry.next.iter().map(|next| [next.due.clone(), next.local.clone()]))?;
    at.out.line(format!("a run may: {}", listed(&dry.may)))?;
    flows(at, &dry.flows)?;
    at.out.line(format!("replies go to: {}", dry.reply_to))?;
    match &dry.refused {
        Some(reason) => {
            let remedy = dry.remedy.as_deref().map(|remedy| format!("; {remedy}")).unwrap_or_default();
            at.out.line(format!("a run would not start now: {reason}{remedy}"))
        }
        None => Ok(()),
    }
}

fn history(at: &At, all: Vec<Occurrence>) -> Result<(), Error> {
    let row = |found: Occurrence| {
        let count = if found.count > 1 { format!(" ×{}", found.count) } else { String::new() };
        let message = found.message.map(|message| message.to_string()).unwrap_or_default();
        let (reason, receipt) = (found.reason.unwrap_or_default(), found.receipt.unwrap_or_default());
        [found.due_local, format!("{}{count}", found.state), reason, message, receipt]
    };
    at.out.list(all, "no occurrences yet", ["DUE", "STATE", "REASON", "MESSAGE", "RECEIPT"], row)
}
