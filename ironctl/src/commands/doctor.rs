//! `ironctl doctor`: checks the machine, the installation and the host.
//!
//! Never repairs: it prints remedies. See `ironclaw-host preflight` for the checks of the machine, and
//! [`crate::commands::quickstart`].

mod audit;
mod check;
mod outside;

use super::{contract, up};
use crate::at::At;
use crate::client::Client;
use crate::failure::Error;
use crate::home::Home;
use crate::host_binary::{self, Offline};
use crate::output::Output;
use check::{failed, passed};
use ironclaw_operator::{
    Attempt, BOUNDED_OR_REPORTED, Bound, Check, DamagedSkill, Preflight, Proof, SessionPhase, Status, routes,
};
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Most breaches in the last line; the tables list all.
const BREACHES_NAMED: usize = 8;

/// Most people in a note; `ironctl person list` has all.
const PEOPLE_NAMED: usize = 8;

/// Options of `ironctl doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ironctl doctor\n  ironctl doctor --prove\n  ironctl doctor --audit")]
pub struct Args {
    /// Also run the self-test in the jail of a session, with a negative control; needs a running host with a session
    #[arg(long)]
    prove: bool,
    /// Rate the configuration of the home instead, with the command that mends each finding; needs an owner
    #[arg(long, conflicts_with = "prove")]
    audit: bool,
}

/// Prints every check and the attempts of the self-test; fails if one fails.
pub async fn run(at: &At, args: &Args) -> Result<(), Error> {
    if args.audit {
        return audit::run(at).await;
    }
    let mut checks = binaries();
    match preflight(Some(&at.home)) {
        Ok(preflight) => checks.extend(preflight.checks),
        Err(error) => checks.push(failed("preflight", &error, "run `ironclaw-host preflight` for details")),
    }
    checks.extend(permissions(&at.home));
    let host = up::answering(&at.home).await;
    checks.push(host_check(at, &host));
    if let Ok(Some((client, _))) = &host {
        checks.push(readiness(client).await);
        checks.extend(outside::checks(at).await);
    }
    let status = host.as_ref().ok().and_then(|host| host.as_ref().map(|(_, status)| status));
    checks.push(fingerprints(status));
    checks.extend(status.map(guards));
    checks.extend(status.map(skills));
    checks.extend(status.and_then(zone));
    checks.extend(status.into_iter().flat_map(bounds));
    checks.extend(status.and_then(places));
    checks.extend(status.and_then(contexts));
    let proof = match (args.prove, host) {
        (false, _) => None,
        (true, Ok(Some((client, status)))) => Some(prove(&client, &status).await?),
        (true, Ok(None)) => {
            return Err(Error::Unreachable { home: at.home.path().to_owned() });
        }
        (true, Err(error)) => return Err(error),
    };
    let checks_pass = checks.iter().all(|check| check.ok);
    let proof_passes = proof.as_ref().is_none_or(|proof| proof.breaches().next().is_none() && proof.is_controlled());
    at.out.json(&report_json(checks_pass && proof_passes, &checks, proof.as_ref()))?;
    print_checks(at.out, &checks)?;
    if let Some(proof) = &proof {
        print_proof(at.out, proof)?;
    }
    verdict(&checks, proof.as_ref())
}

/// Returns the checks of the host's binary on whether this machine can jail an agent, with the settings of a home if named.
pub fn preflight(home: Option<&Home>) -> Result<Preflight, Error> {
    let mut command = Offline::host(&["preflight"])?;
    if let Some(home) = home {
        command = command.at(home);
    }
    let output = command.json(true).capture()?;
    serde_json::from_slice(&output.stdout).map_err(|cause| {
        let message = format!("the output of {} preflight has an unexpected shape", host_binary::HOST);
        Error::failed("preflight_unclear", message).because(cause)
    })
}

/// Prints the attempts of a self-test as a table.
pub fn print_attempts(out: Output, attempts: &[Attempt]) -> Result<(), Error> {
    let rows = attempts.iter().cloned().map(|attempt| {
        let verdict = match (attempt.contained, attempt.expected == BOUNDED_OR_REPORTED) {
            (true, false) => "pass",
            (true, true) => "reported",
            (false, _) => "NOT CONTAINED",
        };
        [attempt.name, attempt.expected, attempt.observed, attempt.wall, verdict.to_owned()]
    });
    out.table(["ATTEMPT", "EXPECTED", "OBSERVED", "WALL", "VERDICT"], rows)
}

/// Creates the error of a self-test that did not notice a missing wall, so its result proves nothing.
pub fn uncontrolled(proof: &Proof) -> Error {
    let missed: Vec<&str> =
        proof.controls.iter().filter(|control| !control.caught).map(|control| control.wall.as_str()).collect();
    let what = match missed.as_slice() {
        [] => "there was no negative control".to_owned(),
        missed => format!("a jail without {} was not noticed", missed.join(", ")),
    };
    Error::failed("proves_nothing", format!("the self-test proves nothing: {what}"))
        .hinting("install ironctl and ironclaw-host from one release")
}

/// Returns the report for a script: the attempts of the agent's jail and, separately, those of an agent's jail from stock, and of the jails of the
/// reader, of an MCP server, and of a command that reaches the network.
fn report_json(ok: bool, checks: &[Check], proof: Option<&Proof>) -> Value {
    let mut report = json!({ "ok": ok, "checks": checks });
    if let Some(proof) = proof {
        report["attempts"] = json!(proof.attempts);
        report["stock"] = json!(proof.stock);
        report["reader"] = json!(proof.reader);
        report["server"] = json!(proof.server);
        report["commands"] = json!(proof.commands);
        report["controls"] = json!(proof.controls);
    }
    report
}

/// Prints the attempts in the agent's jail by group, the failed attempts in the other jails, and the negative controls.
fn print_proof(out: Output, proof: &Proof) -> Result<(), Error> {
    let mut groups: Vec<(&str, Vec<Attempt>)> = Vec::new();
    for attempt in &proof.attempts {
        match groups.iter_mut().find(|(group, _)| *group == attempt.group) {
            Some((_, attempts)) => attempts.push(attempt.clone()),
            None => groups.push((&attempt.group, vec![attempt.clone()])),
        }
    }
    for (group, attempts) in groups {
        out.line(format!("\n{group}"))?;
        print_attempts(out, &attempts)?;
    }
    let held = |attempts: &[Attempt]| attempts.iter().filter(|attempt| attempt.contained).count();
    let agent = &proof.attempts;
    out.line(format!("\nagent's jail: {} of {} attempts pass", held(agent), agent.len()))?;
    let others = [
        ("stocked", &proof.stock),
        ("reader's", &proof.reader),
        ("MCP server's", &proof.server),
        ("network command's", &proof.commands),
    ];
    for (jail, attempts) in others {
        if attempts.is_empty() {
            continue;
        }
        out.line(format!("{jail} jail: {} of {} attempts pass", held(attempts), attempts.len()))?;
        let breaches: Vec<Attempt> = attempts.iter().filter(|attempt| !attempt.contained).cloned().collect();
        if !breaches.is_empty() {
            print_attempts(out, &breaches)?;
        }
    }
    for control in &proof.controls {
        let wall = &control.wall;
        out.line(match control.caught {
            true => format!(
                "negative control: {} attempts noticed a jail without {wall} ({}, …)",
                control.noticed,
                control.by.join(", ")
            ),
            false => format!("negative control: NO ATTEMPT NOTICED a jail without {wall}"),
        })?;
    }
    Ok(())
}

fn print_checks(out: Output, checks: &[Check]) -> Result<(), Error> {
    let rows = checks.iter().cloned().map(|check| {
        let mark = if check.ok { "ok" } else { "WRONG" };
        [mark.to_owned(), check.name, check.found, check.remedy]
    });
    out.table(["", "CHECK", "FOUND", "REMEDY"], rows)
}

/// Returns the failure that sums up the failed checks and attempts; the tables have the details.
fn verdict(checks: &[Check], proof: Option<&Proof>) -> Result<(), Error> {
    let escapes: Vec<String> = proof
        .iter()
        .flat_map(|proof| proof.breaches())
        .map(|attempt| format!("{} (the wall: {})", attempt.name, attempt.wall))
        .collect();
    if !escapes.is_empty() {
        let more = match escapes.len().checked_sub(BREACHES_NAMED) {
            Some(more @ 1..) => format!(", and {more} more"),
            _ => String::new(),
        };
        let first: Vec<&str> = escapes.iter().take(BREACHES_NAMED).map(String::as_str).collect();
        return Err(Error::failed("not_contained", format!("not contained: {}{more}", first.join(", ")))
            .hinting("stop the host with `ironctl down` and report it"));
    }
    if let Some(proof) = proof.filter(|proof| !proof.is_controlled()) {
        return Err(uncontrolled(proof));
    }
    let failed: Vec<&Check> = checks.iter().filter(|check| !check.ok).collect();
    let Some(first) = failed.first() else {
        return Ok(());
    };
    let names: Vec<&str> = failed.iter().map(|check| check.name.as_str()).collect();
    Err(Error::failed("unwell", format!("failed checks: {}", names.join(", "))).hinting(first.remedy.as_str()))
}

/// Runs the self-test; prefers a session that is awake, because it needs no launch.
async fn prove(client: &Client, status: &Status) -> Result<Proof, Error> {
    let sessions = &status.sessions;
    let in_state = |state| sessions.iter().find(move |session| session.state == state);
    let session = in_state(SessionPhase::Awake).or_else(|| in_state(SessionPhase::Asleep)).ok_or_else(|| {
        Error::failed("no_session", "there is no session for the self-test")
            .hinting("start one with `ironctl chat AGENT hello`")
    })?;
    client.call(routes::PROVE_SESSION, [&session.id]).await
}

fn binaries() -> Vec<Check> {
    let check = |name| match host_binary::find(name) {
        Ok(path) => passed(name, path.display().to_string()),
        Err(error) => failed(name, &error, "install it into the directory of ironctl"),
    };
    [host_binary::HOST, host_binary::SANDBOX].map(check).into()
}

fn host_check(at: &At, host: &Result<Option<(Client, Status)>, Error>) -> Check {
    const NAME: &str = "host";
    match host {
        Ok(Some((_, status))) => {
            passed(NAME, format!("process {} answers, version {}", status.host.pid, status.host.version))
        }
        Ok(None) => Check {
            name: NAME.to_owned(),
            ok: false,
            found: format!("no host answers at {}", at.home.path().display()),
            remedy: "ironctl up --detach".to_owned(),
        },
        Err(error) => failed(NAME, error, "look at `ironctl logs`"),
    }
}

/// Checks that the host accepts messages and works on them; a failure has the reason of the host.
async fn readiness(client: &Client) -> Check {
    const NAME: &str = "readiness";
    match client.send(routes::READINESS, []).await {
        Ok(()) => passed(NAME, "the host accepts messages and works on them".to_owned()),
        Err(error) => failed(NAME, &error, "look at `ironctl logs`"),
    }
}

/// Checks that no agent runs in a dangerous mode.
fn guards(status: &Status) -> Check {
    const NAME: &str = "guard modes";
    let Some(first) = status.lowered.first() else {
        return passed(NAME, "every agent is in mode enforce".to_owned());
    };
    let named: Vec<String> =
        status.lowered.iter().map(|guard| format!("{} is in mode {}", guard.agent, guard.mode)).collect();
    Check {
        name: NAME.to_owned(),
        ok: false,
        found: named.join(", "),
        remedy: format!("ironctl agent set {} --mode enforce", first.agent),
    }
}

/// Checks that the files of every agent's skills are whole.
fn skills(status: &Status) -> Check {
    const NAME: &str = "skills";
    let Some(first) = status.damaged_skills.first() else {
        return passed(NAME, "the files of every skill of an agent are whole".to_owned());
    };
    let named =
        |skill: &DamagedSkill| format!("{} {} of {} is damaged", skill.name, skill.version, skill.agents.join(", "));
    Check {
        name: NAME.to_owned(),
        ok: false,
        found: status.damaged_skills.iter().map(named).collect::<Vec<_>>().join("; "),
        remedy: format!("ironctl skill show {} --version {}", first.name, first.version),
    }
}

/// Returns the time zone of the host, with the doubt about it; a doubt is no failure. `None` from a host of an earlier version.
fn zone(status: &Status) -> Option<Check> {
    const NAME: &str = "time zone";
    let (zone, doubt) = (&status.host.zone, &status.host.zone_doubt);
    if zone.is_empty() {
        return None;
    }
    Some(match doubt {
        None => passed(NAME, format!("{zone}, for prompts, schedules and lists")),
        Some(doubt) => Check {
            name: NAME.to_owned(),
            ok: true,
            found: format!("{zone}, for prompts, schedules and lists, but {doubt}"),
            remedy: "set `zone` below [time] in config.toml, then `ironctl config reload`".to_owned(),
        },
    })
}

/// Returns a note for each bound of which most is used; it is no failure.
fn bounds(status: &Status) -> Vec<Check> {
    let note =
        |bound: &Bound| Check { name: "bound".to_owned(), ok: true, found: bound.to_string(), remedy: bound.advice() };
    status.bounds.iter().map(note).collect()
}

/// Returns a note with the people who have no place where they are told; it is no failure.
fn places(status: &Status) -> Option<Check> {
    let without = &status.without_place;
    let first = without.first()?;
    let more = match without.len().checked_sub(PEOPLE_NAMED) {
        Some(more @ 1..) => format!(", and {more} more"),
        _ => String::new(),
    };
    let named: Vec<&str> = without.iter().take(PEOPLE_NAMED).map(String::as_str).collect();
    Some(Check {
        name: "places to be told".to_owned(),
        ok: true,
        found: format!("told nowhere about requests and incidents: {}{more}", named.join(", ")),
        remedy: format!("ironctl person set {first} --notify CHANNEL"),
    })
}

/// Returns a note about model endpoints that read less than the host would send; it is no failure, because the host sends less.
fn contexts(status: &Status) -> Option<Check> {
    let first = status.small_contexts.first()?;
    let sentences: Vec<&str> = status.small_contexts.iter().map(|small| small.sentence.as_str()).collect();
    Some(Check {
        name: "contexts of models".to_owned(),
        ok: true,
        found: sentences.join("; "),
        remedy: format!("ironctl model set {} --context TOKENS", first.model),
    })
}

/// Checks that the host's binary, the sandbox's binary and the running host have the same contract.
fn fingerprints(status: Option<&Status>) -> Check {
    const NAME: &str = "contract fingerprint";
    let both = contract::host_fingerprint().and_then(|host| Ok((host, contract::sandbox_fingerprint()?)));
    let (host, sandbox) = match both {
        Ok(both) => both,
        Err(error) => return failed(NAME, &error, "install both binaries from one release"),
    };
    let differs = |found, remedy: &str| Check { name: NAME.to_owned(), ok: false, found, remedy: remedy.to_owned() };
    if host != sandbox {
        let found = format!("{} has {host}, {} has {sandbox}", host_binary::HOST, host_binary::SANDBOX);
        return differs(found, "install both binaries from one release");
    }
    match status {
        Some(status) if status.host.fingerprint != host => differs(
            format!("the running host has {}, its binary has {host}", status.host.fingerprint),
            "ironctl down && ironctl up --detach",
        ),
        Some(_) | None => passed(NAME, host),
    }
}

/// Checks that only the owner can access the home.
fn permissions(home: &Home) -> Vec<Check> {
    let own = nix::unistd::Uid::effective().as_raw();
    [home.path(), &home.token_file()].into_iter().filter_map(|path| private(path, own)).collect()
}

/// Checks a path; `None` if it does not exist yet.
fn private(path: &Path, own: u32) -> Option<Check> {
    let name = format!("permissions of {}", path.display());
    let meta = match fs::symlink_metadata(path) {
        Ok(meta) => meta,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return None,
        Err(cause) => {
            let error = Error::failed("unreadable", "cannot read its metadata").because(cause);
            return Some(failed(&name, &error, "run it as the owner of the home"));
        }
    };
    let mode = meta.mode() & 0o7777;
    let found = format!("mode {mode:04o}, owner {}", meta.uid());
    if meta.uid() != own {
        let remedy = "run ironctl as the owner of the home".to_owned();
        return Some(Check { name, ok: false, found, remedy });
    }
    let ok = mode & 0o077 == 0;
    let remedy = if ok { String::new() } else { format!("chmod go= {}", path.display()) };
    Some(Check { name, ok, found, remedy })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn home_that_others_can_read_fails_with_the_remedy() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let own = nix::unistd::Uid::effective().as_raw();
        let set = |mode| fs::set_permissions(directory.path(), fs::Permissions::from_mode(mode));
        set(0o750).expect("own directory");
        let check = private(directory.path(), own).expect("it is there");
        assert!(!check.ok);
        assert_eq!(check.remedy, format!("chmod go= {}", directory.path().display()));
        set(0o700).expect("own directory");
        assert!(private(directory.path(), own).expect("it is there").ok);
        assert!(!private(directory.path(), own + 1).expect("it is there").ok);
    }
}
