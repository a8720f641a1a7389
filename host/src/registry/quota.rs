//! Quotas of a person and of a channel: conversations, waiting messages and bytes; and the quota of a workspace.
//!
//! A quota refuses only the sender, before the host makes a session or a row for the message, and never affects another conversation.
//! See [`crate::registry::quota::workspace`] and [`crate::channels::inbound::routing`].

pub mod workspace;

use crate::registry::LOOPBACK;
use ironclaw_contract::ids::PersonId;
use ironclaw_operator::{Bound, DenialCode};
use ironclaw_state::ReadTx;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::messages::{Load, waiting_of_person, waiting_on_channel};
use ironclaw_store::tables::sessions;

ironclaw_operator::settings! {
    /// `[quota]`; the loopback has no bound of a channel.
    pub struct Config for quota {
        /// The most conversations of one person that are not removed.
        conversations_per_person: u32 = 512, AtLeast(1, "conversations"), Live;
        /// The most conversations of one webhook channel that are not removed.
        conversations_per_channel: u32 = 4096, AtLeast(1, "conversations"), Live;
        /// The most messages of one person that wait for an answer.
        waiting_per_person: u32 = 1000, AtLeast(1, "messages"), Live;
        /// The most messages of one webhook channel that wait for an answer.
        waiting_per_channel: u32 = 4000, AtLeast(1, "messages"), Live;
        /// The most bytes of the messages of one person that wait for an answer.
        waiting_bytes_per_person: u64 = 64 << 20, AtLeast(1, "bytes"), Live;
        /// The most bytes of the messages of one webhook channel that wait for an answer.
        waiting_bytes_per_channel: u64 = 256 << 20, AtLeast(1, "bytes"), Live;
        /// The most bytes of all items in the conversations of one person.
        kept_bytes_per_person: u64 = 8 << 30, AtLeast(1, "bytes"), Live;
        /// The most bytes that the files of one session may take on the disk.
        workspace_bytes: u64 = 8 << 30, AtLeast(1, "bytes"), Live;
        /// The most files and directories of one session.
        workspace_files: u64 = 200_000, AtLeast(1, "files"), Live;
    }
}

impl Config {
    /// Admits a message of this many bytes, which will wait for an answer.
    ///
    /// # Errors
    /// Refuses it with `too_many_waiting`, `too_many_bytes_waiting` or `too_many_bytes_kept`.
    pub fn admit_message(&self, tx: &ReadTx<'_>, person: PersonId, channel: &str, bytes: u64) -> Result<(), Denied> {
        let Load { count, bytes: waiting } = waiting_of_person(tx, person)?;
        self.admit_waiting(count, waiting.saturating_add(bytes))?;
        if channel != LOOPBACK {
            let Load { count, bytes: waiting } = waiting_on_channel(tx, channel)?;
            self.admit_waiting_on(channel, count, waiting.saturating_add(bytes))?;
        }
        let kept = sessions::bytes_of_person(tx, person)?;
        if kept.saturating_add(bytes) > self.kept_bytes_per_person {
            let remedy = "an admin removes conversations with `ironctl session remove`, or lowers items.keep_days";
            let bound =
                Bound::new("bytes in the conversations of one person", self.kept_bytes_per_person, kept, remedy);
            let bound = bound.setting("quota.kept_bytes_per_person");
            return Err(Refusal::over(DenialCode::TooManyBytesKept, bound).into());
        }
        Ok(())
    }

    fn admit_waiting(&self, count: u64, bytes: u64) -> Result<(), Refusal> {
        const REMEDY: &str = "wait for answers, and send it again";
        if count >= u64::from(self.waiting_per_person) {
            let bound = Bound::new("messages of one person wait for an answer", self.waiting_per_person, count, REMEDY);
            let bound = bound.setting("quota.waiting_per_person");
            return Err(Refusal::over(DenialCode::TooManyWaiting, bound));
        }
        if bytes > self.waiting_bytes_per_person {
            let name = "bytes of the messages of one person that wait for an answer";
            let bound = Bound::new(name, self.waiting_bytes_per_person, bytes, REMEDY);
            let bound = bound.setting("quota.waiting_bytes_per_person");
            return Err(Refusal::over(DenialCode::TooManyBytesWaiting, bound));
        }
        Ok(())
    }

    fn admit_waiting_on(&self, channel: &str, count: u64, bytes: u64) -> Result<(), Refusal> {
        const REMEDY: &str = "wait a moment, and send it again under the same id";
        if count >= u64::from(self.waiting_per_channel) {
            let name = format!("messages on channel {channel} wait for an answer");
            let bound = Bound::new(name, self.waiting_per_channel, count, REMEDY).setting("quota.waiting_per_channel");
            return Err(Refusal::over(DenialCode::TooManyWaiting, bound));
        }
        if bytes > self.waiting_bytes_per_channel {
            let name = format!("bytes of the messages on channel {channel} that wait for an answer");
            let bound = Bound::new(name, self.waiting_bytes_per_channel, bytes, REMEDY);
            let bound = bound.setting("quota.waiting_bytes_per_channel");
            return Err(Refusal::over(DenialCode::TooManyBytesWaiting, bound));
        }
        Ok(())
    }

    /// Admits one more conversation of a person on a channel.
    ///
    /// # Errors
    /// Refuses it with `too_many_conversations`.
    pub fn admit_conversation(&self, tx: &ReadTx<'_>, person: PersonId, channel: &str) -> Result<(), Denied> {
        const REMEDY: &str =
            "write in an existing conversation, or an admin removes some with `ironctl session remove`";
        let count = sessions::count_of_person(tx, person)?;
        if count >= u64::from(self.conversations_per_person) {
            let bound = Bound::new("conversations of one person", self.conversations_per_person, count, REMEDY);
            let bound = bound.setting("quota.conversations_per_person");
            return Err(Refusal::over(DenialCode::TooManyConversations, bound).into());
        }
        if channel == LOOPBACK {
            return Ok(());
        }
        let count = sessions::count_on_channel(tx, channel)?;
        if count >= u64::from(self.conversations_per_channel) {
            let name = format!("conversations on channel {channel}");
            let bound = Bound::new(name, self.conversations_per_channel, count, REMEDY);
            let bound = bound.setting("quota.conversations_per_channel");
            return Err(Refusal::over(DenialCode::TooManyConversations, bound).into());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_beyond_a_bound_of_waiting_is_refused() {
        let config = Config { waiting_per_person: 2, waiting_bytes_per_person: 10, ..Config::default() };
        let code = |count, bytes| config.admit_waiting(count, bytes).map_err(|refusal| refusal.code);
        assert_eq!((code(1, 10), code(2, 0)), (Ok(()), Err(DenialCode::TooManyWaiting)));
        assert_eq!(code(0, 11), Err(DenialCode::TooManyBytesWaiting));
        let config = Config { waiting_per_channel: 2, waiting_bytes_per_channel: 10, ..Config::default() };
        let code = |count, bytes| config.admit_waiting_on("desk", count, bytes).map_err(|refusal| refusal.code);
        assert_eq!((code(1, 10), code(2, 0)), (Ok(()), Err(DenialCode::TooManyWaiting)));
        assert_eq!(code(0, 11), Err(DenialCode::TooManyBytesWaiting));
    }
}
