//! Model endpoints with their fallbacks, secrets, ceilings and usage.
//!
//! Tables: `models`, `model_fallbacks`, `model_observations`, `secrets`, `agent_budgets`, `usage`.

use crate::rows::rows;
use ironclaw_contract::ids::{AgentId, PersonId, SessionId};
use ironclaw_model::Usage;
use ironclaw_model::endpoint::EndpointSettings;
use ironclaw_state::{Error, ReadTx, WriteTx};
use rusqlite::{Params, params};

rows! {
    /// The row of a model endpoint, with its fallbacks.
    #[derive(Debug, Clone)]
    pub struct Model {
        pub name: String,
        pub kind: String,
        pub base_url: Option<String>,
        /// The provider's name of the model.
        pub model: String,
        /// Name of the secret with its key.
        pub secret: Option<String>,
        /// Price of prompts, in millionths of a currency for a million tokens.
        pub input_price: i64,
        /// Price of outputs, in the same unit.
        pub output_price: i64,
        /// True if requests to it ask for streaming.
        pub streams: bool,
        /// True if its model takes images.
        pub takes_images: bool,
        /// What an operator set for it, JSON.
        pub settings: EndpointSettings as json,
        /// Milliseconds since the epoch.
        pub created_at: i64,
        /// Names of its fallbacks, in the order of their use.
        pub fallbacks: Vec<String> as json,
    }
}

/// Returns every stored endpoint, by name.
pub fn all(tx: &ReadTx<'_>) -> Result<Vec<Model>, Error> {
    let sql = "SELECT *, (SELECT json_group_array(fallback) FROM (SELECT fallback FROM model_fallbacks \
               WHERE model_fallbacks.model = models.name ORDER BY position)) AS fallbacks FROM models ORDER BY name";
    tx.list(sql, [], Model::read)
}

/// Inserts an endpoint and the names of its fallbacks.
pub fn insert(tx: &mut WriteTx<'_>, new: &Model) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO models (name, kind, base_url, model, secret, input_price, output_price, streams, takes_images, \
         created_at, settings) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
        params![
            new.name,
            new.kind,
            new.base_url,
            new.model,
            new.secret,
            new.input_price,
            new.output_price,
            new.streams,
            new.takes_images,
            new.created_at,
            serde_json::to_string(&new.settings).expect("texts and numbers are JSON")
        ],
    )?;
    for (position, fallback) in new.fallbacks.iter().enumerate() {
        tx.execute(
            "INSERT INTO model_fallbacks (model, position, fallback) VALUES (?1, ?2, ?3)",
            params![new.name, position as i64, fallback],
        )?;
    }
    Ok(())
}

/// Deletes an endpoint and its list of fallbacks.
pub fn delete(tx: &mut WriteTx<'_>, name: &str) -> Result<(), Error> {
    tx.execute("DELETE FROM models WHERE name = ?1", [name]).map(drop)
}

/// Replaces the settings of an endpoint.
pub fn set_settings(tx: &mut WriteTx<'_>, name: &str, settings: &EndpointSettings) -> Result<(), Error> {
    let settings = serde_json::to_string(settings).expect("texts and numbers are JSON");
    tx.execute("UPDATE models SET settings = ?2 WHERE name = ?1", params![name, settings]).map(drop)
}

rows! {
    /// The value of a quirk that answers of an endpoint showed.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct ObservedQuirk in model_observations {
        pub model: String,
        pub quirk: String,
        pub value: String,
        /// The answers in a row that agree.
        pub answers: u32,
        /// The time of the last of them, milliseconds since the epoch.
        pub at: i64,
    }
}

/// Returns what the answers of all endpoints showed.
pub fn observed(tx: &ReadTx<'_>) -> Result<Vec<ObservedQuirk>, Error> {
    tx.list("SELECT * FROM model_observations ORDER BY model, quirk", [], ObservedQuirk::read)
}

/// Inserts what answers of an endpoint showed about one quirk.
pub fn insert_observed(tx: &mut WriteTx<'_>, row: &ObservedQuirk) -> Result<(), Error> {
    row.insert(tx)
}

/// Deletes what the answers of an endpoint showed about one quirk, or about all.
pub fn delete_observed(tx: &mut WriteTx<'_>, model: &str, quirk: Option<&str>) -> Result<(), Error> {
    let sql = "DELETE FROM model_observations WHERE model = ?1 AND (?2 IS NULL OR quirk = ?2)";
    tx.execute(sql, params![model, quirk]).map(drop)
}

/// Returns the names of the endpoints that use this secret.
pub fn with_secret(tx: &ReadTx<'_>, secret: &str) -> Result<Vec<String>, Error> {
    tx.list("SELECT name FROM models WHERE secret = ?1 ORDER BY name", [secret], |row| row.get(0))
}

rows! {
    /// The times at which a secret was stored.
    #[derive(Debug, Clone)]
    pub struct SecretTimes {
        pub name: String,
        /// The time when it was first stored, milliseconds since the epoch.
        pub created_at: i64,
        /// The time when it was last stored, milliseconds since the epoch.
        pub changed_at: i64,
    }

    /// The value of a secret, wrapped by the master key.
    #[derive(Debug, Clone)]
    pub struct WrappedSecret {
        pub name: String,
        pub wrapped: Vec<u8>,
    }
}

/// Returns the time at which the value of a secret was last stored, milliseconds since the epoch; `None` if there is no such secret.
pub fn secret_changed_at(tx: &ReadTx<'_>, name: &str) -> Result<Option<i64>, Error> {
    tx.find("SELECT changed_at FROM secrets WHERE name = ?1", [name], |row| row.get(0))
}

/// Returns every stored secret without its value, by name.
pub fn secrets(tx: &ReadTx<'_>) -> Result<Vec<SecretTimes>, Error> {
    tx.list("SELECT name, created_at, changed_at FROM secrets ORDER BY name", [], SecretTimes::read)
}

/// Returns the number of stored secrets.
pub fn count_secrets(tx: &ReadTx<'_>) -> Result<i64, Error> {
    tx.get("SELECT count(*) FROM secrets", [], |row| row.get(0))
}

/// Returns the wrapped value of a secret.
pub fn wrapped_secret(tx: &ReadTx<'_>, name: &str) -> Result<Option<Vec<u8>>, Error> {
    tx.find("SELECT wrapped FROM secrets WHERE name = ?1", [name], |row| row.get(0))
}

/// Returns the wrapped values of all secrets.
pub fn wrapped_secrets(tx: &ReadTx<'_>) -> Result<Vec<WrappedSecret>, Error> {
    tx.list("SELECT name, wrapped FROM secrets", [], WrappedSecret::read)
}

pub fn insert_secret(tx: &mut WriteTx<'_>, name: &str, wrapped: &[u8], now: i64) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO secrets (name, wrapped, created_at, changed_at) VALUES (?1, ?2, ?3, ?3)",
        params![name, wrapped, now],
    )?;
    Ok(())
}

/// Replaces the value of a secret.
pub fn change_secret(tx: &mut WriteTx<'_>, name: &str, wrapped: &[u8], now: i64) -> Result<(), Error> {
    tx.execute("UPDATE secrets SET wrapped = ?2, changed_at = ?3 WHERE name = ?1", params![name, wrapped, now])
        .map(drop)
}

/// Replaces the wrapped value of a secret by the same value under another key.
pub fn rewrap_secret(tx: &mut WriteTx<'_>, secret: &WrappedSecret) -> Result<(), Error> {
    tx.execute("UPDATE secrets SET wrapped = ?2 WHERE name = ?1", params![secret.name, secret.wrapped]).map(drop)
}

pub fn delete_secret(tx: &mut WriteTx<'_>, name: &str) -> Result<(), Error> {
    tx.execute("DELETE FROM secrets WHERE name = ?1", [name]).map(drop)
}

rows! {
    /// The ceilings of one agent, which replace those of the settings.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct OwnCeilings {
        pub tokens_per_day: Option<u64>,
        /// Millionths of a currency a day.
        pub cost_per_day_micros: Option<u64>,
    }
}

/// Returns an agent's own ceilings; none if it has no row.
pub fn own_ceilings(tx: &ReadTx<'_>, agent: AgentId) -> Result<OwnCeilings, Error> {
    let sql = "SELECT tokens_per_day, cost_per_day_micros FROM agent_budgets WHERE agent_id = ?1";
    Ok(tx.find(sql, [agent], OwnCeilings::read)?.unwrap_or_default())
}

/// Inserts or replaces an agent's own ceilings.
pub fn put_own_ceilings(tx: &mut WriteTx<'_>, agent: AgentId, own: OwnCeilings) -> Result<(), Error> {
    let sql = "INSERT OR REPLACE INTO agent_budgets (agent_id, tokens_per_day, cost_per_day_micros) VALUES (?1,?2,?3)";
    tx.execute(sql, params![agent, own.tokens_per_day, own.cost_per_day_micros]).map(drop)
}

pub fn delete_own_ceilings(tx: &mut WriteTx<'_>, agent: AgentId) -> Result<(), Error> {
    tx.execute("DELETE FROM agent_budgets WHERE agent_id = ?1", [agent]).map(drop)
}

/// The key of a usage row.
#[derive(Debug, Clone, Copy)]
pub struct UsageKey<'a> {
    /// The day in UTC, counted from the epoch.
    pub day: i64,
    pub agent: AgentId,
    pub session: SessionId,
    pub model: &'a str,
}

/// A change of a usage row, up or down.
#[derive(Debug, Clone, Copy)]
pub struct UsageChange {
    pub requests: i64,
    pub input_tokens: i64,
    pub output_tokens: i64,
    /// Millionths of a currency.
    pub cost_micros: i64,
}

rows! {
    /// The use that counts against a ceiling.
    #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
    pub struct Spent {
        /// Tokens of prompts and outputs.
        pub tokens: u64,
        /// Millionths of a currency.
        pub cost_micros: u64,
    }

    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct UsageRow {
        /// The day in UTC, counted from the epoch.
        pub day: i64,
        /// The agent, which may be removed.
        pub agent: AgentId = "agent_id",
        /// Its name, unless it is removed.
        pub agent_name: Option<String>,
        /// The session, which may be removed.
        pub session: SessionId = "session_id",
        pub model: String,
        pub requests: u64,
        pub input_tokens: u64,
        pub output_tokens: u64,
        /// Millionths of a currency.
        pub cost_micros: u64,
    }
}

impl From<Usage> for Spent {
    fn from(usage: Usage) -> Self {
        Self { tokens: usage.tokens(), cost_micros: usage.cost_micros }
    }
}

/// Changes a usage row, or inserts it if there is none. No count falls below 0.
pub fn change_usage(tx: &mut WriteTx<'_>, key: UsageKey<'_>, change: UsageChange) -> Result<(), Error> {
    tx.execute(
        "INSERT INTO usage (day, agent_id, session_id, model, requests, input_tokens, output_tokens, cost_micros) \
         VALUES (?1,?2,?3,?4,max(?5,0),max(?6,0),max(?7,0),max(?8,0)) ON CONFLICT DO UPDATE SET \
         requests = max(requests + ?5, 0), input_tokens = max(input_tokens + ?6, 0), \
         output_tokens = max(output_tokens + ?7, 0), cost_micros = max(cost_micros + ?8, 0)",
        params![
            key.day,
            key.agent,
            key.session,
            key.model,
            change.requests,
            change.input_tokens,
            change.output_tokens,
            change.cost_micros,
        ],
    )?;
    Ok(())
}

/// Deletes a usage row if all its counts are 0.
pub fn delete_empty_usage(tx: &mut WriteTx<'_>, key: UsageKey<'_>) -> Result<(), Error> {
    tx.execute(
        "DELETE FROM usage WHERE day = ?1 AND agent_id = ?2 AND session_id = ?3 AND model = ?4 AND requests = 0 \
         AND input_tokens = 0 AND output_tokens = 0 AND cost_micros = 0",
        params![key.day, key.agent, key.session, key.model],
    )?;
    Ok(())
}

/// Returns the use of all agents on a day.
pub fn used_on_day(tx: &ReadTx<'_>, day: i64) -> Result<Spent, Error> {
    used(tx, "day = ?1", params![day])
}

/// Returns the use of an agent on a day.
pub fn used_on_day_by(tx: &ReadTx<'_>, day: i64, agent: AgentId) -> Result<Spent, Error> {
    used(tx, "day = ?1 AND agent_id = ?2", params![day, agent])
}

/// Returns the whole use of a session.
pub fn used_in_session(tx: &ReadTx<'_>, session: SessionId) -> Result<Spent, Error> {
    used(tx, "session_id = ?1", params![session])
}

fn used(tx: &ReadTx<'_>, which: &str, values: impl Params) -> Result<Spent, Error> {
    let sql = format!(
        "SELECT coalesce(sum(input_tokens + output_tokens), 0) AS tokens, coalesce(sum(cost_micros), 0) AS cost_micros \
         FROM usage WHERE {which}"
    );
    tx.get(&sql, values, Spent::read)
}

/// A part of the usage: of one agent, of one session, and of the sessions that one person began.
#[derive(Debug, Clone, Copy, Default)]
pub struct UsagePart {
    /// The agent, or all.
    pub agent: Option<AgentId>,
    /// The session, or all.
    pub session: Option<SessionId>,
    /// The person, or all.
    pub person: Option<PersonId>,
}

/// Returns at most `limit` usage rows of a part since a day, newest day first.
pub fn usage(tx: &ReadTx<'_>, since: i64, of: UsagePart, limit: u32) -> Result<Vec<UsageRow>, Error> {
    let sql = "SELECT usage.*, agents.name AS agent_name FROM usage LEFT JOIN agents ON agents.id = usage.agent_id \
               WHERE day >= ?1 AND (?2 IS NULL OR agent_id = ?2) AND (?3 IS NULL OR session_id = ?3) AND (?5 IS NULL OR EXISTS \
               (SELECT 1 FROM sessions WHERE sessions.id = usage.session_id AND sessions.person_id = ?5)) \
               ORDER BY day DESC, agents.name, agent_id, session_id, usage.model LIMIT ?4";
    tx.list(sql, params![since, of.agent, of.session, limit, of.person], UsageRow::read)
}
