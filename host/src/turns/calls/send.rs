//! The arguments of `send_message`: the host adds the address of the destination, so that a decision is about this address. A message to
//! another agent stays on the host, and is judged as a contained call.
//!
//! Pure. A call with another address is not judged as one to this destination: at its execution the addresses are compared again.

use crate::registry::destinations::{Destination, State};
use crate::tools::SEND_MESSAGE;
use ironclaw_contract::operator::DenialCode;
use ironclaw_judge::manifest::{self, Manifest, Reach};
use serde_json::{Map, Value};
use std::sync::LazyLock;

/// The arguments that the host adds: the identity of the address, and the thread if there is one.
const RECIPIENT: &str = "recipient";
const THREAD: &str = "thread";

/// A destination of an agent, with the reason why the agent may not send there in this turn.
#[derive(Debug, Clone)]
pub struct Sendable {
    /// The destination.
    pub destination: Destination,
    /// The reason; `None` if the agent may send.
    pub denied: Option<DenialCode>,
}

impl From<Destination> for Sendable {
    /// Denies a destination that is not active.
    fn from(destination: Destination) -> Self {
        let denied = (destination.state != State::Active).then_some(DenialCode::CallDestinationEnded);
        Self { destination, denied }
    }
}

/// Returns the manifest of a message to another agent; `None` if the arguments name no such destination.
pub(super) fn to_agent(arguments: &Map<String, Value>, all: &[Sendable]) -> Option<&'static Manifest> {
    static TO_AGENT: LazyLock<Option<Manifest>> = LazyLock::new(|| {
        let mut manifest = manifest::built_in(SEND_MESSAGE)?.clone();
        manifest.reach = Reach::Contained;
        manifest.arguments.values_mut().for_each(|argument| argument.outward = false);
        Some(manifest)
    });
    let to = arguments.get("to")?.as_str()?;
    let found = all.iter().find(|held| held.destination.name == to)?;
    found.destination.to_agent.and(TO_AGENT.as_ref())
}

/// Adds the address of the destination to the arguments. Returns the code of the reason why the agent may not send there.
///
/// # Errors
/// A sentence for the model if the arguments are not those of the tool.
pub(super) fn complete(arguments: &mut Map<String, Value>, all: &[Sendable]) -> Result<Option<DenialCode>, String> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let (Some(to), Some(_)) = (text("to"), text("text")) else {
        return Err("send_message needs to and text, which are not empty".to_owned());
    };
    let Some(Sendable { destination: found, denied }) = all.iter().find(|held| held.destination.name == to) else {
        return Ok(Some(DenialCode::CallDestination));
    };
    if denied.is_some() {
        return Ok(*denied);
    }
    let thread = Some(found.thread.clone()).filter(|thread| !thread.is_empty());
    for (name, approved) in [(RECIPIENT, Some(found.recipient())), (THREAD, thread)] {
        let approved = approved.map(Value::String);
        let given = arguments.remove(name);
        if given.is_some() && given != approved {
            return Ok(Some(DenialCode::CallDestinationEnded));
        }
        arguments.extend(approved.map(|approved| (name.to_owned(), approved)));
    }
    Ok(None)
}

/// Returns the names of the destinations to which the agent may send now, for a model.
pub(super) fn names(all: &[Sendable]) -> String {
    let active = all.iter().filter(|held| held.denied.is_none());
    let names: Vec<&str> = active.map(|held| held.destination.name.as_str()).collect();
    if names.is_empty() { "you have none".to_owned() } else { format!("yours: {}", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_contract::ids::PersonId;
    use serde_json::json;

    fn destination(name: &str, state: State) -> Sendable {
        Sendable::from(Destination {
            agent_name: "a".to_owned(),
            name: name.to_owned(),
            channel: "desk".to_owned(),
            address: format!("{name}@home.example"),
            thread: String::new(),
            person: Some(PersonId::new()),
            to_agent: None,
            to_agent_name: String::new(),
            state,
        })
    }

    fn completed(arguments: Value) -> Result<(Option<DenialCode>, Value), String> {
        let all = [
            destination("ana", State::Active),
            destination("bob", State::Unlinked),
            destination("cleo", State::ChannelGone),
        ];
        let Value::Object(mut arguments) = arguments else { panic!("an object") };
        complete(&mut arguments, &all).map(|code| (code, arguments.get(RECIPIENT).cloned().unwrap_or_default()))
    }

    #[test]
    fn message_has_the_approved_address_or_is_denied() {
        for (arguments, code) in [
            (json!({ "to": "eve", "text": "hi" }), DenialCode::CallDestination),
            (json!({ "to": "Ana", "text": "hi" }), DenialCode::CallDestination),
            (json!({ "to": "desk:ana@home.example", "text": "hi" }), DenialCode::CallDestination),
            (json!({ "to": "bob", "text": "hi" }), DenialCode::CallDestinationEnded),
            (json!({ "to": "cleo", "text": "hi" }), DenialCode::CallDestinationEnded),
            (json!({ "to": "ana", "text": "hi", "recipient": "desk:eve" }), DenialCode::CallDestinationEnded),
            (json!({ "to": "ana", "text": "hi", "thread": "other" }), DenialCode::CallDestinationEnded),
        ] {
            assert_eq!(completed(arguments.clone()).expect("arguments").0, Some(code), "{arguments}");
        }
        for arguments in
            [json!({}), json!({ "to": "ana" }), json!({ "to": "ana", "text": " " }), json!({ "to": 1, "text": "hi" })]
        {
            assert!(completed(arguments.clone()).is_err(), "{arguments}");
        }
        let (code, recipient) = completed(json!({ "to": "ana", "text": "hi" })).expect("arguments");
        assert_eq!((code, recipient), (None, json!("desk:ana@home.example")));
        let again = json!({ "to": "ana", "text": "hi", "recipient": "desk:ana@home.example" });
        assert_eq!(completed(again).expect("arguments").0, None, "the execution judges the same arguments");
    }
}
