//! The URLs in a reply that no person typed in its session, and that no result of it has.
//!
//! Notes, files that the agent wrote, calls that failed, and a URL in the arguments of the call itself make no URL known: the agent wrote
//! them. See [`ironclaw_text::urls`].

use super::kind::{Kinds, late_tool};
use crate::sessions::store::Session;
use crate::turns::calls::{self, ResultBody};
use crate::turns::items::{self, Recorded};
use ironclaw_contract::seam::message::Author;
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_judge::egress::{CanonicalUrl, Loopback};
use ironclaw_judge::provenance::spans::{self, Marked, Telling};
use ironclaw_judge::scope::recorded;
use ironclaw_operator::SourceKind;
use ironclaw_state::ReadTx;
use ironclaw_state::keys::ContentKey;
use ironclaw_store::error::Error;
use ironclaw_store::tables::{items as tables, turns};
use ironclaw_text::urls;
use std::collections::HashSet;

/// The bounds on what is read to find the URLs of one reply: the newest items, and their bytes.
const ITEMS_MAX: usize = 2048;
const BYTES_MAX: u64 = 16 << 20;

/// Returns the unknown URLs of a text, each once, in order.
pub(super) fn unknown(
    tx: &ReadTx<'_>,
    session: &Session,
    reply: &Recorded,
    key: &ContentKey,
    text: &str,
) -> Result<Vec<String>, Error> {
    let mut wanted: Vec<&str> = Vec::new();
    for range in urls::find(text) {
        let url = &text[range];
        if !wanted.contains(&url) {
            wanted.push(url);
        }
    }
    let mut open: HashSet<String> = wanted.iter().map(|url| canonical(url)).collect();
    let mut kinds = Kinds::new(tx, session, reply, key);
    let (mut bytes, mut reported) = (0, HashSet::new());
    let found = if open.is_empty() {
        Vec::new()
    } else {
        tables::sources_between(tx, session.id, 0, reply.tuple.seq, ITEMS_MAX)?
    };
    for item in found {
        bytes += item.bytes;
        if open.is_empty() || bytes > BYTES_MAX {
            break;
        }
        let Known { urls, is_report } = urls_in(tx, &item, &mut kinds, key)?;
        match is_report {
            true => reported.extend(urls.into_iter().filter(|url| open.contains(url))),
            false => open.retain(|url| !urls.contains(url)),
        }
    }
    reported.retain(|url| open.contains(url));
    if !reported.is_empty() {
        // A program prints what the agent wrote before.
        let written = written(tx, session, reply, &mut kinds)?;
        open.retain(|url| !reported.contains(url) || written.contains(url));
    }
    wanted.retain(|url| open.contains(&canonical(url)));
    Ok(wanted.into_iter().map(str::to_owned).collect())
}

/// The URLs in an item that its agent did not write, in their canonical form.
#[derive(Default)]
struct Known {
    urls: HashSet<String>,
    /// True if a sandbox or a program in a jail reported them.
    is_report: bool,
}

/// Returns the URLs in the arguments of the calls of a session.
fn written(
    tx: &ReadTx<'_>,
    session: &Session,
    reply: &Recorded,
    kinds: &mut Kinds<'_>,
) -> Result<HashSet<String>, Error> {
    let mut written = HashSet::new();
    for call in turns::calls_in_session(tx, session.id, reply.tuple.seq, ITEMS_MAX)? {
        let arguments = kinds.arguments(call.output, call.id)?.unwrap_or_default();
        written.extend(canonical_urls(&unescaped(&arguments)));
    }
    Ok(written)
}

/// Returns the URLs that an item makes known.
fn urls_in(tx: &ReadTx<'_>, item: &Recorded, kinds: &mut Kinds<'_>, key: &ContentKey) -> Result<Known, Error> {
    if item.tuple.kind == ItemKind::Message && late_tool(item).is_none() {
        let body = items::body(tx, item, key)?;
        let urls = typed(item, &body).iter().map(|url| canonical(url)).collect();
        return Ok(Known { urls, is_report: false });
    }
    let Some(found) = kinds.find(item)? else { return Ok(Known::default()) };
    match found.kind {
        SourceKind::Result | SourceKind::File | SourceKind::Report => {}
        // The agent, the host or a model wrote the rest.
        SourceKind::Message
        | SourceKind::OwnFile
        | SourceKind::Note
        | SourceKind::Request
        | SourceKind::Failure
        | SourceKind::Summary => return Ok(Known::default()),
    }
    let body = items::body(tx, item, key)?;
    let text = match item.tuple.kind {
        ItemKind::Result => items::parse_body::<ResultBody>(&body)?.text,
        ItemKind::Message | ItemKind::Output | ItemKind::Summary | ItemKind::Notice => body,
    };
    let mut known = canonical_urls(&unescaped(&text));
    let call = match item.tuple.call {
        Some(call) => calls::find(tx, call)?,
        None => turns::find_call_by_result(tx, item.tuple.session, item.tuple.item)?,
    };
    if let Some(call) = call.filter(|_| !known.is_empty())
        && let Some(arguments) = kinds.arguments(call.output, call.id)?
    {
        for own in canonical_urls(&unescaped(&arguments)) {
            known.remove(&own);
        }
    }
    Ok(Known { urls: known, is_report: found.kind == SourceKind::Report })
}

/// Returns the URLs in a message that a person typed in their own words.
fn typed(item: &Recorded, body: &str) -> Vec<String> {
    // A scope of an earlier version does not say what the channel told.
    let telling = item.tuple.scope.parse().map_or(Telling::Nothing, |scope: recorded::Recorded| scope.telling);
    let all = item.spans();
    let mut from = 0;
    let span = |span: &ironclaw_contract::seam::message::Span| {
        let text = body.get(from..from + span.bytes).unwrap_or_default();
        from += span.bytes;
        spans::Span { text, typed: matches!(span.author, Author::Person { .. }) }
    };
    let all: Vec<_> = all.iter().map(span).collect();
    let mut own = Vec::new();
    for typed in spans::typed(&all, telling) {
        for range in urls::find(typed.text) {
            if Marked::touched(&typed.marked, &range).is_empty() {
                own.push(typed.text[range].to_owned());
            }
        }
    }
    own
}

/// Returns a text of JSON or of a program with its escaped slashes and ampersands, and with other escapes as blanks.
fn unescaped(text: &str) -> String {
    let text = text.replace("\\/", "/").replace("\\u0026", "&");
    let text = ["\\n", "\\r", "\\t"].into_iter().fold(text, |text, blank| text.replace(blank, " "));
    text.replace('\\', " ")
}

fn canonical_urls(text: &str) -> HashSet<String> {
    urls::find(text).into_iter().map(|range| canonical(&text[range])).collect()
}

/// Returns a URL in the form in which two spellings of it are equal.
fn canonical(url: &str) -> String {
    let parsed = CanonicalUrl::parse_typed(url, Loopback::DangerousAllowed);
    parsed.map_or_else(|_| url.to_owned(), |url| url.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spellings_of_one_url_are_equal() {
        assert_eq!(canonical("HTTPS://A.example:443/x#part"), canonical("https://a.example/x"));
        assert_ne!(canonical("https://a.example/x"), canonical("https://a.example/y"));
        assert_ne!(canonical("https://a.example/x"), canonical("https://a.example/x?q=1"));
        assert_eq!(canonical("www.a.example"), "www.a.example");
    }

    #[test]
    fn urls_of_json_are_read() {
        let text = r#"{"a":"https:\/\/a.example\/x\nhttps://b.example/?c=1\u0026d=2"}"#;
        let found = canonical_urls(&unescaped(text));
        for url in ["https://a.example/x", "https://b.example/?c=1&d=2"] {
            assert!(found.contains(&canonical(url)), "{url}: {found:?}");
        }
    }
}
