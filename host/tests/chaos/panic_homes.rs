//! `ironctl panic` in broken homes while an agent runs a command: every process of the agent must end.
//!
//! The fast tier tests a few states of a home, `IRONCLAW_LONG=1` tests all. See `ops::stops` and `home_files`.
#![allow(clippy::print_stdout)] // names the failed state of a home

use crate::chaos::shortages;
use crate::support::broken_files::{Kind, put};
use crate::support::host_fixture::{Answer, Build, TestHost, kill, wait_for};
use crate::support::jail_fixture::HostUser;
use crate::support::needs::needs;
use crate::support::processes::{Process, descendants, used};
use nix::sys::signal::{Signal, kill as signal};
use nix::unistd::Pid;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;

/// The number of concurrent cases.
const AT_ONCE: usize = 2;

/// The mount options of a small disk with room for one session and a few files.
const DISK: &str = "size=48m,nr_inodes=300";

/// A home with a running host and an agent that runs a command. A state damages this home.
struct Case<'a> {
    host: &'a TestHost,
    host_pid: i32,
    /// A command that runs `ironctl`, for a caller with another view of the file system.
    wrapper: Vec<String>,
    variable: Option<(&'static str, &'static str)>,
}

impl Case<'_> {
    fn at(&self, name: &str) -> PathBuf {
        self.host.home.join(name)
    }

    fn put(&self, name: &str, kind: Kind) {
        put(&self.at(name), kind);
    }

    /// Removes every path to the API, so that the command must find the host without the files of its home.
    fn hide(&self) {
        self.put("run.json", Kind::Missing);
    }

    fn panic(&self) -> Answer {
        let ctl = self.host.command("ironctl");
        let mut command = match self.wrapper.split_first() {
            Some((program, rest)) => {
                let mut command = Command::new(program);
                command.args(rest).arg(ctl.get_program()).env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
                command
            }
            None => ctl,
        };
        if let Some((name, value)) = self.variable {
            command.env(name, value);
        }
        command.arg("--home").arg(&self.host.home).args(["--json", "panic"]).stdin(Stdio::null());
        Answer::new(command.output().expect("ironctl runs"), &["panic"])
    }
}

/// The expected result.
#[derive(Clone, Copy, PartialEq)]
enum End {
    /// Every process is stopped, and the stop survives a restart.
    Stopped,
    /// Every process is stopped, and the command warns that the stop does not survive a restart.
    DoesNotLast,
}
use End::{DoesNotLast, Stopped};

/// The user and the file system of the home.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Usual,
    /// The user is not root, so file modes have an effect.
    OfAUser,
    /// A separate small file system, which only root can mount.
    SmallDisk,
}
use Place::{OfAUser, SmallDisk, Usual};

struct State {
    name: &'static str,
    /// True if the fast tier runs this state.
    is_fast: bool,
    place: Place,
    end: End,
    break_it: fn(&mut Case<'_>),
}

const fn state(name: &'static str, break_it: fn(&mut Case<'_>)) -> State {
    State { name, is_fast: false, place: Usual, end: Stopped, break_it }
}

impl State {
    const fn fast(mut self) -> Self {
        self.is_fast = true;
        self
    }

    const fn on(mut self, place: Place) -> Self {
        self.place = place;
        self
    }

    const fn ends(mut self, end: End) -> Self {
        self.end = end;
        self
    }
}

const STATES: &[State] = &[
    state("run.json is missing", |case| case.put("run.json", Kind::Missing)).fast(),
    state("run.json is empty", |case| case.put("run.json", Kind::Empty)),
    state("run.json is garbage", |case| case.put("run.json", Kind::Garbage)).fast(),
    state("run.json is cut off", |case| fs::write(case.at("run.json"), r#"{"pid":12"#).expect("written")),
    state("run.json has another shape", |case| fs::write(case.at("run.json"), "[]").expect("written")),
    state("run.json is a directory", |case| case.put("run.json", Kind::Directory)),
    state("run.json is a pipe", |case| case.put("run.json", Kind::Pipe)),
    state("run.json cannot be read", |case| case.put("run.json", Kind::Unreadable)).on(OfAUser),
    state("run.json is a dangling link", |case| {
        case.hide();
        std::os::unix::fs::symlink("/nowhere/run.json", case.at("run.json")).expect("linked");
    }),
    state("run.json names a process that does not exist", |case| {
        fs::write(case.at("run.json"), r#"{"pid":4194303,"socket":"/nowhere","version":"0"}"#).expect("written");
    }),
    state("run.json names another process", |case| {
        fs::write(case.at("run.json"), r#"{"pid":1,"socket":"/nowhere","version":"0"}"#).expect("written");
    }),
    state("run.json names a path that is too long for a socket", |case| {
        let long = "x".repeat(200);
        fs::write(case.at("run.json"), format!(r#"{{"pid":1,"socket":"/{long}","version":"0"}}"#)).expect("written");
    }),
    state("owner.token is missing", |case| case.put("owner.token", Kind::Missing)).fast(),
    state("owner.token is empty", |case| case.put("owner.token", Kind::Empty)),
    state("owner.token is garbage", |case| case.put("owner.token", Kind::Garbage)),
    state("owner.token is cut off", |case| {
        let text = fs::read_to_string(case.at("owner.token")).expect("a token");
        fs::write(case.at("owner.token"), &text[..text.len() / 2]).expect("written");
    })
    .fast(),
    state("owner.token has an unknown token", |case| {
        fs::write(case.at("owner.token"), format!("ict_{}", "0".repeat(72))).expect("written");
    }),
    state("owner.token is a directory", |case| case.put("owner.token", Kind::Directory)),
    state("owner.token is a pipe", |case| case.put("owner.token", Kind::Pipe)),
    state("owner.token cannot be read", |case| case.put("owner.token", Kind::Unreadable)).on(OfAUser),
    state("the environment has an unknown token", |case| case.variable = Some(("IRONCLAW_TOKEN", "ict_0"))),
    state("the environment names a missing token file", |case| {
        case.variable = Some(("IRONCLAW_TOKEN_FILE", "/nowhere/token"));
    }),
    state("panic is a directory", |case| {
        case.put("owner.token", Kind::Missing);
        case.put("panic", Kind::Directory);
    })
    .fast(),
    state("panic is a directory that is not empty", |case| {
        // The host may take an empty directory at once.
        fs::create_dir_all(case.at("new-panic/x")).expect("made");
        fs::rename(case.at("new-panic"), case.at("panic")).expect("renamed");
    }),
    state("panic exists", |case| case.put("panic", Kind::Garbage)),
    state("panic is a pipe", |case| case.put("panic", Kind::Pipe)),
    state("panic is a dangling link", |case| {
        std::os::unix::fs::symlink("/nowhere/panic", case.at("panic")).expect("linked");
    }),
    state("host.lock is missing", |case| {
        case.hide();
        case.put("host.lock", Kind::Missing);
    })
    .fast(),
    state("host.lock is another file", |case| {
        case.hide();
        case.put("host.lock", Kind::Missing);
        case.put("host.lock", Kind::Empty);
    }),
    state("host.lock is a directory", |case| {
        case.hide();
        case.put("host.lock", Kind::Directory);
    }),
    state("host.lock is a pipe", |case| {
        case.hide();
        case.put("host.lock", Kind::Pipe);
    }),
    state("host.lock cannot be read", |case| {
        case.hide();
        case.put("host.lock", Kind::Unreadable);
    })
    .on(OfAUser),
    state("state.db is missing", |case| {
        ["state.db", "state.db-wal", "state.db-shm"].iter().for_each(|name| case.put(name, Kind::Missing));
    }),
    state("state.db is cut off", |case| {
        for name in ["state.db", "state.db-wal"] {
            File::options().write(true).open(case.at(name)).and_then(|file| file.set_len(100)).expect("cut");
        }
    }),
    state("master.key and settings are missing", |case| {
        case.hide();
        ["master.key", "config.toml", "policy.toml"].iter().for_each(|name| case.put(name, Kind::Missing));
    }),
    state("sessions, agents, ledger and logs are missing", |case| {
        case.hide();
        ["sessions", "agents", "ledger", "logs"].iter().for_each(|name| case.put(name, Kind::Missing));
    }),
    state("sessions has another name", |case| {
        case.put("owner.token", Kind::Empty);
        fs::rename(case.at("sessions"), case.at("sessions.old")).expect("renamed");
    }),
    state("everything in the home is missing", |case| {
        for entry in fs::read_dir(&case.host.home).expect("a home").flatten() {
            put(&entry.path(), Kind::Missing);
        }
    }),
    state("the home has another name", |case| {
        fs::rename(&case.host.home, case.host.home.with_file_name("moved")).expect("renamed");
    })
    .ends(DoesNotLast),
    state("the home is missing", |case| put(&case.host.home, Kind::Missing)).ends(DoesNotLast),
    state("the home cannot be written", |case| {
        case.put("owner.token", Kind::Missing);
        case.put(".", Kind::ReadOnly);
    })
    .on(OfAUser)
    .ends(DoesNotLast)
    .fast(),
    state("the home cannot be entered", |case| case.put(".", Kind::Unreadable)).on(OfAUser).ends(DoesNotLast),
    state("the socket is missing", |case| case.put("run/api.sock", Kind::Missing)),
    state("the directory of the sockets is missing", |case| case.put("run", Kind::Missing)),
    state("the socket is silent", |case| {
        case.put("run/api.sock", Kind::Missing);
        let listener = std::os::unix::net::UnixListener::bind(case.at("run/api.sock")).expect("bound");
        // The listener accepts connections during the whole test and answers none.
        std::mem::forget(listener);
    }),
    state("the host is stopped", |case| stop(case.host_pid)),
    state("the host and its launcher are stopped", |case| {
        stop(case.host_pid);
        descendants(case.host_pid).iter().filter(|(_, name)| *name == "ic-launcher").for_each(|(one, _)| stop(one.pid));
    }),
    state("the launcher is stopped", |case| {
        descendants(case.host_pid).iter().filter(|(_, name)| *name == "ic-launcher").for_each(|(one, _)| stop(one.pid));
    }),
    state("no inodes are left, and the token is missing", |case| {
        case.put("owner.token", Kind::Missing);
        use_up_inodes(&case.host.home);
    })
    .on(SmallDisk)
    .fast(),
    state("no inodes are left, and the host answers", |case| use_up_inodes(&case.host.home)).on(SmallDisk),
    state("no inodes and no reserve are left", |case| {
        case.put("owner.token", Kind::Empty);
        case.put("panic.reserve", Kind::Missing);
        use_up_inodes(&case.host.home);
    })
    .on(SmallDisk)
    .ends(DoesNotLast),
    state("the disk is full", |case| {
        let mut ballast = File::create(case.host.home.with_file_name("ballast")).expect("a file");
        while ballast.write_all(&[0; 4096]).is_ok() {}
    })
    .on(SmallDisk),
    state("the file system is read-only, and the token is missing", |case| {
        case.put("owner.token", Kind::Missing);
        let home = case.host.home.display();
        let script = format!("mount --bind {home} {home} && mount -o remount,bind,ro {home} && exec \"$@\"");
        case.wrapper = ["unshare", "-m", "sh", "-c", &script, "sh"].map(str::to_owned).to_vec();
    })
    .on(SmallDisk)
    .ends(DoesNotLast)
    .fast(),
];

fn stop(pid: i32) {
    signal(Pid::from_raw(pid), Signal::SIGSTOP).expect("it is ours");
}

fn use_up_inodes(home: &Path) {
    let ballast = home.with_file_name("ballast");
    fs::create_dir(&ballast).expect("a directory");
    assert!((0..100_000).any(|n| File::create(ballast.join(n.to_string())).is_err()), "the disk still has inodes");
}

/// Makes a home without a running host. Its agent may run commands.
fn template(user: HostUser) -> TestHost {
    let host = TestHost::with(user, Build::Plain, None).started();
    host.ctl(&["agent", "add", "a", "--tool", "run_command"]).ok();
    host.down();
    host
}

/// Starts a host and lets the agent run a command. Returns the pid of the host, the waiting `chat`, and the processes in the jail.
fn start_work(host: &TestHost) -> (i32, Child, HashMap<Process, String>) {
    host.up();
    let host_pid = host.pid().expect("it runs");
    let mut chat = host.command("ironctl");
    chat.arg("--home").arg(&host.home).args(["chat", "a", "run sleep 1000"]);
    let chat = chat.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("ironctl starts");
    wait_for("the command", || descendants(host_pid).values().any(|name| name == "sleep"));
    let mut agent = used(host_pid);
    agent.retain(|_, name| name != "ic-launcher");
    (host_pid, chat, agent)
}

fn run_case(state: &State, template: &TestHost) {
    let mut host = template.copy();
    let mount = |host| shortages::SmallDisk::under(host, DISK).expect("root can mount a file system");
    let _disk = (state.place == SmallDisk).then(|| mount(&mut host));
    let (host_pid, mut chat, agent) = start_work(&host);
    let mut case = Case { host: &host, host_pid, wrapper: Vec::new(), variable: None };
    (state.break_it)(&mut case);
    let answer = case.panic();
    let left: Vec<_> = agent.iter().filter(|(process, _)| process.is_alive()).collect();
    let host_lives = Process::of(host_pid).is_some();
    kill(host_pid);
    let _ = (chat.kill(), chat.wait());
    let said = format!("{}: {} {}{}", state.name, answer.code, answer.stdout, answer.stderr);
    println!("{said}");
    assert!(left.is_empty(), "{left:?} are alive after the stop: {said}");
    let lasts = host.home.join("panic").symlink_metadata().is_ok();
    match state.end {
        Stopped => {
            assert_eq!(answer.code, 0, "{said}");
            assert!(lasts || is_recorded(&host), "the stop does not survive a restart: {said}");
        }
        DoesNotLast => {
            assert_eq!(answer.error()["code"], "panic_does_not_last", "{said}");
            assert!(!lasts && !host_lives, "{said}");
        }
    }
    put(&host.home, Kind::Usable);
}

/// Returns whether the record contains the stop, so the next start needs no panic file. The host records the stop on a request, or if
/// it sees the file before it is killed. Returns true if the record of the broken home cannot be read.
fn is_recorded(host: &TestHost) -> bool {
    let export = host.ctl(&["audit", "export"]);
    export.code != 0 || export.stdout.contains("host.panicked")
}

#[test]
fn panic_in_broken_homes_leaves_no_agent_process() {
    needs("mount");
    needs("unshare");
    let is_root = nix::unistd::geteuid().is_root();
    let is_long = std::env::var_os("IRONCLAW_LONG").is_some();
    // Only root can mount a file system, so other users skip these states.
    let chosen = STATES.iter().filter(|state| (is_long || state.is_fast) && (is_root || state.place != SmallDisk));
    let waiting = Mutex::new(chosen.collect::<Vec<_>>());
    assert!(
        !is_long || waiting.lock().expect("no thread failed").len() >= 40,
        "the long tier has at least forty states"
    );
    let (own, user) = (template(HostUser::current()), is_root.then(|| template(HostUser::Ordinary)));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = waiting.lock().unwrap_or_else(std::sync::PoisonError::into_inner).pop();
                    let Some(state) = next else { return };
                    run_case(state, user.as_ref().filter(|_| state.place == OfAUser).unwrap_or(&own));
                }
            });
        }
    });
}

#[test]
fn panic_file_stops_a_running_host_without_a_request() {
    let host = template(HostUser::current());
    fs::remove_file(host.home.join("panic.reserve")).expect("init made it");
    let (_, mut chat, agent) = start_work(&host);
    assert!(host.home.join("panic.reserve").is_file(), "a start makes a missing reserve");
    File::create(host.home.join("panic")).expect("made");
    wait_for("the end of the agent", || agent.keys().all(|process| !process.is_alive()));
    wait_for("the stop in the record", || !host.home.join("panic").exists());
    let _ = (chat.kill(), chat.wait());
    assert_eq!(host.status()["stopped"]["by"], "the panic file in the home");
    // The same works after a resume.
    host.ctl(&["resume"]).ok();
    assert_eq!(host.status()["stopped"], serde_json::Value::Null);
    File::create(host.home.join("panic")).expect("made");
    wait_for("the next stop", || !host.status()["stopped"].is_null());
}

#[test]
fn member_can_neither_panic_nor_stop_the_host() {
    let host = TestHost::own(Build::Plain).started();
    host.ctl(&["person", "add", "Bob"]).ok();
    let file = host.home.join("bob.token");
    let path = file.display().to_string();
    let made = host.ctl(&["--json", "token", "add", "--person", "Bob", "--out", &path]).ok().json();
    assert_eq!((made["saved_to"].as_str(), made["text"].as_str()), (Some(path.as_str()), None), "{made}");
    use std::os::unix::fs::PermissionsExt;
    assert_eq!(fs::metadata(&file).expect("made").permissions().mode() & 0o7777, 0o600);
    // The command does not overwrite the file, and makes no token that it cannot save.
    let tokens = || host.ctl(&["--json", "token", "list"]).ok().json().as_array().map(Vec::len);
    let before = tokens();
    host.ctl(&["token", "add", "--person", "Bob", "--out", &path]).refused("bob.token");
    assert_eq!(tokens(), before);
    for command in ["down", "panic"] {
        let error = host.ctl_error(&["--token-file", &path, command]);
        assert_eq!(error["code"], "role_too_low", "{command}: {error}");
    }
    assert_eq!(host.status()["stopped"], serde_json::Value::Null);
    assert!(!host.home.join("panic").exists());
    host.down();
}

/// Opens a port that answers every request with status 500 and an empty body.
fn broken_host() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("bound").port();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let _ = std::io::Read::read(&mut stream, &mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 500 Internal Server Error\r\ncontent-length: 0\r\n\r\n");
        }
    });
    port
}

fn closed_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("bound").port()
}

#[test]
fn panic_at_an_address_fails_unless_that_host_stops() {
    let host = TestHost::new();
    let panic = |port: u16| {
        let output = host.ctl(&["--json", "--api", &format!("http://127.0.0.1:{port}"), "panic"]);
        assert_eq!(output.stdout, "", "no success is printed");
        let line = output.stderr.lines().find(|line| line.starts_with('{')).expect("JSON");
        let failure: serde_json::Value = serde_json::from_str(line).expect("JSON");
        (output.code, failure["error"]["code"].as_str().expect("a code").to_owned())
    };
    let broken = broken_host();
    assert_eq!(panic(broken), (1, "panic_failed".to_owned()), "no host runs");
    assert_eq!(panic(closed_port()), (3, "host_unreachable".to_owned()), "no host runs");
    fs::write(host.home.join("owner.token"), "").expect("written");
    assert_eq!(panic(broken), (1, "panic_failed".to_owned()), "without a token");
    host.ctl(&["init"]).ok();
    host.up();
    let host_pid = host.status()["host"]["pid"].clone();
    assert_eq!(panic(broken), (1, "answer_unclear".to_owned()), "another host runs");
    assert_eq!(host.status()["host"]["pid"], host_pid, "the other host still runs");
}
