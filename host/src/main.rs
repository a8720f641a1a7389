//! The daemon's program. Next: `command`.

fn main() -> std::process::ExitCode {
    ironclaw_host::command::main()
}
