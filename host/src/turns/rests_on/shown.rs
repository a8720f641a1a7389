//! The form of a reply on a terminal: marks of the model as its own words, and URLs of unknown origin as text.
//!
//! Never changes a recorded item. See [`super::sources`].

use super::{marks, urls};
use crate::sessions::store::Session;
use crate::turns::items::Recorded;
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_operator::ShownReply;
use ironclaw_state::ReadTx;
use ironclaw_state::keys::ContentKey;
use ironclaw_store::error::Error;
use ironclaw_text::urls as web;

/// The bound on unknown URLs in a list. All of them are shown as text.
const URLS_MAX: usize = 64;

/// Returns the form of a reply with this text. Reads the record only for a text with a mark or a URL.
pub fn shown(
    tx: &ReadTx<'_>,
    session: &Session,
    reply: &Recorded,
    key: &ContentKey,
    text: &str,
) -> Result<ShownReply, Error> {
    // The host wrote a notice.
    if reply.tuple.kind != ItemKind::Output {
        return Ok(ShownReply::default());
    }
    let has_ground = marks::find(text).into_iter().any(|range| marks::is_grounded(&text[range]));
    let results = if has_ground { super::results(tx, session, reply, key)? } else { None };
    let mut unknown = match web::may_have_url(text) {
        true => urls::unknown(tx, session, reply, key, text)?,
        false => Vec::new(),
    };
    let mut all = marks::shown(text, results);
    let mut shown = text.to_owned();
    for mark in all.iter().filter(|mark| mark.written != mark.shown) {
        let at = mark.at as usize;
        // Both have the same length.
        shown.replace_range(at..at + mark.written.len(), &mark.shown);
    }
    // A mark in a URL changes the URL, which then is no known one.
    let is_inert = |url: &str| unknown.iter().any(|unknown| unknown == url) || !text.contains(url);
    let shown = web::with_inert(&shown, is_inert);
    let remarks = marks::remarks(&all);
    all.truncate(marks::MARKS_MAX);
    unknown.truncate(URLS_MAX);
    let shown_as = (shown != text).then_some(shown);
    Ok(ShownReply { shown_as, marks: all, unknown_urls: unknown, remarks })
}
