//! Schedules under restarts: a record that is opened again and again, and a daemon that is stopped and killed, while the clock
//! runs, jumps and goes back. Each time has one row, and none is early.
//!
//! Each run prints its seed, and `IRONCLAW_SEED` repeats the run. `IRONCLAW_REOPENINGS` and `IRONCLAW_RESTARTS` set the lengths.
//! See `kill`.
#![allow(clippy::print_stdout)] // the printed seed repeats a failed run

use crate::chaos::kill::run_settings;
use crate::e2e::schedule_faults::clocked::{Clocked, HOUR_MS, due};
use crate::support::host_fixture::{Build, TestHost, wait_for};
use crate::support::many_schedules::{make_schedules, row};
use crate::support::processes::wake_ups;
use crate::support::record;
use fastrand::Rng;
use ironclaw_calendar::{Recurrence, Series, Zone};
use ironclaw_contract::ids::{BootId, ScheduleId};
use ironclaw_contract::seam::change::CatchUp;
use ironclaw_host::driven::runs::{Context, consume_due_at, outcome};
use ironclaw_host::driven::schedules as table;
use ironclaw_host::driven::{
    ApprovalConfig, Error, HostPolicy, LiveSettings, Policy, Record, find_agent, items, owner,
};
use ironclaw_state::State;
use ironclaw_state::keys::MasterKey;
use ironclaw_state::seal::Sealer;
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The number of openings without `IRONCLAW_REOPENINGS`.
const REOPENINGS: u64 = 100;
/// The openings of one record. An opening checks each page, and no host drops old rows of this record meanwhile.
const REOPENINGS_OF_A_RECORD: u64 = 250;
/// The number of restarts without `IRONCLAW_RESTARTS`.
const RESTARTS: u64 = 4;
/// An instant in the past, so that no real time is near the tested ones: 2026-01-01T00:00:00Z.
const BEGUN: i64 = 1_767_225_600_000;
const MINUTE_MS: i64 = 60_000;
/// More rows than one opening adds to a schedule.
const ROWS: usize = 200;
/// Schedules of a host that sleeps.
const MANY: usize = 10_000;
/// Time without a wake-up.
const QUIET: Duration = Duration::from_secs(3);

/// A schedule of the record, and the times that have rows.
struct Tested {
    id: ScheduleId,
    series: Series,
    covered: BTreeSet<i64>,
    /// The newest row that was looked at.
    ordinal: i64,
}

/// A record without a host, with a clock of its own.
struct Reopened {
    directory: tempfile::TempDir,
    master: Arc<MasterKey>,
    tested: Vec<Tested>,
    clock: i64,
    latest: i64,
}

fn series(recurrence: Recurrence, zone: &str) -> Series {
    Series { recurrence, zone: Zone::parse(zone).expect("a zone"), anchor: BEGUN }
}

fn settings() -> LiveSettings {
    LiveSettings {
        policy: Policy::default(),
        host_policy: HostPolicy {
            receiver: Default::default(),
            zone: Default::default(),
            mounts: Vec::new(),
            linked: Vec::new(),
            private: Vec::new(),
            packages: Default::default(),
            budget: Default::default(),
            egress: Default::default(),
        },
        approval: ApprovalConfig::default(),
        quota: Default::default(),
        agents: Default::default(),
        session: Default::default(),
        turn: Default::default(),
        channels: Default::default(),
    }
}

impl Reopened {
    /// Makes a record of these bytes.
    fn new(bytes: &[u8], master: &Arc<MasterKey>) -> Self {
        let directory = record::directory();
        let new = Self { directory, master: Arc::clone(master), tested: Vec::new(), clock: BEGUN, latest: BEGUN };
        std::fs::write(new.path(), bytes).expect("written");
        new
    }

    fn path(&self) -> PathBuf {
        self.directory.path().join("state.db")
    }

    async fn open(&self) -> Arc<Record> {
        let state = State::open(&self.path(), &self.master.state_key()).expect("the state opens");
        let sealer = Sealer::new(BootId::new()).expect("a sealer");
        let retention = items::Config::default();
        Arc::new(Record { state, sealer, wrapping: self.master.wrapping_key(), retention })
    }
    async fn add(&mut self, catch_up: CatchUp, series: Series) {
        let record = self.open().await;
        let own = series.clone();
        let insert = record.state.write(move |tx| {
            let agent = find_agent(tx, "a")?.expect("an agent");
            let owner = owner(tx)?.expect("an owner");
            let row = row((agent.id, owner), &own, catch_up);
            table::insert(tx, &row)?;
            Ok::<_, ironclaw_state::Error>(row.id)
        });
        let id = insert.await.expect("inserted");
        record.state.close().await;
        self.tested.push(Tested { id, series, covered: BTreeSet::new(), ordinal: 0 });
    }
    async fn add_schedules(&mut self) {
        let cron = |text| Recurrence::cron(text).expect("an expression");
        let every = |text| Recurrence::every(text).expect("an interval");
        self.add(CatchUp::Skip, series(every("90m"), "UTC")).await;
        self.add(CatchUp::Once, series(cron("*/20 * * * *"), "Australia/Lord_Howe")).await;
        self.add(CatchUp::All, series(cron("30 2,8 * * *"), "Europe/Berlin")).await;
        self.add(CatchUp::All, series(every("1d"), "America/New_York")).await;
    }

    fn move_clock(&mut self, rng: &mut Rng) {
        self.clock += match rng.u64(..10) {
            0 => -rng.i64(0..2 * HOUR_MS),
            1 => rng.i64(0..72 * HOUR_MS),
            2 | 3 => rng.i64(0..6 * HOUR_MS),
            _ => rng.i64(0..40 * MINUTE_MS),
        };
        self.latest = self.latest.max(self.clock);
    }

    /// Opens the record, consumes what is due, and sometimes fails before the commit or ends the runs.
    async fn step(&mut self, rng: &mut Rng) {
        let record = self.open().await;
        let now = self.clock;
        let found = record.state.read(move |tx| table::due(tx, now, usize::MAX >> 1)).await.expect("read");
        for id in found {
            if rng.u64(..4) == 0 {
                let failed = self.consume(&record, id, true).await;
                assert!(failed.is_err(), "it is rolled back");
            }
            self.consume(&record, id, false).await.expect("consumed");
        }
        if rng.bool() {
            let ended = record.state.write(|tx| {
                for open in table::open(tx)?.into_iter().filter(|open| open.message.is_some()) {
                    let row = table::find(tx, open.schedule)?.expect("its schedule");
                    outcome::settle(tx, &row, &open, table::OccurrenceState::Failed, Some("no_answer"), None)?;
                }
                Ok::<_, ironclaw_state::Error>(())
            });
            ended.await.expect("ended");
        }
        for at in 0..self.tested.len() {
            self.check(&record, at).await;
        }
        record.state.close().await;
    }

    /// Consumes the times of a schedule; `fails` loses the transaction.
    async fn consume(&self, record: &Arc<Record>, id: ScheduleId, fails: bool) -> Result<(), Error> {
        let (own, now) = (Arc::clone(record), self.clock);
        let consumed = record.state.write(move |tx| {
            let settings = settings();
            let context = Context { record: &own, settings: &settings, sessions_max: 100, is_stopped: false };
            consume_due_at(tx, &context, id, now)?;
            if fails { Err(Error::Stopping) } else { Ok(()) }
        });
        consumed.await
    }

    /// Checks the new rows of a schedule, and that each time up to the latest one has a row.
    async fn check(&mut self, record: &Arc<Record>, at: usize) {
        let tested = &mut self.tested[at];
        let (id, ordinal) = (tested.id, tested.ordinal);
        let (row, new) = record
            .state
            .read(move |tx| {
                let all = table::occurrences_of(tx, id, ROWS)?.into_iter();
                let new: Vec<_> = all.filter(|one| one.ordinal > ordinal).collect();
                Ok::<_, ironclaw_state::Error>((table::find(tx, id)?.expect("its row"), new))
            })
            .await
            .expect("read");
        for one in &new {
            let times = tested.series.due_between(one.due - 1, i64::MAX, one.count as usize);
            assert_eq!(times[0], one.due, "{id}: a row of no time: {one:?}");
            for time in times {
                assert!(tested.covered.insert(time), "{id}: a second row of {time}: {one:?}");
                assert!(time <= self.latest, "{id}: a row before its time: {one:?}");
            }
            tested.ordinal = tested.ordinal.max(one.ordinal);
        }
        let last = tested.covered.last().copied().unwrap_or(BEGUN);
        assert_eq!(row.next_due, tested.series.next_after(self.latest.max(BEGUN)), "{id}");
        assert!(tested.series.due_between(last, self.latest, 1).is_empty(), "{id}: a time after {last} has no row");
    }
}

#[test]
fn record_opened_again_and_again_has_one_row_for_each_time() {
    let (seed, reopenings) = run_settings("IRONCLAW_REOPENINGS", REOPENINGS);
    let mut rng = Rng::with_seed(seed);
    let host = TestHost::own(Build::Plain).started_with("a");
    host.down();
    let master = Arc::new(record::master(&host.home));
    let path = host.home.join("state.db");
    let first = std::fs::read(&path).expect("a record");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut left = reopenings;
    while left > 0 {
        let openings = left.min(REOPENINGS_OF_A_RECORD);
        left -= openings;
        let mut reopened = Reopened::new(&first, &master);
        runtime.block_on(async {
            reopened.add_schedules().await;
            for _ in 0..openings {
                reopened.move_clock(&mut rng);
                reopened.step(&mut rng).await;
            }
        });
        for tested in &reopened.tested {
            let times = tested.series.due_between(BEGUN, reopened.latest, usize::MAX);
            assert_eq!(tested.covered, times.into_iter().collect(), "{}", tested.id);
        }
        std::fs::write(&path, std::fs::read(reopened.path()).expect("a record")).expect("written");
        host.ctl(&["audit", "verify"]).ok();
    }
    host.up();
    host.ctl(&["audit", "verify"]).ok();
}

/// Asks the kernel for the wake-ups and never the host.
#[test]
fn host_with_ten_thousand_schedules_sleeps_until_one_is_due() {
    let host = TestHost::own(Build::Plain).started_with("a");
    host.down();
    let anchor = jiff::Timestamp::now().as_millisecond();
    let daily = Series { anchor, ..series(Recurrence::every("1d").expect("an interval"), "UTC") };
    make_schedules(&host, "a", MANY, &daily);
    host.up();
    let pid = host.pid().expect("it runs");
    wait_for("some seconds without a wake-up", || {
        let before = wake_ups(pid);
        std::thread::sleep(QUIET);
        let after = wake_ups(pid);
        // A thread that ended meanwhile is not counted.
        after.iter().all(|(thread, count)| before.get(thread) == Some(count))
    });
    // A control: an answer wakes the host.
    let before = wake_ups(pid);
    assert_eq!(host.status()["host"]["pid"], pid);
    assert_ne!(wake_ups(pid), before);
}

#[test]
fn restarted_daemon_has_one_row_for_each_time() {
    let (seed, restarts) = run_settings("IRONCLAW_RESTARTS", RESTARTS);
    let mut rng = Rng::with_seed(seed);
    let mut clocked = Clocked::new("");
    let policies = ["skip", "once", "all"];
    let ids = policies.map(|policy| clocked.add("echo water", &["--every", "1h", "--catch-up", policy]));
    let first = ids.each_ref().map(|id| clocked.next(id).expect("a time"));
    let mut latest = clocked.now();
    for _ in 0..restarts {
        let to = clocked.now() + if rng.u64(..4) == 0 { -rng.i64(0..HOUR_MS) } else { rng.i64(0..5 * HOUR_MS) };
        if rng.bool() {
            clocked.host.kill_host();
        } else {
            clocked.host.down();
        }
        clocked.set_clock(to);
        clocked.host.up();
        clocked.catch_up();
        latest = latest.max(clocked.now());
        for (id, first) in ids.iter().zip(first) {
            // Times between the check and the latest time have come since.
            let history = clocked.history(id);
            let rows: Vec<i64> = due(&history);
            let expected: Vec<i64> = (0..).map(|n| first + n * HOUR_MS).take(rows.len()).collect();
            assert_eq!(rows, expected, "a time has no row, or two");
            assert!(rows.len() as i64 > (latest - first - MINUTE_MS).div_euclid(HOUR_MS));
            // A time that was only missed comes again after the clock was set back, also before one that ran.
            let next = clocked.next(id).expect("a time");
            let row = history.iter().zip(&rows).find(|(_, due)| **due == next);
            assert!(row.is_none_or(|(one, _)| one["reason"] == "missed"), "{next}: {history:?}");
            assert!(next <= first + rows.len() as i64 * HOUR_MS && next > clocked.now() - MINUTE_MS, "{next}");
        }
    }
    for id in &ids {
        let history = clocked.settled(id, clocked.history(id).len());
        let messages: BTreeSet<&str> = history.iter().filter_map(|one| one["message"].as_str()).collect();
        let runs = history.iter().filter(|one| one["message"] != Value::Null).count();
        assert_eq!(messages.len(), runs, "two times share a message");
        assert!(history.iter().all(|one| ["done", "skipped"].contains(&one["state"].as_str().unwrap_or_default())));
    }
    clocked.host.ctl(&["audit", "verify"]).ok();
}
