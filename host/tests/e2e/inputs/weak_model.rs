//! A stand-in that behaves like a weak model: it copies ids in each form that small models use, and mistakes some.

use super::*;

#[test]
fn conversations_of_a_weak_model_end_without_a_fault() {
    let office = Office::new();
    let typed = "/allow send -- mail the plan to bob@example.org, please";
    let mail = |recipient: Value| ("sendMail", json!({ "recipient": recipient, "body": "the plan" }));
    let tries: [Vec<(&str, Value)>; 10] = [
        vec![mail(link("$email.1"))],
        vec![mail(json!("$email.1"))],
        vec![mail(json!("{\"@link\": \"${email.1}\"}"))],
        vec![mail(json!(" {\"@link\":\"${email.1}\"} "))],
        vec![mail(json!("bob@example.org")), mail(link("$email.1"))],
        vec![mail(json!("ID")), mail(json!({ "@link": "ID" })), mail(link("$email.1"))],
        vec![mail(json!({ "link": "$email.1" })), mail(json!([link("$email.1")]))],
        vec![mail(json!({ "@link": "$email.1", "type": "email" })), mail(link("$email.1"))],
        vec![("sendMail", json!({ "to": link("$email.1") })), mail(link("$email.1"))],
        vec![mail(json!(null)), mail(json!("")), mail(link("$email.1"))],
    ];
    for (at, calls) in tries.into_iter().enumerate() {
        let (made, answer) = office.ask("a", &format!("weak-{at}"), typed, &calls);
        let last = made.last().expect("a call");
        assert_eq!((&last["status"], &last["code"]), (&json!("done"), &Value::Null), "{at}: {made:?} {answer}");
        assert!(answer.contains("bob@example.org"), "{at}: {answer}");
        assert!(made[..made.len() - 1].iter().all(|call| call["status"] == "refused"), "{at}: {made:?}");
    }
    assert!(office.host.entries("turn.failed").is_empty());
    office.host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn prompt_has_values_only_for_tools_that_take_them() {
    let office = Office::new();
    office.host.ctl(&["agent", "add", "plain", "--model", "m"]).ok();
    office.ask("plain", "t", "mail bob@example.org", &[]);
    let prompt = |office: &Office| office.model.seen().last().expect("a request").body["messages"].to_string();
    assert!(!prompt(&office).contains("@link") && !prompt(&office).contains(".email.1"));
    office.ask("a", "t", "mail bob@example.org", &[]);
    assert!(prompt(&office).contains(".email.1 is \\\"bob@example.org\\\""), "{}", prompt(&office));
    let tools = office.model.seen().last().expect("a request").body["tools"].to_string();
    assert!(tools.contains("Pass a value that the person typed as"), "{tools}");
    // An unknown server without labels changes no prompt: the host binds what the person typed.
    let url = office.servers.list(
        "plain",
        Listed::page(&[json!({ "name": "send", "inputSchema": { "properties": { "to": {} } } }).to_string()]),
    );
    let digest = add(&office.host, "plain", &["--url", &url])["digest"].as_str().expect("a digest").to_owned();
    office.host.ctl(&["mcp", "confirm", "plain", "--digest", &digest, "--yes"]).ok();
    office.host.ctl(&["mcp", "grant", "plain", "plain", "--yes"]).ok();
    office.ask("plain", "u", "mail bob@example.org", &[]);
    assert!(!prompt(&office).contains(".email.1"), "{}", prompt(&office));
}
