//! Commands on a home without serving it: set-up, rotation of the ledger, a backup, and removal.

pub mod removal;

use super::error::{Error, io};
use super::file_system;
use super::mount_policy;
use super::startup::{backup_maker, open_state};
use super::zone_sources;
use crate::channels::notifications::head_not_kept;
use crate::daemon::config;
use crate::registry::latch;
use crate::registry::live_settings::time::HostZone;
use crate::registry::policy;
use crate::registry::{self, FreshToken};
use crate::upkeep::key_rotation;
use crate::upkeep::maintenance::HeadPublisher;
use ironclaw_contract::canonical::Digest;
use ironclaw_ledger::sink::Sink;
use ironclaw_ledger::{Entry, archive, head};
use ironclaw_operator::{Backup, LedgerEvent, Rotated};
use ironclaw_state::State;
use ironclaw_state::home::{self, Home};
use ironclaw_state::keys::{self, MasterKey};
use std::io::Write;
use std::path::Path;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Sets up a home: master key, record, owner with token, settings. A second call changes nothing.
///
/// Returns the created parts.
///
/// # Errors
/// [`home::Error::RecordMissing`] for a home that had a record: a new one would hide the remains.
pub fn init(path: &Path) -> Result<Made, Error> {
    mount_policy::refuse_home(path)?;
    file_system::refuse_home(path)?;
    let home = Home::create(path)?;
    let (config, _) = config::load(&home)?;
    home.check_for_lost_record()?;
    if !home.has_record() {
        home.begin_setup()?;
    }
    MasterKey::create(&home, &config.keys)?;
    // Held until the end: no host may start meanwhile and share the write-ahead log.
    let held = match home.hold() {
        Ok(held) => Some(held),
        Err(home::Error::Running(_)) => None,
        Err(error) => return Err(error.into()),
    };
    // A running host has settled this itself.
    if held.is_some() && home.has_record() {
        key_rotation::resume_or_undo(&home, &config.keys)?;
    }
    let master = MasterKey::load(&home, &config.keys)?;
    State::create(&home.state_db())?;
    let open = if held.is_some() { State::open } else { State::open_beside };
    block_on(async {
        let state = open_state(open, &home, &config, &master)?;
        let made = set_up(&state, &home, master.wrapping_key()).await;
        state.close().await;
        made
    })
}

/// Returns the time zone of a home on this machine.
pub fn zone(path: &Path) -> Result<HostZone, Error> {
    let (config, _) = config::load(&Home::open(path)?)?;
    Ok(HostZone::choose(&config.time, &zone_sources::read()))
}

/// The part of a home that [`init`] created.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    Home,
    /// A token of the owner, in place of one that is lost or no longer valid.
    Token,
    /// Nothing, since all parts exist.
    Nothing,
}

async fn set_up(state: &State, home: &Home, wrapping: keys::WrappingKey) -> Result<Made, Error> {
    let fresh = FreshToken::new()?;
    let text = Zeroizing::new(fresh.text().to_owned());
    let (remains, place) = (home.remains(), home.path().to_owned());
    home.check_owner_token()?;
    let kept = home::read_small(&home.owner_token()).ok().map(Zeroizing::new);
    let kept = kept.map(|text| Digest::of(text.trim().as_bytes()));
    let made = state
        .write(move |tx| {
            if let Some(owner) = registry::owner(tx)? {
                if kept.map(|digest| registry::tokens::is_live(tx, &digest)).transpose()?.unwrap_or(false) {
                    return Ok::<_, Error>(Made::Nothing);
                }
                registry::tokens::issue_for_file(tx, owner, &fresh)?;
                return Ok(Made::Token);
            }
            if remains.is_some() {
                return Err(Error::NoGenesis(place));
            }
            let signer = head::Signer::make(tx, &wrapping)?;
            Entry::new(LedgerEvent::LedgerOpened)
                .with("ironclaw", env!("CARGO_PKG_VERSION"))
                .with("key", signer.public())
                .append(tx)?;
            let owner = registry::create_owner(tx, "owner")?;
            registry::tokens::issue_for_file(tx, owner, &fresh)?;
            Ok(Made::Home)
        })
        .await?;
    if made != Made::Nothing {
        home::write_private(&home.owner_token(), text.as_bytes())?;
    }
    if !home.config().exists() {
        home::write_private(&home.config(), config::template().as_bytes())?;
    }
    if !home.policy().exists() {
        home::write_private(&home.policy(), policy::template().as_bytes())?;
    }
    latch::keep_reserve(home);
    home.end_setup()?;
    Ok(made)
}

/// Rotates the ledger of a home without a running host.
pub fn rotate(path: &Path) -> Result<Rotated, Error> {
    let home = Home::open(path)?;
    let _lock = home.hold()?;
    let (config, _) = config::load(&home)?;
    let sink = Sink::choose(&config.ledger, &home).unwrap_or(Sink::None("the settings were refused"));
    key_rotation::resume_or_undo(&home, &config.keys)?;
    let master = MasterKey::load(&home, &config.keys)?;
    block_on(async {
        let state = open_state(State::open, &home, &config, &master)?;
        let rotated = async {
            let (head_publisher, _) =
                HeadPublisher::start(&state, &home, &config.ledger, sink, master.wrapping_key(), head_not_kept).await?;
            let rotated = head_publisher.rotate(archive::RotationReason::Asked(None)).await?;
            head_publisher.stop().await;
            Ok::<_, Error>(rotated)
        };
        let rotated = rotated.await;
        state.close().await;
        rotated
    })
}

/// Writes a backup of a home without a running host.
pub fn back_up(path: &Path, out: impl Write) -> Result<Backup, Error> {
    let home = Home::open(path)?;
    let _lock = home.hold()?;
    let (config, _) = config::load(&home)?;
    key_rotation::resume_or_undo(&home, &config.keys)?;
    let master = MasterKey::load(&home, &config.keys)?;
    let maker = Arc::new(backup_maker(&home, &config, &master));
    let prepared = block_on(async {
        let state = open_state(State::open, &home, &config, &master)?;
        let prepared = maker.begin(&state, &config.quota, None).await;
        state.close().await;
        Ok(prepared?)
    });
    Ok(prepared?.write(out)?)
}

/// Runs a command that serves nothing.
fn block_on<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.map_err(io("start the runtime"))?.block_on(work)
}
