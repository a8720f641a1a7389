//! Named points at which a test build kills its own process. Does nothing, and is nothing, in any other build.
//!
//! Never compiled into a release: the feature `failpoints` is off by default and no dependency turns it on. Next: `host/tests/it`.

/// Dies here if the test asked for it; `IRONCLAW_FAILPOINT` names the point.
#[inline]
pub fn reach(point: &str) {
    #[cfg(feature = "failpoints")]
    if wanted().as_deref() == Some(point) {
        let _ = nix::sys::signal::kill(nix::unistd::getpid(), nix::sys::signal::Signal::SIGKILL);
        std::process::abort();
    }
    #[cfg(not(feature = "failpoints"))]
    let _ = point;
}

/// The point that the test asked for.
#[inline]
pub fn wanted() -> Option<String> {
    #[cfg(feature = "failpoints")]
    return std::env::var("IRONCLAW_FAILPOINT").ok();
    #[cfg(not(feature = "failpoints"))]
    None
}
