//! The program of the daemon. See [`ironclaw_host::daemon::command`].

fn main() -> std::process::ExitCode {
    ironclaw_host::daemon::command::main()
}
