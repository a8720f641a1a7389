//! The daemon's program with fail points, for tests: beside the real one and never in its place.

fn main() -> std::process::ExitCode {
    ironclaw_host::command::main()
}
