//! Quotas of a person and of a channel: conversations, waiting messages and bytes; and the quota of a workspace.
//!
//! A quota refuses only the sender, before the host makes a session or a row for the message, and never affects another conversation.
//! See [`crate::registry::quota::workspace`] and [`crate::channels::inbound::routing`].

pub mod workspace;

use crate::registry::LOOPBACK;
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::operator::DenialCode;
use ironclaw_state::ReadTx;
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::messages::{Load, waiting_of_person, waiting_on_channel};
use ironclaw_store::tables::sessions;

ironclaw_contract::settings! {
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
            let most = self.kept_bytes_per_person;
            let words = format!("your conversations have {kept} bytes, and one person may have {most}");
            let hint = "an admin removes conversations with `ironctl session remove`, or sets items.keep_days or \
                        quota.kept_bytes_per_person";
            return Err(refusal(DenialCode::TooManyBytesKept, words, hint).into());
        }
        Ok(())
    }

    fn admit_waiting(&self, count: u64, bytes: u64) -> Result<(), Refusal> {
        const HINT: &str = "wait for answers, and send it again";
        if count >= u64::from(self.waiting_per_person) {
            let words = format!("{count} of your messages wait for an answer, which is the most for one person");
            return Err(refusal(DenialCode::TooManyWaiting, words, HINT));
        }
        let most = self.waiting_bytes_per_person;
        if bytes > most {
            let words =
                format!("your messages that wait for an answer would have {bytes} bytes; at most {most} may wait");
            return Err(refusal(DenialCode::TooManyBytesWaiting, words, HINT));
        }
        Ok(())
    }

    fn admit_waiting_on(&self, channel: &str, count: u64, bytes: u64) -> Result<(), Refusal> {
        const HINT: &str = "wait a moment, and send it again under the same id";
        if count >= u64::from(self.waiting_per_channel) {
            let words = format!("{count} messages on channel {channel} wait for an answer, which is the most for it");
            return Err(refusal(DenialCode::TooManyWaiting, words, HINT));
        }
        let most = self.waiting_bytes_per_channel;
        if bytes > most {
            let words = format!(
                "messages on channel {channel} that wait for an answer would have {bytes} bytes; at most {most} may wait"
            );
            return Err(refusal(DenialCode::TooManyBytesWaiting, words, HINT));
        }
        Ok(())
    }

    /// Admits one more conversation of a person on a channel.
    ///
    /// # Errors
    /// Refuses it with `too_many_conversations`.
    pub fn admit_conversation(&self, tx: &ReadTx<'_>, person: PersonId, channel: &str) -> Result<(), Denied> {
        let count = sessions::count_of_person(tx, person)?;
        if count >= u64::from(self.conversations_per_person) {
            let words = format!("you have {count} conversations, which is the most for one person");
            let hint = "write in an existing one, or ask an admin to remove some with `ironctl session remove` or to raise \
                        quota.conversations_per_person";
            return Err(refusal(DenialCode::TooManyConversations, words, hint).into());
        }
        if channel == LOOPBACK {
            return Ok(());
        }
        let count = sessions::count_on_channel(tx, channel)?;
        if count >= u64::from(self.conversations_per_channel) {
            let words = format!("channel {channel} has {count} conversations, which is the most for it");
            let hint = "an admin removes some with `ironctl session remove`, or raises quota.conversations_per_channel, \
                        then `ironctl config reload`";
            return Err(refusal(DenialCode::TooManyConversations, words, hint).into());
        }
        Ok(())
    }
}

fn refusal(code: DenialCode, words: String, hint: &str) -> Refusal {
    Refusal::new(code, words).hint(hint)
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
