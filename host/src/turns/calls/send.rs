//! The arguments of `send_message`: the host adds the address of the destination, so that a decision is about this address.
//!
//! Pure. A call with another address is not judged as one to this destination: at its execution the addresses are compared again.

use crate::registry::destinations::{Destination, State};
use ironclaw_contract::operator::DenialCode;
use serde_json::{Map, Value};

/// The arguments that the host adds: the identity of the address, and the thread if there is one.
const RECIPIENT: &str = "recipient";
const THREAD: &str = "thread";

/// Adds the address of the destination to the arguments. Returns the code of the reason why the agent may not send there.
///
/// # Errors
/// A sentence for the model if the arguments are not those of the tool.
pub(super) fn complete(arguments: &mut Map<String, Value>, all: &[Destination]) -> Result<Option<DenialCode>, String> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let (Some(to), Some(_)) = (text("to"), text("text")) else {
        return Err("send_message needs to and text, which are not empty".to_owned());
    };
    let Some(found) = all.iter().find(|destination| destination.name == to) else {
        return Ok(Some(DenialCode::CallDestination));
    };
    if found.state != State::Active {
        return Ok(Some(DenialCode::CallDestinationEnded));
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
pub(super) fn names(all: &[Destination]) -> String {
    let active = all.iter().filter(|destination| destination.state == State::Active);
    let names: Vec<&str> = active.map(|destination| destination.name.as_str()).collect();
    if names.is_empty() { "you have none".to_owned() } else { format!("yours: {}", names.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_contract::ids::PersonId;
    use serde_json::json;

    fn destination(name: &str, state: State) -> Destination {
        Destination {
            agent_name: "a".to_owned(),
            name: name.to_owned(),
            channel: "desk".to_owned(),
            address: format!("{name}@home.example"),
            thread: String::new(),
            person: PersonId::new(),
            state,
        }
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
