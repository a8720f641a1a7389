//! The reading of a page of a listing whose text cannot be read as a whole: each entry by itself, so that a broken one hides no other.
//!
//! See [`ironclaw_text::json::pieces`].

use ironclaw_text::json::{self, pieces};
use serde_json::{Map, Value, json};

/// The field of an entry that was not read, with the reason. It has its name beside it, if it has one.
pub(super) const UNREAD: &str = "ironclaw/unread";

/// Values of one entry.
const ENTRY_VALUES_MAX: usize = 8192;

/// Values of a field beside the entries, and of a name.
const FIELD_VALUES_MAX: usize = 64;

/// Returns the result in the message with this page: its entries, of which those over a bound or without a reading are marked, within
/// `values_max` values. `None` if the message has no list of tools.
pub(crate) fn read(message: &[u8], values_max: usize) -> Option<Value> {
    let result = field(message, b"result")?;
    let mut left = values_max;
    let mut page = Map::new();
    for member in pieces::members(result)? {
        if member.key == b"tools" {
            let entries = pieces::elements(member.value)?;
            page.insert("tools".to_owned(), entries.into_iter().map(|entry| read_entry(entry, &mut left)).collect());
        } else if let (Ok(key), Ok(value)) =
            (std::str::from_utf8(member.key), json::read(member.value, FIELD_VALUES_MAX))
        {
            page.insert(key.to_owned(), value);
        }
    }
    page.contains_key("tools").then_some(Value::Object(page))
}

/// Returns the number in a field of a message.
pub(crate) fn number(message: &[u8], name: &[u8]) -> Option<i64> {
    let number = json::read(field(message, name)?, FIELD_VALUES_MAX).ok()?;
    number.as_i64().or_else(|| number.as_str()?.parse().ok())
}

fn read_entry(entry: &[u8], left: &mut usize) -> Value {
    match json::read(entry, ENTRY_VALUES_MAX.min(*left)) {
        Ok(value) => {
            *left = left.saturating_sub(count(&value));
            value
        }
        Err(why) => {
            let name = field(entry, b"name").and_then(|name| json::read(name, FIELD_VALUES_MAX).ok());
            json!({ "name": name.unwrap_or_default(), UNREAD: why.to_string() })
        }
    }
}

/// Returns the text of a field of an object. Of a field that comes twice, it returns the last one, as the reader does.
fn field<'a>(object: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    pieces::members(object)?.into_iter().rev().find(|member| member.key == name).map(|member| member.value)
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(values) => values.iter().map(count).sum(),
        Value::Object(values) => values.values().map(count).sum::<usize>(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_entry_is_marked_and_hides_no_other() {
        let deep = format!("{}{}", "[".repeat(500), "]".repeat(500));
        let many = format!("[{}0]", "0,".repeat(ENTRY_VALUES_MAX));
        for odd in ["\"\\ud800\"", "NaN", &deep, &many] {
            let odd = format!("{{\"inputSchema\":{odd},\"name\":\"odd\"}}");
            let good = r#"{"name":"good","inputSchema":{}}"#;
            let text = format!("{{\"id\":1,\"result\":{{\"nextCursor\":\"x\",\"tools\":[{odd},{good}]}}}}");
            let page = read(text.as_bytes(), 65_536).expect("a page");
            assert_eq!((&page["nextCursor"], &page["tools"][1]["name"]), (&json!("x"), &json!("good")));
            assert_eq!(page["tools"][0]["name"], "odd");
            assert!(page["tools"][0][UNREAD].is_string() && page["tools"][0].get("inputSchema").is_none());
        }
        assert_eq!(read(br#"{"id":1,"result":{"content":[]}}"#, 10), None);
        let all = format!("{{\"result\":{{\"tools\":[{}{{}}]}}}}", "{\"name\":\"a\"},".repeat(100));
        let page = read(all.as_bytes(), 50).expect("a page");
        assert!(page["tools"][24].get(UNREAD).is_none() && page["tools"][25].get(UNREAD).is_some(), "{page}");
    }
}
