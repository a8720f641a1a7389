//! The daemon's program with a relay in its links, for the bench: beside the real one and never in its place.

fn main() -> std::process::ExitCode {
    ironclaw_host::command::main()
}
