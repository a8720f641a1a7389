//! Tests of the program, started as the launcher starts it: two descriptors, no environment, its own root directory.

use crate::host::{Host, LIMITS, call, welcome};
use ironclaw_contract::seam;
use ironclaw_contract::seam::link::{FromSandbox, GATE_FD, LINK_FD, Welcome};
use ironclaw_contract::seam::socket::{Request, Verdict};
use nix::sched::{CloneFlags, unshare};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Locked while a copy of the program is written and while a process is started. A process that is forked during the write would hold
/// the copy open for writing, and no process could execute it.
static FORK: Mutex<()> = Mutex::new(());

const PROGRAM: &str = env!("CARGO_BIN_EXE_ironclaw-sandbox");

#[test]
fn wrong_command_line_exits_with_2() {
    for arguments in [&["--help"][..], &["--fingerprint", "x"], &["session"], &[""], &[]] {
        let mut command = Command::new(PROGRAM);
        // SAFETY: the closure makes only system calls between fork and exec.
        unsafe {
            command.pre_exec(|| {
                // A build tool may have left these descriptors open.
                libc::close(LINK_FD);
                libc::close(GATE_FD);
                Ok(())
            });
        }
        let _alone = alone();
        let output = command.args(arguments).output().expect("runs");
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(String::from_utf8_lossy(&output.stderr).starts_with("usage: "), "{arguments:?}");
    }
}

#[test]
fn options_print_fingerprint_and_version() {
    let _alone = alone();
    let said = |argument| String::from_utf8(Command::new(PROGRAM).arg(argument).output().expect("runs").stdout);
    assert_eq!(said("--fingerprint").expect("UTF-8"), seam::fingerprint() + "\n");
    assert_eq!(said("--version").expect("UTF-8"), format!("ironclaw-sandbox {}\n", env!("CARGO_PKG_VERSION")));
}

fn alone() -> MutexGuard<'static, ()> {
    FORK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The program with its link and its gate, in a root directory with the files of the loader and the four directories.
struct Jailed {
    child: Child,
    link: Option<UnixStream>,
    gate: UnixStream,
}

impl Jailed {
    fn start(root: &Path) -> Self {
        Self::start_behind(root, None)
    }

    fn start_behind(root: &Path, filter: Option<BpfProgram>) -> Self {
        let _alone = alone();
        copy_program(root);
        let ((link, its_link), (gate, its_gate)) =
            (UnixStream::pair().expect("a pair"), UnixStream::pair().expect("a pair"));
        gate.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
        let mut command = Command::new("/program");
        command.env_clear().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let root = root.to_owned();
        // SAFETY: the closure makes only system calls between fork and exec, and uses nothing that another thread could hold.
        unsafe {
            command.pre_exec(move || {
                let both = [its_link.as_raw_fd(), its_gate.as_raw_fd()];
                // Duplicates both above all used numbers first, so that neither overwrites the other.
                let aside = both.map(|descriptor| libc::fcntl(descriptor, libc::F_DUPFD_CLOEXEC, 64));
                for (descriptor, number) in aside.into_iter().zip([LINK_FD, GATE_FD]) {
                    nix::errno::Errno::result(libc::dup2(descriptor, number))?;
                }
                if libc::geteuid() != 0 {
                    unshare(CloneFlags::CLONE_NEWUSER)?;
                }
                nix::unistd::chroot(&root)?;
                nix::unistd::chdir("/")?;
                filter
                    .as_ref()
                    .map_or(Ok(()), |filter| seccompiler::apply_filter(filter).map_err(std::io::Error::other))
            });
        }
        let child = command.spawn().expect("started");
        Self { child, link: Some(link), gate }
    }

    /// Opens the gate, as process 1 of the jail does.
    fn open_gate(&mut self) {
        self.gate.read_exact(&mut [0]).expect("the program is loaded");
        self.gate.write_all(b"!").expect("the program waits at the gate");
    }

    fn ended(&mut self) -> ExitStatus {
        self.child.wait().expect("ended")
    }
}

/// Copies the program and the libraries that `ldd` lists to the same paths below `root`.
fn copy_program(root: &Path) {
    std::fs::copy(PROGRAM, root.join("program")).expect("copied");
    let listed = Command::new("ldd").arg(PROGRAM).output().expect("ldd runs").stdout;
    for library in String::from_utf8(listed).expect("UTF-8").split_whitespace().filter(|word| word.starts_with('/')) {
        let target = root.join(library.trim_start_matches('/'));
        std::fs::create_dir_all(target.parent().expect("a parent directory")).expect("made");
        std::fs::copy(library, target).expect("copied");
    }
}

#[test]
fn confined_program_completes_a_turn() {
    let mut host = Host::prepare();
    let mut jailed = Jailed::start(host.root());
    jailed.open_gate();
    let hello = host.attach(jailed.link.take().expect("just made"));
    assert_eq!(hello.fingerprint, seam::fingerprint());
    let status = std::fs::read_to_string(format!("/proc/{}/status", jailed.child.id())).expect("read");
    for line in ["NoNewPrivs:\t1", "Seccomp:\t2", "Threads:\t1"] {
        assert!(status.contains(line), "{line}");
    }
    host.say(&welcome(LIMITS));
    host.bell();
    let message = host.project("hello");
    let turn = host.open(&[&message]);
    host.asked_to_generate();
    let calls = vec![
        call("write_file", r#"{"content":"needle\n","path":"a/b"}"#, Verdict::Local),
        call("search_files", r#"{"pattern":"need[a-z]e"}"#, Verdict::Local),
        call("list_dir", r#"{"path":"/workspace/a"}"#, Verdict::Local),
        call("schedule_task", r#"{"prompt":"p","recurrence":"daily"}"#, Verdict::Row),
    ];
    host.answer_output(0, calls);
    for expected in ["wrote 7 bytes", "a/b:1: needle\n", "file 7 b\n"] {
        match host.asked() {
            Request::Report { ok: true, body, .. } => assert!(body.starts_with(expected), "{body}"),
            other => panic!("{other:?}"),
        }
        host.answer_result(1);
    }
    host.bell();
    assert!(matches!(host.asked(), Request::Result { .. }));
    host.answer_result(1);
    host.asked_to_generate();
    let reply = host.answer_output(1, Vec::new());
    host.bell();
    assert_eq!(host.said().last(), Some(&(format!(r#"{{"reply":"{}"}}"#, reply.item), turn.turn.to_string())));
    host.close_link();
    assert_eq!(jailed.ended().code(), Some(0));
}

#[test]
fn incomplete_jail_is_reported_instead_of_a_hello() {
    let mut host = Host::prepare();
    std::fs::remove_dir(&host.paths.workspace).expect("removed");
    let mut jailed = Jailed::start(host.root());
    jailed.open_gate();
    host.set_link(jailed.link.take().expect("just made"));
    let FromSandbox::Fatal(fatal) = host.hear() else { panic!("hello from an incomplete jail") };
    assert!(fatal.fatal.starts_with("cannot lock down: Landlock"), "{}", fatal.fatal);
    assert_eq!(jailed.ended().code(), Some(1));
}

#[test]
fn runner_without_walls_is_reported_instead_of_a_hello() {
    let mut host = Host::prepare();
    // The jail has programs, so a runner starts, but the filter prevents it from adopting orphans.
    std::fs::create_dir_all(host.root().join("usr")).expect("made");
    let mut jailed = Jailed::start_behind(host.root(), Some(no_orphans()));
    jailed.open_gate();
    host.set_link(jailed.link.take().expect("just made"));
    let FromSandbox::Fatal(fatal) = host.hear() else { panic!("hello without a runner") };
    assert!(
        fatal.fatal.starts_with("cannot start the process that runs commands: Operation not permitted"),
        "{}",
        fatal.fatal
    );
    assert_eq!(jailed.ended().code(), Some(1));
}

/// Returns a filter that refuses `PR_SET_CHILD_SUBREAPER`.
fn no_orphans() -> BpfProgram {
    let subreaper = libc::PR_SET_CHILD_SUBREAPER as u64;
    let condition = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, subreaper);
    let rule = SeccompRule::new(vec![condition.expect("a condition")]).expect("a rule");
    let refused = SeccompAction::Errno(libc::EPERM as u32);
    let architecture = std::env::consts::ARCH.try_into().expect("an architecture");
    let filter =
        SeccompFilter::new([(libc::SYS_prctl, vec![rule])].into(), SeccompAction::Allow, refused, architecture);
    filter.and_then(BpfProgram::try_from).expect("a filter")
}

#[test]
fn closed_gate_ends_the_program() {
    let host = Host::prepare();
    let mut jailed = Jailed::start(host.root());
    drop(std::mem::replace(&mut jailed.gate, UnixStream::pair().expect("a pair").0));
    assert_eq!(jailed.ended().code(), Some(1));
}

#[test]
fn fail_point_kills_the_program_between_commit_and_bell() {
    let mut host = Host::prepare();
    let mut jailed = Jailed::start(host.root());
    jailed.open_gate();
    host.attach(jailed.link.take().expect("just made"));
    host.say(&Welcome { failpoint: Some("outbound_commit".into()), ..welcome(LIMITS) });
    if !cfg!(feature = "failpoints") {
        assert!(matches!(host.hear(), FromSandbox::Fatal(_)));
        assert_eq!(jailed.ended().code(), Some(1));
        return;
    }
    host.bell();
    let message = host.project("hello");
    host.open(&[&message]);
    host.asked_to_generate();
    host.answer_output(1, Vec::new());
    assert_eq!(jailed.ended().signal(), Some(libc::SIGKILL));
    assert_eq!(host.rows().len(), 1, "the row is durable");
    assert_eq!(host.link().read(&mut [0]).expect("the end"), 0, "a bell was sent");
}
