//! `ironctl doctor --audit`: the findings about the configuration of the home, each with the commands that mend it.
//!
//! Mends nothing. The host finds them, and [`Finding`] has their words.

use crate::at::At;
use crate::failure::Error;
use crate::output::Output;
use crate::own_command::own_command;
use ironclaw_operator::{ConfigurationAudit, Finding, FindingArea, FindingLevel, routes};
use ironclaw_text::shell::quoted;
use serde::Serialize;

/// Columns of the level and the gap behind it.
const INDENT: usize = 8;

/// Columns at most.
const COLUMNS_MAX: usize = 100;

/// Columns of an output that is no terminal.
const COLUMNS_USUAL: usize = 80;

/// A finding for a script.
#[derive(Serialize)]
struct Line<'a> {
    level: FindingLevel,
    area: FindingArea,
    object: String,
    sentence: String,
    /// The lines that a file of the home needs first.
    #[serde(skip_serializing_if = "Option::is_none")]
    edit: Option<Edit>,
    /// The words of each command behind `ironctl`.
    commands: Vec<Vec<String>>,
    #[serde(flatten)]
    finding: &'a Finding,
}

#[derive(Serialize)]
struct Edit {
    file: &'static str,
    lines: String,
}

impl<'a> From<&'a Finding> for Line<'a> {
    fn from(finding: &'a Finding) -> Self {
        Self {
            level: finding.level(),
            area: finding.area(),
            object: finding.object(),
            sentence: finding.sentence(),
            edit: finding.edit().map(|(file, lines)| Edit { file, lines }),
            commands: finding.commands(),
            finding,
        }
    }
}

/// The report for a script.
#[derive(Serialize)]
struct Report<'a> {
    ok: bool,
    findings: Vec<Line<'a>>,
}

/// Prints the findings; fails if one is of the level `high`.
pub async fn run(at: &At) -> Result<(), Error> {
    let ConfigurationAudit { findings } = at.client()?.call(routes::AUDIT_CONFIG, []).await?;
    let high: Vec<&Finding> = findings.iter().filter(|finding| finding.level() == FindingLevel::High).collect();
    at.out.json(&Report { ok: high.is_empty(), findings: findings.iter().map(Line::from).collect() })?;
    print(at.out, &findings, &own_command(&at.home))?;
    let Some(first) = high.first() else { return Ok(()) };
    let objects: Vec<String> = high.iter().map(|finding| finding.object()).collect();
    let message = format!("{} high: {}", counted(high.len()), objects.join(", "));
    let hint = first.commands().first().map(|words| command("ironctl", words)).unwrap_or_default();
    Err(Error::failed("audit_high", message).hinting(hint))
}

fn counted(count: usize) -> String {
    if count == 1 { "1 finding is".to_owned() } else { format!("{count} findings are") }
}

fn print(out: Output, findings: &[Finding], program: &str) -> Result<(), Error> {
    let columns = out.columns().unwrap_or(COLUMNS_USUAL).min(COLUMNS_MAX);
    for finding in findings {
        let text = format!("{}: {}", finding.object(), finding.sentence());
        out.line(entry(finding.level(), &text, columns))?;
        if let Some((file, lines)) = finding.edit() {
            out.line(format!("{:INDENT$}in {file}:", ""))?;
            lines.lines().try_for_each(|line| out.line(format!("{:INDENT$}  {line}", "")))?;
        }
        for words in finding.commands() {
            // In one piece, so that it can be copied.
            out.line(format!("{:INDENT$}{}", "", command(program, &words)))?;
        }
    }
    for area in FindingArea::ALL.into_iter().filter(|area| findings.iter().all(|finding| finding.area() != *area)) {
        out.line(entry(FindingLevel::Fine, &format!("{area}: no finding"), columns))?;
    }
    Ok(())
}

/// Returns the level and a text, broken between words, with the same indent for each line.
fn entry(level: FindingLevel, text: &str, columns: usize) -> String {
    let room = columns.saturating_sub(INDENT).max(INDENT);
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("one line at least");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= room {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    format!("{:INDENT$}{}", level.name(), lines.join(&format!("\n{:INDENT$}", "")))
}

fn command(program: &str, words: &[String]) -> String {
    let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
    format!("{program} {}", words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Cli;
    use clap::Parser;
    use ironclaw_contract::seam::change::GuardMode;
    use ironclaw_operator::{Commands, Role, Sharing, SkillTrust};

    /// Returns one finding of each kind.
    fn samples() -> Vec<Finding> {
        let agent = || "coder".to_owned();
        let host = || "api.example.org".to_owned();
        let (skill, secret, person) = (|| "notes".to_owned(), || "openai".to_owned(), || "Ana Tulip".to_owned());
        let token = "tok_0123456789abcdef".parse::<ironclaw_operator::TokenId>().expect("an id");
        let used_by = || vec!["model openai".to_owned()];
        let schedule = || "sch_01j9zq4w0v2m6n8p0r2t4v6x8z".parse().expect("an id");
        vec![
            Finding::ModeLowered { agent: agent(), mode: GuardMode::DangerousOff },
            Finding::StrangersHeard { agent: agent(), channel: "desk".to_owned(), sharing: Sharing::Shared },
            Finding::DirectoryWritable { agent: agent(), directory: "/srv/my papers".to_owned() },
            Finding::DirectoryOwn { agent: agent(), directory: "/srv/my notes".to_owned() },
            Finding::AnswersOwn { server: "notes".to_owned(), tools: vec!["list".to_owned(), "find".to_owned()] },
            Finding::SenderOwn { sender: "desk:builds".to_owned(), person: person() },
            Finding::TunnelOpen { agent: agent(), host: host() },
            Finding::PushGranted { agent: agent(), host: host() },
            Finding::HostWritable { agent: agent(), host: host(), methods: vec!["POST".to_owned()] },
            Finding::HostWide { agent: agent(), host: host(), path: "/{a}".to_owned() },
            Finding::CommandsReachHost { agent: agent(), host: host(), purpose: Commands::Npm },
            Finding::LocalNetworkReached {
                agent: Some(agent()),
                host: "http://nas.example".to_owned(),
                addresses: vec!["10.0.0.7".to_owned()],
            },
            Finding::LocalNetworkReached { agent: None, host: "nas".to_owned(), addresses: vec!["fd00::7".to_owned()] },
            Finding::CommandsEnabled { agent: agent() },
            Finding::DestinationHeld { agent: agent(), name: "ana".to_owned(), to: "desk:ana".to_owned() },
            Finding::CeilingMissing { agent: agent() },
            Finding::AllowanceOpen {
                allowance: 3,
                agent: agent(),
                person: person(),
                tool: "http_fetch".to_owned(),
                uses_left: 4,
            },
            Finding::ScheduleFailing {
                schedule: schedule(),
                name: "monday".to_owned(),
                agent: agent(),
                since: "2026-11-28T07:00:00.000Z".to_owned(),
            },
            Finding::SchedulePaused {
                schedule: schedule(),
                name: "monday".to_owned(),
                agent: agent(),
                reason: "flow_writable".to_owned(),
                remedy: "agent b may write to /srv/notes: `ironctl agent revoke-dir b /srv/notes`".to_owned(),
            },
            Finding::ScheduleUnasked {
                schedule: schedule(),
                name: "nightly".to_owned(),
                agent: agent(),
                may: vec!["exec".to_owned()],
            },
            Finding::ScheduleSends {
                schedule: schedule(),
                name: "monday".to_owned(),
                agent: agent(),
                to: "me".to_owned(),
                recipient: "desk:7".to_owned(),
                from: vec!["/notes".to_owned()],
            },
            Finding::SkillUntrusted { agent: agent(), skill: skill(), state: SkillTrust::Revoked },
            Finding::SkillOutdated {
                agent: agent(),
                skill: skill(),
                version: "1.0.0".to_owned(),
                newest: "1.1.0".to_owned(),
                pinned: true,
            },
            Finding::SecretOld { secret: secret(), days: 200, used_by: used_by() },
            Finding::SecretUnused { secret: secret() },
            Finding::SecretUsed { secret: secret(), used_by: used_by() },
            Finding::ToolsUnused { agent: agent(), tools: vec!["run_command".to_owned(), "http_fetch".to_owned()] },
            Finding::HostUnused { agent: agent(), host: host() },
            Finding::ServerUnused { agent: agent(), server: "calendar".to_owned() },
            Finding::SkillUnused { agent: agent(), skill: skill() },
            Finding::TokenUnused { token: token.clone(), person: person() },
            Finding::TokenWithoutExpiry { token, person: person() },
            Finding::OwnerAlone { owner: person(), admin: None },
            Finding::OwnerAlone { owner: person(), admin: Some("Bob".to_owned()) },
            Finding::MembersDecide { table: "call.exec".to_owned() },
            Finding::ApprovesOwn { table: "call.send".to_owned() },
            Finding::DecidedBy { table: "call.trade".to_owned(), roles: vec![Role::Owner], approvals: 2 },
            Finding::DecidersWithoutPlace { person: person(), channel: None },
            Finding::PersonWithoutPlace { person: person(), channel: Some("desk".to_owned()) },
            Finding::BackupMissing,
            Finding::BackupOld { days: 9 },
            Finding::BackupUnverified { backup: "ab".repeat(16) },
            Finding::HeadsNotKept { reason: "the user's data directory is inside of the home".to_owned() },
        ]
    }

    #[test]
    fn every_finding_has_a_command_that_parses() {
        let mut kinds = std::collections::BTreeSet::new();
        for finding in samples() {
            kinds.insert(serde_json::to_value(&finding).expect("JSON")["finding"].to_string());
            let commands = finding.commands();
            assert_eq!(commands.is_empty(), finding.level() == FindingLevel::Fine, "{finding:?}");
            for words in commands {
                let read = Cli::try_parse_from(["ironctl".to_owned()].into_iter().chain(words.clone()));
                assert!(read.is_ok(), "{words:?}: {}", read.expect_err("checked"));
            }
            let line = serde_json::to_value(Line::from(&finding)).expect("JSON");
            let own = [&line["commands"], &line["object"], &line["sentence"], &line["level"], &line["area"]];
            let expected = serde_json::json!([
                finding.commands(),
                finding.object(),
                finding.sentence(),
                finding.level(),
                finding.area()
            ]);
            assert_eq!(serde_json::json!(own), expected, "no field of a finding has the name of one of its line");
            let sentence = finding.sentence();
            assert!(!sentence.ends_with('.') && !sentence.contains('\n'), "{sentence}");
        }
        let read = |name: &str| {
            let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
            std::fs::read_to_string(path).expect("a document")
        };
        let manual = read("operate/configuration-audit.md");
        for kind in &kinds {
            assert!(manual.contains(&format!("| `{}` |", kind.trim_matches('"'))), "{kind} has no row in the manual");
        }
        // A new finding has a sample: the schema of the API names all of them.
        let document: serde_json::Value = serde_json::from_str(&read("openapi.json")).expect("JSON");
        let listed = document["components"]["schemas"]["Finding"]["oneOf"].as_array().map(Vec::len);
        assert_eq!(Some(kinds.len()), listed);
    }

    #[test]
    fn page_of_findings_is_its_golden_file_in_80_columns() {
        let mut page = String::new();
        for finding in samples() {
            let text = format!("{}: {}", finding.object(), finding.sentence());
            page += &format!("{}\n", entry(finding.level(), &text, 80));
            for words in finding.commands() {
                page += &format!("{:INDENT$}{}\n", "", command("ironctl", &words));
            }
        }
        crate::tests::golden::check("doctor-audit.txt", &page);
        let wide = page.lines().filter(|line| line.chars().count() > 80 && !line.trim_start().starts_with("ironctl "));
        assert_eq!(wide.collect::<Vec<_>>(), Vec::<&str>::new());
    }
}
