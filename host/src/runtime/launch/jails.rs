//! The specifications of a session's jails: their user, their mounts, and their limits.
//!
//! Starts nothing. See [`ironclaw_jail::Spec`].

use super::Error;
use crate::reach::jail_network;
use crate::reach::jail_network::Trust;
use crate::reach::network_command::{CommandJails, Launching};
use crate::reach::packages::{VerifiedLayers, browser};
use crate::reach::skills::Shelf;
use crate::registry::live_settings::Live;
use crate::registry::tools;
use crate::registry::{self, mounts, skills, software};
use crate::sessions::store::Session;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::seam::link::{GRANTED_ARGUMENT, path};
use ironclaw_jail::launcher::{Jailed, Launcher};
use ironclaw_jail::{Client, Identity, Limits, Mount, Role, Spec, System};
use ironclaw_skill::Manifest;
use ironclaw_state::home::{Home, LayerOwner};
use ironclaw_store::error::Error as PipelineError;
use ironclaw_store::record::Record;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The settings for jails on this host.
#[derive(Debug, Clone)]
pub struct Config {
    /// The first uid of the range and its length, if the host was started as root.
    pub uids: Option<(u32, u32)>,
    pub sandbox: PathBuf,
    /// The directory of the sockets; its path must be short.
    pub runtime: PathBuf,
}

impl Config {
    /// Returns the number of sessions that can have their own uid; the last uid of the range is for the clients that fetch software.
    pub fn sessions_max(&self) -> u32 {
        self.uids.map_or(u32::MAX, |(_, count)| count - 1)
    }
}

/// Makes the jails of sessions.
pub struct Jails {
    /// Has the grants of agents.
    pub record: Arc<Record>,
    /// The directories of sessions.
    pub home: Home,
    pub launcher: Launcher,
    /// Decide which directories may be mounted.
    pub settings: Arc<Live>,
    /// The settings for jails.
    pub config: Config,
    /// Bounds the launches in flight.
    pub at_once: Semaphore,
    /// Layers of software that were verified since the host started.
    pub verified_layers: Arc<VerifiedLayers>,
    /// The directories of verified skills.
    pub shelf: Arc<Shelf>,
    /// The certificates that commands trust.
    pub trust: Trust,
}

impl Jails {
    /// Returns the host uid of a session, if the host was started as root.
    pub fn uid_of(&self, session: &Session) -> Result<Option<u32>, Error> {
        // The last uid is for the clients that fetch software.
        let Some((base, count)) = self.config.uids.map(|(base, count)| (base, count - 1)) else { return Ok(None) };
        if session.uid_offset >= count {
            return Err(Error::Uids { session: session.id, offset: session.uid_offset, count });
        }
        Ok(Some(base + session.uid_offset))
    }

    /// Returns the directory of a session's sockets.
    pub fn run_directory(&self, session: &Session) -> PathBuf {
        self.config.runtime.join(session.uid_offset.to_string())
    }

    /// Returns the specification of a sandbox's jail. It has the session's own directories, the granted directories of its agent, and the
    /// machine's programs if the agent may run commands.
    pub async fn sandbox_spec(&self, session: &Session) -> Result<Spec, Error> {
        let place = self.home.session(session.id);
        let own = |source: PathBuf, target: &str, read_only| Mount {
            source,
            target: target.to_owned(),
            read_only,
            granted: false,
        };
        let mut mounts = vec![
            own(place.inbound(), path::IN, true),
            own(place.outbound(), path::OUT, false),
            own(place.workspace(), path::WORKSPACE, false),
            own(self.run_directory(session), path::RUN, true),
        ];
        let Granted { mounts: granted, system, browser: _ } = self.granted(session).await?;
        let args = granted.iter().map(|mount| format!("{GRANTED_ARGUMENT}{}", mount.target)).collect();
        mounts.extend(granted);
        Ok(Spec {
            name: session.id.to_string(),
            role: Role::Sandbox { program: self.config.sandbox.clone(), args },
            mounts,
            system,
            listener: None,
            identity: identity(self.uid_of(session)?),
            limits: Limits::default(),
        })
    }

    /// Reads the grants from the current record.
    async fn granted(&self, session: &Session) -> Result<Granted, Error> {
        let (agent, session_agent, home) = (session.agent, session.agent, self.home.clone());
        let read = self.record.state.read(move |tx| {
            let granted = mounts::list_for_agent(tx, agent)?.into_iter();
            let mounts = granted.map(|mounts::Mount { source, target, read_only, mine: _ }| Mount {
                source,
                target,
                read_only,
                granted: true,
            });
            let agent = registry::agent_by_id(tx, agent)?;
            let commands =
                agent.as_ref().filter(|agent| agent.enabled_tools.iter().any(|tool| tool == tools::RUN_COMMAND));
            let system = match commands {
                None => None,
                Some(agent) => Some(
                    software::layer_of(tx, agent.id)?
                        .map(|digest| (home.layer(&LayerOwner::Agent(agent.id), &digest), digest)),
                ),
            };
            let software = agent.as_ref().map(|agent| software::for_agent(tx, agent.id)).transpose()?.flatten();
            let browser = software.is_some_and(|software| browser::has(&software.packages));
            let skills = skills::trusted(tx, session_agent)?.into_iter().map(|held| {
                let manifest = skills::manifest(&held.package)?;
                Ok((held.package.digest, manifest))
            });
            let skills = skills.collect::<Result<Vec<_>, ironclaw_state::Error>>()?;
            Ok::<_, PipelineError>((mounts.collect(), system, skills, browser))
        });
        let (mut mounts, layer, skills, browser): (Vec<Mount>, _, Vec<_>, _) = read.await.map_err(Box::new)?;
        // The settings may have changed since the approval.
        let settings = self.settings.now();
        for mount in &mounts {
            if !settings.host_policy.admits(&mount.source).map_err(Error::Mounts)? {
                return Err(Error::Mount { directory: mount.source.clone(), target: mount.target.clone() });
            }
        }
        mounts.extend(self.shown_skills(skills).await?);
        let system = match layer {
            None => None,
            Some(None) => Some(System { layer: None }),
            Some(Some((directory, digest))) => {
                self.verified_layers.verify(&directory, digest).await?;
                Some(System { layer: Some(directory) })
            }
        };
        Ok(Granted { mounts, system, browser })
    }

    /// Returns the mount of the skills of an agent, if it has any. Each of their files was verified.
    async fn shown_skills(&self, skills: Vec<(Digest, Manifest)>) -> Result<Option<Mount>, Error> {
        if skills.is_empty() {
            return Ok(None);
        }
        let shelf = Arc::clone(&self.shelf);
        let shown = tokio::task::spawn_blocking(move || shelf.shown(&skills)).await;
        let shown = shown.expect("verifying a skill does not panic")?;
        Ok(Some(Mount { source: shown, target: path::SKILLS.to_owned(), read_only: true, granted: false }))
    }

    /// Returns the specification of the jail of a command that reaches the network: the files of the session and the programs of its agent,
    /// with the gateway as its only peer, and the certificates that it trusts. It has no queue and no socket of the session.
    async fn command_spec(&self, session: &Session, client: Client) -> Result<Spec, Error> {
        let Granted { mounts, system, browser } = self.granted(session).await?;
        let system = system.ok_or(Error::NoPrograms(session.id))?;
        let spec = self.command_jail(session, Role::Client(Client { browser, ..client }), mounts, system)?;
        Ok(if browser { Spec { limits: Limits::for_browsers(), ..spec } } else { spec })
    }

    /// Returns the same jail without granted directories and packages, for the self-test.
    ///
    /// # Errors
    /// Fails if the range of uids is exhausted.
    pub fn command_probe_spec(&self, session: &Session) -> Result<Spec, Error> {
        self.command_jail(session, Role::Reader, Vec::new(), System { layer: None })
    }

    fn command_jail(&self, session: &Session, role: Role, granted: Vec<Mount>, system: System) -> Result<Spec, Error> {
        let own =
            |source, target: &str, read_only| Mount { source, target: target.to_owned(), read_only, granted: false };
        let workspace = own(self.home.session(session.id).workspace(), path::WORKSPACE, false);
        Ok(Spec {
            name: format!("{}-network", session.id),
            role,
            mounts: [workspace, self.trust.mount()].into_iter().chain(granted).collect(),
            system: Some(system),
            listener: Some(jail_network::PORT),
            identity: identity(self.uid_of(session)?),
            limits: Limits::for_programs(),
        })
    }

    /// Specifies the jail of a session's reader.
    ///
    /// # Errors
    /// Fails if the range of uids is exhausted.
    pub fn reader_spec(&self, session: &Session) -> Result<Spec, Error> {
        let source = self.home.session(session.id).outbound();
        Ok(Spec {
            name: session.id.to_string(),
            role: Role::Reader,
            mounts: vec![Mount { source, target: path::OUT.to_owned(), read_only: true, granted: false }],
            system: None,
            listener: None,
            identity: identity(self.uid_of(session)?),
            limits: Limits::default(),
        })
    }

    /// Returns the user for package managers, which no session has.
    pub fn fetcher(&self) -> Identity {
        self.config.fetcher()
    }
}

impl CommandJails for Jails {
    fn launch<'a>(&'a self, session: &'a Session, client: Client, link: OwnedFd) -> Launching<'a> {
        let launch = async move {
            let _permit = self.at_once.acquire().await;
            let spec = self.command_spec(session, client).await?;
            let jailed = self.launcher.launch(spec.clone(), link).await?;
            // The kernel shows no process of a jail that has ended: a short command can end before this look.
            let report = jailed.report();
            if report.is_ok() || !has_ended(&jailed).await {
                super::check_report(session, report, &spec)?;
            }
            Ok(jailed)
        };
        Box::pin(async move { launch.await.map_err(|error: Error| error.to_string()) })
    }
}

/// The time in which the end of a command is known that the kernel does not show.
const ENDED_WAIT: Duration = Duration::from_secs(1);

/// Returns whether a jail has ended, with all of its processes.
async fn has_ended(jailed: &Jailed) -> bool {
    timeout(ENDED_WAIT, jailed.exited()).await.is_ok()
}

impl Config {
    /// Returns the user for package managers and for MCP servers, which no session has.
    pub fn fetcher(&self) -> Identity {
        identity(self.uids.map(|(base, count)| base + count - 1))
    }
}

/// The grants that an agent's sandbox has beyond the parts of every sandbox.
struct Granted {
    mounts: Vec<Mount>,
    system: Option<System>,
    /// Whether the packages of the agent have a browser.
    browser: bool,
}

fn identity(uid: Option<u32>) -> Identity {
    match uid {
        Some(uid) => Identity::Mapped { uid, gid: uid },
        None => Identity::Own,
    }
}
