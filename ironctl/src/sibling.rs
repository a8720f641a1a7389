//! The other binaries of IronClaw: finds them, runs them, and hands their exit code on.
//!
//! Never looks in the working directory, and never reads what they print unless asked to capture it. `commands::up`
//! starts a detached host with it.

use crate::failure::Error;
use crate::home::Home;
use ironclaw_contract::operator::exit;
use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

/// The daemon's binary.
pub const HOST: &str = "ironclaw-host";

/// The agent's binary.
pub const SANDBOX: &str = "ironclaw-sandbox";

/// Returns the path of a sibling: beside this binary, else in an absolute directory of `PATH`.
pub fn find(name: &str) -> Result<PathBuf, Error> {
    let beside = env::current_exe().ok().and_then(|own| Some(own.parent()?.join(name)));
    let on_path = env::var_os("PATH").unwrap_or_default();
    let candidates =
        beside.into_iter().chain(env::split_paths(&on_path).filter(|dir| dir.is_absolute()).map(|dir| dir.join(name)));
    candidates.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        Error::failed("sibling_missing", format!("cannot find {name} beside ironctl or on PATH"))
            .hinting(format!("install {name} into the directory that ironctl is in"))
    })
}

/// A command of the host's binary that works without a running host.
pub struct Offline {
    binary: PathBuf,
    command: Command,
}

impl Offline {
    /// Prepares `ironclaw-host WORDS…`.
    pub fn host(words: &[&str]) -> Result<Self, Error> {
        Self::of(HOST, words)
    }

    /// Prepares `NAME WORDS…`.
    pub fn of(name: &str, words: &[&str]) -> Result<Self, Error> {
        let binary = find(name)?;
        let mut command = Command::new(&binary);
        command.args(words);
        Ok(Self { binary, command })
    }

    /// Adds `--home H`.
    pub fn at(mut self, home: &Home) -> Self {
        self.command.arg("--home").arg(home.path());
        self
    }

    /// Adds one more word.
    pub fn arg(mut self, word: impl AsRef<OsStr>) -> Self {
        self.command.arg(word);
        self
    }

    /// Adds `--json`, if it is wanted.
    pub fn json(mut self, wanted: bool) -> Self {
        if wanted {
            self.command.arg("--json");
        }
        self
    }

    /// Runs it with our own stdin, stdout and stderr; its exit code becomes ours.
    pub fn pass(mut self) -> Result<(), Error> {
        let status = self.command.status().map_err(|cause| cannot_run(&self.binary, cause))?;
        pass_on(status)
    }

    /// Runs it, keeps what it prints on stdout, and lets its stderr through.
    pub fn capture(mut self) -> Result<Output, Error> {
        self.command.stdin(Stdio::null()).stderr(Stdio::inherit());
        self.command.output().map_err(|cause| cannot_run(&self.binary, cause))
    }

    /// Becomes it; returns only to say why that failed.
    pub fn exec(mut self) -> Error {
        let cause = self.command.exec();
        cannot_run(&self.binary, cause)
    }

    /// Starts it in a session of its own, so that it outlives our terminal, with its output in `log`.
    pub fn detach(mut self, log: File) -> Result<Child, Error> {
        let copy = log.try_clone().map_err(|cause| cannot_run(&self.binary, cause))?;
        // It must not keep the directory that we were called in from being unmounted.
        self.command.current_dir("/").stdin(Stdio::null()).stdout(copy).stderr(log);
        // SAFETY: the closure runs between fork and exec and makes one system call: no allocation, no
        // lock, nothing that another thread of ours could have left half done.
        unsafe {
            self.command.pre_exec(|| nix::unistd::setsid().map(drop).map_err(std::io::Error::from));
        }
        self.command.spawn().map_err(|cause| cannot_run(&self.binary, cause))
    }
}

/// Returns `Ok` when it ended well, else its exit code; one killed by a signal counts as failed.
pub fn pass_on(status: ExitStatus) -> Result<(), Error> {
    match status.code().map(u8::try_from) {
        Some(Ok(exit::DONE)) => Ok(()),
        Some(Ok(code)) => Err(Error::Passed(code)),
        Some(Err(_)) | None => Err(Error::failed("sibling_killed", format!("{HOST} did not end by itself: {status}"))),
    }
}

fn cannot_run(binary: &Path, cause: std::io::Error) -> Error {
    Error::failed("sibling_broken", format!("cannot run {}", binary.display())).because(cause)
}
