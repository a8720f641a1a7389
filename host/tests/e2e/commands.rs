//! Tests of the commands of an agent, through the real daemon and sandbox: their access, their bounds, and the end of their processes.
//!
//! Each command attempts an action, and the test checks its output or its refusal. See `sandbox/src/runner.rs`.

use crate::support::host_fixture::{Build, TestHost, kill, wait_for};
use crate::support::jail_fixture::{HostUser, host_users};

/// Bounds of `sandbox/src/runner/serve.rs`: the processes of a jail, and the bytes of a file.
const PROCESSES_MAX: u32 = 32;
const FILE_BYTES_MAX: u64 = 256 << 20;

/// Starts a host with an agent `a` that may run commands and an agent `b` that may not.
fn with_commands(user: HostUser) -> TestHost {
    let host = TestHost::with(user, Build::Plain, None).started();
    host.ctl(&["agent", "add", "a", "--tool", "run_command", "--tool", "read_file", "--tool", "write_file"]).ok();
    host.agent("b");
    host
}

fn run(host: &TestHost, command: &str) -> String {
    host.say("a", &format!("run {command}"))
}

#[test]
fn agent_without_run_command_has_no_programs() {
    let host = with_commands(HostUser::Ordinary);
    let said = host.say("b", "run echo here-i-am");
    assert!(said.contains("not enabled") && !said.contains("[exit code"), "{said}");
    let report = host.ctl(&["--json", "session", "show", host.session()["id"].as_str().expect("an id")]).ok().json();
    assert!(!report.to_string().contains("/usr"), "{report}");
}

#[test]
fn command_sees_programs_and_agent_files_but_no_host_files() {
    for user in host_users() {
        let host = with_commands(user);
        let said = run(&host, "echo hello; ls /usr/bin | grep -c . ; id -u; pwd; echo $HOME; env | wc -l");
        for words in ["hello\n", "1000\n/workspace\n/workspace\n", "[exit code 0]"] {
            assert!(said.contains(words), "{user:?}: {said}");
        }
        let said = run(&host, "echo kept > note; cat note; mkdir -p d/e && ln -s note link && cat link; exit 3");
        assert!(said.contains("kept\nkept\n[exit code 3]"), "{user:?}: {said}");
        assert!(host.say("a", "read note").contains("kept"), "{user:?}");
        assert!(host.say("a", "read link").contains("links are not followed"), "{user:?}");
        for hidden in ["/in", "/out", "/run", "/in/inbound.db", "/out/outbound.db", "/run/model.sock"] {
            let said = run(&host, &format!("cat {hidden} 2>&1; ls {hidden} 2>&1; echo x > {hidden}"));
            assert!(said.contains("Permission denied") && !said.contains("[exit code 0]"), "{user:?} {hidden}: {said}");
        }
        for missing in ["/proc/self", "/proc/1/mem", "/sys", "/home", "/root", "/var", "/etc/shadow", "/dev/kmsg"] {
            let said = run(&host, &format!("ls {missing}"));
            assert!(said.contains("No such file"), "{user:?} {missing}: {said}");
        }
        for (tried, why) in [
            ("touch /usr/bin/x", "Read-only file system"),
            ("touch /x", "Read-only file system"),
            ("echo x >> /etc/passwd", "Read-only file system"),
            ("cp /usr/bin/env /workspace/own && /workspace/own", "Permission denied"),
            ("cp /usr/bin/env /tmp/own && /tmp/own", "Permission denied"),
            ("cp /usr/bin/env own; chmod u+s own", "Operation not permitted"),
            ("mknod device c 1 3", "Operation not permitted"),
            ("mkfifo pipe", "Operation not permitted"),
        ] {
            let said = run(&host, &format!("({tried}) 2>&1"));
            assert!(said.contains(why) && !said.contains("[exit code 0]"), "{user:?} {tried}: {said}");
        }
    }
}

/// Forbidden system calls. Perl exists on every machine that can run these tests, and can make any system call.
const SOCKETS: &str = r#"perl -e '
use Socket;
for my $family (1 .. 45) { for my $type (1, 2, 3, 5) {
  print "socket $family $type\n" if socket(my $s, $family, $type, 0);
} }
print "tried\n";
my $connect = syscall(42, 0, 0, 0); print "connect: $!\n";
my $bind = syscall(49, 0, 0, 0); print "bind: $!\n";
my $ptrace = syscall(101, 16, 2, 0, 0); print "ptrace: $!\n";
my $unshare = syscall(272, 0x10000000); print "unshare: $!\n";
my $memory = syscall(310, 2, 0, 0, 0, 0, 0); print "memory: $!\n";
' 2>&1"#;

#[test]
#[cfg(target_arch = "x86_64")]
fn command_cannot_open_sockets_or_inspect_processes() {
    let host = with_commands(HostUser::Ordinary);
    let said = run(&host, SOCKETS);
    assert!(said.contains("tried\n") && !said.contains("\nsocket ") && !said.starts_with("socket "), "{said}");
    for call in ["connect", "bind", "ptrace", "unshare", "memory"] {
        assert!(said.contains(&format!("{call}: Operation not permitted")), "{call}: {said}");
    }
    let said = run(&host, "bash -c 'echo x > /dev/tcp/127.0.0.1/80' 2>&1");
    assert!(!said.contains("[exit code 0]"), "{said}");
}

/// Every way to reach a named socket: a pair of datagram sockets, an address, a descriptor in a message.
const DATAGRAMS: &str = r#"perl -e '
use Socket;
for my $type (SOCK_DGRAM, SOCK_SEQPACKET) {
  if (socketpair(my $one, my $other, AF_UNIX, $type, 0)) {
    print "pair: made\n";
    send($one, "out", 0, pack_sockaddr_un("/workspace/listener")) and print "sent\n";
  } else { print "pair: $!\n"; }
}
socketpair(my $one, my $other, AF_UNIX, SOCK_STREAM, 0) or print "stream: $!\n";
print "addressed: $!\n" unless send($one, "out", 0, pack_sockaddr_un("/workspace/listener"));
my $message = syscall(46, fileno($one), 0, 0); print "message: $!\n";
my $many = syscall(307, fileno($one), 0, 0, 0); print "many: $!\n";
my $owner = fcntl($one, 8, $$); print "owner: $!\n";
send($one, "within\n", 0); print "read: ", scalar(readline($other));
' 2>&1"#;

#[test]
#[cfg(target_arch = "x86_64")]
fn command_cannot_reach_a_host_socket_by_its_path() {
    let host = with_commands(HostUser::Ordinary);
    run(&host, "true");
    let path = host.session_directory().join("workspace/listener");
    let listener = std::os::unix::net::UnixDatagram::bind(&path).expect("a listener");
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("permissions");
    let said = run(&host, DATAGRAMS);
    assert_eq!(said.matches("pair: Operation not permitted").count(), 2, "{said}");
    for call in ["addressed", "message", "many", "owner"] {
        assert!(said.contains(&format!("{call}: Operation not permitted")), "{call}: {said}");
    }
    assert!(
        said.contains("read: within\n") && !said.contains("stream:"),
        "a pair of stream sockets works like a pipe: {said}"
    );
    listener.set_nonblocking(true).expect("set");
    let nothing = listener.recv(&mut [0; 8]).expect_err("nothing came");
    assert_eq!(nothing.kind(), std::io::ErrorKind::WouldBlock);
}

/// Returns the process of the only session.
fn sandbox_pid(host: &TestHost) -> i32 {
    let pid = host.session()["pid"].as_i64().expect("the session is awake");
    i32::try_from(pid).expect("a process id")
}

/// Returns the children of a process, as the host sees them.
fn children(pid: i32) -> Vec<i32> {
    let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
    children.split_whitespace().filter_map(|pid| pid.parse().ok()).collect()
}

#[test]
fn lost_runner_ends_its_session_and_its_commands() {
    let host = with_commands(HostUser::Ordinary);
    run(&host, "true");
    let main = sandbox_pid(&host);
    assert_eq!(std::fs::read_to_string(format!("/proc/{main}/oom_score_adj")).expect("read"), "1000\n");
    let [runner] = children(main)[..] else { panic!("{:?}", children(main)) };
    // Between two commands, the host notices the loss without another command.
    kill(runner);
    wait_for("another sandbox", || host.session()["pid"].as_i64() != Some(i64::from(main)));
    // During a command, the loss makes its outcome unknown.
    let command = "echo > begun; setsid sleep 1000 & sleep 1000";
    let said = std::thread::scope(|scope| {
        let said = scope.spawn(|| run(&host, command));
        let begun = host.session_directory().join("workspace/begun");
        wait_for("the command to begin", || begun.exists());
        let main = sandbox_pid(&host);
        let runner = children(main)[0];
        let mut started = Vec::new();
        wait_for("the processes of the command", || {
            started = children(runner).into_iter().flat_map(|shell| [vec![shell], children(shell)].concat()).collect();
            started.len() == 3
        });
        kill(runner);
        wait_for("all processes to be gone", || {
            started.iter().chain([&main]).all(|pid| !std::path::Path::new(&format!("/proc/{pid}")).exists())
        });
        said.join().expect("the turn ends")
    });
    assert!(said.contains("the outcome of this call is unknown; it is not run again"), "{said}");
    assert!(run(&host, "echo once more").contains("once more\n[exit code 0]"));
    // If one failure parks the session, the person gets a notice.
    host.restart_with("config.toml", "[session]\nlaunch_attempts_max = 1\n");
    run(&host, "true");
    kill(children(sandbox_pid(&host))[0]);
    wait_for("the session to be parked", || host.session()["state"] == "parked");
    host.ctl(&["chat", "a", "hello"]).refused("is parked (the process that runs its commands was lost)");
}

#[test]
fn command_cannot_signal_processes_of_the_sandbox() {
    let host = with_commands(HostUser::Ordinary);
    run(&host, "true");
    let before = host.session()["pid"].clone();
    let said =
        run(&host, "perl -e 'for (1, 2, 3, -1, -2, -3) { print \"killed $_\\n\" if kill 9, $_ } print \"over\\n\"'");
    assert!(said.contains("over\n[exit code 0]"), "{said}");
    // Process 1 of a jail ignores the signal; the jail refuses signals to the others.
    for pid in ["2", "3", "-1", "-2", "-3"] {
        assert!(!said.contains(&format!("killed {pid}\n")), "{said}");
    }
    assert!(run(&host, "echo still there").contains("still there\n[exit code 0]"));
    assert_eq!(host.session()["pid"], before, "the sandbox is not replaced");
}

#[test]
fn processes_of_a_command_are_gone_before_its_result() {
    let host = with_commands(HostUser::Ordinary);
    // Every way to leave a process group, and a process that ignores all signals that can be ignored.
    let started = run(
        &host,
        "(setsid sh -c 'trap \"\" TERM HUP INT; while :; do echo x >> /workspace/alive; sleep 0.01; done' &) ; \
         perl -e 'use POSIX; fork and exit; setsid(); fork and exit; sleep 1000' & \
         sleep 1000 & while [ ! -s alive ]; do sleep 0.01; done; echo started",
    );
    assert!(started.contains("started\n[exit code 0]"), "{started}");
    let alive = host.session_directory().join("workspace/alive");
    let size = || std::fs::metadata(&alive).expect("the file exists").len();
    let before = size();
    // This command takes longer than the pause of the writing process.
    let said =
        run(&host, "sleep 0.2; perl -e 'my @left = grep { kill 0, $_ } 4 .. 400; print scalar(@left), \" left\\n\"'");
    assert_eq!(size(), before, "a process still writes");
    // These are the shell and perl of the command itself.
    assert!(said.contains("2 left") || said.contains("1 left"), "{said}");
}

#[test]
fn resources_of_a_command_are_bounded() {
    let host = with_commands(HostUser::Ordinary);
    let said = run(&host, "yes | head -c 1000000");
    assert!(said.contains("[1000000 bytes of output, of which the first 65536 are shown]"), "{}", said.len());
    let forks = "my $made = 0; while ($made < 1000) { my $child = fork; last unless defined $child; sleep 100 unless $child; \
                 $made++ } print \"made $made\\n\"";
    let said = run(&host, &format!("perl -e '{forks}' 2>&1"));
    let made = said.lines().find_map(|line| line.strip_prefix("made ")).and_then(|made| made.parse().ok());
    assert!(made.is_some_and(|made| (1..PROCESSES_MAX).contains(&made)), "{said}");
    let said =
        run(&host, "perl -e 'while (1) { fork; }' 2>/dev/null & perl -e 'fork for 1 .. 10; sleep 1'; echo survived");
    assert!(said.contains("survived") || said.contains("fork"), "{said}");
    let said = run(&host, "perl -e '$x = \"a\" x (3 << 30); print \"had it\\n\"' 2>&1");
    assert!(!said.contains("had it"), "{said}");
    let said = run(
        &host,
        "head -c 300M /dev/zero > big; stat -c 'big has %s bytes' big; rm -f big; head -c 100M /dev/zero > /tmp/x",
    );
    assert!(said.contains(&format!("big has {FILE_BYTES_MAX} bytes\n")), "{said}");
    assert!(said.contains("No space left"), "{said}");
    assert!(run(&host, "ls /tmp").contains("x\n"), "/tmp is kept while the session is awake");
    assert!(run(&host, "echo fine").contains("fine\n[exit code 0]"));
}

#[test]
fn command_over_its_time_limit_is_ended_and_reported() {
    let host = with_commands(HostUser::Ordinary);
    let script = host.home.join("script.toml");
    let rule = "[[rule]]\nwhen = '^slow$'\ncalls = [{ tool = 'run_command', arguments = { command = 'echo begun; sleep 1000', \
                timeout_seconds = 5 } }]\nreply = '{result}'\nreply_error = '{error}'\n";
    std::fs::write(&script, rule).expect("written");
    host.restart_with("config.toml", &format!("[model]\nscript = {:?}\n", script.display().to_string()));
    let said = host.say("a", "slow");
    assert!(said.contains("begun\n[ended after 5 s"), "{said}");
}
