//! The agent whose objects a command lists: its name as an argument or as `--agent`, in each list in the same way.

/// The agent of a list.
#[derive(Debug, Default, clap::Args)]
pub struct NamedAgent {
    /// Name or id of an agent; only its entries
    agent: Option<String>,
    /// The same as an option
    #[arg(long = "agent", value_name = "AGENT", conflicts_with = "agent")]
    option: Option<String>,
}

impl NamedAgent {
    pub fn name(self) -> Option<String> {
        self.agent.or(self.option)
    }
}
