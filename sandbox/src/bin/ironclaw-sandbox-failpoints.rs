//! The sandbox's program with fail points, for tests; it never replaces the real program.

fn main() -> std::process::ExitCode {
    ironclaw_sandbox::command::main()
}
