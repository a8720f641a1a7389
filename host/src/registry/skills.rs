//! Skills in the record: sources, keys, verified packages, and the skills of agents.
//!
//! Never reads a package and never reaches a source: see [`crate::reach::skills`]. Gives no agent a skill: see [`crate::gateway::writers`].

use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{AgentId, PersonId, SessionId, TurnId};
use ironclaw_ledger::Entry;
use ironclaw_operator::{Bound, DenialCode, LedgerEvent};
use ironclaw_skill::signature::PublicKey;
use ironclaw_skill::{Manifest, Name, Version};
use ironclaw_state::{Error, ReadTx, WriteTx};
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::skills as table;
use ironclaw_store::times::DAY_MS;
use ironclaw_text::excerpt::{quoted, start};
use std::collections::BTreeSet;

pub use ironclaw_operator::SkillTrust as Trust;

pub use ironclaw_store::tables::skills::{
    Brought, Installed, Key, Package, Source, agents_of_signer, agents_of_version, find, key_by_id, keys,
    list_for_agent, package_by_digest, package_of, record_use, set_brought, set_index as saw_index, signed_names,
    sources, text, text_paths, unused_since, used_digests as used,
};

/// Sources of one host.
const SOURCES_MAX: usize = 16;
/// Keys of one host, with the revoked ones.
const KEYS_MAX: usize = 64;
/// Names of skills to which a key is limited.
const NAMES_MAX: usize = 64;
/// Skills of one agent.
pub const SKILLS_MAX: usize = 128;

/// Returns whether the signature of a package still counts.
pub fn trust(tx: &ReadTx<'_>, package: &Package) -> Result<Trust, Error> {
    if table::is_revoked(tx, &package.name, &package.version)? {
        return Ok(Trust::Revoked);
    }
    let key = key_by_id(tx, &package.signer)?;
    let counts = key.is_some_and(|key| counts_for(&key, package));
    Ok(if counts { Trust::Trusted } else { Trust::KeyRevoked })
}

/// Returns whether a key is not revoked and may sign this package.
fn counts_for(key: &Key, package: &Package) -> bool {
    key.revoked_at.is_none() && may_sign(key, &package.name)
}

/// Returns whether a key may sign a skill of this name.
pub fn may_sign(key: &Key, name: &str) -> bool {
    key.skills.is_empty() || key.skills.iter().any(|own| own == name)
}

/// Refuses a package whose signature no longer counts.
pub fn check_trust(tx: &ReadTx<'_>, package: &Package) -> Result<(), Denied> {
    let what = format!("skill {} {}", package.name, package.version);
    match trust(tx, package)? {
        Trust::Trusted => Ok(()),
        Trust::Revoked => Err(Refusal::new(DenialCode::SkillRevoked, format!("{what} is revoked")).into()),
        Trust::KeyRevoked => {
            let message = format!("{what} is signed with the key {}, which no longer counts", package.signer);
            let refusal = Refusal::new(DenialCode::SkillKeyRevoked, message);
            Err(refusal.hint("`ironctl skill key list` shows the keys").into())
        }
    }
}

/// Returns the manifest of a verified package.
pub fn manifest(package: &Package) -> Result<Manifest, Error> {
    Manifest::parse(&package.manifest).map_err(|error| Error::Stored(format!("a manifest of a skill: {error}")))
}

/// Returns the skills of an agent whose signatures count.
pub fn trusted(tx: &ReadTx<'_>, agent: AgentId) -> Result<Vec<Installed>, Error> {
    let mut skills = table::list_unrevoked(tx, agent)?;
    // Every turn asks, and most agents have no skill.
    if skills.is_empty() {
        return Ok(skills);
    }
    let keys = keys(tx)?;
    let counts = |package: &Package| keys.iter().any(|key| key.id == package.signer && counts_for(key, package));
    skills.retain(|skill| counts(&skill.package));
    Ok(skills)
}

/// Returns the tools of MCP servers, by server and name, whose every call waits for a person because of a skill. A skill whose signature no
/// longer counts tightens as before.
pub fn always_asked(tx: &ReadTx<'_>, agent: AgentId) -> Result<BTreeSet<(String, String)>, Error> {
    let mut asked = BTreeSet::new();
    for held in list_for_agent(tx, agent)? {
        if !held.package.manifest.contains("always_ask") {
            continue;
        }
        for grant in manifest(&held.package)?.grants.mcp {
            asked.extend(grant.always_ask.into_iter().map(|tool| (grant.server.clone(), tool)));
        }
    }
    Ok(asked)
}

/// Parses the name of a skill.
///
/// # Errors
/// Refuses any other text with `skill_unknown`, in its first characters.
pub fn named(text: &str) -> Result<Name, Refusal> {
    text.parse().map_err(|why| {
        Refusal::new(DenialCode::SkillUnknown, format!("{} is no name of a skill", quoted(text))).hint(why)
    })
}

/// Parses a version.
///
/// # Errors
/// Refuses any other text with `skill_version`, in its first characters.
pub fn version(text: &str) -> Result<Version, Refusal> {
    let parsed = Version::parse(text).ok().filter(|version| version.build.is_empty() && version.to_string() == text);
    parsed.ok_or_else(|| {
        let refusal = Refusal::new(DenialCode::SkillVersion, format!("{} is no semantic version", quoted(text)));
        refusal.hint("write it as MAJOR.MINOR.PATCH, such as 1.2.0")
    })
}

/// Adds a source.
///
/// # Errors
/// Refuses a malformed or taken name, and one more source than the host may have.
pub fn add_source(tx: &mut WriteTx<'_>, name: &str, location: &str, by: PersonId) -> Result<(), Denied> {
    let held = sources(tx)?;
    if !is_plain_name(name) {
        let refusal = Refusal::new(DenialCode::SkillSourceMalformed, "invalid name of a source of skills");
        return Err(refusal.hint("use 1 to 32 of a-z, 0-9 and -").into());
    }
    if held.iter().any(|source| source.name == name) {
        let refusal = Refusal::new(DenialCode::SkillSourceExists, format!("a source is called {name}"));
        return Err(refusal.hint(format!("remove it first: `ironctl skill source remove {name}`")).into());
    }
    if held.len() >= SOURCES_MAX {
        let remedy = "remove one: `ironctl skill source remove NAME`";
        let bound = Bound::new("sources of skills of this host", SOURCES_MAX, held.len(), remedy);
        return Err(Refusal::over(DenialCode::SkillsTooMany, bound).into());
    }
    table::add_source(tx, name, location)?;
    let entry = Entry::new(LedgerEvent::SkillSourceAdded).with("source", name.to_owned());
    entry.with("location", Digest::of(location.as_bytes()).to_string()).with("by", by).append(tx)?;
    Ok(())
}

/// Removes a source. Skills that came from it stay.
///
/// # Errors
/// Refuses an unknown one.
pub fn remove_source(tx: &mut WriteTx<'_>, name: &str, by: PersonId) -> Result<(), Denied> {
    if !table::delete_source(tx, name)? {
        let refusal =
            Refusal::new(DenialCode::SkillSourceUnknown, format!("there is no source of skills {}", quoted(name)));
        return Err(refusal.hint("`ironctl skill source list` shows the sources").into());
    }
    Entry::new(LedgerEvent::SkillSourceRemoved).with("source", name.to_owned()).with("by", by).append(tx)?;
    Ok(())
}

/// Adds a key whose signatures count, for all skills or for the named ones.
///
/// # Errors
/// Refuses a malformed or taken name, a text that is no key, a taken or revoked id, and one more key than the host may have.
pub fn add_key(tx: &mut WriteTx<'_>, name: &str, text: &str, skills: Vec<String>, by: PersonId) -> Result<Key, Denied> {
    if !is_plain_name(name) {
        let refusal = Refusal::new(DenialCode::SkillKeyMalformed, "invalid name of a key of skills");
        return Err(refusal.hint("use 1 to 32 of a-z, 0-9 and -").into());
    }
    let parsed = PublicKey::parse(text).map_err(|error| {
        let refusal =
            Refusal::new(DenialCode::SkillKeyMalformed, format!("the text is no public key of minisign: {error}"));
        refusal.hint("give the second line of the file minisign.pub, or the file itself")
    })?;
    for skill in &skills {
        named(skill)?;
    }
    let held = keys(tx)?;
    if let Some(taken) = held.iter().find(|key| key.name == name || key.id == parsed.id) {
        let revoked = if taken.revoked_at.is_some() { ", and is revoked" } else { "" };
        let message = format!("the key {} is called {}{revoked}", taken.id, taken.name);
        return Err(Refusal::new(DenialCode::SkillKeyExists, message).into());
    }
    if held.len() >= KEYS_MAX {
        let bound = Bound::new(
            "keys of skills of this host",
            KEYS_MAX,
            held.len(),
            "remove one: `ironctl skill key remove KEY`",
        );
        return Err(Refusal::over(DenialCode::SkillsTooMany, bound).into());
    }
    if skills.len() > NAMES_MAX {
        let bound =
            Bound::new("names of skills for one key", NAMES_MAX, skills.len(), "name fewer skills, or use a pattern");
        return Err(Refusal::over(DenialCode::SkillsTooMany, bound).into());
    }
    let PublicKey { text, id } = parsed;
    let new = Key { id, name: name.to_owned(), public_key: text, skills, added_at: tx.now(), revoked_at: None };
    table::add_key(tx, &new)?;
    let entry = Entry::new(LedgerEvent::SkillKeyAdded).with("key", new.id.clone()).with("name", new.name.clone());
    entry.with("skills", new.skills.clone()).with("by", by).append(tx)?;
    Ok(new)
}

/// Returns the key of this name or id.
///
/// # Errors
/// Refuses an unknown one.
pub fn known_key(tx: &ReadTx<'_>, name_or_id: &str) -> Result<Key, Denied> {
    let found = keys(tx)?.into_iter().find(|key| key.name == name_or_id || key.id == name_or_id);
    found.ok_or_else(|| {
        let refusal =
            Refusal::new(DenialCode::SkillKeyUnknown, format!("there is no key of skills {}", quoted(name_or_id)));
        refusal.hint("`ironctl skill key list` shows the keys").into()
    })
}

/// Removes a key that no installed skill needs and that is not revoked: the record keeps revoked keys, so that none comes back.
///
/// # Errors
/// Refuses another one.
pub fn remove_key(tx: &mut WriteTx<'_>, name_or_id: &str, by: PersonId) -> Result<Key, Denied> {
    let key = known_key(tx, name_or_id)?;
    if key.revoked_at.is_some() {
        let message = format!("the key {} is revoked, and stays so", key.id);
        return Err(Refusal::new(DenialCode::SkillKeyRevoked, message).into());
    }
    let users = agents_of_signer(tx, &key.id)?;
    if !users.is_empty() {
        let message = format!("these agents have skills that the key {} signed: {}", key.name, names(tx, &users)?);
        let refusal = Refusal::new(DenialCode::SkillKeyInUse, message);
        return Err(refusal.hint("remove these skills first, or revoke the key: `ironctl skill key revoke`").into());
    }
    table::delete_key(tx, &key.id)?;
    let entry = Entry::new(LedgerEvent::SkillKeyRemoved).with("key", key.id.clone()).with("name", key.name.clone());
    entry.with("by", by).append(tx)?;
    Ok(key)
}

/// The party that revokes a key or a version.
#[derive(Debug, Clone, Copy)]
pub enum Revoker<'a> {
    Person(PersonId),
    /// The signed index of a source.
    Source(&'a str),
}

fn revoked_entry(event: LedgerEvent, by: Revoker<'_>) -> Entry {
    match by {
        Revoker::Person(person) => Entry::new(event).with("by", person),
        Revoker::Source(source) => Entry::new(event).with("source", source.to_owned()),
    }
}

/// Revokes a key for good. Skills that it signed are not used from then on.
pub fn revoke_key(tx: &mut WriteTx<'_>, key: &Key, by: Revoker<'_>) -> Result<(), Error> {
    if key.revoked_at.is_some() {
        return Ok(());
    }
    table::revoke_key(tx, &key.id)?;
    let entry = revoked_entry(LedgerEvent::SkillKeyRevoked, by);
    entry.with("key", key.id.clone()).with("name", key.name.clone()).append(tx)?;
    Ok(())
}

/// Revokes a version of a skill for good; returns whether it was not revoked before.
pub fn revoke_version(tx: &mut WriteTx<'_>, name: &Name, version: &Version, by: Revoker<'_>) -> Result<bool, Error> {
    let (name, version) = (name.to_string(), version.to_string());
    let is_new = table::revoke_version(tx, &name, &version)?;
    if is_new {
        let entry = revoked_entry(LedgerEvent::SkillRevoked, by);
        entry.with("skill", name).with("version", version).append(tx)?;
    }
    Ok(is_new)
}

/// Records a verified package, unless it is recorded.
///
/// # Errors
/// Refuses other bytes for a recorded version.
pub fn record_package(tx: &mut WriteTx<'_>, new: &Package, texts: &[(String, String)]) -> Result<(), Denied> {
    if let Some(held) = package_of(tx, &new.name, &new.version)? {
        if held.digest == new.digest {
            // The signer of the record stays while its signature counts.
            let counts = trust(tx, &held)? == Trust::Trusted;
            let (signer, source) = if counts { (&held.signer, &held.source) } else { (&new.signer, &new.source) };
            return Ok(table::renew_package(tx, held.digest, signer, source)?);
        }
        let message = format!("skill {} {} had other bytes before", new.name, new.version);
        let refusal = Refusal::new(DenialCode::SkillChanged, message);
        return Err(refusal.hint("its author has to publish the new bytes as a new version").into());
    }
    table::add_package(tx, new, texts)?;
    Entry::new(LedgerEvent::SkillResolved)
        .with("skill", new.name.clone())
        .with("version", new.version.clone())
        .with("digest", new.digest.to_string())
        .with("signer", new.signer.clone())
        .with("source", new.source.clone())
        .append(tx)?;
    Ok(())
}

/// The time for which the files of an unused package are kept: the longest wait of a change.
const KEPT_MS: i64 = 90 * DAY_MS;

/// Returns the digests of the packages whose files are kept: those that agents have, and those that a change may still install. The rows
/// stay, so that a version never gets other bytes.
pub fn kept(tx: &ReadTx<'_>) -> Result<Vec<Digest>, Error> {
    table::digests_to_keep(tx, tx.prune_time() - KEPT_MS)
}

/// Records that a skill was refused before a change was proposed: for a person, or for a turn.
pub fn record_refused(
    tx: &mut WriteTx<'_>,
    name: &str,
    version: &str,
    code: DenialCode,
    by: Asker,
) -> Result<(), Error> {
    let short = |text| start(text, 64).to_owned();
    let entry = Entry::new(LedgerEvent::SkillRefused).with("skill", short(name)).with("version", short(version));
    match by {
        Asker::Person(person) => entry.with("code", code).with("by", person).append(tx)?,
        Asker::Turn(session, turn) => entry.with("code", code).session(session).turn(turn).append(tx)?,
    };
    Ok(())
}

/// The party that asks for a skill.
#[derive(Debug, Clone, Copy)]
pub enum Asker {
    Person(PersonId),
    /// An agent in a turn.
    Turn(SessionId, TurnId),
}

/// Sets whether a skill of an agent stays at its version.
pub fn pin(tx: &mut WriteTx<'_>, agent: AgentId, held: &Installed, is_pinned: bool, by: PersonId) -> Result<(), Error> {
    table::set_pinned(tx, agent, &held.package.name, is_pinned)?;
    Entry::new(LedgerEvent::SkillPinned)
        .with("agent", agent)
        .with("skill", held.package.name.clone())
        .with("pinned", is_pinned)
        .with("by", by)
        .append(tx)?;
    Ok(())
}

/// Returns the refusal of a skill that the agent does not have.
pub fn missing(agent: &str, name: &str) -> Refusal {
    let refusal = Refusal::new(DenialCode::SkillUnknown, format!("agent {agent} has no skill {}", quoted(name)));
    refusal.hint(format!("`ironctl skill list --agent {agent}` shows its skills"))
}

/// Returns the names of agents, separated by commas.
fn names(tx: &ReadTx<'_>, agents: &[AgentId]) -> Result<String, Error> {
    let named = |id: &AgentId| super::agent_name(tx, *id);
    Ok(agents.iter().map(named).collect::<Result<Vec<String>, Error>>()?.join(", "))
}

fn is_plain_name(name: &str) -> bool {
    (1..=32).contains(&name.len()) && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}
