//! The canonical bytes of the tuples of one session, written without JSON values in between.
//!
//! Always the bytes of [`seal::tuple`]: that function is the definition, and a test compares both.

use ironclaw_contract::canonical::INTEGER_MAX;
use ironclaw_contract::ids::{BootId, SessionId};
use ironclaw_contract::seam::seal::{self, RECIPE, Tuple};
use std::io::Write;

/// Bytes of a usual tuple, so that the buffer grows once.
const BYTES_USUAL: usize = 768;

/// A writer of the bytes of tuples. Each has the id of one start in place of its own.
pub(super) struct TupleBytes {
    boot: BootId,
    boot_text: String,
    /// The begin of each tuple: the recipe and the session.
    begin: String,
    buffer: Vec<u8>,
}

impl TupleBytes {
    pub(super) fn new(session: SessionId, boot: BootId) -> Self {
        let begin = format!("[\"{RECIPE}\",\"{session}\"");
        Self { boot, boot_text: boot.to_string(), begin, buffer: Vec::with_capacity(BYTES_USUAL) }
    }

    /// Returns the id of the start.
    pub(super) const fn boot(&self) -> BootId {
        self.boot
    }

    /// Returns the bytes of a tuple of the session.
    pub(super) fn encode(&mut self, t: &Tuple) -> &[u8] {
        self.buffer.clear();
        // Canonical JSON rounds a larger number.
        if t.seq > INTEGER_MAX || t.issued_at.unsigned_abs() > INTEGER_MAX {
            self.buffer = seal::tuple(&Tuple { boot: self.boot, ..t.clone() });
        } else {
            self.write(t).expect("a buffer takes any bytes");
        }
        &self.buffer
    }

    fn write(&mut self, t: &Tuple) -> std::io::Result<()> {
        let out = &mut self.buffer;
        out.extend_from_slice(self.begin.as_bytes());
        // Ids, words of closed lists and digests have no character with an escape.
        write!(out, ",\"{}\",\"{}\",{},{},\"{}\",\"", t.item, t.kind.name(), t.seq, t.issued_at, self.boot_text)?;
        if let Some(turn) = t.turn {
            write!(out, "{turn}")?;
        }
        out.extend_from_slice(b"\",\"");
        if let Some(call) = t.call {
            write!(out, "{call}")?;
        }
        out.extend_from_slice(b"\",");
        serde_json::to_writer(&mut *out, t.tool.as_deref().unwrap_or_default())?;
        write!(out, ",{},", t.hop)?;
        serde_json::to_writer(&mut *out, &t.authors)?;
        out.extend_from_slice(b",[");
        for (at, label) in t.labels.iter().enumerate() {
            out.extend_from_slice(if at == 0 { b"\"" } else { b",\"" });
            out.extend_from_slice(label.name().as_bytes());
            out.push(b'"');
        }
        out.extend_from_slice(b"],");
        serde_json::to_writer(&mut *out, &t.scope)?;
        out.extend_from_slice(b",\"");
        out.extend_from_slice(&t.digest.hex());
        out.extend_from_slice(b"\"]");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_contract::canonical::Digest;
    use ironclaw_contract::ids::{CallId, ItemId, TurnId};
    use ironclaw_contract::seam::seal::{ItemKind, Label};
    use proptest::collection::vec;
    use proptest::prelude::*;

    /// Any text, with many characters that JSON escapes.
    fn text() -> impl Strategy<Value = String> {
        let special =
            prop::sample::select("\"\\/\u{7f}\u{80}\u{2028}\u{feff}\u{ffff}\u{10ffff}é".chars().collect::<Vec<_>>());
        let one = prop_oneof![prop::char::range('\0', '\u{20}'), special, any::<char>()];
        vec(one, 0..24).prop_map(|characters| characters.into_iter().collect())
    }

    fn number() -> impl Strategy<Value = u64> {
        let limit = INTEGER_MAX;
        prop_oneof![Just(0), Just(limit), Just(limit + 1), Just(limit + 2), Just(u64::MAX), 0..limit, any::<u64>()]
    }

    fn any_tuple() -> impl Strategy<Value = Tuple> {
        let texts = (prop::option::of(text()), text(), text());
        let numbers = (number(), number(), any::<bool>(), any::<u32>());
        let words = (prop::sample::select(ItemKind::ALL), vec(prop::sample::select(Label::ALL), 0..9));
        let present = (any::<bool>(), any::<bool>(), any::<[u8; 32]>());
        (texts, numbers, words, present).prop_map(|(texts, (seq, at, is_negative, hop), (kind, labels), present)| {
            let issued_at = at as i64;
            Tuple {
                session: SessionId::new(),
                item: ItemId::new(),
                kind,
                seq,
                issued_at: if is_negative { issued_at.wrapping_neg() } else { issued_at },
                boot: BootId::new(),
                turn: present.0.then(TurnId::new),
                call: present.1.then(CallId::new),
                tool: texts.0,
                hop,
                authors: texts.1,
                labels,
                scope: texts.2,
                digest: Digest::from_bytes(present.2),
            }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]
        #[test]
        fn bytes_are_those_of_the_contract(tuples in vec(any_tuple(), 1..4)) {
            let (session, boot) = (tuples[0].session, BootId::new());
            let mut writer = TupleBytes::new(session, boot);
            for t in tuples {
                let t = Tuple { session, ..t };
                let sealed = seal::tuple(&Tuple { boot, ..t.clone() });
                prop_assert_eq!(String::from_utf8_lossy(writer.encode(&t)), String::from_utf8_lossy(&sealed));
            }
        }
    }
}
