//! The packages that the sources list. Each source is read once, for any number of skills.
//!
//! Fetches no package. Notes the serial and the revocations of each signed index.

use super::named::Wanted;
use super::source::{self, Candidate, Place};
use super::trust::{self, SignedIndex};
use super::{Changed, Skills};
use crate::registry::skills::{self, Key, Revoker, Source};
use ironclaw_operator::DenialCode;
use ironclaw_skill::{Name, Version};
use ironclaw_state::WriteTx;
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Denied, Refusal};

/// A candidate with its source.
pub(super) struct SourcedCandidate {
    pub source: Source,
    pub place: Place,
    pub candidate: Candidate,
}

/// The packages that one source lists.
enum Listed {
    /// The names of the files of a directory without an index.
    Files(Vec<String>),
    Index(Box<SignedIndex>),
}

impl Listed {
    fn candidates(&self, name: &Name) -> Vec<Candidate> {
        match self {
            Self::Files(files) => source::candidates(files, name),
            Self::Index(signed) => signed.candidates(name),
        }
    }
}

/// The packages that all sources list.
pub struct Stocks {
    listed: Vec<(Source, Place, Listed)>,
    /// The names of all sources.
    names: Vec<String>,
    /// The refusal of the first source without a usable answer.
    refusal: Option<Refusal>,
}

impl Stocks {
    /// Returns the versions of a skill, newest first.
    pub fn versions(&self, name: &Name) -> Vec<Version> {
        let of_sources = self.listed.iter().flat_map(|(_, _, listed)| listed.candidates(name));
        let mut versions: Vec<Version> = of_sources.map(|candidate| candidate.version).collect();
        versions.sort_by(|one, other| other.cmp(one));
        versions
    }

    /// Returns the candidates of all sources, best first: those of the wanted version, or the newest ones.
    ///
    /// # Errors
    /// Refuses if no source has a candidate, with the first refusal of a source.
    pub(super) fn find(&self, name: &Name, wanted: &Wanted) -> Result<Vec<SourcedCandidate>, Refusal> {
        let is_wanted = |candidate: &Candidate| match wanted {
            Wanted::Newest => candidate.version.pre.is_empty(),
            Wanted::Exactly(version) => candidate.version == *version,
        };
        let mut all = Vec::new();
        for (source, place, listed) in &self.listed {
            let candidates = listed.candidates(name).into_iter().filter(is_wanted);
            all.extend(candidates.map(|candidate| SourcedCandidate {
                source: source.clone(),
                place: place.clone(),
                candidate,
            }));
        }
        // Equal versions stay in the order of the sources.
        all.sort_by(|one, other| other.candidate.version.cmp(&one.candidate.version));
        match all.is_empty() {
            true => Err(self.refusal.clone().unwrap_or_else(|| self.unknown(name, wanted))),
            false => Ok(all),
        }
    }

    /// Returns the refusal of a skill that no source has.
    pub(super) fn unknown(&self, name: &Name, wanted: &Wanted) -> Refusal {
        let version = match wanted {
            Wanted::Newest => String::new(),
            Wanted::Exactly(version) => format!(" {version}"),
        };
        let message = format!("no source has skill {name}{version}; the sources are {}", self.names.join(", "));
        Refusal::new(DenialCode::SkillUnknown, message).hint("`ironctl skill source list` shows the sources")
    }
}

impl Skills {
    /// Reads what all sources list. Sources without a usable answer are left out with a warning in the log.
    pub async fn available(&self) -> Result<Stocks, Error> {
        let (sources, keys) = self.trusted().await?;
        self.stocks(sources, &keys).await
    }

    /// Reads what these sources list, as [`Self::available`] does.
    pub(super) async fn stocks(&self, sources: Vec<Source>, keys: &[Key]) -> Result<Stocks, Error> {
        let names = sources.iter().map(|source| source.name.clone()).collect();
        let mut stocks = Stocks { listed: Vec::new(), names, refusal: None };
        for source in sources {
            match self.listed(&source, keys).await {
                Ok((place, listed)) => stocks.listed.push((source, place, listed)),
                Err(Denied::Refused(refusal)) => {
                    tracing::warn!(code = %refusal.code, %refusal, "a source of skills was left out");
                    stocks.refusal.get_or_insert(refusal);
                }
                Err(Denied::Failed(error)) => return Err(error),
            }
        }
        Ok(stocks)
    }

    /// Reads what a source lists. Notes the serial and the revocations of its index.
    async fn listed(&self, source: &Source, keys: &[Key]) -> Result<(Place, Listed), Denied<Error>> {
        let loopback = self.settings.now().host_policy.egress.loopback();
        let place = Place::parse(&source.location, loopback)?;
        let Some((bytes, signature)) = self.index(source, &place).await? else {
            let Place::Directory(directory) = &place else { return Ok((place, Listed::Files(Vec::new()))) };
            if source.serial > 0 {
                let message =
                    format!("the index of source {} is gone, but this host has seen {}", source.name, source.serial);
                return Err(Refusal::new(DenialCode::SkillIndex, message).into());
            }
            let directory = directory.clone();
            let files = tokio::task::spawn_blocking(move || source::files(&directory)).await;
            let files = files.expect("listing a directory does not panic");
            let files = files.map_err(|error| source::failed(source, &error.to_string()))?;
            return Ok((place, Listed::Files(files)));
        };
        let signed = trust::read_index(source, keys, &bytes, &signature)?;
        self.record_index(source, &signed).await?;
        Ok((place, Listed::Index(Box::new(signed))))
    }

    async fn record_index(&self, source: &Source, signed: &SignedIndex) -> Result<(), Error> {
        let (source, signed) = (source.clone(), signed.clone());
        let note = move |tx: &mut WriteTx<'_>| {
            let mut agents = Vec::new();
            if signed.index.serial > source.serial || source.index_digest.is_none() {
                skills::saw_index(tx, &source.name, signed.index.serial, signed.digest)?;
            }
            for (name, version) in signed.revoked_versions() {
                if skills::revoke_version(tx, name, version, Revoker::Source(&source.name))? {
                    agents.extend(skills::agents_of_version(tx, name.as_ref(), &version.to_string())?);
                }
            }
            for id in signed.revoked_keys() {
                if let Some(key) = skills::key_by_id(tx, id)?.filter(|key| key.revoked_at.is_none()) {
                    skills::revoke_key(tx, &key, Revoker::Source(&source.name))?;
                    agents.extend(skills::agents_of_signer(tx, id)?);
                }
            }
            Ok::<_, Error>(agents)
        };
        for agent in self.record.state.write(note).await? {
            // The receiver ends with the host alone.
            let _ = self.changed.send(Changed::Revoked(agent));
        }
        Ok(())
    }
}
