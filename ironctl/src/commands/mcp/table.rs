//! The table of the tools of an MCP server: class, rules, labels, and the calls that will need a person.
//!
//! Never judges a call: the host does. See [`crate::commands::tool`] for the judgement of one call.

use super::wording::{name, prose};
use crate::failure::Error;
use crate::output::Output;
use crate::output::table::Columns;
use ironclaw_operator::{Class, McpListed, McpServer, McpServerTool, OwnSource, ToolArgument};
use std::collections::BTreeMap;

/// Prints one row for each tool, and the meaning of the words.
pub fn print(out: Output, server: &McpServer) -> Result<(), Error> {
    if server.tools.is_empty() {
        return match &server.problem {
            Some(problem) => out.line(format!("its tools have no rules: {}", prose(problem))),
            None => out.line("it lists no tools"),
        };
    }
    let header = Columns::new(["TOOL", "CLASS", "ARGUMENTS", "LABELS", "A PERSON IS ASKED", "LOOSENED", "LISTING"]);
    // Without confirmed tools to compare with, each tool is new.
    let is_compared = server.tools.iter().any(|tool| tool.listed != McpListed::New);
    out.table(header, server.tools.iter().map(|tool| row(tool, is_compared)))?;
    for tool in &server.tools {
        if let Some(unfit) = &tool.unfit {
            out.line(format!("no agent can get {}: {}", name(&tool.name), prose(&unfit.words)))?;
        }
    }
    for line in server.tools.iter().filter_map(own_text) {
        out.line(line)?;
    }
    for remark in &server.remarks {
        out.line(format!("the listing is perhaps not whole: {}", prose(remark)))?;
    }
    if server.tools.iter().any(|tool| asks(tool).contains(AFTER)) {
        out.line(format!("{AFTER}: once the conversation holds text that no person typed"))?;
    }
    match server.tools.iter().filter(|tool| !tool.loosened.is_empty()).count() {
        0 => out.line("every tool has the strictest rules"),
        count => out.line(format!("{count} of {} tools are less strict: see LOOSENED", server.tools.len())),
    }?;
    match &server.problem {
        Some(problem) => out.line(format!("its listing cannot be confirmed: {}", prose(problem))),
        None => Ok(()),
    }
}

/// Returns the sentence about texts in the answers of a tool that a person calls theirs.
fn own_text(tool: &McpServerTool) -> Option<String> {
    let OwnSource { person, lost } = tool.mine.as_ref()?;
    let tool = name(&tool.name);
    Some(match lost {
        None => format!("answers of {tool} are text of {person}"),
        Some(why) => format!("answers of {tool} are no longer text of {person}: {}", prose(why)),
    })
}

fn labels(tool: &McpServerTool) -> String {
    tool.labels.iter().map(|label| label.name()).collect::<Vec<_>>().join(" ")
}

/// Prints the class, the rules and the labels of one tool.
pub fn print_one(out: Output, tool: &McpServerTool) -> Result<(), Error> {
    out.line(format!("class {}; a person is asked: {}", tool.class.map_or("", Class::name), asks(tool)))?;
    if !tool.loosened.is_empty() {
        let loosened: Vec<String> = tool.loosened.iter().map(|part| prose(part)).collect();
        out.line(format!("less strict than the strictest rules: {}", loosened.join(", ")))?;
    }
    if let Some(line) = own_text(tool) {
        out.line(line)?;
    }
    if !tool.labels.is_empty() {
        out.line(format!("labels of its results: {}", labels(tool)))?;
    }
    out.table(["ARGUMENT", "RULE"], tool.arguments.iter().map(|(argument, rule)| [name(argument), rule.words()]))
}

fn row(tool: &McpServerTool, is_compared: bool) -> [String; 7] {
    let loosened: Vec<String> = tool.loosened.iter().map(|part| prose(part)).collect();
    let loosened = if loosened.is_empty() { String::new() } else { format!("! {}", loosened.join(", ")) };
    let is_unknown = tool.unfit.is_some() && tool.listed == McpListed::New;
    let listed = if is_compared && !is_unknown { tool.listed.to_string() } else { String::new() };
    let class = if tool.unfit.is_some() { "unfit" } else { tool.class.map_or("", Class::name) }.to_owned();
    [name(&tool.name), class, rules(&tool.arguments), labels(tool), asks(tool), loosened, listed]
}

/// Returns each argument with its rule.
fn rules(rules: &BTreeMap<String, ToolArgument>) -> String {
    let rules: Vec<String> =
        rules.iter().map(|(argument, rule)| format!("{}: {}", name(argument), rule.words())).collect();
    // A plain table has one line a row, where the line feed is a space.
    rules.join(",\n")
}

/// The words for the second reason to ask.
const AFTER: &str = "after text of others";

/// Returns the calls of a tool that a person is asked about.
fn asks(tool: &McpServerTool) -> String {
    match tool.class {
        None => "cannot be called".to_owned(),
        Some(_) if tool.unfit.is_some() => "cannot be called".to_owned(),
        Some(_) if tool.always_asks => "at each call".to_owned(),
        Some(Class::Trade) => "at each call".to_owned(),
        Some(Class::Read) if has_outward(tool) => format!("for an outward value that no person typed, {AFTER}"),
        Some(Class::Read) => "no".to_owned(),
        Some(Class::Write) => format!("if the request asks for other classes; {}", always(tool)),
        Some(class @ (Class::Send | Class::Exec | Class::Ask)) => {
            format!("unless the request asks to {class}; {}", always(tool))
        }
    }
}

/// Returns when a request that asks for the class still needs a person.
fn always(tool: &McpServerTool) -> String {
    let has_inputs = tool.arguments.values().any(|argument| argument.kind.is_some());
    if has_inputs { "for a control field that no person typed".to_owned() } else { format!("always {AFTER}") }
}

fn has_outward(tool: &McpServerTool) -> bool {
    tool.arguments.values().any(|argument| argument.outward)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_operator::{ArgumentRule, InputType, McpUnfit, McpUnfitReason};

    fn tool(class: impl Into<Option<Class>>, always_asks: bool) -> McpServerTool {
        McpServerTool {
            name: "t".to_owned(),
            offered_as: None,
            description: String::new(),
            class: class.into(),
            arguments: BTreeMap::new(),
            labels: Vec::new(),
            loosened: Vec::new(),
            always_asks,
            mine: None,
            listed: McpListed::Same,
            unfit: None,
        }
    }

    #[test]
    fn each_class_has_the_calls_that_ask() {
        assert_eq!(asks(&tool(Class::Read, false)), "no");
        let argument = |rule, kind| {
            let argument = ToolArgument { rule, kind, needs: Vec::new(), by_reference: false, outward: true };
            BTreeMap::from([("query".to_owned(), argument)])
        };
        let arguments = argument(ArgumentRule::Content, None);
        assert!(asks(&McpServerTool { arguments, ..tool(Class::Read, false) }).starts_with("for an outward value"));
        assert_eq!(asks(&tool(Class::Read, true)), "at each call");
        assert_eq!(asks(&tool(Class::Trade, false)), "at each call");
        assert!(asks(&tool(Class::Write, false)).starts_with("if the request asks for other classes"));
        assert!(asks(&tool(Class::Send, false)).starts_with("unless the request asks to send; always"));
        let arguments = argument(ArgumentRule::Floor, Some(InputType::Any));
        assert!(asks(&McpServerTool { arguments, ..tool(Class::Send, false) }).ends_with("that no person typed"));
        assert!(asks(&tool(Class::Exec, false)).ends_with(AFTER));
    }

    #[test]
    fn unfit_tool_has_no_class_and_cannot_be_called() {
        let why = McpUnfit { reason: McpUnfitReason::Schema, words: "its schema is not an object".to_owned() };
        let unfit = McpServerTool { unfit: Some(why), ..tool(None, false) };
        let row = row(&unfit, true);
        assert_eq!((row[1].as_str(), row[4].as_str()), ("unfit", "cannot be called"));
    }

    #[test]
    fn loosened_part_is_marked() {
        let loose = McpServerTool { loosened: vec!["class read".to_owned()], ..tool(Class::Read, false) };
        let strict = tool(Class::Send, false);
        assert_eq!((row(&loose, true)[5].as_str(), row(&strict, true)[5].as_str()), ("! class read", ""));
        assert_eq!((row(&strict, true)[6].as_str(), row(&strict, false)[6].as_str()), ("same", ""));
    }
}
