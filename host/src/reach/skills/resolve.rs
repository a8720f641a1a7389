//! The way from the name of a skill to its verified package: sources, signature, bytes, record.

use super::named::Wanted;
use super::shelf::Unpacked;
use super::source::Contents;
use super::stock::SourcedCandidate;
use super::{Changed, Skills, refused, source, trust};
use crate::registry::skills::{self, Key, Package, Source};
use ironclaw_contract::canonical::Digest;
use ironclaw_operator::{Bound, DenialCode};
use ironclaw_skill::{Name, Version};
use ironclaw_state::{ReadTx, WriteTx, failpoint};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Decide, Denied, Refusal};
use ironclaw_store::times::DAY_MS;
use ironclaw_text::confusable;
use std::path::Path;
use std::sync::Arc;

/// Candidates that one resolution tries.
const TRIED_MAX: usize = 3;

/// Packages that agents may make the host fetch while no agent has them, within [`UNUSED_MS`].
const UNUSED_MAX: u64 = 16;

const UNUSED_MS: i64 = DAY_MS;

/// Least bytes of names of which one changed character makes a look-alike.
const SIMILAR_BYTES_MIN: usize = 5;

impl Skills {
    /// Fetches a skill from the sources, verifies it completely, and records it.
    ///
    /// # Errors
    /// Refuses with the first check that fails; nothing is recorded then.
    pub async fn resolve(&self, name: &Name, wanted: &Wanted) -> Result<Package, Denied<Error>> {
        Ok(self.resolve_among(name, wanted).await?.0)
    }

    /// Resolves a skill as [`Self::resolve`] does, and returns the versions that the sources have, newest first.
    ///
    /// # Errors
    /// As [`Self::resolve`].
    pub async fn resolve_among(&self, name: &Name, wanted: &Wanted) -> Result<(Package, Vec<Version>), Denied<Error>> {
        let _permit = self.at_once.acquire().await;
        let (sources, keys) = self.trusted().await?;
        if sources.is_empty() {
            let refusal = Refusal::new(DenialCode::SkillSourceNone, "this host has no source of skills");
            return Err(refusal.hint("an owner adds one: `ironctl skill source add NAME DIRECTORY-OR-URL`").into());
        }
        let stocks = self.stocks(sources, &keys).await?;
        let found = stocks.find(name, wanted)?;
        let (_, keys) = self.trusted().await?;
        let mut refusal = None;
        // A source that lists a version without a good package hides no other one.
        for found in found.into_iter().take(TRIED_MAX) {
            match self.fetched(&found, &keys, name).await {
                Err(Denied::Refused(why)) => drop(refusal.get_or_insert(why)),
                resolved => return Ok((resolved?, stocks.versions(name))),
            }
        }
        Err(refusal.unwrap_or_else(|| stocks.unknown(name, wanted)).into())
    }

    /// Resolves a skill that an agent names. A recorded version is not fetched again, and few packages may wait unused.
    ///
    /// # Errors
    /// As [`Self::resolve`]; refuses if many packages were fetched that no agent has.
    pub async fn resolve_for_agent(&self, name: &Name, wanted: &Wanted) -> Result<Package, Denied<Error>> {
        let _permit = self.for_agents.acquire().await;
        let (of, exact) = (name.to_string(), wanted.clone());
        let look = move |tx: &ReadTx<'_>| {
            let held = match &exact {
                Wanted::Exactly(version) => skills::package_of(tx, &of, &version.to_string())?,
                Wanted::Newest => None,
            };
            let is_trusted = match &held {
                Some(held) => skills::trust(tx, held)? == skills::Trust::Trusted,
                None => false,
            };
            Ok::<_, Error>((held.filter(|_| is_trusted), skills::unused_since(tx, tx.wall() - UNUSED_MS)?))
        };
        let (held, unused) = self.record.state.read(look).await?;
        if let Some(held) = held.filter(|held| self.shelf.has(&held.digest)) {
            return Ok(held);
        }
        if unused >= UNUSED_MAX {
            let name = "packages of skills that agents had fetched in a day, and that no agent has";
            let bound =
                Bound::new(name, UNUSED_MAX, unused, "a person installs it: `ironctl skill add NAME --agent AGENT`");
            return Err(Refusal::over(DenialCode::SkillsTooMany, bound).into());
        }
        self.resolve(name, wanted).await
    }

    /// Fetches one package, verifies it, and records it.
    async fn fetched(&self, found: &SourcedCandidate, keys: &[Key], name: &Name) -> Result<Package, Denied<Error>> {
        let (new, texts, unpacked) = self.verified(found, keys, name).await?;
        let (shelf, digest) = (Arc::clone(&self.shelf), new.digest);
        // The directory comes first: a row without its directory would be a skill without bytes.
        let kept = tokio::task::spawn_blocking(move || unpacked.keep(&shelf, digest)).await;
        let kept = kept.expect("keeping a package does not panic");
        let was_damaged =
            kept.map_err(|error| source::failed(&found.source, &format!("the package cannot be stored: {error}")))?;
        failpoint::reach("skill_unpacked");
        let record = move |tx: &mut WriteTx<'_>| -> Result<Package, Denied<Error>> {
            skills::check_trust(tx, &new)?;
            check_name(tx, &new)?;
            let new = Package { resolved_at: tx.wall(), ..new };
            skills::record_package(tx, &new, &texts)?;
            let held = skills::package_of(tx, &new.name, &new.version).map_err(Error::from)?;
            held.ok_or_else(|| Error::State(ironclaw_state::Error::Stored("a package that vanished".to_owned())).into())
        };
        let resolved = self.record.state.decide(record).await;
        if resolved.is_err() {
            self.forget(digest).await?;
        }
        failpoint::reach("skill_resolved");
        let resolved = resolved?;
        if was_damaged {
            let (name, version) = (resolved.name.clone(), resolved.version.clone());
            let agents = self.record.state.read(move |tx| skills::agents_of_version(tx, &name, &version)).await;
            for agent in agents.map_err(Error::from)? {
                // The receiver ends with the host alone.
                let _ = self.changed.send(Changed::Mended(agent));
            }
        }
        Ok(resolved)
    }

    /// Removes the directory of a package that is not recorded.
    async fn forget(&self, digest: Digest) -> Result<(), Error> {
        let is_recorded =
            self.record.state.read(move |tx| Ok::<_, Error>(skills::package_by_digest(tx, digest)?.is_some())).await?;
        if !is_recorded {
            let shelf = Arc::clone(&self.shelf);
            let removed = tokio::task::spawn_blocking(move || shelf.remove(&digest)).await;
            removed.expect("removing a package does not panic");
        }
        Ok(())
    }

    pub(super) async fn trusted(&self) -> Result<(Vec<Source>, Vec<Key>), Error> {
        self.record.state.read(|tx: &ReadTx<'_>| Ok((skills::sources(tx)?, skills::keys(tx)?))).await
    }

    /// Fetches a package and checks everything that needs no record: signature, key, names, digests, bounds.
    async fn verified(
        &self,
        found: &SourcedCandidate,
        keys: &[Key],
        name: &Name,
    ) -> Result<(Package, Vec<(String, String)>, Unpacked), Denied<Error>> {
        let SourcedCandidate { source, place, candidate } = found;
        let (version, what) = (&candidate.version, format!("skill {name} {}", candidate.version));
        let incoming = self.shelf.incoming().map_err(|error| source::failed(source, &error.to_string()))?;
        let archive = incoming.path().join("package");
        let signature = self.signature(source, place, &candidate.file).await?;
        self.fetch(source, place, &candidate.file, &archive).await?;
        let (keys, name, version, of) = (keys.to_vec(), name.clone(), version.clone(), what.clone());
        let (source_name, listed) = (source.name.clone(), candidate.listed);
        let check = move || -> Result<_, Refusal> {
            check_listed(listed, &archive, &source_name, &of)?;
            let key = trust::check_package(&keys, &archive, &signature, &of, &name, &version)?;
            let unpacked = Unpacked::unpack(&archive, incoming).map_err(|error| refused(&of, error))?;
            let manifest = &unpacked.package.manifest;
            if manifest.name != name || manifest.version != version {
                let message = format!("{of}: the package says that it is {} {}", manifest.name, manifest.version);
                return Err(Refusal::new(DenialCode::SkillManifest, message));
            }
            let texts = unpacked.texts().map_err(|error| refused(&of, error))?;
            Ok((unpacked, key.id.clone(), texts))
        };
        let (unpacked, signer, texts) =
            tokio::task::spawn_blocking(check).await.expect("checking a package does not panic")?;
        let package = &unpacked.package;
        let new = Package {
            digest: package.digest,
            name: package.manifest.name.to_string(),
            version: package.manifest.version.to_string(),
            signer,
            source: source.name.clone(),
            description: package.description.clone(),
            manifest: unpacked.manifest_text.clone(),
            resolved_at: 0,
        };
        Ok((new, texts, unpacked))
    }
}

/// Refuses a package that differs from its entry in the index of its source.
fn check_listed(listed: Option<Contents>, archive: &Path, source: &str, what: &str) -> Result<(), Refusal> {
    let Some(listed) = listed else { return Ok(()) };
    let fetched = Contents::read(archive)
        .map_err(|source| refused(what, ironclaw_skill::Error::Io { path: archive.display().to_string(), source }))?;
    if fetched == listed {
        return Ok(());
    }
    let message = format!("{what}: the package has {fetched}, but the index of source {source} lists {listed}");
    Err(Refusal::new(DenialCode::SkillIndex, message).hint("the source has to publish a newer index of its packages"))
}

/// Refuses a name that looks like that of a verified package with another signer.
fn check_name(tx: &ReadTx<'_>, new: &Package) -> Result<(), Denied<Error>> {
    let known = skills::signed_names(tx).map_err(Error::from)?;
    let similar = known.iter().find(|(name, signer)| *signer != new.signer && are_similar(name, &new.name));
    if let Some((name, _)) = similar {
        let message = format!("skill {} looks like skill {name}, which another key signed", new.name);
        let refusal = Refusal::new(DenialCode::SkillLookalike, message);
        return Err(refusal.hint("ask its author for another name").into());
    }
    Ok(())
}

/// Returns whether two different names are easily taken for each other.
fn are_similar(one: &str, other: &str) -> bool {
    let folded = |name: &str| {
        name.replace('-', "").replace('0', "o").replace(['1', 'i'], "l").replace("rn", "m").replace("vv", "w")
    };
    if one == other {
        return false;
    }
    let is_near = one.len().min(other.len()) >= SIMILAR_BYTES_MIN && strsim::damerau_levenshtein(one, other) == 1;
    folded(one) == folded(other) || confusable::look_alike(one, other) || is_near
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alikes_are_found_and_other_names_are_not() {
        for (one, other) in [
            ("weather", "vveather"),
            ("weather", "weathr"),
            ("weather", "waether"),
            ("mail-list", "maillist"),
            ("mail", "mai1"),
            ("corn-price", "com-price"),
            ("notes", "n0tes"),
        ] {
            assert!(are_similar(one, other), "{one} {other}");
        }
        for (one, other) in [("weather", "weather"), ("mail", "nail"), ("meeting-notes", "meeting-minutes")] {
            assert!(!are_similar(one, other), "{one} {other}");
        }
    }

    #[test]
    fn version_is_exact_or_the_newest() {
        assert_eq!(Wanted::parse(None).expect("the newest"), Wanted::Newest);
        assert_eq!(Wanted::parse(Some("latest")).expect("the newest"), Wanted::Newest);
        for text in ["../../etc", "1", "1.0", "v1.0.0", "1.0.0+build", "01.0.0", "1.0.0 ", ""] {
            assert_eq!(Wanted::parse(Some(text)).expect_err(text).code, DenialCode::SkillVersion, "{text}");
        }
    }
}
