//! `ironctl completions`: prints a completion script for a shell, or installs it where the shell of this user looks for it.
//!
//! Writes a file only with `--install`, and never changes a file of the shell. See [`crate::commands`] for the command line.

use crate::at::At;
use crate::failure::Error;
use clap::CommandFactory;
use clap_complete::Shell;
use directories::BaseDirs;
use serde_json::json;
use std::fs;
use std::path::PathBuf;

/// Options of `ironctl completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ironctl completions bash --install\n  ironctl completions zsh > _ironctl")]
pub struct Args {
    /// Name of the shell
    shell: Shell,
    /// Write it to the directory of this user for bash, fish or zsh
    #[arg(long)]
    install: bool,
}

/// The shells with a place for scripts of a user.
pub const INSTALLABLE: [Shell; 3] = [Shell::Bash, Shell::Fish, Shell::Zsh];

/// Prints or installs the script.
pub fn run(at: &At, args: &Args) -> Result<(), Error> {
    // Generated in memory, because the generator panics on a closed pipe.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::Cli::command(), "ironctl", &mut script);
    if !args.install {
        return at.out.raw(&script);
    }
    let path = place(args.shell).ok_or_else(|| {
        let message = format!("there is no known directory for completions of {}", args.shell);
        Error::failed("completions_no_place", message).hinting(format!("ironctl completions {} > FILE", args.shell))
    })?;
    let directory = path.parent().expect("a place is a file in a directory");
    // A new file takes the place of a link, and of a script that a shell is reading.
    let next = path.with_file_name(".ironctl.next");
    let written =
        fs::create_dir_all(directory).and_then(|()| fs::write(&next, &script)).and_then(|()| fs::rename(&next, &path));
    written.map_err(|cause| {
        Error::failed("completions_unwritten", format!("cannot write {}", path.display())).because(cause)
    })?;
    at.out.json(&json!({ "shell": args.shell.to_string(), "file": path }))?;
    at.out.line(format!("wrote {}; a new shell reads it", path.display()))?;
    if args.shell == Shell::Zsh {
        let directory = directory.display();
        at.out.line(format!("zsh needs this line in ~/.zshrc before `compinit`: fpath=({directory} $fpath)"))?;
    }
    Ok(())
}

/// Returns the file that a shell of this user reads the script from.
pub fn place(shell: Shell) -> Option<PathBuf> {
    let base = BaseDirs::new()?;
    match shell {
        Shell::Bash => Some(base.data_dir().join("bash-completion/completions/ironctl")),
        Shell::Fish => Some(base.config_dir().join("fish/completions/ironctl.fish")),
        Shell::Zsh => Some(base.data_dir().join("zsh/site-functions/_ironctl")),
        _ => None,
    }
}
