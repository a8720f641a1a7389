//! Sends what goes out by a network: takes it up in the record, sends it, and notes how that ended.
//!
//! Never holds up a session, never sends what is not taken up, and polls nothing: it is woken by whoever intends a delivery, by the end
//! of a send, and when the next attempt is due. Next: `outbound::delivery::journal`, `inbound::channel::webhook::outgoing`.

use crate::error::Error;
use crate::inbound::channel::webhook::outgoing::{Body, Outcome, Sender};
use crate::inbound::channel::webhook::signature::Secret;
use crate::inbound::channel::webhook::{self, check_url};
use crate::latch::Latch;
use crate::outbound::delivery::journal::{self, Ended};
use crate::outbound::delivery::{self, Delivery};
use crate::record::Record;
use crate::registry::channels::{self, Channel};
use crate::registry::{self, Identity};
use crate::session::Wake;
use crate::session::store::{self, Origin};
use crate::tables::messages;
use crate::turns::items;
use ironclaw_contract::ids::{DeliveryId, MessageId};
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_state::failpoint;
use ironclaw_state::keys;
use ironclaw_state::{ReadTx, WriteTx};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use url::Url;

/// After an error of the host, such as a full disk, the next try waits so long.
const RETRY_AFTER: Duration = Duration::from_secs(1);

/// One whose sending broke off in the host is sent again after this, where it is at all.
const BROKEN_WAIT: Duration = Duration::from_secs(60);

/// Why nothing is sent on a channel that was removed.
const GONE: &str = "there is no such channel any more";

/// Sends that have left may come to their end for so long when the host stops.
const STOP_TIME_MAX: Duration = Duration::from_secs(5);

/// A machine that slept does not count its sleep; so what is due is looked at this often, while something is to come.
const SLEEP_MAX: Duration = Duration::from_secs(300);

/// What is to be sent by a network, in the record, and the way out.
pub struct Dispatch {
    record: Arc<Record>,
    /// Sessions that there can be: one more may be made to say that something did not arrive.
    sessions_max: u32,
    sender: Sender,
    bell: Notify,
}

impl Dispatch {
    /// The way out of this record.
    pub fn new(record: Arc<Record>, sessions_max: u32) -> Self {
        Self { record, sessions_max, sender: Sender::default(), bell: Notify::new() }
    }

    /// Lets it look for what is to be sent.
    pub fn wake(&self) {
        self.bell.notify_one();
    }

    /// Sends an event that asks for nothing, so that an operator sees what the channel says; it stands in no journal.
    pub async fn test(&self, url: &Url, secret: &Secret, now: i64) -> Outcome {
        let id = DeliveryId::new().to_string();
        let text = "This is a test of the channel.";
        let body = Body { kind: "test", delivery: &id, sender: "", thread: "", message_ids: &[], text };
        self.sender.send(url, secret, &id, now, &body).await
    }
}

/// Sends that have left, each with its delivery and whether it may be sent again.
#[derive(Default)]
struct Flights {
    tasks: JoinSet<()>,
    of: HashMap<tokio::task::Id, (Delivery, bool)>,
}

impl Flights {
    fn start(&mut self, dispatcher: &Arc<Dispatcher>, parcel: Parcel) {
        let about = (parcel.delivery.clone(), parcel.idempotent);
        let id = self.tasks.spawn(Arc::clone(dispatcher).fly(parcel)).id();
        self.of.insert(id, about);
    }

    /// Waits for the end of one; `None` when none is under way. One that broke off may have left: that is noted in its place.
    async fn land(&mut self, dispatcher: &Arc<Dispatcher>) -> Option<()> {
        match self.tasks.join_next_with_id().await? {
            Ok((id, ())) => {
                self.of.remove(&id);
            }
            Err(error) => {
                if let Some((delivery, idempotent)) = self.of.remove(&error.id()) {
                    tracing::error!(delivery = %delivery.id, "the sending of a delivery broke off");
                    let words = "the host failed while it was being sent".to_owned();
                    let ended = cut(words, idempotent, BROKEN_WAIT);
                    self.tasks.spawn(Arc::clone(dispatcher).note(delivery, ended));
                }
            }
        }
        Some(())
    }
}

/// What has not come to its end is sent again only where that shows once.
fn cut(words: String, idempotent: bool, wait: Duration) -> Ended {
    if idempotent { Ended::Later(words, wait) } else { Ended::Unknown(words) }
}

/// One delivery, ready to be sent.
struct Parcel {
    delivery: Delivery,
    attempt: u32,
    url: Url,
    secret: Secret,
    idempotent: bool,
    kind: &'static str,
    recipient: String,
    thread: String,
    message_ids: Vec<String>,
    text: String,
}

/// The worker that sends.
pub struct Dispatcher {
    /// What it sends.
    pub dispatch: Arc<Dispatch>,
    /// Keeps it from sending.
    pub latch: Arc<Latch>,
    /// Tells sessions of their receipts.
    pub wake: Arc<dyn Wake>,
    /// `[webhook]`
    pub config: webhook::Config,
}

impl Dispatcher {
    /// Sends what is due until `stop` says so; then waits a moment for what has left.
    pub async fn run(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        let mut flights = Flights::default();
        let mut swept = false;
        loop {
            let wait = match self.send_due(&mut flights, &mut swept).await {
                Ok(wait) => wait,
                Err(Error::State(ironclaw_state::Error::Closed)) => break,
                Err(error) => {
                    tracing::error!(%error, "deliveries wait a moment after an error of the host");
                    Some(RETRY_AFTER)
                }
            };
            let due = async {
                match wait {
                    Some(wait) => tokio::time::sleep(wait.min(SLEEP_MAX)).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => break,
                () = self.dispatch.bell.notified() => {}
                Some(()) = flights.land(&self) => {}
                () = due => {}
            }
        }
        let landed = async { while flights.land(&self).await.is_some() {} };
        if tokio::time::timeout(STOP_TIME_MAX, landed).await.is_err() {
            tracing::warn!(
                "the host stops while deliveries are being sent; the next start says that their outcome is unknown"
            );
        }
    }

    /// Takes up what is due; gives the wait until more is.
    async fn send_due(self: &Arc<Self>, flights: &mut Flights, swept: &mut bool) -> Result<Option<Duration>, Error> {
        if !*swept {
            let dispatch = Arc::clone(&self.dispatch);
            self.dispatch.record.state.write(move |tx| dispatch.sweep(tx)).await?;
            *swept = true;
        }
        loop {
            if self.latch.is_shut() {
                // What waits stands in the record, and is found there when everything goes on.
                return Ok(None);
            }
            let due = self.dispatch.record.state.read(|tx| Ok::<_, Error>(journal::due(tx)?)).await?;
            if due.now.is_empty() {
                let now = ironclaw_state::wall_clock();
                return Ok(due.next_at.map(|at| Duration::from_millis(u64::try_from(at - now).unwrap_or(0))));
            }
            let mut failed = false;
            // Each by itself: what is wrong with one holds up no other.
            for id in due.now {
                let dispatch = Arc::clone(&self.dispatch);
                match self.dispatch.record.state.write(move |tx| dispatch.take_up(tx, id)).await {
                    Ok(Some(parcel)) => {
                        flights.start(self, parcel);
                    }
                    Ok(None) => {}
                    Err(Error::State(ironclaw_state::Error::Closed)) => {
                        return Err(ironclaw_state::Error::Closed.into());
                    }
                    Err(error) => {
                        tracing::error!(delivery = %id, %error, "a delivery could not be taken up");
                        failed = true;
                    }
                }
            }
            if failed {
                return Ok(Some(RETRY_AFTER));
            }
        }
    }

    /// Sends one, and notes how that ended, however long the record cannot take it.
    async fn fly(self: Arc<Self>, parcel: Parcel) {
        failpoint::reach("parcel_taken");
        let id = parcel.delivery.id.to_string();
        let body = Body {
            kind: parcel.kind,
            delivery: &id,
            sender: &parcel.recipient,
            thread: &parcel.thread,
            message_ids: &parcel.message_ids,
            text: &parcel.text,
        };
        let ended = if self.latch.is_shut() {
            Ended::Later("everything was stopped before it was sent".to_owned(), Duration::ZERO)
        } else {
            let now = ironclaw_state::wall_clock();
            let outcome = self.dispatch.sender.send(&parcel.url, &parcel.secret, &id, now, &body).await;
            failpoint::reach("parcel_sent");
            // Without random bytes all come back at once, which is no reason to lose one.
            let chance = keys::random().map_or(0, u32::from_le_bytes);
            judge(outcome, parcel.attempt, parcel.idempotent, &self.config, chance)
        };
        self.note(parcel.delivery, ended).await;
    }

    /// Notes how one ended, however long the record cannot take it.
    async fn note(self: Arc<Self>, noted: Delivery, ended: Ended) {
        let id = noted.id;
        loop {
            let (dispatch, delivery, note) = (Arc::clone(&self.dispatch), noted.clone(), ended.clone());
            match self.dispatch.record.state.write(move |tx| dispatch.settle(tx, &delivery, &note)).await {
                Ok(()) => {
                    self.wake.nudge(noted.session);
                    break;
                }
                // The next start finds it as one whose outcome is unknown.
                Err(Error::State(ironclaw_state::Error::Closed)) => break,
                Err(error) => {
                    tracing::error!(delivery = %id, %error, "how a delivery ended is not noted yet");
                    tokio::time::sleep(RETRY_AFTER).await;
                }
            }
        }
    }
}

impl Dispatch {
    /// Gives up what is still to be sent on a channel that is being removed.
    pub fn give_up(&self, tx: &mut WriteTx<'_>, channel: &str) -> Result<(), Error> {
        for delivery in journal::intended_on(tx, channel)? {
            self.settle(tx, &delivery, &Ended::Dead(GONE.to_owned()))?;
        }
        Ok(())
    }

    /// What may have been sent before is sent again only where that shows once: what was being sent when the host last ended, and what was
    /// open in a record that was put back.
    fn sweep(&self, tx: &mut WriteTx<'_>) -> Result<(), Error> {
        for delivery in journal::doubtful(tx)? {
            if !channel_of(tx, &delivery)?.is_some_and(|channel| channel.idempotent) {
                let words = "the record was put back to an earlier state, and it may have been sent since".to_owned();
                self.settle(tx, &delivery, &Ended::Unknown(words))?;
            }
        }
        for delivery in journal::cut_short(tx)? {
            let words = "the host ended while it was being sent".to_owned();
            let idempotent = channel_of(tx, &delivery)?.is_some_and(|channel| channel.idempotent);
            self.settle(tx, &delivery, &cut(words, idempotent, Duration::ZERO))?;
        }
        Ok(())
    }

    /// Takes a delivery up, with all that its send needs; one that cannot be sent at all is dead.
    fn take_up(&self, tx: &mut WriteTx<'_>, id: DeliveryId) -> Result<Option<Parcel>, Error> {
        let Some(delivery) = journal::find(tx, id)? else { return Ok(None) };
        let dead = |tx: &mut WriteTx<'_>, words: &str| {
            self.settle(tx, &delivery, &Ended::Dead(words.to_owned())).map(|()| None)
        };
        let Some(session) = store::find(tx, delivery.session)? else {
            return dead(tx, "its session is no longer there");
        };
        let Some(channel) = channel_of(tx, &delivery)? else {
            return dead(tx, GONE);
        };
        let secret = channel.secret(&self.record.wrapping).ok().and_then(|secret| Secret::read(&secret).ok());
        let (Some(secret), Ok(url)) = (secret, check_url(&channel.url)) else {
            return dead(tx, "the channel's secret does not open, or its address is none");
        };
        let Some(item) = items::find(tx, delivery.item)? else {
            return dead(tx, "what was to be said is no longer kept");
        };
        let Ok(key) = session.content_key(&self.record.wrapping) else {
            return dead(tx, "the session's key does not open");
        };
        let text = match delivery::text_of(tx, &item, &key) {
            Ok(text) => text,
            // No later attempt reads it better.
            Err(items::BodyError::Key(_) | items::BodyError::State(ironclaw_state::Error::Stored(_))) => {
                return dead(tx, "what was to be said cannot be read");
            }
            Err(error) => return Err(error.into()),
        };
        let answered = delivery.turn.map(|turn| messages::asking_of_turn(tx, turn)).transpose()?.unwrap_or_default();
        let Some((delivery, attempt)) = journal::take_up(tx, id)? else { return Ok(None) };
        Ok(Some(Parcel {
            delivery,
            attempt,
            url,
            secret,
            idempotent: channel.idempotent,
            kind: if item.tuple.kind == ItemKind::Notice { "notice" } else { "reply" },
            recipient: session.origin.platform_id,
            thread: session.origin.thread_id,
            message_ids: answered.iter().map(MessageId::to_string).collect(),
            text,
        }))
    }

    /// Notes how a delivery ended, and tells the person another way if it did not arrive.
    fn settle(&self, tx: &mut WriteTx<'_>, delivery: &Delivery, ended: &Ended) -> Result<(), Error> {
        if !journal::settle(tx, delivery, ended)? {
            return Ok(());
        }
        let words = match ended {
            Ended::Received | Ended::Later(..) => return Ok(()),
            Ended::Unknown(why) => format!("may not have arrived there ({why}), and I do not send it twice by myself"),
            Ended::Dead(why) => format!("did not arrive there ({why})"),
        };
        let text = format!(
            "What I had to say on {} {words}. `ironctl message dead list` shows it as {}, and with it what is lost soon after; from there it can be sent again or dropped.",
            delivery.channel, delivery.id
        );
        if let Err(error) = self.tell(tx, delivery, &text) {
            // The journal and `status` have it all the same.
            tracing::error!(delivery = %delivery.id, %error, "nobody could be told that it did not arrive");
        }
        Ok(())
    }

    /// Puts a notice into the person's own conversation with the agent on this host, which needs no network.
    fn tell(&self, tx: &mut WriteTx<'_>, delivery: &Delivery, text: &str) -> Result<(), Error> {
        let Some(session) = store::find(tx, delivery.session)? else { return Ok(()) };
        let Some(person) = journal::person_of(tx, delivery.id)? else { return Ok(()) };
        if journal::was_told(tx, delivery, person)? {
            return Ok(());
        }
        let Some(agent) = registry::agent_by_id(tx, session.agent)? else { return Ok(()) };
        let own = Identity::own(person);
        let origin = Origin { channel: own.channel, platform_id: own.sender, thread_id: String::new() };
        let session = store::of_origin_or_new(tx, &agent, &origin, (person, self.sessions_max), &self.record.wrapping)?;
        let key = session.content_key(&self.record.wrapping).map_err(items::BodyError::from)?;
        let notice = delivery::notify(tx, &session, None, text, &key, &self.record.sealer)?;
        delivery::receive(tx, &notice)?;
        items::keep_within(tx, session.id, &self.record.retention)?;
        Ok(())
    }
}

/// The channel that a delivery is for; one that was made later under the same name is another.
fn channel_of(tx: &ReadTx<'_>, delivery: &Delivery) -> Result<Option<Channel>, ironclaw_state::Error> {
    Ok(channels::find(tx, &delivery.channel)?.filter(|channel| delivery.generation == Some(channel.generation)))
}

/// What an outcome means for the journal. What may have arrived is sent again only where that shows once.
fn judge(outcome: Outcome, attempt: u32, idempotent: bool, config: &webhook::Config, chance: u32) -> Ended {
    let is_last = attempt >= config.attempts_max;
    let wait = journal::backoff(attempt, config.backoff_ms, chance);
    match outcome {
        Outcome::Received => Ended::Received,
        Outcome::Later(words, _) if is_last => Ended::Dead(format!("{words}, the last of {attempt} attempts")),
        Outcome::Later(words, after) => Ended::Later(words, wait.max(after.unwrap_or_default())),
        Outcome::Unknown(words) if idempotent && !is_last => Ended::Later(words, wait),
        Outcome::Unknown(words) => Ended::Unknown(words),
        Outcome::Refused(words) => Ended::Dead(words),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_outcome_is_retried_only_if_idempotent() {
        let config = webhook::Config { attempts_max: 3, ..webhook::Config::default() };
        let unknown = || Outcome::Unknown("w".to_owned());
        let ended = |outcome, attempt, idempotent| judge(outcome, attempt, idempotent, &config, 0);
        for attempt in 1..=4 {
            assert_eq!(ended(unknown(), attempt, false), Ended::Unknown("w".to_owned()));
        }
        assert!(matches!(ended(unknown(), 2, true), Ended::Later(..)));
        assert_eq!(ended(unknown(), 3, true), Ended::Unknown("w".to_owned()), "and after the last nobody knows either");
        let later = |after| Outcome::Later("w".to_owned(), after);
        let hour = Duration::from_secs(3600);
        assert_eq!(ended(later(Some(hour)), 1, false), Ended::Later("w".to_owned(), hour));
        assert_eq!(ended(later(None), 3, true), Ended::Dead("w, the last of 3 attempts".to_owned()));
        assert_eq!(ended(Outcome::Refused("w".to_owned()), 1, true), Ended::Dead("w".to_owned()));
        assert_eq!(ended(Outcome::Received, 9, false), Ended::Received);
    }
}
