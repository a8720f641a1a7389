//! Tests of floors that take values which servers returned.

use super::*;
use crate::inputs::returned::Returned;
use crate::inputs::{Answer, Handles, Task};
use crate::provenance::{Labels, Provenance};
use ironclaw_operator::InputType;

/// Returns the finding for a value of an answer with these labels, at a floor with these needs.
fn finding(needs: &str, value: Value, provenance: &[Provenance], server: &str, task: Task) -> Option<DenialCode> {
    let call = Call::asking("name", &format!(", needs = [{needs}]"));
    let labels = provenance.iter().fold(Labels::NONE, |all, one| all.join(Labels::from_provenance(*one)));
    let mut handles = handles(call.typed);
    let one = |text: &str| Returned { kind: InputType::Name, text: text.to_owned(), number: None, labels };
    handles.add_returned(Answer { item: ItemId::new(), seq: 14, server, task }, vec![one("ord_1")]);
    let tool = Tool {
        server: "mail",
        name: "send",
        manifest: &call.manifest,
        parameters: &call.schema,
        floored: &call.floored,
    };
    let Value::Object(mut arguments) = to(value) else { unreachable!("an object") };
    let bound = bind(&mut arguments, Some(tool), &[], &handles, &|_| false);
    let code = bound.findings.first().map(|finding| finding.code);
    assert!(code.is_some() || arguments["to"] == "ord_1", "{arguments:?}");
    // The executor binds the recorded call again, with the same end.
    if code.is_none() {
        assert!(bind(&mut arguments, Some(tool), &bound.values, &handles, &|_| false).are_met());
    }
    code
}

const CREATED: &[Provenance] = &[Provenance::Created];
const RETURNED: &[Provenance] = &[Provenance::Returned];

#[test]
fn created_value_is_known_to_its_server_alone() {
    let reference = || link("r14.name.1");
    assert_eq!(finding("\"SessionResult\"", reference(), CREATED, "mail", Task::This), None);
    assert_eq!(finding("\"SessionResult\"", json!("ord_1"), CREATED, "mail", Task::This), None);
    assert_eq!(finding("\"SessionResult\"", reference(), CREATED, "shop", Task::This), Some(CallLinkLabel));
    assert_eq!(finding("\"SessionResult\"", json!("ord_1"), CREATED, "shop", Task::This), Some(CallInput));
    assert_eq!(finding("\"SessionResult\"", reference(), RETURNED, "mail", Task::This), Some(CallLinkLabel));
    assert_eq!(finding("\"SessionResult\"", reference(), CREATED, "mail", Task::Earlier), Some(CallInput));
    assert_eq!(finding("\"SessionResult\"", link("m14.name.1"), CREATED, "mail", Task::This), Some(CallLinkUnknown));
}

#[test]
fn returned_value_meets_no_floor_of_typed_ones() {
    let reference = || link("r14.name.1");
    for (needs, provenance, code) in [
        ("\"StructuredResult\"", RETURNED, None),
        ("\"StructuredResult\"", CREATED, Some(CallLinkLabel)),
        ("\"UserSurfaceInput\"", RETURNED, Some(CallLinkLabel)),
        ("\"PromptSlotBound\"", CREATED, Some(CallLinkLabel)),
        ("\"StructuredResult\", \"UserSurfaceInput\"", RETURNED, Some(CallLinkLabel)),
    ] {
        assert_eq!(finding(needs, reference(), provenance, "mail", Task::This), code, "{needs}");
    }
    // What a server returned to another one is its value too.
    assert_eq!(finding("\"StructuredResult\"", reference(), RETURNED, "crm", Task::This), None);
}

#[test]
fn typed_name_of_a_server_meets_floors_of_this_server_alone() {
    let call = Call::asking("name", "").typed("post the plan to general, and tell Ana");
    let mut known = Handles::new(Loopback::Refused);
    known.add_name("mail", "general");
    known.add(&message(12, call.typed, Task::This), &["Ana".to_owned()]);
    let ids: Vec<String> = known.iter().map(|handle| format!("{} {}", handle.id, handle.text)).collect();
    assert_eq!(ids, ["m12.name.1 Ana", "m12.name.18439 general"], "the name of a server moves no other one");
    let mut more = Handles::new(Loopback::Refused);
    for name in ["plan", "general"] {
        more.add_name("mail", name);
    }
    more.add(&message(12, call.typed, Task::This), &["Ana".to_owned()]);
    assert!(more.find("m12.name.18439".parse().expect("an id")).is_some_and(|handle| handle.text == "general"));
    for (server, code) in [("mail", Some(CallInput)), ("shop", Some(CallLinkLabel))] {
        let (manifest, parameters) = (&call.manifest, &call.schema);
        let tool = Tool { server, name: "send", manifest, parameters, floored: &[] };
        let Value::Object(mut arguments) = to(link("m12.name.18439")) else { unreachable!("an object") };
        let found = bind(&mut arguments, Some(tool), &[], &known, &|_| false).findings;
        // For its own server it is one of two names that the person typed.
        assert_eq!(found.first().map(|finding| finding.code), code, "{server}");
    }
}
