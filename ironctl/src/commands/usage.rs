//! `ironctl usage`: shows the usage of models, and the rest below each ceiling.
//!
//! Never converts currencies: all prices must be in one. See [`crate::commands::agent`] for the ceilings of one agent.

use crate::at::At;
use crate::client::Client;
use crate::clock;
use crate::failure::Error;
use crate::output::Output;
use ironclaw_operator::{Model, ModelKind, Usage, UsageRow, routes};
use serde_json::json;

/// Days that are shown unless the caller names another number.
const DAYS: u32 = 7;

/// Options of `ironctl usage`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ironctl usage\n  ironctl usage --days 30 --agent assistant --json")]
pub struct Args {
    /// Number of days (UTC), including today
    #[arg(long, value_name = "NUMBER", default_value_t = DAYS)]
    days: u32,
    /// Name or id of an agent
    #[arg(long)]
    agent: Option<String>,
    /// Id of a session
    #[arg(long)]
    session: Option<String>,
    /// Show a line for each session
    #[arg(long)]
    by_session: bool,
}

/// Prints the usage and the ceilings.
pub async fn run(at: &At, args: &Args) -> Result<(), Error> {
    let query = json!({ "days": args.days, "agent": args.agent, "session": args.session });
    let usage = at.client()?.query(routes::USAGE, [], query).await?;
    at.out.json(&usage)?;
    print(at.out, usage, args.by_session || args.session.is_some())
}

/// Prints the usage of one agent in the days of the default.
pub async fn print_of_agent(out: Output, client: &Client, agent: &str) -> Result<(), Error> {
    print(out, client.query(routes::USAGE, [], json!({ "days": DAYS, "agent": agent })).await?, false)
}

fn print(out: Output, usage: Usage, by_session: bool) -> Result<(), Error> {
    let Usage { rows, more, ceilings } = usage;
    if more {
        out.remark("the usage of earlier days is left out: use --days, --agent or --session")?;
    }
    if rows.is_empty() {
        out.line("no model requests in this time")?;
    } else if by_session {
        let lines = rows.iter().map(|row| {
            let [requests, input, output, cost] = amounts(&[row]);
            [row.day.clone(), row.agent.clone(), row.session_id.to_string(), model(row), requests, input, output, cost]
        });
        let [requests, input, output, cost] = amounts(&rows.iter().collect::<Vec<_>>());
        let none = String::new;
        let total = ["all".to_owned(), none(), none(), none(), requests, input, output, cost];
        let header = ["DAY", "AGENT", "SESSION", "MODEL", "REQUESTS", "IN", "OUT", "COST"];
        out.table(header, lines.chain(std::iter::once(total)).collect::<Vec<_>>())?;
    } else {
        let lines = sums(&rows).into_iter().map(|([day, agent, model], rows)| {
            let [requests, input, output, cost] = amounts(&rows);
            [day, agent, model, requests, input, output, cost]
        });
        let [requests, input, output, cost] = amounts(&rows.iter().collect::<Vec<_>>());
        let total = ["all".to_owned(), String::new(), String::new(), requests, input, output, cost];
        let header = ["DAY", "AGENT", "MODEL", "REQUESTS", "IN", "OUT", "COST"];
        out.table(header, lines.chain(std::iter::once(total)).collect::<Vec<_>>())?;
    }
    if ceilings.is_empty() {
        return out
            .remark("no ceilings to show; an admin sets them: `[budget]` in config.toml, `ironctl agent set NAME --tokens-per-day N`");
    }
    let lines = ceilings.into_iter().map(|ceiling| {
        let show = |amount| if ceiling.name.is_cost() { money(amount) } else { amount.to_string() };
        [
            ceiling.name.to_string(),
            ceiling.of.clone().unwrap_or_else(|| "this host".to_owned()),
            show(ceiling.limit),
            show(ceiling.used),
            show(ceiling.left),
            ceiling.until.as_deref().map(clock::date_and_time).unwrap_or_default(),
        ]
    });
    out.table(["CEILING", "OF", "LIMIT", "USED", "LEFT", "UNTIL"], lines.collect::<Vec<_>>())
}

/// Returns the rows of each day, agent and model, in the order of the rows.
fn sums(rows: &[UsageRow]) -> Vec<([String; 3], Vec<&UsageRow>)> {
    let mut sums: Vec<([String; 3], Vec<&UsageRow>)> = Vec::new();
    for row in rows {
        let of = [row.day.clone(), row.agent.clone(), model(row)];
        match sums.iter_mut().find(|(other, _)| *other == of) {
            Some((_, rows)) => rows.push(row),
            None => sums.push((of, vec![row])),
        }
    }
    sums
}

/// Returns the requests, the tokens in and out, and the cost of these rows.
fn amounts(rows: &[&UsageRow]) -> [String; 4] {
    let sum = |of: fn(&UsageRow) -> u64| rows.iter().map(|row| of(row)).sum::<u64>();
    let counts = [sum(|row| row.requests), sum(|row| row.input_tokens), sum(|row| row.output_tokens)];
    let [requests, input, output] = counts.map(|count| count.to_string());
    [requests, input, output, money(sum(|row| row.cost_micros))]
}

fn model(row: &UsageRow) -> String {
    if row.scripted { format!("{} (no model)", row.model) } else { row.model.clone() }
}

/// Returns the endpoints of an agent without prices if it has a ceiling of cost, because their usage does not count toward it.
pub async fn unpriced(client: &Client, agent: &str) -> Result<Vec<String>, Error> {
    let today = client.query(routes::USAGE, [], json!({ "days": 1, "agent": agent })).await?;
    if !today.ceilings.iter().any(|ceiling| ceiling.name.is_cost()) {
        return Ok(Vec::new());
    }
    let (agent, models) = (client.call(routes::AGENT, [&agent]).await?, client.call(routes::MODELS, []).await?);
    Ok(unpriced_of(&agent.model, &models))
}

/// Returns the endpoints without prices among a model and its fallbacks; a scripted endpoint needs no price.
fn unpriced_of(model: &str, models: &[Model]) -> Vec<String> {
    let mut chain = vec![model];
    let mut at = 0;
    while let Some(name) = chain.get(at).copied() {
        let fallbacks = models.iter().filter(|model| model.name == name).flat_map(|model| &model.fallbacks);
        for fallback in fallbacks {
            if !chain.contains(&fallback.as_str()) {
                chain.push(fallback);
            }
        }
        at += 1;
    }
    let is_unpriced = |model: &&Model| {
        model.kind != ModelKind::Scripted && model.input_price_micros == 0 && model.output_price_micros == 0
    };
    let named = |name: &str| models.iter().find(|model| model.name == name);
    chain.into_iter().filter_map(named).filter(is_unpriced).map(|model| model.name.clone()).collect()
}

/// Warns that a ceiling of cost does not count the usage of these endpoints.
pub fn remark_unpriced(out: Output, models: &[String]) -> Result<(), Error> {
    models.iter().try_for_each(|model| {
        out.remark(format!(
            "model endpoint {model} has no prices, so the ceiling of cost does not count its usage: \
             ironctl model add {model} --replace --price-in PRICE --price-out PRICE"
        ))
    })
}

/// Formats millionths of a currency as a sum.
pub fn money(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

/// Parses a ceiling of tokens: a number, or `none`, which is 0.
pub fn tokens(text: &str) -> Result<u64, String> {
    match text {
        "none" => Ok(0),
        "0" => Err("0 is not a ceiling; use none to remove it".to_owned()),
        text => text.parse().map_err(|_| format!("{text} is neither a number of tokens nor none")),
    }
}

/// Parses a ceiling of cost in millionths: a sum such as 2.50, or `none`, which is 0.
pub fn sum(text: &str) -> Result<u64, String> {
    if text == "none" {
        return Ok(0);
    }
    match micros(text) {
        Some(0) => Err("0 is not a ceiling; use none to remove it".to_owned()),
        Some(sum) => Ok(sum),
        None => Err(format!("{text} is neither a sum such as 2.50 nor none")),
    }
}

/// Parses a number with at most 6 decimals, in millionths.
pub fn micros(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > 6 || !digits(whole) || !digits(part) {
        return None;
    }
    let part: u64 = format!("{part:0<6}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(1_000_000)?.checked_add(part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_parsed_without_rounding() {
        assert_eq!(sum("2.5"), Ok(2_500_000));
        assert_eq!(sum("3"), Ok(3_000_000));
        assert_eq!(sum("0.000001"), Ok(1));
        assert_eq!(sum("none"), Ok(0));
        for wrong in ["", ".5", "-1", "1.2345678", "1e3", "1,5", "0", "0.0", "99999999999999999999"] {
            assert!(sum(wrong).is_err(), "{wrong}");
        }
        assert_eq!((money(2_500_000), money(1)), ("2.500000".to_owned(), "0.000001".to_owned()));
    }

    #[test]
    fn usage_of_several_sessions_is_summed_for_each_model() {
        let row = |session: &str, model: &str, input_tokens| UsageRow {
            day: "2026-01-02".to_owned(),
            agent_id: "agt_00000000000000000000000001".parse().expect("an id"),
            agent: "a".to_owned(),
            session_id: session.parse().expect("an id"),
            model: model.to_owned(),
            scripted: false,
            requests: 1,
            input_tokens,
            output_tokens: 2,
            cost_micros: 500_000,
        };
        let (one, two) = ("ses_00000000000000000000000001", "ses_00000000000000000000000002");
        let rows = [row(one, "m", 10), row(one, "n", 1), row(two, "m", 5)];
        let sums: Vec<_> = sums(&rows).into_iter().map(|([.., model], rows)| (model, amounts(&rows))).collect();
        let amount = |texts: [&str; 4]| texts.map(str::to_owned);
        assert_eq!(
            sums,
            [
                ("m".to_owned(), amount(["2", "15", "4", "1.000000"])),
                ("n".to_owned(), amount(["1", "1", "2", "0.500000"]))
            ]
        );
    }

    #[test]
    fn none_is_the_word_for_no_ceiling() {
        assert_eq!((tokens("none"), tokens("5000")), (Ok(0), Ok(5000)));
        assert!(tokens("0").is_err() && tokens("-1").is_err() && tokens("many").is_err());
    }
}
