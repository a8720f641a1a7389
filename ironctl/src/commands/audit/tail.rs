//! `ironctl audit tail`: the newest entries of the ledger as a list.
//!
//! Never leaves out a field of an entry. See [`crate::commands::audit`].

use crate::at::At;
use crate::clock;
use crate::failure::Error;
use crate::host_binary::{self, Offline};
use ironclaw_operator::LedgerLine;
use jiff::Timestamp;
use serde_json::Value;

pub fn run(at: &At, count: u32) -> Result<(), Error> {
    let asked = Offline::host(&["audit", "tail", "-n"])?.arg(count.to_string()).at(&at.home).json(true);
    if at.out.is_json() {
        return asked.pass();
    }
    let output = asked.capture_all()?;
    if !output.status.success() {
        return Err(host_binary::failure_of(&output));
    }
    let entries = serde_json::Deserializer::from_slice(&output.stdout).into_iter::<LedgerLine>();
    let entries = entries.collect::<Result<Vec<_>, _>>().map_err(|error| {
        Error::failed("answer_malformed", format!("{} gave an entry that ironctl cannot read", host_binary::HOST))
            .because(error)
    })?;
    at.out.list(entries, "the ledger has no entries", ["ENTRY", "TIME", "KIND", "EVENT", "FIELDS"], row)
}

fn row(entry: LedgerLine) -> [String; 5] {
    let LedgerLine { seq, kind, mut data, .. } = entry;
    let mut take = |name: &str| data.as_object_mut().and_then(|fields| fields.remove(name));
    let event = take("what").map(shown).unwrap_or_default();
    let time = take("at").map(|at| match at.as_i64().map(Timestamp::from_millisecond) {
        Some(Ok(time)) => clock::date_and_time(&time.to_string()),
        Some(Err(_)) | None => shown(at),
    });
    let fields = match data {
        Value::Object(fields) => {
            fields.into_iter().map(|(name, value)| format!("{name}={}", shown(value))).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    };
    [seq.to_string(), time.unwrap_or_default(), kind, event, fields]
}

fn shown(value: Value) -> String {
    match value {
        Value::String(text) => text,
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn each_field_of_an_entry_is_shown() {
        let line = |data: Value| LedgerLine {
            seq: 7,
            kind: "CLAIM".to_owned(),
            canonical: data.to_string(),
            hash: String::new(),
            data,
        };
        let [seq, time, kind, event, fields] = row(line(
            json!({ "at": 1_796_183_192_684_i64, "what": "turn.opened", "turn": "trn_1", "n": 2, "l": ["a"] }),
        ));
        assert_eq!((seq.as_str(), kind.as_str(), event.as_str(), time.len()), ("7", "CLAIM", "turn.opened", 19));
        assert_eq!(fields, "l=[\"a\"], n=2, turn=trn_1");
        let [_, time, _, event, fields] = row(line(json!({ "at": "late" })));
        assert_eq!((time.as_str(), event.as_str(), fields.as_str()), ("late", "", ""));
    }
}
