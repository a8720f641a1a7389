//! The program of the daemon. See [`ironclaw_host::command`].

fn main() -> std::process::ExitCode {
    ironclaw_host::command::main()
}
