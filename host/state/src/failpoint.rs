//! Named points at which a test build kills its own process. Does nothing, and is nothing, in any other build.
//!
//! Never compiled into a release: the feature `failpoints` is off by default; only the test builds of host and sandbox turn it on. Next: `host/tests`.

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

/// By how much a test has set this process's clock, in milliseconds; nothing in any other build. `IRONCLAW_CLOCK_SHIFT_MS` says it
/// for the whole life of a process, and the file that `IRONCLAW_CLOCK_SHIFT_FILE` names says it anew each time.
#[inline]
pub fn clock_shift_ms() -> i64 {
    #[cfg(feature = "failpoints")]
    {
        static SHIFT: std::sync::LazyLock<i64> = std::sync::LazyLock::new(|| {
            std::env::var("IRONCLAW_CLOCK_SHIFT_MS").ok().and_then(|shift| shift.parse().ok()).unwrap_or(0)
        });
        static SHIFTED: std::sync::LazyLock<Option<std::path::PathBuf>> =
            std::sync::LazyLock::new(|| std::env::var_os("IRONCLAW_CLOCK_SHIFT_FILE").map(Into::into));
        let shifted = SHIFTED.as_deref().and_then(|file| std::fs::read_to_string(file).ok());
        *SHIFT + shifted.and_then(|shift| shift.trim().parse::<i64>().ok()).unwrap_or(0)
    }
    #[cfg(not(feature = "failpoints"))]
    0
}

/// The point that the test asked for.
#[inline]
pub fn wanted() -> Option<String> {
    #[cfg(feature = "failpoints")]
    return std::env::var("IRONCLAW_FAILPOINT").ok();
    #[cfg(not(feature = "failpoints"))]
    None
}
