//! The creation of a backup, with or without a running host.
//!
//! The record is copied first, in one snapshot; the files come after it, so that each archive of a chain that the copy does not have is
//! there. One backup is made at a time. See [`super::tree`].

use super::entry::{FILES, HEADS, Totals};
use super::error::Error;
use super::format::{CHUNK_BYTES, Header, Sealer};
use super::tree::{Bounds, Contents};
use crate::registry::quota;
use crate::registry::{skills, software};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{PersonId, SessionId};
use ironclaw_contract::seam::crypt::SessionKey;
use ironclaw_ledger::head::{self, Position};
use ironclaw_ledger::sink::Sink;
use ironclaw_ledger::{Entry, archive};
use ironclaw_operator::{Backup, LedgerEvent};
use ironclaw_state::home::{Home, LayerOwner};
use ironclaw_state::keys::{self, BackupKey, MasterKey, spelled};
use ironclaw_state::{ReadTx, State, View, backup, failpoint, wall_clock};
use ironclaw_store::tables::facts::{self, Fact};
use ironclaw_store::tables::sessions;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Name of the copy of the record in the home. It has no name once it is complete.
pub(super) const COPY: &str = ".state.db.backup";

/// Bytes that the copy may need in addition to the size of the record.
const ROOM_BYTES_MIN: u64 = 8 * 1024 * 1024;

/// A workspace may have this many times the bytes of its quota: the quota counts blocks, and a backup counts the sizes of files.
const SPARSE_FACTOR: u64 = 2;

/// Makes backups of one home.
pub struct Maker {
    home: Home,
    state_key: SessionKey,
    key: BackupKey,
    sink: Sink,
    one: Arc<Semaphore>,
}

/// A backup whose record is copied. The files are read when it is written.
pub struct Prepared {
    maker: Arc<Maker>,
    header: Header,
    /// The bounds of each workspace.
    bounds: Bounds,
    /// The copy of the record.
    record: File,
    known: Known,
    _one: OwnedSemaphorePermit,
}

/// The facts of the copied record that name the files of the backup.
struct Known {
    ledger: String,
    /// The first entry that is in the record.
    first: u64,
    last: u64,
    generation: u64,
    sessions: Vec<SessionId>,
    layers: Vec<(LayerOwner, Digest)>,
    /// The packages of the skills that agents have.
    skills: Vec<Digest>,
}

impl Known {
    fn read(tx: &ReadTx<'_>) -> Result<Self, ironclaw_state::Error> {
        let position = Position::read(tx)?;
        Ok(Self {
            ledger: position.ledger,
            first: position.first,
            last: position.seq,
            generation: facts::generation(tx)?,
            sessions: sessions::all(tx)?.into_iter().map(|session| session.id).collect(),
            layers: software::layers(tx)?,
            skills: skills::used(tx)?,
        })
    }
}

/// Removes the copy of the record that a killed host left.
pub fn discard_left(home: &Home) -> Result<(), Error> {
    let copy = home.path().join(COPY);
    backup::discard(&copy).map_err(|source| Error::Io { path: copy, source })
}

impl Maker {
    pub fn new(home: &Home, master: &MasterKey, sink: Sink) -> Self {
        Self {
            home: home.clone(),
            state_key: master.state_key(),
            key: master.backup_key(),
            sink,
            one: Arc::new(Semaphore::new(1)),
        }
    }

    /// Records the backup in the ledger, and copies the record. `quota` bounds the workspaces.
    ///
    /// # Errors
    /// [`Error::Running`] while another backup is being made, and the errors of the record.
    pub async fn begin(
        self: &Arc<Self>,
        state: &State,
        quota: &quota::Config,
        by: Option<PersonId>,
    ) -> Result<Prepared, Error> {
        let one = Arc::clone(&self.one).try_acquire_owned().map_err(|_| Error::Running)?;
        let mut header = Header {
            chunk_bytes: CHUNK_BYTES,
            key: self.key.name(),
            id: keys::random()?,
            created_at: wall_clock(),
            generation: 0,
            entries: 0,
            schema: backup::schema(),
        };
        let entry = Entry::new(LedgerEvent::BackupCreated).with("backup", header.shown_id()).with("by", by);
        // First, so that no backup leaves the host without an entry.
        let id = header.shown_id();
        state
            .write(move |tx| {
                facts::set_backup(tx, Fact::BackupMade, &id)?;
                entry.append(tx).map(drop)
            })
            .await?;
        let maker = Arc::clone(self);
        let bytes = quota.workspace_bytes.saturating_mul(SPARSE_FACTOR);
        let bounds = Bounds { files: quota.workspace_files, bytes };
        let prepare = move || {
            let (record, known) = maker.copy_record(&header.shown_id())?;
            (header.generation, header.entries) = (known.generation, known.last + 1);
            Ok::<_, Error>(Prepared { maker, header, bounds, record, known, _one: one })
        };
        let prepared = tokio::task::spawn_blocking(prepare).await;
        prepared.unwrap_or_else(|panicked| Err(Error::Output(io::Error::other(panicked))))
    }

    /// Copies the record to a file without a name.
    fn copy_record(&self, id: &str) -> Result<(File, Known), Error> {
        let (path, copy) = (self.home.state_db(), self.home.path().join(COPY));
        self.check_room(&path, &copy)?;
        backup::copy(&path, &self.state_key, &copy, id)?;
        failpoint::reach("backup_copied");
        let opened = || -> Result<(File, Known), Error> {
            let view = View::open(&copy, &self.state_key)?;
            let known = Known::read(&view.tx())?;
            drop(view);
            let file = File::open(&copy).map_err(|source| Error::Io { path: copy.clone(), source })?;
            Ok((file, known))
        };
        let opened = opened();
        // A killed host leaves no copy that an erasure would miss.
        let removed = discard_left(&self.home);
        opened.and_then(|opened| removed.map(|()| opened))
    }

    fn check_room(&self, path: &Path, copy: &Path) -> Result<(), Error> {
        let size = |path: &Path| fs::metadata(path).map_or(0, |found| found.len());
        let log = path.with_extension("db-wal");
        let needed = size(path) + size(&log) + ROOM_BYTES_MIN;
        match self.home.free_space() {
            Some(room) if room.free_bytes < needed => {
                Err(Error::Io { path: copy.to_owned(), source: io::ErrorKind::StorageFull.into() })
            }
            _ => Ok(()),
        }
    }

    /// Returns the files of the heads that the copied record knows.
    fn heads(&self, known: &Known) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for directory in self.sink.sources(&known.ledger, &self.home) {
            let names = head::names(&directory, &known.ledger).unwrap_or_default();
            let is_known = |name: &String| head::named(name, &known.ledger).is_some_and(|(seq, _)| seq <= known.last);
            found.extend(names.into_iter().filter(is_known).map(|name| directory.join(name)));
        }
        found
    }
}

impl Prepared {
    /// Writes the backup. It runs long: call it on a thread that may block.
    ///
    /// # Errors
    /// [`Error::Output`], and the errors of the files of the home.
    pub fn write(self, out: impl Write) -> Result<Backup, Error> {
        let Self { maker, header, bounds, record, known, .. } = self;
        let home = &maker.home;
        let user =
            fs::metadata(home.path()).map_err(|source| Error::Io { path: home.path().to_owned(), source })?.uid();
        let sealer = Sealer::begin(&maker.key, &header, out).map_err(Error::Output)?;
        let mut contents = Contents::new(sealer, user);
        let [state_db, others @ ..] = FILES;
        contents.open_file(Path::new(state_db), record)?;
        for name in others {
            contents.file(Path::new(name), &home.path().join(name))?;
        }
        contents.directory(Path::new("ledger"))?;
        for path in archives(home, known.first)? {
            contents.file(&below("ledger", &path), &path)?;
        }
        contents.directory(Path::new(HEADS))?;
        let mut names = BTreeSet::new();
        for path in maker.heads(&known) {
            if names.insert(below(HEADS, &path)) {
                contents.file(&below(HEADS, &path), &path)?;
            }
        }
        for directory in ["agents", "mcp"] {
            contents.directory(Path::new(directory))?;
        }
        for (owner, layer) in &known.layers {
            let path = home.layer(owner, layer);
            for directory in [home.layers_of(owner), home.layers_of(owner).join("layers")] {
                contents.directory(inner(home, &directory))?;
            }
            contents.tree(inner(home, &path), &path, Bounds::NONE)?;
        }
        contents.directory(Path::new("skills"))?;
        for package in &known.skills {
            let path = home.skills().join(package.to_string());
            contents.tree(inner(home, &path), &path, Bounds::NONE)?;
        }
        contents.directory(Path::new("sessions"))?;
        for session in &known.sessions {
            let own = home.session(*session);
            if own.workspace().is_dir() {
                contents.directory(inner(home, own.path()))?;
                contents.tree(inner(home, &own.workspace()), &own.workspace(), bounds)?;
                contents.tree(inner(home, &own.versions()), &own.versions(), Bounds::NONE)?;
            }
        }
        let (sealer, totals) = contents.finish()?;
        sealer.finish().map_err(Error::Output)?;
        Ok(described(&header, &totals))
    }
}

/// Returns the description of a backup.
pub fn described(header: &Header, totals: &Totals) -> Backup {
    let created_at = jiff::Timestamp::from_millisecond(header.created_at).unwrap_or_default();
    Backup {
        id: header.shown_id(),
        created_at: format!("{created_at:.0}"),
        key: spelled(header.key),
        generation: header.generation,
        schema: header.schema,
        entries: header.entries,
        files: totals.files,
        bytes: totals.bytes,
        changed: totals.changed,
        skipped: totals.skipped,
    }
}

/// Returns the path of a file of the home from its root.
fn inner<'p>(home: &Home, path: &'p Path) -> &'p Path {
    path.strip_prefix(home.path()).expect("it is a path of this home")
}

/// Returns the place of a file in a directory of the backup.
fn below(directory: &str, path: &Path) -> PathBuf {
    Path::new(directory).join(path.file_name().unwrap_or_default())
}

/// Returns the files beside the record's live chain, without archives that began later.
fn archives(home: &Home, first: u64) -> Result<Vec<PathBuf>, Error> {
    let fault = |source| Error::Io { path: home.ledger(), source };
    let later = archive::firsts(home).map_err(fault)?.into_iter().filter(|begin| *begin >= first);
    let later: BTreeSet<PathBuf> = later.map(|begin| archive::path(home, begin)).collect();
    let mut found = Vec::new();
    for entry in fs::read_dir(home.ledger()).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        let is_file = entry.file_type().is_ok_and(|kind| kind.is_file());
        if is_file && !is_hidden && !later.contains(&entry.path()) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}
