//! The wall that a test build leaves out of every jail. Has no effect in any other build.
//!
//! Releases never contain it: the feature `failpoints` is off by default.

/// Returns the name of the wall that a test leaves out of every jail, from `IRONCLAW_WITHOUT_WALL`.
#[inline]
pub fn left_out_wall() -> Option<String> {
    #[cfg(feature = "failpoints")]
    return std::env::var("IRONCLAW_WITHOUT_WALL").ok();
    #[cfg(not(feature = "failpoints"))]
    None
}
