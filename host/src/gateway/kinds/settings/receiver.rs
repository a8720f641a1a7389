//! The receiver policy in settings: read from the words of a change, merged into that of the agent, and compared with the bound of the host.
//!
//! Never widens the bound: `policy.toml` has it. See [`ironclaw_judge::OwnReceiver`].

use crate::gateway::review_page::effects::Effects;
use ironclaw_contract::seam::change::AskedClasses;
use ironclaw_judge::{Allowed, Class, Classes, OwnAllowed, OwnReceiver, Principal, ReceiverPolicy};
use ironclaw_operator::DenialCode;
use ironclaw_store::refusal::Refusal;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The entries of a change, by the kind of author.
type Wanted = BTreeMap<String, AskedClasses>;

/// Returns the policy of an agent after a change. An entry without classes removes the own one.
pub(super) fn merged(own: OwnReceiver, wanted: &Wanted) -> OwnReceiver {
    let (mut merged, now) = (own, own.policy());
    for (author, wanted) in wanted {
        let Ok(kind) = author.parse() else { continue };
        let Some(entry) = merged.entry(kind) else { continue };
        *entry = after(wanted, now.allowed(kind))
            .map(|Allowed { may, unasked }| OwnAllowed { may: Some(may), unasked: Some(unasked) });
    }
    merged
}

/// Returns the classes after a change, where a list that it leaves out stays; `None` for the default.
fn after(AskedClasses { may, unasked }: &AskedClasses, now: Allowed) -> Option<Allowed> {
    if may.is_none() && unasked.is_none() {
        return None;
    }
    let may = may.as_deref().map_or(now.may, classes);
    Some(Allowed { may, unasked: unasked.as_deref().map_or(now.unasked, classes).and(may) })
}

/// Returns the classes of words, which the contract checked.
fn classes(words: &[String]) -> Classes {
    words.iter().filter_map(|word| word.parse::<Class>().ok()).collect()
}

/// Refuses classes beyond the bound of the host.
pub(super) fn check(wanted: &Wanted, bound: &ReceiverPolicy) -> Result<(), Refusal> {
    for (author, entry) in wanted {
        let Ok(kind) = author.parse::<Principal>() else { continue };
        let admitted = bound.allowed(kind).may;
        let asked = [&entry.may, &entry.unasked].into_iter().flatten().flatten();
        let beyond = asked.filter_map(|word| word.parse::<Class>().ok()).find(|class| !admitted.has(*class));
        if let Some(class) = beyond {
            let message = format!("this host admits no {class} at the request of a {author}");
            let hint = format!(
                "`[receiver]` in policy.toml has the bound: add \"{class}\" to {author}, then `ironctl config reload`"
            );
            return Err(Refusal::new(DenialCode::ReceiverBound, message).hint(hint));
        }
    }
    Ok(())
}

/// Returns the classes of the named kinds of authors, as they hold now.
pub(super) fn current(own: &OwnReceiver, wanted: &Wanted) -> Value {
    let policy = own.policy();
    let of = |author: &String| {
        let Allowed { may, unasked } = author.parse().map(|kind| policy.allowed(kind)).ok()?;
        Some((author.clone(), json!({ "may": may, "unasked": unasked })))
    };
    Value::Object(wanted.keys().filter_map(of).collect::<Map<_, _>>())
}

/// Returns the bound of the host for the named kinds of authors.
pub(super) fn bound(bound: &ReceiverPolicy, wanted: &Wanted) -> Value {
    let of = |author: &String| Some((author.clone(), json!(bound.allowed(author.parse().ok()?).may)));
    Value::Object(wanted.keys().filter_map(of).collect::<Map<_, _>>())
}

/// Returns the classes before and after a change for one kind of author.
fn before_and_after(author: &str, wanted: &AskedClasses, before: &Value) -> Option<(Allowed, Allowed)> {
    let kind: Principal = author.parse().ok()?;
    let read = |field: &str| serde_json::from_value::<Classes>(before[author][field].clone()).ok();
    let before = Allowed { may: read("may")?, unasked: read("unasked")? };
    Some((before, after(wanted, before).unwrap_or_else(|| ReceiverPolicy::default().allowed(kind))))
}

/// Returns whether a change admits no class that was not admitted before.
pub(super) fn only_tightens(wanted: &Wanted, before: &Value) -> bool {
    let is_within = |own: Classes, of: Classes| own.and(of) == own;
    wanted.iter().all(|(author, wanted)| {
        before_and_after(author, wanted, before)
            .is_some_and(|(was, is)| is_within(is.may, was.may) && is_within(is.unasked, was.unasked))
    })
}

/// Writes the lines of a change.
pub(super) fn put(page: &mut Effects<'_>, agent: &str, wanted: &Wanted) {
    let shown = |classes: Classes| if classes.is_empty() { "nothing".to_owned() } else { classes.to_string() };
    for (author, wanted) in wanted {
        let Some((was, is)) = before_and_after(author, wanted, &page.before["receiver"]) else { continue };
        page.add(format!(
            "Messages with the author {author} may request from {agent}: {} (before: {}). If a message requests no class, these are \
             permitted: {} (before: {}).",
            shown(is.may),
            shown(was.may),
            shown(is.unasked),
            shown(was.unasked)
        ));
        let bound: Classes = serde_json::from_value(page.facts["receiver_bound"][author].clone()).unwrap_or_default();
        if is.may.and(bound) != is.may {
            page.add(format!(
                "At present, this host admits only: {} (`[receiver]` in policy.toml).",
                shown(is.may.and(bound))
            ));
        }
        let more: Classes = is.unasked.iter().filter(|class| !was.unasked.has(*class)).collect();
        if !more.is_empty() {
            page.warn(format!(
                "{} is permitted for messages with the author {author} EVEN IF THE MESSAGE DOES NOT REQUEST IT.",
                shown(more)
            ));
        }
        let more: Classes = is.may.iter().filter(|class| !was.may.has(*class)).collect();
        if !more.is_empty() && author == "guest" {
            page.warn(format!("STRANGERS of a public channel can request {} from the agent.", shown(more)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::policy::Policy;
    use ironclaw_contract::seam::change::{Change, ChangeKind, Payload};

    fn wanted(author: &str, may: Option<&[&str]>, unasked: Option<&[&str]>) -> Wanted {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        BTreeMap::from([(author.to_owned(), AskedClasses { may: may.map(words), unasked: unasked.map(words) })])
    }

    #[test]
    fn contract_takes_each_author_and_each_class() {
        let payload = json!({ "receiver": Principal::ALL
            .into_iter()
            .filter(|kind| *kind != Principal::Unsigned)
            .map(|kind| (kind.name().to_owned(), json!({ "may": Class::ALL.map(Class::name) })))
            .collect::<Map<_, _>>() });
        let payload = Payload::try_from(payload).expect("an object");
        let Ok(Change::Settings(settings)) = Change::parse(ChangeKind::Settings, &payload) else {
            panic!("refused: {payload:?}")
        };
        let policy = merged(OwnReceiver::default(), &settings.receiver).policy();
        let all = Classes::new(&Class::ALL);
        assert!([policy.person, policy.guest, policy.agent, policy.schedule].iter().all(|allowed| allowed.may == all));
    }

    #[test]
    fn class_beyond_the_bound_of_the_host_is_refused() {
        let bound = *Policy::default().receiver();
        let code = |wanted: &Wanted| check(wanted, &bound).err().map(|refusal| refusal.code);
        assert_eq!(code(&wanted("guest", Some(&["read"]), None)), Some(DenialCode::ReceiverBound));
        assert_eq!(code(&wanted("schedule", None, Some(&["send"]))), Some(DenialCode::ReceiverBound));
        assert_eq!(code(&wanted("schedule", Some(&["read"]), None)), None);
        assert_eq!(code(&wanted("guest", Some(&[]), None)), None);
    }

    #[test]
    fn change_that_admits_less_only_tightens() {
        let own = OwnReceiver::default();
        let tightens = |wanted: &Wanted| only_tightens(wanted, &current(&own, wanted));
        assert!(tightens(&wanted("person", Some(&["read", "ask"]), None)));
        assert!(tightens(&wanted("person", None, Some(&["read"]))));
        assert!(!tightens(&wanted("person", None, Some(&["read", "send"]))));
        let narrow = merged(own, &wanted("person", Some(&["read"]), None));
        assert_eq!(narrow.policy().person.may, Classes::new(&[Class::Read]));
        let back = wanted("person", None, None);
        let narrower = merged(narrow, &wanted("person", None, Some(&[])));
        assert_eq!(narrower.policy().person.may, Classes::new(&[Class::Read]), "a list that is left out stays");
        assert_eq!(merged(narrow, &back), own, "an empty entry removes the own one");
        assert!(!only_tightens(&back, &current(&narrow, &back)));
        assert_eq!(narrow.policy().guest, ReceiverPolicy::default().guest);
    }
}
