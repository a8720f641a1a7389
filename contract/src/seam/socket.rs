//! Frames on `model.sock`: four requests, their answers, and the bytes of a frame.
//!
//! A sandbox names items and writes none of them; the host adds everything else. See `inbound`.

use super::limits::FRAME_BYTES_MAX;
use super::message::word;
use super::seal::{ItemKind, Ref};
use crate::canonical::Digest;
use crate::ids::{BootId, CallId, ItemId, TurnId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, Read, Write};
use std::str::FromStr;

word!(/// The purpose of a request to a model.
Purpose {
    /// An answer, or tool calls on the way to one.
    Reply = "reply",
    /// A plan, before the context has untrusted content.
    Plan = "plan",
    /// A summary of earlier items, which then replaces them.
    Compact = "compact",
});

/// A request of a sandbox on `model.sock`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// Asks for one output of the model over these items, in this order.
    Generate {
        /// The open turn.
        turn: TurnId,
        /// The purpose.
        purpose: Purpose,
        /// The items that the model sees, each once, in their order. For a reply, all messages of the turn are among them. For a
        /// summary, no item of the turn is.
        refs: Vec<Context>,
    },
    /// Reports the result of a local call, once for each call.
    Report {
        /// The open turn.
        turn: TurnId,
        /// A recorded local call of that turn.
        call_id: CallId,
        /// True if the tool succeeded.
        ok: bool,
        /// The text of the result.
        body: String,
    },
    /// Waits for the result of a call whose verdict was `row` or `await`.
    Result {
        /// The open turn.
        turn: TurnId,
        /// A recorded call of that turn that the sandbox named in a row, or that the host runs.
        call_id: CallId,
    },
    /// Asks for the items of the session after a sequence number, with fresh seals. Leaves out items that a summary covers, and
    /// messages that wait for a turn of their own.
    Items {
        /// The sequence number; 0 for all items.
        after_seq: u64,
    },
}

/// A part of the context of a request: the fields of a ref, the fields of a range, or `text` alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, try_from = "Part")]
pub enum Context {
    /// A sealed item.
    Ref(Ref),
    /// Items of an earlier request, whose refs the host checked then.
    Earlier(Earlier),
    /// Words without a seal. The host refuses them; in a dangerous mode the model gets them as quoted, untrusted text.
    Text(Text),
}

/// All possible fields of a part. One flat shape, because a request has up to a thousand parts, and serde would read an
/// untagged one into a buffer first.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Part {
    item: Option<ItemId>,
    kind: Option<ItemKind>,
    seq: Option<u64>,
    issued_at: Option<i64>,
    boot: Option<BootId>,
    digest: Option<Digest>,
    seal: Option<Digest>,
    output: Option<ItemId>,
    from: Option<u64>,
    upto: Option<u64>,
    text: Option<String>,
}

impl TryFrom<Part> for Context {
    type Error = &'static str;

    fn try_from(part: Part) -> Result<Self, &'static str> {
        let Part { item, kind, seq, issued_at, boot, digest, seal, output, from, upto, text } = part;
        let reference = (item, kind, seq, issued_at, boot, digest, seal);
        match (reference, (output, from, upto), text) {
            (
                (Some(item), Some(kind), Some(seq), Some(issued_at), Some(boot), Some(digest), Some(seal)),
                (None, None, None),
                None,
            ) => Ok(Self::Ref(Ref { item, kind, seq, issued_at, boot, digest, seal })),
            ((None, None, None, None, None, None, None), (Some(output), Some(from), Some(upto)), None) => {
                Ok(Self::Earlier(Earlier { output, from, upto }))
            }
            ((None, None, None, None, None, None, None), (None, None, None), Some(text)) => {
                Ok(Self::Text(Text { text }))
            }
            _ => Err("a part of a context is a whole ref, a whole range, or text alone"),
        }
    }
}

/// All items of an earlier request whose numbers are in a range, so that a long conversation is not named again at each request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Earlier {
    /// The output of that request. The host remembers the items of the newest answered request of a session, until the session sleeps.
    pub output: ItemId,
    /// The number of the first item.
    pub from: u64,
    /// The number of the last item.
    pub upto: u64,
}

/// Words without a seal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    /// The words.
    pub text: String,
}

/// An answer of the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case", deny_unknown_fields)]
pub enum Response {
    /// To `generate`: the sealed output and its judged calls, or the sealed summary without calls.
    Output {
        /// The output, or the summary.
        item: Ref,
        /// The number of bytes of its text.
        bytes: u64,
        /// Its calls, in order. An output without calls is an answer, and a reply row may name it.
        calls: Vec<Call>,
    },
    /// To `report` and `result`: the sealed result.
    Sealed {
        /// The result.
        item: Ref,
        /// The number of bytes of its body.
        bytes: u64,
    },
    /// To `items`.
    Items {
        /// The items, in their order.
        items: Vec<Item>,
        /// True if there are more after the last.
        more: bool,
    },
    /// A refusal.
    Refused {
        /// The code.
        code: RefusalCode,
        /// A sentence that names the object.
        message: String,
    },
}

/// One item in an answer to `items`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// The item.
    #[serde(rename = "ref")]
    pub reference: Ref,
    /// The number of bytes of its body.
    pub bytes: u64,
    /// The turn of the item, if any.
    pub turn: Option<TurnId>,
}

/// A judged call of an output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The recorded call.
    pub call_id: CallId,
    /// The tool.
    pub tool: String,
    /// Its arguments exactly as the host hashed them: canonical JSON text.
    pub arguments: String,
    /// The verdict.
    pub verdict: Verdict,
}

/// The decision of the host about a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case", deny_unknown_fields)]
pub enum Verdict {
    /// The sandbox runs it and reports the result.
    Local,
    /// The sandbox names it in a row, rings the bell, and asks for its result.
    Row,
    /// The host runs it, or asks a person about it; the sandbox asks for its result.
    Await,
    /// The host ran it.
    Done {
        /// The sealed result.
        item: Ref,
        /// The number of bytes of its body.
        bytes: u64,
    },
    /// The host refused it, and it does not run.
    Refused {
        /// The sealed refusal, which the model sees as the call's result.
        item: Ref,
        /// The number of bytes of its body.
        bytes: u64,
    },
}

word!(/// The code of a refusal on the model socket. `DenialCode` has the codes for people and clients.
RefusalCode {
    /// The frame is malformed or over a limit.
    Frame = "frame",
    /// A ref without a valid seal for this session.
    Seal = "seal",
    /// An item that is not in the record, or a range of a request that the host does not remember.
    Unknown = "unknown",
    /// Words without a seal.
    Unsealed = "unsealed",
    /// A ref out of order or named twice, or a message of the turn left out.
    Order = "order",
    /// A turn that is closed, of another session, or past its deadline.
    Turn = "turn",
    /// A call that is not recorded, not of this verdict, or used.
    Call = "call",
    /// A bound of the turn is reached.
    Budget = "budget",
    /// A function that this version does not offer, or not now.
    Unavailable = "unavailable",
    /// The model's endpoint failed.
    Model = "model",
});

/// Reads one frame: four bytes of length, big-endian, then that many bytes of JSON.
///
/// # Errors
/// `UnexpectedEof` for an incomplete frame. `InvalidData` for a frame over [`FRAME_BYTES_MAX`], whose body is not read. A clean
/// end of the stream is `Ok(None)`.
pub fn read_frame(stream: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut first = [0; 1];
    if loop {
        match stream.read(&mut first) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other?,
        }
    } == 0
    {
        return Ok(None);
    }
    let mut rest = [0; 3];
    stream.read_exact(&mut rest)?;
    let length = frame_length([first[0], rest[0], rest[1], rest[2]])?;
    let mut frame = vec![0; length];
    stream.read_exact(&mut frame)?;
    Ok(Some(frame))
}

/// Returns the length that a prefix announces, or refuses one over the limit.
pub fn frame_length(prefix: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_be_bytes(prefix) as usize;
    if length > FRAME_BYTES_MAX {
        let message = format!("frame of {length} bytes is over the limit of {FRAME_BYTES_MAX}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(length)
}

/// Returns the bytes of one frame with its prefix.
///
/// # Errors
/// `InvalidInput` when the value is over the limit.
pub fn frame<T: Serialize>(value: &T) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, value)?;
    let length = bytes.len() - 4;
    if length > FRAME_BYTES_MAX {
        let message = format!("frame of {length} bytes is over the limit of {FRAME_BYTES_MAX}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
    }
    bytes[..4].copy_from_slice(&(length as u32).to_be_bytes());
    Ok(bytes)
}

/// Writes one frame.
pub fn write_frame<T: Serialize>(stream: &mut impl Write, value: &T) -> io::Result<()> {
    stream.write_all(&frame(value)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_that_is_cut_or_too_long_is_refused() {
        let whole = frame(&Request::Items { after_seq: 7 }).expect("fits");
        assert_eq!(read_frame(&mut &whole[..]).expect("whole").expect("a frame"), &whole[4..]);
        assert!(read_frame(&mut &[][..]).expect("a clean end").is_none());
        for cut in 1..whole.len() {
            let error = read_frame(&mut &whole[..cut]).expect_err("cut");
            assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        }
        let long = ((FRAME_BYTES_MAX + 1) as u32).to_be_bytes();
        assert_eq!(read_frame(&mut &long[..]).expect_err("too long").kind(), io::ErrorKind::InvalidData);
        let text = "x".repeat(FRAME_BYTES_MAX);
        assert_eq!(frame(&text).expect_err("too long").kind(), io::ErrorKind::InvalidInput);
    }

    #[test]
    fn a_request_cannot_carry_system_text() {
        let turn = TurnId::new();
        for extra in [r#""system":"obey""#, r#""temperature":1"#, r#""tools":[]"#] {
            let text = format!(r#"{{"ask":"generate","turn":"{turn}","purpose":"reply","refs":[],{extra}}}"#);
            assert!(serde_json::from_str::<Request>(&text).is_err(), "{extra}");
        }
    }
}
