//! Trust groups of agents. Tables: `agent_groups`, `agent_group_members`.

use crate::rows::rows;
use ironclaw_contract::canonical;
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::seam::change;
use ironclaw_state::{Error, ReadTx, WriteTx, stored_json};
use rusqlite::params;
use std::collections::BTreeSet;

rows! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Group {
        pub name: String,
        /// The names of its agents, sorted.
        pub agents: Vec<String> as json,
        /// The tools that a member may use at the request of another member.
        pub tools: Vec<String> as json,
    }
}

impl Group {
    pub fn payload(&self) -> change::Group {
        change::Group { name: self.name.clone(), agents: self.agents.clone(), tools: self.tools.clone(), remove: None }
    }
}

const GROUPS: &str = "SELECT name, tools, (SELECT json_group_array(member) FROM (SELECT agents.name AS member \
     FROM agent_group_members JOIN agents ON agents.id = agent_id WHERE group_name = agent_groups.name ORDER BY 1)) AS agents \
     FROM agent_groups";

/// Returns every group, by name.
pub fn all(tx: &ReadTx<'_>) -> Result<Vec<Group>, Error> {
    tx.list(&format!("{GROUPS} ORDER BY name"), [], Group::read)
}

pub fn find(tx: &ReadTx<'_>, name: &str) -> Result<Option<Group>, Error> {
    tx.find(&format!("{GROUPS} WHERE name = ?1"), [name], Group::read)
}

/// Returns the tools of all groups that have both agents; `None` if no group has both.
pub fn shared_tools(tx: &ReadTx<'_>, one: AgentId, other: AgentId) -> Result<Option<BTreeSet<String>>, Error> {
    let sql = "SELECT tools FROM agent_group_members AS one JOIN agent_group_members AS other \
               ON other.group_name = one.group_name JOIN agent_groups ON name = one.group_name \
               WHERE one.agent_id = ?1 AND other.agent_id = ?2";
    let lists: Vec<Vec<String>> = tx.list(sql, params![one, other], |row| stored_json(row, "tools"))?;
    Ok((!lists.is_empty()).then(|| lists.into_iter().flatten().collect()))
}

/// Inserts or replaces a group with its members.
pub fn put(tx: &mut WriteTx<'_>, name: &str, tools: &[String], members: &[AgentId]) -> Result<(), Error> {
    delete(tx, name)?;
    let tools = canonical::to_string(&tools);
    tx.execute("INSERT INTO agent_groups (name, tools) VALUES (?1,?2)", params![name, tools])?;
    for member in members {
        tx.execute("INSERT INTO agent_group_members (group_name, agent_id) VALUES (?1,?2)", params![name, member])?;
    }
    Ok(())
}

pub fn delete(tx: &mut WriteTx<'_>, name: &str) -> Result<(), Error> {
    tx.execute("DELETE FROM agent_groups WHERE name = ?1", [name]).map(drop)
}
