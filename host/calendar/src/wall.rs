//! The instants of wall times in a time zone, over its gaps and overlaps.
//!
//! A zone is a row of segments with one offset each. A wall time is the time that a clock of the zone shows, as
//! milliseconds since 1970-01-01T00:00 on this clock.

use crate::zone::Zone;
use jiff::Timestamp;

/// A set of wall times.
pub(crate) trait WallTimes {
    /// Returns the first wall time of the set that is not before this one.
    fn first_from(&self, wall: i64) -> Option<i64>;

    /// Returns the number of wall times of the set from this one on and before `end`.
    fn count(&self, wall: i64, end: i64) -> u64;

    /// Returns whether a wall time that a clock shows twice counts twice.
    fn counts_twice(&self) -> bool;
}

/// Returns the first instant of the set that is after this one.
///
/// A wall time in a gap counts at the first instant after the gap; all wall times of one gap count as one. A wall time
/// in an overlap counts at its first instant, and at its second one too if the set says so.
pub(crate) fn next_after(zone: &Zone, after: i64, times: &impl WallTimes) -> Option<i64> {
    let from = after.checked_add(1)?;
    let mut segment = Segment::at(zone, from)?;
    loop {
        if let Some(found) = segment.first_from(from, times)? {
            return Some(found);
        }
        segment = Segment::at(zone, segment.end?)?;
    }
}

/// Returns the number of instants of the set after `after` and not after `until`. The work depends on the segments and days in between,
/// and not on the number.
pub(crate) fn count_between(zone: &Zone, after: i64, until: i64, times: &impl WallTimes) -> u64 {
    let Some(from) = after.checked_add(1) else { return 0 };
    let end = until.saturating_add(1);
    let (mut at, mut count) = (from, 0);
    while at < end {
        let Some(segment) = Segment::at(zone, at) else { break };
        count += segment.count(from, end, times);
        let Some(next) = segment.end else { break };
        at = next;
    }
    count
}

/// A time with one offset to UTC; all in milliseconds.
struct Segment {
    /// The first instant; `None` if no transition is before it.
    begin: Option<i64>,
    /// The first instant after it.
    end: Option<i64>,
    offset: i64,
    /// The offset of the segment before it.
    offset_before: i64,
}

impl Segment {
    /// Returns the segment of an instant; `None` outside of the years -9999 to 9999.
    fn at(zone: &Zone, at_ms: i64) -> Option<Self> {
        let rules = zone.rules();
        let at = Timestamp::from_millisecond(at_ms).ok()?;
        let directly_after = Timestamp::from_millisecond(at_ms.checked_add(1)?).ok()?;
        let offset_at = |at: Timestamp| i64::from(rules.to_offset(at).seconds()) * 1000;
        let offset = offset_at(at);
        let begin = rules.preceding(directly_after).next().map(|transition| transition.timestamp().as_millisecond());
        let end = rules.following(at).next().map(|transition| transition.timestamp().as_millisecond());
        let before = begin.and_then(|begin| Timestamp::from_millisecond(begin - 1).ok());
        Some(Self { begin, end, offset, offset_before: before.map_or(offset, offset_at) })
    }

    /// Returns the first instant of the set in this segment that is not before `from`; `None` if the set has no later
    /// wall time.
    fn first_from(&self, from: i64, times: &impl WallTimes) -> Option<Option<i64>> {
        if let Some(begin) = self.due_after_gap(from, times) {
            return Some(Some(begin));
        }
        let found = times.first_from(self.first_wall(from, times))? - self.offset;
        Some(self.end.is_none_or(|end| found < end).then_some(found))
    }

    /// Returns the number of instants of the set in this segment that are not before `from` and before `end`.
    fn count(&self, from: i64, end: i64, times: &impl WallTimes) -> u64 {
        let wall_end = self.end.map_or(end, |own| own.min(end)).saturating_add(self.offset);
        let first = self.first_wall(from, times);
        match self.due_after_gap(from, times) {
            // The first wall time after the gap is the same instant.
            Some(begin) => 1 + times.count(first.max(begin + self.offset + 1), wall_end),
            None => times.count(first, wall_end),
        }
    }

    /// Returns the begin of this segment if it is not before `from` and the gap before it leaves out a wall time of the set.
    fn due_after_gap(&self, from: i64, times: &impl WallTimes) -> Option<i64> {
        let begin = self.begin.filter(|begin| *begin >= from)?;
        let left_out = begin + self.offset_before..begin + self.offset;
        times.first_from(left_out.start).is_some_and(|wall| left_out.contains(&wall)).then_some(begin)
    }

    /// Returns the first wall time of this segment that is not before `from` and that counts.
    fn first_wall(&self, from: i64, times: &impl WallTimes) -> i64 {
        let Some(begin) = self.begin else { return from + self.offset };
        let wall = begin.max(from) + self.offset;
        if times.counts_twice() { wall } else { wall.max(begin + self.offset_before) }
    }
}
