//! The bound by which the host refused a request or a call.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A bound that is reached: the only source of the words and the fields of a refusal by a bound.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Bound {
    /// The counted objects, such as `schedules of ada`.
    pub name: String,
    /// The most that is possible.
    pub max: u64,
    /// The count; of a size, with what was refused.
    pub count: u64,
    /// RFC 3339: the time at which the bound has room again without an act of a person; null if there is no such time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends_at: Option<String>,
    /// The setting of `config.toml` with the bound; null for a bound of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setting: Option<String>,
    /// True if a change of the setting holds after a restart of the host only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub needs_restart: bool,
    /// The act that makes room.
    pub remedy: String,
}

impl Bound {
    /// Makes a bound from the name of the counted objects, the bound, their count, and the act that makes room.
    pub fn new(
        name: impl Into<String>,
        max: impl TryInto<u64>,
        count: impl TryInto<u64>,
        remedy: impl Into<String>,
    ) -> Self {
        let max = max.try_into().unwrap_or(u64::MAX);
        let count = count.try_into().unwrap_or(u64::MAX);
        Self {
            name: name.into(),
            max,
            count,
            ends_at: None,
            setting: None,
            needs_restart: false,
            remedy: remedy.into(),
        }
    }

    /// Adds the time at which there is room again, in RFC 3339.
    #[must_use]
    pub fn until(mut self, ends_at: impl Into<String>) -> Self {
        self.ends_at = Some(ends_at.into());
        self
    }

    /// Adds the name of the setting with the bound.
    #[must_use]
    pub fn setting(mut self, setting: &str) -> Self {
        self.setting = Some(setting.to_owned());
        self
    }

    /// Adds the name of the setting with the bound, which a host reads at its start only.
    #[must_use]
    pub fn setting_at_start(self, setting: &str) -> Self {
        Self { needs_restart: true, ..self.setting(setting) }
    }

    /// Returns whether the bound is used up.
    pub const fn is_reached(&self) -> bool {
        self.count >= self.max
    }

    /// Returns whether at least four fifths of the bound are used.
    pub const fn is_near(&self) -> bool {
        self.count.saturating_mul(5) >= self.max.saturating_mul(4)
    }

    /// Returns the next step: the act that makes room, and the setting.
    pub fn advice(&self) -> String {
        let Some(setting) = &self.setting else { return self.remedy.clone() };
        let then = if self.needs_restart { "restart the host" } else { "`ironctl config reload`" };
        format!("{}; or raise {setting} in config.toml, then {then}", self.remedy)
    }
}

impl fmt::Display for Bound {
    /// Writes `20 of at most 20 schedules of ada; there is room again at 2026-11-28T07:11:00Z`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of at most {} {}", self.count, self.max, self.name)?;
        match &self.ends_at {
            Some(ends_at) => write!(f, "; there is room again at {ends_at}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bound_says_count_end_setting_and_remedy() {
        let bound = Bound::new("schedules of ada", 20, 20_usize, "remove one");
        assert_eq!(
            (bound.to_string(), bound.advice()),
            ("20 of at most 20 schedules of ada".into(), "remove one".into())
        );
        let bound = bound.until("2026-11-28T07:11:00Z").setting("quota.schedules");
        let (said, advice) = (bound.to_string(), bound.advice());
        assert!(said.ends_with("there is room again at 2026-11-28T07:11:00Z"), "{said}");
        assert!(advice.starts_with("remove one; or raise quota.schedules"), "{advice}");
        assert_eq!(Bound::new("sizes", -1_i64, 1, "").max, u64::MAX, "a count is never below zero");
    }
}
