//! The sources of packages: a directory of this machine, or an https URL with an index.
//!
//! Never trusts what a source says: the caller verifies each signature. Bounds each wait and each number of bytes, and follows no
//! redirect.

use super::Skills;
use crate::registry::skills::Source;
use ironclaw_contract::canonical::Digest;
use ironclaw_judge::egress::Loopback;
use ironclaw_net::fetch::{Answer, End, Limits, NotFetched, Piece, Request};
use ironclaw_operator::DenialCode;
use ironclaw_skill::index::{INDEX, INDEX_BYTES_MAX};
use ironclaw_skill::{Name, PACKAGE_BYTES_MAX, Version};
use ironclaw_state::home;
use ironclaw_store::refusal::Refusal;
use ironclaw_text::excerpt::start;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;
use url::Url;

/// The ending of the file name of a package.
const ENDING: &str = ".skill";
/// The ending of the file name of a signature, after that of the file.
const SIGNATURE: &str = ".minisig";
const SIGNATURE_BYTES_MAX: u64 = 4 * 1024;
/// Files of a directory without an index.
const LISTED_MAX: usize = 5_000;
/// The longest time to the headers of an answer, and of an index.
const BEGIN: Duration = Duration::from_secs(10);
/// The longest time of a package.
const WHOLE: Duration = Duration::from_secs(60);

#[derive(Debug, Clone)]
pub(super) enum Place {
    /// A directory of this machine.
    Directory(PathBuf),
    /// A URL that ends with a slash.
    Url(Url),
}

impl Place {
    /// Reads the location of a source.
    ///
    /// # Errors
    /// Refuses a relative path, and a URL that is not https or has a user, a query or a fragment.
    pub(super) fn parse(location: &str, loopback: Loopback) -> Result<Self, Refusal> {
        let malformed = |why: &str| {
            let shown = start(location, 256);
            let refusal =
                Refusal::new(DenialCode::SkillSourceMalformed, format!("{shown:?} is no source of skills: {why}"));
            Err(refusal.hint("give an absolute directory, or an https URL of a directory with index.json"))
        };
        if location.starts_with('/') {
            let path = Path::new(location);
            let is_plain = path.components().all(|part| !matches!(part, std::path::Component::ParentDir));
            return if is_plain { Ok(Self::Directory(path.to_owned())) } else { malformed("the path has a part ..") };
        }
        let mut url = match Url::parse(location) {
            Ok(url) => url,
            Err(error) => return malformed(&error.to_string()),
        };
        let is_near = loopback == Loopback::DangerousAllowed && url.scheme() == "http";
        if url.scheme() != "https" && !is_near {
            return malformed("the scheme is not https");
        }
        if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
            return malformed("a user, a query or a fragment is no part of it");
        }
        if !url.path().ends_with('/') {
            url.set_path(&format!("{}/", url.path()));
        }
        Ok(Self::Url(url))
    }
}

/// The package of one version at a source.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub version: Version,
    /// The name of its file at the source.
    pub file: String,
    /// The content of the file, as a signed index states it; `None` without an index.
    pub listed: Option<Contents>,
}

/// The size and the digest of a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Contents {
    pub bytes: u64,
    pub digest: Digest,
}

impl Contents {
    /// Reads the content of a file. It blocks.
    pub(super) fn read(path: &Path) -> io::Result<Self> {
        let bytes = std::fs::read(path)?;
        Ok(Self { bytes: bytes.len() as u64, digest: Digest::of(&bytes) })
    }
}

impl std::fmt::Display for Contents {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes with the digest {}", self.bytes, self.digest)
    }
}

/// Returns the names of the packages in a directory without an index.
pub(super) fn files(directory: &Path) -> io::Result<Vec<String>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory)?.take(LISTED_MAX) {
        found.extend(entry?.file_name().into_string().ok().filter(|name| name.ends_with(ENDING)));
    }
    Ok(found)
}

/// Returns the packages of a skill among these files: those named `NAME-VERSION.skill`.
pub(super) fn candidates(files: &[String], name: &Name) -> Vec<Candidate> {
    let candidate = |file: &String| {
        let version = file.strip_suffix(ENDING)?.strip_prefix(name.as_ref())?.strip_prefix('-')?;
        Some(Candidate { version: Version::parse(version).ok()?, file: file.clone(), listed: None })
    };
    files.iter().filter_map(candidate).collect()
}

impl Skills {
    /// Refuses a location that no source may have.
    ///
    /// # Errors
    /// `skill_source_malformed`, with the reason.
    pub fn check_location(&self, location: &str) -> Result<(), Refusal> {
        let loopback = self.settings.now().host_policy.egress.loopback();
        Place::parse(location, loopback).map(drop)
    }

    /// Reads the index of a source with its signature; `None` for a directory without one.
    ///
    /// # Errors
    /// Refuses a source that gives no usable answer.
    pub(super) async fn index(&self, source: &Source, place: &Place) -> Result<Option<(Vec<u8>, String)>, Refusal> {
        if let Place::Directory(directory) = place
            && !directory.join(INDEX).exists()
        {
            return if directory.is_dir() { Ok(None) } else { Err(failed(source, "there is no such directory")) };
        }
        let index = self.small(source, place, INDEX, INDEX_BYTES_MAX as u64).await?;
        let signature = self.signature(source, place, INDEX).await?;
        Ok(Some((index, signature)))
    }

    /// Reads the signature of a file.
    ///
    /// # Errors
    /// Refuses a file without a signature, and a source that gives no usable answer.
    pub(super) async fn signature(&self, source: &Source, place: &Place, file: &str) -> Result<String, Refusal> {
        let name = format!("{file}{SIGNATURE}");
        let unsigned = |why: &str| {
            let message = format!("source {}: {file} has no signature: {why}", source.name);
            Refusal::new(DenialCode::SkillUnsigned, message)
                .hint(format!("its author signs it: `ironctl skill sign {file} --key KEY`"))
        };
        if let Place::Directory(directory) = place
            && !directory.join(&name).exists()
        {
            return Err(unsigned(&format!("there is no {name}")));
        }
        let bytes = match self.small(source, place, &name, SIGNATURE_BYTES_MAX).await {
            Err(refusal) if refusal.message.ends_with(NOT_FOUND) => return Err(unsigned(NOT_FOUND)),
            read => read?,
        };
        String::from_utf8(bytes).map_err(|_| unsigned("it is no text"))
    }

    async fn small(&self, source: &Source, place: &Place, file: &str, bytes_max: u64) -> Result<Vec<u8>, Refusal> {
        let mut bytes = Vec::new();
        let limits = Limits { begin: BEGIN, whole: BEGIN, body_bytes_max: 0 };
        self.copy(source, place, file, bytes_max, limits, &mut bytes).await?;
        Ok(bytes)
    }

    /// Copies a package of a source into a new file.
    ///
    /// # Errors
    /// Refuses a source that gives no usable answer, and a package that is too large.
    pub(super) async fn fetch(&self, source: &Source, place: &Place, file: &str, into: &Path) -> Result<(), Refusal> {
        let store = |error: io::Error| failed(source, &format!("the package cannot be stored: {error}"));
        let mut target = std::fs::File::options().write(true).create_new(true).open(into).map_err(store)?;
        let limits = Limits { begin: BEGIN, whole: WHOLE, body_bytes_max: 0 };
        self.copy(source, place, file, PACKAGE_BYTES_MAX, limits, &mut target).await
    }

    async fn copy(
        &self,
        source: &Source,
        place: &Place,
        file: &str,
        bytes_max: u64,
        limits: Limits,
        target: &mut (dyn Write + Send),
    ) -> Result<(), Refusal> {
        let too_large = || {
            let message = format!("source {}: {file} has more than {bytes_max} bytes", source.name);
            Refusal::new(DenialCode::SkillTooLarge, message)
        };
        let store = |error: io::Error| failed(source, &format!("{file}: {error}"));
        let url = match place {
            Place::Directory(directory) => {
                let path = directory.join(file);
                let read = tokio::task::spawn_blocking(move || {
                    let mut bytes = Vec::new();
                    home::open_file(&path)?.take(bytes_max + 1).read_to_end(&mut bytes)?;
                    Ok(bytes)
                });
                let bytes = read.await.expect("reading a file does not panic").map_err(store)?;
                if bytes.len() as u64 > bytes_max {
                    return Err(too_large());
                }
                return target.write_all(&bytes).map_err(store);
            }
            Place::Url(url) => url.join(file).map_err(|error| failed(source, &format!("{file:?}: {error}")))?,
        };
        let loopback = self.settings.now().host_policy.egress.loopback();
        let request = Request {
            method: "GET".parse().expect("a method"),
            url: url.as_str(),
            headers: Vec::new(),
            body: None,
            credential: None,
        };
        let mut answer = self
            .fetchers
            .for_loopback(loopback)
            .open(request, limits)
            .await
            .map_err(|why| not_fetched(source, file, &why))?;
        check_status(&answer).map_err(|why| failed(source, &format!("{file}: {why}")))?;
        let mut left = bytes_max;
        loop {
            match answer.next().await {
                Piece::Bytes(bytes) => {
                    left = left.checked_sub(bytes.len() as u64).ok_or_else(too_large)?;
                    target.write_all(&bytes).map_err(store)?;
                }
                Piece::End(End::Whole) => return Ok(()),
                Piece::End(End::Time) => return Err(failed(source, &format!("{file}: the answer took too long"))),
                Piece::End(_) => {
                    return Err(failed(source, &format!("{file}: the answer is incomplete or compressed")));
                }
            }
        }
    }
}

/// Refuses an answer without the file, in words for the message.
fn check_status(answer: &Answer) -> Result<(), String> {
    match answer.status {
        200 => Ok(()),
        404 | 410 => Err(NOT_FOUND.to_owned()),
        _ if answer.redirect.is_some() => Err("it redirects, which is not followed".to_owned()),
        status => Err(format!("status {status}")),
    }
}

/// The words for a file that a source does not have.
const NOT_FOUND: &str = "the source does not have it";

fn not_fetched(source: &Source, file: &str, why: &NotFetched) -> Refusal {
    failed(source, &format!("{file}: {why}"))
}

/// Returns the refusal of a source that gives no usable answer.
pub(super) fn failed(source: &Source, why: &str) -> Refusal {
    Refusal::new(DenialCode::SkillSourceFailed, format!("source {}: {why}", source.name))
        .hint("`ironctl skill source list` shows the sources")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn location_is_an_absolute_directory_or_an_https_url() {
        for location in [
            "skills",
            "./skills",
            "/srv/../etc",
            "http://skills.example/",
            "ftp://skills.example/",
            "file:///srv/skills",
            "https://user@skills.example/",
            "https://skills.example/?a=b",
            "https://skills.example/#a",
            "",
        ] {
            let refused = Place::parse(location, Loopback::Refused).expect_err(location);
            assert_eq!(refused.code, DenialCode::SkillSourceMalformed, "{location}");
        }
        assert!(matches!(Place::parse("/srv/skills", Loopback::Refused), Ok(Place::Directory(_))));
        let Ok(Place::Url(url)) = Place::parse("https://skills.example/own", Loopback::Refused) else {
            panic!("a URL")
        };
        assert_eq!(url.as_str(), "https://skills.example/own/");
    }

    #[test]
    fn directory_is_listed_by_exact_names() {
        let directory = tempfile::tempdir().expect("a directory");
        for file in [
            "weather-1.2.0.skill",
            "weather-map-1.0.0.skill",
            "weather-x.skill",
            "weather-1.3.0.skill.minisig",
            "other-1.0.0.skill",
        ] {
            std::fs::write(directory.path().join(file), "x").expect("written");
        }
        let found = candidates(&files(directory.path()).expect("read"), &"weather".parse().expect("a name"));
        let found: Vec<String> = found.into_iter().map(|one| one.version.to_string()).collect();
        assert_eq!(found, ["1.2.0"]);
    }
}
