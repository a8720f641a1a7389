//! The wait of a request for the answer to a message.
//!
//! Each read also checks the token, so that no person sees a result from after the end of their token. See [`super::messages`].

use super::{is_own, read_for, read_own, recorded, unknown};
use crate::api::auth::Current;
use crate::api::handler::{Answer, Api};
use crate::channels::inbound::channel::Received;
use crate::registry::Person;
use crate::runtime::command::Phase;
use crate::runtime::pipeline::Confirmation;
use crate::runtime::shortages::storage_shortage;
use ironclaw_contract::ids::{MessageId, SessionId};
use ironclaw_contract::seam::message::Status;
use ironclaw_operator::{LedgerEvent, MessageView, Recorded};
use ironclaw_state::{Committed, Error, EventsOf};
use serde::Deserialize;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::{broadcast, watch};
use tokio::time::{Instant, Sleep};

/// Milliseconds of the longest wait.
const WAIT_MS_MAX: u64 = 60_000;

/// Query of `GET /v1/messages/{id}` and of `POST /v1/agents/{agent}/messages`.
#[derive(Debug, Deserialize)]
#[cfg_attr(test, derive(utoipa::ToSchema))]
pub struct Wait {
    /// The longest wait for the answer, in milliseconds; at most 60000. Default: 0, no wait.
    #[serde(default)]
    wait_ms: u64,
    /// True for what the answer rests on, too. Default: false.
    #[serde(default)]
    pub(super) sources: bool,
}

impl Wait {
    /// Returns a request without a wait.
    pub const fn none() -> Self {
        Self { wait_ms: 0, sources: false }
    }

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
    person: &Person,
    current: &Current,
    message: &str,
    wait: &Wait,
) -> Result<MessageView, Answer> {
    let mut meanwhile = api.record.state.events();
    let view = read_own(api, person, message, current).await?;
    if wait.is_none() || settled(&view) {
        return Ok(with_wait_reason(api, view));
    }
    let (id, session) = (view.message_id, view.session_id);
    let signals = Signals::subscribe(api, session, wait);
    // An entry from before this subscription may have settled the message.
    let is_missed = has_settling(&mut meanwhile, session);
    drop(meanwhile);
    signals.until_settled(api, id, current, is_missed).await
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
    person: &Person,
    current: &Current,
    wait: &Wait,
) -> Result<Recorded, Answer> {
    let (mut meanwhile, lost) = (api.record.state.events(), api.record.state.lost());
    let message = api.inbound.inbound(received, Confirmation::WithAnswer).await.map_err(Answer::denied)?;
    let (id, session, again) = (message.message, message.session, message.again);
    let mut recorded = recorded(message);
    // A sender can be linked to another person later. `GET` shows a message to its own person alone.
    if again && !is_own(api, person, id).await? {
        return Ok(recorded);
    }
    let signals = Signals { lost, is_committed: again, ..Signals::subscribe(api, session, wait) };
    // An awake session takes the message, and its entries follow. In any other case the message may be settled already.
    let is_taken = !again && is_awake(api, session) && !api.stops.is_on();
    let is_settled = !is_taken || has_settling(&mut meanwhile, session);
    drop(meanwhile);
    recorded.message = Some(Box::new(signals.until_settled(api, id, current, is_settled).await?));
    Ok(recorded)
}

fn is_awake(api: &Api, session: SessionId) -> bool {
    api.sessions.shown(session).is_some_and(|shown| shown.phase == Phase::Awake)
}

/// The signals that end the wait for a message.
struct Signals {
    events: EventsOf,
    /// Number of commits that were lost with deferred changes.
    lost: watch::Receiver<u64>,
    /// Flag: the message is on disk, or it was.
    is_committed: bool,
    until: Instant,
}

impl Signals {
    /// Subscribes to the signals of a committed message.
    fn subscribe(api: &Api, session: SessionId, wait: &Wait) -> Self {
        let state = &api.record.state;
        Self { events: state.events_of(session), lost: state.lost(), is_committed: true, until: wait.until() }
    }

    /// Waits until the message is settled, and reads it. `is_settled`: it may be settled already.
    async fn until_settled(
        mut self,
        api: &Api,
        id: MessageId,
        current: &Current,
        is_settled: bool,
    ) -> Result<MessageView, Answer> {
        let over = tokio::time::sleep_until(self.until);
        tokio::pin!(over);
        let mut is_over = !is_settled && self.is_over(over.as_mut()).await;
        loop {
            let view = self.read(api, id, current).await?;
            if is_over || settled(&view) {
                return Ok(with_wait_reason(api, view));
            }
            is_over = self.is_over(over.as_mut()).await;
        }
    }

    /// Waits for a signal that may change the message, and returns true if the time is over in place of it.
    async fn is_over(&mut self, mut over: Pin<&mut Sleep>) -> bool {
        loop {
            tokio::select! {
                event = self.events.recv() => match event {
                    Ok(event) if !may_settle(&event) => {}
                    Ok(event) => {
                        // A session is removed with all of its messages.
                        self.is_committed |= event.event == LedgerEvent::SessionRemoved;
                        return false;
                    }
                    Err(RecvError::Lagged(_)) => return false,
                    Err(RecvError::Closed) => return true,
                },
                Ok(()) = self.lost.changed(), if !self.is_committed => return false,
                () = &mut over => return true,
            }
        }
    }

    /// Reads the message. If it is not found, commits deferred changes and looks again: a signal may come from an earlier commit.
    async fn read(&mut self, api: &Api, id: MessageId, current: &Current) -> Result<MessageView, Answer> {
        let found = read_for(api, id, current).await?;
        let found = match found {
            None if !self.is_committed => {
                let committed = api.record.state.commit_deferred().await;
                let found = read_for(api, id, current).await?;
                let lost = || committed.err().unwrap_or_else(|| Error::Unwritten(format!("the message {id}")));
                Some(found.ok_or_else(lost)?)
            }
            found => found,
        };
        self.is_committed = true;
        found.ok_or_else(|| unknown(id))
    }
}

/// Adds the reason of a message that waits for a resource of the machine, or for a writable record. Only for unsettled messages: settled
/// ones have their own reason.
pub(super) fn with_wait_reason(api: &Api, mut view: MessageView) -> MessageView {
    if view.reason.is_none() && matches!(view.status, Status::Queued | Status::Processing) {
        let shown = api.sessions.shown(view.session_id);
        view.reason = match shown.and_then(|shown| shown.shortage).or_else(|| storage_shortage(&api.about.home)) {
            Some(shortage) => Some(format!(
                "the message is kept, and answered once there is room again; {}: {}",
                shortage.words(),
                shortage.remedy()
            )),
            None if api.record.state.metrics().failing_commits() > 0 => {
                Some(format!("the record cannot be written: {}", ironclaw_store::error::Error::UNWRITTEN_HINT))
            }
            None => None,
        };
    }
    view
}

pub(super) fn settled(view: &MessageView) -> bool {
    view.status == Status::Delivered || view.reason.is_some() || view.receipt.is_lost()
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
