//! Frames on `model.sock`: four requests and their answers, and how a frame lies on the wire.
//!
//! A sandbox names items, it writes none of them; the host adds everything else. Next: `inbound`.

use super::limits::FRAME_BYTES_MAX;
use super::message::word;
use super::seal::{ItemKind, Ref};
use crate::canonical::Digest;
use crate::ids::{BootId, CallId, ItemId, TurnId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::io::{self, Read, Write};
use std::str::FromStr;

word!(/// What a model is asked for.
Purpose {
    /// An answer, or calls on the way to one.
    Reply = "reply",
    /// A plan, before anything untrusted is in play.
    Plan = "plan",
    /// A summary of earlier items, which then stands in their place.
    Compact = "compact",
});

/// What a sandbox may ask on `model.sock`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "ask", rename_all = "snake_case", deny_unknown_fields)]
pub enum Request {
    /// One output of the model over these items, in this order.
    Generate {
        /// The open turn.
        turn: TurnId,
        /// What for.
        purpose: Purpose,
        /// Earlier items that the model sees, each once, in their order. For a reply, all of the turn's own messages are among
        /// them; for a summary, none of the turn's items is.
        refs: Vec<Context>,
    },
    /// The result of a local call, once per call.
    Report {
        /// The open turn.
        turn: TurnId,
        /// A recorded local call of it.
        call_id: CallId,
        /// Whether the tool did what was asked.
        ok: bool,
        /// What it says.
        body: String,
    },
    /// Waits for the result of a call that went out as a row.
    Result {
        /// The open turn.
        turn: TurnId,
        /// A recorded call of it that went out as a row.
        call_id: CallId,
    },
    /// The session's own items after a sequence number, with fresh seals: without those that a summary stands in for, and
    /// without messages that wait for a turn of their own.
    Items {
        /// 0 for all.
        after_seq: u64,
    },
}

/// One part of the context of a request: the fields of a ref, or `text` alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, try_from = "Part")]
pub enum Context {
    /// A sealed item.
    Ref(Ref),
    /// Words without a seal: refused, except in the dangerous modes, where they are shown as quoted untrusted text.
    Text(Text),
}

/// Everything that may stand in a part. Read as one flat shape, because a request names a thousand of them and an untagged
/// one would be read into a buffer first.
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
    text: Option<String>,
}

impl TryFrom<Part> for Context {
    type Error = &'static str;

    fn try_from(part: Part) -> Result<Self, &'static str> {
        let Part { item, kind, seq, issued_at, boot, digest, seal, text } = part;
        match (item, kind, seq, issued_at, boot, digest, seal, text) {
            (Some(item), Some(kind), Some(seq), Some(issued_at), Some(boot), Some(digest), Some(seal), None) => {
                Ok(Self::Ref(Ref { item, kind, seq, issued_at, boot, digest, seal }))
            }
            (None, None, None, None, None, None, None, Some(text)) => Ok(Self::Text(Text { text })),
            _ => Err("a part of a context is a whole ref, or text alone"),
        }
    }
}

/// Words without a seal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Text {
    /// The words.
    pub text: String,
}

/// The host's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case", deny_unknown_fields)]
pub enum Response {
    /// To `generate`: the sealed output, and its calls with what is to be done about each; or the sealed summary, without any.
    Output {
        /// The output, or the summary.
        item: Ref,
        /// Bytes of its text.
        bytes: u64,
        /// Its calls, in order; none makes it an answer that a reply row may name.
        calls: Vec<Call>,
    },
    /// To `report` and `result`: the sealed result.
    Sealed {
        /// The result.
        item: Ref,
        /// Bytes of its body.
        bytes: u64,
    },
    /// To `items`.
    Items {
        /// In their order.
        items: Vec<Item>,
        /// Whether there are more after the last.
        more: bool,
    },
    /// No, and why.
    Refused {
        /// What the refusal is about.
        code: RefusalCode,
        /// A sentence that names the thing.
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
    /// Bytes of its body.
    pub bytes: u64,
    /// The turn that it belongs to, if any.
    pub turn: Option<TurnId>,
}

/// A call in an output, judged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Call {
    /// The recorded call.
    pub call_id: CallId,
    /// The tool.
    pub tool: String,
    /// Its arguments, exactly those that were hashed: canonical JSON text.
    pub arguments: String,
    /// What is to be done.
    pub verdict: Verdict,
}

/// What becomes of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case", deny_unknown_fields)]
pub enum Verdict {
    /// Run it here and report.
    Local,
    /// Write it as a row with this call id, ring, and ask for its result.
    Row,
    /// The host has run it; this is its result.
    Done {
        /// The sealed result.
        item: Ref,
        /// Bytes of its body.
        bytes: u64,
    },
    /// It will not run; this is its result.
    Refused {
        /// The sealed refusal, which the model sees as the call's result.
        item: Ref,
        /// Bytes of its body.
        bytes: u64,
    },
}

word!(/// What a refusal is about.
RefusalCode {
    /// The frame is malformed or over a limit.
    Frame = "frame",
    /// A ref without a valid seal for this session.
    Seal = "seal",
    /// An item that does not stand in the record.
    Unknown = "unknown",
    /// Words without a seal.
    Unsealed = "unsealed",
    /// Refs out of order, twice, or one of the turn's messages left out.
    Order = "order",
    /// A turn that is closed, foreign or over.
    Turn = "turn",
    /// A call that is not there, not of this sort, or used.
    Call = "call",
    /// A bound of the turn is reached.
    Budget = "budget",
    /// Not offered yet.
    Unavailable = "unavailable",
    /// The model's endpoint failed.
    Model = "model",
});

/// Reads one frame: four bytes of length, big-endian, then that many bytes of JSON.
///
/// # Errors
/// `UnexpectedEof` for a cut frame, `InvalidData` for one over [`FRAME_BYTES_MAX`] (whose body is not read); `Ok(None)` at a clean end.
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

/// The length that a prefix announces, if it is within the limit.
pub fn frame_length(prefix: [u8; 4]) -> io::Result<usize> {
    let length = u32::from_be_bytes(prefix) as usize;
    if length > FRAME_BYTES_MAX {
        let message = format!("frame of {length} bytes is over the limit of {FRAME_BYTES_MAX}");
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    Ok(length)
}

/// The bytes of one frame, prefix included.
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
