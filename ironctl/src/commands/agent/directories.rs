//! `ironctl agent grant-dir` and `revoke-dir`: the directories of this machine in the jail of an agent.
//!
//! Keeps the other directories of the agent, and never grants one itself: the change goes through the gateway. See
//! [`crate::commands::propose`].

use crate::at::At;
use crate::client::Client;
use crate::commands::{propose, review};
use crate::failure::Error;
use ironclaw_operator::{AgentMount, ChangeKind, DenialCode, Details, NewAllowed, Waiting, WaitingStatus, routes};
use serde_json::{Value, json};
use std::io;
use std::path::{Path, PathBuf};

/// Options of `ironctl agent grant-dir`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl agent grant-dir assistant /srv/papers\n  ironctl agent grant-dir assistant /srv/drafts --write --as /drafts\n  ironctl agent grant-dir assistant ~/notes --mine --allow"
)]
pub struct Grant {
    /// Name or id of the agent
    agent: String,
    /// Directory of this machine, at or below an entry of `[mounts] allow`; an owner can add it there at the question
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// Let the agent write there too [default: read only]
    #[arg(long)]
    write: bool,
    /// The text there is your own: only you write it, and no agent ever could [default: text of others]
    #[arg(long, conflicts_with = "write")]
    mine: bool,
    /// Its path in the jail: / and one name [default: / and the name of the directory]
    #[arg(long = "as", value_name = "TARGET")]
    target: Option<String>,
    /// Also add the directory to `[mounts] allow` of config.toml, if no entry covers it; only an owner may
    #[arg(long)]
    allow: bool,
    /// Approve the change without a question
    #[arg(long)]
    yes: bool,
}

/// Options of `ironctl agent revoke-dir`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ironctl agent revoke-dir assistant /srv/papers")]
pub struct Revoke {
    /// Name or id of the agent
    agent: String,
    /// Directory, by its path on this machine or in the jail; repeatable
    #[arg(value_name = "DIR", required = true)]
    directories: Vec<PathBuf>,
    /// Approve the change without a question
    #[arg(long)]
    yes: bool,
}

/// Gives an agent a directory beside those that it has; sets the access to a directory that it has.
pub async fn grant(at: &At, client: &Client, args: Grant) -> Result<(), Error> {
    let Grant { agent, directory, write, mine, target, allow, yes } = args;
    let source = absolute(&directory)?;
    let agent = client.call(routes::AGENT, [&agent]).await?;
    let payload = with(&agent.mounts, &source, target.map(rooted), Access::new(write, mine));
    let id = agent.id.to_string();
    let mut decided = propose::decide(at, client, ChangeKind::Mounts, Some(&id), payload.clone(), yes).await;
    if decided.as_ref().is_err_and(|refused| is_not_allowed(refused, &source)) {
        check_existing(at, &source)?;
        let is_offered = allow || !yes && review::is_possible(at.out);
        if !is_offered {
            check_allowable(client, &source).await?;
        }
        if is_offered && allow_directory(at, client, &source, allow, yes).await? {
            decided = propose::decide(at, client, ChangeKind::Mounts, Some(&id), payload, yes).await;
        }
    }
    let decided = decided.map_err(|error| with_remedy(error, &source, &settings(at)))?;
    at.out.json(&decided)?;
    match decided.as_ref().and_then(|change| granted(change, &source)) {
        Some((target, access)) => at.out.line(format!("{} sees {source} at {target}, {access}", agent.name)),
        None => Ok(()),
    }
}

/// Refuses a directory that does not exist. Only the host knows the directories of another machine.
fn check_existing(at: &At, source: &str) -> Result<(), Error> {
    let is_missing = |error: io::Error| error.kind() == io::ErrorKind::NotFound;
    match matches!(at.access.port(), Ok(None)) && Path::new(source).symlink_metadata().is_err_and(is_missing) {
        true => Err(Error::failed("directory_unknown", format!("there is no directory {source} on this machine"))
            .hinting(format!("check its name, or make it first: mkdir -p {source}"))),
        false => Ok(()),
    }
}

/// Refuses a directory that no setting would make usable, such as a file or the home of the host, with the reason.
async fn check_allowable(client: &Client, source: &str) -> Result<(), Error> {
    let new = NewAllowed { directory: source.to_owned(), shown: None };
    let is_of_directory = |error: &Error| {
        let Error::Refused(failure) = error else { return false };
        let codes = [
            DenialCode::MountSource,
            DenialCode::MountSystem,
            DenialCode::MountPrivate,
            DenialCode::MountNetwork,
            DenialCode::MountLink,
        ];
        codes.iter().any(|code| failure.error.code == code.name())
    };
    match client.post(routes::REVIEW_ALLOWED, [], &new).await {
        Err(error) if is_of_directory(&error) => Err(error),
        _ => Ok(()),
    }
}

/// Returns whether the settings do not allow this directory. The refusal can be about another directory of the agent.
fn is_not_allowed(error: &Error, source: &str) -> bool {
    let Error::Refused(failure) = error else { return false };
    let is = |code: DenialCode| failure.error.code == code.name();
    is(DenialCode::MountsOff)
        || is(DenialCode::MountNotAllowed) && failure.error.message.contains(&format!("{source:?}"))
}

/// Adds a directory to the allowed ones after a yes to the page of the step. Returns false if this person may not, and did not ask for it.
async fn allow_directory(at: &At, client: &Client, source: &str, is_asked: bool, yes: bool) -> Result<bool, Error> {
    let mut new = NewAllowed { directory: source.to_owned(), shown: None };
    let page = match client.post(routes::REVIEW_ALLOWED, [], &new).await {
        Err(Error::Refused(_)) if !is_asked => return Ok(false),
        page => page?,
    };
    at.out.remark("no entry of `[mounts] allow` covers this directory yet")?;
    new.shown = Some(review::agreed(at.out, &page, yes).await?);
    let reloaded = client.post(routes::ALLOW_DIRECTORY, [], &new).await?;
    let file = reloaded.file.unwrap_or_else(|| "config.toml".to_owned());
    at.out.remark(format!("added {source} to `[mounts] allow` of {file}"))?;
    Ok(true)
}

/// Takes directories back from an agent.
pub async fn revoke(at: &At, client: &Client, args: Revoke) -> Result<(), Error> {
    let Revoke { agent, directories, yes } = args;
    let agent = client.call(routes::AGENT, [&agent]).await?;
    let mut mounts = agent.mounts;
    for directory in &directories {
        let Some(index) = position(&mounts, directory)? else {
            let message = format!("agent {} has no access to {}", agent.name, directory.display());
            let hint = format!("ironctl agent show {} lists its directories", agent.name);
            return Err(Error::failed("directory_not_granted", message).hinting(hint));
        };
        mounts.remove(index);
    }
    propose::decide_and_print(
        at,
        ChangeKind::Mounts,
        Some(&agent.id.to_string()),
        mounts.iter().map(kept).collect(),
        yes,
    )
    .await
}

/// Returns the complete list of directories with this one. A directory that the agent has keeps its target unless another is named.
fn with(mounts: &[AgentMount], source: &str, target: Option<String>, access: Access) -> Value {
    let had = mounts.iter().find(|mount| mount.source == source);
    let target = target.or_else(|| had.map(|mount| mount.target.clone()));
    let mut new = json!({ "source": source, "read_only": access != Access::Writable });
    if access == Access::Own {
        new["mine"] = true.into();
    }
    if let Some(target) = target {
        new["target"] = target.into();
    }
    let others = mounts.iter().filter(|mount| mount.source != source).map(kept);
    others.chain([new]).collect()
}

/// The access to a granted directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    ReadOnly,
    /// Read only, and its text is the person's.
    Own,
    Writable,
}

impl Access {
    const fn new(write: bool, mine: bool) -> Self {
        match (write, mine) {
            (true, _) => Self::Writable,
            (false, true) => Self::Own,
            (false, false) => Self::ReadOnly,
        }
    }
}

/// Returns an unchanged directory as a part of the change.
fn kept(AgentMount { source, target, read_only, mine }: &AgentMount) -> Value {
    let mut kept = json!({ "source": source, "target": target, "read_only": read_only });
    if mine.is_some() {
        kept["mine"] = true.into();
    }
    kept
}

/// Returns the index of a directory that is named by its path on the machine or in the jail.
fn position(mounts: &[AgentMount], directory: &Path) -> Result<Option<usize>, Error> {
    let (source, typed) = (absolute(directory)?, directory.to_string_lossy());
    let by_source = mounts.iter().position(|mount| mount.source == source || mount.source == typed);
    Ok(by_source.or_else(|| mounts.iter().position(|mount| mount.target == typed)))
}

/// Returns the real path of a directory, because the host follows no link. A path that this user cannot resolve is only made absolute.
pub fn absolute(directory: &Path) -> Result<String, Error> {
    let unusable = || Error::usage(format!("cannot use the path {}", directory.display()), "name a directory");
    let path = directory.canonicalize().or_else(|_| std::path::absolute(directory)).map_err(|_| unusable())?;
    // The parts of the path, so that no slash is left at its end.
    let path: PathBuf = path.components().collect();
    path.into_os_string().into_string().map_err(|_| unusable().hinting("its path must be UTF-8"))
}

fn rooted(target: String) -> String {
    if target.starts_with('/') { target } else { format!("/{target}") }
}

/// Returns the target and the access of a directory in an applied change.
fn granted(change: &Waiting, source: &str) -> Option<(String, &'static str)> {
    let Some(Details::Change(details)) = &change.entry.details else { return None };
    let mount = details.after.as_array()?.iter().find(|mount| mount["source"] == source)?;
    let access = match (mount["read_only"] == false, mount["mine"] == true) {
        (true, _) => "writable",
        (false, true) => "read only, as your own text",
        (false, false) => "read only",
    };
    (change.entry.status == WaitingStatus::Done).then_some((mount["target"].as_str()?.to_owned(), access))
}

/// Returns the file with the settings of the host, with its path if the home is known.
fn settings(at: &At) -> String {
    match at.access.port() {
        Ok(None) => at.home.path().join("config.toml").display().to_string(),
        _ => "config.toml of the host".to_owned(),
    }
}

/// Replaces the hint of a refused directory by the next step for it.
fn with_remedy(error: Error, source: &str, settings: &str) -> Error {
    let Error::Refused(mut failure) = error else { return error };
    let is = |codes: &[DenialCode]| codes.iter().any(|code| failure.error.code == code.name());
    if is(&[DenialCode::MountsOff, DenialCode::MountNotAllowed]) {
        failure.error.hint = match is_not_allowed(&Error::Refused(failure.clone()), source) {
            false => format!("{}; or take it from the agent: ironctl agent revoke-dir", failure.error.hint),
            true => format!(
                "an owner repeats the command with --allow; or add {source:?} to `allow` below `[mounts]` in {settings}, then: ironctl config reload"
            ),
        };
    } else if is(&[DenialCode::MountTarget, DenialCode::MountTwice]) {
        failure.error.hint =
            "name another place in the jail: --as /NAME, with one name of a-z, A-Z, 0-9, -, _ and .".to_owned();
    }
    Error::Refused(failure)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_operator::Failure;

    fn mount(source: &str, target: &str, read_only: bool) -> AgentMount {
        AgentMount { source: source.to_owned(), target: target.to_owned(), read_only, mine: None }
    }

    #[test]
    fn granted_directory_joins_the_others_and_keeps_its_target() {
        let had = [mount("/srv/a", "/a", true), mount("/srv/b", "/other", true)];
        assert_eq!(
            with(&had, "/srv/c", None, Access::ReadOnly),
            json!([
                { "source": "/srv/a", "target": "/a", "read_only": true },
                { "source": "/srv/b", "target": "/other", "read_only": true },
                { "source": "/srv/c", "read_only": true }
            ])
        );
        let again = with(&had, "/srv/b", None, Access::Writable);
        assert_eq!(again[1], json!({ "source": "/srv/b", "target": "/other", "read_only": false }));
        let moved = with(&had, "/srv/b", Some("/b".to_owned()), Access::ReadOnly);
        assert_eq!(moved[1]["target"], "/b");
        assert_eq!(moved.as_array().map(Vec::len), Some(2));
    }

    #[test]
    fn directory_is_found_by_either_path() {
        let had = [mount("/srv/a", "/b", true), mount("/nonexistent/b", "/c", true)];
        let found = |path: &str| position(&had, Path::new(path)).expect("a path");
        assert_eq!((found("/srv/a"), found("/srv/a/")), (Some(0), Some(0)));
        assert_eq!((found("/nonexistent/b"), found("/b"), found("/c")), (Some(1), Some(0), Some(1)));
        assert_eq!(found("/srv"), None);
    }

    #[test]
    fn path_is_made_absolute_and_links_are_resolved() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let root = directory.path().canonicalize().expect("it exists");
        std::fs::create_dir(root.join("real")).expect("made");
        std::os::unix::fs::symlink(root.join("real"), root.join("link")).expect("linked");
        let real = root.join("real").display().to_string();
        assert_eq!(absolute(&root.join("link/")).expect("a path"), real);
        assert_eq!(absolute(Path::new("/nonexistent/x/")).expect("a path"), "/nonexistent/x");
        assert_eq!((rooted("papers".to_owned()), rooted("/papers".to_owned())), ("/papers".into(), "/papers".into()));
    }

    #[test]
    fn refused_directory_gets_the_next_step() {
        let hint = |code: DenialCode, message: &str| {
            let refused = Error::Refused(Failure::new(code.name(), message, "as the host says"));
            with_remedy(refused, "/srv/a", "/h/config.toml").report().expect("reported").error.hint
        };
        let off = hint(DenialCode::MountsOff, "no directory of this host may be mounted");
        assert!(
            off.contains("add \"/srv/a\" to `allow`")
                && off.contains("/h/config.toml")
                && off.contains("config reload"),
            "{off}"
        );
        let this = hint(DenialCode::MountNotAllowed, "\"/srv/a\" cannot be mounted: it is below none");
        assert_eq!(this, off);
        let other = hint(DenialCode::MountNotAllowed, "\"/srv/b\" cannot be mounted: it is below none");
        assert!(other.contains("revoke-dir"), "{other}");
        assert!(hint(DenialCode::MountTarget, "target /usr is reserved").contains("--as"));
        assert_eq!(hint(DenialCode::MountPrivate, "it has files of the host itself"), "as the host says");
    }
}
