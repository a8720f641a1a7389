//! The digest of a request: requests with the same digest get the same answer, whenever they are made, so the host sends one of them.
//!
//! Never reads an image: the request has its path in the workspace. See [`crate::endpoint`].

use crate::endpoint::Endpoint;
use crate::{Part, PastCall, Prompt};
use ironclaw_contract::canonical::{self, Digest};
use std::sync::Arc;

impl Prompt {
    /// Returns the digest of this prompt to the endpoints of a chain.
    pub fn digest(&self, chain: &[Arc<Endpoint>]) -> Digest {
        let mut fields = Fields(Vec::new());
        for endpoint in chain {
            fields.add(&endpoint.spec.name);
            fields.add(&endpoint.spec.model);
        }
        fields.end();
        fields.add(self.purpose.name());
        fields.add(&self.system);
        for tool in &self.tools {
            fields.add(&tool.name);
            fields.add(&tool.description);
            fields.add(&canonical::to_string(&tool.parameters));
        }
        fields.end();
        for part in &self.parts {
            fields.part(part);
        }
        Digest::of(&fields.0)
    }
}

/// Texts with their lengths, so that no two lists of texts are the same bytes.
struct Fields(Vec<u8>);

impl Fields {
    fn add(&mut self, text: &str) {
        self.0.extend_from_slice(&(text.len() as u64).to_be_bytes());
        self.0.extend_from_slice(text.as_bytes());
    }

    /// Ends a list of texts: no text has this length.
    fn end(&mut self) {
        self.0.extend_from_slice(&u64::MAX.to_be_bytes());
    }

    fn part(&mut self, part: &Part) {
        match part {
            Part::Person { text } => self.texts("person", &[text]),
            Part::Task { text } => self.texts("task", &[text]),
            Part::Agent { agent, answers, text } => {
                self.texts(if *answers { "answer of an agent" } else { "agent" }, &[agent, text]);
            }
            Part::Context { author, text } => self.texts("context", &[author, text]),
            Part::Image { path, .. } => self.texts("image", &[path]),
            Part::Assistant { text, calls, attached } => {
                self.texts("assistant", &[text]);
                if let Some(attached) = attached {
                    self.texts("attached", &[&attached.endpoint.to_string(), &attached.state]);
                }
                for PastCall { call_id, tool, arguments } in calls {
                    self.texts("call", &[call_id, tool, arguments]);
                }
            }
            Part::Result { call_id, tool, ok, text } => {
                self.texts(if *ok { "result" } else { "failed result" }, &[call_id, tool, text]);
            }
            Part::Notice { text } => self.texts("notice", &[text]),
            Part::HostNotice { text } => self.texts("host", &[text]),
            // The same request is made again at another time when an attempt was interrupted.
            Part::Time { .. } => {}
            Part::Remark { text } => self.texts("remark", &[text]),
            Part::Failure { text } => self.texts("failure", &[text]),
            Part::Summary { text } => self.texts("summary", &[text]),
        }
    }

    fn texts(&mut self, kind: &str, texts: &[&String]) {
        self.add(kind);
        texts.iter().for_each(|text| self.add(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Attached, Config, ToolSchema, endpoint};
    use ironclaw_contract::seam::socket::Purpose;
    use serde_json::json;

    fn prompt() -> Prompt {
        let parameters = json!({ "type": "object" });
        let tool = ToolSchema { name: "read".to_owned(), description: "reads".to_owned(), parameters };
        let parts = vec![Part::Person { text: "ab".to_owned() }, Part::Remark { text: "c".to_owned() }];
        Prompt { purpose: Purpose::Reply, system: "You are a.".to_owned(), tools: vec![tool], parts }
    }

    #[test]
    fn each_difference_but_the_time_changes_a_digest() {
        let endpoints = endpoint::open(&Config::default(), Vec::new()).expect("the script");
        let chain = endpoints.chain("scripted");
        assert_eq!(prompt().digest(&chain), prompt().digest(&chain));
        type Change = fn(&mut Prompt);
        let changes: [(&str, Change); 8] = [
            ("the system text", |prompt| prompt.system.push('x')),
            ("a purpose", |prompt| prompt.purpose = Purpose::Compact),
            ("a description", |prompt| prompt.tools[0].description.push('x')),
            ("a parameter", |prompt| prompt.tools[0].parameters["x"] = json!(1)),
            ("no tool", |prompt| prompt.tools.clear()),
            ("another kind of part", |prompt| prompt.parts[1] = Part::Notice { text: "c".to_owned() }),
            ("the border of two parts", |prompt| {
                prompt.parts[0] = Part::Person { text: "a".to_owned() };
                prompt.parts[1] = Part::Remark { text: "bc".to_owned() };
            }),
            ("one more part", |prompt| prompt.parts.push(Part::Remark { text: String::new() })),
        ];
        for (name, change) in changes {
            let mut changed = prompt();
            change(&mut changed);
            assert_ne!(changed.digest(&chain), prompt().digest(&chain), "{name}");
        }
        let at_another_time = |text: &str| {
            let mut changed = prompt();
            changed.parts.insert(1, Part::Time { text: text.to_owned() });
            changed.digest(&chain)
        };
        assert_eq!(at_another_time("it is now 10:00."), prompt().digest(&chain), "a time");
        let with_state = |state: Option<&str>| {
            let attached = |state: &str| Attached { endpoint: Digest::of(b"a"), state: state.to_owned() };
            let attached = state.map(|state| attached(state).into());
            let part = Part::Assistant { text: "c".to_owned(), calls: Vec::new(), attached };
            Prompt { parts: vec![part], ..prompt() }.digest(&chain)
        };
        assert_ne!(with_state(None), with_state(Some("{}")), "a state");
        assert_ne!(with_state(Some("{\"a\":1}")), with_state(Some("{}")), "another state");
        assert_ne!(prompt().digest(&[]), prompt().digest(&chain), "another model");
    }
}
