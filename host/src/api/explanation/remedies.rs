//! The commands that change the judgement of an explained call.
//!
//! Runs none of them. Each follows from a code of a judgement, so that a code without a command has none here.

use crate::calls::supposition::{Call, Outcome, Request};
use crate::gateway::requests::allowance;
use crate::registry::Agent;
use crate::registry::mcp::looser::Looser;
use crate::registry::tools::catalogue::{Catalogue, Source};
use crate::registry::tools::{FIND_TOOLS, GIT_PUSH, NETWORK_COMMAND, READ_SKILL, RUN_COMMAND, SEND_MESSAGE};
use crate::turns::calls::{self, Judgement, main_code};
use ironclaw_contract::seam::change::GuardMode;
use ironclaw_judge::Class;
use ironclaw_judge::call::Reason;
use ironclaw_judge::manifest::server;
use ironclaw_operator::{DenialCode, Remedy, Supposition};
use serde_json::{Map, Value};

/// The host of a proposed grant.
const A_HOST: &str = "HOST";

fn remedy(effect: impl Into<String>, command: impl Into<String>) -> Remedy {
    Remedy { effect: effect.into(), command: command.into() }
}

/// Returns the commands for a call by its judgements, each once.
pub fn list(
    agent: &Agent,
    catalogue: &Catalogue,
    call: &Call<'_>,
    judged: &[(Request, Outcome)],
    schedule: Option<&str>,
    looser: Option<&Looser>,
) -> Vec<Remedy> {
    let mut all = Vec::new();
    if catalogue.manifest(call.tool).is_none() && !server::is_name_for_model(call.tool) {
        all.push(remedy("the names of the tools", "ironctl tool list"));
        return all;
    }
    if let Some(code) = catalogue.missing(call.tool) {
        all.extend(missing(code, agent, catalogue, call.tool));
    }
    for (request, outcome) in judged {
        let class = outcome.judged.by_stages.class;
        let found = match &outcome.judged.judgement {
            Judgement::Permitted { .. } => Vec::new(),
            Judgement::Refused { code, .. } => {
                let classes = class.map(|class| classes(class, catalogue, call.tool)).unwrap_or_default();
                refused(*code, request.kind, agent, call.tool, &classes, schedule)
            }
            Judgement::NeedsPerson { class, reasons, detail } => {
                let made = &outcome.judged.call;
                let mut found = asked(*class, reasons, detail, agent, catalogue, made);
                found.extend(proposed(catalogue, call.tool, looser));
                found
            }
        };
        for one in found {
            if !all.contains(&one) {
                all.push(one);
            }
        }
    }
    if agent.mode != GuardMode::Enforce {
        let command = format!("ironctl agent set {} --mode enforce", agent.name);
        all.push(remedy("scope, inputs and outward count again", command));
    }
    all
}

/// Returns the commands that give an agent a tool.
fn missing(code: DenialCode, agent: &Agent, catalogue: &Catalogue, tool: &str) -> Vec<Remedy> {
    let name = &agent.name;
    if let (DenialCode::CallServerChanged, Some(Source::Server(found))) = (code, catalogue.find(tool)) {
        return vec![remedy(
            "read what the server lists now, and confirm it",
            format!("ironctl mcp test {}", found.server),
        )];
    }
    if catalogue.find(tool).is_none() && server::is_name_for_model(tool) {
        let server = tool.split_once("__").map_or("SERVER", |(server, _)| server);
        return vec![remedy("give the agent the tools of the server", format!("ironctl mcp grant {name} {server}"))];
    }
    let has_commands = catalogue.missing(RUN_COMMAND).is_none();
    let commands = remedy("let it run commands", format!("ironctl agent set {name} --add-tool {RUN_COMMAND}"));
    let commands = Some(commands).filter(|_| !has_commands).into_iter();
    match tool {
        SEND_MESSAGE => vec![destination(name)],
        READ_SKILL => vec![remedy("an agent with a skill has it", format!("ironctl skill add SKILL --agent {name}"))],
        NETWORK_COMMAND => {
            let grant = format!("ironctl egress grant {name} {A_HOST} --commands other --path /PATH");
            commands.chain([remedy("grant a host to commands", grant)]).collect()
        }
        GIT_PUSH => {
            let grant = format!("ironctl egress grant {name} {A_HOST} --commands git --push --path /OWNER/REPOSITORY");
            commands.chain([remedy("grant a repository with pushes", grant)]).collect()
        }
        FIND_TOOLS => Vec::new(),
        _ => vec![remedy("give the agent the tool", format!("ironctl agent set {name} --add-tool {tool}"))],
    }
}

fn destination(agent: &str) -> Remedy {
    remedy("add a destination", format!("ironctl destination add {agent} NAME --channel CHANNEL --to ADDRESS"))
}

/// Returns the classes that a call of a tool needs: its class, and those that its manifest adds.
fn classes(class: Class, catalogue: &Catalogue, tool: &str) -> Vec<Class> {
    let also = catalogue.manifest(tool).map(|manifest| manifest.also.clone()).unwrap_or_default();
    std::iter::once(class).chain(also).collect()
}

/// Returns an option of a command, once for each class.
fn options(option: &str, classes: &[Class]) -> String {
    classes.iter().map(|class| format!(" {option} {}", class.name())).collect()
}

/// Returns the commands for a refused call.
fn refused(
    code: DenialCode,
    request: Supposition,
    agent: &Agent,
    tool: &str,
    classes: &[Class],
    schedule: Option<&str>,
) -> Vec<Remedy> {
    let name = &agent.name;
    match (code, request) {
        // A run asks no person, and each push needs one.
        (DenialCode::CallSchedule, _) if tool != GIT_PUSH && !classes.is_empty() => {
            let may = options("--may", classes);
            let command = match schedule {
                Some(id) => format!("ironctl schedule set {id}{may}"),
                None => format!("ironctl schedule add {name} PROMPT --every 1d{may}"),
            };
            vec![remedy("let a schedule make such calls", command)]
        }
        (DenialCode::CallPrincipal, Supposition::Agent) => {
            let command = format!("ironctl group add GROUP {name} OTHER --tools {tool}");
            vec![remedy("let agents of a trust group ask for it", command)]
        }
        (DenialCode::CallDestination | DenialCode::CallDestinationEnded, _) => vec![destination(name)],
        _ => Vec::new(),
    }
}

/// Returns the commands for a call that needs people.
fn asked(
    class: Class,
    reasons: &[Reason],
    detail: &str,
    agent: &Agent,
    catalogue: &Catalogue,
    made: &calls::Call,
) -> Vec<Remedy> {
    let mut all = Vec::new();
    if reasons.iter().any(|reason| reason.code == DenialCode::CallScope) {
        let allow = options("--allow", &classes(class, catalogue, &made.tool)).replace("--allow ", "--allow +");
        let command = format!("ironctl chat {}{allow}", agent.name);
        all.push(remedy("ask for the class in the message", command));
    }
    if catalogue.asks_always(&made.tool) {
        let command = format!("ironctl tool set {} --always-ask no --agent {}", made.tool, agent.name);
        all.push(remedy("let the usual rules decide on its calls", command));
    }
    // A request without a grant quotes the command that grants it.
    if let Some((_, command)) = detail.split_once("ironctl egress grant AGENT") {
        all.push(remedy("grant the request", format!("ironctl egress grant {}{command}", agent.name)));
    }
    let code = main_code(reasons);
    if matches!(code, DenialCode::CallScope | DenialCode::CallOrigin) && allowance::lifts_all(class, reasons) {
        all.extend(repeated(agent, catalogue, made));
    }
    all
}

/// Returns the command that takes the rules which the host proposes for a tool of a server.
fn proposed(catalogue: &Catalogue, tool: &str, looser: Option<&Looser>) -> Option<Remedy> {
    let (Some(Source::Server(found)), Some(looser)) = (catalogue.find(tool), looser) else { return None };
    let effect = format!("take the rules that the host proposes: {}", looser.parts.join(", "));
    Some(remedy(effect, looser.command(&found.server, &found.tool)))
}

/// Returns the command that lets the person repeat the call, with the values of its control fields.
fn repeated(agent: &Agent, catalogue: &Catalogue, made: &calls::Call) -> Option<Remedy> {
    let terms = catalogue.terms(&made.tool)?;
    if allowance::refused_tool(&terms.manifest).is_some() {
        return None;
    }
    let mut fields: Map<String, Value> = serde_json::from_str(&made.arguments).ok()?;
    fields.retain(|name, _| allowance::control_fields(&terms.manifest).any(|control| control == name));
    let command = allowance::command(&agent.name, &made.tool, &fields);
    Some(remedy("repeat it for this person without a question", command + " --count 10 --until 7d"))
}
