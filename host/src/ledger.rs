//! The ledger: what was asked, decided, refused and done, each entry chained to the one before.
//!
//! Never holds content, only ids, digests and reasons; never written outside the transaction that it records. Next: `ledger::chain`.

pub mod chain;

use crate::state::{self, Committed, Tx};
use ironclaw_contract::canonical;
use ironclaw_contract::ids::{MessageId, SessionId, TurnId};
use ironclaw_contract::ledger_entry::{GENESIS_PREV, Kind, hash};
use ironclaw_contract::operator::Stage;
use rusqlite::{OptionalExtension, params};
use serde_json::{Map, Value};

/// An entry that is about to be written.
#[derive(Debug, Clone)]
pub struct Entry {
    kind: Kind,
    what: &'static str,
    data: Map<String, Value>,
    session: Option<SessionId>,
    message: Option<MessageId>,
    turn: Option<TurnId>,
}

impl Entry {
    /// An entry about `what`, a word like `message.recorded`.
    pub fn new(kind: Kind, what: &'static str) -> Self {
        let data = Map::from_iter([("what".to_owned(), Value::from(what))]);
        Self { kind, what, data, session: None, message: None, turn: None }
    }

    /// What an untrusted party asserted.
    pub fn claim(what: &'static str) -> Self {
        Self::new(Kind::Claim, what)
    }

    /// What the host checked and did.
    pub fn verify(what: &'static str) -> Self {
        Self::new(Kind::Verify, what)
    }

    /// A refusal or withdrawal.
    pub fn retract(what: &'static str) -> Self {
        Self::new(Kind::Retract, what)
    }

    /// What an operator did, or the host about itself.
    pub fn meta(what: &'static str) -> Self {
        Self::new(Kind::Meta, what)
    }

    /// Adds a field; never content.
    pub fn with(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        self.data.insert(key.to_owned(), value.into());
        self
    }

    /// Says which session it is about.
    pub fn session(mut self, id: SessionId) -> Self {
        self.session = Some(id);
        self.with("session", id.to_string())
    }

    /// Says which message it is about.
    pub fn message(mut self, id: MessageId) -> Self {
        self.message = Some(id);
        self.with("message", id.to_string())
    }

    /// Says which turn it is about.
    pub fn turn(mut self, id: TurnId) -> Self {
        self.turn = Some(id);
        self.with("turn", id.to_string())
    }

    /// Gives the reason, cut to what an entry may hold.
    pub fn reason(self, reason: &str) -> Self {
        const REASON_CHARACTERS_MAX: usize = 400;
        let short: String = reason.chars().take(REASON_CHARACTERS_MAX).collect();
        self.with("reason", short)
    }

    /// Appends the entry in this transaction; returns its number.
    pub fn append(mut self, tx: &mut Tx<'_>) -> Result<u64, state::Error> {
        let now = tx.now();
        self.data.insert("at".to_owned(), now.into());
        let canonical = canonical::to_string(&self.data);
        let db = tx.db();
        let last: Option<(i64, String)> = db
            .prepare_cached("SELECT seq, hash FROM ledger ORDER BY seq DESC LIMIT 1")?
            .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
            .optional()?;
        let (seq, prev) = last.map_or((0, GENESIS_PREV.to_owned()), |(seq, hash)| (seq as u64 + 1, hash));
        if (seq == 0) != (self.kind == Kind::Genesis) {
            return Err(state::Error::Stored(format!("ledger: {} cannot stand at {seq}", self.kind)));
        }
        let hash = hash(&prev, seq, self.kind, &canonical);
        db.prepare_cached(
            "INSERT INTO ledger (seq, type, data, hash, at, session_id, message_id, turn_id) VALUES (?1,?2,?3,?4,?5,?6,?7,?8)",
        )?
        .execute(params![
            seq as i64,
            self.kind.name(),
            canonical,
            hash.to_string(),
            now,
            self.session.map(|id| id.to_string()),
            self.message.map(|id| id.to_string()),
            self.turn.map(|id| id.to_string()),
        ])?;
        tx.entry(Committed { seq, what: self.what, session: self.session, message: self.message, turn: self.turn });
        Ok(seq)
    }
}

/// The stages of a message: every entry about it or about a turn that it was in, after `after_seq`.
pub fn stages(tx: &Tx<'_>, message: MessageId, after_seq: Option<u64>) -> Result<Vec<Stage>, state::Error> {
    let sql = "SELECT seq, type, data FROM ledger WHERE seq > ?2 AND (message_id = ?1 OR turn_id IN \
               (SELECT turn_id FROM ledger WHERE message_id = ?1 AND turn_id IS NOT NULL)) ORDER BY seq";
    let mut statement = tx.db().prepare_cached(sql)?;
    let after = after_seq.map_or(-1, |seq| seq as i64);
    let mut rows = statement.query(params![message.to_string(), after])?;
    let mut stages = Vec::new();
    while let Some(row) = rows.next()? {
        let data: Map<String, Value> = state::stored_json(row, "data")?;
        let kind: Kind = state::stored(row, "type")?;
        stages.push(stage(row.get::<_, i64>(0)? as u64, kind, &data));
    }
    Ok(stages)
}

fn stage(seq: u64, kind: Kind, data: &Map<String, Value>) -> Stage {
    let text = |key: &str| data.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
    let outcome = match (kind, data.get("outcome").and_then(Value::as_str)) {
        (_, Some("unknown")) => "unknown",
        (Kind::Retract, _) => "refused",
        (Kind::Genesis | Kind::Boot | Kind::Claim | Kind::Verify | Kind::Meta, _) => "done",
    };
    let mut details: Vec<String> = Vec::new();
    for key in ["tool", "call", "row", "delivery", "reason"] {
        let value = text(key);
        if !value.is_empty() {
            details.push(if key == "reason" { value } else { format!("{key} {value}") });
        }
    }
    Stage {
        seq,
        at: rfc3339(data.get("at").and_then(Value::as_i64).unwrap_or(0)),
        stage: text("what"),
        outcome: outcome.to_owned(),
        reason: details.join(", "),
    }
}

/// Milliseconds since the epoch as RFC 3339 in UTC.
pub fn rfc3339(ms: i64) -> String {
    jiff::Timestamp::from_millisecond(ms).map_or_else(|_| ms.to_string(), |time| format!("{time:.3}"))
}
