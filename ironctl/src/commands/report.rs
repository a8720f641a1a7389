//! `ironctl report`: the calls and the requests of a time, and the changes that would have saved most requests.
//!
//! Makes no change: each is a command to type. `ironctl why` and `ironctl explain` show a single call.

use crate::at::At;
use crate::clock;
use crate::failure::Error;
use ironclaw_operator::{
    Class, DenialCode, LeftOut, LeftOutOfReport, Report, ReportedChange, ReportedRequests, UnaskedRule, WaitingStatus,
    routes,
};
use serde_json::json;
use unicode_width::UnicodeWidthChar;

/// Columns of a line. A command to copy may be longer.
const COLUMNS: usize = 80;

/// Columns of the words at the begin of a line.
const LABEL: usize = 11;

/// Options of `ironctl report`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  ironctl report\n  ironctl report --since 30d --agent assistant --json")]
pub struct Args {
    /// Begin: a duration before now, such as 30d or 12h, or RFC 3339
    #[arg(long, value_name = "TIME", default_value = "7d")]
    since: String,
    /// Name or id of an agent: its turns alone
    #[arg(long)]
    agent: Option<String>,
}

/// Prints the report.
pub async fn run(at: &At, args: &Args) -> Result<(), Error> {
    let report = at.client()?.query(routes::REPORT, [], json!({ "since": args.since, "agent": args.agent })).await?;
    at.out.json(&report)?;
    lines(&report).into_iter().try_for_each(|line| at.out.line(line))
}

/// Returns the lines of a report.
fn lines(report: &Report) -> Vec<String> {
    let Report { since, until, begins_later, person, agent, tasks, calls, requests, changes, left_out } = report;
    let [since, until] = [since, until].map(|at| clock::to_the_minute(at));
    let whose = person.as_ref().map_or_else(|| "everyone".to_owned(), |person| format!("the turns of {person}"));
    let whose = agent.as_ref().map_or_else(|| whose.clone(), |agent| format!("{whose} with {agent}"));
    let mut lines = Vec::new();
    if calls.total == 0 && requests.total == 0 {
        lines.push(format!("no call and no request since {since} ({whose})"));
    } else {
        lines.push(format!("{since} to {until}, {whose}: {tasks} tasks, {} calls", calls.total));
        lines.extend(counts(report));
        lines.extend(asked(requests, *tasks));
        if changes.is_empty() {
            lines.push("no change would have saved two requests or more".to_owned());
        } else {
            lines.push("to be asked less, each change with the requests that it would have saved:".to_owned());
        }
        lines.extend(changes.iter().enumerate().flat_map(|(at, one)| change(at + 1, one, requests.total)));
    }
    if *begins_later {
        lines.push("the report begins later than asked: it has the newest 20000 turns".to_owned());
    }
    let left_out: Vec<String> = left_out.iter().map(part).collect();
    lines.extend(filled("left out", &left_out));
    lines
}

/// Returns the lines about calls.
fn counts(report: &Report) -> Vec<String> {
    let calls = &report.calls;
    let of_class = |class: Class| calls.classes.iter().find(|one| one.class == class).map_or(0, |one| one.calls);
    let shown = |class: &Class| *class != Class::Ask || of_class(*class) > 0;
    let mut classes: Vec<String> =
        Class::ALL.into_iter().filter(shown).map(|class| format!("{class} {}", of_class(class))).collect();
    let without = calls.total - calls.classes.iter().map(|one| one.calls).sum::<u64>().min(calls.total);
    if without > 0 {
        classes.push(format!("refused before a class {without}"));
    }
    let unasked: Vec<String> =
        calls.unasked.iter().map(|one| format!("{} {}", rule_words(one.rule), one.calls)).collect();
    let refused: Vec<String> = calls
        .refused
        .iter()
        .map(|one| format!("{} {}", one.code.map_or("an earlier code", DenialCode::name), one.calls))
        .collect();
    let mut lines = filled("by class", &classes);
    lines.extend(filled("unasked", &with_sum(calls.unasked.iter().map(|one| one.calls).sum(), unasked)));
    let not_made = (calls.not_made > 0).then(|| format!("not made {}", calls.not_made));
    let asked: Vec<String> = std::iter::once(calls.asked.to_string()).chain(not_made).collect();
    lines.extend(filled("asked", &asked));
    lines.extend(filled("refused", &with_sum(calls.refused.iter().map(|one| one.calls).sum(), refused)));
    lines
}

/// Returns the items behind their sum.
fn with_sum(sum: u64, mut items: Vec<String>) -> Vec<String> {
    match items.first_mut() {
        Some(first) => *first = format!("{sum}: {first}"),
        None => items.push(sum.to_string()),
    }
    items
}

/// Returns the lines about requests.
fn asked(requests: &ReportedRequests, tasks: u64) -> Vec<String> {
    let ReportedRequests { total, tasks: with, task_max, statuses, decided, median_ms, ninetieth_ms } = requests;
    if *total == 0 {
        return filled("requests", &["0".to_owned()]);
    }
    // A request can be of a task that began before.
    let all = tasks.max(*with);
    let hundredths = total.saturating_mul(100) / all.max(1);
    let rate = format!("{}.{:02} a task", hundredths / 100, hundredths % 100);
    let mut lines =
        filled("requests", &[format!("{total} in {with} of {all} tasks"), rate, format!("at most {task_max}")]);
    let of_status =
        |status: WaitingStatus| statuses.iter().find(|one| one.status == status).map_or(0, |one| one.requests);
    let approved = [
        WaitingStatus::Approved,
        WaitingStatus::Running,
        WaitingStatus::Done,
        WaitingStatus::Queued,
        WaitingStatus::Failed,
        WaitingStatus::Unknown,
    ];
    let shown = |status: &WaitingStatus| of_status(*status) > 0;
    let named = |status: WaitingStatus| format!("{status} {}", of_status(status));
    let parts: Vec<String> =
        approved.into_iter().filter(|status| *status != WaitingStatus::Approved).filter(shown).map(named).collect();
    let sum: u64 = approved.into_iter().map(of_status).sum();
    let parts = if parts.is_empty() { String::new() } else { format!(" ({})", parts.join(", ")) };
    let others = WaitingStatus::ALL.into_iter().filter(|status| !approved.contains(status)).filter(shown).map(named);
    let outcomes: Vec<String> = std::iter::once(format!("approved {sum}{parts}")).chain(others).collect();
    lines.extend(filled("outcomes", &outcomes));
    if let (Some(median), Some(ninetieth)) = (median_ms, ninetieth_ms) {
        let times =
            [format!("{decided}: half within {}", seconds(*median)), format!("90 % within {}", seconds(*ninetieth))];
        lines.extend(filled("decided", &times));
    }
    lines
}

/// Returns a time in seconds, with a decimal below ten.
fn seconds(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{}.{} s", ms / 1000, ms % 1000 / 100),
        _ => format!("{} s", ms / 1000),
    }
}

/// Returns the lines about a change: its effect, its command, and the newest request that it would have saved.
fn change(at: usize, change: &ReportedChange, total: u64) -> Vec<String> {
    let ReportedChange { effect, command, saves, examples, .. } = change;
    let mut lines = filled(&format!("{at}. {saves} of {total}"), std::slice::from_ref(effect));
    lines.push(format!("   {command}"));
    lines.extend(examples.first().map(|example| {
        let effect = example.effect.split_once("): it ").map_or(example.effect.as_str(), |(_, effect)| effect);
        cut(&format!("   such as {}: {effect}", clock::to_the_minute(&example.created_at)))
    }));
    lines
}

/// Returns the first columns of a text that fit a line.
fn cut(text: &str) -> String {
    let mut columns = 0;
    let fits = |character: &char| {
        columns += character.width().unwrap_or(1);
        columns < COLUMNS
    };
    let shown: String = text.chars().take_while(fits).collect();
    if shown.len() == text.len() { shown } else { format!("{shown}…") }
}

/// Returns items with commas between, in lines with a label and its room at their left; none without items.
fn filled(label: &str, items: &[String]) -> Vec<String> {
    let width = |text: &str| text.chars().map(|one| one.width().unwrap_or(1)).sum::<usize>();
    let (mut lines, mut line) = (Vec::new(), format!("{label:<LABEL$} "));
    let mut is_empty = true;
    let text = items.join(", ");
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        if !is_empty && width(&line) + 1 + width(word) > COLUMNS {
            lines.push(std::mem::replace(&mut line, format!("{:<LABEL$} ", "")));
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    if !is_empty {
        lines.push(line);
    }
    lines
}

/// Returns a rule in words.
const fn rule_words(rule: UnaskedRule) -> &'static str {
    match rule {
        UnaskedRule::Contained => "inside the jail or the record",
        UnaskedRule::Action => "asks people itself",
        UnaskedRule::Allowance => "allowance",
        UnaskedRule::Flow => "flow",
        UnaskedRule::Mode => "guard mode",
        UnaskedRule::Schedule => "list of the schedule",
        UnaskedRule::Group => "trust group",
        UnaskedRule::Typed => "typed value",
        UnaskedRule::Returned => "returned value",
        UnaskedRule::Read => "only reads",
        UnaskedRule::Scope => "class in the scope",
    }
}

/// Returns a part that was left out in words.
fn part(left_out: &LeftOut) -> String {
    let words = match left_out.part {
        LeftOutOfReport::ConversationsRemoved => "removed conversations",
        LeftOutOfReport::ConversationsShortened => "conversations without their oldest calls",
        LeftOutOfReport::AlwaysAsked => "requests that always ask",
        LeftOutOfReport::Settled => "requests that the present settings no longer ask",
        LeftOutOfReport::RefusedNow => "requests that the present settings refuse",
        LeftOutOfReport::Unsaved => "requests that no change saves",
        LeftOutOfReport::Older => "requests that are too old for a change",
        LeftOutOfReport::Lost => "requests that cannot be read",
        LeftOutOfReport::PermitsRejected => "changes that would have let a rejected call run",
    };
    format!("{words}: {}", left_out.count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_operator::{CodeCount, ReportedCalls};

    fn empty() -> Report {
        Report {
            since: "2026-11-21T08:00:00.000Z".to_owned(),
            until: "2026-11-28T08:00:00.000Z".to_owned(),
            begins_later: false,
            person: None,
            agent: None,
            tasks: 0,
            calls: ReportedCalls::default(),
            requests: ReportedRequests::default(),
            changes: Vec::new(),
            left_out: Vec::new(),
        }
    }

    #[test]
    fn report_of_an_agent_names_it_beside_the_person() {
        let of = |person: Option<&str>| {
            let report = Report { person: person.map(str::to_owned), agent: Some("clerk".to_owned()), ..empty() };
            lines(&report).concat()
        };
        assert!(of(None).ends_with("(everyone with clerk)"), "{}", of(None));
        assert!(of(Some("ana")).ends_with("(the turns of ana with clerk)"), "{}", of(Some("ana")));
    }

    #[test]
    fn empty_report_is_one_line_and_names_what_is_gone() {
        assert_eq!(lines(&empty()).len(), 1);
        let left_out = vec![LeftOut { part: LeftOutOfReport::ConversationsRemoved, count: 2 }];
        let shown = lines(&Report { left_out, ..empty() });
        assert_eq!(shown[1..], ["left out    removed conversations: 2"]);
    }

    #[test]
    fn report_without_requests_says_so() {
        let refused = vec![CodeCount { code: None, calls: 2 }];
        let calls = ReportedCalls { total: 3, refused, not_made: 1, ..ReportedCalls::default() };
        let shown = lines(&Report { tasks: 1, calls, ..empty() });
        assert_eq!(
            shown[1..],
            [
                "by class    read 0, write 0, send 0, exec 0, trade 0, refused before a class 3",
                "unasked     0",
                "asked       0, not made 1",
                "refused     2: an earlier code 2",
                "requests    0",
                "no change would have saved two requests or more"
            ]
        );
    }

    #[test]
    fn long_effect_is_broken_and_long_example_is_cut() {
        let lines = filled("1. 9 of 25", &["word ".repeat(30)]);
        assert!(lines.len() == 3 && lines.iter().all(|line| line.len() <= COLUMNS), "{lines:?}");
        assert!(lines[1].starts_with(&" ".repeat(LABEL + 1)));
        let shown = cut(&"漢".repeat(60));
        assert_eq!((shown.chars().count(), shown.ends_with('…')), (40, true));
        assert_eq!([0, 950, 9_999, 61_000].map(seconds), ["0.0 s", "0.9 s", "9.9 s", "61 s"]);
    }
}
