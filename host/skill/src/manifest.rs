//! `skill.toml`: the name, the version and the grants of a skill, and the digest of each of its files.

use crate::Error;
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::seam::change::{Egress, Mount, Packages, Schedule};
use semver::Version;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

mod bounds;

/// Entries of each list of a manifest.
pub const ENTRIES_MAX: usize = 16;
/// Bytes of the persona of a skill.
pub const PERSONA_BYTES_MAX: usize = 2_000;
const VERSION_CHARACTERS_MAX: usize = 64;
/// Characters of the cause in an error.
const CAUSE_CHARACTERS_MAX: usize = 200;

/// The name of a skill: 1 to 64 of `a-z`, `0-9` and `-`, without `-` at an end or twice, as the Agent Skills format has it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(String);

/// The manifest of a package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The name; also that of `SKILL.md`.
    pub name: Name,
    /// The version, as <https://semver.org> has it, without build metadata.
    pub version: Version,
    /// The grants that it asks for.
    #[serde(default, skip_serializing_if = "Grants::is_empty")]
    pub grants: Grants,
    /// Its needs, for people who read the page.
    #[serde(default, skip_serializing_if = "Needs::is_empty")]
    pub needs: Needs,
    /// The digest of each file except `skill.toml`, by its path in the package. `pack` writes it; a source directory has none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub files: BTreeMap<String, Digest>,
}

/// The grants of a skill. Never a tunnel and never a secret: see [`Manifest::parse`].
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grants {
    /// Text that the prompt of the agent always has, at most 2,000 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persona: Option<String>,
    /// Names of built-in tools.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Tools of MCP servers that the host has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mcp: Vec<McpGrant>,
    /// Hosts of the network.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub egress: Vec<Egress>,
    /// Directories of the host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    #[serde(default, skip_serializing_if = "Packages::is_empty")]
    pub packages: Packages,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub schedules: Vec<Schedule>,
}

/// Tools of one MCP server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpGrant {
    /// Name of the server at the host.
    pub server: String,
    /// Names of its tools; at least one.
    pub tools: Vec<String>,
    /// Names of those tools whose every call waits for a person while this skill is installed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub always_ask: Vec<String>,
}

/// Needs of a skill that the host does not check.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Needs {
    /// Names of programs of the machine, such as `python3`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub programs: Vec<String>,
}

impl Manifest {
    /// Reads `skill.toml`, strictly and within bounds. A source directory has no digests of files.
    ///
    /// Refuses a secret and a tunnel in an egress grant, and the fields of a schedule that the host fills in.
    ///
    /// # Errors
    /// [`Error::Manifest`] with the field and the reason; [`Error::Path`] for a path of a file that no package may have.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let refused = |what: String| Error::manifest(crate::MANIFEST, what);
        if text.len() as u64 > crate::MANIFEST_BYTES_MAX {
            return Err(Error::TooLarge(format!(
                "{} has more than {} bytes",
                crate::MANIFEST,
                crate::MANIFEST_BYTES_MAX
            )));
        }
        let manifest: Self = toml::from_str(text).map_err(|error| refused(cause(&error)))?;
        if !manifest.version.build.is_empty() || manifest.version.to_string().len() > VERSION_CHARACTERS_MAX {
            return Err(refused(
                "version must be MAJOR.MINOR.PATCH, and may have a suffix such as -rc.1 but none with +".to_owned(),
            ));
        }
        bounds::check(&manifest).map_err(refused)?;
        let mut paths = crate::path::Paths::default();
        for path in manifest.files.keys() {
            paths.add(path)?;
        }
        if manifest.files.contains_key(crate::MANIFEST) {
            return Err(refused(format!("files names {} itself", crate::MANIFEST)));
        }
        Ok(manifest)
    }

    /// Returns its text in the one form that [`Manifest::parse`] reads back.
    ///
    /// # Panics
    /// Never for a manifest from [`Manifest::parse`]: its keys are strings, and it has no value that TOML cannot write.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("every field has a form in TOML")
    }

    /// Returns the text of its grants alone, in the form of [`Manifest::to_toml`].
    ///
    /// # Panics
    /// As [`Manifest::to_toml`].
    pub fn grants_toml(&self) -> String {
        toml::to_string(&self.grants).expect("every field has a form in TOML")
    }
}

/// Returns the message of an error, without the text around.
fn cause(error: &toml::de::Error) -> String {
    error.message().lines().next().unwrap_or_default().chars().take(CAUSE_CHARACTERS_MAX).collect()
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0
    }
}

impl TryFrom<String> for Name {
    type Error = &'static str;

    fn try_from(name: String) -> Result<Self, &'static str> {
        let is_good = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let is_name = (1..=64).contains(&name.len()) && name.chars().all(is_good);
        match is_name && !name.starts_with('-') && !name.ends_with('-') && !name.contains("--") {
            true => Ok(Self(name)),
            false => Err("a name has 1 to 64 of a-z, 0-9 and -, without - at an end or twice"),
        }
    }
}

impl std::str::FromStr for Name {
    type Err = &'static str;

    fn from_str(name: &str) -> Result<Self, &'static str> {
        Self::try_from(name.to_owned())
    }
}

impl Grants {
    /// Returns whether it asks for nothing.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Needs {
    /// Returns whether it has none.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests;
