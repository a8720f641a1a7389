//! The treatment of times that have come: which of them run, and which are skipped.
//!
//! Pure: has no clock and no record. See `crate::runtime::schedules`, which performs the plan.

use ironclaw_calendar::Series;
use ironclaw_contract::seam::change::CatchUp;

/// A time that passed while the host was stopped is late from this many milliseconds on.
pub const LATE_MS: i64 = 60_000;

/// Passed times that run at most, with [`CatchUp::All`].
pub const RUNS_MAX: usize = 24;

/// Skipped times with a row of their own. Older ones share one row.
pub const ROWS_MAX: usize = 100;

/// The reason of a time that passed while the host was stopped.
pub const MISSED: &str = "missed";

/// The reason of a time at which an earlier occurrence still runs.
pub const OVERLAPS: &str = "overlaps";

/// The present, and the times at which the host was awake. Milliseconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    pub now: i64,
    /// The host has been awake since then. It reached each later time, be it with a delay.
    pub awake_since: i64,
    /// Each time up to this one was dealt with. The clock may have been set back since.
    pub attended: i64,
    /// Flag: the clock is trusted. One that jumped far ahead is not, for a while.
    pub is_trusted: bool,
}

impl Moment {
    /// Returns the first moment of a host that was stopped before.
    pub const fn first(now: i64) -> Self {
        Self { now, awake_since: now, attended: i64::MIN, is_trusted: true }
    }

    /// Returns whether a time passed while the host was stopped or asleep.
    pub const fn is_late(&self, due: i64) -> bool {
        self.awake_since.saturating_sub(due) >= LATE_MS
    }
}

/// The fate of a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It runs once the occurrence before it has ended.
    Runs,
    Skipped {
        reason: &'static str,
        /// The number of times that the row counts.
        count: u64,
    },
}

/// The times that have come, with their fates, and the next time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The times that have come, in order. Milliseconds since the epoch.
    pub come: Vec<(i64, Fate)>,
    /// The first time that is left; `None` if there is none.
    pub next: Option<i64>,
}

/// Plans the times from `first`, which is the recorded next time, up to now.
///
/// A time that the host reached while it was awake runs. For late ones the policy decides. Times before `first` never run, also if the
/// clock was set back. A late time that was dealt with before the clock was set back has no fate. Without trust in the clock, late times
/// that would run are left.
pub fn plan(series: &Series, first: i64, moment: &Moment, catch_up: CatchUp) -> Plan {
    let now = moment.now;
    if now < first {
        return Plan { come: Vec::new(), next: Some(first) };
    }
    let next = series.next_after(now);
    let before = (first - 1).max(moment.attended.min(moment.awake_since.saturating_sub(LATE_MS)));
    let last = series.last_between(before, now, RUNS_MAX + ROWS_MAX);
    let mut come: Vec<(i64, Fate)> = Vec::with_capacity(last.len() + 1);
    if let (Some(oldest), Some(first)) = (last.first(), series.next_after(before))
        && *oldest > first
    {
        let count = series.count_between(before, *oldest - 1);
        come.push((first, Fate::Skipped { reason: MISSED, count }));
    }
    for (at, due) in last.iter().enumerate() {
        let (is_newest, is_late) = (at + 1 == last.len(), moment.is_late(*due));
        let runs = match catch_up {
            CatchUp::Skip => is_newest && !is_late,
            CatchUp::Once => is_newest,
            CatchUp::All => at + RUNS_MAX >= last.len(),
        };
        if runs && is_late && !moment.is_trusted {
            return Plan { come: bounded(come), next: Some(*due) };
        }
        let reason = if is_late { MISSED } else { OVERLAPS };
        come.push((*due, if runs { Fate::Runs } else { Fate::Skipped { reason, count: 1 } }));
    }
    Plan { come: bounded(come), next }
}

/// Joins the oldest skipped times, so that at most [`ROWS_MAX`] have a row of their own.
fn bounded(come: Vec<(i64, Fate)>) -> Vec<(i64, Fate)> {
    let skipped = come.iter().take_while(|(_, fate)| *fate != Fate::Runs).count();
    let Some(joined) = skipped.checked_sub(ROWS_MAX).filter(|joined| *joined > 0) else { return come };
    let count = |fate: &Fate| match fate {
        Fate::Skipped { count, .. } => *count,
        Fate::Runs => 0,
    };
    let sum = come[..=joined].iter().map(|(_, fate)| count(fate)).sum();
    let first = (come[0].0, Fate::Skipped { reason: MISSED, count: sum });
    std::iter::once(first).chain(come[joined + 1..].iter().copied()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_calendar::{Recurrence, Zone};

    const HOUR: i64 = 3_600_000;

    fn hourly() -> Series {
        Series { recurrence: Recurrence::every("1h").expect("a period"), zone: Zone::utc(), anchor: 0 }
    }

    fn runs(plan: &Plan) -> Vec<i64> {
        plan.come.iter().filter(|(_, fate)| *fate == Fate::Runs).map(|(due, _)| due / HOUR).collect()
    }

    fn skipped(plan: &Plan) -> u64 {
        let count = |(_, fate): &(i64, Fate)| match fate {
            Fate::Skipped { count, .. } => *count,
            Fate::Runs => 0,
        };
        plan.come.iter().map(count).sum()
    }

    /// Plans for a host that was stopped before.
    fn stopped(first: i64, now: i64, catch_up: CatchUp) -> Plan {
        plan(&hourly(), first, &Moment::first(now), catch_up)
    }

    #[test]
    fn time_that_is_on_time_runs_under_each_policy() {
        for policy in [CatchUp::Skip, CatchUp::Once, CatchUp::All] {
            let plan = stopped(5 * HOUR, 5 * HOUR + LATE_MS - 1, policy);
            assert_eq!((runs(&plan), skipped(&plan), plan.next), (vec![5], 0, Some(6 * HOUR)), "{policy:?}");
        }
    }

    #[test]
    fn host_that_was_down_over_three_times_follows_the_policy() {
        let planned = |policy| stopped(5 * HOUR, 7 * HOUR + HOUR / 2, policy);
        let (skip, once, all) = (planned(CatchUp::Skip), planned(CatchUp::Once), planned(CatchUp::All));
        assert_eq!((runs(&skip), skipped(&skip)), (vec![], 3));
        assert_eq!((runs(&once), skipped(&once)), (vec![7], 2));
        assert_eq!((runs(&all), skipped(&all)), (vec![5, 6, 7], 0));
        for plan in [skip, once, all] {
            assert_eq!((plan.come.len(), plan.next), (3, Some(8 * HOUR)));
            let mut reasons = plan.come.iter().map(|(_, fate)| *fate);
            assert!(reasons.all(|fate| fate == Fate::Runs || fate == Fate::Skipped { reason: MISSED, count: 1 }));
        }
    }

    #[test]
    fn time_that_a_running_host_reaches_late_runs() {
        for policy in [CatchUp::Skip, CatchUp::Once, CatchUp::All] {
            let awake = Moment { awake_since: 5 * HOUR + LATE_MS - 1, ..Moment::first(5 * HOUR + HOUR / 2) };
            let plan = plan(&hourly(), 5 * HOUR, &awake, policy);
            assert_eq!((runs(&plan), skipped(&plan)), (vec![5], 0), "{policy:?}");
        }
        let awake = Moment { awake_since: 5 * HOUR + HOUR / 2, ..Moment::first(8 * HOUR) };
        let plan = plan(&hourly(), 4 * HOUR, &awake, CatchUp::Skip);
        let fate = |reason| Fate::Skipped { reason, count: 1 };
        let fates: Vec<Fate> = plan.come.iter().map(|(_, fate)| *fate).collect();
        assert_eq!(fates, [fate(MISSED), fate(MISSED), fate(OVERLAPS), fate(OVERLAPS), Fate::Runs]);
    }

    #[test]
    fn clock_that_goes_back_runs_nothing_again() {
        let plan = stopped(9 * HOUR, 7 * HOUR, CatchUp::All);
        assert_eq!((plan.come, plan.next), (Vec::new(), Some(9 * HOUR)));
    }

    #[test]
    fn late_time_from_before_a_clock_went_back_has_no_fate() {
        for (attended, left) in [(i64::MIN, vec![5, 6, 7, 8]), (6 * HOUR, vec![7, 8]), (20 * HOUR, vec![8])] {
            let moment = Moment { attended, ..Moment::first(8 * HOUR + 1) };
            let plan = plan(&hourly(), 5 * HOUR, &moment, CatchUp::All);
            assert_eq!((runs(&plan), skipped(&plan)), (left, 0), "{attended}");
        }
    }

    #[test]
    fn clock_without_trust_runs_no_late_time() {
        let now = 1_000 * HOUR + HOUR / 2;
        let untrusted = Moment { is_trusted: false, ..Moment::first(now) };
        for (policy, left, on_time) in
            [(CatchUp::Skip, 1_001, 1_000), (CatchUp::Once, 1_000, 1_000), (CatchUp::All, 977, 977)]
        {
            let plan = plan(&hourly(), HOUR, &untrusted, policy);
            assert_eq!((runs(&plan), plan.next), (vec![], Some(left * HOUR)), "{policy:?}");
            assert_eq!(skipped(&plan) as i64, left - 1, "{policy:?}: the others are missed");
            let at_the_time = Moment { now: 1_000 * HOUR, awake_since: 1_000 * HOUR, ..untrusted };
            let plan = super::plan(&hourly(), HOUR, &at_the_time, policy);
            let ran = if on_time == 1_000 { vec![1_000] } else { vec![] };
            assert_eq!(runs(&plan), ran, "{policy:?}");
        }
    }

    #[test]
    fn long_stop_makes_a_bounded_number_of_rows() {
        let now = 20_000 * HOUR + HOUR / 2;
        for (policy, most) in [(CatchUp::Skip, 0), (CatchUp::Once, 1), (CatchUp::All, RUNS_MAX)] {
            let plan = stopped(HOUR, now, policy);
            assert_eq!(runs(&plan).len(), most, "{policy:?}");
            assert_eq!(plan.come.len(), most + ROWS_MAX, "{policy:?}");
            assert_eq!(skipped(&plan) + most as u64, 20_000, "{policy:?}");
            assert_eq!(plan.come[0].0, HOUR, "the joined row has the first time");
            assert!(plan.come.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
    }

    #[test]
    fn history_counts_each_of_many_passed_minutes() {
        let minutes = Series { recurrence: Recurrence::every("1m").expect("a period"), ..hourly() };
        let count = 400 * 24 * 60;
        let plan = plan(&minutes, 60_000, &Moment::first(count * 60_000 + 59_999), CatchUp::Skip);
        assert_eq!((skipped(&plan) + 1, runs(&plan).len()), (count as u64, 1));
    }
}
