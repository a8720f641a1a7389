//! The names that a host gives to files and directories in its home.
//!
//! Each path of [`super::Home`] begins with one of them, so a removal of a home knows every name. See `daemon::offline` of the host.

ironclaw_contract::words! {
    /// A file or directory in the root of a home.
    pub enum Own {
        Agents = "agents",
        Config = "config.toml",
        Keys = "keys.json",
        Ledger = "ledger",
        Lock = "host.lock",
        Logs = "logs",
        MasterKey = "master.key",
        Mcp = "mcp",
        OwnerToken = "owner.token",
        Panic = "panic",
        Policy = "policy.toml",
        /// The directory of sockets, if the user has no other one.
        Run = "run",
        RunFile = "run.json",
        Sessions = "sessions",
        SetupUnfinished = "setup.unfinished",
        Skills = "skills",
        StateDb = "state.db",
        StateDbLog = "state.db-wal",
        StateDbShared = "state.db-shm",
        /// A file that tests whether the home is writable; it never gets this name.
        Try = "try",
    }
}

/// Prefix of the directory into which the way back moves a newer record; the version of its schema follows.
pub const ASIDE: &str = "state-v";

/// Returns whether the way back gives this name to a directory.
pub fn is_set_aside(name: &str) -> bool {
    name.strip_prefix(ASIDE).is_some_and(|version| version.parse::<i64>().is_ok())
}

/// Returns whether a host gives this name to a file or directory in a home. A name with a further part, such as
/// `state.db.before-v8`, belongs to it as well.
pub fn is_own(name: &str) -> bool {
    // A file that is being written has a hidden name, `.NAME.RANDOM.new`, and a directory that is being removed `.removed-NUMBER`.
    let shown = name.strip_prefix('.').filter(|rest| rest.ends_with(".new") || rest.starts_with("removed-"));
    let name = shown.unwrap_or(name);
    let has_name =
        |own: Own| name.strip_prefix(own.name()).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    name.starts_with("removed-") || is_set_aside(name) || Own::ALL.into_iter().any(has_name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::home::{Home, LayerOwner};
    use ironclaw_contract::canonical::Digest;
    use ironclaw_contract::ids::{AgentId, SessionId};
    use ironclaw_operator as operator;

    #[test]
    fn each_path_of_a_home_begins_with_an_own_name() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let home = Home::create(&directory.path().join("home")).expect("made");
        let paths = [
            home.policy(),
            home.config(),
            home.master_key(),
            home.master_key_next(),
            home.state_db(),
            home.state_db_next(),
            home.lock(),
            home.owner_token(),
            home.owner_token_next(),
            home.keys_file(),
            home.run_file(),
            home.log(),
            home.ledger(),
            home.agent(AgentId::new()),
            home.session(SessionId::new()).workspace(),
            home.mcp(),
            home.skills(),
            home.mcp_state("one", "user"),
            home.layer(&LayerOwner::Server("one".to_owned()), &Digest::of(b"x")),
            home.path().join(operator::PANIC_FILE),
            home.path().join(operator::PANIC_RESERVE_FILE),
        ];
        for path in paths {
            let inner = path.strip_prefix(home.path()).expect("it is in the home");
            let first = inner.components().next().expect("a name").as_os_str().to_string_lossy().into_owned();
            assert!(is_own(&first), "{first}");
        }
        for entry in std::fs::read_dir(home.path()).expect("a directory") {
            let name = entry.expect("an entry").file_name().to_string_lossy().into_owned();
            assert!(is_own(&name), "{name}");
        }
    }

    #[test]
    fn names_with_a_further_part_are_own_and_others_are_not() {
        let own =
            ["state.db.before-v8", "state.db-wal", "state-v7", ".run.json.0123456789abcdef.new", "owner.token.next"];
        for name in own.into_iter().chain([".removed-3", "removed-3", ".try.0123456789abcdef.new", "panic.reserve"]) {
            assert!(is_own(name), "{name}");
        }
        for name in ["thesis.tex", "skills2", "my.state.db", "state-x", ".config", "runs", "master.keys", ""] {
            assert!(!is_own(name), "{name}");
        }
    }
}
