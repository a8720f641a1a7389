//! The treatment of times that have come: which of them run, and which are skipped.
//!
//! Pure: has no clock and no record. See `crate::runtime::schedules`, which performs the plan.

use ironclaw_calendar::Series;
use ironclaw_contract::seam::change::CatchUp;

/// A time is late from this many milliseconds on.
pub const LATE_MS: i64 = 60_000;

/// Passed times that run at most, with [`CatchUp::All`].
pub const RUNS_MAX: usize = 24;

/// Skipped times with a row of their own. Older ones share one row.
pub const ROWS_MAX: usize = 100;

/// Passed times that are counted at most.
const COUNTED_MAX: usize = 100_000;

/// The reason of a time that passed while the host was stopped.
pub const MISSED: &str = "missed";

/// The reason of a time at which an earlier occurrence still runs.
pub const OVERLAPS: &str = "overlaps";

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
    /// The first time after now; `None` if there is none.
    pub next: Option<i64>,
}

/// Plans the times from `first`, which is the recorded next time, up to `now`.
///
/// A time that came in the last minute runs. For older ones the policy decides. Times before `first` never run, also if the clock was
/// set back.
pub fn plan(series: &Series, first: i64, now: i64, catch_up: CatchUp) -> Plan {
    let next = series.next_after(now.max(first));
    if now < first {
        return Plan { come: Vec::new(), next: Some(first) };
    }
    let kept = RUNS_MAX + ROWS_MAX;
    let mut last = series.last_between(first - 1, now, kept);
    if last.is_empty() {
        // The recurrence no longer has the recorded time, which stays due.
        last.push(first);
    }
    let mut come: Vec<(i64, Fate)> = Vec::with_capacity(last.len() + 1);
    let older = last[0];
    if older > first {
        let count = series.due_between(first - 1, older - 1, COUNTED_MAX).len();
        come.push((first, Fate::Skipped { reason: MISSED, count: count as u64 }));
    }
    let newest = last.len() - 1;
    let is_on_time = now - last[newest] < LATE_MS;
    for (at, due) in last.iter().enumerate() {
        let is_newest = at == newest;
        let runs = match catch_up {
            CatchUp::Skip => is_newest && is_on_time,
            CatchUp::Once => is_newest,
            CatchUp::All => at + RUNS_MAX > newest,
        };
        let reason = if now - due < LATE_MS { OVERLAPS } else { MISSED };
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

    #[test]
    fn time_that_is_on_time_runs_under_each_policy() {
        for policy in [CatchUp::Skip, CatchUp::Once, CatchUp::All] {
            let plan = plan(&hourly(), 5 * HOUR, 5 * HOUR + LATE_MS - 1, policy);
            assert_eq!((runs(&plan), skipped(&plan), plan.next), (vec![5], 0, Some(6 * HOUR)), "{policy:?}");
        }
    }

    #[test]
    fn host_that_was_down_over_three_times_follows_the_policy() {
        let of = |policy| plan(&hourly(), 5 * HOUR, 7 * HOUR + HOUR / 2, policy);
        let (skip, once, all) = (of(CatchUp::Skip), of(CatchUp::Once), of(CatchUp::All));
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
    fn clock_that_goes_back_runs_nothing_again() {
        let plan = plan(&hourly(), 9 * HOUR, 7 * HOUR, CatchUp::All);
        assert_eq!((plan.come, plan.next), (Vec::new(), Some(9 * HOUR)));
    }

    #[test]
    fn long_stop_makes_a_bounded_number_of_rows() {
        let now = 20_000 * HOUR + HOUR / 2;
        for (policy, most) in [(CatchUp::Skip, 0), (CatchUp::Once, 1), (CatchUp::All, RUNS_MAX)] {
            let plan = plan(&hourly(), HOUR, now, policy);
            assert_eq!(runs(&plan).len(), most, "{policy:?}");
            assert_eq!(plan.come.len(), most + ROWS_MAX, "{policy:?}");
            assert_eq!(skipped(&plan) + most as u64, 20_000, "{policy:?}");
            assert_eq!(plan.come[0].0, HOUR, "the joined row has the first time");
            assert!(plan.come.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
    }
}
