//! The arguments of `send_message` and `send_file`: the host adds the address of the destination and the facts of the copied file, so that
//! a decision is about this address and these bytes. A message to another agent stays on the host, and is judged as a contained call.
//!
//! Pure. A call with another address is not judged as one to this destination: at its execution the addresses are compared again.

use crate::registry::destinations::{Destination, State};
use crate::registry::tools;
use crate::registry::tools::{SEND_FILE, SEND_MESSAGE};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::seam::change::Flow;
use ironclaw_judge::manifest::{Manifest, Reach};
use ironclaw_operator::{Bound, DenialCode, SentFile};
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// The arguments that the host adds: the identity of the address, and the thread if there is one.
const RECIPIENT: &str = "recipient";
const THREAD: &str = "thread";

/// A destination of an agent, with the reason why the agent may not send there in this turn.
#[derive(Debug, Clone)]
pub struct Sendable {
    pub destination: Destination,
    /// The reason; `None` if the agent may send.
    pub denied: Option<DenialCode>,
    /// The bound behind the reason, if it is one.
    pub bound: Option<Bound>,
}

impl From<Destination> for Sendable {
    /// Denies a destination that is not active.
    fn from(destination: Destination) -> Self {
        let denied = (destination.state != State::Active).then_some(DenialCode::CallDestinationEnded);
        Self { destination, denied, bound: None }
    }
}

/// A flow of a schedule that still holds, in one run.
#[derive(Debug, Clone)]
pub struct OpenFlow {
    pub flow: Flow,
    /// True if each text of others in the run comes from the directories of the flow.
    pub is_covering: bool,
    /// Digests of the texts that the run wrote into files. A file with other bytes can have any source.
    pub written: Vec<Digest>,
    /// The bound on the messages of the run, once it is reached.
    pub bound: Option<Bound>,
}

impl OpenFlow {
    /// Returns whether all text of others in a call comes from the directories of the flow.
    pub(super) fn covers(&self, tool: &str, arguments: &Map<String, Value>) -> bool {
        let is_written = || {
            let digest = arguments.get(DIGEST);
            self.written.iter().any(|written| digest == Some(&json!(written)))
        };
        self.is_covering && (tool != SEND_FILE || is_written())
    }
}

/// Returns the flow of a call whose address the host added.
pub(super) fn flow<'a>(tool: &str, arguments: &Map<String, Value>, all: &'a [OpenFlow]) -> Option<&'a OpenFlow> {
    let is = |name: &str, approved: Option<&str>| arguments.get(name).and_then(Value::as_str) == approved;
    all.iter().find(|OpenFlow { flow, .. }| {
        flow.tool.as_deref() == Some(tool)
            && is("to", Some(&flow.to))
            && flow.recipient.is_some()
            && is(RECIPIENT, flow.recipient.as_deref())
            && is(THREAD, flow.thread.as_deref())
    })
}

/// Returns the manifest of a message to another agent; `None` if the arguments name no such destination.
pub(super) fn to_agent(arguments: &Map<String, Value>, all: &[Sendable]) -> Option<&'static Manifest> {
    static TO_AGENT: LazyLock<Option<Manifest>> = LazyLock::new(|| {
        let mut manifest = tools::manifest(SEND_MESSAGE)?.clone();
        manifest.reach = Reach::Contained;
        manifest.arguments.values_mut().for_each(|argument| argument.outward = false);
        Some(manifest)
    });
    named(arguments, all)?.destination.to_agent.and(TO_AGENT.as_ref())
}

/// The arguments of `send_file` that the host writes about the copy.
const OF_COPY: [&str; 4] = ["name", "type", "size", DIGEST];
const DIGEST: &str = "digest";

/// Adds the address of the destination to the arguments of a message. Returns the code of the reason why the agent may not send there.
///
/// # Errors
/// A sentence for the model if the arguments are not those of the tool.
pub(super) fn complete(arguments: &mut Map<String, Value>, all: &[Sendable]) -> Result<Option<DenialCode>, String> {
    if text(arguments, "to").is_none() || text(arguments, "text").is_none() {
        return Err("send_message needs to and text, which are not empty".to_owned());
    }
    Ok(address(arguments, all))
}

/// Adds the address to the arguments of `send_file`. The host has written the facts of the copy, and the address of the conversation if
/// the call names no destination.
///
/// # Errors
/// A sentence for the model if the arguments are not those of the tool.
pub(super) fn complete_file(
    arguments: &mut Map<String, Value>,
    all: &[Sendable],
) -> Result<Option<DenialCode>, String> {
    let is_text = |name: &str| arguments.get(name).is_none_or(Value::is_string);
    if text(arguments, "path").is_none() || !["to", "text"].into_iter().all(is_text) {
        return Err("send_file needs a path that is not empty, and takes to and text".to_owned());
    }
    if OF_COPY.iter().any(|name| !arguments.contains_key(*name)) {
        return Ok(Some(DenialCode::CallFile));
    }
    if arguments.contains_key("to") {
        return match named(arguments, all).is_some_and(|held| held.destination.to_agent.is_some()) {
            true => Err("send_file takes a person as its destination, and no agent".to_owned()),
            false => Ok(address(arguments, all)),
        };
    }
    // The execution compares it with the origin of the conversation.
    match text(arguments, RECIPIENT) {
        Some(_) => Ok(None),
        None => Ok(Some(DenialCode::CallFile)),
    }
}

/// Writes what the host knows of a file into the arguments of its call, in place of the words of the model. `origin` is the address of
/// the conversation with its thread.
pub fn write_file(arguments: &mut Map<String, Value>, file: &SentFile, recipient: Option<String>, thread: &str) {
    let facts = [json!(file.name), json!(file.media_type), json!(file.bytes), json!(file.digest)];
    arguments.extend(OF_COPY.into_iter().map(str::to_owned).zip(facts));
    if !arguments.contains_key("to") {
        arguments.remove(RECIPIENT);
        arguments.remove(THREAD);
        // Several people or another agent may be at the other end: then the agent names a destination.
        let Some(recipient) = recipient else { return };
        arguments.insert(RECIPIENT.to_owned(), json!(recipient));
        if !thread.is_empty() {
            arguments.insert(THREAD.to_owned(), json!(thread));
        }
    }
}

fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty())
}

/// Returns the bound that keeps the agent from sending to the destination of a call, if there is one.
pub(super) fn bound<'a>(arguments: &Map<String, Value>, all: &'a [Sendable]) -> Option<&'a Bound> {
    named(arguments, all)?.bound.as_ref()
}

/// Returns the destination with the name `to`.
fn named<'a>(arguments: &Map<String, Value>, all: &'a [Sendable]) -> Option<&'a Sendable> {
    let to = text(arguments, "to")?;
    all.iter().find(|held| held.destination.name == to)
}

/// Adds the address behind `to`.
fn address(arguments: &mut Map<String, Value>, all: &[Sendable]) -> Option<DenialCode> {
    let Some(Sendable { destination: found, denied, .. }) = named(arguments, all) else {
        return Some(DenialCode::CallDestination);
    };
    if denied.is_some() {
        return *denied;
    }
    let thread = Some(found.thread.clone()).filter(|thread| !thread.is_empty());
    for (name, approved) in [(RECIPIENT, Some(found.recipient())), (THREAD, thread)] {
        let approved = approved.map(Value::String);
        let given = arguments.remove(name);
        if given.is_some() && given != approved {
            return Some(DenialCode::CallDestinationEnded);
        }
        arguments.extend(approved.map(|approved| (name.to_owned(), approved)));
    }
    None
}

/// Returns the names of the destinations to which the agent may send now, for a model.
pub(super) fn names(all: &[Sendable]) -> String {
    let active = all.iter().filter(|held| held.denied.is_none());
    let names: Vec<&str> = active.map(|held| held.destination.name.as_str()).collect();
    if names.is_empty() { "you have none".to_owned() } else { format!("yours: {}", names.join(", ")) }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use ironclaw_contract::ids::PersonId;

    pub(in crate::turns::calls) fn destination(name: &str, state: State) -> Sendable {
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

    #[test]
    fn file_has_the_facts_and_the_address_of_the_host() {
        let all = [destination("ana", State::Active), destination("bob", State::Unlinked)];
        let digest = Digest::of(b"x");
        let file = SentFile { name: "a".to_owned(), media_type: "text/plain".to_owned(), bytes: 1, digest };
        let written = |arguments: Value| {
            let Value::Object(mut arguments) = arguments else { panic!("an object") };
            write_file(&mut arguments, &file, Some("shop:ann".to_owned()), "t");
            let code = complete_file(&mut arguments, &all);
            (code, Value::Object(arguments))
        };
        let (code, made) =
            written(json!({ "path": "a", "digest": "0", "size": 9, "recipient": "shop:eve", "thread": "e" }));
        assert_eq!((code, &made["digest"], &made["size"]), (Ok(None), &json!(digest), &json!(1)));
        assert_eq!((&made["recipient"], &made["thread"]), (&json!("shop:ann"), &json!("t")));
        let (code, made) = written(json!({ "path": "a", "to": "ana", "text": "hi" }));
        assert_eq!((code, &made["recipient"]), (Ok(None), &json!("desk:ana@home.example")));
        assert_eq!(written(json!({ "path": "a", "to": "bob" })).0, Ok(Some(DenialCode::CallDestinationEnded)));
        assert_eq!(written(json!({ "path": "a", "to": "eve" })).0, Ok(Some(DenialCode::CallDestination)));
        let to_eve = json!({ "path": "a", "to": "ana", "recipient": "desk:eve" });
        assert_eq!(written(to_eve).0, Ok(Some(DenialCode::CallDestinationEnded)));
        for arguments in
            [json!({}), json!({ "path": " " }), json!({ "path": "a", "to": 1 }), json!({ "path": "a", "text": 1 })]
        {
            assert!(written(arguments.clone()).0.is_err(), "{arguments}");
        }
        let Value::Object(mut bare) = json!({ "path": "a", "recipient": "shop:ann" }) else { panic!("an object") };
        assert_eq!(complete_file(&mut bare, &all), Ok(Some(DenialCode::CallFile)), "the host has no copy");
    }
}
