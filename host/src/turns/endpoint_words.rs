//! The last words of a model endpoint that gave no answer, for operators.
//!
//! Never puts them into a prompt, a sentence, a log or the ledger: they are a provider's words, without the key, and may quote the
//! conversation. See [`ironclaw_store::tables::endpoint_words`] for the rows.

use crate::sessions::store;
use ironclaw_contract::ids::{ItemId, SessionId, TurnId};
use ironclaw_ledger::rfc3339;
use ironclaw_model::fault::{Failure, Fault};
use ironclaw_operator as operator;
use ironclaw_state::keys::{ContentKey, WrappingKey};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::error::Error;
use ironclaw_store::tables::endpoint_words::{self as table, EndpointWords};

/// Failures of one endpoint whose words are kept.
const KEPT_MAX: u32 = 20;

/// Records the words of endpoints that gave no answer in this turn.
///
/// # Errors
/// Errors of the record and of the key.
pub fn note(
    tx: &mut WriteTx<'_>,
    session: SessionId,
    turn: TurnId,
    failures: &[Failure],
    key: &ContentKey,
) -> Result<(), Error> {
    for failure in failures.iter().filter(|failure| failure.fault != Fault::Script) {
        let Some(words) = failure.detail.for_operator() else { continue };
        let id = ItemId::new();
        let sealed = key.seal(id, words.as_bytes())?;
        let (endpoint, code) = (failure.endpoint.clone(), failure.fault.code().to_owned());
        table::insert(tx, &EndpointWords { id, endpoint, session, turn, at: tx.now(), code, sealed }, KEPT_MAX)?;
    }
    Ok(())
}

/// Returns the last words of an endpoint, newest first.
///
/// # Errors
/// Errors of the record.
pub fn for_endpoint(
    tx: &ReadTx<'_>,
    wrapping: &WrappingKey,
    endpoint: &str,
) -> Result<Vec<operator::EndpointWords>, Error> {
    opened(tx, wrapping, table::for_endpoint(tx, endpoint)?)
}

/// Returns the words of endpoints in one turn, newest first.
///
/// # Errors
/// Errors of the record.
pub fn for_turn(tx: &ReadTx<'_>, wrapping: &WrappingKey, turn: TurnId) -> Result<Vec<operator::EndpointWords>, Error> {
    opened(tx, wrapping, table::for_turn(tx, turn)?)
}

/// Opens the words. Those of a session without a key are left out: no key opens them.
fn opened(
    tx: &ReadTx<'_>,
    wrapping: &WrappingKey,
    rows: Vec<EndpointWords>,
) -> Result<Vec<operator::EndpointWords>, Error> {
    let mut all = Vec::with_capacity(rows.len());
    for row in rows {
        let Some(session) = store::find(tx, row.session)? else { continue };
        let Ok(opened) = session.content_key(wrapping).and_then(|key| key.open(row.id, &row.sealed)) else { continue };
        all.push(operator::EndpointWords {
            endpoint: row.endpoint,
            at: rfc3339(row.at),
            code: row.code,
            session_id: row.session,
            turn_id: row.turn,
            words: String::from_utf8_lossy(&opened).into_owned(),
        });
    }
    Ok(all)
}
