//! Channels beside the loopback, the secret that each signs with, and which agent hears it.
//!
//! Never gives a channel a name that is the host's own, and never stores a secret but under the master key. Next: `inbound::channel::webhook`.

use super::{LOOPBACK, Person, Role, authorised_entry, identities};
use crate::gateway::decide::proof::Authority;
use crate::refusal::{Denied, Refusal};
use crate::tables::channels::{self as table, NewChannel};
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{AgentId, PersonId};
use ironclaw_contract::operator::{ChannelKind, DenialCode, LedgerEvent};
use ironclaw_contract::seam::change::{Engage, Wiring};
use ironclaw_ledger::Entry;
use ironclaw_state::keys::{self, SecretText, WrappingKey};
use ironclaw_state::{ReadTx, WriteTx};

pub use crate::tables::channels::{Channel, Hears, all, find, heard_by};

/// Channels of one host.
const CHANNELS_MAX: usize = 64;

/// Characters of a channel's name.
const NAME_CHARACTERS_MAX: usize = 32;

/// Names of the host's own.
const RESERVED: [&str; 2] = [LOOPBACK, "host"];

impl Channel {
    /// Its signing secret.
    ///
    /// # Errors
    /// When this master key does not open it.
    pub fn secret(&self, wrapping: &WrappingKey) -> Result<SecretText, keys::Error> {
        wrapping.secret(&secret_name(&self.name), &self.wrapped)
    }

    /// The same, heard by this agent, which answers each message.
    pub fn heard_by(self, agent: Option<AgentId>) -> Self {
        Self { agent, hears: Hears::All, ..self }
    }

    /// How this agent hears it, as the change that would make it so.
    pub fn wiring(&self, agent: AgentId) -> Wiring {
        let channel = self.name.clone();
        if self.agent != Some(agent) {
            return Wiring { channel, engage: Engage::None, pattern: None };
        }
        Wiring { channel, engage: self.hears.engage(), pattern: self.hears.pattern().map(str::to_owned) }
    }
}

/// The name under which the secret of a channel is wrapped: it opens for no other, and no secret of an operator's has a space in it.
fn secret_name(channel: &str) -> String {
    format!("of channel {channel}")
}

/// What a new channel is to be.
#[derive(Debug)]
pub struct Draft {
    /// Its name.
    pub name: String,
    /// What it speaks.
    pub kind: ChannelKind,
    /// Where replies go; checked by the channel's own module.
    pub url: String,
    /// Whether it shows a delivery once that is sent to it twice.
    pub idempotent: bool,
    /// Its signing secret.
    pub secret: SecretText,
}

/// Why a channel could not be made.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The state.
    #[error(transparent)]
    State(#[from] ironclaw_state::Error),
    /// Its secret.
    #[error(transparent)]
    Key(#[from] keys::Error),
}

impl From<Error> for Denied<Error> {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// Returns the channel of this name.
///
/// # Errors
/// Refuses a name that is no channel's.
pub fn known(tx: &ReadTx<'_>, name: &str) -> Result<Channel, Denied> {
    let shown: String = name.chars().take(NAME_CHARACTERS_MAX).collect();
    find(tx, name)?.ok_or_else(|| {
        let refusal = Refusal::new(DenialCode::ChannelUnknown, format!("there is no channel {shown:?}"));
        refusal.hint("`ironctl channel list` shows which there are").into()
    })
}

/// Makes a channel, heard by nobody yet.
///
/// # Errors
/// Refuses a name that is malformed or taken, and one under which people are linked already, unless an owner makes it: the holder
/// of the secret speaks as every person who is linked there.
pub fn add(tx: &mut WriteTx<'_>, draft: &Draft, wrapping: &WrappingKey, by: &Person) -> Result<Channel, Denied<Error>> {
    let name = &draft.name;
    check_name(name)?;
    let channels = all(tx)?;
    if channels.iter().any(|channel| channel.name == *name) {
        let refusal = Refusal::new(DenialCode::ChannelExists, format!("there is a channel `{name}` already"));
        return Err(refusal
            .hint("choose another name, or remove that one first: `ironctl channel remove NAME`")
            .into());
    }
    if channels.len() >= CHANNELS_MAX {
        let refusal = Refusal::new(DenialCode::ChannelsTooMany, format!("there are {CHANNELS_MAX} channels already"));
        return Err(refusal.into());
    }
    if by.role != Role::Owner && identities(tx)?.iter().any(|(identity, _)| identity.channel == *name) {
        let message = format!("people are linked under {name}: already, and whoever has its secret speaks as they");
        let refusal = Refusal::new(DenialCode::ChannelInUse, message);
        return Err(refusal.hint("an owner makes it, or unlinks them first: `ironctl person unlink`").into());
    }
    let wrapped = wrapping.wrap_secret(&secret_name(name), &draft.secret).map_err(Error::from)?;
    let (url, idempotent, created_at) = (draft.url.as_str(), draft.idempotent, tx.now());
    table::insert(tx, &NewChannel { name, kind: draft.kind, url, idempotent, wrapped: &wrapped, created_at })?;
    Entry::new(LedgerEvent::ChannelAdded)
        .with("channel", name.clone())
        .with("kind", draft.kind)
        .with("url_digest", Digest::of(draft.url.as_bytes()).to_string())
        .with("idempotent", draft.idempotent)
        .with("by", by.id)
        .append(tx)?;
    let made = find(tx, name)?;
    Ok(made.ok_or_else(|| ironclaw_state::Error::Stored(format!("channel {name} vanished while it was made")))?)
}

fn check_name(name: &str) -> Result<(), Refusal> {
    let clean = (1..=NAME_CHARACTERS_MAX).contains(&name.len())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'-' | b'_'));
    let shown: String = name.chars().take(NAME_CHARACTERS_MAX).collect();
    if !clean {
        let refusal = Refusal::new(DenialCode::ChannelName, format!("{shown:?} is no channel's name"));
        return Err(refusal.hint(format!("use 1 to {NAME_CHARACTERS_MAX} characters of a-z, 0-9, - and _")));
    }
    if RESERVED.contains(&name) {
        return Err(Refusal::new(DenialCode::ChannelName, format!("{shown:?} is a name of the host's own")));
    }
    Ok(())
}

/// Removes a channel with its secret. What is still to be sent on it is for its caller to settle.
pub fn remove(tx: &mut WriteTx<'_>, name: &str, by: PersonId) -> Result<(), ironclaw_state::Error> {
    table::delete(tx, name)?;
    Entry::new(LedgerEvent::ChannelRemoved).with("channel", name.to_owned()).with("by", by).append(tx)?;
    Ok(())
}

/// Connects an agent to a channel or disconnects it, as a command or a change says. Only one agent hears a channel.
///
/// # Errors
/// Those of the record, and a wiring that the contract does not let through.
pub fn wire<'a>(
    tx: &mut WriteTx<'_>,
    authority: impl Into<Authority<'a>>,
    channel: &Channel,
    agent: AgentId,
    wiring: &Wiring,
) -> Result<(), ironclaw_state::Error> {
    let hears = match (wiring.engage, &wiring.pattern) {
        (Engage::All, None) => Some(Hears::All),
        (Engage::Pattern, Some(pattern)) => Some(Hears::Pattern(pattern.clone())),
        (Engage::None, None) => None,
        (Engage::All | Engage::None, Some(_)) | (Engage::Pattern, None) => {
            return Err(ironclaw_state::Error::Stored(format!(
                "a wiring of {} that no contract lets through",
                channel.name
            )));
        }
    };
    let event = match &hears {
        Some(hears) => {
            table::connect(tx, &channel.name, agent, hears)?;
            LedgerEvent::ChannelConnected
        }
        None => {
            table::disconnect(tx, &channel.name, agent)?;
            LedgerEvent::ChannelDisconnected
        }
    };
    let authority = authority.into();
    let entry = authorised_entry(event, authority).with("channel", channel.name.clone()).with("agent", agent);
    let digest = |wiring: &Wiring| Digest::of(&canonical::to_vec(wiring)).to_string();
    let entry = match authority {
        Authority::Approved(_) => entry
            .with("generation", channel.generation)
            .with("before", digest(&channel.wiring(agent)))
            .with("after", digest(wiring)),
        Authority::Direct(_) => entry,
    };
    entry.append(tx)?;
    Ok(())
}

/// Wraps every secret under another key instead; returns how many there are.
pub fn rewrap(tx: &mut WriteTx<'_>, old: &WrappingKey, new: &WrappingKey) -> Result<u64, Error> {
    let mut count = 0;
    for channel in all(tx)? {
        let wrapped = old.rewrap_secret(new, &secret_name(&channel.name), &channel.wrapped)?;
        table::set_wrapped(tx, &channel.name, &wrapped)?;
        count += 1;
    }
    Ok(count)
}
