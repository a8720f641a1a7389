//! The wait of a call for people who are present: the pause of its turn, and the result if no one decides in time.
//!
//! Decides nothing. A pause is bounded for the whole turn, and the deadline of the turn moves by it. See [`crate::gateway::requests`].

use super::open_turn;
use crate::calls::executor::{Place, When};
use crate::calls::model_socket::Server;
use crate::gateway::requests::{self, Row};
use crate::gateway::waiting::{self, Gateway, Status};
use crate::registry;
use crate::registry::tools;
use crate::turns::calls::{self, CallRow, CallState, ResultBody, ResultTarget, Runs};
use crate::turns::context::Unanswered;
use crate::turns::items;
use ironclaw_contract::ids::{CallId, ItemId, TurnId};
use ironclaw_contract::seam::message::Author;
use ironclaw_judge::provenance::{Labelled, Labels, Provenance};
use ironclaw_ledger::Entry;
use ironclaw_operator::{DenialCode, LedgerEvent};
use ironclaw_state::{ReadTx, failpoint};
use ironclaw_store::error::Error;
use ironclaw_store::tables::{messages, turns, waiting as table};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The part of a turn's rest that stays for its answer, after a request.
const AFTER_REQUEST: Duration = Duration::from_secs(5);

/// The wait until the sandbox has the moved deadline. It reads the deadline again only after the call has its result.
const PROJECTION_TIME_MAX: Duration = Duration::from_secs(2);

/// The age of a turn up to which a call waits for a client that may still be about to follow it. A client opens the stream of a message
/// after it has sent the message.
const ARRIVAL_TIME_MAX: Duration = Duration::from_secs(1);

/// The name in the record of an inline page of a chat.
const IN_CHAT: &str = "chat";

/// The step after a look at a call that the host runs.
enum Step {
    /// It has its result, or another task runs it.
    Leave,
    Run,
    RunApproved,
    /// People approved it, and its model makes it again.
    Release,
    /// It waits for people, and one of them is present; with the rest of the turn's pause.
    Wait(Duration),
    /// It waits for people, and the turn does not wait for them.
    Tell(Box<Row>),
    /// It waits for people, and none of them is present.
    Absent(Box<Row>),
    /// People said no, or the request is over.
    Refuse(DenialCode),
}

/// What became of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ran {
    /// It has its result, or its turn ended.
    Ended,
    /// People are asked about it again.
    AskedAgain,
}

impl Server {
    /// Runs a permitted or approved call, or waits for people who are present. Afterwards the call has a result, unless its turn ended.
    pub(super) async fn run_awaited(&self, turn: TurnId, call: CallId) -> Result<(), Unanswered<Error>> {
        // Each further round needs another yes of a person, for a call whose facts changed after the last one.
        while self.run_or_wait(turn, call).await? == Ran::AskedAgain {}
        Ok(())
    }

    /// Waits for people once, and runs the call if they approve it.
    async fn run_or_wait(&self, turn: TurnId, call: CallId) -> Result<Ran, Unanswered<Error>> {
        let mut changed = self.shared.executor.gateway.watch();
        let mut people = self.shared.executor.gateway.presence.watch();
        let mut pause: Option<Pause> = None;
        let done = loop {
            changed.mark_unchanged();
            people.mark_unchanged();
            let is_over = pause.as_ref().is_some_and(|pause| Instant::now() >= pause.until);
            match self.next_step(turn, call, is_over).await? {
                Step::Wait(rest) => {
                    let pause = match &pause {
                        Some(pause) => pause,
                        None => pause.insert(self.begin_pause(turn, call, rest).await?),
                    };
                    tokio::select! {
                        _ = changed.changed() => {}
                        _ = people.changed() => {}
                        () = tokio::time::sleep_until(pause.until) => {}
                    }
                }
                // A pause happened, so a person was there and left: it does not wait again.
                Step::Absent(_) if pause.is_none() && !self.arrival_time(turn).is_zero() => {
                    tokio::select! {
                        _ = changed.changed() => {}
                        _ = people.changed() => {}
                        () = tokio::time::sleep(self.arrival_time(turn)) => {}
                    }
                }
                step => break step,
            }
        };
        if let Some(pause) = pause {
            self.end_pause(turn, &pause).await?;
        }
        match done {
            Step::Run | Step::RunApproved => {
                let was_asked = matches!(done, Step::RunApproved);
                let left = self.shared.turns.deadlines.left(self.session, turn).saturating_sub(AFTER_REQUEST);
                let place = Place { session: self.session, turn, call, key: Arc::clone(&self.key) };
                let over = self.shared.turns.partial_outputs.over_for_call(self.session, turn);
                self.shared.executor.run(place, When::InTurn, left, over).await?;
                if was_asked {
                    return self.was_asked_again(call).await;
                }
            }
            Step::Release => {
                let place = Place { session: self.session, turn, call, key: Arc::clone(&self.key) };
                self.shared.executor.release(place).await?;
            }
            Step::Tell(row) | Step::Absent(row) => self.notify_pending(turn, *row).await?,
            Step::Refuse(code) => self.refuse_asked(turn, call, code).await?,
            Step::Leave | Step::Wait(_) => {}
        }
        Ok(Ran::Ended)
    }

    /// Lets the worker of ends look for a call that waits from now on.
    fn watch_end(&self) {
        self.shared.executor.gateway.bells.ends.notify_one();
    }

    /// Returns whether a call that was to run waits for people again.
    async fn was_asked_again(&self, call: CallId) -> Result<Ran, Unanswered<Error>> {
        let waits = self.state().read(move |tx| {
            let pending = requests::find_by_call(tx, call)?.filter(|request| request.status == Status::Pending);
            Ok::<_, Error>(pending.is_some())
        });
        Ok(if waits.await? { Ran::AskedAgain } else { Ran::Ended })
    }

    /// Returns the rest of the time in which a client may still come for this turn.
    fn arrival_time(&self, turn: TurnId) -> Duration {
        if self.shared.executor.gateway.presence.is_closed() {
            return Duration::ZERO;
        }
        let whole = Duration::from_secs(u64::from(self.shared.turns.config().seconds_max));
        let age = whole.saturating_sub(self.shared.turns.deadlines.left(self.session, turn));
        ARRIVAL_TIME_MAX.saturating_sub(age)
    }

    /// Returns the step for a call. After the end of its pause, a call waits no longer.
    async fn next_step(&self, turn: TurnId, call: CallId, is_over: bool) -> Result<Step, Unanswered<Error>> {
        let (session, shared) = (self.session, Arc::clone(&self.shared));
        self.state()
            .read(move |tx| {
                let open = open_turn(tx, &shared.turns.deadlines, session, turn)?;
                let found = calls::find(tx, call)?.filter(|row| row.session == session && row.turn == turn);
                let Some(row) = found.filter(is_waiting) else { return Ok(Step::Leave) };
                if row.state == CallState::Permitted {
                    return Ok(Step::Run);
                }
                let Some(request) = requests::find_by_call(tx, call)? else {
                    return Ok(Step::Refuse(DenialCode::CallNeedsPerson));
                };
                let wait_ms = i64::from(shared.executor.settings.now().approval.wait_seconds) * 1000;
                let rest = Duration::from_millis(u64::try_from(wait_ms - open.waited_ms).unwrap_or(0));
                Ok::<_, Unanswered<Error>>(match request.status {
                    Status::Approved if tools::is_made_again(&row.tool) => Step::Release,
                    Status::Approved => Step::RunApproved,
                    Status::Pending | Status::Doubtful if is_over || rest.is_zero() => Step::Tell(Box::new(request)),
                    Status::Pending | Status::Doubtful if is_present(tx, &shared.executor.gateway, &request)? => {
                        Step::Wait(rest)
                    }
                    Status::Pending | Status::Doubtful => Step::Absent(Box::new(request)),
                    Status::Rejected => Step::Refuse(DenialCode::CallRejected),
                    Status::Expired => Step::Refuse(DenialCode::CallExpired),
                    Status::Withdrawn => Step::Refuse(DenialCode::CallWithdrawn),
                    Status::Running | Status::Done | Status::Failed | Status::Queued | Status::Unknown => {
                        Step::Refuse(DenialCode::CallRepeated)
                    }
                })
            })
            .await
    }

    /// Begins the pause of a turn: its deadline moves by the rest of the pause, also for its sandbox.
    async fn begin_pause(&self, turn: TurnId, call: CallId, rest: Duration) -> Result<Pause, Unanswered<Error>> {
        self.watch_end();
        let began = Instant::now();
        let moved = self.shared.turns.deadlines.extend(self.session, turn, rest);
        if let Some(moved) = moved {
            // A sandbox that does not get it in time ends the turn by its own clock, with a notice.
            let _ = tokio::time::timeout(PROJECTION_TIME_MAX, moved).await;
        }
        let told = self.state().write(move |tx| {
            if let Some(row) = requests::find_by_call(tx, call)? {
                table::record_notified(tx, row.waiting_id(), IN_CHAT)?;
            }
            Ok::<_, Error>(())
        });
        told.await?;
        failpoint::reach("call_paused");
        Ok(Pause { began, until: began + rest, rest })
    }

    /// Ends the pause of a turn: the host counts only the time that passed, and stores it.
    async fn end_pause(&self, turn: TurnId, pause: &Pause) -> Result<(), Unanswered<Error>> {
        let waited = pause.began.elapsed().min(pause.rest);
        self.shared.turns.deadlines.shorten(self.session, turn, pause.rest - waited);
        let ms = i64::try_from(waited.as_millis()).unwrap_or(i64::MAX);
        Ok(self.state().write(move |tx| Ok::<_, Error>(turns::add_wait(tx, turn, ms)?)).await?)
    }

    /// Gives a call the result that it waits for people. The model continues without it.
    async fn notify_pending(&self, turn: TurnId, row: Row) -> Result<(), Unanswered<Error>> {
        self.watch_end();
        let text = pending_text(&row);
        let (shared, session, key) = (Arc::clone(&self.shared), self.session, Arc::clone(&self.key));
        let tell = self.state().write(move |tx| {
            let found = calls::find(tx, row.call)?.filter(|call| call.turn == turn && call.result.is_none());
            let Some(call) = found.filter(|call| call.state == CallState::Asked) else { return Ok::<_, Error>(()) };
            let target = ResultTarget { session, turn, key: &key, sealer: &shared.record().sealer };
            let result = ResultBody::failed(text);
            let result = Labelled::new(&result, about_output(tx, call.output)?);
            let item = calls::record_result(tx, &target, call.id, &call.tool, Author::Host, result)?;
            Ok(turns::set_pending_result(tx, call.id, item.tuple.item)?)
        });
        tell.await?;
        failpoint::reach("call_pending");
        Ok(())
    }

    /// Refuses a call whose request ended without a yes.
    async fn refuse_asked(&self, turn: TurnId, call: CallId, code: DenialCode) -> Result<(), Unanswered<Error>> {
        let (shared, session, key) = (Arc::clone(&self.shared), self.session, Arc::clone(&self.key));
        let refuse = self.state().write(move |tx| {
            let found = calls::find(tx, call)?.filter(|row| row.turn == turn && row.result.is_none());
            let Some(row) = found.filter(|row| row.state == CallState::Asked) else { return Ok::<_, Error>(()) };
            let outcome = requests::find_by_call(tx, call)?.and_then(|request| request.outcome).unwrap_or_default();
            let target = ResultTarget { session, turn, key: &key, sealer: &shared.record().sealer };
            let result = calls::refusal(code, &outcome);
            let result = Labelled::new(&result, about_output(tx, row.output)?);
            let item = calls::record_result(tx, &target, row.id, &row.tool, Author::Host, result)?;
            let stages = calls::judgement_of(tx, row.id)?.map(|judgement| judgement.stages).unwrap_or_default();
            calls::refuse(tx, row.id, code, &stages, item.tuple.item)?;
            let entry = Entry::new(LedgerEvent::CallRefused).session(session).turn(turn).with("call", row.id);
            entry.with("tool", row.tool).reason(code.name()).append(tx)?;
            Ok(())
        });
        Ok(refuse.await?)
    }
}

/// Returns the result of a call that waits: the request, the reasons, and the step that the model may take.
fn pending_text(row: &Row) -> String {
    let codes = requests::codes(row);
    let names: Vec<&str> = codes.iter().map(|code| code.name()).collect();
    let granting = codes.iter().find(|code| requests::is_for_grant(**code));
    let granting = granting.map_or_else(String::new, |code| {
        format!(" To make such calls without a decision each time: {}.", calls::advice(*code))
    });
    let after = match tools::is_made_again(&row.tool) {
        true => "A later turn says when it may run; make it again then, and not before.",
        false => "You will be told in a later turn; do not make it again.",
    };
    format!(
        "pending {} ({}): a person has to decide about exactly this call. It has not run. {after} Do what you can without it, and say in \
         your answer that it waits.{granting}",
        row.id,
        names.join(", ")
    )
}

/// The pause of a turn whose call waits for people.
struct Pause {
    began: Instant,
    until: Instant,
    rest: Duration,
}

fn is_waiting(row: &CallRow) -> bool {
    let is_open = matches!(row.state, CallState::Permitted | CallState::Asked);
    row.runs == Some(Runs::Await) && is_open && row.result.is_none()
}

/// Returns whether a person who can remove a reason of the request follows a message of its turn and may decide there.
fn is_present(tx: &ReadTx<'_>, all: &Gateway, request: &Row) -> Result<bool, Error> {
    let Some(of) = waiting::find(tx, request.waiting_id())? else { return Ok(false) };
    for message in messages::for_turn(tx, request.turn)? {
        for person in all.presence.people_at(message) {
            if let Some(person) = registry::person_by_id(tx, person)?
                && all.kind(of.id).rights(tx, all, &person, &of)?.decides
            {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Returns the provenance of the host's words about an output.
fn about_output(tx: &ReadTx<'_>, output: ItemId) -> Result<Provenance, ironclaw_state::Error> {
    let output = items::find(tx, output)?;
    Ok(Provenance::HostAbout { output: output.map_or(Labels::NONE, |output| Labels::recorded(&output.tuple.labels)) })
}
