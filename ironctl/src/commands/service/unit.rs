//! The text of the systemd unit, and its file.
//!
//! Never calls systemd. The manual quotes the templates, and a test compares both. See [`super`].

use crate::failure::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

pub const NAME: &str = "ironclaw.service";

const USER: &str = include_str!("user.service");
const SYSTEM: &str = include_str!("system.service");

/// The directory of the units of the machine.
const SYSTEM_DIRECTORY: &str = "/etc/systemd/system";

/// The beginning of the first line; the checksum of the other lines follows.
const HEAD: &str = "# Written by `ironctl service install`, which does not replace a changed file. Checksum: ";

/// Bytes of a unit file.
const FILE_BYTES_MAX: u64 = 64 * 1024;

/// The manager of systemd that runs the unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manager {
    User,
    /// That of the machine.
    System,
}

/// The unit of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    pub manager: Manager,
    /// The program of the host.
    pub program: PathBuf,
    pub home: PathBuf,
    /// The file with the master key that systemd hands to the host; `None` for `master.key` in the home.
    pub credential: Option<PathBuf>,
}

impl Unit {
    /// Returns the content of the file, with a first line that shows a later change.
    pub fn file_text(&self) -> Result<String, Error> {
        let word = |path: &Path| {
            word(path).ok_or_else(|| {
                let message = format!("{path:?} has a character that a unit cannot contain");
                Error::failed("unit_path", message).hinting("use another directory")
            })
        };
        let credential = self.credential.as_deref().map(word).transpose()?;
        let text = render(self.manager, &word(&self.program)?, &word(&self.home)?, credential.as_deref());
        Ok(format!("{HEAD}{}\n{text}", checksum(text.as_bytes())))
    }
}

/// Returns a checksum (FNV-1a). It shows an edit by a person, and protects from no attacker: only the owner writes the file.
fn checksum(bytes: &[u8]) -> String {
    let sum = bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325_u64, |sum, byte| (sum ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3));
    format!("{sum:016x}")
}

/// Fills in a template with words in the syntax of units.
fn render(manager: Manager, program: &str, home: &str, credential: Option<&str>) -> String {
    let template = match manager {
        Manager::User => USER,
        Manager::System => SYSTEM,
    };
    let lines = template.lines().filter(|line| credential.is_some() || !line.contains("@CREDENTIAL@"));
    let text: String = lines.map(|line| format!("{line}\n")).collect();
    text.replace("@HOST@", program).replace("@HOME@", home).replace("@CREDENTIAL@", credential.unwrap_or_default())
}

/// Returns a path as one word of a unit; `None` if no syntax can express it.
fn word(path: &Path) -> Option<String> {
    let text = path.to_str().filter(|text| !text.chars().any(char::is_control))?;
    // A percent sign begins a specifier, and a dollar sign a variable.
    let escaped = text.replace('\\', r"\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
    let is_plain = text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-/%$".contains(&b));
    Some(if is_plain { escaped } else { format!("\"{escaped}\"") })
}

/// Returns the path of the unit file; `None` if the user has no home directory.
pub fn path(manager: Manager) -> Option<PathBuf> {
    match manager {
        Manager::User => directories::BaseDirs::new().map(|base| base.config_dir().join("systemd/user").join(NAME)),
        Manager::System => Some(Path::new(SYSTEM_DIRECTORY).join(NAME)),
    }
}

/// The state of the unit file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    Missing,
    /// Written by this command and unchanged since then.
    Own(String),
    /// Changed, or written by another program; also a link.
    Foreign,
}

/// Reads the unit file, without following a link.
pub fn look(path: &Path) -> Result<Found, Error> {
    let unreadable =
        |cause: io::Error| Error::failed("unit_unreadable", format!("cannot read {}", path.display())).because(cause);
    match path.symlink_metadata() {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Found::Missing),
        Err(cause) => return Err(unreadable(cause)),
        Ok(found) if !found.is_file() || found.len() > FILE_BYTES_MAX => return Ok(Found::Foreign),
        Ok(_) => {}
    }
    let text = String::from_utf8_lossy(&fs::read(path).map_err(unreadable)?).into_owned();
    let is_own = text
        .strip_prefix(HEAD)
        .and_then(|rest| rest.split_once('\n'))
        .is_some_and(|(sum, rest)| sum == checksum(rest.as_bytes()));
    Ok(if is_own { Found::Own(text) } else { Found::Foreign })
}

/// Returns whether a unit of this command runs a host on this home.
pub fn is_of_home(text: &str, home: &Path) -> bool {
    word(home).is_some_and(|home| {
        text.lines().any(|line| line.starts_with("ExecStart=") && line.ends_with(&format!(" run --home {home}")))
    })
}

/// Writes the unit file. A new file takes the place of a link.
pub fn write(path: &Path, text: &str) -> Result<(), Error> {
    let directory = path.parent().expect("a unit file is in a directory");
    let next = path.with_extension("service.next");
    let written =
        fs::create_dir_all(directory).and_then(|()| fs::write(&next, text)).and_then(|()| fs::rename(&next, path));
    written.map_err(|cause| Error::failed("unit_unwritten", format!("cannot write {}", path.display())).because(cause))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(manager: Manager) -> Unit {
        Unit { manager, program: "/opt/iron claw/ironclaw-host".into(), home: "/srv/100%".into(), credential: None }
    }

    #[test]
    fn manual_quotes_the_units() {
        let page = include_str!("../../../../docs/operate/install.md");
        let quoted = |text: &str| page.contains(&format!("```ini\n{text}```\n"));
        let user = render(Manager::User, "%h/.local/bin/ironclaw-host", "%h/.local/state/ironclaw", None);
        assert!(quoted(&user), "docs/operate/install.md does not have this unit:\n{user}");
        let key = Some("/etc/ironclaw/master.key");
        let system = render(Manager::System, "/usr/local/bin/ironclaw-host", "/var/lib/ironclaw", key);
        assert!(quoted(&system), "docs/operate/install.md does not have this unit:\n{system}");
    }

    #[test]
    fn special_characters_of_a_path_are_escaped() {
        let text = unit(Manager::User).file_text().expect("a unit");
        assert!(text.contains("ExecStart=\"/opt/iron claw/ironclaw-host\" run --home /srv/100%%\n"), "{text}");
        assert!(!text.contains('@'), "{text}");
        let broken = Unit { home: "/srv/a\nb".into(), ..unit(Manager::User) };
        assert_eq!(broken.file_text().expect_err("refused").report().expect("reported").error.code, "unit_path");
    }

    #[test]
    fn unit_has_a_credential_only_if_one_is_named() {
        let without = unit(Manager::System);
        assert!(!without.file_text().expect("a unit").contains("LoadCredential"));
        let with = Unit { credential: Some("/etc/k".into()), ..without };
        assert!(with.file_text().expect("a unit").contains("LoadCredential=ironclaw-master-key:/etc/k\n"));
    }

    #[test]
    fn changed_file_and_link_are_foreign() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("systemd/user").join(NAME);
        assert_eq!(look(&path).expect("read"), Found::Missing);
        let text = unit(Manager::User).file_text().expect("a unit");
        write(&path, &text).expect("written");
        assert_eq!(look(&path).expect("read"), Found::Own(text.clone()));
        assert!(is_of_home(&text, Path::new("/srv/100%")) && !is_of_home(&text, Path::new("/srv/100")));
        let other = directory.path().join("other");
        fs::write(&other, &text).expect("written");
        fs::write(&path, text.replace("on-failure", "no")).expect("written");
        assert_eq!(look(&path).expect("read"), Found::Foreign);
        fs::remove_file(&path).expect("removed");
        std::os::unix::fs::symlink(&other, &path).expect("linked");
        assert_eq!(look(&path).expect("read"), Found::Foreign);
        write(&path, &text).expect("written");
        assert!(path.symlink_metadata().expect("there").is_file(), "a new file takes the place of the link");
    }

    #[test]
    fn systemd_accepts_the_units() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        for (manager, scope) in [(Manager::User, "--user"), (Manager::System, "--system")] {
            let unit = Unit {
                manager,
                program: "/bin/true".into(),
                home: directory.path().join("my home"),
                credential: (manager == Manager::System).then(|| "/etc/ironclaw/master.key".into()),
            };
            let path = directory.path().join(NAME);
            fs::write(&path, unit.file_text().expect("a unit")).expect("written");
            let mut command = std::process::Command::new("systemd-analyze");
            command
                .args([scope, "verify", "--man=no", "--recursive-errors=no"])
                .arg(&path)
                .env("XDG_RUNTIME_DIR", directory.path());
            let output = command.output().expect("systemd-analyze is there: install systemd, or run .ci/test");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success() && !said.contains(NAME), "{said}");
        }
    }
}
