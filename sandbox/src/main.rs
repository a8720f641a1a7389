//! The process that one agent session runs in.
//!
//! See [`crate::command`].

fn main() -> std::process::ExitCode {
    ironclaw_sandbox::command::main()
}
