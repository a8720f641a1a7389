//! The daemon with a relay in its links, for benchmarks; never installed in place of the real one.

fn main() -> std::process::ExitCode {
    ironclaw_host::daemon::command::main()
}
