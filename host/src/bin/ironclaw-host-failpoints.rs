//! The daemon with fail points, for tests; never installed in place of the real one.

fn main() -> std::process::ExitCode {
    ironclaw_host::daemon::command::main()
}
