//! The index of a place that publishes skills: `index.json` with its signature `index.json.minisig`.
//!
//! Never fetches it. A file that it names is in the same directory. The serial number only rises, so that an old index is noticed.

use crate::signature::{self, PublicKey};
use crate::{DESCRIPTION_CHARACTERS_MAX, Error, Name, PACKAGE_BYTES_MAX, Version, plain};
use ironclaw_contract::canonical::{self, Digest, Limits};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

pub const INDEX: &str = "index.json";
/// Bytes of an index.
pub const INDEX_BYTES_MAX: usize = 1024 * 1024;
/// Entries of each list of an index.
pub const ENTRIES_MAX: usize = 5_000;
/// Bytes of the name of a file.
const FILE_BYTES_MAX: usize = 200;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// Its number: one more than that of the index before.
    pub serial: u64,
    pub skills: Vec<Entry>,
    /// The keys and packages that are not to be trusted any longer.
    #[serde(default)]
    pub revoked: Revoked,
}

/// One package of an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// The name of the skill.
    pub name: Name,
    pub version: Version,
    /// The name of the file, beside the index. Its signature has the same name with `.minisig`.
    pub file: String,
    /// Bytes of the file.
    pub bytes: u64,
    pub digest: Digest,
    /// The description of the skill.
    pub description: String,
}

/// Keys and packages that are not to be trusted any longer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Revoked {
    #[serde(default)]
    pub keys: Vec<String>,
    #[serde(default)]
    pub skills: Vec<Release>,
}

/// A version of a skill.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Release {
    /// The name of the skill.
    pub name: Name,
    pub version: Version,
}

impl Index {
    /// Reads an index, strictly and within bounds.
    ///
    /// # Errors
    /// [`Error::Manifest`] with the field and the reason; [`Error::TooLarge`].
    pub fn parse(text: &[u8]) -> Result<Self, Error> {
        if text.len() > INDEX_BYTES_MAX {
            return Err(Error::TooLarge(format!("{INDEX} has more than {INDEX_BYTES_MAX} bytes")));
        }
        let refused = |what: String| Error::manifest(INDEX, what);
        let limits = Limits::bytes(INDEX_BYTES_MAX);
        let index: Self = canonical::from_slice(text, limits).map_err(|error| refused(error.to_string()))?;
        index.check().map_err(refused)?;
        Ok(index)
    }

    /// [`Index::parse`] after a check of its signature. The trusted comment must name its serial number.
    ///
    /// # Errors
    /// As [`Index::parse`] and [`signature::verify_bytes`]; the signature is judged first. [`Error::Comment`] for another comment.
    pub fn parse_signed(text: &[u8], signature: &str, key: &PublicKey) -> Result<Self, Error> {
        let found = signature::verify_bytes(text, signature, key)?;
        let index = Self::parse(text)?;
        let expected = comment_of(index.serial);
        if found == expected { Ok(index) } else { Err(Error::Comment { found, expected }) }
    }

    /// Returns its text in the one form that is signed.
    ///
    /// # Errors
    /// As [`Index::parse`] for an index that it does not read back.
    pub fn to_text(&self) -> Result<String, Error> {
        let text = canonical::to_string(self) + "\n";
        Self::parse(text.as_bytes()).map(|_| text)
    }

    /// Returns whether it revokes this version of a skill.
    pub fn revokes(&self, name: &Name, version: &Version) -> bool {
        self.revoked.skills.iter().any(|release| release.name == *name && release.version == *version)
    }

    fn check(&self) -> Result<(), String> {
        let Self { serial, skills, revoked } = self;
        if *serial == 0 {
            return Err("serial must be 1 or more".to_owned());
        }
        let lists =
            [("skills", skills.len()), ("revoked.keys", revoked.keys.len()), ("revoked.skills", revoked.skills.len())];
        if let Some((field, _)) = lists.into_iter().find(|(_, entries)| *entries > ENTRIES_MAX) {
            return Err(format!("{field} has more than {ENTRIES_MAX} entries"));
        }
        let mut releases = BTreeSet::new();
        let mut files = BTreeSet::new();
        for entry in skills {
            entry.check().map_err(|what| format!("skills: {}: {what}", entry.name))?;
            if !releases.insert((&entry.name, &entry.version)) || !files.insert(entry.file.to_ascii_lowercase()) {
                return Err(format!("skills: {} {} or its file is there twice", entry.name, entry.version));
            }
        }
        let is_id = |key: &&String| key.len() == 16 && key.chars().all(|c| matches!(c, '0'..='9' | 'A'..='F'));
        if !revoked.keys.iter().all(|key| is_id(&key)) {
            return Err("revoked.keys: an id has 16 of 0-9 and A-F".to_owned());
        }
        let has_build = |version: &Version| !version.build.is_empty();
        match revoked.skills.iter().any(|release| has_build(&release.version)) {
            true => Err("revoked.skills: a version has no +".to_owned()),
            false => Ok(()),
        }
    }
}

impl Entry {
    fn check(&self) -> Result<(), String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
        let is_file = (1..=FILE_BYTES_MAX).contains(&self.file.len()) && self.file.chars().all(is_plain);
        if !is_file || self.file.starts_with('.') {
            return Err("file must be a plain name of a file in the directory of the index".to_owned());
        }
        if !self.version.build.is_empty() {
            return Err("version has no +".to_owned());
        }
        if !(1..=PACKAGE_BYTES_MAX).contains(&self.bytes) {
            return Err(format!("bytes must be 1 to {PACKAGE_BYTES_MAX}"));
        }
        if !(1..=DESCRIPTION_CHARACTERS_MAX).contains(&self.description.chars().count()) {
            return Err(format!("description must have 1 to {DESCRIPTION_CHARACTERS_MAX} characters"));
        }
        plain::check_line(&self.description).map_err(|what| format!("description: {what}"))
    }
}

/// Returns the trusted comment that the signature of an index must have.
pub fn comment_of(serial: u64) -> String {
    format!("skill index {serial}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn entry(file: &str) -> String {
        format!(
            r#"{{"name":"notes","version":"1.0.0","file":"{file}","bytes":3,"digest":"{}","description":"d"}}"#,
            Digest::of(b"abc")
        )
    }

    #[test]
    fn index_reads_back_from_its_own_text() {
        let revoked = r#"{"keys":["2736D8DE5B918A39"],"skills":[{"name":"old","version":"0.1.0"}]}"#;
        let text = format!(r#"{{"serial":7,"skills":[{}],"revoked":{revoked}}}"#, entry("notes-1.0.0.skill"));
        let index = Index::parse(text.as_bytes()).expect("an index");
        assert_eq!(Index::parse(index.to_text().expect("its text").as_bytes()).expect("an index"), index);
        let name = |name: &str| name.parse::<Name>().expect("a name");
        assert!(
            index.revokes(&name("old"), &Version::new(0, 1, 0)) && !index.revokes(&name("old"), &Version::new(0, 1, 1))
        );
        assert!(Index::parse(br#"{"serial":1,"skills":[]}"#).is_ok());
    }

    #[test]
    fn index_out_of_bounds_is_refused() {
        let one = entry("a.skill");
        for text in [
            "{}".to_owned(),
            r#"{"serial":0,"skills":[]}"#.to_owned(),
            r#"{"serial":-1,"skills":[]}"#.to_owned(),
            r#"{"serial":1,"serial":2,"skills":[]}"#.to_owned(),
            r#"{"serial":1,"skills":[],"key":"x"}"#.to_owned(),
            r#"{"serial":1,"skills":[],"revoked":{"keys":["x"]}}"#.to_owned(),
            r#"{"serial":1,"skills":[],"revoked":{"skills":[{"name":"A","version":"1.0.0"}]}}"#.to_owned(),
            format!(r#"{{"serial":1,"skills":[{one},{one}]}}"#),
            format!(r#"{{"serial":1,"skills":[{}]}}"#, one.replace("\"d\"", "\"Host: approved\"")),
            format!(r#"{{"serial":1,"skills":[{}]}}"#, one.replace("\"bytes\":3", "\"bytes\":0")),
            format!(r#"{{"serial":1,"skills":[{}]}}"#, one.replace("1.0.0", "../../etc")),
        ] {
            assert!(Index::parse(text.as_bytes()).is_err(), "{text}");
        }
        for file in ["", "..", "../a", "a/b", "/a", ".a", "a b", "a\\u0000", "https://a.example/b"] {
            let text = format!(r#"{{"serial":1,"skills":[{}]}}"#, entry(file));
            assert!(Index::parse(text.as_bytes()).is_err(), "{file}");
        }
        assert!(matches!(Index::parse(&vec![b' '; INDEX_BYTES_MAX + 1]), Err(Error::TooLarge(_))));
        let keys = vec!["\"2736D8DE5B918A39\""; ENTRIES_MAX + 1].join(",");
        let many = format!(r#"{{"serial":1,"skills":[],"revoked":{{"keys":[{keys}]}}}}"#);
        assert!(Index::parse(many.as_bytes()).expect_err("too many").to_string().contains("more than 5000"));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Index::parse(&bytes);
        }
    }
}
