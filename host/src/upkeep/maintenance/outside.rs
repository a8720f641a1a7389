//! Comparison of a ledger with the heads outside and the archives, and the acceptance of a difference by an owner.
//!
//! Detects another history, a copy of the home, and missing heads. Reads directories on blocking threads, each with a time limit. See
//! [`ironclaw_ledger::foreign`].

use super::{HeadPublisher, Shared};
use ironclaw_contract::canonical;
use ironclaw_contract::ids::PersonId;
use ironclaw_ledger::archive::RenamedArchive;
use ironclaw_ledger::foreign::{self, Foreign, LiveChain};
use ironclaw_ledger::head::{self, Contradiction, HeadFile, Position, Signed};
use ironclaw_ledger::sink::Other;
use ironclaw_ledger::{Entry, Genesis, archive, chain, check};
use ironclaw_operator::{BreakAccepted, LedgerEvent};
use ironclaw_state::home::Home;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::tables::facts::{self, Fact};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Longest time for which a start waits for the directory of the heads.
const HEADS_TIME_MAX: Duration = Duration::from_secs(10);

/// Heads in one entry of acceptance; more heads take several entries.
const ACCEPTED_HEADS_MAX: usize = 1024;

/// The reason that an acceptance failed.
#[derive(Debug, thiserror::Error)]
pub enum AcceptError {
    /// Heads and archives agree with the ledger.
    #[error("no head and no archive knows another history than this ledger: there is nothing to accept")]
    Nothing,
    /// The heads outside, or an archive, could not be read.
    #[error("cannot read the heads and archives: {0}")]
    Io(#[from] io::Error),
    /// An archive that could not be moved.
    #[error(transparent)]
    Archive(#[from] archive::Error),
    #[error(transparent)]
    State(#[from] ironclaw_state::Error),
}

/// Heads and archives of another history.
#[derive(Debug, Default)]
struct OtherHistory {
    heads: Vec<Contradiction>,
    archives: Vec<Foreign>,
}

impl OtherHistory {
    /// Returns the first entry that differs. Archives begin before their difference, so they count only without heads.
    fn from(&self) -> Option<u64> {
        let of_heads = self.heads.iter().map(|head| head.from).min();
        of_heads.or_else(|| self.archives.iter().map(|archive| archive.first).min())
    }
}

impl HeadPublisher {
    /// Records that an owner accepts heads and archives of another history. A verification then goes by these entries, and the archives are
    /// moved aside.
    ///
    /// # Errors
    /// [`AcceptError::Nothing`] if all of them agree with the ledger.
    pub async fn accept(&self, by: PersonId, reason: String) -> Result<BreakAccepted, AcceptError> {
        let shared = &self.shared;
        let _one = shared.rotating.lock().await;
        let found = shared.other_history(true).await?;
        let Some(from) = found.from() else { return Err(AcceptError::Nothing) };
        let asides = Arc::new(take_names(&shared.home, &found.archives)?);
        let moved = Arc::clone(&asides);
        let accepted = shared
            .state
            .write_alone(move |tx| {
                let archives: Vec<String> = moved.iter().map(RenamedArchive::name).collect();
                let mut heads: Vec<Signed> = found.heads.into_iter().map(|head| head.signed).collect();
                heads.sort();
                heads.dedup();
                let mut seq = 0;
                for (number, some) in chunks(&heads).into_iter().enumerate() {
                    let names: Vec<String> = some.iter().map(Signed::to_string).collect();
                    let entry = Entry::new(LedgerEvent::LedgerBreakAccepted)
                        .with("by", by)
                        .with("from", from)
                        .with("heads", names);
                    let entry = if number == 0 { entry.with("archives", archives.clone()) } else { entry };
                    seq = entry.reason(&reason).append(tx)?;
                }
                remember(tx, &heads)?;
                // Last, so that few later steps can fail.
                moved.iter().try_for_each(RenamedArchive::take)?;
                Ok::<_, AcceptError>(BreakAccepted { seq, from, heads: heads.len() as u64, archives })
            })
            .await;
        // An archive that was moved without an entry would be lost.
        let accepted = accepted.inspect_err(|_| asides.iter().for_each(RenamedArchive::undo))?;
        shared.issues.lock().expect("no holder panics").behind = None;
        tracing::warn!(seq = accepted.seq, from, "an owner accepted that heads or archives know another history");
        Ok(accepted)
    }
}

/// Reserves a name for each archive to move aside; after an error it reserves none.
fn take_names(home: &Home, archives: &[Foreign]) -> Result<Vec<RenamedArchive>, archive::Error> {
    let mut asides: Vec<RenamedArchive> = Vec::new();
    for foreign in archives {
        let aside = RenamedArchive::reserve(home, foreign.first);
        asides.push(aside.inspect_err(|_| asides.iter().for_each(RenamedArchive::undo))?);
    }
    Ok(asides)
}

/// Splits the heads; returns at least one chunk, since archives alone are accepted as well.
fn chunks(heads: &[Signed]) -> Vec<&[Signed]> {
    if heads.is_empty() { vec![heads] } else { heads.chunks(ACCEPTED_HEADS_MAX).collect() }
}

fn accepted(tx: &ReadTx<'_>) -> Result<BTreeSet<Signed>, ironclaw_state::Error> {
    let text = facts::get(tx, Fact::AcceptedHistory)?;
    let wrong = || ironclaw_state::Error::Stored("meta: accepted_history".to_owned());
    let names: Vec<String> = text.map_or(Ok(Vec::new()), |text| serde_json::from_str(&text)).map_err(|_| wrong())?;
    names.iter().map(|name| name.parse().map_err(|()| wrong())).collect()
}

fn remember(tx: &mut WriteTx<'_>, heads: &[Signed]) -> Result<(), ironclaw_state::Error> {
    let mut all = accepted(tx)?;
    all.extend(heads.iter().cloned());
    let names: Vec<String> = all.iter().map(Signed::to_string).collect();
    facts::set(tx, Fact::AcceptedHistory, canonical::to_string(&names))
}

fn live(tx: &ReadTx<'_>) -> Result<LiveChain, ironclaw_state::Error> {
    let Position { ledger, first, .. } = Position::read(tx)?;
    Ok(LiveChain { ledger, first, genesis: Genesis::from_live_chain(tx)?, keys: head::public_keys(tx)? })
}

impl Shared {
    /// Runs a read of a directory, which may be on another machine, with a time limit.
    async fn read_outside<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> io::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let done = tokio::time::timeout(HEADS_TIME_MAX, tokio::task::spawn_blocking(work)).await;
        let done = done.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?;
        done.unwrap_or_else(|panicked| Err(io::Error::other(panicked)))
    }

    /// Moves heads of this ledger under another name to its own directory, at a start. Reports another home that keeps them as well.
    pub(super) async fn adopt_heads(&self) {
        let (sink, home, ledger) = (self.sink.clone(), self.home.clone(), self.ledger.clone());
        let done = self.read_outside(move || Ok((sink.adopt(&ledger, &home), sink.claim(&ledger, &home)))).await;
        let (adopted, claimed) = match done {
            Ok(done) => done,
            Err(error) => return tracing::warn!(%error, "the directory of the heads does not answer"),
        };
        match adopted {
            Ok(0) => {}
            Ok(heads) => tracing::info!(heads, "heads of this ledger were moved to the directory of its id"),
            Err(error) => tracing::warn!(%error, "heads of this ledger in another directory were not moved"),
        }
        match claimed {
            Ok(None) => {}
            Ok(Some(Other::Moved(from))) => tracing::info!(from = %from.display(), "the home was moved"),
            Ok(Some(Other::Copy(other))) => {
                let sentence = format!(
                    "this home is a copy of {}, or that is a copy of this one: never run both; remove the one that is not needed",
                    other.display()
                );
                tracing::warn!("{sentence}");
                self.issues.lock().expect("no holder panics").copy = Some(sentence);
                self.note(Entry::new(LedgerEvent::LedgerCopyFound)).await;
            }
            Err(error) => tracing::debug!(%error, "cannot record the home of these heads"),
        }
    }

    async fn note(&self, entry: Entry) {
        if let Err(error) = self.state.write(move |tx| entry.append(tx)).await {
            tracing::error!(%error, "cannot record a finding about the heads");
        }
    }

    /// Returns the heads and archives of another history at a start; they exist if the home was restored to an earlier state.
    pub(super) async fn find_other_history(&self) -> Result<Vec<String>, ironclaw_state::Error> {
        let found = match self.other_history(false).await {
            Ok(found) => found,
            Err(AcceptError::State(error)) => return Err(error),
            Err(error) => {
                // A start does not wait for another machine: it assumes no other history, and warns.
                tracing::warn!(%error, "the heads outside were not read");
                let sentence = format!("the heads outside were not read: {error}");
                self.issues.lock().expect("no holder panics").behind = Some(sentence);
                return Ok(Vec::new());
            }
        };
        if let Some(from) = found.from() {
            let sentence = match found.heads.is_empty() {
                false => format!(
                    "heads outside know another history from entry {from} on: this home was restored to an earlier state, \
                     or its ledger was rewritten; `ironctl audit verify` says more; an owner who restored it accepts that with \
                     `ironctl audit accept --reason TEXT`"
                ),
                true => format!(
                    "the record is older than its archive {}: it was restored to an earlier state without them; an owner who did that \
                     accepts it with `ironctl audit accept --reason TEXT`",
                    archive::path(&self.home, from).display()
                ),
            };
            tracing::warn!("{sentence}");
            self.issues.lock().expect("no holder panics").behind = Some(sentence);
            let event =
                if found.heads.is_empty() { LedgerEvent::LedgerBehindArchives } else { LedgerEvent::LedgerBehindHeads };
            let note = Entry::new(event).with("from", from);
            self.state.write(move |tx| note.append(tx)).await?;
        }
        self.other.lock().expect("no holder panics").extend(found.heads.iter().map(|head| head.signed.clone()));
        let archives = found.archives.iter().map(Foreign::name);
        Ok(found.heads.into_iter().map(|head| head.name).chain(archives).collect())
    }

    /// Returns heads and archives of another history that are not accepted. With `archived`, also compares heads over archived entries.
    async fn other_history(&self, archived: bool) -> Result<OtherHistory, AcceptError> {
        let live = self.state.read(live).await?;
        let (sink, home, ledger) = (self.sink.clone(), self.home.clone(), self.ledger.clone());
        let read = move || {
            let mut kept = Vec::new();
            for directory in sink.sources(&ledger, &home) {
                match head::all(&directory) {
                    Ok(all) => kept.extend(all),
                    // The first head creates a missing directory.
                    Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(kept)
        };
        let mut kept: Vec<HeadFile> = match self.directory {
            Some(_) => self.read_outside(read).await?,
            None => Vec::new(),
        };
        // Any user can sign a head with a key of their own.
        kept.retain(|kept| kept.is_signed_by(&live.keys));
        self.warn_without_heads(&kept).await?;
        let old = if archived { self.hashes_in_archives(&kept, live.first).await? } else { BTreeMap::new() };
        let (ledger, lowest) = (self.ledger.clone(), if archived { 0 } else { live.first });
        let compare = move |tx: &ReadTx<'_>| {
            let (position, accepted) = (Position::read(tx)?, accepted(tx)?);
            let find =
                |seq: u64| Ok::<_, ironclaw_state::Error>(chain::hash_at(tx, seq)?.or_else(|| old.get(&seq).cloned()));
            let mut heads = head::contradictions(kept, &ledger, lowest, position.seq, find)?;
            heads.retain(|head| !accepted.contains(&head.signed));
            Ok::<_, ironclaw_state::Error>(heads)
        };
        let heads = self.state.read(compare).await?;
        let (home, of) = (self.home.clone(), live.clone());
        let candidates = self.read_outside(move || foreign::find(&home, &of, |_| false)).await?;
        let judge = move |tx: &ReadTx<'_>| {
            let mut archives = Vec::new();
            for foreign in candidates {
                // The archive of an interrupted rotation holds the beginning of the live chain.
                let is_ours = foreign.first == live.first
                    && chain::hash_at(tx, foreign.signed.seq)?.as_ref() == Some(&foreign.signed.hash);
                if !is_ours {
                    archives.push(foreign);
                }
            }
            Ok::<_, ironclaw_state::Error>(archives)
        };
        Ok(OtherHistory { heads, archives: self.state.read(judge).await? })
    }

    /// Returns the hashes of the entries below `live_first` that have heads.
    async fn hashes_in_archives(&self, kept: &[HeadFile], live_first: u64) -> io::Result<BTreeMap<u64, String>> {
        let mut wanted = check::wanted(kept);
        wanted.retain(|seq| *seq < live_first);
        let home = self.home.clone();
        let read = move || {
            let mut found = BTreeMap::new();
            for first in archive::firsts(&home)?.into_iter().filter(|first| *first < live_first) {
                match archive::check(&home, first, &wanted) {
                    Ok(chain) => found.extend(chain.into_found()),
                    Err(check::Error::Bad(bad)) => return Err(io::Error::other(bad)),
                    Err(check::Error::Io(error)) => return Err(error),
                }
            }
            Ok(found)
        };
        // Without a time limit, since an owner asked for it.
        tokio::task::spawn_blocking(read).await.unwrap_or_else(|panicked| Err(io::Error::other(panicked)))
    }

    /// Warns if the directory has no head of a ledger that must have some.
    async fn warn_without_heads(&self, kept: &[HeadFile]) -> Result<(), ironclaw_state::Error> {
        let any = kept.iter().any(|kept| kept.head.as_ref().is_some_and(|head| head.ledger == self.ledger));
        let Some(directory) = self.directory.as_ref().filter(|_| !any) else { return Ok(()) };
        // Every host keeps a head from its first start on.
        if self.state.read(chain::is_older_than_this_run).await? {
            let sentence = format!(
                "no earlier head of this ledger is in {}, so the host cannot tell if this home was restored to an earlier state: bring \
                 the heads along when you restore or move a home",
                directory.display()
            );
            tracing::warn!("{sentence}");
            self.issues.lock().expect("no holder panics").unknown = Some(sentence);
        }
        Ok(())
    }

    /// Searches, before each head, for new heads that this host did not sign. They come from a copy of the home that runs as well.
    pub(super) async fn find_foreign_heads(&self) {
        let Some(directory) = self.directory.clone() else { return };
        let ledger = self.ledger.clone();
        let read = {
            let (directory, ledger) = (directory.clone(), ledger.clone());
            move || head::names(&directory, &ledger)
        };
        // A directory that does not answer is reported when a head is written there.
        let Ok(names) = self.read_outside(read).await else { return };
        let suspects = move |tx: &ReadTx<'_>| {
            let first = Position::read(tx)?.first;
            let mut suspects = Vec::new();
            for name in names {
                let Some((seq, begins)) = head::named(&name, &ledger).filter(|(seq, _)| *seq >= first) else {
                    continue;
                };
                if !chain::hash_at(tx, seq)?.is_some_and(|hash| hash.starts_with(begins)) {
                    suspects.push(name);
                }
            }
            Ok::<_, ironclaw_state::Error>((suspects, head::public_keys(tx)?, accepted(tx)?))
        };
        let Ok((suspects, keys, accepted)) = self.state.read(suspects).await else { return };
        if suspects.is_empty() {
            return;
        }
        let read = move || Ok(suspects.into_iter().map(|name| head::one(&directory, name)).collect::<Vec<_>>());
        let Ok(kept) = self.read_outside(read).await else { return };
        let foreign: Vec<Signed> = {
            let mut known = self.other.lock().expect("no holder panics");
            let signed = kept.iter().filter(|kept| kept.is_signed_by(&keys)).filter_map(|kept| kept.head.as_ref());
            let signed = signed.filter(|head| head.ledger == self.ledger && head::is_authentic(head));
            let signed = signed.map(|head| Signed { seq: head.seq, hash: head.hash.clone() });
            signed.filter(|signed| !accepted.contains(signed)).filter(|signed| known.insert(signed.clone())).collect()
        };
        let Some(seq) = foreign.iter().map(|signed| signed.seq).min() else { return };
        let sentence = format!(
            "another host signs heads of this ledger (entry {seq}): a copy of this home is running too; stop one of the two, and remove it"
        );
        tracing::error!("{sentence}");
        self.issues.lock().expect("no holder panics").copy = Some(sentence);
        self.note(Entry::new(LedgerEvent::LedgerCopyRuns).with("from", seq)).await;
    }
}
