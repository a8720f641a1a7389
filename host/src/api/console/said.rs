//! The lines of a conversation as a page shows them: texts, and the calls of the agent with their results.
//!
//! An address in a text is marked and is no link. See [`super::talk`].

use super::words;
use crate::registry::tools::SEND_FILE;
use askama::Template;
use ironclaw_contract::ids::CallId;
use ironclaw_contract::seam::seal::ItemKind;
use ironclaw_operator::{CallState, Speaker, TranscriptItem, TranscriptSpan};
use ironclaw_text::urls;
use jiff::tz::TimeZone;
use serde_json::Value;

/// Characters of a result on a page; the transcript of `ironctl` has all of it.
const RESULT_CHARACTERS_MAX: usize = 20_000;

/// A piece of a text.
#[derive(Debug, PartialEq, Eq)]
pub struct Piece {
    pub text: String,
    pub is_url: bool,
}

/// A part of a line by one author.
pub struct Block {
    pub author: String,
    pub is_quoted: bool,
    pub pieces: Vec<Piece>,
}

/// A call of a tool.
pub struct Call {
    pub id: CallId,
    pub tool: String,
    pub state: CallState,
    pub arguments: String,
    pub result: Option<String>,
    /// The name of the file that the agent sent with it.
    pub file: Option<String>,
}

/// A line of a conversation.
pub struct Said {
    /// The number of its item.
    pub seq: u64,
    pub class: &'static str,
    pub by: String,
    pub at: String,
    pub at_shown: String,
    pub blocks: Vec<Block>,
    pub calls: Vec<Call>,
}

#[derive(Template)]
#[template(path = "line.html")]
struct Element<'a> {
    said: &'a Said,
}

#[derive(Template)]
#[template(path = "said.html")]
struct Content<'a> {
    said: &'a Said,
}

impl Said {
    /// Returns the id of its element.
    pub fn id(&self) -> String {
        format!("line-{}", self.seq)
    }

    /// Returns its element as HTML.
    pub fn element(&self) -> askama::Result<String> {
        Element { said: self }.render()
    }

    /// Returns the content of its element as HTML.
    pub fn content(&self) -> askama::Result<String> {
        Content { said: self }.render()
    }
}

/// The names of the two sides of a conversation.
pub struct Names<'a> {
    pub person: &'a str,
    pub agent: &'a str,
}

/// Returns the lines of these items. The result of a call is with its call.
pub fn lines(items: Vec<TranscriptItem>, names: &Names<'_>, zone: &TimeZone) -> Vec<Said> {
    let mut lines: Vec<Said> = Vec::new();
    for item in items {
        if item.kind == ItemKind::Result
            && let Some(call) =
                lines.iter_mut().rev().flat_map(|said| &mut said.calls).find(|call| item.call_id == Some(call.id))
        {
            call.result = Some(shortened(&item.text));
            continue;
        }
        let (class, by) = match (item.kind, item.speaker) {
            (ItemKind::Message, Speaker::Person) => ("person", names.person.to_owned()),
            (ItemKind::Message, Speaker::Agent) => {
                ("agent", item.spans.first().map_or_else(String::new, |span| span.author.clone()))
            }
            (ItemKind::Output, _) => ("agent", names.agent.to_owned()),
            (ItemKind::Result, _) => ("host", item.tool.clone().unwrap_or_default()),
            (ItemKind::Message | ItemKind::Notice | ItemKind::Summary, _) => ("host", words::HOST.to_owned()),
        };
        let calls = item.calls.iter().map(|call| Call {
            id: call.call_id,
            tool: call.tool.clone(),
            state: call.state,
            arguments: shortened(&call.arguments),
            result: None,
            file: (call.tool == SEND_FILE && call.state == CallState::Done).then(|| file_name(&call.arguments)),
        });
        lines.push(Said {
            seq: item.seq,
            class,
            by,
            at_shown: words::time(zone, &item.at),
            at: item.at.clone(),
            calls: calls.collect(),
            blocks: blocks(&item),
        });
    }
    lines
}

/// Returns the parts of a line, each with its author.
fn blocks(item: &TranscriptItem) -> Vec<Block> {
    let own = item.spans.first().map(|span| span.author.clone());
    let mut rest = shortened(&item.text);
    let mut blocks = Vec::new();
    for TranscriptSpan { author, bytes } in &item.spans {
        let end = (0..=(*bytes).min(rest.len())).rev().find(|at| rest.is_char_boundary(*at)).unwrap_or(0);
        let tail = rest.split_off(end);
        let is_quoted = Some(author) != own.as_ref();
        blocks.push(Block { author: author.clone(), is_quoted, pieces: pieces(&rest) });
        rest = tail;
    }
    if !rest.is_empty() {
        blocks.push(Block { author: String::new(), is_quoted: false, pieces: pieces(&rest) });
    }
    blocks.retain(|block| !block.pieces.is_empty());
    blocks
}

/// Returns the name of the file that a call sends.
fn file_name(arguments: &str) -> String {
    let path =
        serde_json::from_str::<Value>(arguments).ok().and_then(|all| Some(all.get("path")?.as_str()?.to_owned()));
    path.unwrap_or_default().rsplit('/').next().unwrap_or_default().to_owned()
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(RESULT_CHARACTERS_MAX) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}…", &text[..at]),
    }
}

/// Cuts a text at its addresses.
fn pieces(text: &str) -> Vec<Piece> {
    let (mut pieces, mut at) = (Vec::new(), 0);
    let mut put = |text: &str, is_url| {
        if !text.is_empty() {
            pieces.push(Piece { text: text.to_owned(), is_url });
        }
    };
    for found in urls::find(text) {
        put(&text[at..found.start], false);
        put(&text[found.clone()], true);
        at = found.end;
    }
    put(&text[at..], false);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_cut_out_and_no_character_is_lost() {
        for text in ["", "plain", "see https://a.example/x?y=1), or http://b.example", "https://", "https://é<b>"] {
            let found = pieces(text);
            assert_eq!(found.iter().map(|piece| piece.text.as_str()).collect::<String>(), text);
        }
        let urls: Vec<String> = pieces("see https://a.example/x) and http://b.example")
            .into_iter()
            .filter(|piece| piece.is_url)
            .map(|piece| piece.text)
            .collect();
        assert_eq!(urls, ["https://a.example/x", "http://b.example"]);
    }
}
