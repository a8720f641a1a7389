//! Samples of the explanation of a call, of the audit of a configuration and of what an owner changes there. See `operator`.

use super::operator::AT;
use super::seam::digest;
use super::{Shape, calls, shape, usage};
use ironclaw_contract::seam::change::GuardMode;
use ironclaw_operator::{
    CallState, Class, ConfigurationAudit, CoveringAllowance, DenialCode, ExplainCall, ExplainedCall, Finding,
    NewAllowed, NotedBackup, Remedy, Situation, Supposition, ToolReach,
};

pub(super) fn shapes() -> Vec<Shape> {
    let asked = ExplainCall {
        agent: "clerk".to_owned(),
        arguments: Some(r#"{"to":"ana","text":"hello"}"#.to_owned()),
        person: Some("Alice".to_owned()),
        schedule: Some("monday".to_owned()),
    };
    let covering = CoveringAllowance { id: 3, uses_left: 18, expires_at: AT.to_owned() };
    let situation = Situation {
        request: Supposition::AskedWithOthers,
        of: Some("home".to_owned()),
        status: CallState::Asked,
        code: Some(DenialCode::CallOrigin),
        deciders: vec!["Alice".to_owned()],
        allowance: Some(3),
        stages: vec![calls::passed()],
    };
    let remedy =
        Remedy { effect: "gives the agent the tool".to_owned(), command: "ironctl agent set clerk".to_owned() };
    let explained = ExplainedCall {
        agent: "clerk".to_owned(),
        tool: "send_message".to_owned(),
        person: "Alice".to_owned(),
        arguments: r#"{"text":"hello","to":"ana"}"#.to_owned(),
        example: false,
        known: true,
        missing: Some(DenialCode::CallToolNotEnabled),
        class: Some(Class::Send),
        reach: Some(ToolReach::Outside),
        mode: GuardMode::Enforce,
        rule: Some(calls::rule()),
        fields: calls::arguments(),
        allowances: vec![covering.clone()],
        ceilings: vec![usage::ceiling()],
        situations: vec![situation.clone()],
        remedies: vec![remedy.clone()],
    };
    let finding = Finding::ModeLowered { agent: "clerk".to_owned(), mode: GuardMode::DangerousWarn };
    vec![
        shape("operator.explain_call", asked),
        shape("operator.explained_call", explained),
        shape("operator.covering_allowance", covering),
        shape("operator.situation", situation),
        shape("operator.remedy", remedy),
        shape("operator.finding", finding.clone()),
        shape("operator.configuration_audit", ConfigurationAudit { findings: vec![finding] }),
        shape("operator.noted_backup", NotedBackup { backup: "d50b9f60ee01765f24be9345d1222947".to_owned() }),
        shape(
            "operator.new_allowed",
            NewAllowed { directory: "/home/alice/notes".to_owned(), shown: Some(digest(0xa1)) },
        ),
    ]
}
