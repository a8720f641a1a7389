//! Checks directories that a person calls theirs, and finds those that a change ends.
//!
//! Before a person's request is recorded, a bounded walk looks at each entry of the directory, never into a file and never through a link.
//! Later the host checks each file again when it reads it, so a link that is made afterwards ends nothing and gives nothing. See
//! [`crate::registry::mounts::own`].

use super::super::kind::CheckContext;
use super::check::complete;
use crate::gateway::Requester;
use crate::gateway::review_page::effects::Effects;
use crate::registry::Agent;
use crate::registry::live_settings::HostPolicy;
use crate::registry::mounts::{self, own};
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::seam::change::Mount;
use ironclaw_jail::mount_table::Mounts;
use ironclaw_ledger::rfc3339;
use ironclaw_operator::DenialCode;
use ironclaw_state::ReadTx;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::facts;
use ironclaw_text::excerpt::quoted;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Entries of a directory and of those below it. A walk of more would hold the request for too long.
const ENTRIES_MAX: usize = 50_000;

/// Checks the directories among these that a person newly declares theirs.
///
/// # Errors
/// Refuses the declaration of an agent, and a directory that is writable or was writable.
pub(super) fn check(tx: &ReadTx<'_>, context: &CheckContext<'_>, wanted: &[Mount]) -> Result<(), Denied> {
    for mount in new(tx, context.agent, wanted)? {
        if let Requester::Agent { .. } = context.requester {
            let message = format!("an agent cannot ask that {} counts as a person's own", quoted(&mount.source));
            let refusal = Refusal::new(DenialCode::MountMineAgent, message);
            return Err(refusal.hint("leave out `mine`; the person can say so themselves").into());
        }
        check_one(tx, mount, wanted)?;
    }
    Ok(())
}

/// Returns the directories among these that the agent does not have as a person's.
fn new<'m>(
    tx: &ReadTx<'_>,
    agent: Option<&Agent>,
    wanted: &'m [Mount],
) -> Result<Vec<&'m Mount>, ironclaw_state::Error> {
    let had = match agent {
        Some(agent) => mounts::list_for_agent(tx, agent.id)?,
        None => Vec::new(),
    };
    let is_new = |mount: &&Mount| mount.mine == Some(true) && held_by(Path::new(&mount.source), &had).is_none();
    Ok(wanted.iter().filter(is_new).collect())
}

/// Returns the directories that a change of this agent newly declares a person's, for [`look_at`]; none if the change fails a check.
pub fn to_look_at(
    tx: &ReadTx<'_>,
    host_policy: &HostPolicy,
    agent: &Agent,
    wanted: Vec<Mount>,
) -> Result<Vec<String>, ironclaw_state::Error> {
    // The host looks at no directory that an agent could not get.
    let Ok(completed) = complete(wanted, host_policy) else { return Ok(Vec::new()) };
    Ok(new(tx, Some(agent), &completed)?.into_iter().map(|mount| mount.source.clone()).collect())
}

/// Looks at each entry of these directories. Blocks, and needs no transaction.
///
/// # Errors
/// Refuses a directory with a link out of it, a file with a second name, another file system or too many entries.
pub fn look_at(sources: &[String]) -> Result<(), Refusal> {
    for source in sources {
        match walk(Path::new(source)) {
            Ok(None) => {}
            Ok(Some(why)) => return Err(refuse(source, &why)),
            Err(error) => return Err(refuse(source, &format!("it cannot be read: {error}"))),
        }
    }
    Ok(())
}

fn check_one(tx: &ReadTx<'_>, mount: &Mount, wanted: &[Mount]) -> Result<(), Denied> {
    let source = Path::new(&mount.source);
    let no = |why: String| Err(refuse(&mount.source, &why).into());
    if mount.read_only == Some(false) {
        return no("the agent may write to it".to_owned());
    }
    let Ok(table) = Mounts::read() else {
        return no("the table of mounts cannot be read".to_owned());
    };
    let asked = wanted.iter().filter(|other| other.read_only == Some(false));
    let asked = asked.map(|other| own::Written { path: PathBuf::from(&other.source), writer: "the agent".to_owned() });
    let written: Vec<own::Written> = asked.chain(own::written(tx)?).collect();
    match own::overlapping(source, &written, &table) {
        Some(found) => no(own::Lost::Written(found.clone()).words()),
        None => Ok(()),
    }
}

/// Returns the person who declared this directory theirs, if the agent has it as such.
pub(super) fn held_by(source: &Path, had: &[mounts::Mount]) -> Option<PersonId> {
    had.iter().find(|held| held.source == source).and_then(|held| held.mine)
}

/// Returns the refusal of a declaration, with the reason.
pub fn refuse(source: &str, why: &str) -> Refusal {
    let refusal = Refusal::new(DenialCode::MountMine, format!("{} cannot count as your own: {why}", quoted(source)));
    refusal.hint("name a directory into which only you write, or leave out --mine")
}

/// Returns the first entry for which a directory is not of one author: a link out of it, a file with a second name, another file system.
/// Reaches no other file system: one that does not answer would hold the request.
fn walk(top: &Path) -> io::Result<Option<String>> {
    if let Some(mounted) = Mounts::read()?.below(top) {
        let name = quoted(mounted.strip_prefix(top).unwrap_or(&mounted).display());
        return Ok(Some(format!("{name} is on another file system")));
    }
    let directory = (OFlag::O_PATH | OFlag::O_DIRECTORY).bits();
    let opened = File::options().read(true).custom_flags(directory).open(top)?;
    let device = opened.metadata()?.dev();
    let (mut left, mut seen) = (vec![top.to_owned()], 0);
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(&directory)? {
            let path = entry?.path();
            let found = path.symlink_metadata()?;
            seen += 1;
            let name = quoted(path.strip_prefix(top).unwrap_or(&path).display());
            if seen > ENTRIES_MAX {
                return Ok(Some(format!("it has more than {ENTRIES_MAX} entries; name a directory below it")));
            }
            if found.dev() != device {
                return Ok(Some(format!("{name} is on another file system")));
            }
            if found.is_symlink() && !stays_below(&opened, path.strip_prefix(top).unwrap_or(&path)) {
                return Ok(Some(format!("the link {name} leads out of it, or nowhere")));
            }
            if found.is_file() && found.nlink() > 1 {
                return Ok(Some(format!("{name} has a second name, a hard link")));
            }
            if found.is_dir() {
                left.push(path);
            }
        }
    }
    Ok(None)
}

/// Returns whether a link leads to a file or a directory below `top`, on the same file system.
fn stays_below(top: &File, link: &Path) -> bool {
    let below = ResolveFlag::RESOLVE_BENEATH | ResolveFlag::RESOLVE_NO_XDEV | ResolveFlag::RESOLVE_NO_MAGICLINKS;
    openat2(top, link, OpenHow::new().flags(OFlag::O_PATH | OFlag::O_CLOEXEC).resolve(below)).is_ok()
}

/// Adds the directories to the facts of a change that are no longer a person's after it.
pub fn add_ended(tx: &ReadTx<'_>, facts: &mut Value, wanted: &[Mount]) -> Result<(), ironclaw_state::Error> {
    let writable = wanted.iter().filter(|mount| mount.read_only == Some(false)).map(|mount| mount.source.as_str());
    let ended = own::ended_by(tx, writable)?;
    if !ended.is_empty() {
        let shown = ended.iter().map(|(agent, mount)| json!([agent, mount.source.display().to_string()]));
        facts["no_longer_own"] = shown.collect();
    }
    Ok(())
}

/// Adds the time to the facts of a declaration before which the record does not know all writers. Only a restored record has it.
pub fn add_known_since(tx: &ReadTx<'_>, facts: &mut Value) -> Result<(), ironclaw_state::Error> {
    let generation = facts::generation(tx)?;
    if generation > 0 {
        facts["writers_known_since"] = json!(rfc3339(i64::try_from(generation).unwrap_or(i64::MAX)));
    }
    Ok(())
}

/// Warns that a restored record does not know who could write to a declared source before.
pub fn put_known_since(page: &mut Effects<'_>) {
    let facts = page.facts;
    if let Some(since) = facts["writers_known_since"].as_str() {
        page.warn(format!(
            "This record was RESTORED at {since}. It does not know what agents could write, and wrote, between the backup and that time."
        ));
    }
}

/// Warns about the directories that are no longer a person's after a change.
pub fn put_ended(page: &mut Effects<'_>) {
    let facts = page.facts;
    for ended in facts["no_longer_own"].as_array().into_iter().flatten() {
        let [agent, source] = [0, 1].map(|part| page.show(ended[part].as_str().unwrap_or_default()));
        page.warn(format!(
            "{source} of agent {agent} is NO LONGER A PERSON'S OWN after this, now and later: its text counts as text of others."
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn entry_that_leads_out_of_a_directory_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let root = directory.path().canonicalize().expect("there");
        let top = root.join("notes");
        fs::create_dir_all(top.join("deep")).expect("made");
        fs::write(top.join("deep/a.md"), "a").expect("written");
        symlink("deep/a.md", top.join("inside")).expect("linked");
        assert_eq!(walk(&top).expect("read"), None, "a link that stays inside is harmless");
        fs::write(root.join("outside"), "x").expect("written");
        for (name, target) in [("out", "../outside"), ("absolute", "/etc/hostname"), ("gone", "nothing")] {
            symlink(target, top.join(name)).expect("linked");
            let why = walk(&top).expect("read").expect(name);
            assert!(why.contains(name), "{why}");
            fs::remove_file(top.join(name)).expect("removed");
        }
        fs::hard_link(root.join("outside"), top.join("deep/second")).expect("linked");
        let why = walk(&top).expect("read").expect("a second name");
        assert!(why.contains("deep/second"), "{why}");
    }
}
