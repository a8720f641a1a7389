//! The check of a session's walls: it launches the session's jail, its reader's and an MCP server's with the probe in place of the
//! program.
//!
//! Gives the probe no key that opens anything, and touches neither the session's queues nor its turns. The ledger has the result. See
//! [`ironclaw_jail::self_test`].

use crate::reach::mcp_jail;
use crate::runtime::Runtime;
use crate::runtime::actor::Actor;
use crate::runtime::launch::{self, Jails, link_pair, make_run_directory};
use crate::runtime::link::{self, Link, LinkEvent};
use crate::sessions::store::Session;
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::seam::crypt::SessionKey;
use ironclaw_contract::seam::link::TurnLimits;
use ironclaw_jail::launcher::Exit;
use ironclaw_jail::self_test::{self, HostTargets};
use ironclaw_jail::{Probe, Role, Spec};
use ironclaw_ledger::Entry;
use ironclaw_operator::{Attempt, LedgerEvent, Proof, Run};
use ironclaw_state::home;
use ironclaw_store::error::Error;
use std::path::PathBuf;
use std::time::Duration;

/// The longest time until a probe on the link exits after the host closed the link.
const END_TIME_MAX: Duration = Duration::from_secs(10);
/// The number of breaches that the ledger names.
const NAMES_MAX: usize = 8;
/// The wall that stops a second request for the key.
const PROTOCOL: &str = "link protocol";

impl Actor {
    /// Runs the self-test for this session's walls and records the result; an error gives the reason for no result. An emergency stop
    /// ends it at once, because the actor handles no other event meanwhile.
    pub(crate) async fn prove(&self, session: &Session, by: PersonId) -> Result<Proof, String> {
        let Runtime { jails, latch, turns, .. } = &*self.runtime;
        let made = tokio::select! {
            biased;
            // Dropping the future ends the launched jails and prevents further launches.
            () = latch.shut() => Err("an emergency stop came before the self-test finished".to_owned()),
            made = run_self_test(jails, turns.config().limits(), session) => made,
        };
        let entry = match &made {
            Ok(proof) if proof.breaches().next().is_none() && proof.is_controlled() => {
                Entry::new(LedgerEvent::JailProved)
            }
            Ok(proof) => Entry::new(LedgerEvent::JailNotProved).reason(&failure(proof)),
            Err(why) => Entry::new(LedgerEvent::JailNotProved).reason(why),
        };
        let attempts = made.as_ref().map_or(0, |proof| proof.all_attempts().count());
        let entry = entry.session(session.id).with("by", by).with("attempts", attempts);
        let recorded = self.state().write(move |tx| entry.append(tx).map(drop).map_err(Error::from)).await;
        recorded.map_err(|error| error.to_string())?;
        made
    }
}

/// Returns the reason that a proof fails, in the host's own words.
fn failure(proof: &Proof) -> String {
    let names: Vec<&str> = proof.breaches().map(|attempt| attempt.name.as_str()).collect();
    match names.as_slice() {
        [] => "the negative control was not caught".to_owned(),
        [first @ .., _] if first.len() >= NAMES_MAX => {
            format!("{} not contained, first {}", names.len(), names[..NAMES_MAX].join(", "))
        }
        _ => format!("not contained: {}", names.join(", ")),
    }
}

async fn run_self_test(jails: &Jails, limits: TurnLimits, session: &Session) -> Result<Proof, String> {
    let (spec, reader) = prepared(jails, session).await.map_err(|error| error.to_string())?;
    let surroundings = HostTargets { host_socket: api_socket(jails), host_files: host_files(jails, session) };
    let state = jails.config.runtime.join(format!("self-test-{}", session.uid_offset));
    let server = mcp_jail::without_program(&state, jails.fetcher()).map_err(|error| error.to_string())?;
    // A machine that runs no server runs no command either.
    let commands = server.as_ref().map(|_| jails.command_probe_spec(session)).transpose();
    let commands = commands.map_err(|error| error.to_string())?;
    let proved =
        self_test::prove(&jails.launcher, &spec, &reader, server.as_ref(), commands.as_ref(), surroundings).await;
    if let Err(error) = home::remove_tree(&state) {
        tracing::warn!(%error, path = %state.display(), "the directory of a self-test stays");
    }
    let mut proof = proved.map_err(|error| error.to_string())?;
    for after_bell in [false, true] {
        proof.attempts.push(
            request_key_again(jails, limits, session, &spec, after_bell).await.map_err(|error| error.to_string())?,
        );
    }
    Ok(proof)
}

/// Returns the host's files that a jail must not reach, if they exist: a missing file would prove nothing.
fn host_files(jails: &Jails, session: &Session) -> Vec<(String, PathBuf)> {
    let sessions = jails.home.sessions();
    let own = jails.home.session(session.id);
    let found = std::fs::read_dir(&sessions).into_iter().flatten().flatten().map(|entry| entry.path());
    let another = found.into_iter().find(|place| place != own.path());
    let all = [
        ("the host's home", Some(jails.home.path().to_owned())),
        ("the host's state", Some(jails.home.state_db())),
        ("the master key", Some(jails.home.master_key())),
        ("the owner's token", Some(jails.home.owner_token())),
        ("the run file with the host's socket", Some(jails.home.run_file())),
        ("the host's log", Some(jails.home.log())),
        ("the directories of every session", Some(sessions.clone())),
        ("the directory of another session", another),
        ("the sockets of every session", Some(jails.config.runtime.clone())),
    ];
    let there = |(what, path): (&str, Option<PathBuf>)| Some((what.to_owned(), path.filter(|path| path.exists())?));
    all.into_iter().filter_map(there).collect()
}

/// Returns the socket of the API, from the run file that clients read.
fn api_socket(jails: &Jails) -> PathBuf {
    let run = home::read_small(&jails.home.run_file()).ok();
    let run = run.and_then(|run| serde_json::from_str::<Run>(&run).ok());
    run.map_or_else(|| jails.config.runtime.join("api.sock"), |run| run.socket.into())
}

async fn prepared(jails: &Jails, session: &Session) -> Result<(Spec, Spec), launch::Error> {
    let uid = jails.uid_of(session)?;
    jails.home.session(session.id).prepare(uid)?;
    make_run_directory(jails, session, uid)?;
    Ok((jails.sandbox_spec(session).await?, jails.reader_spec(session)?))
}

/// Runs a real handshake, with a key that opens nothing and a probe that asks for the key again.
async fn request_key_again(
    jails: &Jails,
    limits: TurnLimits,
    session: &Session,
    spec: &Spec,
    after_bell: bool,
) -> Result<Attempt, launch::Error> {
    let (ours, theirs) = link_pair(session)?;
    let spec = Spec { role: Role::Probe(Probe::KeyAgain { after_bell }), ..spec.clone() };
    let probe = jails.launcher.launch(spec, theirs).await?;
    let mut link = Link::new(session.id, ours);
    link.hello().await?;
    link.welcome(&SessionKey::new([0; 32]), limits).await?;
    let refused = match (link.ready().await, after_bell) {
        (Err(link::Error::Violation { what, .. }), false) => Ok(what),
        (Ok(()), true) => match link.next_event().await {
            LinkEvent::Violation(what) => Ok(what),
            LinkEvent::Bell => Err("it was accepted as a bell".to_owned()),
            LinkEvent::Ended => Err("the link ended".to_owned()),
        },
        (Ok(()), false) => Err("it was accepted as a bell".to_owned()),
        (Err(error), _) => Err(error.to_string()),
    };
    link.close();
    let exit = tokio::time::timeout(END_TIME_MAX, probe.exited()).await;
    let (observed, contained) = match (refused, exit) {
        (Ok(what), Ok(Exit::Code(0))) => (what.to_owned(), true),
        (Ok(_), Ok(exit)) => (format!("the probe {exit}"), false),
        (Ok(_), Err(_)) => ("the probe did not end".to_owned(), false),
        (Err(what), _) => (what, false),
    };
    let when = if after_bell { "after its first bell" } else { "before its first bell" };
    Ok(Attempt {
        group: "its key".to_owned(),
        name: format!("ask for the key a second time, {when}"),
        expected: "refused".to_owned(),
        observed,
        wall: PROTOCOL.to_owned(),
        contained,
    })
}
