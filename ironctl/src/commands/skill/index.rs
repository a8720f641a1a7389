//! `ironctl skill index`: the signed index of a directory with packages.

use super::{failure, key, pack, verify};
use crate::at::At;
use crate::failure::Error;
use crate::local_file;
use ironclaw_skill::Package;
use ironclaw_skill::author::{self, SecretKey};
use ironclaw_skill::index::{Entry, INDEX, INDEX_BYTES_MAX, Index, Release, Revoked, comment_of};
use ironclaw_skill::signature::{self, PublicKey};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// The ending of a package.
const ENDING: &str = ".skill";

/// The arguments of `ironctl skill index`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl skill index public\n  ironctl skill index public --revoke meeting-notes@1.0.0"
)]
pub struct Args {
    /// Directory with packages, NAME.skill, each with its signature
    dir: PathBuf,
    #[command(flatten)]
    key: key::Secret,
    /// Serial number of the index [default: one more than that of the present one]
    #[arg(long, value_name = "N")]
    serial: Option<u64>,
    /// Revoke a version of a skill
    #[arg(long, value_name = "NAME@VERSION")]
    revoke: Vec<String>,
    /// Revoke a key
    #[arg(long, value_name = "ID")]
    revoke_key: Vec<String>,
}

pub fn run(at: &At, args: &Args) -> Result<(), Error> {
    let path = args.dir.join(INDEX);
    let failed = |cause| failure::about(&path, cause);
    let former = former(&path)?;
    let serial = args.serial.unwrap_or(former.serial + 1);
    if serial <= former.serial {
        let message = format!("the serial number {serial} is not above {}, that of the present index", former.serial);
        return Err(Error::usage(message, "leave --serial out"));
    }
    let revoked = revoked(former.revoked, args)?;
    let key = args.key.read()?;
    let index = Index { serial, skills: entries(at, &args.dir, &key, &revoked)?, revoked };
    let text = index.to_text().map_err(failed)?;
    let signature = author::sign(text.as_bytes(), &key, &comment_of(serial), false).map_err(failed)?;
    pack::write(&path, text.as_bytes(), true)?;
    pack::write(&verify::signature_of(&path), signature.as_bytes(), true)?;
    let signer = signature::key_id(&signature).map_err(failed)?;
    at.out.json(&json!({ "file": path, "serial": serial, "skills": index.skills.len(), "signer": signer }))?;
    at.out.line(format!(
        "index {serial} (packages: {}), signed by key {signer}: {}",
        index.skills.len(),
        path.display()
    ))
}

/// Returns the present index; an empty one if there is none.
fn former(path: &Path) -> Result<Index, Error> {
    match path.symlink_metadata().is_ok() {
        true => Index::parse(&local_file::read(path, INDEX_BYTES_MAX)?).map_err(|cause| failure::about(path, cause)),
        false => Ok(Index::default()),
    }
}

fn revoked(mut revoked: Revoked, args: &Args) -> Result<Revoked, Error> {
    for given in &args.revoke {
        let release = given
            .split_once('@')
            .and_then(|(name, version)| Some(Release { name: name.parse().ok()?, version: version.parse().ok()? }));
        let Some(release) = release else {
            return Err(Error::usage(format!("{given:?} is no version of a skill"), "--revoke meeting-notes@1.0.0"));
        };
        revoked.skills.push(release);
    }
    revoked.keys.extend(args.revoke_key.iter().map(|id| id.to_ascii_uppercase()));
    revoked.skills.sort();
    revoked.skills.dedup();
    revoked.keys.sort();
    revoked.keys.dedup();
    Ok(revoked)
}

/// Reads the packages of a directory. Leaves out those that are revoked.
fn entries(at: &At, directory: &Path, key: &SecretKey, revoked: &Revoked) -> Result<Vec<Entry>, Error> {
    let unreadable = |cause| Error::failed("skill_file", format!("cannot read {}", directory.display())).because(cause);
    let mut names = Vec::new();
    for entry in fs::read_dir(directory).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        names.extend(name.to_str().filter(|name| name.ends_with(ENDING)).map(str::to_owned));
    }
    names.sort();
    let own =
        key.public().and_then(|text| PublicKey::parse(&text)).map_err(|cause| failure::about(directory, cause))?;
    let mut entries = Vec::new();
    for name in names {
        let path = directory.join(&name);
        let package = signed(&path, &own)?;
        let (skill, version) = (package.manifest.name, package.manifest.version);
        let release = Release { name: skill, version };
        if revoked.skills.contains(&release) {
            at.out.remark(format!("left out: {name} is revoked"))?;
            continue;
        }
        let Release { name: skill, version } = release;
        entries.push(Entry {
            name: skill,
            version,
            file: name,
            bytes: package.bytes,
            digest: package.digest,
            description: package.description,
        });
    }
    Ok(entries)
}

/// Reads a package with a signature; checks the signature if it is by this key.
fn signed(path: &Path, own: &PublicKey) -> Result<Package, Error> {
    let failed = |cause| failure::about(path, cause);
    let file = verify::signature_of(path);
    if !file.exists() {
        let message = format!("{} has no signature", path.display());
        return Err(Error::failed("skill_unsigned", message).hinting(format!("ironctl skill sign {}", path.display())));
    }
    let signature = verify::as_text(&file)?;
    match signature::key_id(&signature).map_err(|cause| failure::about(&file, cause))? == own.id {
        true => Package::read_signed(path, &signature, own).map_err(failed),
        false => Package::read(path).map_err(failed),
    }
}
