//! The process that one agent session runs in. Next: `command`.

fn main() -> std::process::ExitCode {
    ironclaw_sandbox::command::main()
}
