//! MCP servers that are programs of this machine, each in a jail of its own: a directory for its state, and no network.
//!
//! Speaks no protocol, and decides on no grant. See [`ironclaw_jail::client`], and `reach::mcp_jail::command` for the refused commands.

mod command;
mod demo;
mod error;
pub mod fetcher;
mod program;
mod state;

use ironclaw_jail::client::{Client, Streams, Variable, WORDS_BYTES_MAX};
use ironclaw_jail::launcher::{Jailed, Launcher, link};
use ironclaw_jail::system::Names;
use ironclaw_jail::{Identity, Limits, MOUNTS_MAX, Mount, Role, Spec, System, inspect, is_reserved, target_name};
use ironclaw_operator::DenialCode;
use ironclaw_store::refusal::Refusal;
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};

pub use demo::{DemoLayer, is_named as is_demo};
pub use error::Error;
pub use program::PATH;
pub use state::errors_of;

/// The directory in the jail of a server that it may write, with its home and its temporary files.
pub const STATE: &str = "/state";
/// Directories that a server may have beside its state and the certificates.
pub const GRANTED_MAX: usize = MOUNTS_MAX - 2;
/// Variables that the jail sets.
const OWN_VARIABLES: [&str; 3] = ["PATH", "HOME", "TMPDIR"];
/// The language of messages, unless the environment of the server has it.
const LANGUAGE: (&str, &str) = ("LANG", "C.UTF-8");
/// Room for the variables of the jail itself, in bytes.
const OWN_BYTES_MAX: usize = 1024;
/// Largest file of a server, standard error included.
const FILE_BYTES_MAX: u64 = 256 << 20;

/// The process of an MCP server: one for each agent and server.
#[derive(Debug, Clone, Default)]
pub struct Process {
    /// Name of the jail: 1–64 characters of `A-Z a-z 0-9 _ -`.
    pub name: String,
    /// The argument vector. The first word is a name in [`PATH`], or an absolute path in the jail.
    pub program: Vec<String>,
    /// Variables beside those of the jail.
    pub environment: Vec<(String, Variable)>,
    /// The port of the gateway, if the server reaches hosts of the network.
    pub listener: Option<u16>,
    /// The certificates that the machine trusts.
    pub roots: Option<Mount>,
    /// A directory whose `usr` is laid over the machine's.
    pub layer: Option<PathBuf>,
    /// Whether its packages have a browser.
    pub browser: bool,
    /// Directories that people granted. No component of a source may be a link.
    pub mounts: Vec<Mount>,
    /// The directory for [`STATE`]. It is made if it is missing, and belongs to this process alone.
    pub state: PathBuf,
}

/// A running server. Dropping it ends all its processes.
#[derive(Debug)]
pub struct Running {
    pub read: OwnedReadHalf,
    /// Its standard input. Dropping it closes the input, which ends most servers.
    pub write: OwnedWriteHalf,
    /// The jail, which ends the other servers.
    pub jailed: Jailed,
    /// The file with its standard error. The server can change it; [`errors_of`] reads it.
    pub stderr: PathBuf,
}

/// Makes the jails of MCP servers.
#[derive(Debug, Clone)]
pub struct McpJails {
    pub launcher: Launcher,
    /// User of the servers as the host's files see it. As root, a uid that no session has.
    pub identity: Identity,
}

impl McpJails {
    /// Starts a server, and checks the walls of its jail from outside. No other process with this state directory may run.
    ///
    /// # Errors
    /// Refuses what [`refused`] refuses, before anything runs. Otherwise returns [`Error`].
    pub async fn launch(&self, wanted: &Process) -> Result<Running, Error> {
        let (process, identity) = (wanted.clone(), self.identity);
        let prepared = tokio::task::spawn_blocking(move || {
            let spec = spec(&process, identity)?;
            state::prepare(&process.state, identity)?;
            Ok::<_, Error>(spec)
        });
        let spec = prepared.await.map_err(io::Error::other).map_err(Error::io(&wanted.state))??;
        let (ours, theirs) = link().map_err(Error::io(&wanted.state))?;
        let jailed = self.launcher.launch(spec.clone(), theirs).await?;
        let faults = match jailed.report() {
            Ok(report) => inspect::verify(&report, &spec).err().map(|faults| faults.join("; ")),
            Err(error) => Some(format!("the kernel does not show it ({error})")),
        };
        if let Some(faults) = faults {
            jailed.kill();
            let what = format!("{faults}; the process {}", jailed.exited().await);
            return Err(Error::Walls { name: wanted.name.clone(), what });
        }
        let (read, write) = ours.into_split();
        Ok(Running { read, write, jailed, stderr: wanted.state.join(state::ERRORS) })
    }
}

/// Refuses a process that no jail of a server can run, by the name of its fault. Starts nothing and changes no file. `has_packages` is true
/// if packages may bring its program; [`missing_in`] looks for it afterwards. The bundled server needs no layer here, because its launch
/// makes it; see [`DemoLayer`].
pub fn refused(wanted: &Process, has_packages: bool) -> Option<Refusal> {
    if has_packages {
        return check(wanted).err();
    }
    if is_demo(&wanted.program) && wanted.layer.is_none() {
        return check(wanted).err().or_else(|| demo::refused(&wanted.program));
    }
    find(wanted).err()
}

/// Refuses a command whose program is neither on this machine nor in the `usr` of this layer.
pub fn missing_in(command: &[String], layer: PathBuf) -> Option<Refusal> {
    let word = command.first()?;
    program::find(Path::new("/"), Some(&layer), word).err()
}

/// Refuses a command whose program is a name that the packages and the machine both have. `behind` has the paths of such programs of the
/// packages.
pub fn hidden_in(command: &[String], behind: &[String]) -> Option<Refusal> {
    let word = command.first()?;
    let place = behind.iter().find(|place| place.rsplit('/').next() == Some(word))?;
    let message = format!(
        "{word} is a program of this machine and of the packages: give /usr/bin/{word} for that of the machine, or {place} for that of the packages"
    );
    Some(Refusal::new(DenialCode::McpProgram, message))
}

/// Prepares the state directory `state`, and returns the jail of a server with it and without a program, for the self-test. `None` on a
/// machine that keeps programs outside of `/usr`, because no server runs there.
///
/// # Errors
/// The directory cannot be made.
pub fn without_program(state: &Path, identity: Identity) -> Result<Option<Spec>, Error> {
    if Names::read(Path::new("/")).is_err() {
        return Ok(None);
    }
    state::prepare(state, identity)?;
    let wanted = Process { name: "mcp".to_owned(), state: state.to_owned(), ..Process::default() };
    Ok(Some(jail(&wanted, Client::default(), identity)))
}

/// Returns the path in the jail of the program, if the process can run.
fn find(wanted: &Process) -> Result<String, Refusal> {
    check(wanted)?;
    program::find(Path::new("/"), wanted.layer.as_deref(), &wanted.program[0])
}

/// Refuses all but a missing program.
fn check(wanted: &Process) -> Result<(), Refusal> {
    let no = |code, message: String, hint: &str| Err(Refusal::new(code, message).hint(hint));
    let variables = wanted.environment.iter().flat_map(|(name, value)| [name.as_str(), value.expose()]);
    let bytes: usize = wanted.program.iter().map(String::as_str).chain(variables).map(str::len).sum();
    if bytes > WORDS_BYTES_MAX - OWN_BYTES_MAX {
        let message = format!("the command and the variables of a server have {bytes} bytes");
        return no(DenialCode::McpCommand, message, "pass long settings in a granted directory");
    }
    let mut names = BTreeSet::new();
    for (name, value) in &wanted.environment {
        let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
        let digit = name.starts_with(|first: char| first.is_ascii_digit());
        if name.is_empty() || digit || !name.bytes().all(plain) || value.expose().contains('\0') {
            let hint = "a name has letters, digits and _; a value has no null byte";
            return no(DenialCode::McpEnvironment, format!("{name:?} is no variable for a server"), hint);
        }
        if OWN_VARIABLES.contains(&name.as_str()) || !names.insert(name) {
            let message = format!("the variable {name} is set twice, or the jail sets it");
            return no(DenialCode::McpEnvironment, message, "leave it out");
        }
    }
    let mut targets = BTreeSet::from([STATE]);
    for mount in &wanted.mounts {
        if target_name(&mount.target).is_none_or(is_reserved) {
            let message = format!("the target {:?} is malformed, or the jail itself uses it", mount.target);
            return no(DenialCode::MountTarget, message, "name another target, such as /data");
        }
        if !targets.insert(&mount.target) {
            let message = format!("the target {} is used twice", mount.target);
            return no(DenialCode::MountTwice, message, "name another target; the server's own state is at /state");
        }
    }
    if wanted.mounts.len() > GRANTED_MAX {
        let message = format!("{} directories are more than {GRANTED_MAX}", wanted.mounts.len());
        return no(DenialCode::MountTarget, message, "grant a directory above them");
    }
    command::check(&wanted.program)
}

fn spec(wanted: &Process, identity: Identity) -> Result<Spec, Refusal> {
    let program = find(wanted)?;
    let mut environment: Vec<(String, Variable)> = vec![
        ("PATH".to_owned(), PATH.join(":").into()),
        ("HOME".to_owned(), format!("{STATE}/{}", state::HOME).into()),
        ("TMPDIR".to_owned(), format!("{STATE}/{}", state::TEMPORARY).into()),
    ];
    if !wanted.environment.iter().any(|(name, _)| name == LANGUAGE.0) {
        environment.push((LANGUAGE.0.to_owned(), LANGUAGE.1.to_owned().into()));
    }
    environment.extend(wanted.environment.iter().cloned());
    let client = Client {
        program,
        args: wanted.program[1..].to_vec(),
        environment,
        directory: format!("{STATE}/{}", state::HOME),
        streams: Streams::Both { errors: format!("{STATE}/{}", state::ERRORS) },
        browser: wanted.browser,
        ..Client::default()
    };
    Ok(jail(wanted, client, identity))
}

fn jail(wanted: &Process, client: Client, identity: Identity) -> Spec {
    let own = Mount { source: wanted.state.clone(), target: STATE.to_owned(), read_only: false, granted: false };
    let granted = wanted.mounts.iter().map(|mount| Mount { granted: true, ..mount.clone() });
    Spec {
        name: wanted.name.clone(),
        role: Role::Client(client),
        mounts: std::iter::once(own).chain(wanted.roots.clone()).chain(granted).collect(),
        system: Some(System { layer: wanted.layer.clone() }),
        listener: wanted.listener,
        identity,
        limits: Limits {
            file_bytes: FILE_BYTES_MAX,
            ..if wanted.browser { Limits::for_browsers() } else { Limits::for_programs() }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process() -> Process {
        Process {
            name: "mcp".to_owned(),
            program: vec!["cat".to_owned()],
            state: "/nowhere".into(),
            ..Process::default()
        }
    }

    fn mount(target: &str) -> Mount {
        Mount { source: "/srv/data".into(), target: target.to_owned(), read_only: true, granted: false }
    }

    #[test]
    fn server_sees_its_state_and_granted_directories_alone() {
        let wanted = Process { mounts: vec![mount("/data")], layer: Some("/layer".into()), ..process() };
        let spec = spec(&wanted, Identity::Mapped { uid: 70_000, gid: 70_000 }).expect("it can run");
        assert_eq!(spec.check(0), Ok(()));
        let mounts: Vec<_> = spec.mounts.iter().map(|one| (one.target.as_str(), one.read_only, one.granted)).collect();
        assert_eq!(mounts, [("/state", false, false), ("/data", true, true)]);
        assert_eq!(spec.system, Some(System { layer: Some("/layer".into()) }));
        let Role::Client(client) = spec.role else { panic!("a server is a client") };
        assert_eq!((client.network, client.program.as_str()), (None, "/usr/bin/cat"));
    }

    #[test]
    fn variable_that_the_jail_sets_is_refused_by_name() {
        for names in [&["PATH"][..], &["HOME"], &["A", "A"], &["A=B"], &[""], &["1A"], &["Ä"]] {
            let environment = names.iter().map(|name| ((*name).to_owned(), "x".to_owned().into())).collect();
            let refusal = refused(&Process { environment, ..process() }, false).expect("refused");
            assert_eq!(refusal.code, DenialCode::McpEnvironment, "{names:?}");
            assert!(refusal.message.contains(names[0]), "{refusal}");
        }
        let environment = [("API_KEY", "x y"), ("LANG", "de")];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned().into())).to_vec();
        assert_eq!(refused(&Process { environment, ..process() }, false), None);
    }

    #[test]
    fn target_of_the_jail_itself_is_refused() {
        for (targets, code) in [
            (&["/usr"][..], DenialCode::MountTarget),
            (&["/a/b"], DenialCode::MountTarget),
            (&["/workspace"], DenialCode::MountTarget),
            (&["/state"], DenialCode::MountTwice),
            (&["/a", "/a"], DenialCode::MountTwice),
        ] {
            let mounts = targets.iter().map(|target| mount(target)).collect();
            assert_eq!(
                refused(&Process { mounts, ..process() }, false).map(|found| found.code),
                Some(code),
                "{targets:?}"
            );
        }
        let mounts = (0..=GRANTED_MAX).map(|one| mount(&format!("/d{one}"))).collect();
        assert!(refused(&Process { mounts, ..process() }, false).is_some());
    }
}
