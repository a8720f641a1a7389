//! One sample of every shape about tools and the judgement of their calls. Every value is fixed. See `operator`.

use super::seam::id;
use super::{Shape, shape};
use ironclaw_contract::canonical::Digest;
use ironclaw_contract::ids::{CallId, RequestId, SessionId, TurnId};
use ironclaw_contract::seam::change::GuardMode;
use ironclaw_contract::seam::egress::Commands;
use ironclaw_contract::seam::seal::Label;
use ironclaw_operator::{
    AgentGroup, ArgumentRule, CallStage, CallState, CallWhy, Class, DenialCode, Destination, DestinationState,
    EgressGrant, InputType, JudgementStage, LoweredGuard, ManifestSchema, Role, ScopeMeasure, SentFile, StageAnswer,
    TestCall, TestScope, TestedCall, TestedScope, Tool, ToolArgument, ToolReach, ToolRule, WrongScope,
};
use std::collections::BTreeMap;

pub(super) fn lowered() -> LoweredGuard {
    LoweredGuard { agent: "clerk".to_owned(), mode: GuardMode::DangerousWarn }
}

pub(super) fn passed() -> CallStage {
    CallStage { stage: JudgementStage::Known, answer: StageAnswer::Pass, code: None, meaning: None }
}

pub(super) fn arguments() -> BTreeMap<String, ToolArgument> {
    let (kind, needs) = (Some(InputType::Email), vec![Label::UserSurfaceInput]);
    let argument = ToolArgument { rule: ArgumentRule::Floor, kind, needs, by_reference: false, outward: true };
    BTreeMap::from([("to".to_owned(), argument)])
}

pub(super) fn rule() -> ToolRule {
    ToolRule {
        class: Class::Send,
        table: Some("call.send".to_owned()),
        roles: vec![Role::Owner, Role::Admin],
        approvals: 2,
        requester_may_approve: false,
        expires_hours: 2,
    }
}

pub(super) fn shapes() -> Vec<Shape> {
    let pass = passed();
    let deny = CallStage {
        stage: JudgementStage::Granted,
        answer: StageAnswer::Deny,
        code: Some(DenialCode::CallToolNotEnabled),
        meaning: Some("A call names a tool that the agent does not have.".to_owned()),
    };
    let refused = CallWhy {
        call_id: id::<CallId>("call", 1),
        session_id: id::<SessionId>("ses", 1),
        turn_id: id::<TurnId>("trn", 1),
        tool: "run_command".to_owned(),
        class: None,
        status: CallState::Refused,
        code: Some(DenialCode::CallToolNotEnabled),
        stages: vec![pass.clone(), deny.clone()],
        would_have_blocked: Vec::new(),
        summary: "The call was refused: A call names a tool that the agent does not have.".to_owned(),
        bound: None,
        request: None,
        result: None,
        file: None,
    };
    let done = CallWhy {
        class: Some(Class::Read),
        status: CallState::Done,
        code: None,
        stages: vec![pass.clone()],
        summary: "The call was permitted, and it has its result.".to_owned(),
        request: Some(id::<RequestId>("req", 1)),
        result: Some("The server asked for a password.".to_owned()),
        file: Some(SentFile {
            name: "report.pdf".to_owned(),
            media_type: "application/pdf".to_owned(),
            bytes: 9,
            digest: Digest::of(b"%PDF-1.7\n"),
        }),
        ..refused.clone()
    };
    let lifted = CallStage {
        stage: JudgementStage::Scope,
        answer: StageAnswer::Lifted,
        code: Some(DenialCode::CallScope),
        meaning: Some("The request that the agent works on did not ask for calls of this class.".to_owned()),
    };
    let by_mode = CallWhy {
        class: Some(Class::Send),
        stages: vec![pass.clone(), lifted],
        would_have_blocked: vec![DenialCode::CallScope],
        ..done.clone()
    };
    let rule = rule();
    let tool = Tool {
        name: "send_message".to_owned(),
        description: "Sends a message to one of your destinations.".to_owned(),
        class: Class::Send,
        reach: ToolReach::Outside,
        reversible: false,
        always_ask: false,
        effect: "sends a message to {to}".to_owned(),
        arguments: arguments(),
        rules: vec![rule.clone(), ToolRule { table: None, ..rule.clone() }],
        agents: vec!["clerk".to_owned()],
        always_asked_of: Vec::new(),
    };
    let asked = TestCall {
        agent: "clerk".to_owned(),
        arguments: r#"{"path":"a"}"#.to_owned(),
        allow: vec!["send".to_owned()],
        external: true,
        typed: true,
    };
    let tested = TestedCall {
        status: CallState::Permitted,
        class: Some(Class::Read),
        code: None,
        stages: vec![pass.clone()],
        advice: None,
    };
    let not = TestedCall {
        status: CallState::Refused,
        class: None,
        code: Some(DenialCode::CallToolNotEnabled),
        stages: vec![deny.clone()],
        advice: Some("the tool is not enabled for you".to_owned()),
    };
    let grant = EgressGrant {
        agent: "clerk".to_owned(),
        host: "api.example".to_owned(),
        port: Some(8443),
        methods: vec!["GET".to_owned(), "POST".to_owned()],
        paths: vec!["/repos/{owner}/issues".to_owned()],
        secret: Some("example".to_owned()),
        upload_bytes_max: Some(65_536),
        commands: Some(Commands::Git),
    };
    let destination = Destination {
        agent: "clerk".to_owned(),
        name: "ana".to_owned(),
        channel: "desk".to_owned(),
        address: "ana@home.example".to_owned(),
        thread: Some("garden".to_owned()),
        person: "Ana".to_owned(),
        to_agent: None,
        state: DestinationState::Active,
    };
    let group = AgentGroup {
        name: "research".to_owned(),
        agents: vec!["clerk".to_owned(), "reader".to_owned()],
        tools: vec!["read_file".to_owned()],
    };
    let cases = "[[case]]\nlang = \"en\"\ntext = \"mail it\"\nwants = [\"send\"]\n".to_owned();
    let measure = ScopeMeasure {
        lang: "en".to_owned(),
        class: Class::Send,
        right: 3,
        claimed: 1,
        missed: 0,
        precision: 0.75,
        recall: 1.0,
    };
    let wrong = WrongScope {
        lang: "en".to_owned(),
        text: "Where is the send button?".to_owned(),
        wants: vec![Class::Read],
        got: vec![Class::Read, Class::Send],
        words: vec!["where is".to_owned(), "send".to_owned()],
    };
    let scope = TestedScope { cases: 4, measures: vec![measure.clone()], wrong: vec![wrong.clone()] };
    vec![
        shape("operator.test_scope", TestScope { cases: Some(cases) }),
        shape("operator.test_scope.embedded", TestScope::default()),
        shape("operator.scope_measure", measure),
        shape("operator.wrong_scope", wrong),
        shape("operator.tested_scope", scope),
        shape("operator.egress_grant", grant),
        shape("operator.destination", destination.clone()),
        shape("operator.destination.agent", Destination { to_agent: Some("reader".to_owned()), ..destination }),
        shape("operator.agent_group", group),
        shape("operator.lowered_guard", lowered()),
        shape("operator.call_stage", pass),
        shape("operator.call_stage.deny", deny),
        shape("operator.call_why", done),
        shape("operator.call_why.bound", CallWhy { bound: Some(super::requests::bound()), ..refused.clone() }),
        shape("operator.call_why.refused", refused),
        shape("operator.call_why.lifted", by_mode),
        shape("operator.tool_argument", arguments()["to"].clone()),
        shape("operator.tool_rule", rule.clone()),
        shape("operator.tool_rule.defaults", ToolRule { table: None, ..rule }),
        shape("operator.tool", tool),
        shape("operator.manifest_schema", ManifestSchema(serde_json::json!({ "type": "object" }))),
        shape("operator.test_call", asked),
        shape("operator.tested_call", tested),
        shape("operator.tested_call.refused", not),
    ]
}
