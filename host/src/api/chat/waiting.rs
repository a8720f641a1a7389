//! The wait of a request for the answer to a message.
//!
//! Each read also checks the token, so that no person sees a result from after the end of their token. See [`super::message`] and
//! [`super::send`].

use super::{read_for, read_own, unknown};
use crate::api::auth::Current;
use crate::api::{Answer, Api};
use crate::error::Error;
use crate::inbound::channel::Received;
use crate::pipeline::Confirmation;
use crate::registry::Person;
use crate::runtime::command::Phase;
use crate::runtime::shortages::storage_shortage;
use ironclaw_contract::ids::{MessageId, SessionId};
use ironclaw_contract::operator::{LedgerEvent, MessageView};
use ironclaw_state::{Committed, EventsOf};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

/// Milliseconds of the longest wait.
const WAIT_MS_MAX: u64 = 60_000;

/// Query of `GET /v1/messages/{id}` and of `POST /v1/agents/{agent}/messages`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Wait {
    /// The longest wait for the answer, in milliseconds; at most 60000. Default: 0, no wait.
    #[serde(default)]
    wait_ms: u64,
}

impl Wait {
    pub(super) fn is_none(&self) -> bool {
        self.wait_ms == 0
    }

    fn until(&self) -> Instant {
        Instant::now() + Duration::from_millis(self.wait_ms.min(WAIT_MS_MAX))
    }
}

/// Waits until a message of the caller is settled. Returns it as it then is, or at the end of the wait.
pub(super) async fn wait_for(
    api: &Api,
    (person, current): (&Person, &Current),
    message: &str,
    wait: &Wait,
) -> Result<MessageView, Answer> {
    let mut meanwhile = api.record.state.events();
    let view = read_own(api, person, message, current).await?;
    if wait.is_none() || settled(&view) {
        return Ok(with_wait_reason(api, view));
    }
    let (id, session) = (view.message_id, view.session_id);
    let signals = Signals::of(api, session, wait);
    // An entry from before this subscription may have settled the message.
    let is_missed = has_settling(&mut meanwhile, session);
    drop(meanwhile);
    let view = signals.until_settled(api, id, current, is_missed).await?;
    view.ok_or_else(|| unknown(id))
}

/// Records a message, and waits until it is settled. Returns it as it then is, or at the end of the wait.
///
/// The sender learns nothing before that, so the message shares the commit of the turn that it opens.
///
/// # Errors
/// The refusals of a message. [`ironclaw_state::Error::Unwritten`] if the record could not be written, and then there is no message.
pub(super) async fn record_and_wait(
    api: &Api,
    received: Received,
    current: &Current,
    wait: &Wait,
) -> Result<MessageView, Answer> {
    let (mut meanwhile, lost) = (api.record.state.events(), api.record.state.lost());
    let recorded = api.inbound.inbound(received, Confirmation::WithAnswer).await.map_err(Answer::denied)?;
    let signals = Signals { lost, ..Signals::of(api, recorded.session, wait) };
    // An awake session takes the message, and its entries follow. In any other case the message may be settled already.
    let is_taken = !recorded.again && is_awake(api, recorded.session) && !api.stops.is_on();
    let is_settled = !is_taken || has_settling(&mut meanwhile, recorded.session);
    drop(meanwhile);
    let view = signals.until_settled(api, recorded.message, current, is_settled).await?;
    view.ok_or_else(|| ironclaw_state::Error::Unwritten(format!("the message {}", recorded.message)).into())
}

fn is_awake(api: &Api, session: SessionId) -> bool {
    api.sessions.shown(session).is_some_and(|shown| shown.phase == Phase::Awake)
}

/// The signals that end the wait for a message.
struct Signals {
    events: EventsOf,
    /// Number of commits that were lost with deferred changes.
    lost: watch::Receiver<u64>,
    until: Instant,
}

/// The signal that ended a wait.
#[derive(PartialEq)]
enum Signal {
    /// An entry of a commit may have settled the message.
    Entry,
    /// Anything may have happened to the message.
    Unknown,
    Over,
}

impl Signals {
    fn of(api: &Api, session: SessionId, wait: &Wait) -> Self {
        let state = &api.record.state;
        Self { events: state.events_of(session), lost: state.lost(), until: wait.until() }
    }

    /// Waits until the message is settled, and reads it. `is_settled`: it may be settled already. Returns `None` if the record does not
    /// have it.
    async fn until_settled(
        mut self,
        api: &Api,
        id: MessageId,
        current: &Current,
        is_settled: bool,
    ) -> Result<Option<MessageView>, Answer> {
        let over = tokio::time::sleep_until(self.until);
        tokio::pin!(over);
        let mut next = if is_settled { Signal::Unknown } else { self.next(over.as_mut()).await };
        loop {
            if next != Signal::Entry {
                // The message may still be deferred.
                api.record.state.commit_deferred().await?;
            }
            match read_for(api, id, current).await? {
                Some(view) if next == Signal::Over || settled(&view) => return Ok(Some(with_wait_reason(api, view))),
                None => return Ok(None),
                Some(_) => next = self.next(over.as_mut()).await,
            }
        }
    }

    async fn next(&mut self, mut over: std::pin::Pin<&mut tokio::time::Sleep>) -> Signal {
        loop {
            tokio::select! {
                event = self.events.recv() => match event {
                    Ok(event) if !may_settle(&event) => {}
                    Ok(_) => return Signal::Entry,
                    Err(RecvError::Lagged(_)) => return Signal::Unknown,
                    Err(RecvError::Closed) => return Signal::Over,
                },
                Ok(()) = self.lost.changed() => return Signal::Unknown,
                () = &mut over => return Signal::Over,
            }
        }
    }
}

/// Adds the reason of a message that waits for a resource of the machine, or for a writable record. Only for unsettled messages: settled
/// ones have their own reason.
pub(super) fn with_wait_reason(api: &Api, mut view: MessageView) -> MessageView {
    if view.reason.is_none() && matches!(view.status.as_str(), "queued" | "processing") {
        let shown = api.sessions.shown(view.session_id);
        view.reason = match shown.and_then(|shown| shown.shortage).or_else(|| storage_shortage(&api.about.home)) {
            Some(shortage) => Some(format!(
                "the message is kept, and answered once there is room again; {}: {}",
                shortage.words(),
                shortage.remedy()
            )),
            None if api.record.state.metrics().failing_commits() > 0 => {
                Some(format!("the record cannot be written: {}", Error::UNWRITTEN_HINT))
            }
            None => None,
        };
    }
    view
}

pub(super) fn settled(view: &MessageView) -> bool {
    view.status == "delivered" || view.reason.is_some() || is_lost(view)
}

/// Returns true if the answer did not arrive, as far as the host knows, and there is no further attempt.
fn is_lost(view: &MessageView) -> bool {
    matches!(view.receipt.as_str(), "unknown" | "dead" | "dropped")
}

/// Returns whether one of these entries may have settled a message of the session.
fn has_settling(entries: &mut broadcast::Receiver<Arc<Committed>>, session: SessionId) -> bool {
    loop {
        match entries.try_recv() {
            Ok(entry) if may_settle(&entry) && entry.session.is_none_or(|of| of == session) => return true,
            Ok(_) => {}
            Err(TryRecvError::Lagged(_)) => return true,
            Err(TryRecvError::Empty | TryRecvError::Closed) => return false,
        }
    }
}

/// Returns true if an event may end a wait for a message of its session.
fn may_settle(event: &Committed) -> bool {
    matches!(
        event.event,
        LedgerEvent::DeliveryReceived
            | LedgerEvent::DeliveryDead
            | LedgerEvent::DeliveryUnknown
            | LedgerEvent::SessionParked
            | LedgerEvent::SessionQuarantined
            | LedgerEvent::SessionRemoved
            | LedgerEvent::HostPanicked
    )
}
