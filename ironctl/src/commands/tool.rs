//! `ironctl tool`: lists the tools of the host, shows the manifest of one, and judges a call without making it.
//!
//! Never gives a tool to an agent: `ironctl agent set` does. See [`crate::commands::why`] for a call that was made.

use super::mcp;
use super::propose;
use super::why::stage_rows;
use crate::at::At;
use crate::failure::Error;
use crate::output::joined;
use clap::Subcommand;
use ironclaw_operator::{
    ChangeKind, Class, ManifestSchema, TestCall, TestedCall, Tool, ToolArgument, ToolRule, routes,
};
use serde_json::json;

/// The verbs of `ironctl tool`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// List the tools with their classes and the agents that have them
    #[command(after_help = "Example:\n  ironctl tool list")]
    List,
    /// Show the manifest of a tool: class, effect, the rule of each argument, and who decides on its calls
    #[command(after_help = "Example:\n  ironctl tool show read_file")]
    Show {
        /// Name of the tool
        tool: String,
    },
    /// Ask people about each call of a built-in tool by an agent, or no longer
    #[command(after_help = "Example:\n  ironctl tool set run_command --always-ask yes --agent assistant")]
    Set {
        /// Name of the tool
        tool: String,
        /// yes: each call waits for people; no: the usual rules decide
        #[arg(long, value_name = "yes|no")]
        always_ask: YesNo,
        /// Name or id of the agent
        #[arg(long)]
        agent: String,
        /// Approve a change to `no` without being asked
        #[arg(long)]
        yes: bool,
    },
    /// Print the JSON Schema of manifests: the fields, classes and rules
    #[command(after_help = "Example:\n  ironctl tool schema")]
    Schema,
    /// Judge a call without making it, and show each stage
    #[command(after_help = "Example:\n  ironctl tool test assistant read_file '{\"path\":\"notes.md\"}'")]
    Test {
        /// Name or id of the agent
        agent: String,
        /// Name of the tool
        tool: String,
        /// Arguments of the call, a JSON object
        arguments: String,
        /// Class that the request declares, or +CLASS to add it to those that need no word; may be given again
        #[arg(long, value_name = "CLASS")]
        allow: Vec<String>,
        /// Judge it with text of others in the context
        #[arg(long)]
        external: bool,
    },
}

/// An answer as an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum YesNo {
    Yes,
    No,
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    match action {
        Action::List => list(at).await,
        Action::Show { tool } => show(at, &tool).await,
        Action::Set { tool, always_ask, agent, yes } => set(at, &tool, always_ask, &agent, yes).await,
        Action::Schema => schema(at).await,
        Action::Test { agent, tool, arguments, allow, external } => {
            test(at, &tool, TestCall { agent, arguments, allow, external, typed: false }).await
        }
    }
}

async fn list(at: &At) -> Result<(), Error> {
    let tools = at.client()?.call(routes::TOOLS, []).await?;
    at.out.json(&tools)?;
    let row = |tool: Tool| {
        [
            tool.name,
            tool.class.to_string(),
            tool.reach.to_string(),
            tool.effect,
            tool.agents.join(" "),
            tool.always_asked_of.join(" "),
        ]
    };
    at.out.table(["TOOL", "CLASS", "REACH", "EFFECT", "AGENTS", "ALWAYS ASKED"], tools.into_iter().map(row))
}

async fn show(at: &At, name: &str) -> Result<(), Error> {
    let tools = at.client()?.call(routes::TOOLS, []).await?;
    let Some(tool) = tools.into_iter().find(|tool| tool.name == name) else {
        return mcp::show_tool(at, name).await;
    };
    at.out.json(&tool)?;
    at.out.line(format!("{}: {}", tool.name, tool.description))?;
    at.out.line(format!("class {}, {}: {}", tool.class, tool.reach, tool.effect))?;
    if tool.always_ask {
        at.out.line("every call needs a person")?;
    }
    if tool.agents.is_empty() {
        at.out.line("no agent has it")?;
    } else {
        at.out.line(format!("agents: {}", tool.agents.join(" ")))?;
    }
    if !tool.always_asked_of.is_empty() {
        at.out.line(format!("every call needs a person for: {}", tool.always_asked_of.join(" ")))?;
    }
    let row = |name: String, argument: ToolArgument| {
        let receiver = if argument.outward { "a third party" } else { "" };
        [name, argument.rule.to_string(), receiver.to_owned()]
    };
    at.out.table(
        ["ARGUMENT", "RULE", "RECEIVED BY"],
        tool.arguments.into_iter().map(|(name, argument)| row(name, argument)),
    )?;
    if tool.rules.is_empty() {
        return at.out.line("policy.toml has no rule for its calls, because they ask a person themselves");
    }
    at.out.line("people of policy.toml, who decide if a call needs more than the person of its turn:")?;
    at.out
        .table(["CLASS", "TABLE", "DECIDES", "APPROVALS", "REQUESTER", "EXPIRES"], tool.rules.into_iter().map(rule_row))
}

fn rule_row(rule: ToolRule) -> [String; 6] {
    let table = rule.table.map_or_else(|| "(defaults)".to_owned(), |table| format!("[{table}]"));
    let requester = if rule.requester_may_approve { "counts" } else { "does not count" };
    let hours = format!("after {} h", rule.expires_hours);
    [rule.class.to_string(), table, joined(rule.roles, " "), rule.approvals.to_string(), requester.to_owned(), hours]
}

/// Proposes the change, and approves one that only tightens at once.
async fn set(at: &At, tool: &str, always_ask: YesNo, agent: &str, yes: bool) -> Result<(), Error> {
    let (field, is_approved) = match always_ask {
        YesNo::Yes => ("add", true),
        YesNo::No => ("remove", yes),
    };
    let payload = json!({ field: [format!("{tool}:ask")] });
    propose::decide_and_print(at, ChangeKind::EnabledTools, Some(agent), payload, is_approved).await
}

async fn schema(at: &At) -> Result<(), Error> {
    let ManifestSchema(schema) = at.client()?.call(routes::MANIFEST_SCHEMA, []).await?;
    at.out.result(&schema, format!("{schema:#}"))
}

async fn test(at: &At, tool: &str, call: TestCall) -> Result<(), Error> {
    print_tested(at, at.client()?.post(routes::TEST_CALL, [&tool], &call).await?)
}

/// Prints the judgement of a call that was not made.
pub fn print_tested(at: &At, tested: TestedCall) -> Result<(), Error> {
    at.out.json(&tested)?;
    at.out.table(["STAGE", "ANSWER", "CODE", "MEANING"], stage_rows(tested.stages))?;
    match (tested.code, tested.advice) {
        (Some(code), Some(advice)) => {
            at.out.line(format!("{} ({code}): the agent would be told: {advice}", tested.status))
        }
        _ => at.out.line(format!("{}, class {}", tested.status, tested.class.map_or("", Class::name))),
    }
}
