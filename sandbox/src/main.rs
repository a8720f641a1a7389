//! The program of one agent session.
//!
//! See [`crate::command`].

fn main() -> std::process::ExitCode {
    ironclaw_sandbox::command::main()
}
