//! The self-test: a program that tries to leave its jail, and reports the results.
//!
//! It runs in the launcher's own image with exactly the mounts and filters of a sandbox, and never outside a jail. A new attempt is
//! one line in the file of its group. A new wall needs an attempt that notices when the wall is missing. See
//! [`crate::self_test::line`].

mod commands;
mod files;
mod life;
mod limits;
mod line;
mod outside;
mod privileges;
mod processes;
mod sockets;
mod targets;

pub use life::run;

use super::{CONTROL, Facts, Limits, Probe, Role, Spec};
use crate::launcher::{self, Exit, Jailed, Launcher, Supply};
use ironclaw_operator::{Attempt, BOUNDED_OR_REPORTED, Control, Proof};
use life::CONTINUE;
use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::time::Duration;
use targets::Targets;

/// Longest report of a probe, in bytes.
const REPORT_BYTES_MAX: usize = 256 * 1024;
/// Longest silence of a probe. Its attempts are a few system calls each, but the machine may be busy.
const SILENCE_MAX: Duration = Duration::from_secs(60);
/// Bound on the reported names of attempts that noticed a missing wall.
const NAMES_MAX: usize = 5;

/// The reason why there is no proof.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There was no jail to probe.
    #[error(transparent)]
    Launch(#[from] launcher::Error),
    /// The probe did not report.
    #[error("the probe in the jail of {name} did not report: {why}")]
    Silent {
        /// Name of the jail.
        name: String,
        why: String,
    },
    /// The targets of the probe could not be made.
    #[error("cannot listen for the probe: {0}")]
    Targets(io::Error),
}

/// The surroundings of the jails of a proof.
#[derive(Debug, Clone, Default)]
pub struct HostTargets {
    /// Unix socket of the host's API.
    pub host_socket: PathBuf,
    /// Files of the host and directories of sessions, each with a description. The probe must be able to open none of them.
    pub host_files: Vec<(String, PathBuf)>,
}

/// Makes all attempts in the jails of `spec`, `reader`, `server` and `commands`, and in jails without one wall; replaces the roles of
/// the specs. The jail of `spec` is made twice, on demand and from stock. `commands` is the jail of a command that reaches the network.
///
/// The proof holds if it has no breach and its control is caught; an error if a jail could not be made or did not report.
pub async fn prove(
    launcher: &Launcher,
    spec: &Spec,
    reader: &Spec,
    server: Option<&Spec>,
    commands: Option<&Spec>,
    surroundings: HostTargets,
) -> Result<Proof, Error> {
    let targets = Targets::open(&spec.name).map_err(Error::Targets)?;
    targets.answer().map_err(Error::Targets)?;
    let bare = Spec { mounts: Vec::new(), system: None, ..spec.clone() };
    // Another jail with the same host uid: only the walls separate the two.
    let neighbour = Run::start(launcher, Supply::Any, &bare, Probe::Neighbour).await?;
    let facts = Facts {
        host_pid: std::process::id(),
        launcher_pid: launcher.pid(),
        neighbour_pid: neighbour.jailed.pid,
        abstract_name: targets.abstract_name().to_owned(),
        tcp_port: targets.tcp_port(),
        tcp6_port: targets.tcp6_port(),
        host_socket: surroundings.host_socket,
        host_files: surroundings.host_files,
    };
    let mut attempts = all_attempts(launcher, Supply::Demand, spec, &facts).await?;
    let stock = all_attempts(launcher, Supply::Stock, spec, &facts).await?;
    let reader = all_attempts(launcher, Supply::Any, reader, &facts).await?;
    let server = match server {
        Some(server) => all_attempts(launcher, Supply::Any, server, &facts).await?,
        None => Vec::new(),
    };
    let mut controls = vec![control(launcher, &bare, &facts).await?];
    let commands = match commands {
        Some(commands) => {
            let bare = Spec { listener: commands.listener, ..bare };
            controls.push(control(launcher, &bare, &facts).await?);
            all_attempts(launcher, Supply::Any, commands, &facts).await?
        }
        None => Vec::new(),
    };
    attempts.push(targets.untouched());
    Ok(Proof { attempts, stock, reader, server, commands, controls })
}

/// Makes all attempts in one jail: from inside, from outside, and at its end.
async fn all_attempts(launcher: &Launcher, supply: Supply, spec: &Spec, facts: &Facts) -> Result<Vec<Attempt>, Error> {
    let mut run = Run::start(launcher, supply, spec, Probe::Attempts(facts.clone())).await?;
    let mut attempts = run.report().await?;
    attempts.extend(outside::look(&run.jailed, spec));
    attempts.extend(unbounded(&spec.limits));
    attempts.push(run.end().await?);
    Ok(attempts)
}

/// Makes the same attempts in two temporary jails without any directory: one with all walls, one without [`CONTROL`].
async fn control(launcher: &Launcher, bare: &Spec, facts: &Facts) -> Result<Control, Error> {
    let with = Run::start(launcher, Supply::Any, bare, Probe::Attempts(facts.clone())).await?.report().await?;
    let without = Run::start(launcher, Supply::Any, bare, Probe::Control(facts.clone())).await?.report().await?;
    Ok(compare(&with, &without))
}

/// Finds the attempts that notice the missing wall: contained with the wall, and not without it.
fn compare(with: &[Attempt], without: &[Attempt]) -> Control {
    let held = |name: &str| with.iter().any(|attempt| attempt.name == name && attempt.contained);
    let noticed = without.iter().filter(|attempt| !attempt.contained && held(&attempt.name));
    let names: Vec<String> = noticed.map(|attempt| attempt.name.clone()).collect();
    Control {
        wall: CONTROL.name().to_owned(),
        caught: !names.is_empty(),
        noticed: u32::try_from(names.len()).unwrap_or(u32::MAX),
        by: names.into_iter().take(NAMES_MAX).collect(),
    }
}

/// Returns a line for each resource whose sum no wall bounds: this version makes no control groups.
fn unbounded(limits: &Limits) -> [Attempt; 3] {
    let unbounded_line = |name: &str, observed: String, wall: super::Wall| Attempt {
        group: "limits".to_owned(),
        name: name.to_owned(),
        expected: BOUNDED_OR_REPORTED.to_owned(),
        observed,
        wall: wall.name().to_owned(),
        contained: true,
    };
    let bytes = limits.address_space_bytes >> 20;
    let memory = format!("not bounded as a sum: rlimit only, {bytes} MiB for each of {} processes", limits.processes);
    let processor =
        format!("not bounded: no share, at most {} processes that compete like any other", limits.processes);
    let disk = format!("not bounded as a sum: rlimit only, {} MiB for each file", limits.file_bytes >> 20);
    [
        unbounded_line("use up the memory with many processes", memory, super::Wall::AddressLimit),
        unbounded_line("use up the processor", processor, super::Wall::ProcessLimit),
        unbounded_line("use up the disk with many files", disk, super::Wall::FileSizeLimit),
    ]
}

/// A probe in its jail, and the host's end of its link.
struct Run {
    name: String,
    jailed: Jailed,
    link: UnixStream,
}

impl Run {
    async fn start(launcher: &Launcher, supply: Supply, spec: &Spec, probe: Probe) -> Result<Self, Error> {
        let name = spec.name.clone();
        let (link, theirs) = UnixStream::pair()
            .and_then(|(link, theirs)| link.set_read_timeout(Some(SILENCE_MAX)).map(|()| (link, theirs)))
            .map_err(|error| silent(&name, error))?;
        let spec = Spec { role: Role::Probe(probe), ..spec.clone() };
        let jailed = launcher.launch_from(supply, spec, theirs.into()).await?;
        if supply == Supply::Stock && !jailed.from_stock {
            return Err(silent(&name, "it was not in stock"));
        }
        Ok(Self { name, jailed, link })
    }

    /// Reads the probe's report; the probe continues to run.
    async fn report(&mut self) -> Result<Vec<Attempt>, Error> {
        let mut link = self.link.try_clone().map_err(|error| silent(&self.name, error))?;
        // A blocking read in another thread: the probe writes once, after all attempts.
        let read = tokio::task::spawn_blocking(move || -> io::Result<Vec<u8>> {
            let mut length = [0; 4];
            link.read_exact(&mut length)?;
            let length = u32::from_be_bytes(length) as usize;
            if length > REPORT_BYTES_MAX {
                return Err(io::Error::other(format!(
                    "its report of {length} bytes is longer than {REPORT_BYTES_MAX}"
                )));
            }
            let mut bytes = vec![0; length];
            link.read_exact(&mut bytes)?;
            Ok(bytes)
        });
        match read.await.map_err(|error| silent(&self.name, error))? {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| silent(&self.name, error)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Err(silent(&self.name, format!("it {}", self.jailed.exited().await)))
            }
            Err(error) => Err(silent(&self.name, error)),
        }
    }

    /// Lets the probe end. It leaves a daemon that holds its link, so the link closes when no process of the jail is left.
    async fn end(mut self) -> Result<Attempt, Error> {
        self.link.write_all(&[CONTINUE]).map_err(|error| silent(&self.name, error))?;
        let exit = tokio::time::timeout(SILENCE_MAX, self.jailed.exited()).await;
        let exit = exit.map_err(|_| silent(&self.name, "it did not end"))?;
        let mut link = self.link;
        let gone = tokio::task::spawn_blocking(move || {
            link.set_nonblocking(true)?;
            link.read(&mut [0])
        });
        let gone = matches!(gone.await.map_err(|error| silent(&self.name, error))?, Ok(0));
        let observed = match (gone, exit) {
            (true, Exit::Code(0)) => "gone".to_owned(),
            (true, exit) => format!("the probe {exit}"),
            (false, _) => "still there".to_owned(),
        };
        Ok(Attempt {
            group: "its end".to_owned(),
            name: "outlive the jail as a daemon".to_owned(),
            expected: "gone".to_owned(),
            contained: observed == "gone",
            observed,
            wall: super::Wall::PidNamespace.name().to_owned(),
        })
    }
}

fn silent(name: &str, why: impl ToString) -> Error {
    Error::Silent { name: name.to_owned(), why: why.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn attempt(name: &str, contained: bool) -> Attempt {
        let text = String::new;
        Attempt { group: text(), name: name.into(), expected: text(), observed: text(), wall: text(), contained }
    }

    #[test]
    fn control_is_caught_only_by_an_attempt_that_its_wall_stops() {
        let with = [attempt("a", true), attempt("b", false)];
        let caught = compare(&with, &[attempt("a", false), attempt("b", false)]);
        assert_eq!((caught.caught, caught.noticed, caught.by), (true, 1, vec!["a".to_owned()]));
        let missed = compare(&with, &[attempt("a", true), attempt("b", false), attempt("c", false)]);
        assert_eq!((missed.caught, missed.noticed), (false, 0));
    }
}
