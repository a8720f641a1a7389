//! The main loop: sleep until the host rings, work on the turn that it opened, sleep again.
//!
//! It has one thread and no timer. It drops a turn that the host closed, and begins no turn that the host did not open. See
//! [`crate::agent::turn`].

mod context;
mod inbox;
mod model;
mod named;
mod outbox;
mod turn;

use crate::link::{Gone, Link};
use crate::runner::Over;
use crate::tools::Tools;
use context::KnownItems;
use inbox::Inbox;
use ironclaw_contract::ids::TurnId;
use ironclaw_contract::seam::crypt;
use ironclaw_contract::seam::inbound::InboundReader;
use ironclaw_contract::seam::link::TurnLimits;
use ironclaw_contract::seam::outbound::OutboundWriter;
use model::Model;
use named::NamedItems;
use outbox::Outbox;
use std::path::PathBuf;

/// Results of the handshake for the agent.
pub struct Parts {
    /// The sandbox's end of the inbound queue.
    pub inbound: InboundReader,
    /// The sandbox's end of the outbound queue.
    pub outbound: OutboundWriter,
    pub tools: Tools,
    /// Bounds of a turn.
    pub limits: TurnLimits,
    /// Point at which a test kills it; read only in a build with the feature `failpoints`.
    pub failpoint: Option<String>,
    pub socket: PathBuf,
}

pub struct Agent {
    link: Link,
    inbox: Inbox,
    outbox: Outbox,
    model: Model,
    tools: Tools,
    limits: TurnLimits,
    /// The known items of the session, without their bodies.
    known: KnownItems,
    /// The items of the newest answered request.
    named: NamedItems,
    /// Every item up to this number is known, or waits for a turn of its own; `None` before the host has listed them.
    complete_upto: Option<u64>,
    /// The last turn that this process worked on; it may still be open in the queue until the host has taken the reply.
    handled: Option<TurnId>,
}

/// The reason why the loop ends.
pub enum Stop {
    /// The host closed the link, as it does when the session goes to sleep.
    Gone,
    /// A queue has stopped answering.
    Broken(crypt::Error),
    /// The process that runs commands, and ends what they started, is gone.
    Lost,
}

impl From<Gone> for Stop {
    fn from(Gone: Gone) -> Self {
        Self::Gone
    }
}

impl From<Over> for Stop {
    fn from(over: Over) -> Self {
        match over {
            Over::Gone => Self::Gone,
            Over::Lost => Self::Lost,
        }
    }
}

impl From<crypt::Error> for Stop {
    fn from(error: crypt::Error) -> Self {
        Self::Broken(error)
    }
}

impl Agent {
    /// Makes an agent. Its link has rung once and waits for the answer.
    pub fn new(link: Link, parts: Parts) -> Self {
        Self {
            link,
            inbox: Inbox::new(parts.inbound),
            outbox: Outbox::new(parts.outbound, parts.failpoint),
            model: Model::new(parts.socket),
            tools: parts.tools,
            limits: parts.limits,
            known: KnownItems::default(),
            named: NamedItems::default(),
            complete_upto: None,
            handled: None,
        }
    }

    /// Handles one bell: works on every open turn that was not handled yet.
    fn handle_bell(&mut self) -> Result<(), Stop> {
        while let Some(turn) = self.inbox.open_turn()?.filter(|turn| self.handled != Some(turn.turn)) {
            self.handled = Some(turn.turn);
            turn::run(self, &turn)?;
        }
        Ok(())
    }
}

/// Works until the host closes the link, which is the usual end of a session, and returns the reason why the loop ends.
pub fn serve(mut agent: Agent) -> Stop {
    loop {
        if let Err(stop) = agent.tools.wait(&agent.link).map_err(Stop::from).and_then(|()| agent.handle_bell()) {
            return stop;
        }
    }
}
