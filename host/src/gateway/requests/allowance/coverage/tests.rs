//! Tests of the bounds of allowances, and of the reasons and the fields that they cover.

use super::*;
use crate::registry::Mode;
use crate::registry::tools::catalogue::CommandReach;
use ironclaw_contract::seam::change::Access;
use ironclaw_judge::OwnReceiver;
use ironclaw_judge::call::Stage;
use serde_json::json;

const NOW: i64 = 1_000_000;

fn object(value: Value) -> Map<String, Value> {
    let Value::Object(fields) = value else { panic!("{value} is no object") };
    fields
}

fn new(tool: &str, fields: Value) -> New {
    let agent = Agent {
        id: AgentId::new(),
        name: "a".into(),
        model: "scripted".into(),
        follows_default: true,
        persona: String::new(),
        enabled_tools: vec!["http_fetch".to_owned(), "run_command".to_owned(), "read_file".to_owned()],
        access: Access::Everyone,
        mode: Mode::Enforce,
        receiver: OwnReceiver::default(),
        created_at: 0,
    };
    let loopback = Loopback::DangerousAllowed;
    New { agent, tool: tool.to_owned(), fields: object(fields), count: 3, until: NOW + 1000, loopback }
}

fn code(new: &New) -> Result<(), DenialCode> {
    let catalogue = Catalogue::new(&new.agent.enabled_tools, CommandReach::Jail, Vec::new());
    check(new, &catalogue, NOW).map(drop).map_err(|refusal| refusal.code)
}

fn post() -> Value {
    json!({ "method": "POST", "url": "https://api.example/notes", "headers": { "content-type": "text/plain" } })
}

#[test]
fn bounds_of_uses_and_time_are_kept() {
    let base = new("http_fetch", post());
    assert_eq!(code(&base), Ok(()));
    for count in [0, USES_MAX + 1, u32::MAX] {
        assert_eq!(code(&New { count, ..base.clone() }), Err(DenialCode::AllowanceBounds), "{count}");
    }
    for until in [0, NOW, NOW + TIME_MS_MAX + 1, i64::MAX] {
        assert_eq!(code(&New { until, ..base.clone() }), Err(DenialCode::AllowanceBounds), "{until}");
    }
    assert_eq!(code(&New { count: USES_MAX, until: NOW + TIME_MS_MAX, ..base }), Ok(()));
}

#[test]
fn only_control_fields_of_a_tool_that_asks_are_fixed() {
    for (tool, fields, wanted) in [
        ("rm", json!({}), DenialCode::AllowanceTool),
        ("send_message", json!({ "to": "x" }), DenialCode::AllowanceTool),
        ("run_command", json!({ "command": "true" }), DenialCode::AllowanceTool),
        ("read_file", json!({ "path": "a" }), DenialCode::AllowanceTool),
        ("http_fetch", json!({}), DenialCode::AllowanceFields),
        ("http_fetch", json!({ "method": "POST" }), DenialCode::AllowanceFields),
        ("http_fetch", json!({ "url": "https://api.example/", "body": "x" }), DenialCode::AllowanceFields),
        ("http_fetch", json!({ "url": "https://api.example/", "to": "x" }), DenialCode::AllowanceFields),
        ("http_fetch", json!({ "url": "https://api.example/", "method": "post" }), DenialCode::AllowanceFields),
    ] {
        assert_eq!(code(&new(tool, fields.clone())), Err(wanted), "{tool} {fields}");
    }
    assert_eq!(code(&new("http_fetch", json!({ "url": "https://api.example/" }))), Ok(()));
}

#[test]
fn each_control_field_is_equal_or_absent_on_both_sides() {
    let manifest = tools::manifest("http_fetch").expect("a manifest");
    let fixed = object(post());
    let with = |change: &dyn Fn(&mut Map<String, Value>)| {
        let mut arguments = fixed.clone();
        arguments.insert("body".to_owned(), json!("anything"));
        change(&mut arguments);
        covers(manifest, &fixed, &arguments)
    };
    assert!(with(&|_| {}));
    assert!(with(&|all| drop(all.remove("body"))));
    assert!(!with(&|all| drop(all.remove("headers"))));
    assert!(!with(&|all| drop(all.insert("headers".to_owned(), Value::Null))));
    assert!(!with(&|all| drop(all.insert("url".to_owned(), json!("https://api.example/notes?x=1")))));
    assert!(!with(&|all| drop(all.insert("method".to_owned(), json!("PUT")))));
    assert!(!with(&|all| drop(all.insert("other".to_owned(), json!("x")))));
    let more = json!({ "content-type": "text/plain", "x-more": "1" });
    assert!(!with(&|all| drop(all.insert("headers".to_owned(), more.clone()))));
    let bare = object(json!({ "url": "https://api.example/" }));
    assert!(covers(manifest, &bare, &bare));
    assert!(!covers(manifest, &bare, &object(json!({ "url": "https://api.example/", "method": "GET" }))));
}

#[test]
fn only_scope_and_origin_are_lifted_and_never_exec_or_trade() {
    let lifted: Vec<DenialCode> = DenialCode::ALL.iter().copied().filter(|code| is_lifted(*code)).collect();
    assert_eq!(lifted, LIFTED);
    let reason = |stage, code| Reason { stage, code, arguments: Vec::new() };
    let scope = reason(Stage::Scope, DenialCode::CallScope);
    let origin = reason(Stage::Inputs, DenialCode::CallOrigin);
    let both = [scope.clone(), origin];
    assert!(lifts_all(Class::Send, &both) && lifts_all(Class::Read, &both));
    assert!(!lifts_all(Class::Exec, &both) && !lifts_all(Class::Trade, &both));
    for other in [
        reason(Stage::Outward, DenialCode::CallOutward),
        reason(Stage::AlwaysAsk, DenialCode::EgressNewHost),
        reason(Stage::AlwaysAsk, DenialCode::CallAlwaysAsks),
    ] {
        assert!(!lifts_all(Class::Send, &[scope.clone(), other]));
    }
}
