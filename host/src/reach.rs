//! Everything that comes from other machines for an agent, or goes to them.

pub mod git_push;
pub mod jail_network;
pub mod mcp;
pub mod mcp_jail;
pub mod network_command;
pub mod packages;
pub mod skills;
