//! Agents with roles, software, mounts, hosts and allowances. Tables: `agents`, `agent_roles`, `agent_packages`, `agent_mounts`,
//! `written_directories`, `egress_grants`, `allowances`.
//!
//! See `registry` and its modules `roles`, `software`, `mounts`, `egress` and `allowances`.

use super::people::{Giver, Person, Provenance, as_pairs, given};
use crate::rows::rows;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{AgentId, CallId, MessageId, PersonId, SessionId};
use ironclaw_contract::seam::change::{Access, AgentRole, Egress, Packages};
use ironclaw_judge::OwnReceiver;
use ironclaw_state::{Error, ReadTx, WriteTx, stored_json};
use rusqlite::params;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

pub use ironclaw_contract::seam::change::GuardMode as Mode;

rows! {
    #[derive(Debug, Clone)]
    pub struct Agent in agents {
        pub id: AgentId,
        pub name: String,
        /// Name of its model endpoint.
        pub model: String,
        /// True if it changes to another endpoint when that becomes the default.
        pub follows_default: bool,
        /// Its persona, a part of the system text.
        pub persona: String,
        /// Names of the tools that it may call.
        pub enabled_tools: Vec<String> as json,
        /// The people who may talk to it.
        pub access: Access,
        pub mode: Mode,
        /// The classes that it takes from each kind of author.
        pub receiver: OwnReceiver as json,
        /// Milliseconds since the epoch.
        pub created_at: i64,
    }
}

/// Returns the warning of a guard mode for `status`; `None` for the default mode.
pub const fn mode_warning(mode: Mode) -> Option<&'static str> {
    match mode {
        Mode::Enforce => None,
        Mode::DangerousWarn => Some(
            "a call runs that would need a person, text without a seal reaches its model as quoted text, and the ledger records each case",
        ),
        Mode::DangerousOff => {
            Some("no call needs a person for its scope or origin, no seal is checked, and the ledger records neither")
        }
    }
}

rows! {
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Software {
        /// The names of the packages in the change.
        pub packages: Packages as json,
        /// Digest of the whole layer, which is also the name of its directory.
        pub layer: Digest,
        /// Milliseconds since the epoch.
        pub made_at: i64,
    }

    /// A directory of the machine in an agent's jail.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Mount {
        /// Absolute path on the machine.
        pub source: PathBuf as text,
        /// Path in the jail: `/` and one name.
        pub target: String,
        /// True if the agent can only read it.
        pub read_only: bool,
        /// The person who declared its text theirs.
        pub mine: Option<PersonId>,
    }

    /// A directory of the machine that an agent or an MCP server could write, now or before.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Written {
        /// Absolute path on the machine.
        pub path: PathBuf as text,
        /// The first one who could write it, in words of the host.
        pub writer: String,
    }
}

/// Returns every agent, by name.
pub fn agents(tx: &ReadTx<'_>) -> Result<Vec<Agent>, Error> {
    tx.list("SELECT * FROM agents ORDER BY name", [], Agent::read)
}

/// Returns the agent of this name or id.
pub fn find_agent(tx: &ReadTx<'_>, name_or_id: &str) -> Result<Option<Agent>, Error> {
    tx.find("SELECT * FROM agents WHERE name = ?1 OR id = ?1", [name_or_id], Agent::read)
}

/// Returns the agent of this id.
pub fn agent_by_id(tx: &ReadTx<'_>, id: AgentId) -> Result<Option<Agent>, Error> {
    tx.find("SELECT * FROM agents WHERE id = ?1", [id], Agent::read)
}

pub fn insert_agent(tx: &mut WriteTx<'_>, agent: &Agent) -> Result<(), Error> {
    agent.insert(tx)
}

pub fn set_persona(tx: &mut WriteTx<'_>, agent: AgentId, persona: &str) -> Result<(), Error> {
    tx.execute("UPDATE agents SET persona = ?2 WHERE id = ?1", params![agent, persona]).map(drop)
}

/// Sets the tools that an agent may call.
pub fn set_tools(tx: &mut WriteTx<'_>, agent: AgentId, tools: &[String]) -> Result<(), Error> {
    tx.execute("UPDATE agents SET enabled_tools = ?2 WHERE id = ?1", params![agent, canonical::to_string(&tools)])
        .map(drop)
}

/// Sets the guard mode of an agent.
pub fn set_mode(tx: &mut WriteTx<'_>, agent: AgentId, mode: Mode) -> Result<(), Error> {
    tx.execute("UPDATE agents SET mode = ?2 WHERE id = ?1", params![agent, mode.name()]).map(drop)
}

/// Sets the classes that an agent takes from each kind of author.
pub fn set_receiver(tx: &mut WriteTx<'_>, agent: AgentId, receiver: &OwnReceiver) -> Result<(), Error> {
    let receiver = canonical::to_string(receiver);
    tx.execute("UPDATE agents SET receiver = ?2 WHERE id = ?1", params![agent, receiver]).map(drop)
}

/// Returns the classes that the agent of a session takes from each kind of author.
pub fn receiver_of_session(tx: &ReadTx<'_>, session: SessionId) -> Result<OwnReceiver, Error> {
    let sql = "SELECT receiver FROM agents WHERE id = (SELECT agent_id FROM sessions WHERE id = ?1)";
    Ok(tx.find(sql, [session], |row| stored_json(row, 0))?.unwrap_or_default())
}

/// Sets the people who may talk to an agent.
pub fn set_access(tx: &mut WriteTx<'_>, agent: AgentId, access: Access) -> Result<(), Error> {
    tx.execute("UPDATE agents SET access = ?2 WHERE id = ?1", params![agent, access.name()]).map(drop)
}

pub fn delete_agent(tx: &mut WriteTx<'_>, agent: AgentId) -> Result<(), Error> {
    tx.execute("DELETE FROM agents WHERE id = ?1", [agent]).map(drop)
}

/// Returns the role of a person for an agent.
pub fn role_of(tx: &ReadTx<'_>, agent: AgentId, person: PersonId) -> Result<Option<AgentRole>, Error> {
    let sql = "SELECT role FROM agent_roles WHERE agent_id = ?1 AND person_id = ?2";
    tx.find(sql, params![agent, person], |row| row.get("role"))
}

/// Returns each person with a role for this agent, and that role; oldest person first.
pub fn roles_of(tx: &ReadTx<'_>, agent: AgentId) -> Result<Vec<(Person, AgentRole)>, Error> {
    let sql = "SELECT people.*, agent_roles.role AS own FROM agent_roles JOIN people ON person_id = id \
               WHERE agent_id = ?1 ORDER BY created_at, id";
    tx.list(sql, [agent], |row| Ok((Person::read(row)?, row.get("own")?)))
}

/// Returns each agent for which a person has a role, and that role, by the name of the agent.
pub fn roles_of_person(tx: &ReadTx<'_>, person: PersonId) -> Result<Vec<(Agent, AgentRole)>, Error> {
    let sql = "SELECT agents.*, agent_roles.role AS own FROM agent_roles JOIN agents ON agent_id = id \
               WHERE person_id = ?1 ORDER BY name";
    tx.list(sql, [person], |row| Ok((Agent::read(row)?, row.get("own")?)))
}

/// Sets the role of a person for an agent.
pub fn set_role(tx: &mut WriteTx<'_>, agent: AgentId, person: PersonId, role: AgentRole) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO agent_roles (agent_id, person_id, role) VALUES (?1,?2,?3) \
         ON CONFLICT (agent_id, person_id) DO UPDATE SET role = excluded.role",
        params![agent, person, role.name()],
    )?;
    Ok(())
}

/// Deletes the role of a person for an agent.
pub fn delete_role(tx: &mut WriteTx<'_>, agent: AgentId, person: PersonId) -> Result<(), Error> {
    tx.execute("DELETE FROM agent_roles WHERE agent_id = ?1 AND person_id = ?2", params![agent, person]).map(drop)
}

/// Returns the givers of a person's role for an agent, if the person has one.
pub fn role_given(tx: &ReadTx<'_>, agent: AgentId, person: PersonId) -> Result<Option<Provenance>, Error> {
    let sql = "SELECT given_seq, given_by FROM agent_roles WHERE agent_id = ?1 AND person_id = ?2";
    tx.find(sql, params![agent, person], given)
}

/// Records the givers of a person's role for an agent.
pub fn record_role_giver(
    tx: &mut WriteTx<'_>,
    agent: AgentId,
    person: PersonId,
    seq: u64,
    by: &[Giver],
) -> Result<(), Error> {
    let sql = "UPDATE agent_roles SET given_seq = ?3, given_by = ?4 WHERE agent_id = ?1 AND person_id = ?2";
    tx.execute(sql, params![agent, person, seq as i64, as_pairs(by)]).map(drop)
}

pub fn software_of(tx: &ReadTx<'_>, agent: AgentId) -> Result<Option<Software>, Error> {
    let sql = "SELECT packages, layer, made_at FROM agent_packages WHERE agent_id = ?1";
    tx.find(sql, [agent], Software::read)
}

pub fn layers(tx: &ReadTx<'_>) -> Result<Vec<(AgentId, Digest)>, Error> {
    let sql = "SELECT agent_id, layer FROM agent_packages ORDER BY agent_id";
    tx.list(sql, [], |row| Ok((row.get("agent_id")?, row.get("layer")?)))
}

/// Sets the packages of an agent and their layer, which was made at `made_at`.
pub fn set_software(
    tx: &mut WriteTx<'_>,
    agent: AgentId,
    packages: &Packages,
    layer: &Digest,
    made_at: i64,
) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO agent_packages (agent_id, packages, layer, made_at) VALUES (?1,?2,?3,?4) ON CONFLICT (agent_id) \
         DO UPDATE SET packages = excluded.packages, layer = excluded.layer, made_at = excluded.made_at",
        params![agent, canonical::to_string(packages), layer, made_at],
    )?;
    Ok(())
}

pub fn delete_software(tx: &mut WriteTx<'_>, agent: AgentId) -> Result<(), Error> {
    tx.execute("DELETE FROM agent_packages WHERE agent_id = ?1", [agent]).map(drop)
}

/// Returns the mounts of an agent, by target.
pub fn mounts_of(tx: &ReadTx<'_>, agent: AgentId) -> Result<Vec<Mount>, Error> {
    let sql = "SELECT source, target, read_only, mine FROM agent_mounts WHERE agent_id = ?1 ORDER BY target";
    tx.list(sql, [agent], Mount::read)
}

/// Replaces all mounts of an agent.
///
/// # Errors
/// Also refuses a source that is not UTF-8, because the record would show another path.
pub fn replace_mounts(tx: &mut WriteTx<'_>, agent: AgentId, mounts: &[Mount]) -> Result<(), Error> {
    tx.execute("DELETE FROM agent_mounts WHERE agent_id = ?1", [agent])?;
    let sql = "INSERT INTO agent_mounts (agent_id, target, source, read_only, mine) VALUES (?1, ?2, ?3, ?4, ?5)";
    for mount in mounts {
        let source = std::str::from_utf8(mount.source.as_os_str().as_bytes())
            .map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
        tx.execute(sql, params![agent, mount.target, source, mount.read_only, mount.mine])?;
    }
    Ok(())
}

/// Returns the mounts that people declared theirs, of every agent with its name.
pub fn declared_mounts(tx: &ReadTx<'_>) -> Result<Vec<(String, Mount)>, Error> {
    let sql = "SELECT name, source, target, read_only, mine FROM agent_mounts JOIN agents ON agents.id = agent_id \
               WHERE mine IS NOT NULL ORDER BY name, target";
    tx.list(sql, [], |row| Ok((row.get("name")?, Mount::read(row)?)))
}

/// Ends that people call directories theirs. Returns the number of directories.
pub fn end_declared_mounts(tx: &mut WriteTx<'_>) -> Result<usize, Error> {
    tx.execute("UPDATE agent_mounts SET mine = NULL WHERE mine IS NOT NULL", [])
}

/// Records a directory that an agent or an MCP server can write from now on. The record keeps the first writer of each.
pub fn insert_written(tx: &mut WriteTx<'_>, path: &str, writer: &str) -> Result<(), Error> {
    let sql = "INSERT OR IGNORE INTO written_directories (path, writer) VALUES (?1, ?2)";
    tx.execute(sql, [path, writer]).map(drop)
}

/// Returns every directory that an agent or an MCP server could write, now or before.
pub fn written_directories(tx: &ReadTx<'_>) -> Result<Vec<Written>, Error> {
    tx.list("SELECT path, writer FROM written_directories ORDER BY path", [], Written::read)
}

/// Sets the model endpoint of an agent, and whether it changes to another one when that becomes the default.
pub fn set_model(tx: &mut WriteTx<'_>, agent: AgentId, model: &str, follows_default: bool) -> Result<(), Error> {
    tx.execute(
        "UPDATE agents SET model = ?2, follows_default = ?3 WHERE id = ?1",
        params![agent, model, follows_default],
    )?;
    Ok(())
}

rows! {
    /// The grant of a host of the network to an agent.
    #[derive(Debug, Clone)]
    pub struct EgressGrant {
        pub agent_name: String,
        pub host: String,
        /// The payload of the change that granted it.
        pub granted: Egress as json,
        /// The time of the grant, milliseconds since the epoch.
        pub granted_at: Option<i64>,
        /// The time of its newest use.
        pub used_at: Option<i64>,
        /// The addresses of the local network that people read with it.
        pub addresses: Vec<IpAddr> as json,
    }
}

const EGRESS: &str = "SELECT agents.name AS agent_name, host, granted, granted_at, used_at, addresses FROM egress_grants JOIN agents ON agent_id = agents.id";

/// Returns the granted hosts of an agent, by host.
pub fn egress_of(tx: &ReadTx<'_>, agent: AgentId) -> Result<Vec<EgressGrant>, Error> {
    tx.list(&format!("{EGRESS} WHERE agent_id = ?1 ORDER BY host"), [agent], EgressGrant::read)
}

/// Returns every granted host, by agent and host.
pub fn egress_of_all(tx: &ReadTx<'_>) -> Result<Vec<EgressGrant>, Error> {
    tx.list(&format!("{EGRESS} ORDER BY agents.name, host"), [], EgressGrant::read)
}

/// Inserts or replaces the grant of a host, with the addresses of the local network that people read.
pub fn put_egress(tx: &mut WriteTx<'_>, agent: AgentId, granted: &Egress, addresses: &[IpAddr]) -> Result<(), Error> {
    let now = tx.wall();
    tx.execute(
        "INSERT INTO egress_grants (agent_id, host, granted, granted_at, addresses) VALUES (?1,?2,?3,?4,?5) \
         ON CONFLICT (agent_id, host) DO UPDATE SET granted = excluded.granted, granted_at = excluded.granted_at, \
         addresses = excluded.addresses",
        params![agent, granted.host, canonical::to_string(granted), now, canonical::to_string(&addresses)],
    )?;
    Ok(())
}

/// Notes a use of the grant of a host now, if there is one.
pub fn record_egress_use(tx: &mut WriteTx<'_>, agent: AgentId, host: &str) -> Result<(), Error> {
    // A grant of plain http has its scheme before the host.
    let sql = "UPDATE egress_grants SET used_at = ?3 WHERE agent_id = ?1 AND host IN (?2, 'http://' || ?2)";
    let now = tx.wall();
    tx.execute(sql, params![agent, host, now]).map(drop)
}

pub fn delete_egress(tx: &mut WriteTx<'_>, agent: AgentId, host: &str) -> Result<(), Error> {
    tx.execute("DELETE FROM egress_grants WHERE agent_id = ?1 AND host = ?2", params![agent, host]).map(drop)
}

rows! {
    /// The consent of a person to several calls that would need them, up to a count and an end.
    #[derive(Debug, Clone)]
    pub struct Allowance {
        /// Its number.
        pub id: i64,
        /// The person whose turns it serves.
        pub person: PersonId = "person_id",
        /// The agent that calls.
        pub agent: AgentId = "agent_id",
        /// The tools whose calls it covers, each with the digest of its manifest and of the standing facts of its calls.
        pub tools: BTreeMap<String, Digest> as json,
        /// The fixed control fields; none for tools that only read.
        pub fields: Map<String, Value> as json,
        /// The message of the task that it is for, whose next answer ends it; `None` if only its time ends it.
        pub root: Option<MessageId>,
        /// The bound on its uses.
        pub uses_max: u32,
        /// The uses so far.
        pub uses: u32,
        /// Milliseconds since the epoch.
        pub created_at: i64,
        /// Milliseconds since the epoch.
        pub expires_at: i64,
    }
}

/// Returns every allowance, by number.
pub fn allowances(tx: &ReadTx<'_>) -> Result<Vec<Allowance>, Error> {
    tx.list("SELECT * FROM allowances ORDER BY id", [], Allowance::read)
}

/// Returns the allowances of a person for calls of a tool by an agent; those that end first come first.
pub fn allowances_for(tx: &ReadTx<'_>, person: PersonId, agent: AgentId, tool: &str) -> Result<Vec<Allowance>, Error> {
    let sql = "SELECT * FROM allowances WHERE person_id = ?1 AND agent_id = ?2 ORDER BY expires_at, id";
    let mut all: Vec<Allowance> = tx.list(sql, params![person, agent], Allowance::read)?;
    all.retain(|allowance| allowance.tools.contains_key(tool));
    Ok(all)
}

/// Returns the allowances that the next answer of a task ends.
pub fn allowances_until_answer(tx: &ReadTx<'_>, root: MessageId) -> Result<Vec<Allowance>, Error> {
    tx.list("SELECT * FROM allowances WHERE root = ?1 ORDER BY id", [root], Allowance::read)
}

/// Inserts an allowance and returns its number.
pub fn insert_allowance(tx: &mut WriteTx<'_>, new: &Allowance) -> Result<i64, Error> {
    let Allowance { id: _, person, agent, tools, fields, root, uses_max, uses, created_at, expires_at } = new;
    let (tools, fields) = (canonical::to_string(tools), canonical::to_string(fields));
    tx.execute(
        "INSERT INTO allowances (person_id, agent_id, tools, fields, root, uses_max, uses, created_at, expires_at) \
         VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9)",
        params![person, agent, tools, fields, root, uses_max, uses, created_at, expires_at],
    )?;
    tx.get("SELECT max(id) FROM allowances", [], |row| row.get(0))
}

/// Returns the number of permitted calls, other than `except`, for which an allowance has to keep a use.
pub fn promised_uses(tx: &ReadTx<'_>, id: i64, except: CallId) -> Result<u32, Error> {
    let sql = "SELECT count(*) FROM calls WHERE allowance = ?1 AND state = 'permitted' AND id <> ?2";
    tx.get(sql, params![id, except], |row| row.get(0))
}

/// Counts a use of an allowance, and returns whether one was left.
pub fn use_allowance(tx: &mut WriteTx<'_>, id: i64, now: i64) -> Result<bool, Error> {
    let sql = "UPDATE allowances SET uses = uses + 1 WHERE id = ?1 AND uses < uses_max AND expires_at > ?2";
    Ok(tx.execute(sql, params![id, now])? == 1)
}

/// Deletes an allowance, and returns whether there was one.
pub fn delete_allowance(tx: &mut WriteTx<'_>, id: i64) -> Result<bool, Error> {
    Ok(tx.execute("DELETE FROM allowances WHERE id = ?1", [id])? == 1)
}
