//! The events of a message up to its answer, and the decisions of the person on the calls of its turn.
//!
//! Never approves without a question on the terminal. The time in which the turn waits for people does not count as a wait for the
//! answer. See [`super::progress`] for the events on the screen, [`crate::commands::review`] for the question.

use super::patience::Patience;
use super::progress::LiveTurn;
use crate::client::{Client, MessageEvent};
use crate::commands::inbox;
use crate::commands::review::{self, Choice, Offered, Subject, Words};
use crate::commands::waiting::words::{calls_together, one_line};
use crate::commands::waiting::{self, together};
use crate::failure::Error;
use crate::output::Output;
use crate::terminal_line;
use ironclaw_operator::{Details, LedgerEvent, MessageView, Recorded, Stage, Waiting, WaitingEntry, WaitingId, routes};
use jiff::Timestamp;
use std::collections::{BTreeSet, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

/// Time between two renewals of the progress line.
const TICK: Duration = Duration::from_secs(1);

/// Lines above a page: the line that names its request.
const HEADER_ROWS: usize = 1;

/// Returns whether the person at this terminal can decide on calls while a turn waits.
pub fn is_present(out: Output) -> bool {
    review::is_possible(out) && inbox::is_wide(out)
}

/// Follows a message until its answer or for at most `wait`, and shows each event; returns the state of the message.
///
/// If it `cancels`, Ctrl-C cancels the turn and waits for its notice; a second Ctrl-C ends the wait.
pub async fn follow(
    client: &Client,
    recorded: &Recorded,
    wait: Duration,
    turn: &mut LiveTurn,
    cancels: bool,
) -> Result<MessageView, Error> {
    let mut follower = Follower {
        client,
        out: turn.out(),
        patience: Patience::new(wait),
        presence: if is_present(turn.out()) { Presence::Present } else { Presence::Never },
        shown_to: 0,
        replayed_to: 0,
        open: BTreeSet::new(),
        seen: BTreeSet::new(),
        newest: String::new(),
        queue: VecDeque::new(),
        by_themselves: BTreeSet::new(),
        together: Vec::new(),
        question: None,
        was_closed: false,
        held: VecDeque::new(),
        turn,
    };
    let followed = follower.run(recorded, cancels).await;
    if followed.is_err() {
        follower.close_question()?;
    }
    if follower.was_closed {
        // A late answer to a question is no message to the agent, unless the person sends it.
        terminal_line::hold()?;
    }
    match followed {
        Ok(Some(view)) => Ok(view),
        Ok(None) => client.call(routes::MESSAGE, [&recorded.message_id]).await,
        Err(error) => {
            turn.interrupt("the host does not answer")?;
            Err(error)
        }
    }
}

/// A question to the person about one call, until its decision.
type Question = Pin<Box<dyn Future<Output = Result<Choice, Error>>>>;

/// The presence of the person: a turn waits only for people who are present.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Present,
    /// The person leaves a call to the inbox, so the turn is to continue.
    Leaving,
    /// The turn continues without the person.
    Left,
    /// It has continued, and the person is to decide on its next calls.
    Returning,
    /// The terminal cannot show a page.
    Never,
}

/// The state of a followed message.
struct Follower<'a> {
    client: &'a Client,
    out: Output,
    turn: &'a mut LiveTurn,
    patience: Patience,
    presence: Presence,
    /// The number of the last stage in the ledger.
    shown_to: u64,
    /// The same, before the stream was opened again: the host repeats the stages up to it.
    replayed_to: u64,
    /// The requests for which the turn may wait.
    open: BTreeSet<WaitingId>,
    /// All requests of the turn.
    seen: BTreeSet<WaitingId>,
    /// The time of the newest one.
    newest: String,
    /// Those that this person decides on here; the first one is shown.
    queue: VecDeque<Box<Waiting>>,
    /// Those that this person decides on by themselves, although one page shows several.
    by_themselves: BTreeSet<WaitingId>,
    /// The calls of the page on the screen, if it shows several.
    together: Vec<WaitingId>,
    /// The question about the first one, or about those that wait together with it.
    question: Option<Question>,
    /// True if a question ended without an answer.
    was_closed: bool,
    /// Events that came while a question was open.
    held: VecDeque<MessageEvent>,
}

impl Follower<'_> {
    /// Takes events and answers until the message is settled; `None` at the end of the wait or of the stream.
    async fn run(&mut self, recorded: &Recorded, cancels: bool) -> Result<Option<MessageView>, Error> {
        let mut events = self.client.events(recorded.message_id, self.presence == Presence::Present).await?;
        let mut ticks = interval(TICK);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
        // One listener for the whole turn: a second one would miss a Ctrl-C that came before it.
        let mut interrupts = if cancels { Some(signal(SignalKind::interrupt())?) } else { None };
        let mut is_cancelled = false;
        loop {
            // The person leaves only after the last question.
            if self.queue.is_empty() && matches!(self.presence, Presence::Leaving | Presence::Returning) {
                let returns = self.presence == Presence::Returning;
                self.replayed_to = self.shown_to;
                events = self.client.events(recorded.message_id, returns).await?;
                self.presence = if returns { Presence::Present } else { Presence::Left };
            }
            tokio::select! {
                event = self.client.next_event(&mut events) => match event? {
                    Some(event) => if let Some(view) = self.take(event)? { return Ok(Some(view)) },
                    None => {
                        self.stop_waiting(false)?;
                        return Ok(None);
                    }
                },
                choice = answer(&mut self.question), if self.question.is_some() => self.decide(choice).await?,
                _ = ticks.tick(), if self.question.is_none() => self.turn.tick()?,
                // After a single message, the lines belong to the shell.
                never = terminal_line::collect(), if cancels && self.question.is_none() => match never {},
                () = sleep_until(self.patience.deadline()), if !self.patience.is_paused() => return Ok(None),
                () = interrupt(&mut interrupts), if cancels => {
                    if std::mem::replace(&mut is_cancelled, true) {
                        self.stop_waiting(false)?;
                        return Ok(None);
                    }
                    // The host refuses if it has just answered; then the answer still arrives.
                    let cancelled = self.client.call(routes::CANCEL_TURN, [&recorded.session_id]).await;
                    self.out.report(cancelled.map(drop))?;
                }
            }
        }
    }

    /// Takes an event; returns the settled message.
    fn take(&mut self, event: MessageEvent) -> Result<Option<MessageView>, Error> {
        match event {
            MessageEvent::Request(request) => self.request(request)?,
            MessageEvent::Settled(view) => {
                self.stop_waiting(false)?;
                return Ok(Some(view));
            }
            event => {
                if let MessageEvent::Stage(stage) = &event {
                    if stage.seq <= self.replayed_to {
                        return Ok(None);
                    }
                    self.shown_to = self.shown_to.max(stage.seq);
                    if self.is_continued(stage) {
                        self.stop_waiting(true)?;
                    }
                }
                self.show_or_hold(event)?;
            }
        }
        Ok(None)
    }

    fn show(&mut self, event: MessageEvent) -> Result<(), Error> {
        match event {
            MessageEvent::Stage(stage) => self.turn.stage(&stage),
            MessageEvent::Draft(draft) => self.turn.draft(&draft),
            MessageEvent::Progress(progress) => self.turn.progress(&progress),
            MessageEvent::Waiting(view) => self.turn.waiting(&view),
            MessageEvent::Request(request) => self.show_request(&request),
            MessageEvent::Settled(_) => Ok(()),
        }
    }

    /// Shows an event, or holds it while a question is on the screen.
    fn show_or_hold(&mut self, event: MessageEvent) -> Result<(), Error> {
        if self.question.is_none() {
            return self.show(event);
        }
        // Progress is old after the question, and a server could send any amount of it meanwhile.
        if matches!(event, MessageEvent::Progress(_)) {
            return Ok(());
        }
        self.held.push_back(event);
        Ok(())
    }

    /// Shows a request without a question about it: it is for other people, or it has ended.
    fn show_request(&mut self, request: &Waiting) -> Result<(), Error> {
        self.turn.end_line()?;
        let summary = one_line(&request.summary);
        match request.entry.status.is_open() {
            true => self.out.remark(summary),
            false => self.say(request, &summary),
        }
    }

    /// Takes a request that is new or has another status.
    fn request(&mut self, request: Box<Waiting>) -> Result<(), Error> {
        let entry = &request.entry;
        if !entry.status.is_open() {
            self.seen.insert(entry.id);
            self.open.remove(&entry.id);
            return self.ended(request);
        }
        if !self.seen.insert(entry.id) {
            return Ok(());
        }
        self.newest.clone_from(&entry.created_at);
        let is_present = matches!(self.presence, Presence::Present | Presence::Leaving);
        if is_present || !entry.yours {
            self.open.insert(entry.id);
        }
        match is_present && entry.yours {
            true => self.queue.push_back(request),
            false => self.show_or_hold(MessageEvent::Request(request))?,
        }
        self.next()
    }

    /// Returns whether a stage shows that the turn no longer waits: it asks the model after the newest request.
    fn is_continued(&mut self, stage: &Stage) -> bool {
        if stage.stage.parse() != Ok(LedgerEvent::ModelAsked) {
            return false;
        }
        let is_later = match (stage.at.parse::<Timestamp>(), self.newest.parse::<Timestamp>()) {
            (Ok(at), Ok(newest)) => at > newest,
            (Err(_), _) | (_, Err(_)) => true,
        };
        self.presence = match self.presence {
            Presence::Leaving if is_later => Presence::Present,
            Presence::Left if is_later => Presence::Returning,
            presence => presence,
        };
        is_later
    }

    /// Removes a request that was decided or has ended meanwhile. This person's own decision has removed it already.
    fn ended(&mut self, request: Box<Waiting>) -> Result<(), Error> {
        if let Some(place) = self.queue.iter().position(|waiting| waiting.entry.id == request.entry.id) {
            if place == 0 {
                self.close_question()?;
            }
            self.queue.remove(place);
            self.show_or_hold(MessageEvent::Request(request))?;
        }
        self.next()
    }

    /// Ends the questions, because the turn continues without a decision, is settled, or is no longer followed.
    fn stop_waiting(&mut self, continues: bool) -> Result<(), Error> {
        self.close_question()?;
        while let Some(request) = self.queue.pop_front() {
            let id = request.entry.id;
            let text = match continues {
                // The time is up, or the host stops.
                true => format!("the turn no longer waits for {id}, which stays in the inbox: ironctl inbox"),
                false => format!("{id} was not decided here: ironctl why {id}"),
            };
            self.say(&request, &text)?;
        }
        self.open.clear();
        self.next()
    }

    /// Applies the decision of the person on the first request.
    async fn decide(&mut self, choice: Result<Choice, Error>) -> Result<(), Error> {
        self.question = None;
        let together = self.together.clone();
        if matches!(choice, Ok(Choice::Each)) {
            self.by_themselves.extend(together);
            return self.next();
        }
        let Some(request) = self.queue.pop_front() else { return Ok(()) };
        self.queue.retain(|other| !together.contains(&other.entry.id));
        let id = request.entry.id;
        let decided = match choice {
            Ok(Choice::Decide(decision)) => waiting::decide(self.client, id, decision).await,
            Ok(Choice::Each | Choice::Edit | Choice::Skip | Choice::Quit) => {
                let left = match together.len() {
                    0 => format!("{id} is undecided and stays in the inbox: ironctl inbox"),
                    calls => format!("{calls} calls are undecided and stay in the inbox: ironctl inbox"),
                };
                self.say(&request, &left)?;
                self.presence = Presence::Leaving;
                return self.next();
            }
            Err(error) => Err(error),
        };
        match decided {
            Ok(decided) => {
                if !decided.entry.status.is_open() {
                    self.open.remove(&id);
                    self.open.retain(|other| !together.contains(other));
                }
                let summary = match together.len() {
                    0 => one_line(&decided.summary),
                    calls => format!("{calls} calls are {}", decided.entry.status),
                };
                self.say(&request, &summary)?;
            }
            Err(error) => {
                self.presence = Presence::Leaving;
                self.out.report(Err(error))?;
            }
        }
        self.next()
    }

    /// Asks about the next request; without one, shows the held events. Counts the time in which the turn waits for people.
    fn next(&mut self) -> Result<(), Error> {
        self.patience.pause(!self.open.is_empty(), Instant::now());
        if self.question.is_some() {
            return Ok(());
        }
        self.together.clear();
        if let Some(request) = self.queue.front() {
            // One page is to show it with calls of the same output whose events come next.
            if self.are_others_unseen(&request.entry) {
                return Ok(());
            }
            let (request, out, client) = (request.clone(), self.out, self.client.clone());
            self.turn.end_line()?;
            let WaitingEntry { id, requested_by, .. } = &request.entry;
            self.together = self.waiting_with(&request.entry);
            let on = match self.together.len() {
                0 => id.to_string(),
                calls => format!("{calls} calls"),
            };
            self.say(
                &request,
                &format!("{} {} waits for your decision on {on}", requested_by.kind, requested_by.name),
            )?;
            let is_one_page = !self.together.is_empty();
            self.question = Some(Box::pin(async move {
                let page = if is_one_page { together::page(&client, request.entry.id).await? } else { None };
                match page {
                    Some(page) => together::ask(out, &page, words(&request), HEADER_ROWS).await,
                    // Another window has decided on the others.
                    None if is_one_page => Ok(Choice::Each),
                    None => {
                        review::ask(out, &Subject::with_diff(&request, &client), words(&request), HEADER_ROWS).await
                    }
                }
            }));
            return Ok(());
        }
        while let Some(event) = self.held.pop_front() {
            self.show(event)?;
        }
        Ok(())
    }

    /// Returns whether calls that one page can show with this one have not arrived yet.
    fn are_others_unseen(&self, entry: &WaitingEntry) -> bool {
        !self.by_themselves.contains(&entry.id) && calls_together(entry).iter().any(|other| !self.seen.contains(other))
    }

    /// Returns the calls that one page is to show with this one; none if the person decides on it by itself.
    fn waiting_with(&self, entry: &WaitingEntry) -> Vec<WaitingId> {
        let is_queued = |id: &WaitingId| self.queue.iter().any(|waiting| waiting.entry.id == *id);
        let all = calls_together(entry);
        let is_one_page = !self.by_themselves.contains(&entry.id) && all.iter().all(is_queued);
        if is_one_page { all } else { Vec::new() }
    }

    /// Ends an open question without a decision. The prompt gets what was typed.
    fn close_question(&mut self) -> Result<(), Error> {
        if self.question.take().is_none() {
            return Ok(());
        }
        self.was_closed = true;
        terminal_line::hold()?;
        self.out.line("")
    }

    /// Prints a line of the host about a request.
    fn say(&self, request: &Waiting, text: &str) -> Result<(), Error> {
        // A reason of another person may have brackets, too.
        let several = Some(self.together.len()).filter(|calls| *calls > 0);
        let offered = Offered { calls: several, ..Offered::default() };
        self.out.marked_line(&words(request).mark(offered), text)
    }
}

/// Returns the words of the question about a request.
fn words(request: &Waiting) -> Words {
    match &request.entry.details {
        Some(Details::Call(call)) => Words::Turn { position: call.position, of: call.of },
        _ => Words::Turn { position: 1, of: 1 },
    }
}

/// Waits for Ctrl-C; without a listener, forever.
async fn interrupt(interrupts: &mut Option<Signal>) {
    if let Some(interrupts) = interrupts
        && interrupts.recv().await.is_some()
    {
        return;
    }
    std::future::pending().await
}

/// Waits for the answer to a question; without one, forever.
async fn answer(question: &mut Option<Question>) -> Result<Choice, Error> {
    match question {
        Some(question) => question.await,
        None => std::future::pending().await,
    }
}
