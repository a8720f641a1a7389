//! Says what the jails of a session are: who they run as, what they see, and their limits.
//!
//! Starts nothing. Next: `jail::Spec`.

use super::Error;
use crate::packages;
use crate::pipeline::{Core, Error as PipelineError};
use crate::registry::{self, mounts, software};
use crate::session::store::Session;
use crate::tools;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::seam::link::{GRANTED_ARGUMENT, path};
use ironclaw_jail::{Identity, Limits, Mount, Role, Spec, System};
use std::path::{Path, PathBuf};
use std::sync::PoisonError;

/// The host uid of a session, when the host was started as root.
pub fn uid_of(core: &Core, session: &Session) -> Result<Option<u32>, Error> {
    // The last one is whoever fetches software.
    let Some((base, count)) = core.config.uids.map(|(base, count)| (base, count - 1)) else { return Ok(None) };
    if session.uid_offset >= count {
        return Err(Error::Uids { session: session.id, offset: session.uid_offset, count });
    }
    Ok(Some(base + session.uid_offset))
}

pub(in crate::pipeline) fn run_directory(core: &Core, session: &Session) -> PathBuf {
    core.config.runtime.join(session.uid_offset.to_string())
}

/// What the sandbox of a session sees: its own directories, what people granted its agent, and the machine's programs if the
/// agent may run commands.
pub async fn sandbox_spec(core: &Core, session: &Session) -> Result<Spec, Error> {
    let place = core.home.session(session.id);
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
        own(run_directory(core, session), path::RUN, true),
    ];
    let Granted { mounts: granted, system } = granted(core, session).await?;
    let args = granted.iter().map(|mount| format!("{GRANTED_ARGUMENT}{}", mount.target)).collect();
    mounts.extend(granted);
    Ok(Spec {
        name: session.id.to_string(),
        role: Role::Sandbox { program: core.config.sandbox.clone(), args },
        mounts,
        system,
        identity: identity(uid_of(core, session)?),
        limits: Limits::default(),
    })
}

/// What the sandbox of an agent has beside what every sandbox has.
struct Granted {
    mounts: Vec<Mount>,
    system: Option<System>,
}

/// Reads it from the record as it stands now.
async fn granted(core: &Core, session: &Session) -> Result<Granted, Error> {
    let (agent, home) = (session.agent, core.home.clone());
    let read = core.record.state.read(move |tx| {
        let granted = mounts::of(tx, agent)?.into_iter();
        let mounts = granted.map(|mounts::Mount { source, target, read_only }| Mount {
            source,
            target,
            read_only,
            granted: true,
        });
        let agent = registry::agent_by_id(tx, agent)?;
        let commands = agent.as_ref().filter(|agent| agent.enabled_tools.iter().any(|tool| tool == tools::RUN_COMMAND));
        let system = match commands {
            None => None,
            Some(agent) => {
                Some(software::layer_of(tx, agent.id)?.map(|digest| (home.layer(agent.id, &digest), digest)))
            }
        };
        Ok::<_, PipelineError>((mounts.collect(), system))
    });
    let (mounts, layer): (Vec<Mount>, _) = read.await.map_err(Box::new)?;
    // The settings may be others than when it was approved.
    for mount in &mounts {
        if !core.changes.proposals.grounds.admits(&mount.source).map_err(Error::Mounts)? {
            return Err(Error::Mount { directory: mount.source.clone(), target: mount.target.clone() });
        }
    }
    let system = match layer {
        None => None,
        Some(None) => Some(System { layer: None }),
        Some(Some((directory, digest))) => {
            look_through(core, &directory, digest).await?;
            Some(System { layer: Some(directory) })
        }
    };
    Ok(Granted { mounts, system })
}

/// Finds out once in the life of a host that a layer is what was fetched: nothing but the host can write there, and a disk may lie.
/// Of each directory by itself: two agents with the same software have a layer each, and one of them may be damaged.
async fn look_through(core: &Core, directory: &Path, digest: Digest) -> Result<(), Error> {
    if core.layers.lock().unwrap_or_else(PoisonError::into_inner).contains(directory) {
        return Ok(());
    }
    let place = directory.to_owned();
    let looked = tokio::task::spawn_blocking(move || packages::verify(&place, &digest)).await;
    looked.expect("looking through a layer does not panic")?;
    core.layers.lock().unwrap_or_else(PoisonError::into_inner).insert(directory.to_owned());
    Ok(())
}

pub(in crate::pipeline) fn reader_spec(core: &Core, session: &Session) -> Result<Spec, Error> {
    let source = core.home.session(session.id).outbound();
    Ok(Spec {
        name: session.id.to_string(),
        role: Role::Reader,
        mounts: vec![Mount { source, target: path::OUT.to_owned(), read_only: true, granted: false }],
        system: None,
        identity: identity(uid_of(core, session)?),
        limits: Limits::default(),
    })
}

/// Whom the host's files take the clients of package managers for: nobody whom a session could be.
pub(in crate::pipeline) fn fetcher(core: &Core) -> Identity {
    identity(core.config.uids.map(|(base, count)| base + count - 1))
}

fn identity(uid: Option<u32>) -> Identity {
    match uid {
        Some(uid) => Identity::Mapped { uid, gid: uid },
        None => Identity::Own,
    }
}
