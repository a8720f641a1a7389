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
        let mut wall = self.begin.map_or(from, |begin| begin.max(from)) + self.offset;
        if let Some(begin) = self.begin {
            let (shown_last, shown_first) = (begin + self.offset_before, begin + self.offset);
            let is_in_gap = |wall: i64| (shown_last..shown_first).contains(&wall);
            if begin >= from && times.first_from(shown_last).is_some_and(is_in_gap) {
                return Some(Some(begin));
            }
            if !times.counts_twice() {
                wall = wall.max(shown_last);
            }
        }
        let found = times.first_from(wall)? - self.offset;
        Some(self.end.is_none_or(|end| found < end).then_some(found))
    }
}
