//! `ironctl quickstart`: sets up a host, gets a first answer from an agent, and shows the jail of the agent.
//!
//! Never continues on a machine that cannot jail an agent, and never replaces an existing part. See the commands that it combines:
//! [`crate::commands::init`], [`crate::commands::up`], [`crate::commands::agent`], [`crate::commands::chat`],
//! [`crate::commands::doctor`].

mod model_commands;

use super::chat::{self, final_answer};
use super::init::Made;
use super::{doctor, init, up};
use crate::at::At;
use crate::client::Client;
use crate::failure::Error;
use crate::home::Home;
use crate::jail;
use crate::own_command::own_command;
use ironclaw_contract::ids::SessionId;
use ironclaw_operator::{Attempt, JailReport, MessageView, NewAgent, NewMessage, Proof, routes};
use model_commands::ModelCommand;
use serde::Serialize;
use serde_json::{Value, json};
use std::io::{self, IsTerminal};
use std::time::Duration;

/// The first agent.
const AGENT: &str = "assistant";

/// The endpoint that answers by fixed rules, without a model.
const SCRIPTED: &str = "scripted";

/// The first message.
const GREETING: &str = "hello";

/// Time for the first answer, which includes a launch.
const ANSWER_WAIT: Duration = Duration::from_secs(120);

/// Options of `ironctl quickstart`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ironctl quickstart\n  ironctl quickstart --no-chat --json")]
pub struct Args {
    /// End after the first answer; do not start a conversation on a terminal
    #[arg(long)]
    no_chat: bool,
}

/// Runs and prints each step.
pub async fn run(at: &At, args: &Args) -> Result<(), Error> {
    let mut steps = Steps { at, taken: Vec::new() };
    let checks = up::require_jails(at)?;
    steps.add("machine", true, format!("this machine can jail agents ({checks} checks)"))?;

    let home = at.home.path().display();
    let made = init::ensure(at)?;
    steps.add("home", made != Made::Home, format!("home at {home}"))?;

    let host = up::ensure(at).await?;
    steps.add("host", host.already_running, format!("host runs as process {}", host.pid))?;

    let client = at.client()?;
    let created = ensure_agent(&client).await?;
    steps.add("agent", !created, format!("agent {AGENT}"))?;

    at.out.line(format!("\nyou> {GREETING}"))?;
    let view = greet(at.out, &client).await?;
    at.out.line(format!("{AGENT}> {}", final_answer::shown(&view)))?;

    let (pid, report) = jail_of(&client, view.session_id).await?;
    show_jail(at, pid, report.as_ref())?;

    let proof = client.call(routes::PROVE_SESSION, [&view.session_id]).await?;
    let shown = examples(&proof);
    at.out.line("\nTwo attempts in its jail, one refused and one allowed:")?;
    doctor::print_attempts(at.out, &shown)?;

    let model = client.call(routes::AGENT, [&AGENT]).await?.model;
    let commands = if model == SCRIPTED {
        model_commands::find(at, &client.call(routes::PRESETS, []).await?).await
    } else {
        Vec::new()
    };
    at.out.json(&report_json(&steps, &view, report.as_ref(), &shown, &commands))?;
    all_contained(&at.home, &proof)?;
    print_next_steps(&steps, &model, &commands)?;
    if args.no_chat || at.out.is_json() || !io::stdin().is_terminal() {
        return Ok(());
    }
    let options = chat::conversation::Options {
        agent: AGENT.to_owned(),
        thread: None,
        files: Vec::new(),
        speak_as: None,
        allow: Vec::new(),
        wait: ANSWER_WAIT,
    };
    chat::conversation::run(at, &client, options).await
}

/// Prints the report of the kernel on the process that answered, if it still runs.
fn show_jail(at: &At, pid: Option<u32>, report: Option<&JailReport>) -> Result<(), Error> {
    match report {
        Some(report) => {
            at.out.line("\nReport of the kernel on the process that answered:")?;
            let pid = pid.map(|pid| format!("process {pid}")).unwrap_or_default();
            at.out.table([AGENT, pid.as_str()], jail::rows(report))
        }
        None => at.out.line("\nThe process that answered has ended: its session is asleep."),
    }
}

/// Prints the next commands.
fn print_next_steps(steps: &Steps<'_>, model: &str, commands: &[ModelCommand]) -> Result<(), Error> {
    let at = steps.at;
    if steps.taken.iter().all(|step| step.already) {
        at.out.line("\nEverything was already set up.")?;
    }
    let me = own_command(&at.home);
    at.out.line("\nThe host runs in the background. It is not a service, so a logout may stop it.")?;
    // One command a line, so that the path of a program is not broken.
    for (does, command) in [
        ("talk to it", format!("chat {AGENT}")),
        ("stop the host", "down".to_owned()),
        ("make it a service", "service install".to_owned()),
        ("try each wall", "doctor --prove".to_owned()),
        ("try an MCP server", "mcp add demo".to_owned()),
        ("try a skill", "skill demo".to_owned()),
    ] {
        at.out.line(format!("  {does:<18} {me} {command}"))?;
    }
    if commands.is_empty() {
        at.out.line(format!("{AGENT} uses the model endpoint {model}."))?;
    } else {
        model_commands::print(at, AGENT, commands)?;
    }
    Ok(())
}

/// The steps so far.
struct Steps<'a> {
    at: &'a At,
    taken: Vec<Step>,
}

#[derive(Debug, Serialize)]
struct Step {
    step: &'static str,
    already: bool,
    found: String,
}

impl Steps<'_> {
    fn add(&mut self, step: &'static str, already: bool, found: String) -> Result<(), Error> {
        let result = if already { "ok" } else { "created" };
        self.at.out.line(format!("{result}: {found}"))?;
        self.taken.push(Step { step, already, found });
        Ok(())
    }
}

async fn ensure_agent(client: &Client) -> Result<bool, Error> {
    if client.call(routes::AGENTS, []).await?.iter().any(|agent| agent.name == AGENT) {
        return Ok(false);
    }
    let name = AGENT.to_owned();
    let wanted = NewAgent { name, model: None, persona: None, enabled_tools: None };
    client.post(routes::CREATE_AGENT, [], &wanted).await?;
    Ok(true)
}

async fn greet(out: crate::output::Output, client: &Client) -> Result<MessageView, Error> {
    let message = NewMessage { text: GREETING.to_owned(), ..NewMessage::default() };
    let recorded = client.post(routes::SEND_MESSAGE, [&AGENT], &message).await?;
    final_answer::answer(out, client, &recorded, ANSWER_WAIT).await
}

/// Returns the process of the sandbox and its report; `None` if the session is asleep again.
async fn jail_of(client: &Client, session: SessionId) -> Result<(Option<u32>, Option<JailReport>), Error> {
    let status = client.call(routes::STATUS, []).await?;
    let session = status.sessions.into_iter().find(|one| one.id == session);
    Ok(session.map_or((None, None), |session| (session.pid, session.jail)))
}

/// Returns two example attempts: one that a wall refused, and one write that is allowed.
fn examples(proof: &Proof) -> Vec<Attempt> {
    let pick = |refused: bool, word: &str| {
        let of_kind = || proof.attempts.iter().filter(move |one| one.wall.is_empty() != refused);
        of_kind().find(|one| one.name.contains(word)).or_else(|| of_kind().next()).cloned()
    };
    pick(true, "TCP").into_iter().chain(pick(false, "workspace")).collect()
}

fn all_contained(home: &Home, proof: &Proof) -> Result<(), Error> {
    match proof.breaches().next() {
        None if proof.is_controlled() => Ok(()),
        None => Err(doctor::uncontrolled(proof)),
        Some(attempt) => {
            let me = own_command(home);
            Err(Error::failed("not_contained", format!("not contained: {} ({})", attempt.name, attempt.observed))
                .hinting(format!("stop the host with `{me} down`; see `{me} doctor --prove`")))
        }
    }
}

fn report_json(
    steps: &Steps<'_>,
    view: &MessageView,
    jail: Option<&JailReport>,
    attempts: &[Attempt],
    commands: &[ModelCommand],
) -> Value {
    json!({
        "home": steps.at.home.path(),
        "agent": AGENT,
        "steps": steps.taken,
        "message": final_answer::answer_json(view),
        "jail": jail,
        "attempts": attempts,
        "next": commands,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(name: &str, wall: &str) -> Attempt {
        Attempt {
            group: String::new(),
            name: name.to_owned(),
            expected: String::new(),
            observed: String::new(),
            wall: wall.to_owned(),
            contained: true,
        }
    }

    #[test]
    fn one_refused_and_one_allowed_attempt_are_shown() {
        let attempts = vec![
            attempt("read /etc/passwd", "mounts"),
            attempt("open a TCP socket", "seccomp"),
            attempt("write into the workspace", ""),
        ];
        let shown = examples(&Proof {
            attempts,
            reader: Vec::new(),
            server: Vec::new(),
            stock: Vec::new(),
            commands: Vec::new(),
            controls: Vec::new(),
        });
        let names: Vec<&str> = shown.iter().map(|one| one.name.as_str()).collect();
        assert_eq!(names, ["open a TCP socket", "write into the workspace"]);
    }
}
