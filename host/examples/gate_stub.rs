//! A minimal program for a jail: it knocks at the gate, waits until the gate opens, and performs the action of its argument.
//!
//! Only for tests and benches. See `host/tests/security/jail.rs`.

use ironclaw_jail::{GATE_DESCRIPTOR, LINK_DESCRIPTOR};
use std::io::{Read, Write};
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;

fn main() {
    let order = std::env::args().nth(1).unwrap_or_default();
    if order == "never-knock" {
        loop {
            std::thread::park();
        }
    }
    // SAFETY: the launcher gives every program these two descriptors, and no other code here has them.
    let (mut link, mut gate) =
        unsafe { (UnixStream::from_raw_fd(LINK_DESCRIPTOR), UnixStream::from_raw_fd(GATE_DESCRIPTOR)) };
    gate.write_all(&[1]).expect("process 1 of the jail listens at the gate");
    gate.read_exact(&mut [0]).expect("process 1 of the jail opens the gate");
    drop(gate);
    match order.as_str() {
        "abort" => std::process::abort(),
        "look" => {
            let places = ["/etc", "/proc", "/dev", "/sys", "/usr", "..", "/in/.."];
            let escape = places.map(|path| std::fs::read_dir(path).map_or(-1, |found| found.count() as i64));
            let seen = serde_json::json!({
                "pid": std::process::id(),
                "parent": std::os::unix::process::parent_id(),
                "variables": std::env::vars_os().count(),
                "here": std::env::current_dir().map(|path| path.display().to_string()).unwrap_or_default(),
                "descriptors": (0..64).filter(|fd| nix::fcntl::fcntl(borrow(*fd), nix::fcntl::F_GETFD).is_ok()).collect::<Vec<_>>(),
                "thread": std::thread::spawn(|| 42).join().ok(),
                "escape": escape,
                "hostname": nix::unistd::gethostname().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            });
            link.write_all(seen.to_string().as_bytes()).expect("the test reads");
        }
        "mark" => {
            let mark = std::env::args().nth(2).unwrap_or_default();
            std::fs::write("/workspace/mark", &mark).expect("the workspace can be written");
            link.write_all(b"m").expect("the test reads");
            let _ = link.read_to_end(&mut Vec::new());
            std::hint::black_box(mark);
        }
        "hide" => {
            // Hides its memory, as a sandbox does to protect its key from processes of the same uid. The host must still see it.
            nix::sys::prctl::set_dumpable(false).expect("a program may hide itself");
            link.write_all(b"h").expect("the test reads");
            let _ = link.read_to_end(&mut Vec::new());
        }
        "daemon" => {
            start_daemon();
            let _ = link.read_to_end(&mut Vec::new());
        }
        _ => {
            // Runs until the link closes.
            let mut sink = Vec::new();
            let _ = link.read_to_end(&mut sink);
        }
    }
}

/// Starts a daemon that outlives its parent: two forks, with a new session between them.
fn start_daemon() {
    // SAFETY: this program has one thread, so the memory of the children is consistent.
    if unsafe { libc::fork() } == 0 {
        // A jail refuses this call. The program then continues without a session.
        let _ = nix::unistd::setsid();
        // SAFETY: as above.
        if unsafe { libc::fork() } == 0 {
            loop {
                std::thread::park();
            }
        }
        std::process::exit(0);
    }
    nix::sys::wait::wait().expect("the first child ends");
}

fn borrow(descriptor: i32) -> std::os::fd::BorrowedFd<'static> {
    // SAFETY: the descriptor is used only to test whether it is open.
    unsafe { std::os::fd::BorrowedFd::borrow_raw(descriptor) }
}
