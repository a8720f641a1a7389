//! Inspection of a ledger: that of a home, with or without a running host, or an exported one.
//!
//! Read-only. The live chain needs the master key, since it is in the encrypted record; archives and exports need no key. See
//! [`ironclaw_ledger::check`].

use crate::daemon::config;
use crate::upkeep::key_rotation;
use ironclaw_ledger::check::{self, Bad, Class, Verified};
use ironclaw_ledger::head::{self, HeadFile, Position, Signer};
use ironclaw_ledger::line::{self, Line, Parts};
use ironclaw_ledger::sink::Sink;
use ironclaw_ledger::{archive, chain};
use ironclaw_operator::{LedgerHead, LedgerLine, LedgerWhole};
use ironclaw_state::View;
use ironclaw_state::home::{self, Home};
use ironclaw_state::keys::{MasterKey, Source};
use ironclaw_store::toml_file;
use std::collections::BTreeSet;
use std::io::{self, BufRead, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// The reason that a ledger cannot be inspected.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Home(#[from] home::Error),
    #[error(transparent)]
    Config(#[from] toml_file::Error),
    #[error(transparent)]
    Key(#[from] key_rotation::Error),
    /// The key that signs heads.
    #[error(transparent)]
    Head(#[from] head::Error),
    #[error(transparent)]
    State(#[from] ironclaw_state::Error),
    /// The ledger is not whole.
    #[error(transparent)]
    Bad(#[from] Bad),
    #[error("{path}: {source}")]
    Io { path: PathBuf, source: io::Error },
}

impl From<chain::Error> for Error {
    fn from(error: chain::Error) -> Self {
        match error {
            chain::Error::Bad(bad) => Self::Bad(bad),
            chain::Error::State(error) => Self::State(error),
        }
    }
}

fn fault(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.to_owned();
    move |source| Error::Io { path, source }
}

fn checked(path: &Path) -> impl FnOnce(check::Error) -> Error {
    let path = path.to_owned();
    move |error| match error {
        check::Error::Bad(bad) => Error::Bad(bad.in_file(&path)),
        check::Error::Io(source) => Error::Io { path, source },
    }
}

/// A home whose ledger can be read.
struct Opened {
    home: Home,
    view: View,
    master: MasterKey,
    sink: Sink,
}

impl Opened {
    /// Opens a second view of the record for a parallel reader. Without it, the check only takes longer.
    fn another(&self) -> Option<View> {
        View::open(&self.home.state_db(), &self.master.state_key()).ok()
    }
}

fn open(path: &Path) -> Result<Opened, Error> {
    let home = Home::open(path)?;
    let (config, _) = config::load(&home)?;
    let sink = Sink::choose(&config.ledger, &home).unwrap_or(Sink::None("the settings were refused"));
    let master = key_rotation::key(&home, &config.keys)?;
    // One snapshot, since a host may rotate meanwhile.
    let view = View::open(&home.state_db(), &master.state_key())
        .map_err(|error| key_rotation::explain(&home, &Source::choose(&home, &config.keys), &master, error))?;
    Ok(Opened { home, view, master, sink })
}

/// External evidence for a verification.
#[derive(Debug, Default)]
pub struct Evidence<'a> {
    /// A directory of heads outside of the home.
    pub heads: Option<&'a Path>,
    /// The public key that the ledger must name, 64 hex characters.
    pub key: Option<&'a str>,
}

impl Evidence<'_> {
    /// Reads the heads of the named directory, or else of the usual ones.
    fn read(&self, usual: &[PathBuf]) -> Result<Vec<HeadFile>, Error> {
        let named = self.heads.map(Path::to_owned);
        let mut kept = Vec::new();
        for path in named.as_slice().iter().chain(usual.iter().filter(|_| self.heads.is_none())) {
            kept.extend(head::all(path).map_err(fault(path))?);
        }
        Ok(kept)
    }

    fn judge(&self, whole: &Verified, kept: &[HeadFile], mut remarks: Vec<String>) -> Result<LedgerWhole, Error> {
        if let Some(key) = self.key.filter(|key| !whole.keys.iter().any(|named| named == key)) {
            return Err(Bad::at(0, Class::Rewritten, format!("the ledger does not name the key {key}")).into());
        }
        let (heads, remark) = whole.compare(kept)?;
        remarks.extend(remark);
        Ok(LedgerWhole {
            ok: true,
            entries: whole.next,
            chains: whole.chains,
            heads,
            ledger: whole.ledger.clone(),
            key: whole.keys.last().cloned(),
            accepted: whole.accepted(),
            remarks,
        })
    }
}

/// Verifies the ledger of the home at `path`: every archive, the live chain, the links between them, and the heads outside, by default
/// those of the directory in the settings.
pub fn verify(path: &Path, evidence: &Evidence<'_>) -> Result<LedgerWhole, Error> {
    verify_opened(&open(path)?, evidence)
}

/// Verifies the ledger of a home that was unpacked from a backup, with the heads of the backup alone.
pub fn verify_unpacked(path: &Path, master: MasterKey, heads: &Path) -> Result<LedgerWhole, Error> {
    let home = Home::open(path)?;
    let view = View::open(&home.state_db(), &master.state_key())?;
    let opened = Opened { home, view, master, sink: Sink::None("the home is unpacked") };
    verify_opened(&opened, &Evidence { heads: Some(heads), key: None })
}

fn verify_opened(opened: &Opened, evidence: &Evidence<'_>) -> Result<LedgerWhole, Error> {
    let Opened { home, view, sink, .. } = opened;
    let (tx, state_db) = (&view.tx(), home.state_db());
    // Without a genesis there is no id of the ledger to look under.
    let usual = Position::read(tx).map_or_else(|_| Vec::new(), |position| sink.sources(&position.ledger, home));
    let kept = evidence.read(&usual)?;
    let wanted = check::wanted(&kept);
    // A host may rotate meanwhile: only archives from before the snapshot are compared with it.
    let before = archive::firsts(home).map_err(fault(&home.ledger()))?;
    // For an empty record, every archive is older.
    let live_first = chain::first_seq(tx)?.unwrap_or(u64::MAX);
    let firsts = archive::firsts(home).map_err(fault(&home.ledger()))?;
    let mut whole = Verified::default();
    let sealed: Vec<u64> = firsts.iter().copied().filter(|first| *first < live_first).collect();
    for (first, chain) in sealed.iter().zip(archives(home, &sealed, &wanted)) {
        let chain = match chain {
            Ok(chain) => chain,
            Err(check::Error::Bad(bad)) if whole.next != *first => {
                // A gap before it explains more than the fault that follows from the gap.
                let bad = bad.in_file(&archive::path(home, *first));
                return Err(missing(&whole, *first, home).unwrap_or(bad).into());
            }
            Err(error) => return Err(checked(&archive::path(home, *first))(error)),
        };
        if let Some(bad) = missing(&whole, chain.first, home) {
            return Err(bad.into());
        }
        whole.join(chain).map_err(|bad| bad.in_file(&archive::path(home, *first)))?;
    }
    if live_first == u64::MAX {
        let why = "the record holds no entry, not even a genesis";
        return Err(Bad::at(whole.next, Class::Truncated, why).in_file(&state_db).into());
    }
    if let Some(bad) = missing(&whole, live_first, home) {
        return Err(bad.into());
    }
    let live = chain::check(tx, opened.another(), &wanted).map_err(|error| match error {
        chain::Error::Bad(bad) => chain::Error::Bad(bad.in_file(&state_db)),
        chain::Error::State(error) => chain::Error::State(error),
    })?;
    let mut remarks = Vec::new();
    if let Some(later) = before.iter().find(|first| **first > live_first) {
        let name = archive::path(home, *later).display().to_string();
        let why =
            format!("{name} begins at {later}, and the record ends at {}: it is older than its archives", live.last);
        return Err(Bad::at(live.last + 1, Class::Truncated, why).into());
    }
    if before.contains(&live_first) {
        let hash = |seq: u64| chain::hash_at(tx, seq).ok().flatten();
        remarks.push(archive::leftover(home, &live, hash).map_err(checked(&archive::path(home, live_first)))?);
    }
    whole.join(live).map_err(|bad| bad.in_file(&state_db))?;
    if kept.is_empty() && sink.root().is_some() && evidence.heads.is_none() && live_first > 0 {
        remarks.push("no head of this ledger was found outside of the home".to_owned());
    }
    evidence.judge(&whole, &kept, remarks)
}

/// Returns the error for a missing chain before `first`.
fn missing(whole: &Verified, first: u64, home: &Home) -> Option<Bad> {
    (whole.next < first).then(|| {
        let name = archive::path(home, whole.next).display().to_string();
        Bad::at(
            whole.next,
            Class::Missing,
            format!("entries {} to {} are missing: there is no {name}", whole.next, first - 1),
        )
    })
}

/// Checks archives in parallel, since each chain can be checked by itself. Returns the results in order.
fn archives(home: &Home, firsts: &[u64], wanted: &BTreeSet<u64>) -> Vec<Result<check::Chain, check::Error>> {
    let workers = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).min(firsts.len().max(1));
    let next = AtomicUsize::new(0);
    let mut results: Vec<(usize, Result<check::Chain, check::Error>)> = std::thread::scope(|scope| {
        let work = || {
            let mut done = Vec::new();
            while let Some((at, first)) =
                Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|at| Some((at, firsts.get(at)?)))
            {
                done.push((at, archive::check(home, *first, wanted)));
            }
            done
        };
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().expect("checking does not panic")).collect()
    });
    results.sort_by_key(|(at, _)| *at);
    results.into_iter().map(|(_, result)| result).collect()
}

/// Verifies an export; `-` is standard input.
pub fn verify_file(file: &Path, evidence: &Evidence<'_>) -> Result<LedgerWhole, Error> {
    let kept = evidence.read(&[])?;
    let wanted = check::wanted(&kept);
    let whole = if file == Path::new("-") {
        check::export(io::stdin().lock(), &wanted)
    } else {
        let input = std::fs::File::open(file).map_err(fault(file))?;
        check::export(io::BufReader::with_capacity(1024 * 1024, input), &wanted)
    };
    let whole = whole.map_err(|error| match error {
        check::Error::Bad(bad) => Error::Bad(bad),
        check::Error::Io(source) => Error::Io { path: file.to_owned(), source },
    })?;
    evidence.judge(&whole, &kept, Vec::new())
}

/// Writes the ledger of the home at `path`: the unchanged archives, the live chain, and a freshly signed head.
pub fn export(path: &Path, out: &mut impl Write) -> Result<(), Error> {
    let opened = open(path)?;
    let (home, tx) = (&opened.home, &opened.view.tx());
    let live = chain::first_seq(tx)?.unwrap_or(u64::MAX);
    for first in archive::firsts(home).map_err(fault(&home.ledger()))?.into_iter().filter(|first| *first < live) {
        let archive = archive::path(home, first);
        let mut input = archive::open(home, first).map_err(fault(&archive))?;
        io::copy(&mut input, out).map_err(fault(&archive))?;
    }
    let mut text = String::new();
    chain::walk(tx, 0, |parts| {
        text.clear();
        line::write(&mut text, parts);
        out.write_all(text.as_bytes()).map_err(fault(Path::new("the export")))
    })?;
    text.clear();
    line::write_head(&mut text, &signed(&opened)?);
    out.write_all(text.as_bytes()).map_err(fault(Path::new("the export")))
}

/// Signs the present position of the ledger of the home at `path`, and names the directory of the heads.
pub fn head(path: &Path) -> Result<LedgerHead, Error> {
    let opened = open(path)?;
    let head = signed(&opened)?;
    let kept = opened.sink.look(&head.ledger);
    Ok(LedgerHead { head, kept })
}

fn signed(opened: &Opened) -> Result<ironclaw_operator::SignedHead, Error> {
    let tx = &opened.view.tx();
    let signer = Signer::load(tx, &opened.master.wrapping_key())?;
    let now = jiff::Timestamp::now().as_millisecond();
    Ok(signer.sign(Position::read(tx)?, now))
}

/// Returns the last `count` entries, including those in archives.
pub fn tail(path: &Path, count: u64) -> Result<Vec<LedgerLine>, Error> {
    let Opened { home, view, .. } = open(path)?;
    let tx = &view.tx();
    let from = chain::next_seq(tx)?.saturating_sub(count);
    let live = chain::first_seq(tx)?.unwrap_or(u64::MAX);
    let mut lines = Vec::new();
    if from < live {
        let firsts = archive::firsts(&home).map_err(fault(&home.ledger()))?;
        let begin = firsts.iter().copied().filter(|first| *first <= from).max().unwrap_or(0);
        for first in firsts.into_iter().filter(|first| (begin..live).contains(first)) {
            let path = archive::path(&home, first);
            for text in archive::open(&home, first).map_err(fault(&path))?.lines() {
                let text = text.map_err(fault(&path))?;
                match line::parse(&text) {
                    Some(Line::Entry(parts)) if parts.seq >= from => lines.push(chain::view(parts)),
                    _ => {}
                }
            }
        }
    }
    chain::walk(tx, from, |parts: Parts<'_>| {
        lines.push(chain::view(parts));
        Ok::<_, Error>(())
    })?;
    Ok(lines)
}
