//! `ironctl agent set`: sets the guard mode, the model endpoint, the ceilings, the receiver policy, the persona and the tools of an agent.
//!
//! Settings are applied at once if the policy lets this person decide alone; a persona and tools need the answer of a person, or
//! `--yes`. See [`crate::commands::propose`].

use crate::at::At;
use crate::client::Client;
use crate::commands::change;
use crate::commands::propose;
use crate::commands::review;
use crate::commands::usage;
use crate::failure::Error;
use crate::output::Output;
use ironclaw_operator::{AgentBudget, AgentMode, AgentModel, ChangeKind, Waiting, routes};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The settings of `agent set`; at least one is required.
#[derive(Debug, Default, clap::Args)]
#[group(required = true, multiple = true)]
pub struct Changes {
    /// Guard mode: enforce, or with a lowered guard dangerous_warn or dangerous_off
    #[arg(long)]
    mode: Option<String>,
    /// Name of the model endpoint; `default` follows the default endpoint
    #[arg(long)]
    model: Option<String>,
    /// Ceiling of tokens for a day (UTC), or none to use the settings
    #[arg(long, value_name = "NUMBER", value_parser = usage::tokens)]
    tokens_per_day: Option<u64>,
    /// Ceiling of cost for a day (UTC) in the currency of the prices, e.g. 2.50, or none to use the settings
    #[arg(long, value_name = "AMOUNT", value_parser = usage::sum)]
    cost_per_day: Option<u64>,
    /// Text about the agent for its model, @FILE, or - for stdin; an empty text removes it
    #[arg(long, value_name = "TEXT|@FILE|-")]
    persona: Option<String>,
    /// Classes that messages of an author may ask for, such as guest=read,ask; AUTHOR=default follows the host; repeatable
    #[arg(long, value_name = "AUTHOR=CLASSES", value_parser = asked)]
    may: Vec<Asked>,
    /// Classes of messages without a word for one, such as person=read; repeatable
    #[arg(long, value_name = "AUTHOR=CLASSES", value_parser = asked)]
    unasked: Vec<Asked>,
    /// Tool to add to its tools; repeatable
    #[arg(long = "add-tool", value_name = "TOOL")]
    add_tools: Vec<String>,
    /// Tool to remove from its tools; repeatable
    #[arg(long = "remove-tool", value_name = "TOOL")]
    remove_tools: Vec<String>,
}

impl Changes {
    /// Returns the change to another model endpoint.
    pub fn with_model(name: String) -> Self {
        Self { model: Some(name), ..Self::default() }
    }

    /// Returns the settings as the payload of a change of kind `settings`.
    fn settings(&self) -> Map<String, Value> {
        let mut payload = Map::new();
        let mut set = |field: &str, value: Option<Value>| value.map(|value| payload.insert(field.to_owned(), value));
        set("mode", self.mode.clone().map(Value::from));
        set("model", self.model.clone().map(Value::from));
        set("tokens_per_day", self.tokens_per_day.map(Value::from));
        set("cost_per_day_micros", self.cost_per_day.map(Value::from));
        payload
    }

    /// Returns the policy about authors as the payload of a change of kind `settings`.
    fn receiver(&self) -> Option<Value> {
        let mut receiver: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
        for (field, all) in [("may", &self.may), ("unasked", &self.unasked)] {
            for Asked { author, classes } in all {
                let entry = receiver.entry(author).or_default();
                entry.extend(classes.as_ref().map(|classes| (field.to_owned(), json!(classes))));
            }
        }
        (!receiver.is_empty()).then(|| json!({ "receiver": receiver }))
    }

    /// Returns the difference of tools as the payload of a change of kind `enabled_tools`.
    fn tools(&self) -> Option<Value> {
        let named = [("add", &self.add_tools), ("remove", &self.remove_tools)];
        let payload: Map<String, Value> = named
            .into_iter()
            .filter(|(_, tools)| !tools.is_empty())
            .map(|(field, tools)| (field.to_owned(), json!(tools)))
            .collect();
        (!payload.is_empty()).then_some(Value::Object(payload))
    }
}

/// The classes for one kind of author; none for the default of the host.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Asked {
    author: String,
    classes: Option<Vec<String>>,
}

/// Reads `AUTHOR=CLASSES`: classes with commas between, `none` or `default`.
fn asked(text: &str) -> Result<Asked, String> {
    let (author, classes) = text.split_once('=').ok_or("write AUTHOR=CLASSES, such as guest=read,ask")?;
    let classes = match classes {
        "default" => None,
        "none" => Some(Vec::new()),
        "" => return Err("name the classes, or write none or default".to_owned()),
        classes => Some(classes.split(',').map(|class| class.trim().to_owned()).collect()),
    };
    Ok(Asked { author: author.to_owned(), classes })
}

/// Returns the text of a persona: from `@FILE`, from stdin for `-`, else the argument itself.
pub fn persona(given: &str) -> Result<String, Error> {
    let text = change::read_given(given)?;
    let is_read = given == "-" || given.starts_with('@');
    Ok(if is_read { text.trim_end_matches('\n').to_owned() } else { text })
}

/// Sets each part that is named: the settings, then the persona, then the tools. A part that waits does not hold up the others.
pub async fn run(at: &At, client: &Client, agent: &str, changes: Changes, yes: bool) -> Result<(), Error> {
    let persona = changes.persona.as_deref().map(persona).transpose()?;
    let tools = changes.tools();
    let mut report = Report::default();
    if !changes.settings().is_empty() {
        let set = settings(at, client, agent, &changes, yes).await;
        report.add(at.out, set)?;
    }
    let payloads = [
        (ChangeKind::Settings, changes.receiver()),
        (ChangeKind::Persona, persona.map(|text| json!({ "instructions": text }))),
        (ChangeKind::EnabledTools, tools),
    ];
    for (kind, payload) in payloads {
        let Some(payload) = payload else { continue };
        let decided = propose::decide(at, client, kind, Some(agent), payload, yes).await;
        report.add(at.out, decided.map(|change| Part::Changed(change.map(Box::new))))?;
    }
    report.finish(at.out)
}

/// A part of the command that is done.
enum Part {
    /// The settings with their new values.
    Set(Map<String, Value>),
    /// A decided change; none if nothing was to change.
    Changed(Option<Box<Waiting>>),
}

/// The result of the parts of the command.
#[derive(Default)]
struct Report {
    set: Map<String, Value>,
    /// There as soon as a part is a change.
    changes: Option<Vec<Waiting>>,
    /// The failure of a part that waits.
    waits: Option<Error>,
}

impl Report {
    /// Adds a part. A failure other than a change that waits ends the command.
    fn add(&mut self, out: Output, part: Result<Part, Error>) -> Result<(), Error> {
        match part {
            Ok(Part::Set(set)) => self.set.extend(set),
            Ok(Part::Changed(change)) => self.changes.get_or_insert_default().extend(change.map(|change| *change)),
            Err(error) if propose::is_pending(&error) => {
                if let Some(earlier) = self.waits.replace(error) {
                    out.failure(&earlier);
                }
            }
            Err(error) => {
                self.print(out)?;
                if let Some(earlier) = self.waits.take() {
                    out.failure(&earlier);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    fn finish(mut self, out: Output) -> Result<(), Error> {
        self.print(out)?;
        self.waits.take().map_or(Ok(()), Err)
    }

    /// Prints the parts that are done for a script.
    fn print(&self, out: Output) -> Result<(), Error> {
        let mut document = self.set.clone();
        if let Some(changes) = &self.changes {
            document.insert("changes".to_owned(), json!(changes));
        }
        if document.is_empty() { Ok(()) } else { out.json(&document) }
    }
}

/// Sets at once if the policy lets this person decide alone; submits the change otherwise. On a terminal, shows the review page
/// and asks first if the change lowers the guard or raises a ceiling.
async fn settings(at: &At, client: &Client, agent: &str, changes: &Changes, yes: bool) -> Result<Part, Error> {
    let (kind, payload) = (ChangeKind::Settings, Value::Object(changes.settings()));
    if !yes && review::is_possible(at.out) && lowers(client, agent, changes).await? {
        let decided = propose::decide(at, client, kind, Some(agent), payload, yes).await;
        return decided.map(|change| Part::Changed(change.map(Box::new)));
    }
    match set_at_once(at.out, client, agent, changes).await {
        Ok(set) => Ok(Part::Set(set)),
        Err(refused) => Err(propose::instead(at, client, refused, kind, Some(agent), payload).await),
    }
}

/// Returns whether the settings lower the guard, or raise or remove a ceiling.
async fn lowers(client: &Client, agent: &str, changes: &Changes) -> Result<bool, Error> {
    if changes.mode.as_deref().is_some_and(|mode| mode != "enforce") {
        return Ok(true);
    }
    if changes.tokens_per_day.is_none() && changes.cost_per_day.is_none() {
        return Ok(false);
    }
    let now = client.call(routes::BUDGET, [&agent]).await?;
    let raises = |now: Option<u64>, then: Option<u64>| match (now, then) {
        (_, None) | (None, Some(_)) => false,
        (Some(now), Some(then)) => then == 0 || then > now,
    };
    Ok(raises(now.tokens_per_day, changes.tokens_per_day) || raises(now.cost_per_day_micros, changes.cost_per_day))
}

async fn set_at_once(
    out: Output,
    client: &Client,
    agent: &str,
    changes: &Changes,
) -> Result<Map<String, Value>, Error> {
    let mut report = Map::new();
    let mut add = |set: Value| report.extend(set.as_object().cloned().into_iter().flatten());
    let concerns_costs = changes.model.is_some() || changes.cost_per_day.is_some();
    if let Some(model) = &changes.model {
        let model = client.post(routes::SET_MODEL, [&agent], &AgentModel { model: model.clone() }).await?;
        out.line(format!("set agent {agent} to model endpoint {}", model.model))?;
        add(json!(model));
    }
    if let Some(mode) = &changes.mode {
        let mode = client.post(routes::SET_MODE, [&agent], &AgentMode { mode: mode.clone() }).await?;
        add(json!(mode));
        out.line(format!("set agent {agent} to mode {}", mode.mode))?;
        if mode.mode != "enforce" {
            out.remark(format!("the guard is lowered; raise it: ironctl agent set {agent} --mode enforce"))?;
        }
    }
    let wanted = AgentBudget { tokens_per_day: changes.tokens_per_day, cost_per_day_micros: changes.cost_per_day };
    if wanted != AgentBudget::default() {
        let budget = client.post(routes::SET_BUDGET, [&agent], &wanted).await?;
        add(json!(budget));
        let tokens = budget.tokens_per_day.map_or_else(|| "none".to_owned(), |tokens| tokens.to_string());
        let cost = budget.cost_per_day_micros.map_or_else(|| "none".to_owned(), usage::money);
        out.line(format!("set the ceilings of agent {agent}: tokens a day {tokens}, cost a day {cost}"))?;
    }
    if concerns_costs {
        usage::remark_unpriced(out, &usage::unpriced(client, agent).await?)?;
    }
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn persona_is_a_text_or_the_content_of_a_file() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("persona.txt");
        std::fs::write(&path, "Be kind.\nBe brief.\n\n").expect("written");
        assert_eq!(persona(&format!("@{}", path.display())).expect("read"), "Be kind.\nBe brief.");
        assert_eq!(persona("me@home\n").expect("a text"), "me@home\n");
        assert_eq!(persona("").expect("none"), "");
        let missing = persona("@/nonexistent/file").expect_err("no file").report().expect("reported");
        assert_eq!(missing.error.code, "file_refused");
    }

    #[test]
    fn policy_about_authors_is_one_payload() {
        let read = |text: &str| asked(text).expect(text);
        let changes = |may: &[&str], unasked: &[&str]| Changes {
            may: may.iter().map(|text| read(text)).collect(),
            unasked: unasked.iter().map(|text| read(text)).collect(),
            ..Changes::default()
        };
        assert_eq!(
            changes(&["guest=read, ask", "schedule=default"], &["guest=none"]).receiver(),
            Some(json!({ "receiver": { "guest": { "may": ["read", "ask"], "unasked": [] }, "schedule": {} } }))
        );
        assert_eq!(changes(&[], &[]).receiver(), None);
        for wrong in ["guest", "guest="] {
            assert!(asked(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn tools_are_submitted_as_a_difference() {
        let changes = |add: &[&str], remove: &[&str]| Changes {
            add_tools: add.iter().map(|tool| (*tool).to_owned()).collect(),
            remove_tools: remove.iter().map(|tool| (*tool).to_owned()).collect(),
            ..Changes::default()
        };
        assert_eq!(changes(&["a", "b"], &[]).tools(), Some(json!({ "add": ["a", "b"] })));
        assert_eq!(changes(&["a"], &["b"]).tools(), Some(json!({ "add": ["a"], "remove": ["b"] })));
        assert_eq!(changes(&[], &[]).tools(), None);
        assert!(changes(&["a"], &[]).settings().is_empty());
    }
}
