//! The quirks of servers: a closed list of names, each with the values that the host knows.
//!
//! Never says which server has which value. See [`crate::profile`] for the values of a provider, and [`crate::endpoint_quirks`] for those
//! in use.

use super::spec::Kind;
use ironclaw_contract::words;
use std::collections::BTreeMap;

words! {
    /// A way in which servers differ.
    pub enum Quirk {
        /// The field of a request that limits the output.
        LimitField = "limit_field",
        /// The option that asks for the usage at the end of a stream.
        StreamUsage = "stream_usage",
        /// The form of the ids of calls.
        CallIds = "call_ids",
        /// The role of the system text.
        SystemRole = "system_role",
        /// The header with the key.
        KeyHeader = "key_header",
        /// The plain thoughts of earlier outputs in a request.
        Thoughts = "thoughts",
        /// The other state of earlier outputs in a request.
        State = "state",
        /// The content of a message of the model with calls and without words.
        CallContent = "call_content",
        /// The calls in one message of the model.
        CallsTogether = "calls_together",
        /// The field of plain thoughts in a request.
        ThoughtField = "thought_field",
        /// The beginning of an answer.
        AnswerBegins = "answer_begins",
    }

    /// The field of a request that limits the output.
    pub enum LimitField {
        MaxTokens = "max_tokens",
        MaxCompletionTokens = "max_completion_tokens",
    }

    /// A request for the usage at the end of a stream.
    pub enum StreamUsage {
        Ask = "ask",
        Omit = "omit",
    }

    /// The form of the ids of calls.
    pub enum CallIds {
        /// The recorded id.
        Long = "long",
        /// Nine letters and digits.
        Nine = "nine",
    }

    /// The role of the system text.
    pub enum SystemRole {
        System = "system",
        Developer = "developer",
        /// It is the beginning of the first message of the user.
        User = "user",
    }

    /// The header with the key.
    pub enum KeyHeader {
        /// `Authorization: Bearer KEY`
        Bearer = "bearer",
        XApiKey = "x-api-key",
        ApiKey = "api-key",
    }

    /// The plain thoughts of earlier outputs in a request.
    pub enum ThoughtsSent {
        /// Those of the turn: since the last message of a person.
        Turn = "turn",
        All = "all",
        Omit = "omit",
    }

    /// The other state of earlier outputs in a request.
    pub enum StateSent {
        Send = "send",
        Omit = "omit",
    }

    /// The content of a message of the model with calls and without words.
    pub enum CallContent {
        Null = "null",
        /// An empty text.
        Empty = "empty",
    }

    /// The calls in one message of the model.
    pub enum CallsTogether {
        /// All calls of an output.
        All = "all",
        /// One, with its result behind it.
        One = "one",
    }

    /// The field of plain thoughts in a request.
    pub enum ThoughtField {
        /// The field in which they came.
        Same = "same",
        /// Each message with calls has this field, also one without thoughts.
        ReasoningContent = "reasoning_content",
    }

    /// The beginning of an answer.
    pub enum AnswerBegins {
        Words = "words",
        /// The prompt of the template ends with the beginning of a thought.
        Thought = "thought",
    }
}

macro_rules! values {
    ($($field:ident: $quirk:ident = $values:ident),+) => {
        /// The values of some quirks.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Values {
            $(pub $field: Option<$values>,)+
        }

        impl Values {
            /// Returns these values, and those of `other` for the quirks without one.
            pub fn or(self, other: Self) -> Self {
                Self { $($field: self.$field.or(other.$field),)+ }
            }

            /// Returns the value of a quirk.
            pub fn get(&self, quirk: Quirk) -> Option<&'static str> {
                match quirk {
                    $(Quirk::$quirk => self.$field.map($values::name),)+
                }
            }

            /// Sets a quirk to the value of this name; returns `false` if it has no such value.
            pub fn set(&mut self, quirk: Quirk, value: &str) -> bool {
                match quirk {
                    $(Quirk::$quirk => value.parse().map(|value| self.$field = Some(value)).is_ok(),)+
                }
            }
        }

        impl Quirk {
            /// Returns the names of its values.
            pub fn values(self) -> Vec<&'static str> {
                match self {
                    $(Quirk::$quirk => $values::ALL.map($values::name).to_vec(),)+
                }
            }
        }
    };
}

values! {
    limit_field: LimitField = LimitField, stream_usage: StreamUsage = StreamUsage, call_ids: CallIds = CallIds,
    system_role: SystemRole = SystemRole, key_header: KeyHeader = KeyHeader, thoughts: Thoughts = ThoughtsSent,
    state: State = StateSent, call_content: CallContent = CallContent, calls_together: CallsTogether = CallsTogether,
    thought_field: ThoughtField = ThoughtField, answer_begins: AnswerBegins = AnswerBegins
}

/// The reason why quirks with their values are refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// What is wrong.
    pub why: String,
    /// The names or values that are known.
    pub known: String,
}

impl Values {
    /// Returns the values of a list of names.
    ///
    /// # Errors
    /// The first name or value that is not known for an endpoint of this kind.
    pub fn read(named: &BTreeMap<String, String>, kind: Kind) -> Result<Self, Refused> {
        let mut values = Self::default();
        for (name, value) in named {
            let quirk = match name.parse::<Quirk>() {
                Ok(quirk) if quirk.applies(kind) => quirk,
                Ok(quirk) => {
                    let why = format!("the quirk {quirk} has no effect on an endpoint of kind {kind}");
                    return Err(Refused { why, known: known_names(kind) });
                }
                Err(_) => {
                    let name: String = name.chars().take(NAME_CHARACTERS_MAX).collect();
                    return Err(Refused { why: format!("there is no quirk {name:?}"), known: known_names(kind) });
                }
            };
            if !values.set(quirk, value) {
                let value: String = value.chars().take(NAME_CHARACTERS_MAX).collect();
                let known = format!("the values of {quirk} are {}", quirk.values().join(", "));
                return Err(Refused { why: format!("the quirk {quirk} has no value {value:?}"), known });
            }
        }
        Ok(values)
    }

    /// Returns the values of quirks that nothing else sets.
    pub const fn default_of(kind: Kind) -> Self {
        Self {
            limit_field: Some(LimitField::MaxTokens),
            stream_usage: Some(StreamUsage::Ask),
            call_ids: Some(CallIds::Long),
            system_role: Some(SystemRole::System),
            key_header: Some(match kind {
                Kind::Anthropic => KeyHeader::XApiKey,
                Kind::Openai | Kind::Scripted => KeyHeader::Bearer,
            }),
            thoughts: Some(ThoughtsSent::Turn),
            state: Some(StateSent::Send),
            call_content: Some(CallContent::Null),
            calls_together: Some(CallsTogether::All),
            thought_field: Some(ThoughtField::Same),
            answer_begins: Some(AnswerBegins::Words),
        }
    }
}

/// Characters of an unknown name in a refusal.
const NAME_CHARACTERS_MAX: usize = 64;

fn known_names(kind: Kind) -> String {
    let known: Vec<&str> = Quirk::every(kind).map(Quirk::name).collect();
    if known.is_empty() { "this kind has none".to_owned() } else { format!("the quirks are {}", known.join(", ")) }
}

impl Quirk {
    /// Returns the quirks that an endpoint of this kind can have.
    pub fn every(kind: Kind) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |quirk| quirk.applies(kind))
    }

    /// Returns whether an endpoint of this kind can have it.
    pub const fn applies(self, kind: Kind) -> bool {
        match (self, kind) {
            (_, Kind::Scripted) => false,
            (Self::KeyHeader | Self::Thoughts | Self::State | Self::AnswerBegins, Kind::Openai | Kind::Anthropic)
            | (_, Kind::Openai) => true,
            (_, Kind::Anthropic) => false,
        }
    }

    /// Returns whether the host may learn it from answers. Neither the place of a key nor the role of the system text is left to a
    /// server.
    pub const fn is_learned(self) -> bool {
        match self {
            Self::LimitField | Self::StreamUsage | Self::Thoughts | Self::State | Self::CallContent => true,
            Self::CallsTogether | Self::ThoughtField | Self::AnswerBegins => true,
            Self::CallIds | Self::SystemRole | Self::KeyHeader => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, value: &str, kind: Kind) -> Result<Values, Refused> {
        Values::read(&[(name.to_owned(), value.to_owned())].into(), kind)
    }

    #[test]
    fn each_quirk_has_its_values_and_a_default_among_them() {
        for kind in [Kind::Openai, Kind::Anthropic] {
            for quirk in Quirk::every(kind) {
                let default = Values::default_of(kind).get(quirk).expect("a default");
                assert!(quirk.values().contains(&default), "{quirk}");
                for value in quirk.values() {
                    let values = read(quirk.name(), value, kind).expect(value);
                    assert_eq!(values.get(quirk), Some(value), "{quirk}");
                    assert_eq!(Values::default().or(values), values);
                }
            }
        }
        assert_eq!(Quirk::every(Kind::Scripted).count(), 0);
    }

    #[test]
    fn unknown_names_and_values_are_refused_with_the_known_ones() {
        for (name, value, kind, wrong, known) in [
            ("limit", "max_tokens", Kind::Openai, "\"limit\"", "limit_field"),
            ("", "", Kind::Openai, "\"\"", "call_ids"),
            ("limit_field", "n", Kind::Openai, "limit_field", "max_completion_tokens"),
            ("call_ids", "Nine", Kind::Openai, "\"Nine\"", "long, nine"),
            ("call_ids", "nine", Kind::Anthropic, "call_ids", "key_header"),
            ("key_header", "bearer", Kind::Scripted, "scripted", "none"),
        ] {
            let refused = read(name, value, kind).expect_err(name);
            assert!(refused.why.contains(wrong) && refused.known.contains(known), "{refused:?}");
        }
    }
}
