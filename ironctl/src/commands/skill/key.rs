//! The keys of an author: `ironctl skill keygen`, and the secret key of the commands that sign.
//!
//! Never prints a secret key, and never takes a password from the command line.

use super::{failure, pack};
use crate::at::At;
use crate::failure::Error;
use crate::local_file;
use crate::secret_input::{self, Typed};
use directories::BaseDirs;
use ironclaw_skill::author::{self, SecretKey};
use ironclaw_text::shell::quoted;
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};

/// Bytes of the file of a key.
const KEY_BYTES_MAX: usize = 4 * 1024;
/// The ending of a public key.
const PUBLIC: &str = "pub";
const PASSWORD: &str = "password of the key";

/// The option with a secret key.
#[derive(Debug, clap::Args)]
pub struct Secret {
    /// File with the secret key [default: ~/.config/ironclaw/skill.key]
    #[arg(long, value_name = "KEY")]
    key: Option<PathBuf>,
}

impl Secret {
    /// Reads the key, and asks for its password if it has one.
    pub fn read(&self) -> Result<SecretKey, Error> {
        let path = self.key.clone().map_or_else(default_path, Ok)?;
        if path.symlink_metadata().is_err() {
            let hint = format!("make one with `ironctl skill keygen --out {}`", quoted(&path.to_string_lossy()));
            return Err(Error::failed("skill_key_missing", format!("{} is missing", path.display())).hinting(hint));
        }
        let text = text(&path)?;
        let password =
            SecretKey::needs_password(&text).then(|| secret_input::read(PASSWORD, Typed::Once)).transpose()?;
        let password = password.map(ironclaw_operator::SecretValue::take);
        SecretKey::parse(&text, password.as_deref()).map_err(|cause| failure::about(&path, cause))
    }
}

/// Reads a key as text.
pub fn text(path: &Path) -> Result<String, Error> {
    let bytes = local_file::read(path, KEY_BYTES_MAX)?;
    let unreadable = || Error::failed("skill_key", format!("{} is no key of minisign", path.display()));
    String::from_utf8(bytes).map_err(|_| unreadable())
}

fn default_path() -> Result<PathBuf, Error> {
    let base = BaseDirs::new().ok_or_else(|| {
        Error::failed("home_unknown", "cannot find the key: $HOME is not set").hinting("name it with --key FILE")
    })?;
    Ok(base.config_dir().join("ironclaw/skill.key"))
}

/// Makes a key and writes its two files.
pub fn generate(at: &At, out: Option<PathBuf>, no_password: bool) -> Result<(), Error> {
    let path = out.map_or_else(default_path, Ok)?;
    let public = path.with_extension(PUBLIC);
    if public == path {
        return Err(Error::usage("the secret key cannot end in .pub", "name it FILE.key"));
    }
    let taken = |path: &Path| Error::failed("file_exists", format!("{} exists", path.display()));
    if let Some(path) = [&path, &public].into_iter().find(|path| path.symlink_metadata().is_ok()) {
        return Err(taken(path).hinting("name another file with --out"));
    }
    if let Some(directory) = path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        let failed = |cause| Error::failed("skill_file", format!("cannot make {}", directory.display())).because(cause);
        fs::create_dir_all(directory).map_err(failed)?;
    }
    let password = (!no_password).then(|| secret_input::read(PASSWORD, Typed::Twice)).transpose()?;
    let password = password.map(ironclaw_operator::SecretValue::take);
    let pair = author::generate_key(password.as_deref()).map_err(|cause| failure::about(&path, cause))?;
    pack::write_private(&path, pair.secret.as_bytes())?;
    pack::write(&public, pair.public.as_bytes(), false)?;
    at.out.json(&json!({ "secret": path, "public": public, "id": pair.id }))?;
    at.out.line(format!("made key {}: {} and {}", pair.id, path.display(), public.display()))
}
