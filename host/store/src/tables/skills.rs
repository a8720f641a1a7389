//! Skills. Tables: `skill_sources`, `skill_keys`, `skill_revocations`, `skill_packages`, `skill_texts`, `agent_skills`.

use crate::rows::rows;
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::ids::{AgentId, ChangeId, ScheduleId};
use ironclaw_contract::seam::change::{Packages, Schedule};
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::params;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

rows! {
    /// A source of packages.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Source {
        pub name: String,
        /// An absolute directory, or an https URL.
        pub location: String,
        /// The largest serial of its index that was seen.
        pub serial: u64,
        /// The digest of the index with this serial; `None` if no index was seen, or before the host kept it.
        pub index_digest: Option<Digest>,
        /// The time at which it was added, milliseconds since the epoch.
        pub added_at: i64,
    }

    /// A public key whose signatures count.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Key in skill_keys {
        /// Its id: 16 hexadecimal digits.
        pub id: String,
        pub name: String,
        pub public_key: String,
        /// The skills that it may sign; empty for all.
        pub skills: Vec<String> as json,
        /// The time at which it was added.
        pub added_at: i64,
        /// The time at which it was revoked.
        pub revoked_at: Option<i64>,
    }

    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Package in skill_packages {
        /// The digest of its archive, and the name of its directory.
        pub digest: Digest,
        pub name: String,
        pub version: String,
        /// The id of the key that signed it.
        pub signer: String,
        /// The source that it came from.
        pub source: String,
        /// The description, in the words of its author.
        pub description: String,
        /// `skill.toml`.
        pub manifest: String,
        /// The time at which it was verified first.
        pub resolved_at: i64,
    }

    /// A skill of an agent.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct Installed {
        pub package: Package as row,
        /// True if it stays at its version.
        pub is_pinned: bool = "pinned",
        /// The grants that the agent has because of it.
        pub brought: Brought as json,
        pub change: ChangeId = "change_id",
        /// The time at which this version was installed.
        pub installed_at: i64,
        /// The time at which the agent read it last.
        pub used_at: Option<i64>,
    }
}

/// The grants that an agent has because of a skill. A grant that the agent had before is not among them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Brought {
    /// Names of built-in tools.
    pub tools: BTreeSet<String>,
    /// Tools of MCP servers, by the name of the server.
    pub mcp: BTreeMap<String, BTreeSet<String>>,
    /// Hosts of the network.
    pub egress: BTreeSet<String>,
    /// Targets of directories in the jail.
    pub mounts: BTreeSet<String>,
    pub packages: Packages,
    /// Schedules, as the skill asks for them, with their rows.
    pub schedules: Vec<(Schedule, ScheduleId)>,
}

/// Returns every source, by name.
pub fn sources(tx: &ReadTx<'_>) -> Result<Vec<Source>, Error> {
    tx.list("SELECT * FROM skill_sources ORDER BY name", [], Source::read)
}

pub fn add_source(tx: &mut WriteTx<'_>, name: &str, location: &str) -> Result<(), Error> {
    let now = tx.now();
    let sql = "INSERT INTO skill_sources (name, location, added_at) VALUES (?1,?2,?3)";
    tx.execute(sql, params![name, location, now]).map(drop)
}

/// Deletes a source; returns whether there was one.
pub fn delete_source(tx: &mut WriteTx<'_>, name: &str) -> Result<bool, Error> {
    Ok(tx.execute("DELETE FROM skill_sources WHERE name = ?1", [name])? > 0)
}

/// Records the index of a source that was seen, unless one with a larger serial was.
pub fn set_index(tx: &mut WriteTx<'_>, name: &str, serial: u64, digest: Digest) -> Result<(), Error> {
    let serial = i64::try_from(serial).unwrap_or(i64::MAX);
    let sql = "UPDATE skill_sources SET serial = ?2, index_digest = ?3 WHERE name = ?1 AND serial <= ?2";
    tx.execute(sql, params![name, serial, digest]).map(drop)
}

/// Returns every key, by name, with the revoked ones.
pub fn keys(tx: &ReadTx<'_>) -> Result<Vec<Key>, Error> {
    tx.list("SELECT * FROM skill_keys ORDER BY name", [], Key::read)
}

pub fn key_by_id(tx: &ReadTx<'_>, id: &str) -> Result<Option<Key>, Error> {
    tx.find("SELECT * FROM skill_keys WHERE id = ?1", [id], Key::read)
}

pub fn add_key(tx: &mut WriteTx<'_>, new: &Key) -> Result<(), Error> {
    new.insert(tx)
}

pub fn delete_key(tx: &mut WriteTx<'_>, id: &str) -> Result<(), Error> {
    tx.execute("DELETE FROM skill_keys WHERE id = ?1", [id]).map(drop)
}

/// Revokes a key for good; an earlier revocation stays.
pub fn revoke_key(tx: &mut WriteTx<'_>, id: &str) -> Result<(), Error> {
    let now = tx.now();
    tx.execute("UPDATE skill_keys SET revoked_at = ?2 WHERE id = ?1 AND revoked_at IS NULL", params![id, now]).map(drop)
}

/// Revokes a version for good; returns whether it was not revoked before.
pub fn revoke_version(tx: &mut WriteTx<'_>, name: &str, version: &str) -> Result<bool, Error> {
    let now = tx.now();
    let sql = "INSERT OR IGNORE INTO skill_revocations (name, version, revoked_at) VALUES (?1,?2,?3)";
    Ok(tx.execute(sql, params![name, version, now])? > 0)
}

/// Returns whether a version is revoked.
pub fn is_revoked(tx: &ReadTx<'_>, name: &str, version: &str) -> Result<bool, Error> {
    let sql = "SELECT 1 FROM skill_revocations WHERE name = ?1 AND version = ?2";
    Ok(tx.find(sql, [name, version], |_| Ok(()))?.is_some())
}

/// Returns the verified package of this digest.
pub fn package_by_digest(tx: &ReadTx<'_>, digest: Digest) -> Result<Option<Package>, Error> {
    tx.find("SELECT * FROM skill_packages WHERE digest = ?1", [digest], Package::read)
}

/// Returns the verified package of this name and version.
pub fn package_of(tx: &ReadTx<'_>, name: &str, version: &str) -> Result<Option<Package>, Error> {
    tx.find("SELECT * FROM skill_packages WHERE name = ?1 AND version = ?2", [name, version], Package::read)
}

/// Inserts a verified package with its texts.
pub fn add_package(tx: &mut WriteTx<'_>, new: &Package, texts: &[(String, String)]) -> Result<(), Error> {
    new.insert(tx)?;
    for (path, content) in texts {
        let sql = "INSERT INTO skill_texts (digest, path, content) VALUES (?1,?2,?3)";
        tx.execute(sql, params![new.digest, path, content])?;
    }
    Ok(())
}

/// Notes that a verified package was verified again, by this key from this source.
pub fn renew_package(tx: &mut WriteTx<'_>, digest: Digest, signer: &str, source: &str) -> Result<(), Error> {
    let now = tx.now();
    let sql = "UPDATE skill_packages SET signer = ?2, source = ?3, resolved_at = ?4 WHERE digest = ?1";
    tx.execute(sql, params![digest, signer, source, now]).map(drop)
}

/// Returns the names of the verified packages with their signers.
pub fn signed_names(tx: &ReadTx<'_>) -> Result<Vec<(String, String)>, Error> {
    tx.list("SELECT DISTINCT name, signer FROM skill_packages", [], |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Returns the number of packages that no agent has and that were verified since then.
pub fn unused_since(tx: &ReadTx<'_>, since: i64) -> Result<u64, Error> {
    let sql = "SELECT count(*) FROM skill_packages WHERE resolved_at BETWEEN ?1 AND ?2 AND digest NOT IN (SELECT digest FROM agent_skills)";
    tx.get(sql, params![since, tx.wall()], |row| row.get(0))
}

/// Returns the first paths of the texts of a package.
pub fn text_paths(tx: &ReadTx<'_>, digest: Digest, most: u32) -> Result<Vec<String>, Error> {
    let sql = "SELECT path FROM skill_texts WHERE digest = ?1 ORDER BY path LIMIT ?2";
    tx.list(sql, params![digest, most], |row| row.get(0))
}

/// Returns a text of a package.
pub fn text(tx: &ReadTx<'_>, digest: Digest, path: &str) -> Result<Option<String>, Error> {
    let sql = "SELECT content FROM skill_texts WHERE digest = ?1 AND path = ?2";
    tx.find(sql, params![digest, path], |row| row.get(0))
}

const INSTALLED: &str = "SELECT skill_packages.*, pinned, brought, change_id, installed_at, used_at FROM agent_skills \
     JOIN skill_packages USING (digest)";

/// Returns the skills of an agent, by name.
pub fn list_for_agent(tx: &ReadTx<'_>, agent: AgentId) -> Result<Vec<Installed>, Error> {
    tx.list(&format!("{INSTALLED} WHERE agent_id = ?1 ORDER BY agent_skills.name"), [agent], Installed::read)
}

/// Returns the skills of an agent whose versions are not revoked, by name.
pub fn list_unrevoked(tx: &ReadTx<'_>, agent: AgentId) -> Result<Vec<Installed>, Error> {
    let sql = format!(
        "{INSTALLED} WHERE agent_id = ?1 AND NOT EXISTS (SELECT 1 FROM skill_revocations AS revoked \
         WHERE revoked.name = skill_packages.name AND revoked.version = skill_packages.version) ORDER BY agent_skills.name"
    );
    tx.list(&sql, [agent], Installed::read)
}

pub fn find(tx: &ReadTx<'_>, agent: AgentId, name: &str) -> Result<Option<Installed>, Error> {
    tx.find(
        &format!("{INSTALLED} WHERE agent_id = ?1 AND agent_skills.name = ?2"),
        params![agent, name],
        Installed::read,
    )
}

/// Returns the digests of the packages that agents have.
pub fn used_digests(tx: &ReadTx<'_>) -> Result<Vec<Digest>, Error> {
    tx.list("SELECT DISTINCT digest FROM agent_skills", [], |row| row.get(0))
}

/// Returns the digests of the packages that agents have, and of those that were verified since then.
pub fn digests_to_keep(tx: &ReadTx<'_>, since: i64) -> Result<Vec<Digest>, Error> {
    let sql = "SELECT digest FROM skill_packages WHERE resolved_at >= ?1 UNION SELECT digest FROM agent_skills";
    tx.list(sql, [since], |row| row.get(0))
}

/// Returns the agents with a skill that this key signed.
pub fn agents_of_signer(tx: &ReadTx<'_>, key: &str) -> Result<Vec<AgentId>, Error> {
    let sql = "SELECT DISTINCT agent_id FROM agent_skills JOIN skill_packages USING (digest) WHERE signer = ?1";
    tx.list(sql, [key], |row| row.get(0))
}

/// Returns the agents with this version of a skill.
pub fn agents_of_version(tx: &ReadTx<'_>, name: &str, version: &str) -> Result<Vec<AgentId>, Error> {
    let sql = "SELECT agent_id FROM agent_skills JOIN skill_packages USING (digest) \
               WHERE skill_packages.name = ?1 AND version = ?2";
    tx.list(sql, [name, version], |row| row.get(0))
}

/// Inserts or replaces a skill of an agent. A pinned one stays pinned.
pub fn put(
    tx: &mut WriteTx<'_>,
    agent: AgentId,
    new: (&str, Digest),
    brought: &Brought,
    change: ChangeId,
) -> Result<(), Error> {
    let ((name, digest), now) = (new, tx.now());
    let sql = "INSERT INTO agent_skills (agent_id, name, digest, brought, change_id, installed_at) VALUES (?1,?2,?3,?4,?5,?6) \
               ON CONFLICT (agent_id, name) DO UPDATE SET digest = ?3, brought = ?4, change_id = ?5, installed_at = ?6";
    tx.execute(sql, params![agent, name, digest, canonical::to_string(brought), change, now]).map(drop)
}

/// Replaces the grants that an agent has because of a skill.
pub fn set_brought(tx: &mut WriteTx<'_>, agent: AgentId, name: &str, brought: &Brought) -> Result<(), Error> {
    let sql = "UPDATE agent_skills SET brought = ?3 WHERE agent_id = ?1 AND name = ?2";
    tx.execute(sql, params![agent, name, canonical::to_string(brought)]).map(drop)
}

/// Notes that an agent reads one of its skills now.
pub fn record_use(tx: &mut WriteTx<'_>, agent: AgentId, name: &str) -> Result<(), Error> {
    let (sql, now) = ("UPDATE agent_skills SET used_at = ?3 WHERE agent_id = ?1 AND name = ?2", tx.wall());
    tx.execute(sql, params![agent, name, now]).map(drop)
}

pub fn delete(tx: &mut WriteTx<'_>, agent: AgentId, name: &str) -> Result<(), Error> {
    tx.execute("DELETE FROM agent_skills WHERE agent_id = ?1 AND name = ?2", params![agent, name]).map(drop)
}

/// Sets whether a skill of an agent stays at its version.
pub fn set_pinned(tx: &mut WriteTx<'_>, agent: AgentId, name: &str, is_pinned: bool) -> Result<(), Error> {
    let sql = "UPDATE agent_skills SET pinned = ?3 WHERE agent_id = ?1 AND name = ?2";
    tx.execute(sql, params![agent, name, is_pinned]).map(drop)
}
