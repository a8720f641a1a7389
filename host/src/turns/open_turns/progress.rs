//! The progress of the calls that run, for the clients that follow a conversation.
//!
//! Keeps the newest progress of a call until the call ends, and records nothing: it is in no row, no ledger and no prompt. See
//! [`crate::reach::mcp`], which reports it.

use ironclaw_contract::ids::{CallId, TurnId};
use ironclaw_operator::CallProgress;
use std::collections::HashMap;
use tokio::sync::watch;

/// The newest progress of each running call that reported one, with the turn of the call.
pub type Newest = HashMap<CallId, (TurnId, CallProgress)>;

#[derive(Debug, Default)]
pub struct RunningCalls(watch::Sender<Newest>);

/// A running call. Its progress is dropped with it.
#[derive(Debug)]
pub struct RunningCall<'a> {
    all: &'a RunningCalls,
    turn: TurnId,
    call: CallId,
    tool: &'a str,
}

impl RunningCalls {
    pub fn begin<'a>(&'a self, turn: TurnId, call: CallId, tool: &'a str) -> RunningCall<'a> {
        RunningCall { all: self, turn, call, tool }
    }

    pub fn watch(&self) -> watch::Receiver<Newest> {
        self.0.subscribe()
    }
}

impl RunningCall<'_> {
    /// Replaces the progress of the call.
    pub fn report(&self, progress: f64, total: Option<f64>, words: Option<String>) {
        let newest = CallProgress { call_id: self.call, tool: self.tool.to_owned(), progress, total, words };
        self.all.0.send_modify(|all| drop(all.insert(self.call, (self.turn, newest))));
    }
}

impl Drop for RunningCall<'_> {
    fn drop(&mut self) {
        self.all.0.send_if_modified(|all| all.remove(&self.call).is_some());
    }
}
