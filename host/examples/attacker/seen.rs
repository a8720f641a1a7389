//! Replacement of names by received values in the JSON and SQL of a script.
//!
//! See `steps` for the names.

use super::Attacker;
use serde_json::{Value, json};

impl Attacker {
    /// Replaces the names in SQL by values.
    pub(super) fn spelled(&self, sql: &str) -> String {
        let text = |name: &str| self.found(name).as_str().unwrap_or_default().to_owned();
        let next = format!("((max({}, coalesce((SELECT max(seq) FROM messages_out), 0)) + 1) | 1)", self.cursor);
        sql.replace("{next}", &next)
            .replace("{turn}", &text("turn"))
            .replace("{message}", &text("message"))
            .replace("{output}", &text("output.item"))
            .replace("{call}", &text("calls.0.call_id"))
    }

    /// Replaces the names in JSON by values.
    pub(super) fn filled(&self, value: Value) -> Value {
        match value {
            Value::String(text) => match text.strip_prefix('$') {
                Some(name) => self.found(name),
                None => Value::String(text),
            },
            Value::Array(entries) => {
                let fill = |entry: Value| match entry.as_str().filter(|text| text.starts_with('$')) {
                    Some(name) => match self.found(&name[1..]) {
                        Value::Array(many) => many,
                        one => vec![one],
                    },
                    None => vec![self.filled(entry)],
                };
                entries.into_iter().flat_map(fill).collect()
            }
            Value::Object(fields) if fields.contains_key("$times") => {
                let count = fields["count"].as_u64().and_then(|count| usize::try_from(count).ok());
                json!(fields["$times"].as_str().unwrap_or_default().repeat(count.unwrap_or_default()))
            }
            Value::Object(mut fields) if fields.contains_key("$of") => {
                let mut of = self.filled(fields["$of"].take());
                if let Some(field) = fields.get("change").and_then(Value::as_str) {
                    of[field] = changed(field, &of[field]);
                }
                for (field, value) in fields.remove("with").iter().filter_map(Value::as_object).flatten() {
                    of[field] = self.filled(value.clone());
                }
                of
            }
            Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, self.filled(value))).collect(),
            other => other,
        }
    }

    fn found(&self, path: &str) -> Value {
        let mut at = &Value::Object(self.seen.clone());
        for step in path.split('.') {
            at = match step.parse::<usize>() {
                Ok(place) => &at[place],
                Err(_) => &at[step],
            };
        }
        at.clone()
    }
}

/// Returns a value of the same shape with one changed character or number.
fn changed(field: &str, value: &Value) -> Value {
    match (field, value) {
        ("kind", kind) => json!(if kind == "message" { "output" } else { "message" }),
        (_, Value::Number(number)) => json!(number.as_i64().unwrap_or_default() + 2),
        (_, Value::String(text)) => {
            let (rest, last) = text.split_at(text.len() - 1);
            json!(format!("{rest}{}", if last == "0" { "1" } else { "0" }))
        }
        (_, other) => other.clone(),
    }
}
