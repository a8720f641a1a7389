//! A change or a call that people decide on, by its id: read, approved, rejected and printed in one way.
//!
//! Never approves without the digest of a page. See [`crate::commands::review`] for the question, [`crate::commands::change`] and
//! [`crate::commands::call_request`] for the outcomes.

use super::review::{self, Choice, Subject, Words};
use super::{call_request, change};
use crate::client::Client;
use crate::failure::Error;
use crate::output::Output;
use ironclaw_operator::{CallRequest, Change, Decision, Digest, Rejection, routes};
use serde::Serialize;

/// The first characters of the id of an approval request.
pub const REQUEST_PREFIX: &str = "req_";

/// A change or a call.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Decidable {
    Change(Box<Change>),
    /// The approval request of a call.
    Call(Box<CallRequest>),
}

impl Decidable {
    /// Reads a change or a call with its page.
    pub async fn read(client: &Client, id: &str) -> Result<Self, Error> {
        match id.starts_with(REQUEST_PREFIX) {
            true => client.call(routes::CALL_REQUEST, [&id]).await.map(Self::from),
            false => client.call(routes::CHANGE, [&id]).await.map(Self::from),
        }
    }

    /// Approves the page of this digest.
    pub async fn approve(client: &Client, id: &str, shown: Digest) -> Result<Self, Error> {
        match id.starts_with(REQUEST_PREFIX) {
            true => client.post(routes::APPROVE_CALL, [&id], &Decision { shown }).await.map(Self::from),
            false => client.post(routes::APPROVE_CHANGE, [&id], &Decision { shown }).await.map(Self::from),
        }
    }

    /// Rejects it, with a reason for the requester.
    pub async fn reject(client: &Client, id: &str, reason: String) -> Result<Self, Error> {
        match id.starts_with(REQUEST_PREFIX) {
            true => client.post(routes::REJECT_CALL, [&id], &Rejection { reason }).await.map(Self::from),
            false => client.post(routes::REJECT_CHANGE, [&id], &Rejection { reason }).await.map(Self::from),
        }
    }

    /// Returns whether people can still decide on it.
    pub fn is_open(&self) -> bool {
        match self {
            Self::Change(change) => change::is_open(change),
            Self::Call(request) => call_request::is_open(request),
        }
    }

    /// Returns the digest of the page as the host names it.
    pub fn digest(&self) -> Digest {
        match self {
            Self::Change(change) => change.shown_digest,
            Self::Call(request) => request.shown_digest,
        }
    }

    /// Shows the page and asks for a decision.
    pub async fn ask(&self, out: Output, client: &Client, words: Words, above: usize) -> Result<Choice, Error> {
        review::ask(out, &self.subject().with_diff(client), words, above).await
    }

    /// Prints the page and returns its digest, for an approval without a question.
    pub fn print_whole(&self, out: Output) -> Result<Digest, Error> {
        review::print_whole(out, &self.subject())
    }

    /// Waits a short time for the outcome of an approval.
    pub async fn settled(self, client: &Client) -> Result<Self, Error> {
        match self {
            Self::Change(change) => change::settled(client, *change).await.map(Self::from),
            Self::Call(request) => call_request::settled(client, *request).await.map(Self::from),
        }
    }

    /// Prints the result of a decision; an approved change or call without its effect is a failure.
    pub fn outcome(&self, out: Output) -> Result<(), Error> {
        match self {
            Self::Change(change) => change::outcome(out, change),
            Self::Call(request) => call_request::outcome(out, request),
        }
    }

    fn subject(&self) -> Subject<'_> {
        match self {
            Self::Change(change) => change.as_ref().into(),
            Self::Call(request) => request.as_ref().into(),
        }
    }
}

impl From<Change> for Decidable {
    fn from(change: Change) -> Self {
        Self::Change(Box::new(change))
    }
}

impl From<CallRequest> for Decidable {
    fn from(request: CallRequest) -> Self {
        Self::Call(Box::new(request))
    }
}
