//! What takes a session out of service and back: parking, quarantine, release, removal. A person hears of each.
//!
//! What a stranger said is never repeated in the host's voice: the notice and the ledger have the host's own words. Next: `session::store`.

use super::accept;
use super::actor::Actor;
use super::{Error, launch};
use crate::delivery;
use crate::failpoint;
use crate::gateway::store as changes;
use crate::memories;
use crate::session::store::{self, Session, Standing, Why};
use crate::turn;
use ironclaw_contract::ids::PersonId;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

impl Actor {
    /// Takes a session that broke the contract out of service.
    pub(super) async fn quarantine(&mut self, why: &Why) -> Result<(), Error> {
        tracing::error!(session = %self.id, why = why.words, "quarantined");
        let text = format!(
            "I was stopped: my process broke its contract with the host ({}). A person has to look: `ironctl session release {}`.",
            why.words, self.id
        );
        self.halt(Standing::Quarantined, why, text).await
    }

    /// Takes a session that failed too often out of service.
    pub(super) async fn park(&mut self, failures: u32, why: &Why) -> Result<(), Error> {
        tracing::error!(session = %self.id, failures, why = why.words, "parked");
        let text = format!(
            "I was parked: my process failed {failures} times in a row ({}). When the cause is mended: `ironctl session release {}`.",
            why.words, self.id
        );
        self.halt(Standing::Parked, why, text).await
    }

    async fn halt(&mut self, standing: Standing, why: &Why, text: String) -> Result<(), Error> {
        let (core, id, why) = (Arc::clone(&self.core), self.id, why.clone());
        let halt = self.core.state.write(move |tx| {
            store::set_standing(tx, id, standing, Some(&why), None)?;
            let Some(session) = store::find(tx, id)? else { return Ok::<_, Error>(()) };
            // The queues' key may be the very thing that is damaged. Without the other one there is no notice either, but the
            // standing is still written, and says why.
            match (session.content_key(&core.wrapping), turn::open_of(tx, id)?) {
                (Ok(key), Some(open)) => {
                    accept::close_with_notice(tx, &core, &session, &key, &open, &text, "halted").map(drop)
                }
                (Ok(key), None) => Ok(delivery::notify(tx, &session, None, &text, &key, &core.sealer).map(drop)?),
                (Err(_), Some(open)) => Ok(turn::close(tx, &open, turn::Close::Requeued, "halted").map(drop)?),
                (Err(_), None) => Ok(()),
            }
        });
        halt.await?;
        self.deliver().await
    }

    /// Puts a halted session back into service; what a quarantined sandbox left is set aside and never opened again.
    pub(super) async fn release(&mut self, session: &Session, by: PersonId) -> Result<(), String> {
        match session.standing {
            Standing::Live | Standing::Removed => {
                return Err(format!("{} is neither parked nor quarantined", session.id));
            }
            Standing::Quarantined => {
                let out = self.core.home.session(session.id).outbound();
                let aside = (0..u32::MAX).map(|n| out.with_file_name(format!("out.quarantined-{n}")));
                let aside = aside.into_iter().find(|path| path.symlink_metadata().is_err());
                if let Some(aside) = aside.filter(|_| out.symlink_metadata().is_ok()) {
                    std::fs::rename(&out, &aside)
                        .map_err(|error| format!("cannot set {} aside: {error}", out.display()))?;
                }
            }
            Standing::Parked => {}
        }
        let id = self.id;
        let release = self
            .core
            .state
            .write(move |tx| Ok::<_, Error>(store::set_standing(tx, id, Standing::Live, None, Some(by))?));
        release.await.map_err(|error| error.to_string())
    }

    /// Erases a session: first its keys and rows, then the log that held them, then its files.
    pub(super) async fn remove(&mut self, session: &Session, by: PersonId) -> Result<(), String> {
        let id = self.id;
        let erase = self.core.state.write(move |tx| {
            memories::erase_of_session(tx, id)?;
            changes::erase_of_session(tx, id)?;
            Ok::<_, Error>(store::erase(tx, id, by)?)
        });
        erase.await.map_err(|error| error.to_string())?;
        failpoint::reach("erase");
        self.core.state.checkpoint().await.map_err(|error| error.to_string())?;
        self.core.forget_snapshots().await.map_err(|error| error.to_string())?;
        let place = self.core.home.session(session.id).path().to_owned();
        let run = launch::run_directory(&self.core, session);
        let shown = place.display().to_string();
        let gone = tokio::task::spawn_blocking(move || remove_tree(&run).and_then(|()| remove_tree(&place))).await;
        match gone {
            Ok(Ok(())) => Ok(()),
            Ok(Err(error)) => Err(format!("{id} is erased, but {shown} remains: {error}")),
            Err(_) => Err(format!("{id} is erased, but {shown} remains")),
        }
    }
}

/// Removes a directory that a stranger filled, however deep: each level is moved up and taken apart at the top, so neither
/// the stack nor the descriptors grow with it. Links are removed, never followed.
pub(super) fn remove_tree(top: &Path) -> io::Result<()> {
    match top.symlink_metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(found) if !found.is_dir() => return std::fs::remove_file(top),
        Ok(_) => {}
    }
    let mut moved = 0u64;
    open_up(top)?;
    loop {
        let mut empty = true;
        for entry in std::fs::read_dir(top)? {
            let entry = entry?;
            empty = false;
            let path = entry.path();
            if !entry.file_type()?.is_dir() {
                std::fs::remove_file(&path)?;
                continue;
            }
            open_up(&path)?;
            for inner in std::fs::read_dir(&path)? {
                let inner = inner?;
                if inner.file_type()?.is_dir() {
                    open_up(&inner.path())?;
                    let to = loop {
                        moved += 1;
                        let to = top.join(format!(".removed-{moved}"));
                        if to.symlink_metadata().is_err() {
                            break to;
                        }
                    };
                    std::fs::rename(inner.path(), to)?;
                } else {
                    std::fs::remove_file(inner.path())?;
                }
            }
            std::fs::remove_dir(&path)?;
        }
        if empty {
            return std::fs::remove_dir(top);
        }
    }
}

/// A directory without rights for its owner cannot be taken apart by it.
fn open_up(directory: &Path) -> io::Result<()> {
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o700))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_of_any_depth_is_removed_and_nothing_behind_a_link() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let kept = directory.path().join("kept");
        std::fs::write(&kept, "x").expect("written");
        let top = directory.path().join("top");
        std::fs::create_dir(&top).expect("made");
        std::os::unix::fs::symlink(directory.path(), top.join("link")).expect("linked");
        // Deeper than any path may be long: made from within, as a stranger would.
        let made = std::process::Command::new("sh")
            .args([
                "-c",
                "for i in $(seq 1 1500); do mkdir abcdefgh && cd -P abcdefgh || exit 1; done; mkdir -m 000 shut",
            ])
            .current_dir(&top)
            .status();
        assert!(made.is_ok_and(|made| made.success()));
        remove_tree(&top).expect("removed");
        assert!(!top.exists() && kept.exists());
        remove_tree(&top).expect("a second time is nothing");
    }
}
