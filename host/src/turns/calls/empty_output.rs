//! The reason why a turn ended with an output without words, for the notice to the person.
//!
//! Never shows a thought: the notice names the command that does. See [`super::output_body`].

use super::output_body::{OutputBody, WRITTEN_CALL_MARK};
use crate::turns::items;
use ironclaw_contract::ids::{SessionId, TurnId};
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_state::ReadTx;
use ironclaw_state::keys::ContentKey;
use ironclaw_store::error::Error;
use ironclaw_store::tables;

/// The notice for an output without anything.
const NOTHING: &str = "The model returned an empty answer.";
/// The notice for thoughts without words.
const THOUGHTS: &str = "The model returned thoughts and no answer: `/reasoning` in `ironctl chat` shows them. Ask again, or give the \
     agent another model.";

/// Returns the notice for a turn whose last output is empty.
pub fn notice(tx: &ReadTx<'_>, session: SessionId, turn: TurnId, key: &ContentKey) -> Result<String, Error> {
    let outputs = tables::items::made_in_turn(tx, session, turn)?;
    let last = outputs.iter().rev().find(|item| item.tuple.kind == ItemKind::Output);
    let Some(last) = last else { return Ok(NOTHING.to_owned()) };
    let body: OutputBody = items::parse_body(&items::body(tx, last, key)?)?;
    if body.has_written_call {
        let mark = WRITTEN_CALL_MARK.trim_matches(['\n', '[', ']']);
        return Ok(format!("{NOTHING} {mark}"));
    }
    let is_silent = items::reasoning(tx, last.tuple.item, key)?.is_empty();
    Ok(if is_silent { NOTHING } else { THOUGHTS }.to_owned())
}
