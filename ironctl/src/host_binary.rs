//! Runs the other binaries of IronClaw and passes on their exit codes.
//!
//! Never searches the working directory, and reads the output of a binary only in [`Offline::capture`]. See
//! [`crate::commands`]; `up` starts a detached host with it.

use crate::failure::Error;
use crate::home::Home;
use ironclaw_operator::{Failure, exit};
use std::env;
use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

pub const HOST: &str = "ironclaw-host";

pub const SANDBOX: &str = "ironclaw-sandbox";

/// Returns the path of a binary: beside this binary, else in an absolute directory of `PATH`.
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

/// A command of another binary that works without a running host.
pub struct Offline {
    binary: PathBuf,
    command: Command,
}

impl Offline {
    /// Prepares `ironclaw-host WORDS…`.
    pub fn host(words: &[&str]) -> Result<Self, Error> {
        Self::program(HOST, words)
    }

    /// Prepares `NAME WORDS…`.
    pub fn program(name: &str, words: &[&str]) -> Result<Self, Error> {
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

    pub fn arg(mut self, word: impl AsRef<OsStr>) -> Self {
        self.command.arg(word);
        self
    }

    /// Adds `--json` if wanted.
    pub fn json(mut self, wanted: bool) -> Self {
        if wanted {
            self.command.arg("--json");
        }
        self
    }

    /// Runs the command with the stdin, stdout and stderr of `ironctl`; passes on its exit code.
    pub fn pass(mut self) -> Result<(), Error> {
        let status = self.command.status().map_err(|cause| cannot_run(&self.binary, cause))?;
        pass_on(status)
    }

    /// Runs the command and returns its stdout; its stderr goes to the stderr of `ironctl`.
    pub fn capture(mut self) -> Result<Output, Error> {
        self.command.stdin(Stdio::null()).stderr(Stdio::inherit());
        self.command.output().map_err(|cause| cannot_run(&self.binary, cause))
    }

    /// Runs the command and returns its stdout and its stderr.
    pub fn capture_all(mut self) -> Result<Output, Error> {
        self.command.stdin(Stdio::null());
        self.command.output().map_err(|cause| cannot_run(&self.binary, cause))
    }

    /// Runs the command with its stdout in a file, and returns its stderr.
    pub fn write_to(mut self, file: File) -> Result<Output, Error> {
        self.command.stdin(Stdio::null()).stdout(file).stderr(Stdio::piped());
        self.command.output().map_err(|cause| cannot_run(&self.binary, cause))
    }

    /// Replaces this process by the command; returns only if that fails.
    pub fn exec(mut self) -> Error {
        let cause = self.command.exec();
        cannot_run(&self.binary, cause)
    }

    /// Starts the command in its own process session, so that it survives the terminal; its output goes to `log`.
    pub fn detach(mut self, log: File) -> Result<Child, Error> {
        let copy = log.try_clone().map_err(|cause| cannot_run(&self.binary, cause))?;
        // Otherwise the file system of the working directory could not be unmounted.
        self.command.current_dir("/").stdin(Stdio::null()).stdout(copy).stderr(log);
        // SAFETY: the closure runs between fork and exec and makes one system call. It does not allocate, takes no lock,
        // and uses no state that another thread of this process could have left inconsistent.
        unsafe {
            self.command.pre_exec(|| nix::unistd::setsid().map(drop).map_err(std::io::Error::from));
        }
        self.command.spawn().map_err(|cause| cannot_run(&self.binary, cause))
    }
}

/// Returns `Ok` for exit code 0, else the exit code as a failure. A program that a signal killed has failed.
pub fn pass_on(status: ExitStatus) -> Result<(), Error> {
    match status.code().map(u8::try_from) {
        Some(Ok(exit::DONE)) => Ok(()),
        Some(Ok(code)) => Err(Error::Passed(code)),
        Some(Err(_)) | None => Err(Error::failed("sibling_killed", format!("a signal ended {HOST}: {status}"))),
    }
}

/// Returns the failure that a command with `--json` printed on its stderr.
pub fn failure_of(output: &Output) -> Error {
    match serde_json::from_slice::<Failure>(&output.stderr) {
        Ok(failure) => Error::Refused(failure),
        Err(_) => {
            let words = String::from_utf8_lossy(&output.stderr);
            Error::failed("sibling_failed", format!("{HOST} failed ({}): {}", output.status, words.trim()))
        }
    }
}

fn cannot_run(binary: &Path, cause: std::io::Error) -> Error {
    Error::failed("sibling_broken", format!("cannot run {}", binary.display())).because(cause)
}
