//! Named points at which a test build kills its own process, values that a test sets, and a record of statements. In any other build they
//! do nothing.
//!
//! Never part of a release: the feature `failpoints` is off by default, and only the test builds of host and sandbox enable it. See
//! `host/tests`.

/// Kills the process if the test requested this point; `IRONCLAW_FAILPOINT` names it. Stops the process once, until it gets `SIGCONT`, if
/// the file that `IRONCLAW_STOP_FILE` names has this point.
#[inline]
pub fn reach(point: &str) {
    #[cfg(feature = "failpoints")]
    {
        use nix::sys::signal::{Signal, kill, raise};
        if requested().as_deref() == Some(point) {
            let _ = kill(nix::unistd::getpid(), Signal::SIGKILL);
            std::process::abort();
        }
        if let Some(file) = std::env::var_os("IRONCLAW_STOP_FILE")
            && std::fs::read_to_string(&file).is_ok_and(|wanted| wanted == point)
            && std::fs::remove_file(&file).is_ok()
        {
            // To this thread: another one would take a while to stop it.
            let _ = raise(Signal::SIGSTOP);
        }
    }
    #[cfg(not(feature = "failpoints"))]
    let _ = point;
}

/// Returns by how many milliseconds a test shifted the clock of this process; 0 in any other build. `IRONCLAW_CLOCK_SHIFT_MS` is read
/// once, and the file that `IRONCLAW_CLOCK_SHIFT_FILE` names is read at each call.
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

/// Returns whether a test may shift the clock of this process while it runs.
#[inline]
pub fn shifts_clock() -> bool {
    #[cfg(feature = "failpoints")]
    {
        std::env::var_os("IRONCLAW_CLOCK_SHIFT_FILE").is_some()
    }
    #[cfg(not(feature = "failpoints"))]
    false
}

/// Returns the kind of principal that a test gives to the messages of an identity, instead of a person: `IRONCLAW_STUB_PRINCIPALS` has
/// pairs such as `loopback:robot=agent`, with blanks between. Only people send messages otherwise.
#[inline]
pub fn stub_principal(channel: &str, sender: &str) -> Option<String> {
    #[cfg(feature = "failpoints")]
    {
        let all = std::env::var("IRONCLAW_STUB_PRINCIPALS").ok()?;
        let mut pairs = all.split_ascii_whitespace().filter_map(|pair| pair.split_once('='));
        pairs.find(|(identity, _)| identity.split_once(':') == Some((channel, sender))).map(|(_, kind)| kind.to_owned())
    }
    #[cfg(not(feature = "failpoints"))]
    {
        let _ = (channel, sender);
        None
    }
}

/// Appends a prepared statement, and a zero byte, to the file that `IRONCLAW_STATEMENTS_FILE` names.
#[inline]
pub fn prepare(sql: &str) {
    #[cfg(feature = "failpoints")]
    {
        use std::io::Write;
        static FILE: std::sync::LazyLock<Option<std::fs::File>> = std::sync::LazyLock::new(|| {
            let path = std::env::var_os("IRONCLAW_STATEMENTS_FILE")?;
            std::fs::OpenOptions::new().append(true).open(path).ok()
        });
        if let Some(mut file) = FILE.as_ref() {
            // One write, because several threads append.
            let _ = file.write_all(format!("{sql}\0").as_bytes());
        }
    }
    #[cfg(not(feature = "failpoints"))]
    let _ = sql;
}

/// Returns the point that the test requested.
#[inline]
pub fn requested() -> Option<String> {
    #[cfg(feature = "failpoints")]
    return std::env::var("IRONCLAW_FAILPOINT").ok();
    #[cfg(not(feature = "failpoints"))]
    None
}
