//! A wall that a test build leaves out of every jail. Does nothing in any other build.
//!
//! Never compiled into a release: the feature `failpoints` is off by default.

/// Returns the name of the wall that a test leaves out of every jail; `IRONCLAW_WITHOUT_WALL` has it.
#[inline]
pub fn lowered() -> Option<String> {
    #[cfg(feature = "failpoints")]
    return std::env::var("IRONCLAW_WITHOUT_WALL").ok();
    #[cfg(not(feature = "failpoints"))]
    None
}
