//! One call while its pieces arrive, with the two readings of its arguments: parts that are joined, or texts that grow.
//!
//! Never decides between two readings that are both whole; they cannot be. See [`super::CallPieces`].

use super::Piece;
use super::tidy::{self, is_object};
use serde::de::IgnoredAny;
use serde_json::Value;

/// Other ids of one call that are kept.
const ALIASES_MAX: usize = 64;

/// The arguments of a call without any.
pub(super) const NONE: &str = "{}";

/// A call whose pieces arrive.
#[derive(Debug, Default)]
pub(super) struct Growing {
    pub(super) index: Option<u64>,
    pub(super) id: String,
    pub(super) tool: String,
    /// Its ids in later pieces, from servers that send another one with each piece.
    aliases: Vec<String>,
    /// The pieces of its arguments, joined. `None` after they were no beginning of JSON.
    joined: Option<Joined>,
    /// The last piece, if each piece repeats the one before and continues it.
    grown: Option<String>,
    /// The joined pieces without those that repeat the one before; `None` without such a piece.
    distinct: Option<String>,
    pieces: usize,
    last: String,
    /// What came behind whole arguments; it has to repeat them.
    again: String,
    /// True if that can be a part of another call.
    pub(super) is_shared: bool,
    pub(super) is_closed: bool,
    /// True if it is a call only with arguments: without them, it announces the call before once more.
    pub(super) is_announced_again: bool,
}

/// Joined pieces, with the place in their JSON.
#[derive(Debug, Default)]
struct Joined {
    text: String,
    depth: u32,
    is_in_text: bool,
    is_escaped: bool,
    is_whole: bool,
}

impl Joined {
    fn push(&mut self, piece: &str) {
        self.text.push_str(piece);
        for letter in piece.bytes() {
            match (self.is_in_text, letter) {
                (true, _) if self.is_escaped => self.is_escaped = false,
                (true, b'\\') => self.is_escaped = true,
                (true, b'"') => self.is_in_text = false,
                (true, _) => {}
                (false, b'"') => self.is_in_text = true,
                (false, b'{' | b'[') => self.depth += 1,
                (false, b'}' | b']') => {
                    self.depth = self.depth.saturating_sub(1);
                    self.is_whole |= self.depth == 0;
                }
                (false, _) => {}
            }
        }
    }
}

impl Growing {
    pub(super) fn new(index: Option<u64>, id: &str) -> Self {
        Self { index, id: id.to_owned(), joined: Some(Joined::default()), ..Self::default() }
    }

    /// Returns the bytes that it holds.
    pub(super) fn bytes(&self) -> usize {
        let joined = self.joined.as_ref().map_or(0, |joined| joined.text.len());
        let grown = self.grown.as_ref().map_or(0, String::len);
        self.tool.len() + joined.max(grown) + self.again.len()
    }

    pub(super) fn has_id(&self, id: &str) -> bool {
        self.id == id || self.is_alias(id)
    }

    pub(super) fn is_alias(&self, id: &str) -> bool {
        self.aliases.iter().any(|alias| alias == id)
    }

    /// Returns whether a part of its arguments has arrived.
    pub(super) const fn has_begun(&self) -> bool {
        self.pieces > 0
    }

    /// Returns whether its arguments can continue.
    pub(super) fn is_open(&self) -> bool {
        !self.is_closed && !self.is_whole()
    }

    pub(super) fn is_whole(&self) -> bool {
        match &self.joined {
            Some(joined) => joined.is_whole,
            None => self.grown.as_deref().is_some_and(is_object),
        }
    }

    /// Returns whether these arguments say the same as its own, which are whole.
    pub(super) fn is_whole_as(&self, arguments: &str) -> bool {
        self.whole().is_some_and(|own| are_equal(&own, arguments))
    }

    /// Returns whether this piece announces the same call again before its arguments.
    pub(super) fn is_announced(&self, piece: &Piece<'_>) -> bool {
        let is_same = self.index == piece.index && self.id == piece.id && self.tool == piece.tool;
        is_same && !self.has_begun() && !self.is_closed && !piece.tool.is_empty()
    }

    /// Returns whether its arguments with this piece can be the beginning of an object.
    pub(super) fn fits(&self, piece: &str) -> bool {
        let joined = self.joined.as_ref().is_some_and(|joined| begins_object(&format!("{}{piece}", joined.text)));
        joined || self.grown.as_deref().is_some_and(|grown| piece.starts_with(grown))
    }

    /// Adds a piece. Returns whether it belongs here only by another sign than index or id.
    pub(super) fn extend(&mut self, piece: &Piece<'_>) -> bool {
        let mut is_loose = false;
        if self.tool.is_empty() {
            piece.tool.clone_into(&mut self.tool);
        }
        if self.id.is_empty() {
            piece.id.clone_into(&mut self.id);
        } else if !piece.id.is_empty() && !self.has_id(piece.id) && self.aliases.len() < ALIASES_MAX {
            self.aliases.push(piece.id.to_owned());
            is_loose = true;
        }
        if piece.arguments.is_empty() {
            return is_loose;
        }
        if self.is_whole() {
            let is_between = self.again.is_empty() || is_object(&self.again);
            let is_repetition = is_between && self.is_whole_as(piece.arguments);
            if !piece.arguments.trim().is_empty() && !is_repetition {
                self.again.push_str(piece.arguments);
            }
            return is_loose;
        }
        is_loose |= self.grow(piece.arguments);
        piece.arguments.clone_into(&mut self.last);
        self.pieces += 1;
        is_loose
    }

    /// Adds a part of the arguments. Returns whether the parts can be read only as a text that grows.
    fn grow(&mut self, piece: &str) -> bool {
        match (&mut self.distinct, &self.joined) {
            (Some(distinct), _) if self.last != piece => distinct.push_str(piece),
            (None, Some(joined)) if self.pieces > 0 && self.last == piece => self.distinct = Some(joined.text.clone()),
            (Some(_) | None, _) => {}
        }
        let was_joined = self.joined.is_some();
        if self.pieces == 0 {
            self.grown = Some(piece.to_owned());
        } else if let Some(grown) = self.grown.take_if(|grown| !piece.starts_with(grown.as_str())) {
            drop(grown);
        } else if self.grown.is_some() {
            self.grown = Some(piece.to_owned());
            self.joined.take_if(|joined| !begins_object(&format!("{}{piece}", joined.text)));
        }
        if let Some(joined) = &mut self.joined {
            joined.push(piece);
        }
        was_joined && self.joined.is_none()
    }

    /// Returns its arguments if they are an object in one reading; those of a call without any are an empty one.
    pub(super) fn whole(&self) -> Option<String> {
        let joined = self.joined.as_ref().map(|joined| joined.text.as_str());
        if let Some("" | "null") = joined.map(str::trim) {
            return Some(NONE.to_owned());
        }
        // Some servers announce a call with an empty object, and send its arguments behind it.
        if joined.map(str::trim) == Some(NONE) && !self.is_shared && is_object(&self.again) {
            return Some(self.again.clone());
        }
        let readings = [joined, self.grown.as_deref(), self.distinct.as_deref()];
        readings.into_iter().flatten().find(|reading| is_object(reading)).map(str::to_owned)
    }

    /// Returns its arguments if they are an object with something around it that says nothing.
    pub(super) fn tidied(&self) -> Option<String> {
        let joined = self.joined.as_ref().map(|joined| joined.text.as_str());
        [joined, self.grown.as_deref()].into_iter().flatten().find_map(tidy::object)
    }

    /// Returns whether this is its last piece once more, and no arguments of their own.
    pub(super) fn is_last_again(&self, arguments: &str) -> bool {
        self.is_whole() && self.last == arguments && !is_object(arguments)
    }

    /// Returns its arguments as they were sent; they are no object.
    pub(super) fn as_sent(&self) -> String {
        let joined = self.joined.as_ref().map(|joined| joined.text.clone());
        joined.or_else(|| self.grown.clone()).unwrap_or_default()
    }

    /// Returns whether what came behind its whole arguments only repeats them, or the last piece.
    pub(super) fn repeats(&self, whole: Option<&str>) -> bool {
        let (again, last) = (self.again.trim(), self.last.trim());
        // The last piece may come again several times.
        let is_last = !last.is_empty() && again.split(last).all(|rest| rest.trim().is_empty());
        tidy::says_nothing(again) || is_last || whole.is_some_and(|whole| are_equal(whole, again))
    }

    /// Returns whether the server did not mark this call and another one as two.
    pub(super) fn may_be(&self, other: &Self) -> bool {
        let is_index = self.index.is_none() || other.index.is_none() || self.index == other.index;
        let is_id = self.id.is_empty() || other.id.is_empty() || self.has_id(&other.id);
        is_index && is_id && self.tool == other.tool
    }

    /// Returns its id, if no piece had another one.
    pub(super) fn only_id(&self) -> Option<String> {
        (!self.id.is_empty() && self.aliases.is_empty()).then(|| self.id.clone())
    }
}

/// Returns whether a text is the beginning of an object, or a whole one.
fn begins_object(text: &str) -> bool {
    let text = text.trim_start();
    let is_begun = || serde_json::from_str::<IgnoredAny>(text).map_or_else(|error| error.is_eof(), |_| true);
    text.is_empty() || (text.starts_with('{') && is_begun())
}

/// Returns whether two texts say the same: the same characters, or the same JSON.
pub(super) fn are_equal(one: &str, other: &str) -> bool {
    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
    one.trim() == other.trim() || read(one).is_some_and(|one| read(other) == Some(one))
}
