//! The channels besides the loopback: the signing secret of each, and the agent that hears it.
//!
//! Never gives a channel a reserved name, and stores a secret only under the master key. See [`crate::channels::inbound::channel::webhook`].

pub mod own_senders;
pub mod reach;

use super::places::ending;
use super::suggestion::Unknown;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::seam::change::UnknownSenders;
use ironclaw_ledger::Entry;
use ironclaw_operator::{Bound, ChannelKind, DenialCode, LedgerEvent};
use ironclaw_state::keys::{SecretText, WrappingKey};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::channels::{self as table, NewChannel};
use ironclaw_store::tables::people::{Identity, LOOPBACK, Person, Role, identities, person_of};
use ironclaw_store::times::DAY_MS;
use ironclaw_text::excerpt::start;

pub use ironclaw_store::tables::channels::{
    Channel, Hears, OwnSender, Rules, WaitingSender, all, find, heard_by, is_own_sender, own_senders, waiting_senders,
};

/// Channels of one host.
const CHANNELS_MAX: usize = 64;

/// Characters of a channel's name.
const NAME_CHARACTERS_MAX: usize = 32;

/// Senders without a person who wait on one channel.
const WAITING_SENDERS_MAX: usize = 16;

/// The time after which a sender no longer waits, in milliseconds.
const WAITING_KEPT_MS: i64 = 7 * DAY_MS;

/// Reserved names of the host.
const RESERVED: [&str; 3] = [LOOPBACK, "host", super::destinations::AGENT];

/// The properties of a new channel.
#[derive(Debug)]
pub struct ChannelDraft {
    pub name: String,
    pub kind: ChannelKind,
    /// Its address for replies; the module of the channel checks it.
    pub url: String,
    /// `true` if the other side shows a delivery once even if it is sent twice.
    pub idempotent: bool,
    pub secret: SecretText,
}

/// Returns the channel of this name, from a request of `by`; `None` for a request of an agent.
///
/// # Errors
/// Refuses an unknown name, and suggests the nearest name that `by` may see.
pub fn known(tx: &ReadTx<'_>, by: Option<&Person>, name: &str) -> Result<Channel, Denied> {
    if let Some(channel) = find(tx, name)? {
        return Ok(channel);
    }
    let shown = start(name, NAME_CHARACTERS_MAX);
    let refusal = Refusal::new(DenialCode::ChannelUnknown, format!("there is no channel {shown:?}"));
    let refusal = refusal.hint("`ironctl channel list` lists the channels, `ironctl channel add` makes one");
    match by {
        Some(by) => Err(Unknown::Channel(name).suggest(tx, by, refusal)?.into()),
        None => Err(refusal.into()),
    }
}

/// Makes a channel that no agent hears yet.
///
/// # Errors
/// Refuses a malformed or taken name. Refuses a name with linked people unless an owner makes the channel: the holder of the secret
/// speaks as every person who is linked there.
pub fn add(
    tx: &mut WriteTx<'_>,
    draft: &ChannelDraft,
    wrapping: &WrappingKey,
    by: &Person,
) -> Result<Channel, Denied<Error>> {
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
        let remedy = "remove one: `ironctl channel list`, `ironctl channel remove NAME`";
        let bound = Bound::new("channels of this host", CHANNELS_MAX, channels.len(), remedy);
        return Err(Refusal::over(DenialCode::ChannelsTooMany, bound).into());
    }
    if by.role != Role::Owner && identities(tx)?.iter().any(|(identity, _)| identity.channel == *name) {
        let message =
            format!("people are already linked under {name}, and the holder of its secret could speak as them");
        let refusal = Refusal::new(DenialCode::ChannelInUse, message);
        return Err(refusal
            .hint("ask an owner to make the channel, or to unlink them first: `ironctl person unlink`")
            .into());
    }
    let wrapped = wrapping.wrap_secret(&table::secret_name(name), &draft.secret)?;
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
    let shown = start(name, NAME_CHARACTERS_MAX);
    if !clean {
        let refusal = Refusal::new(DenialCode::ChannelName, format!("{shown:?} is not a valid channel name"));
        return Err(refusal.hint(format!("use 1 to {NAME_CHARACTERS_MAX} characters of a-z, 0-9, - and _")));
    }
    if RESERVED.contains(&name) {
        return Err(Refusal::new(DenialCode::ChannelName, format!("the name {shown:?} is reserved for the host")));
    }
    Ok(())
}

/// Removes a channel with its secret. The caller settles the open deliveries.
pub fn remove(tx: &mut WriteTx<'_>, name: &str, by: PersonId) -> Result<(), ironclaw_state::Error> {
    ending::end_of_channel(tx, name, by)?;
    table::delete(tx, name)?;
    Entry::new(LedgerEvent::ChannelRemoved).with("channel", name.to_owned()).with("by", by).append(tx)?;
    Ok(())
}

/// Adds a sender who is linked to no person and waits for one, if the rules of the channel say so. Returns whether it is new.
pub fn add_waiting_sender(tx: &mut WriteTx<'_>, name: &str, sender: &str) -> Result<bool, ironclaw_state::Error> {
    let asks = find(tx, name)?.is_some_and(|channel| channel.rules.unknown == UnknownSenders::Request);
    if !asks || person_of(tx, name, sender)?.is_some() {
        return Ok(false);
    }
    let now = tx.wall();
    table::delete_waiting_senders_before(tx, now - WAITING_KEPT_MS)?;
    if full(tx, name, sender)?.is_some() || waits(tx, name, sender)? {
        return Ok(false);
    }
    table::insert_waiting_sender(tx, name, sender, now)?;
    let identity = Identity { channel: name.to_owned(), sender: sender.to_owned() };
    let entry = Entry::new(LedgerEvent::SenderWaits).with("channel", name.to_owned());
    entry.with("identity_digest", identity.digest()).append(tx)?;
    Ok(true)
}

/// Ends the wait of a sender for a person. The sender waits again after its next message.
///
/// # Errors
/// Refuses a sender who does not wait.
pub fn dismiss_waiting_sender(tx: &mut WriteTx<'_>, channel: &str, sender: &str, by: PersonId) -> Result<(), Denied> {
    let identity = Identity { channel: channel.to_owned(), sender: sender.to_owned() };
    if !table::delete_waiting_sender(tx, channel, sender)? {
        let refusal = Refusal::new(DenialCode::SenderNotWaiting, format!("{identity} does not wait for a person"));
        return Err(refusal.hint("`ironctl channel list` shows the senders who wait").into());
    }
    ending::sender_entry(LedgerEvent::SenderDismissed, &identity, by).append(tx)?;
    Ok(())
}

/// Returns whether this sender waits for a person on a channel.
fn waits(tx: &ReadTx<'_>, channel: &str, sender: &str) -> Result<bool, ironclaw_state::Error> {
    Ok(waiting_senders(tx, channel)?.iter().any(|waiting| waiting.sender == sender))
}

/// Returns the bound that keeps this sender from waiting for a person on a channel; `None` if there is room, or the sender waits already.
pub fn full(tx: &ReadTx<'_>, channel: &str, sender: &str) -> Result<Option<Bound>, ironclaw_state::Error> {
    // A row from a clock that was ahead does not count.
    let recent = tx.wall() - WAITING_KEPT_MS..=tx.wall();
    let waiting = waiting_senders(tx, channel)?;
    if waiting.iter().any(|waiting| waiting.sender == sender) {
        return Ok(None);
    }
    let kept = || waiting.iter().map(|waiting| waiting.since).filter(|at| recent.contains(at));
    if kept().count() < WAITING_SENDERS_MAX {
        return Ok(None);
    }
    let name = format!("senders of channel {channel} wait for a person");
    let bound = Bound::new(name, WAITING_SENDERS_MAX, kept().count(), "an owner or admin links or dismisses them");
    let ends_at = kept().min().map(|oldest| ironclaw_ledger::rfc3339(oldest + WAITING_KEPT_MS));
    Ok(Some(Bound { ends_at, ..bound }))
}

/// Returns the id of a guest: a digest of the whole identity on this generation of the channel.
pub fn guest_id(channel: &Channel, sender: &str) -> PersonId {
    const DIGITS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let digest = Digest::of(&canonical::to_vec(&("guest", &channel.name, channel.generation, sender))).to_string();
    // The first 128 bits, as the 26 digits of an id.
    let mut bits = u128::from_str_radix(&digest[..32], 16).expect("a digest is hexadecimal");
    let mut text = [b'0'; 26];
    for place in text.iter_mut().rev() {
        *place = DIGITS[(bits % 32) as usize];
        bits /= 32;
    }
    format!("per_{}", String::from_utf8_lossy(&text)).parse().expect("26 digits of 128 bits are an id")
}

/// Wraps every secret under another key; returns their number.
pub fn rewrap(tx: &mut WriteTx<'_>, old: &WrappingKey, new: &WrappingKey) -> Result<u64, Error> {
    let mut count = 0;
    for channel in all(tx)? {
        let wrapped = old.rewrap_secret(new, &table::secret_name(&channel.name), &channel.wrapped)?;
        table::set_wrapped(tx, &channel.name, &wrapped)?;
        count += 1;
    }
    Ok(count)
}
