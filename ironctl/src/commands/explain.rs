//! `ironctl explain`: one page about a call that is not made: the facts that decide on it, its judgement at each kind of request, and
//! the commands that change it.
//!
//! `ironctl tool test` shows each stage of one judgement instead, and `ironctl why` a call that was made.

use super::usage;
use crate::at::At;
use crate::clock;
use crate::failure::Error;
use crate::output::{Output, joined};
use ironclaw_operator::{
    ArgumentRule, CallState, Ceiling, Class, DenialCode, ExplainCall, ExplainedCall, Situation, Supposition,
    ToolArgument, ToolReach, ToolRule, routes,
};
use std::collections::BTreeMap;

/// Characters of the shown arguments.
const ARGUMENTS_SHOWN: usize = 120;

/// Options of `ironctl explain`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl explain assistant http_fetch\n  ironctl explain assistant http_fetch '{\"url\":\"https://docs.rs/serde\"}'\n  ironctl explain assistant http_fetch --as Bob\n  ironctl explain assistant write_file --schedule sch_01j9zq4w0v2m6n8p0r2t4v6x8z"
)]
pub struct Args {
    /// Name or id of the agent
    agent: String,
    /// Name of the tool
    tool: String,
    /// Arguments of the call, a JSON object [default: an example]
    arguments: Option<String>,
    /// Name or id of the person who asks [default: you]
    #[arg(long = "as", value_name = "PERSON")]
    person: Option<String>,
    /// A schedule of the agent, whose list holds for its runs [default: one without a list]
    #[arg(long, value_name = "SCHEDULE")]
    schedule: Option<String>,
}

/// Prints the page.
pub async fn run(at: &At, args: Args) -> Result<(), Error> {
    let Args { agent, tool, arguments, person, schedule } = args;
    let asked = ExplainCall { agent, arguments, person, schedule };
    let explained = at.client()?.post(routes::EXPLAIN_CALL, [&tool], &asked).await?;
    at.out.json(&explained)?;
    print(at.out, explained)
}

fn print(out: Output, explained: ExplainedCall) -> Result<(), Error> {
    for line in facts(&explained) {
        out.line(line)?;
    }
    let ExplainedCall { situations, remedies, .. } = explained;
    out.table(["REQUEST", "RESULT", "CODE", "DECIDED BY"], situations.into_iter().map(row))?;
    if !remedies.is_empty() {
        out.line("to change it:")?;
    }
    for remedy in remedies {
        out.line(format!("  {}:\n    {}", remedy.effect, remedy.command))?;
    }
    Ok(())
}

/// Returns the lines above the table.
fn facts(explained: &ExplainedCall) -> Vec<String> {
    let ExplainedCall { agent, tool, person, class, reach, mode, .. } = explained;
    let class = class.map_or("unknown", Class::name);
    let reach = reach.map_or("unknown", ToolReach::name);
    let mut lines = vec![format!("{tool} of agent {agent}, for {person}: class {class}, reach {reach}, mode {mode}")];
    let mut shown: String = explained.arguments.chars().take(ARGUMENTS_SHOWN).collect();
    if shown.len() < explained.arguments.len() {
        shown.push('…');
    }
    lines.push(format!("arguments{}: {shown}", if explained.example { " (an example)" } else { "" }));
    lines.push(match (explained.known, &explained.missing) {
        (false, _) => "there is no such tool".to_owned(),
        (true, Some(code)) => format!("the agent cannot call it: {code}"),
        (true, None) => "the agent has it".to_owned(),
    });
    lines.extend(fields(&explained.fields));
    lines.extend(explained.rule.as_ref().map(rule));
    for allowance in &explained.allowances {
        let until = clock::date_and_time(&allowance.expires_at);
        lines.push(format!("allowance {}: uses left until {until}: {}", allowance.id, allowance.uses_left));
    }
    lines.extend(explained.ceilings.iter().map(ceiling));
    lines
}

fn fields(fields: &BTreeMap<String, ToolArgument>) -> Vec<String> {
    let named = |wanted: &dyn Fn(&ToolArgument) -> bool| {
        let names: Vec<&str> =
            fields.iter().filter(|(_, field)| wanted(field)).map(|(name, _)| name.as_str()).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    vec![
        format!("control fields: {}", named(&|field| field.rule == ArgumentRule::Floor)),
        format!("a third party receives: {}", named(&|field| field.outward)),
    ]
}

fn rule(rule: &ToolRule) -> String {
    let table = rule.table.as_deref().unwrap_or("defaults");
    let requester = if rule.requester_may_approve { "counts" } else { "does not count" };
    format!(
        "policy ({table}): {} of {}, the requester {requester}, {} h",
        rule.approvals,
        joined(&rule.roles, " or "),
        rule.expires_hours
    )
}

fn ceiling(ceiling: &Ceiling) -> String {
    let of = ceiling.of.as_deref().map_or("the host".to_owned(), |of| format!("agent {of}"));
    let show = |amount: u64| if ceiling.name.is_cost() { usage::money(amount) } else { amount.to_string() };
    format!("ceiling {} of {of}: {} of {} left", ceiling.name, show(ceiling.left), show(ceiling.limit))
}

fn row(situation: Situation) -> [String; 4] {
    let Situation { request, of, status, code, deciders, allowance, stages: _ } = situation;
    let result = match status {
        CallState::Permitted => "runs",
        CallState::Asked => "asks",
        _ => "denied",
    };
    let by = allowance.map_or_else(|| deciders.join(", then "), |number| format!("allowance {number}"));
    [words(request, of.as_deref()), result.to_owned(), code.map_or("", DenialCode::name).to_owned(), by]
}

/// Returns a request in words.
fn words(request: Supposition, of: Option<&str>) -> String {
    match (request, of) {
        (Supposition::Asked, _) => "a person asks".to_owned(),
        (Supposition::AskedWithOthers, _) => "… with text of others".to_owned(),
        (Supposition::TypedWithOthers, _) => "… and typed each value".to_owned(),
        (Supposition::Unasked, _) => "a person does not ask".to_owned(),
        (Supposition::Schedule, None) => "a schedule".to_owned(),
        (Supposition::Schedule, Some(id)) => format!("schedule {id}"),
        (Supposition::Agent, None) => "another agent".to_owned(),
        (Supposition::Agent, Some(group)) => format!("an agent of {group}"),
        (Supposition::Guest, _) => "a stranger".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_contract::seam::change::GuardMode;
    use ironclaw_operator::{CoveringAllowance, Remedy, Role};

    #[test]
    fn facts_and_rows_name_what_decides() {
        let field = |name: &str, rule, outward| {
            let argument = ToolArgument { rule, kind: None, needs: Vec::new(), by_reference: false, outward };
            (name.to_owned(), argument)
        };
        let explained = ExplainedCall {
            agent: "a".to_owned(),
            tool: "http_fetch".to_owned(),
            person: "Ana".to_owned(),
            arguments: format!("{{\"url\":\"https://x.example/{}\"}}", "y".repeat(200)),
            example: true,
            known: true,
            missing: None,
            class: Some(Class::Send),
            reach: Some(ToolReach::Http),
            mode: GuardMode::Enforce,
            rule: Some(ToolRule {
                class: Class::Send,
                table: Some("call.send".to_owned()),
                roles: vec![Role::Owner, Role::Admin],
                approvals: 1,
                requester_may_approve: false,
                expires_hours: 2,
            }),
            fields: BTreeMap::from([
                field("url", ArgumentRule::Floor, true),
                field("body", ArgumentRule::Content, true),
                field("x", ArgumentRule::Free, false),
            ]),
            allowances: vec![CoveringAllowance {
                id: 3,
                uses_left: 2,
                expires_at: "2027-01-31T12:00:00.000Z".to_owned(),
            }],
            ceilings: Vec::new(),
            situations: Vec::new(),
            remedies: vec![Remedy { effect: "e".to_owned(), command: "c".to_owned() }],
        };
        let lines = facts(&explained);
        assert_eq!(lines[0], "http_fetch of agent a, for Ana: class send, reach http, mode enforce");
        assert_eq!(
            lines[2..6],
            [
                "the agent has it",
                "control fields: url",
                "a third party receives: body, url",
                "policy (call.send): 1 of owner or admin, the requester does not count, 2 h"
            ]
        );
        assert!(lines[1].chars().count() < 160 && lines[1].ends_with('…'), "{}", lines[1]);
        let situation = |request, status, deciders: &[&str], allowance| Situation {
            request,
            of: None,
            status,
            code: None,
            deciders: deciders.iter().map(|&one| one.to_owned()).collect(),
            allowance,
            stages: Vec::new(),
        };
        for (asked, expected) in [
            (situation(Supposition::Asked, CallState::Permitted, &[], Some(3)), ["runs", "allowance 3"]),
            (
                situation(Supposition::Unasked, CallState::Asked, &["Ana", "1 of owner"], None),
                ["asks", "Ana, then 1 of owner"],
            ),
            (situation(Supposition::Guest, CallState::Refused, &[], None), ["denied", ""]),
        ] {
            let [_, result, _, by] = row(asked);
            assert_eq!([result.as_str(), by.as_str()], expected);
        }
    }
}
