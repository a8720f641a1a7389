//! The sentences and the table of a confirmation: each tool with its class, the rules of its arguments, and why a rule is looser.
//!
//! The table has the whole manifests, so the fields of the change are details.

use crate::gateway::kinds::kind::Page;
use crate::gateway::kinds::mounts::put_known_since;
use crate::gateway::review_page::effects::Effects;
use ironclaw_contract::seam::change::McpConfirm;
use ironclaw_text::excerpt::start;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The meaning of the words in the rows.
const LEGEND: &str = "control: typed or approved; content: what is sent; free: any value; leaves: leaves this machine.";

/// Columns of the row of a tool.
const ROW_COLUMNS: usize = 66;

/// Characters of a description that a row has at least.
const DOES_CHARACTERS_MIN: usize = 16;

impl Page for McpConfirm {
    fn effects(&self, _agent: &str, page: &mut Effects<'_>) {
        let tools = page.facts["tools"].as_array().map(Vec::as_slice).unwrap_or_default();
        put_summary(page, &self.server, tools.len());
        put_warnings(page, tools);
        let mut reasons = Reasons::default();
        if !tools.is_empty() {
            page.section("TOOLS AND ARGUMENTS");
            page.row(0, LEGEND.to_owned());
            let (plain, others): (Vec<&Value>, Vec<&Value>) = tools.iter().partition(|tool| is_plain(page.facts, tool));
            put_plain(page, &plain, &mut reasons);
            others.into_iter().for_each(|tool| put_tool(page, tool, &mut reasons));
        }
        if !reasons.0.is_empty() {
            page.section("LOOSER THAN THE STRICTEST RULES, BECAUSE");
        }
        for (number, because) in (1..).zip(&reasons.0) {
            page.row(0, format!("[{number}] {because}"));
        }
    }

    fn is_told(&self) -> bool {
        true
    }

    /// Leaves out what the sentences and the table have.
    fn explained<'f>(&self, facts: &'f Value) -> Cow<'f, Value> {
        let mut rest = facts.clone();
        if let Some(fields) = rest.as_object_mut() {
            let told = ["at", "agents", "gone", "unfit", "remarks", "held", "has_network", "template", "looks_like"];
            fields.retain(|name, _| !told.contains(&name.as_str()));
        }
        let tools = rest.get_mut("tools").and_then(Value::as_array_mut);
        for tool in tools.into_iter().flatten().filter_map(Value::as_object_mut) {
            tool.retain(|name, _| ["name", "offered_as", "description", "listed"].contains(&name.as_str()));
        }
        Cow::Owned(rest)
    }
}

/// Writes what the change does, and what stays.
fn put_summary(page: &mut Effects<'_>, server: &str, count: usize) {
    let (server, at) = (page.show(server), page.show(text_of(&page.facts["at"])));
    let held = Effects::texts(&page.facts["held"]);
    if count > 0 {
        let tools = counted(count);
        page.add(format!("Accept {tools} of MCP server {server} ({at}) with the rules below."));
    } else {
        page.add(format!("Accept the listing of MCP server {server} ({at}), with the rules of its tools as they are."));
    }
    if !held.is_empty() {
        page.add(format!("Unchanged, with the rules that people confirmed: {}.", page.list(held)));
    }
    if let Some(template) = page.facts["template"].as_str() {
        page.add(format!("By its package it is {}, for which the host has a template.", page.show(template)));
    }
    if page.facts["has_network"] == false {
        page.add("The server reaches no network: no value of a call leaves this machine.".to_owned());
    }
    for tool in page.facts["unfit"].as_array().into_iter().flatten() {
        let (name, why) = (text_of(&tool["name"]), text_of(&tool["why"]["words"]));
        page.add(format!("NOT accepted is {}, which no agent can get: {}.", page.show(name), page.show(why)));
    }
    for remark in Effects::texts(&page.facts["remarks"]) {
        page.add(format!("The listing is perhaps not whole: {}.", page.show(remark)));
    }
    let gone = Effects::texts(&page.facts["gone"]);
    if !gone.is_empty() {
        page.add(format!("The server no longer lists: {}.", page.list(gone)));
    }
    page.add("A tool that the server changes later is refused until people confirm it.".to_owned());
    if Effects::texts(&page.facts["agents"]).is_empty() {
        page.add("No agent can use it yet. That needs another change.".to_owned());
    }
}

fn put_warnings(page: &mut Effects<'_>, tools: &[Value]) {
    let looser = tools.iter().filter(|tool| has_looser(tool)).count();
    if looser > 0 {
        page.warn(format!("LOOSER than the strictest rules: {}. [1] marks a reason below.", counted(looser)));
    }
    if let Some(other) = page.facts["looks_like"].as_str() {
        let other = page.show(other);
        page.warn(format!("It LOOKS LIKE {other} and is NOT {other}: the host proposes the strictest rules."));
    }
    for tool in tools.iter().filter(|tool| tool["mine"].is_array()) {
        let (name, paths) = (page.show(text_of(&tool["name"])), page.list(Effects::texts(&tool["mine"])));
        page.warn(format!(
            "Text of {name} at {paths} is YOUR OWN text. If a stranger can put text there, such as a received mail, a comment or a shared \
             note, it can STEER the agent without a question."
        ));
    }
    put_known_since(page);
    let listed = |word: &str| -> Vec<&str> {
        tools.iter().filter(|tool| tool["listed"] == word).map(|tool| text_of(&tool["name"])).collect()
    };
    let (changed, new) = (listed("changed"), listed("new"));
    if !changed.is_empty() {
        page.warn(format!("CHANGED since people confirmed them: {}.", page.list(changed)));
    }
    if !new.is_empty() && !page.before.is_null() {
        page.warn(format!("NEW since then: {}.", page.list(new)));
    }
    let agents = Effects::texts(&page.facts["agents"]);
    if !agents.is_empty() {
        page.warn(format!("These agents may call tools of it at once: {}.", page.list(agents)));
    }
    page.warn("The SERVER wrote what is in quotes; a model reads its descriptions.".to_owned());
}

/// Returns a number of tools in words.
fn counted(tools: usize) -> String {
    if tools == 1 { "1 tool".to_owned() } else { format!("{tools} tools") }
}

fn has_looser(tool: &Value) -> bool {
    let looser = &tool["looser"];
    let has_any = |parts: &Value| parts.as_object().is_some_and(|parts| !parts.is_empty());
    looser["class"].is_string() || has_any(&looser["rules"]) || has_any(&looser["others"])
}

/// The reasons of looser rules, numbered from 1.
#[derive(Default)]
struct Reasons(Vec<String>);

impl Reasons {
    /// Returns the mark of a reason, with a space before it; empty if the part is not looser, so that it has none.
    fn mark(&mut self, because: &Value) -> String {
        because.as_str().map(|because| self.number(because)).unwrap_or_default()
    }

    fn number(&mut self, because: &str) -> String {
        let at = self.0.iter().position(|known| known == because).unwrap_or_else(|| {
            self.0.push(because.to_owned());
            self.0.len() - 1
        });
        format!(" [{}]", at + 1)
    }
}

fn put_tool(page: &mut Effects<'_>, tool: &Value, reasons: &mut Reasons) {
    let class = text_of(&tool["class"]);
    let asks = if tool["always_ask"] == true { ", asks at each call" } else { "" };
    let also = Effects::texts(&tool["also"]);
    let also = if also.is_empty() { String::new() } else { format!(" and {}", also.join(", ")) };
    let mark = reasons.mark(&tool["looser"]["class"]);
    let does = tool["effect"].as_str().unwrap_or_else(|| text_of(&tool["description"]));
    let row = format!("{}: {class}{also}{mark}{asks}.", page.show(text_of(&tool["name"])));
    let room = ROW_COLUMNS.saturating_sub(row.chars().count()).max(DOES_CHARACTERS_MIN);
    let does = if does.is_empty() { String::new() } else { format!(" {}", brief(page, does, room)) };
    page.row(0, row + &does);
    put_rules(page, tool, reasons);
    put_other_looser_parts(page, tool, reasons);
}

/// Returns whether a tool of a template only reads, and takes any value without sending it from this machine.
fn is_plain(facts: &Value, tool: &Value) -> bool {
    let mut words = tool["arguments"].as_object().into_iter().flatten().map(|(_, words)| text_of(words));
    let is_read = tool["class"] == "read" && tool["always_ask"] == false && tool["also"].is_null();
    facts["template"].is_string() && is_read && words.all(|words| words == "free")
}

/// Writes the tools of a template that only read, in one row for each reason.
fn put_plain(page: &mut Effects<'_>, tools: &[&Value], reasons: &mut Reasons) {
    let mut by_mark: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for tool in tools {
        by_mark.entry(reasons.mark(&tool["looser"]["class"])).or_default().push(text_of(&tool["name"]));
    }
    for (mark, names) in by_mark {
        page.row(0, format!("read{mark}, with free arguments that stay here: {}.", page.list(names)));
    }
}

/// Writes the arguments, by their rules.
fn put_rules(page: &mut Effects<'_>, tool: &Value, reasons: &mut Reasons) {
    let mut by_rule: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (name, words) in tool["arguments"].as_object().into_iter().flatten() {
        let mark = reasons.mark(&tool["looser"]["rules"][name]);
        by_rule.entry(format!("{}{mark}", text_of(words))).or_default().push(name);
    }
    let rules: Vec<String> =
        by_rule.into_iter().map(|(words, names)| format!("{words}: {}", page.list(names))).collect();
    if !rules.is_empty() {
        page.row(1, rules.join("; "));
    }
}

/// Writes the looser parts beside the class and the rules.
fn put_other_looser_parts(page: &mut Effects<'_>, tool: &Value, reasons: &mut Reasons) {
    for (part, because) in tool["looser"]["others"].as_object().into_iter().flatten() {
        page.row(1, format!("looser{}: {}", reasons.mark(because), page.show(part)));
    }
}

/// Returns the begin of a description in quotes, with a mark if it has more.
fn brief(page: &Effects<'_>, description: &str, characters_max: usize) -> String {
    let line = description.trim().lines().next().unwrap_or_default();
    let sentence = line.split_once(". ").map_or(line, |(first, _)| first);
    let shown = start(sentence, characters_max).trim_end();
    let more = if shown == description { "" } else { " …" };
    format!("{}{more}", page.show(shown))
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
