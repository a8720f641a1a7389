//! A fixture with the real programs and a temporary home, to start, stop, kill and inspect a host.
//!
//! Contains no tests. Each wait has a condition and a bound. See `e2e::round`.

use super::jail_fixture::{HostUser, ORDINARY_UID};
use serde_json::Value;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// The longest wait for a condition that takes milliseconds on an idle machine.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(60);
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Build {
    Plain,
    Failpoints,
}

/// A temporary home with its programs and its user.
pub(crate) struct TestHost {
    pub(crate) home: PathBuf,
    pub(crate) programs: PathBuf,
    pub(crate) user: HostUser,
    environment: Vec<(String, String)>,
    _directory: tempfile::TempDir,
    _programs: Option<tempfile::TempDir>,
}

impl TestHost {
    /// Creates a home for an ordinary user, without a running host.
    pub(crate) fn new() -> Self {
        Self::with(HostUser::Ordinary, Build::Plain, None)
    }

    /// Creates a home for the user that runs the tests, whose host also serves direct clients.
    pub(crate) fn own(build: Build) -> Self {
        Self::with(HostUser::current(), build, None)
    }

    /// Creates a home of the user that runs the tests, with a clock that a test shifts.
    pub(crate) fn with_clock() -> Self {
        let mut host = Self::own(Build::Failpoints);
        host.shift_clock(0);
        host
    }

    /// Creates a home for this user and this build. `sandbox` replaces the program of the sandbox.
    pub(crate) fn with(user: HostUser, build: Build, sandbox: Option<&Path>) -> Self {
        let directory = tempfile::Builder::new().prefix("ic").tempdir().expect("a temporary directory");
        // The parent directory is readable, because the user cannot enter a private directory of root.
        std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).expect("permissions");
        let home = directory.path().join("h");
        std::fs::create_dir(&home).expect("a directory");
        std::fs::set_permissions(&home, PermissionsExt::from_mode(0o700)).expect("permissions");
        if user == HostUser::Ordinary && nix::unistd::geteuid().is_root() {
            chown(&home, Some(ORDINARY_UID), Some(ORDINARY_UID)).expect("root can give files away");
        }
        let (programs, own) = match sandbox {
            None => (programs(build).to_owned(), None),
            Some(sandbox) => {
                let own = program_directory();
                let from = programs(build);
                // Copies would write 200 MB for each such host.
                for name in ["ironclaw-host", "ironctl"] {
                    let (from, to) = (from.join(name), own.path().join(name));
                    if std::fs::hard_link(&from, &to).is_err() {
                        // Another file system, or one without links.
                        copy(&[&from], &to);
                    }
                }
                copy(&[sandbox], &own.path().join("ironclaw-sandbox"));
                (own.path().to_owned(), Some(own))
            }
        };
        let host = Self { home, programs, user, environment: Vec::new(), _directory: directory, _programs: own };
        host.ctl(&["init"]).ok();
        host
    }

    /// Copies the home, for the same user and programs. No host may run on it.
    pub(crate) fn copy(&self) -> Self {
        let directory = tempfile::Builder::new().prefix("ic").tempdir().expect("a temporary directory");
        std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).expect("permissions");
        let home = directory.path().join("h");
        copy_with_owners(&self.home, &home);
        let (programs, environment) = (self.programs.clone(), self.environment.clone());
        Self { home, programs, user: self.user, environment, _directory: directory, _programs: None }
    }

    /// Copies the home to a new path and uses the copy from then on. No host may run on it.
    pub(crate) fn move_home(&mut self, to: PathBuf) {
        copy_with_owners(&self.home, &to);
        self.home = to;
    }

    /// Kills every host of this home, even if no file of the home names it.
    pub(crate) fn kill_hosts(&self) {
        let home = self.home.as_os_str().as_encoded_bytes();
        for entry in std::fs::read_dir("/proc").expect("/proc").flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
            let line = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
            let words: Vec<&[u8]> = line.split(|byte| *byte == 0).collect();
            if words.first().is_some_and(|program| program.ends_with(b"/ironclaw-host")) && words.contains(&home) {
                kill(pid);
                wait_for("the end of a host", || !alive(pid));
            }
        }
    }

    /// Sets or removes an environment variable for all later commands.
    pub(crate) fn set_env(&mut self, name: &str, value: Option<&str>) {
        self.environment.retain(|(set, _)| set != name);
        if let Some(value) = value {
            self.environment.push((name.to_owned(), value.to_owned()));
        }
    }

    /// Starts a host that dies at a fail point. Later hosts have none.
    pub(crate) fn up_failing_at(&mut self, point: &str) {
        self.set_env("IRONCLAW_FAILPOINT", Some(point));
        self.up();
        self.set_env("IRONCLAW_FAILPOINT", None);
    }

    /// Sets the clock ahead, for a running host and all later ones. A host of a build with fail points that was started before the first
    /// shift keeps its time.
    pub(crate) fn shift_clock(&mut self, ms: i64) {
        let file = self.home.with_file_name("shift");
        // The host reads it at any moment, and an empty file would set its clock back.
        let next = file.with_extension("next");
        std::fs::write(&next, ms.to_string()).expect("written");
        std::fs::rename(&next, &file).expect("replaced");
        self.set_env("IRONCLAW_CLOCK_SHIFT_FILE", file.to_str());
    }

    /// Writes `config.toml`.
    pub(crate) fn configure(&self, text: &str) {
        std::fs::write(self.home.join("config.toml"), text).expect("written");
    }
    pub(crate) fn configured(self, text: &str) -> Self {
        self.configure(text);
        self
    }
    pub(crate) fn started(self) -> Self {
        self.up();
        self
    }

    /// Starts the host of a new home and adds an agent.
    pub(crate) fn started_with(self, agent: &str) -> Self {
        self.up();
        self.agent(agent);
        self
    }

    /// Returns a command that runs a program as the user of the fixture.
    pub(crate) fn command(&self, program: &str) -> Command {
        self.command_at(&self.programs.join(program))
    }

    /// Returns a command that runs a program of the machine as the user of the fixture.
    pub(crate) fn command_at(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env_clear().env("PATH", "/usr/bin:/bin").env("HOME", &self.home).current_dir("/");
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if self.user == HostUser::Ordinary && nix::unistd::geteuid().is_root() {
            command.uid(ORDINARY_UID).gid(ORDINARY_UID);
        }
        command
    }

    /// Runs `ironctl --home HOME …`.
    pub(crate) fn ctl(&self, arguments: &[&str]) -> Answer {
        let mut command = self.command("ironctl");
        command.arg("--home").arg(&self.home).args(arguments).stdin(Stdio::null());
        Answer::new(command.output().expect("ironctl runs"), arguments)
    }

    /// Runs `ironctl --json …`, which fails, and returns its error.
    #[track_caller]
    pub(crate) fn ctl_error(&self, arguments: &[&str]) -> Value {
        self.ctl(&[&["--json"], arguments].concat()).error()
    }

    /// Runs `ironctl` with a time limit, for commands that could wait for a pipe without end.
    pub(crate) fn ctl_bounded(&self, arguments: &[&str]) -> Answer {
        let mut command = self.command("ironctl");
        command.arg("--home").arg(&self.home).args(arguments);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("ironctl runs");
        let until = Instant::now() + WAIT_MAX;
        while child.try_wait().expect("our child").is_none() {
            if Instant::now() > until {
                let _ = child.kill();
                panic!("ironctl {} hangs", arguments.join(" "));
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        Answer::new(child.wait_with_output().expect("it ended"), arguments)
    }

    /// Runs `ironctl` with this text on stdin.
    pub(crate) fn ctl_given(&self, input: &str, arguments: &[&str]) -> Answer {
        let mut command = self.command("ironctl");
        command.arg("--home").arg(&self.home).args(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut running = command.spawn().expect("ironctl runs");
        // The write fails if the command refuses before it reads, because its end is then closed.
        let _ = running.stdin.take().expect("piped").write_all(input.as_bytes());
        Answer::new(running.wait_with_output().expect("ironctl ends"), arguments)
    }

    /// Starts the host in the background.
    pub(crate) fn up(&self) {
        self.ctl(&["up", "--detach"]).ok();
    }

    /// Stops the host with `ironctl down`.
    pub(crate) fn down(&self) {
        self.ctl(&["down"]).ok();
    }

    pub(crate) fn restart(&self) {
        self.down();
        self.up();
    }

    /// Restarts the host with this text in a file of its home.
    pub(crate) fn restart_with(&self, file: &str, text: &str) {
        self.down();
        std::fs::write(self.home.join(file), text).expect("written");
        self.up();
    }

    /// Adds the model `m` of the API of OpenAI at this server, without a test of it.
    pub(crate) fn add_model(&self, server: &str) {
        let base = format!("{server}/v1");
        self.ctl(&["model", "add", "m", "--kind", "openai", "--base-url", &base, "--model", "small", "--no-test"]).ok();
    }

    /// Adds an agent.
    pub(crate) fn agent(&self, name: &str) {
        self.ctl(&["agent", "add", name]).ok();
    }

    /// Adds a person and links an identity to them.
    pub(crate) fn add_linked_person(&self, name: &str, identity: &str) {
        self.ctl(&["person", "add", name]).ok();
        self.ctl(&["person", "link", name, identity, "--yes"]).ok();
    }

    /// Proposes a change of an agent as the owner, without a decision.
    pub(crate) fn submit(&self, agent: &str, kind: &str, payload: impl std::fmt::Display) -> Answer {
        let payload = payload.to_string();
        let what = ["--kind", kind, "--agent", agent, "--payload", &payload, "--reason", "it is time"];
        self.ctl(&[&["--json", "change", "submit"][..], &what].concat())
    }

    /// Proposes a change, approves it, and checks that it is applied.
    pub(crate) fn change(&self, agent: &str, kind: &str, payload: &Value) {
        let id = self.submit(agent, kind, payload).ok().json()["id"].as_str().expect("an id").to_owned();
        let done = self.ctl(&["--json", "approve", &id]).ok().json();
        assert_eq!(done["status"], "done", "{done}");
    }

    /// Sends a message and returns the output of `chat --json`; a call of its turn may wait for a person, or have an unknown outcome.
    pub(crate) fn chat(&self, agent: &str, message: &str) -> Value {
        let said = self.ctl(&["--json", "chat", agent, message]);
        match said.stderr.as_str() {
            words if words.contains("\"needs_person\"") => said.refused("ironctl inbox").json(),
            words if words.contains("\"call_unknown\"") => said.refused("ironctl why").json(),
            _ => said.ok().json(),
        }
    }

    /// Sends a message and returns the text of the answer.
    pub(crate) fn say(&self, agent: &str, message: &str) -> String {
        self.chat(agent, message)["reply"].as_str().unwrap_or_default().to_owned()
    }
    pub(crate) fn status(&self) -> Value {
        self.ctl(&["--json", "status"]).ok().json()
    }

    /// Returns the single session.
    pub(crate) fn session(&self) -> Value {
        let status = self.status();
        let sessions = status["sessions"].as_array().expect("a list");
        assert_eq!(sessions.len(), 1, "{status}");
        sessions[0].clone()
    }

    /// Returns the directory of the single session.
    pub(crate) fn session_directory(&self) -> PathBuf {
        let mut found = std::fs::read_dir(self.home.join("sessions")).expect("a directory");
        found.next().expect("a session").expect("readable").path()
    }
    pub(crate) fn pid(&self) -> Option<i32> {
        let run = std::fs::read(self.home.join("run.json")).ok()?;
        let run: Value = serde_json::from_slice(&run).ok()?;
        run["pid"].as_i64().and_then(|pid| i32::try_from(pid).ok()).filter(|pid| alive(*pid))
    }

    /// Kills the host with `SIGKILL` and waits until the process is gone.
    pub(crate) fn kill_host(&self) {
        if let Some(pid) = self.pid() {
            kill(pid);
            wait_for("the host to be gone", || !alive(pid));
        }
    }

    /// Returns all exported entries of the ledger, without the signed heads between chains.
    pub(crate) fn ledger(&self) -> Vec<Value> {
        let text = self.ctl(&["audit", "export"]).ok().stdout;
        let lines = text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON"));
        lines.filter(|line: &Value| line.get("data").is_some()).collect()
    }

    /// Returns the entries of the ledger with this event.
    pub(crate) fn entries(&self, what: &str) -> Vec<Value> {
        self.ledger().into_iter().filter(|line| line["data"]["what"] == what).collect()
    }
}

impl Drop for TestHost {
    fn drop(&mut self) {
        self.kill_hosts();
    }
}

/// The output and the exit code of a command.
pub(crate) struct Answer {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    what: String,
}

impl Answer {
    pub(crate) fn new(output: Output, arguments: &[&str]) -> Self {
        Self {
            code: output.status.code().unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            what: arguments.join(" "),
        }
    }
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "ironctl {}: {}{}", self.what, self.stdout, self.stderr);
        self
    }

    /// Checks that the command was refused, with this text on stderr.
    #[track_caller]
    pub(crate) fn refused(self, words: &str) -> Self {
        assert_eq!(self.code, 1, "ironctl {}: {}{}", self.what, self.stdout, self.stderr);
        assert!(self.stderr.contains(words), "ironctl {}: {}", self.what, self.stderr);
        self
    }

    /// Checks that the command failed, and returns its error in JSON.
    #[track_caller]
    pub(crate) fn error(&self) -> Value {
        assert_eq!(self.code, 1, "ironctl {}: {}{}", self.what, self.stdout, self.stderr);
        let failure: Value = serde_json::from_str(&self.stderr)
            .unwrap_or_else(|error| panic!("ironctl {}: {error}: {}", self.what, self.stderr));
        failure["error"].clone()
    }
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("ironctl {}: {error}: {}", self.what, self.stdout))
    }
}

/// Builds the programs with fail points. The example makes the features of dependencies those of `cargo test --workspace`.
const FAILPOINTS_BUILD: [&str; 10] = [
    "build",
    "--workspace",
    "--features",
    "ironclaw-host/failpoints,ironclaw-sandbox/failpoints",
    "--bin",
    "ironclaw-host-failpoints",
    "--bin",
    "ironclaw-sandbox-failpoints",
    "--example",
    "mcp_server",
];

/// Returns the directory with the programs of a build. It is made once, and every user can read it.
pub(crate) fn programs(build: Build) -> &'static Path {
    static PLAIN: OnceLock<tempfile::TempDir> = OnceLock::new();
    static FAILPOINTS: OnceLock<tempfile::TempDir> = OnceLock::new();
    let made = match build {
        Build::Plain => PLAIN.get_or_init(|| {
            let host = Path::new(env!("CARGO_BIN_EXE_ironclaw-host"));
            match is_release(host) {
                true => {
                    let names = ["-p", "ironclaw-sandbox", "-p", "ironctl", "-p", "ironclaw-mcp-demo", "--bins"];
                    cargo(&[&["build"][..], &names].concat(), host);
                }
                // With the features of `cargo test --workspace`, whose artifacts it uses: examples use the dependencies of tests.
                false => cargo(&["build", "--workspace", "--bins", "--examples"], host),
            }
            let from = host.parent().expect("a directory");
            let own = program_directory();
            copy(&[host, &from.join("ironclaw-sandbox"), &from.join("ironctl")], own.path());
            copy(&[&from.join("ironclaw-mcp-demo")], own.path());
            own
        }),
        Build::Failpoints => FAILPOINTS.get_or_init(|| {
            let host = Path::new(env!("CARGO_BIN_EXE_ironclaw-host"));
            let from = host.parent().expect("a directory");
            programs(Build::Plain);
            cargo(&FAILPOINTS_BUILD, host);
            let own = program_directory();
            copy(&[&from.join("ironctl"), &from.join("ironclaw-mcp-demo")], own.path());
            copy(&[&from.join("ironclaw-host-failpoints")], &own.path().join("ironclaw-host"));
            copy(&[&from.join("ironclaw-sandbox-failpoints")], &own.path().join("ironclaw-sandbox"));
            own
        }),
    };
    made.path()
}

/// Builds programs of other crates into the target directory of this test.
pub(crate) fn cargo(arguments: &[&str], host: &Path) {
    let profile = host.parent().expect("target/<profile>");
    let target = profile.parent().expect("target");
    let mut command = Command::new(env!("CARGO"));
    command
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(arguments)
        .args(["--locked", "--quiet", "--target-dir"])
        .arg(target)
        // `.ci/timed` sets this variable for the test harness. Build scripts that see it would rebuild every crate.
        .env_remove("RUSTC_BOOTSTRAP");
    // Build scripts that see the variables of this package differ from those of `.ci/programs`, and would rebuild their crates.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")) {
            command.env_remove(name);
        }
    }
    if is_release(host) {
        command.arg("--release");
    }
    let status = command.status().expect("cargo runs");
    assert!(status.success(), "cargo {}", arguments.join(" "));
}

/// Returns whether this program is of the release profile, as benches are.
fn is_release(host: &Path) -> bool {
    host.parent().is_some_and(|profile| profile.ends_with("release"))
}

fn program_directory() -> tempfile::TempDir {
    let own = tempfile::tempdir().expect("a temporary directory");
    std::fs::set_permissions(own.path(), PermissionsExt::from_mode(0o755)).expect("permissions");
    own
}

/// Copies files with another process. A file that this process writes would remain open in a child that another test forks, and could
/// not be executed.
fn copy(from: &[&Path], to: &Path) {
    let copied = Command::new("cp").args(from).arg(to).status();
    assert!(copied.is_ok_and(|status| status.success()), "cp {from:?} {}", to.display());
}

/// Copies a file or a directory with owners and modes, because the host refuses a home that others can read.
pub(crate) fn copy_with_owners(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-a").args([from, to]).status();
    assert!(copied.is_ok_and(|status| status.success()), "cp -a {} {}", from.display(), to.display());
}

/// Waits for a condition, at most [`PATIENCE`].
#[track_caller]
pub(crate) fn wait_for(what: &str, mut done: impl FnMut() -> bool) {
    let until = Instant::now() + WAIT_MAX;
    while !done() {
        assert!(Instant::now() < until, "waited {WAIT_MAX:?} for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Returns whether a process exists and is not a zombie. A zombie whose other threads run still holds its files and counts as alive.
pub(crate) fn alive(pid: i32) -> bool {
    let over = |stat: String| stat.rsplit(')').next().is_none_or(|rest| rest.trim_start().starts_with(['Z', 'X']));
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    let threads = || std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    stat.is_ok_and(|stat| !over(stat) || threads() > 1)
}
pub(crate) fn kill(pid: i32) {
    // The process may have ended already.
    let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), nix::sys::signal::Signal::SIGKILL);
}
