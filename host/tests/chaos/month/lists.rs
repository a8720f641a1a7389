//! Each list and page of `ironctl`, read on a terminal of 80×24.

use crate::support::host_fixture::TestHost;
use crate::support::terminal;

/// The width of the terminal.
const COLUMNS: usize = 80;

/// The lists that a person reads.
const LISTS: [&[&str]; 22] = [
    &["status"],
    &["usage"],
    &["inbox"],
    &["agent", "list"],
    &["session", "list"],
    &["schedule", "list"],
    &["inbox", "list", "--type", "change"],
    &["channel", "list"],
    &["delivery", "list"],
    &["destination", "list"],
    &["group", "list"],
    &["person", "list"],
    &["token", "list"],
    &["model", "list"],
    &["mcp", "list"],
    &["tool", "list"],
    &["memory", "list", "notes"],
    &["skill", "list", "--agent", "a"],
    &["secret", "list"],
    &["file", "list", "a", "--thread", "mail-0"],
    &["allowance", "list"],
    &["audit", "tail"],
];

/// The pages that a person reads, with the most lines of each: a line for each part, and the description of each tool.
const PAGES: [(&[&str], usize); 2] = [(&["agent", "show", "a"], 40), (&["mcp", "show", "demo"], 60)];

/// The most lines of a row, and of all that is not a row. A column that became unreadable makes more.
const LINES_OF_A_ROW: usize = 4;
const OTHER_LINES: usize = 26;

/// Reads every list, and checks that each line fits the terminal and that no row takes a screen.
pub(super) fn read(host: &TestHost) {
    let (mut wide, mut long) = (Vec::new(), Vec::new());
    let lists = LISTS.into_iter().map(|list| {
        let shown = host.ctl(&[&["--json"], list].concat());
        // A list is an array, or an object on each line.
        let rows = serde_json::from_str::<Vec<serde_json::Value>>(&shown.stdout)
            .map_or(shown.stdout.lines().count(), |rows| rows.len());
        (list, rows * LINES_OF_A_ROW + OTHER_LINES)
    });
    for (list, lines_max) in lists.chain(PAGES) {
        let mut command = host.command("ironctl");
        command.arg("--home").arg(&host.home).args(list).env("TERM", "xterm");
        // The end of a screen, and the question at the end of a page.
        let seen = terminal::run(command, &[" -- ", "quit? "], |prompt| match prompt {
            "quit? " => "skip".to_owned(),
            _ => String::new(),
        });
        assert_eq!(seen.code, 0, "{list:?}: {:#?}", seen.lines);
        if seen.lines.len() > lines_max {
            long.push(format!("{list:?}: {} lines of at most {lines_max}", seen.lines.len()));
        }
        println!("$ ironctl {}", list.join(" "));
        for line in &seen.lines {
            println!("{line}");
            if line.chars().count() > COLUMNS {
                wide.push(format!("{list:?}: {line}"));
            }
        }
    }
    assert!(long.is_empty(), "lists whose rows take too many lines: {long:#?}");
    assert!(wide.is_empty(), "lines wider than the terminal: {wide:#?}");
}
