//! Channels with their wirings and senders. Tables: `channels`, `wirings`, `waiting_senders`, `own_senders`.

use crate::rows::rows;
use ironclaw_contract::ids::{AgentId, PersonId};
use ironclaw_contract::seam::change::{Engage, Ignored, Senders, Sharing, UnknownSenders, Wiring};
use ironclaw_operator::ChannelKind;
use ironclaw_state::keys::{self, SecretText, WrappingKey};
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::{Row, params};

/// The messages of a channel that open a turn of its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hears {
    All,
    /// The messages that match this regular expression.
    Pattern(String),
    /// The messages that mention the agent.
    Mention,
    /// The messages that mention the agent, and later ones of a thread in which it was mentioned.
    MentionSticky,
}

impl Hears {
    /// Returns its name in the contract.
    pub const fn engage(&self) -> Engage {
        match self {
            Self::All => Engage::All,
            Self::Pattern(_) => Engage::Pattern,
            Self::Mention => Engage::Mention,
            Self::MentionSticky => Engage::MentionSticky,
        }
    }

    /// Returns the pattern, if there is one.
    pub fn pattern(&self) -> Option<&str> {
        match self {
            Self::All | Self::Mention | Self::MentionSticky => None,
            Self::Pattern(pattern) => Some(pattern),
        }
    }
}

/// The rules of the connection between a channel and its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// The messages that open a turn.
    pub hears: Hears,
    /// The senders whose messages may open a turn.
    pub from: Senders,
    /// The treatment of senders who are linked to no person.
    pub unknown: UnknownSenders,
    /// The treatment of messages that open no turn.
    pub ignored: Ignored,
    /// The way in which people share sessions.
    pub sharing: Sharing,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            hears: Hears::All,
            from: Senders::Known,
            unknown: UnknownSenders::Strict,
            ignored: Ignored::Accumulate,
            sharing: Sharing::Thread,
        }
    }
}

rows! {
    /// A channel's row, with its agent.
    #[derive(Debug, Clone)]
    pub struct Channel {
        /// Its name, the first part of every identity on it.
        pub name: String,
        /// Distinguishes this channel from earlier channels of the same name.
        pub generation: i64,
        pub kind: ChannelKind,
        /// The URL for replies.
        pub url: String,
        /// True if it shows a repeated delivery only once.
        pub idempotent: bool,
        /// The agent that receives its messages.
        pub agent: Option<AgentId> = "agent_id",
        /// The rules of that connection.
        pub rules: Rules as rules,
        /// Milliseconds since the epoch.
        pub created_at: i64,
        /// Its signing secret, wrapped by the master key.
        pub wrapped: Vec<u8>,
    }
}

impl Channel {
    /// Returns the signing secret.
    ///
    /// # Errors
    /// Fails if this master key does not open it.
    pub fn secret(&self, wrapping: &WrappingKey) -> Result<SecretText, keys::Error> {
        wrapping.secret(&secret_name(&self.name), &self.wrapped)
    }

    /// Returns the change that would connect this agent as it is connected now.
    pub fn wiring(&self, agent: AgentId) -> Wiring {
        let channel = self.name.clone();
        if self.agent != Some(agent) {
            return Wiring::new(channel, Engage::None);
        }
        let Rules { hears, from, unknown, ignored, sharing } = self.rules.clone();
        let (engage, pattern) = (hears.engage(), hears.pattern().map(str::to_owned));
        Wiring { channel, engage, pattern, from, unknown, ignored, sharing }
    }
}

/// Returns the name for wrapping the secret of a channel. It opens under no other name; an operator's secret has no space in its name.
pub fn secret_name(channel: &str) -> String {
    format!("of channel {channel}")
}

/// The columns of a new channel.
#[derive(Debug)]
pub struct NewChannel<'a> {
    pub name: &'a str,
    pub kind: ChannelKind,
    /// The URL for replies.
    pub url: &'a str,
    /// True if it shows a repeated delivery only once.
    pub idempotent: bool,
    /// Its signing secret, wrapped by the master key.
    pub wrapped: &'a [u8],
    /// Milliseconds since the epoch.
    pub created_at: i64,
}

const CHANNELS: &str = "SELECT channels.*, agent_id, engage, pattern, senders, unknown, ignored, sharing FROM channels \
                        LEFT JOIN wirings ON channel = name";

/// Reads the rules of the connection; the default without one. A row with `pattern` but without a pattern is an error, and never means
/// all messages.
fn rules(row: &Row<'_>) -> rusqlite::Result<Rules> {
    let hears = match row.get("engage")? {
        None => return Ok(Rules::default()),
        Some(Engage::All) => Hears::All,
        Some(Engage::Pattern) => Hears::Pattern(row.get("pattern")?),
        Some(Engage::Mention) => Hears::Mention,
        Some(Engage::MentionSticky) => Hears::MentionSticky,
        Some(Engage::None) => return Err(rusqlite::Error::InvalidColumnName("engage".to_owned())),
    };
    let (from, unknown) = (row.get("senders")?, row.get("unknown")?);
    Ok(Rules { hears, from, unknown, ignored: row.get("ignored")?, sharing: row.get("sharing")? })
}

/// Returns every channel, by name.
pub fn all(tx: &ReadTx<'_>) -> Result<Vec<Channel>, Error> {
    tx.list(&format!("{CHANNELS} ORDER BY name"), [], Channel::read)
}

/// Returns the channels of an agent, by name.
pub fn heard_by(tx: &ReadTx<'_>, agent: AgentId) -> Result<Vec<Channel>, Error> {
    tx.list(&format!("{CHANNELS} WHERE agent_id = ?1 ORDER BY name"), [agent], Channel::read)
}

/// Returns the channel of exactly this name.
pub fn find(tx: &ReadTx<'_>, name: &str) -> Result<Option<Channel>, Error> {
    tx.find(&format!("{CHANNELS} WHERE name = ?1"), [name], Channel::read)
}

/// Inserts a channel without an agent.
pub fn insert(tx: &mut WriteTx<'_>, new: &NewChannel<'_>) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO channels (name, kind, url, idempotent, wrapped, created_at) VALUES (?1,?2,?3,?4,?5,?6)",
        params![new.name, new.kind, new.url, new.idempotent, new.wrapped, new.created_at],
    )?;
    Ok(())
}

/// Deletes a channel with its secret and its wiring.
pub fn delete(tx: &mut WriteTx<'_>, name: &str) -> Result<(), Error> {
    tx.execute("DELETE FROM channels WHERE name = ?1", [name]).map(drop)
}

/// Replaces the wrapped secret of a channel.
pub fn set_wrapped(tx: &mut WriteTx<'_>, name: &str, wrapped: &[u8]) -> Result<(), Error> {
    tx.execute("UPDATE channels SET wrapped = ?2 WHERE name = ?1", params![name, wrapped]).map(drop)
}

/// Connects an agent to a channel, and replaces its earlier agent.
pub fn connect(tx: &mut WriteTx<'_>, channel: &str, agent: AgentId, rules: &Rules) -> Result<(), Error> {
    let Rules { hears, from, unknown, ignored, sharing } = rules;
    tx.execute(
        "INSERT OR REPLACE INTO wirings (channel, agent_id, engage, pattern, senders, unknown, ignored, sharing) \
         VALUES (?1,?2,?3,?4,?5,?6,?7,?8)",
        params![channel, agent, hears.engage(), hears.pattern(), from, unknown, ignored, sharing],
    )?;
    Ok(())
}

/// Disconnects an agent from a channel, if it is the channel's agent.
pub fn disconnect(tx: &mut WriteTx<'_>, channel: &str, agent: AgentId) -> Result<(), Error> {
    tx.execute("DELETE FROM wirings WHERE channel = ?1 AND agent_id = ?2", params![channel, agent]).map(drop)
}

rows! {
    /// A sender who is linked to no person and waits for one.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct WaitingSender {
        /// The sender's id on the channel.
        pub sender: String,
        /// Milliseconds since the epoch.
        pub since: i64,
    }
}

/// Returns the senders who wait for a person on a channel, oldest first.
pub fn waiting_senders(tx: &ReadTx<'_>, channel: &str) -> Result<Vec<WaitingSender>, Error> {
    let sql = "SELECT sender, since FROM waiting_senders WHERE channel = ?1 ORDER BY since, sender";
    tx.list(sql, [channel], WaitingSender::read)
}

/// Inserts a sender who waits for a person on a channel.
pub fn insert_waiting_sender(tx: &mut WriteTx<'_>, channel: &str, sender: &str, since: i64) -> Result<(), Error> {
    let sql = "INSERT INTO waiting_senders (channel, sender, since) VALUES (?1,?2,?3)";
    tx.execute(sql, params![channel, sender, since]).map(drop)
}

/// Deletes a sender who waited for a person. Returns false if it did not wait.
pub fn delete_waiting_sender(tx: &mut WriteTx<'_>, channel: &str, sender: &str) -> Result<bool, Error> {
    Ok(tx.execute("DELETE FROM waiting_senders WHERE channel = ?1 AND sender = ?2", [channel, sender])? > 0)
}

/// Deletes the senders who have waited for a person since before this time.
pub fn delete_waiting_senders_before(tx: &mut WriteTx<'_>, since: i64) -> Result<(), Error> {
    tx.execute("DELETE FROM waiting_senders WHERE since < ?1", [since]).map(drop)
}

rows! {
    /// A sender, linked to no person, whose text a person calls theirs.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct OwnSender {
        pub channel: String,
        /// The sender's id on the channel.
        pub sender: String,
        pub person: PersonId = "person_id",
        /// Milliseconds since the epoch.
        pub since: i64,
    }
}

/// Returns the senders on a channel that people call theirs, by their ids.
pub fn own_senders(tx: &ReadTx<'_>, channel: &str) -> Result<Vec<OwnSender>, Error> {
    let sql = "SELECT * FROM own_senders WHERE channel = ?1 ORDER BY sender, person_id";
    tx.list(sql, [channel], OwnSender::read)
}

/// Returns the senders that a person calls theirs, by channel and id.
pub fn own_senders_of(tx: &ReadTx<'_>, person: PersonId) -> Result<Vec<OwnSender>, Error> {
    let sql = "SELECT * FROM own_senders WHERE person_id = ?1 ORDER BY channel, sender";
    tx.list(sql, [person], OwnSender::read)
}

/// Returns whether a person calls exactly this sender theirs.
pub fn is_own_sender(tx: &ReadTx<'_>, channel: &str, sender: &str) -> Result<bool, Error> {
    let sql = "SELECT EXISTS (SELECT 1 FROM own_senders WHERE channel = ?1 AND sender = ?2)";
    tx.get(sql, [channel, sender], |row| row.get(0))
}

/// Inserts a sender that a person calls theirs; one that is there keeps its time.
pub fn insert_own_sender(tx: &mut WriteTx<'_>, new: &OwnSender) -> Result<(), Error> {
    let sql = "INSERT OR IGNORE INTO own_senders (channel, sender, person_id, since) VALUES (?1,?2,?3,?4)";
    tx.execute(sql, params![new.channel, new.sender, new.person, new.since]).map(drop)
}

/// Deletes the senders that a person calls theirs.
pub fn delete_own_senders_of(tx: &mut WriteTx<'_>, person: PersonId) -> Result<(), Error> {
    tx.execute("DELETE FROM own_senders WHERE person_id = ?1", [person]).map(drop)
}

/// Deletes the senders on a channel that people call theirs.
pub fn delete_own_senders_on(tx: &mut WriteTx<'_>, channel: &str) -> Result<(), Error> {
    tx.execute("DELETE FROM own_senders WHERE channel = ?1", [channel]).map(drop)
}

/// Deletes all senders that people call theirs. Returns their number.
pub fn delete_own_senders(tx: &mut WriteTx<'_>) -> Result<usize, Error> {
    tx.execute("DELETE FROM own_senders", [])
}

/// Deletes a sender of all people who call it theirs. Returns their number.
pub fn delete_own_sender(tx: &mut WriteTx<'_>, channel: &str, sender: &str) -> Result<usize, Error> {
    tx.execute("DELETE FROM own_senders WHERE channel = ?1 AND sender = ?2", [channel, sender])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record;

    #[test]
    fn fresh_record_takes_a_channel_of_each_kind() {
        record::in_a_new_one(|tx, _| {
            for kind in ChannelKind::ALL {
                let (name, url) = (kind.name(), "https://example.org/");
                let new = NewChannel { name, kind, url, idempotent: false, wrapped: b"wrapped", created_at: 1 };
                insert(tx, &new).unwrap_or_else(|error| {
                    panic!("{kind}: {error}; see the guide in host/state/src/migrations.rs");
                });
                let found = find(tx, name).expect("read").expect("there");
                assert_eq!(found.kind, kind);
            }
        });
    }
}
