//! The sandbox's program with fail points, for tests: beside the real one and never in its place.

fn main() -> std::process::ExitCode {
    ironclaw_sandbox::command::main()
}
