//! `ironctl skill sign` and `ironctl skill verify`.

use super::{failure, key, pack};
use crate::at::At;
use crate::failure::Error;
use crate::local_file;
use ironclaw_skill::Package;
use ironclaw_skill::author::{self, SecretKey};
use ironclaw_skill::signature::{self, PublicKey};
use serde_json::json;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Bytes of a signature.
const SIGNATURE_BYTES_MAX: usize = 4 * 1024;

/// Returns the file of the signature of a file.
pub fn signature_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".minisig");
    PathBuf::from(name)
}

/// Signs a package and writes its signature.
pub fn sign(at: &At, file: &Path, key: &key::Secret, is_legacy: bool) -> Result<(), Error> {
    let package = Package::read(file).map_err(|cause| failure::about(file, cause))?;
    let (path, signer) = sign_with(file, &package, &key.read()?, is_legacy)?;
    at.out.json(&json!({ "file": file, "signature": path, "signer": signer }))?;
    at.out.line(format!("signed {} by key {signer}: {}", file.display(), path.display()))
}

/// Signs a package with a key. Returns the file of the signature and the id of the key.
pub fn sign_with(file: &Path, package: &Package, key: &SecretKey, is_legacy: bool) -> Result<(PathBuf, String), Error> {
    let failed = |cause| failure::about(file, cause);
    let comment = signature::comment_of(&package.manifest.name, &package.manifest.version);
    let unreadable = |cause| Error::failed("skill_file", format!("cannot read {}", file.display())).because(cause);
    let bytes = File::open(file).map_err(unreadable)?;
    let text = author::sign(bytes, key, &comment, is_legacy).map_err(failed)?;
    let path = signature_of(file);
    pack::write(&path, text.as_bytes(), true)?;
    Ok((path, signature::key_id(&text).map_err(failed)?))
}

/// Checks a package, and its signature if there is a key.
pub fn run(at: &At, file: &Path, key: Option<&str>) -> Result<(), Error> {
    let failed = |cause| failure::about(file, cause);
    let path = signature_of(file);
    let signature = match path.exists() {
        true => Some(as_text(&path)?),
        false => None,
    };
    let package = match (key, &signature) {
        (Some(key), Some(signature)) => Package::read_signed(file, signature, &public_key(key)?).map_err(failed)?,
        (Some(_), None) => {
            let message = format!("{} has no signature: {} is missing", file.display(), path.display());
            return Err(Error::failed("skill_unsigned", message).hinting("get the signature from the author"));
        }
        (None, _) => Package::read(file).map_err(failed)?,
    };
    let signer =
        signature.as_deref().map(signature::key_id).transpose().map_err(|cause| failure::about(&path, cause))?;
    let manifest = &package.manifest;
    at.out.json(&json!({
        "name": manifest.name,
        "version": manifest.version,
        "signer": signer,
        "verified": key.is_some(),
        "files": manifest.files,
        "grants": manifest.grants,
        "description": package.description,
        "digest": package.digest,
        "bytes": package.bytes,
    }))?;
    at.out.line(format!(
        "{} {} (files: {}, bytes: {})",
        manifest.name,
        manifest.version,
        manifest.files.len(),
        package.bytes
    ))?;
    at.out.line(&package.description)?;
    at.out.line(grants(&package))?;
    at.out.line(match (&signer, key) {
        (Some(signer), Some(_)) => format!("signed by key {signer}"),
        (Some(signer), None) => format!("not verified: the signature names key {signer}; check it with --key PUB"),
        (None, _) => "not signed".to_owned(),
    })
}

/// Returns the grants of a package as TOML.
pub fn grants(package: &Package) -> String {
    match package.manifest.grants.is_empty() {
        true => "it asks for no grants".to_owned(),
        false => format!("it asks for these grants:\n{}", package.manifest.grants_toml()),
    }
}

/// Reads a public key from a file, or from its own line.
fn public_key(given: &str) -> Result<PublicKey, Error> {
    let path = Path::new(given);
    match path.exists() {
        true => PublicKey::parse(&key::text(path)?).map_err(|cause| failure::about(path, cause)),
        false => PublicKey::parse(given).map_err(|_| {
            let message = format!("{given} is neither a file nor a public key of minisign");
            Error::failed("skill_key", message).hinting("name the file of the public key, such as skill.pub")
        }),
    }
}

/// Reads a signature as text.
pub fn as_text(path: &Path) -> Result<String, Error> {
    let bytes = local_file::read(path, SIGNATURE_BYTES_MAX)?;
    String::from_utf8(bytes)
        .map_err(|_| Error::failed("skill_unsigned", format!("{} is no signature of minisign", path.display())))
}
