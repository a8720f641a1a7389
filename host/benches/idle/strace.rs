//! The number of system calls of a process, as counted by `strace`.
//!
//! Asks the kernel and never the process. See `main`.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

/// Returns the counts of `strace -c` in all threads during an action, or the reason why there is no count.
pub(crate) fn system_calls(pid: i32, meanwhile: impl FnOnce()) -> String {
    let table = std::env::temp_dir().join(format!("ironclaw-idle-{pid}"));
    let strace = Command::new("strace")
        .args(["-c", "-f", "-o"])
        .arg(&table)
        .args(["-p", &pid.to_string()])
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut strace) = strace else { return "strace is not installed here".to_owned() };
    let mut messages = BufReader::new(strace.stderr.take().expect("it is piped"));
    let mut line = String::new();
    // `strace` prints a line once it is attached to every thread.
    if messages.read_line(&mut line).is_err() || !line.contains("attached") {
        let _ = strace.wait();
        return format!("strace cannot attach: {}", line.trim());
    }
    meanwhile();
    // On this signal it detaches from the process and writes its table.
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(strace.id() as i32), nix::sys::signal::Signal::SIGINT);
    let _ = strace.wait();
    let text = std::fs::read_to_string(&table).unwrap_or_default();
    let _ = std::fs::remove_file(&table);
    let total = text.lines().find(|line| line.ends_with(" total")).and_then(|line| line.split_whitespace().nth(3));
    // `strace` prints no table if there was no call.
    total.unwrap_or("0").to_owned()
}
