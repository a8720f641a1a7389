//! The part of a kind in the life of what waits: its rights, its page, its rule, and the effect of its end.
//!
//! A new kind implements [`Kind`] in a folder of its own, and has its [`super::words`] there. See [`crate::gateway::opening`] for the list.

use super::ballot::{Ballot, ValidApproval};
use super::gateway::Gateway;
use crate::registry::Person;
use ironclaw_contract::canonical::Digest;
use ironclaw_operator::{Details, RequestReason};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::refusal::Denied;
use ironclaw_store::tables::waiting::{Ending, Waiting};

/// What a person may see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// Its status: other people decide, and only they see its effects.
    Status,
    Whole,
}

/// The rights of a person, whatever the status is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// What the person may see; `None` if it does not exist for them.
    pub sight: Option<Sight>,
    /// True if their role decides: they approve or answer it.
    pub decides: bool,
    /// True if they reject it, or withdraw it as its requester.
    pub rejects: bool,
}

/// The page that a person is shown, with the values that it was made from.
#[derive(Debug, Clone)]
pub struct Shown {
    /// The exact text of the page.
    pub text: String,
    pub digest: Digest,
    /// The digest of the facts of a call; `None` if they cannot be read, and for the other kinds.
    pub facts: Option<Digest>,
    /// The effect in the words of the host.
    pub effect: String,
    /// The words of an agent that a person answers.
    pub question: Option<String>,
    /// The reasons why a call needs people.
    pub reasons: Vec<RequestReason>,
    /// What only its kind has.
    pub details: Option<Details>,
}

impl Shown {
    /// Makes a page of this text and effect, without facts.
    pub fn new(text: String, effect: String, details: Option<Details>) -> Self {
        let digest = Digest::of(text.as_bytes());
        Self { text, digest, facts: None, effect, question: None, reasons: Vec::new(), details }
    }
}

/// The part of one kind.
pub trait Kind: Sync {
    /// Returns the rights of a person.
    fn rights(&self, tx: &ReadTx<'_>, all: &Gateway, by: &Person, of: &Waiting) -> Result<Rights, Error>;

    /// Returns its page.
    fn show(&self, tx: &ReadTx<'_>, all: &Gateway, of: &Waiting) -> Result<Shown, Error>;

    /// Returns in the host's words the reason that it can no longer be decided, if there is one.
    fn why_stale(&self, tx: &ReadTx<'_>, all: &Gateway, of: &Waiting) -> Result<Option<String>, Error>;

    /// Returns whether a yes gives a right, runs a program, trades, or lets data leave to a host without a grant. On a face that others may
    /// reach, such a yes needs a person who was confirmed a moment ago.
    fn is_grave(&self, tx: &ReadTx<'_>, of: &Waiting) -> Result<bool, Error>;

    /// Returns the people whose approval it needs, for a sentence.
    fn deciders(&self, tx: &ReadTx<'_>, all: &Gateway, of: &Waiting) -> Result<String, Error>;

    /// Returns the number of approvals that it needs.
    fn approvals_needed(&self, tx: &ReadTx<'_>, all: &Gateway, of: &Waiting) -> Result<u32, Error>;

    /// Returns what an approval must be for, and how approvals count.
    ///
    /// # Errors
    /// Refuses a kind that no person approves.
    fn ballot(&self, tx: &ReadTx<'_>, all: &Gateway, of: &Waiting, shown: &Shown) -> Result<Ballot, Denied<Error>>;

    /// Returns whether these approvals are enough.
    fn is_approved(
        &self,
        _: &ReadTx<'_>,
        _: &Waiting,
        ballot: &Ballot,
        valid: &[ValidApproval],
    ) -> Result<bool, ironclaw_state::Error> {
        Ok(valid.len() >= ballot.rule.approvals as usize)
    }

    /// Makes the effects of an end: `of` is as it was before. The words of the host to the agent are among them.
    fn end(&self, tx: &mut WriteTx<'_>, all: &Gateway, of: &Waiting, ending: &Ending<'_>) -> Result<(), Error>;
}
