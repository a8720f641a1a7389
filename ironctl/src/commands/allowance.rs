//! `ironctl allowance`: adds, lists, shows and removes counted repetitions of calls that would need you.
//!
//! Adds one only after its page was shown, with a question or `--yes`. See [`crate::commands::inbox`] for single calls.

use super::named_agent::NamedAgent;
use crate::at::At;
use crate::clock;
use crate::failure::Error;
use crate::output::joined;
use crate::own_command::own_command;
use clap::Subcommand;
use ironclaw_operator::{Allowance, AllowanceDraft, AllowanceOffer, NewAllowance, routes};
use ironclaw_text::shell::quoted;
use serde_json::{Map, Value, json};

/// The verbs of `ironctl allowance`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Let an agent repeat a call for you without a question
    Add(Add),
    /// List your allowances; for an owner or admin those of everyone
    #[command(after_help = "Example:\n  ironctl allowance list\n  ironctl allowance list assistant")]
    List(NamedAgent),
    /// List the calls that you approved again and again, each with the command that adds an allowance
    #[command(after_help = "Example:\n  ironctl allowance offers")]
    Offers,
    /// Show an allowance
    #[command(after_help = "Example:\n  ironctl allowance show 3")]
    Show {
        /// Number of the allowance
        id: String,
    },
    /// Remove an allowance: the calls need you again
    #[command(after_help = "Example:\n  ironctl allowance remove 3")]
    Remove {
        /// Number of the allowance
        id: String,
    },
}

/// Options of `ironctl allowance add`.
#[derive(Debug, clap::Args)]
#[command(
    override_usage = "ironctl allowance add [OPTIONS] --field <NAME=VALUE> --count <COUNT>\n                             --until <UNTIL> <AGENT> <TOOL>",
    after_help = "Example:\n  ironctl allowance add assistant http_fetch --field method=POST --field url=https://api.example/notes --field headers.content-type=text/plain --count 5 --until 7d"
)]
pub struct Add {
    /// Name or id of the agent
    agent: String,
    /// Name of the tool
    tool: String,
    /// Value of a control field, with `.` for a field inside; repeatable. NAME:=JSON gives any JSON. A control field without a value is
    /// left out by the call
    #[arg(long, value_name = "NAME=VALUE", required = true)]
    field: Vec<String>,
    /// Number of calls, 1 to 20
    #[arg(long)]
    count: u32,
    /// End, at most 30 days ahead: such as 7d, or RFC 3339
    #[arg(long)]
    until: String,
    /// Add it without a question
    #[arg(long)]
    yes: bool,
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    match action {
        Action::Add(args) => add(at, args).await,
        Action::List(of) => list(at, at.client()?.query(routes::ALLOWANCES, [], json!({ "agent": of.name() })).await?),
        Action::Offers => {
            let offers = at.client()?.call(routes::ALLOWANCE_OFFERS, []).await?;
            at.out.json(&offers)?;
            match offers.is_empty() {
                true => at.out.line("no offers: approve equal calls in three messages on three days"),
                false => print_offers(at, &offers),
            }
        }
        Action::Show { id } => {
            let found = at.client()?.call(routes::ALLOWANCE, [&id]).await?;
            at.out.json(&found)?;
            print(at, &found)
        }
        Action::Remove { id } => {
            let removed = at.client()?.call(routes::REMOVE_ALLOWANCE, [&id]).await?;
            at.out.result(&removed, format!("removed allowance {}", removed.id))
        }
    }
}

async fn add(at: &At, args: Add) -> Result<(), Error> {
    let Add { agent, tool, field, count, until, yes } = args;
    let client = at.client()?;
    let mut draft = AllowanceDraft { agent, tool, fields: fields(&field)?, count, until };
    let page = client.post(routes::REVIEW_ALLOWANCE, [], &draft).await?;
    at.out.check_exact(&page.shown)?;
    at.out.exact(&page.shown)?;
    at.out.confirm("add this allowance", yes)?;
    // The end on the page, so that the page stays the same while the person reads.
    draft.until = page.until;
    let added = client.post(routes::ADD_ALLOWANCE, [], &NewAllowance { draft, shown: page.shown_digest }).await?;
    at.out.result(&added, format!("added allowance {}; `ironctl allowance remove {}` ends it", added.id, added.id))
}

/// Reads the fixed fields, each `NAME=VALUE` with a text or `NAME:=JSON`; a name such as `headers.accept` is a field inside of another one.
fn fields(given: &[String]) -> Result<Value, Error> {
    let mut all = Map::new();
    for field in given {
        let refuse = |why: &str| {
            Err(Error::usage(
                format!("--field {field:?} {why}"),
                "write --field NAME=VALUE, or NAME:=JSON for a value that is no text",
            ))
        };
        let Some((path, value)) = field.split_once('=') else { return refuse("has no value") };
        let (path, value) = match path.strip_suffix(':') {
            Some(path) => match serde_json::from_str(value) {
                Ok(value) => (path, value),
                Err(_) => return refuse("has no JSON behind :="),
            },
            None => (path, Value::from(value)),
        };
        let names: Vec<&str> = path.split('.').collect();
        let Some((last, outer)) = names.split_last().filter(|_| !names.contains(&"")) else {
            return refuse("has no name");
        };
        let mut place = &mut all;
        for name in outer {
            let inner = place.entry((*name).to_owned()).or_insert_with(|| Value::Object(Map::new()));
            let Value::Object(inner) = inner else { return refuse("is inside of a field that has a value") };
            place = inner;
        }
        if place.insert((*last).to_owned(), value).is_some() {
            return refuse("is given twice");
        }
    }
    Ok(Value::Object(all))
}

/// Prints offers, each with the command that shows its page.
pub fn print_offers(at: &At, offers: &[AllowanceOffer]) -> Result<(), Error> {
    for AllowanceOffer { draft, messages, days, since, compared, unread, permitted } in offers {
        let since = since.as_deref().map_or_else(String::new, |at| format!(" since {}", clock::date_and_time(at)));
        at.out.line(format!(
            "you approved equal calls of {} by {} in {messages} messages on {days} days",
            draft.tool, draft.agent
        ))?;
        at.out.line(format!(
            "  compared: {compared} requests{since}; not readable: {unread}; permitted: {permitted}; rejected: 0"
        ))?;
        match command(at, draft) {
            Some(command) => {
                at.out.line(format!("  to permit {} more within {}: {command}", draft.count, draft.until))?
            }
            None => {
                at.out.line("  `ironctl --json allowance offers` has its fields, whose names no option can hold")?
            }
        }
    }
    Ok(())
}

/// Returns the command that adds this allowance.
fn command(at: &At, draft: &AllowanceDraft) -> Option<String> {
    let AllowanceDraft { agent, tool, fields, count, until } = draft;
    let mut words = vec![own_command(&at.home), "allowance".to_owned(), "add".to_owned(), agent.clone(), tool.clone()];
    let mut given = Vec::new();
    put_fields("", fields, &mut given)?;
    words.extend(given.iter().flat_map(|field| ["--field".to_owned(), quoted(field).into_owned()]));
    words.extend(["--count".to_owned(), count.to_string(), "--until".to_owned(), until.clone()]);
    Some(words.join(" "))
}

/// Adds the fields as [`fields`] reads them; `None` if a name has a character with a meaning there.
fn put_fields(path: &str, value: &Value, given: &mut Vec<String>) -> Option<()> {
    match value {
        Value::Object(inner) if !inner.is_empty() => inner.iter().try_for_each(|(name, value)| {
            if name.is_empty() || name.contains(['.', '=']) || name.ends_with(':') {
                return None;
            }
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            put_fields(&path, value, given)
        }),
        Value::String(text) => {
            given.push(format!("{path}={text}"));
            Some(())
        }
        Value::Object(_) | Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {
            given.push(format!("{path}:={value}"));
            Some(())
        }
    }
}

fn list(at: &At, all: Vec<Allowance>) -> Result<(), Error> {
    let row = |one: Allowance| {
        let uses = format!("{}/{}", one.used, one.count);
        [
            one.id.to_string(),
            one.status.to_string(),
            one.person.clone(),
            one.agent.clone(),
            tools(&one),
            uses,
            match one.until_answer_to {
                Some(_) => "the answer".to_owned(),
                None => clock::to_the_minute(&one.expires_at),
            },
        ]
    };
    at.out.list(all, "no allowances", ["ID", "STATUS", "PERSON", "AGENT", "TOOL", "USED", "UNTIL"], row)
}

/// Returns the names of the tools of an allowance.
pub fn tools(one: &Allowance) -> String {
    joined(one.tools.keys(), ", ")
}

fn print(at: &At, one: &Allowance) -> Result<(), Error> {
    let Allowance { id, status, person, agent, count, used, .. } = one;
    let tools = tools(one);
    at.out.line(format!("allowance {id} ({status}): {tools} by {agent} for {person}, {used} of {count} calls"))?;
    if let Some(message) = one.until_answer_to {
        at.out.line(format!("until the answer to {message}"))?;
    }
    at.out.line(format!("until {}", clock::date_and_time(&one.expires_at)))?;
    for (name, value) in one.fields.as_object().into_iter().flatten() {
        at.out.line(format!("  {name}: {value}"))?;
    }
    for name in &one.absent {
        at.out.line(format!("  {name}: left out"))?;
    }
    for name in &one.anything {
        at.out.line(format!("  {name}: anything"))?;
    }
    at.out.line(format!("lifts {}", joined(&one.lifts, ", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(given: &[&str]) -> Result<Value, Error> {
        fields(&given.iter().map(|&field| field.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn fields_of_an_offer_are_options_that_are_read_back() {
        let wanted = json!({
            "method": "POST", "headers": { "content-type": "text/plain; a='b'" }, "amount": 5, "note": "5", "urgent": false,
            "list": [1, "two"], "none": null, "empty": {}, "inner": { "depth": 1.5 },
        });
        let mut given = Vec::new();
        put_fields("", &wanted, &mut given).expect("options");
        assert_eq!(fields(&given).expect("fields"), wanted);
        for name in ["a.b", "a=b", "a:", ""] {
            assert_eq!(put_fields("", &json!({ name: "x" }), &mut given), None, "{name}");
        }
    }

    #[test]
    fn nested_fields_are_read_and_a_second_value_is_refused() {
        let read_one = read(&["method=POST", "headers.content-type=text/plain", "headers.accept=a=b"]).expect("fields");
        let wanted = json!({ "method": "POST", "headers": { "content-type": "text/plain", "accept": "a=b" } });
        assert_eq!(read_one, wanted);
        for bad in [
            &["method"][..],
            &["=x"],
            &["headers.=x"],
            &["a=1", "a=2"],
            &["a=1", "a.b=2"],
            &["a.b=1", "a=2"],
            &["a:=x"],
            &[":=5"],
        ] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}
