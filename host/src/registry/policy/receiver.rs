//! The bound of the host: the classes that each kind of author may ever ask an agent for.
//!
//! An agent has a policy of its own within it. See [`ironclaw_judge::OwnReceiver`].

use ironclaw_contract::canonical::{self, Digest};
use ironclaw_judge::{Allowed, Class, Classes, Principal, ReceiverPolicy};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// The part of a new home's policy about authors.
pub(super) const TEMPLATE: &str = "
# The classes that each kind of author may ever ask an agent for. An agent takes fewer, or with `ironctl agent set --may` as many.
[receiver]
# person = [\"read\", \"write\", \"send\", \"exec\", \"trade\", \"ask\"]
# guest = []                   # strangers of a public channel
# agent = []                   # beside the tools of their trust group
# schedule = [\"read\", \"ask\"] # beside the list that people approved
";

/// Returns the bound of a host that writes none.
pub(super) fn usual() -> ReceiverPolicy {
    compile(&BTreeMap::new()).expect("no list is wrong")
}

/// Returns the bound with the written lists, and the default where there is none.
pub(super) fn compile(written: &BTreeMap<String, Vec<String>>) -> Result<ReceiverPolicy, String> {
    let mut bound = ReceiverPolicy::default();
    for (author, words) in written {
        let allowed = match author.parse::<Principal>() {
            Ok(Principal::Person) => &mut bound.person,
            Ok(Principal::Guest) => &mut bound.guest,
            Ok(Principal::Agent) => &mut bound.agent,
            Ok(Principal::Schedule) => &mut bound.schedule,
            Ok(Principal::Unsigned) | Err(_) => {
                return Err(format!("receiver.{author}: use person, guest, agent or schedule"));
            }
        };
        allowed.may = classes(words).map_err(|why| format!("receiver.{author}: {why}"))?;
    }
    // An agent decides what needs no word.
    let open = |allowed: Allowed| Allowed { may: allowed.may, unasked: allowed.may };
    Ok(ReceiverPolicy {
        person: open(bound.person),
        guest: open(bound.guest),
        agent: open(bound.agent),
        schedule: open(bound.schedule),
    })
}

fn classes(words: &[String]) -> Result<Classes, String> {
    let mut classes = Classes::NONE;
    for word in words {
        let class: Class = word
            .parse()
            .map_err(|_| format!("there is no class {word:?}: use {}", Class::ALL.map(Class::name).join(", ")))?;
        if classes.has(class) {
            return Err(format!("{word} is named twice"));
        }
        classes = classes.with(class);
    }
    Ok(classes)
}

/// Returns the digest of a bound.
pub(super) fn digest(bound: &ReceiverPolicy) -> Digest {
    let of = |kind: Principal| (kind.name().to_owned(), Value::from(bound.allowed(kind).may.to_string()));
    let fields: Map<String, Value> = Principal::ALL.into_iter().map(of).collect();
    Digest::of(&canonical::to_vec(&fields))
}
