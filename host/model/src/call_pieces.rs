//! The calls of one output, put together from the pieces in which a server sends them.
//!
//! Never guesses: if the pieces have two readings, the answer is refused. A repeated piece is a repetition, and a call never gets a
//! piece of another one. See [`crate::assembly`].

mod growing;
pub mod sent;
mod tidy;

use super::WantedCall;
use super::fault::Fault;
use growing::Growing;

/// Calls of one output that are kept. It is higher than the limit of a turn, so that the host can refuse the excess calls.
pub const CALLS_MAX: usize = 128;
/// Bytes of the id of a call at a provider. Some have a signature in it.
const ID_BYTES_MAX: usize = 32 * 1024;

/// A piece of a call, as a server sends it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Piece<'a> {
    /// The number of the call in its answer; some servers send none, or the same for all.
    pub index: Option<u64>,
    /// The id of the call; empty without one.
    pub id: &'a str,
    /// The name of its tool; empty in a piece that continues a call.
    pub tool: &'a str,
    /// A part of its arguments.
    pub arguments: &'a str,
    /// True for an element of a whole answer, and for the announced start of a call: it continues no other call.
    pub begins: bool,
}

/// The calls so far.
#[derive(Debug, Default)]
pub struct CallPieces {
    calls: Vec<Growing>,
    /// The names of the offered tools.
    tools: Vec<String>,
    bytes: usize,
    /// True if a piece did not say by index or id alone where it belongs. Then each call has to prove itself.
    is_loose: bool,
}

/// The place of a piece.
enum Place {
    New,
    /// A new call, if it gets arguments.
    Again,
    Known(usize),
}

/// A call of an output.
#[derive(Debug, PartialEq, Eq)]
pub struct Finished {
    /// Its position among all calls that began.
    pub at: usize,
    /// Its id at the provider, if it has exactly one.
    pub id: Option<String>,
    pub call: WantedCall,
}

/// A call with all its pieces.
struct Whole {
    /// Its position.
    at: usize,
    call: Growing,
    arguments: String,
}

impl CallPieces {
    /// Notes the names of the offered tools, for names that come in pieces.
    pub fn offer<'a>(&mut self, tools: impl IntoIterator<Item = &'a str>) {
        self.tools = tools.into_iter().map(str::to_owned).collect();
    }

    pub const fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns the number of calls so far.
    pub const fn len(&self) -> usize {
        self.calls.len()
    }

    /// Returns the bytes of the names and arguments so far.
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a piece. Returns the position of its call; `None` for a piece without any content that belongs to none.
    ///
    /// # Errors
    /// [`Fault::TooLarge`] for too many calls, [`Fault::UnclearCalls`] for a piece with two readings.
    pub fn add(&mut self, piece: Piece<'_>) -> Result<Option<usize>, Fault> {
        let piece = Piece { tool: tidy::name(piece.tool), ..piece };
        let at = match self.place(&piece)? {
            Place::Known(at) => at,
            Place::New if piece.id.is_empty() && piece.tool.is_empty() && piece.arguments.is_empty() => {
                return Ok(None);
            }
            Place::New | Place::Again if self.calls.len() == CALLS_MAX || piece.id.len() > ID_BYTES_MAX => {
                return Err(Fault::TooLarge);
            }
            place @ (Place::New | Place::Again) => {
                let is_announced_again = matches!(place, Place::Again);
                let mut call = Growing::new(piece.index, piece.id);
                call.is_announced_again = is_announced_again;
                self.calls.push(call);
                self.calls.len() - 1
            }
        };
        let call = &mut self.calls[at];
        let before = call.bytes();
        self.is_loose |= call.extend(&piece);
        self.bytes = self.bytes - before + call.bytes();
        Ok(Some(at))
    }

    /// Ends the newest call with this index: a later piece with the same index belongs to another one.
    pub fn close(&mut self, index: Option<u64>) {
        let is_meant = |call: &&mut Growing| index.is_none() || call.index == index;
        if let Some(call) = self.calls.iter_mut().rev().find(is_meant) {
            call.is_closed = true;
        }
    }

    /// Returns the calls; a repetition is left out.
    ///
    /// # Errors
    /// [`Fault::Malformed`] for a call without a tool. [`Fault::UnclearCalls`] if a call that the server did not mark by index or id
    /// alone has no whole arguments.
    pub fn finish(self) -> Result<Vec<Finished>, Fault> {
        let mut kept: Vec<Whole> = Vec::new();
        for (at, call) in self.calls.into_iter().enumerate() {
            if call.tool.is_empty() {
                return Err(Fault::Malformed);
            }
            if call.is_announced_again && !call.has_begun() {
                continue;
            }
            // Around arguments that may be a part of other ones, nothing is left out.
            let whole = call.whole().or_else(|| call.tidied().filter(|_| !self.is_loose));
            if whole.is_none() && self.is_loose {
                return Err(Fault::UnclearCalls);
            }
            if !call.repeats(whole.as_deref()) {
                return Err(Fault::UnclearCalls);
            }
            let arguments = whole.unwrap_or_else(|| call.as_sent());
            let is_repetition =
                |earlier: &Whole| earlier.call.may_be(&call) && growing::are_equal(&earlier.arguments, &arguments);
            if !kept.iter().any(is_repetition) {
                kept.push(Whole { at, call, arguments });
            }
        }
        let finished = |whole: Whole| {
            let id = whole.call.only_id();
            Finished { at: whole.at, id, call: WantedCall { tool: whole.call.tool, arguments: whole.arguments } }
        };
        Ok(kept.into_iter().map(finished).collect())
    }

    /// Returns the place of a piece.
    fn place(&mut self, piece: &Piece<'_>) -> Result<Place, Fault> {
        if piece.begins {
            // An announcement may come twice before the arguments.
            let is_same = |call: &Growing| call.is_announced(piece);
            return Ok(self.calls.iter().position(is_same).map_or(Place::New, Place::Known));
        }
        let group = self.group(piece);
        let Some(last) = group.last().copied() else { return Ok(Place::New) };
        self.is_loose |= group.len() > 1 || (piece.index.is_none() && piece.id.is_empty() && self.calls.len() > 1);
        match piece.tool {
            "" => self.place_of_nameless(piece, &group),
            _ => self.place_of_named(piece, last),
        }
    }

    /// Returns the calls that a piece may belong to by its index and its id: those with its id, else those with its index.
    fn group(&self, piece: &Piece<'_>) -> Vec<usize> {
        let agrees = |call: &Growing| call.index.is_none() || piece.index.is_none() || call.index == piece.index;
        let all = || self.calls.iter().enumerate();
        let those = |found: &mut dyn Iterator<Item = (usize, &Growing)>| found.map(|(at, _)| at).collect::<Vec<_>>();
        if !piece.id.is_empty() {
            let by_id = those(&mut all().filter(|(_, call)| agrees(call) && call.has_id(piece.id)));
            if !by_id.is_empty() {
                return by_id;
            }
        }
        match piece.index {
            Some(_) => those(&mut all().filter(|(_, call)| call.index == piece.index)),
            None if piece.id.is_empty() => those(&mut all()),
            // An id that comes late.
            None => those(&mut all().filter(|(_, call)| call.id.is_empty())),
        }
    }

    /// Returns the place of a piece without a name, which cannot begin a call.
    fn place_of_nameless(&mut self, piece: &Piece<'_>, group: &[usize]) -> Result<Place, Fault> {
        let last = *group.last().expect("it is not empty");
        if piece.arguments.is_empty() {
            return Ok(Place::Known(last));
        }
        let open: Vec<usize> = group.iter().copied().filter(|at| self.calls[*at].is_open()).collect();
        match open[..] {
            [] if self.calls[last].is_whole() => {
                self.calls[last].is_shared |= group.len() > 1;
                Ok(Place::Known(last))
            }
            [] => Err(Fault::UnclearCalls),
            [at] if at == last || self.calls[at].has_begun() => Ok(Place::Known(at)),
            [_] => Err(Fault::UnclearCalls),
            [_, ..] => {
                let mut fitting = open.into_iter().filter(|at| self.calls[*at].fits(piece.arguments));
                match (fitting.next(), fitting.next()) {
                    (Some(at), None) => Ok(Place::Known(at)),
                    (None | Some(_), _) => Err(Fault::UnclearCalls),
                }
            }
        }
    }

    /// Returns the place of a piece with a name: the last call that it may belong to, or a new one.
    fn place_of_named(&mut self, piece: &Piece<'_>, last: usize) -> Result<Place, Fault> {
        let call = &self.calls[last];
        let is_other_id = !piece.id.is_empty() && !call.id.is_empty() && !call.has_id(piece.id);
        if call.tool.is_empty() {
            return Ok(if is_other_id { Place::New } else { Place::Known(last) });
        }
        if call.tool != piece.tool {
            // The two names may be parts of one.
            let is_unclear = call.is_open() && !call.has_begun() && !is_other_id;
            if is_unclear && self.has_tool_of_parts(&call.tool, piece.tool) {
                self.calls[last].tool.push_str(piece.tool);
                self.bytes += piece.tool.len();
                return Ok(Place::Known(last));
            }
            self.is_loose = true;
            return if is_unclear || call.is_alias(piece.id) { Err(Fault::UnclearCalls) } else { Ok(Place::New) };
        }
        if is_other_id {
            self.is_loose = true;
            let is_rest = call.is_open() && call.has_begun() && !piece.arguments.trim_start().starts_with('{');
            let is_unclear = call.is_open() && !call.has_begun() && !piece.arguments.is_empty();
            return match (is_rest, is_unclear) {
                (true, _) => Ok(Place::Known(last)),
                (false, true) => Err(Fault::UnclearCalls),
                (false, false) => Ok(Place::New),
            };
        }
        if piece.arguments.is_empty() && piece.id.is_empty() && call.is_whole() && call.has_begun() {
            // A further call of this tool without a mark of its own, or an announcement that is repeated.
            self.is_loose = true;
            return Ok(Place::Again);
        }
        let is_repetition = call.is_whole_as(piece.arguments) || call.is_last_again(piece.arguments);
        let is_known = call.is_open() || piece.arguments.is_empty() || is_repetition;
        self.is_loose |= !is_known;
        if !is_known && call.is_whole_as(growing::NONE) {
            // It may be the announcement of this call, or a call of its own.
            return Err(Fault::UnclearCalls);
        }
        Ok(if is_known { Place::Known(last) } else { Place::New })
    }
}

impl CallPieces {
    /// Returns whether two parts are the beginning of the name of an offered tool, and none of them is a name.
    fn has_tool_of_parts(&self, first: &str, second: &str) -> bool {
        let is_name = |name: &str| self.tools.iter().any(|tool| tool == name);
        let begins = |tool: &String| tool.strip_prefix(first).is_some_and(|rest| rest.starts_with(second));
        !is_name(first) && !is_name(second) && self.tools.iter().any(begins)
    }
}

/// Returns the calls of an output that has more than one choice: those of the first, or those of the others if it has none.
///
/// # Errors
/// [`Fault::UnclearCalls`] if another choice has other calls than the first.
pub fn chosen(first: Vec<Finished>, others: Vec<Finished>) -> Result<Vec<Finished>, Fault> {
    if first.is_empty() {
        return Ok(others);
    }
    let is_known = |other: &Finished| {
        let is_same = |call: &WantedCall| {
            call.tool == other.call.tool && growing::are_equal(&call.arguments, &other.call.arguments)
        };
        first.iter().any(|known| is_same(&known.call))
    };
    if others.iter().all(is_known) { Ok(first) } else { Err(Fault::UnclearCalls) }
}

#[cfg(test)]
mod tests;
