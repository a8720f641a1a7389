//! Tests of the review pages on the screen of a terminal: while `ironctl inbox` asks, the effect and the warnings are visible.
//!
//! The pages are the golden files of the host. A terminal emulator shows what a person sees. See [`crate::terminal`].

use crate::fake_host::{Answer, FakeHost};
use crate::inbox::host_with_three;
use crate::terminal::Terminal;
use crate::waiting::{ID, approval, decision, decisions, digest, host_that_shows, waiting};
use serde_json::json;
use std::path::Path;

/// The golden files, from the directory of this crate.
const PAGES: &str = "../host/src/gateway/review_page/tests/golden";

/// Columns and rows of the screens.
const SCREENS: [(u16, u16); 2] = [(80, 24), (100, 45)];

/// The end of the question of the inbox.
const QUESTION: &str = "approve, reject, details, skip, quit? ";

/// The ends of the prompts between two parts of a page.
const MORE: &str = "or reject, quit -- ";
const EFFECT_NEXT: &str = "the question -- ";

/// Returns the name and the text of each golden page.
fn pages() -> Vec<(String, &'static str)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(PAGES);
    let files = std::fs::read_dir(directory).expect("the golden pages").map(|file| file.expect("an entry").path());
    let mut pages: Vec<(String, &'static str)> = files
        .map(|path| {
            let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
            (name, &*std::fs::read_to_string(path).expect("a page").leak())
        })
        .collect();
    pages.sort();
    pages
}

/// Returns the lines of these sections of a page.
fn section<'a>(page: &'a str, headings: &[&str]) -> Vec<&'a str> {
    let mut is_in = false;
    page.lines()
        .filter(|line| {
            if !line.is_empty() && !line.starts_with(' ') {
                is_in = headings.contains(line);
            }
            is_in && !line.is_empty()
        })
        .collect()
}

/// Returns the lines that a person has to see before a yes.
fn needed(page: &str) -> Vec<&str> {
    let changes = "CHANGES (- before, + after)";
    let table = ["TOOLS AND ARGUMENTS", "LOOSER THAN THE STRICTEST RULES, BECAUSE"];
    // What is below the identifiers is a detail.
    let (page, _) = page.split_once("\nIDENTIFIERS\n").expect("the identifiers");
    section(page, &[&["EFFECT", "WARNINGS", changes, "REFERENCED NAMES"][..], &table].concat())
}

/// Returns the position of these lines on a screen, in their order and without another line between them.
fn position(screen: &[String], lines: &[&str]) -> Option<usize> {
    let screen: Vec<&str> = screen.iter().map(String::as_str).filter(|line| !line.is_empty()).collect();
    (0..screen.len()).find(|at| screen[*at..].starts_with(lines))
}

/// Reads the page to its end; returns the screens at each prompt, the last one with the question.
fn read_on(terminal: &mut Terminal) -> Vec<Vec<String>> {
    let mut screens = Vec::new();
    loop {
        let is_question = terminal.wait_for_one(&[QUESTION, MORE, EFFECT_NEXT]) == 0;
        screens.push(terminal.lines());
        if is_question {
            return screens;
        }
        terminal.type_in("\n");
    }
}

fn inbox_on(host: &FakeHost, (columns, rows): (u16, u16)) -> Terminal {
    Terminal::sized(host, &["inbox"], columns, rows)
}

#[test]
fn effect_and_warnings_are_visible_at_the_question() {
    let pages = pages();
    assert!(pages.len() >= 19, "each kind of change has a page: {}", pages.len());
    for (name, page) in pages {
        let host = host_that_shows(page, digest(page));
        for size in SCREENS {
            let mut terminal = inbox_on(&host, size);
            let mut screens = read_on(&mut terminal);
            let last = screens.last().expect("a screen");
            let effect = section(page, &["EFFECT", "WARNINGS"]);
            assert!(last.last().is_some_and(|line| line.ends_with(QUESTION.trim_end())), "{name} {size:?}");
            // A longer effect is shown in parts, and not again. The names on this page are an attack.
            let is_too_long = name == "hostile" && size.1 == 24;
            assert!(is_too_long || position(last, &effect).is_some(), "{name} {size:?}:\n{}", last.join("\n"));
            for line in needed(page) {
                let is_shown = screens.iter().any(|screen| screen.iter().any(|shown| shown == line));
                assert!(is_shown, "{name} {size:?}: {line:?} was on no screen before the question");
            }
            let is_more = |screen: &Vec<String>| {
                screen.iter().rev().nth(1).is_some_and(|line| line.ends_with("Enter shows them --"))
            };
            while screens.last().is_some_and(is_more) {
                terminal.type_in("\n");
                screens.extend(read_on(&mut terminal));
            }
            for line in page.lines().take_while(|line| *line != "IDENTIFIERS") {
                let is_shown = screens.iter().any(|screen| screen.iter().any(|shown| shown == line));
                assert!(is_shown, "{name} {size:?}: {line:?} was on no screen");
            }
            terminal.type_in("quit\n");
            assert_eq!(terminal.end(), 0, "{name} {size:?}");
        }
    }
}

#[test]
fn effect_stays_visible_after_details_and_wrong_words() {
    let (_, page) = pages().into_iter().find(|(name, _)| name == "settings").expect("a long page");
    let host = host_that_shows(page, digest(page));
    let effect = section(page, &["EFFECT", "WARNINGS"]);
    let mut terminal = inbox_on(&host, (80, 24));
    read_on(&mut terminal);
    for word in ["details", "yes", "no", "", "details", "approve it"] {
        terminal.type_in(&format!("{word}\n"));
        let screens = read_on(&mut terminal);
        let last = screens.last().expect("a screen");
        assert!(position(last, &effect).is_some(), "after {word:?}:\n{}", last.join("\n"));
    }
    terminal.type_in("quit\n");
    assert_eq!(terminal.end(), 0);
}

#[test]
fn result_of_a_decision_stays_above_the_next_page() {
    let (_, page) = pages().into_iter().find(|(name, _)| name == "create_agent").expect("a long page");
    let host = host_with_three(page, digest(page));
    let mut terminal = inbox_on(&host, (80, 24));
    terminal.reply("quit? ", "reject");
    terminal.reply("reason (may be empty): ", "");
    terminal.wait_for_one(&[MORE]);
    let screen = terminal.lines();
    let result = "chg_00000000000000000000000001 is rejected";
    assert!(screen.iter().any(|line| line.starts_with(result)), "{}", screen.join("\n"));
    assert!(screen.iter().any(|line| line == "EFFECT"), "{}", screen.join("\n"));
    drop(terminal.screen);
    terminal.ironctl.wait().expect("ironctl ends");
}

/// Returns a page that does not fit on a small screen.
fn long_page() -> String {
    let lines: String = (0..60).map(|line| format!("    | line {line}\n")).collect();
    format!(
        "EFFECT\n  Much.\n\nWARNINGS\n  !! Harm.\n\nCHANGES (- before, + after)\n{lines}\nIDENTIFIERS\n  change: chg_00000000000000000000000001\n"
    )
}

#[test]
fn yes_counts_only_after_every_line_of_the_effect() {
    let text: &'static str = long_page().leak();
    let host = host_that_shows(text, digest(text));
    let mut terminal = Terminal::sized(&host, &["approve", "chg_00000000000000000000000001"], 80, 24);
    terminal.wait_for("  !! Harm.");
    terminal.wait_for("-- 46 more lines: Enter for more, or reject, quit -- ");
    for (word, answer) in [
        ("approve", "nothing was decided: 46 lines of the effect are unread, press Enter for more"),
        ("1 yes", "nothing was decided: 46 lines of the effect are unread"),
        ("end", "nothing was decided: press Enter to read on"),
        ("skip", "nothing was decided: press Enter to read on"),
    ] {
        terminal.type_in(&format!("{word}\n"));
        terminal.wait_for(answer);
        terminal.wait_for("-- 46 more lines: ");
    }
    assert_eq!(decisions(&host), []);
    for more in ["-- 25 more lines: ", "-- 4 more lines: "] {
        terminal.type_in("\n");
        terminal.wait_for(more);
    }
    terminal.type_in("\n");
    terminal.wait_for("| line 59");
    terminal.wait_for("EFFECT");
    terminal.wait_for("  !! Harm.");
    terminal.wait_for("approve, reject, details, quit? ");
    let seen = terminal.seen();
    let after = seen.split("!! Harm.").nth(2).expect("it was shown twice");
    assert!(after.lines().count() <= 4, "the effect is directly above the question: {after:?}");
    assert!(!seen.contains("change: chg_00000000000000000000000001"), "ids are details: {seen}");
    terminal.type_in("details\n");
    terminal.wait_for("  change: chg_00000000000000000000000001");
    terminal.reply("approve, reject, details, quit? ", "approve");
    terminal.end_after("chg_00000000000000000000000001 is done", 0);
    assert_eq!(decisions(&host), [approval(ID, text)], "the digest covers all of it");
}

#[test]
fn word_at_the_pager_is_that_word_and_no_enter() {
    let text: &'static str = long_page().leak();
    for (command, word) in [
        (&["approve", ID][..], "quit"),
        (&["inbox"], "quit"),
        (&["inbox"], "skip"),
        (&["inbox"], "later"),
        (&["inbox"], "reject"),
    ] {
        let host = host_that_shows(text, digest(text));
        let mut terminal = Terminal::sized(&host, command, 80, 24);
        terminal.reply(MORE, word);
        if word == "reject" {
            terminal.reply("reason (may be empty): ", "");
        }
        let seen_of = terminal.end_with_screen();
        assert!(!seen_of.contains("| line 25"), "{command:?} {word}: {seen_of}");
        let rejected = (word == "reject").then(|| decision(ID, json!({"reject": ""})));
        assert_eq!(decisions(&host), rejected.into_iter().collect::<Vec<_>>(), "{command:?} {word}");
    }
}

#[test]
fn diff_of_a_push_is_shown_by_details_or_why() {
    const PAGE: &str =
        "APPROVAL REQUEST req_00000000000000000000000001\n  It pushes 1 commit.\n\nIDENTIFIERS\n  request: one\n";
    let lines = |from: u32, to: u32| (from..to).map(|line| format!("  + | added {line}\n")).collect::<String>();
    let part = move |from: u32, to: u32, next: Option<u32>| json!({ "digest": digest("diff"), "text": lines(from, to), "next": next, "left_off": if next.is_none() { 7 } else { 0 } });
    let host = FakeHost::new(move |line, _| match line {
        "GET /v1/waiting/req_00000000000000000000000001" => {
            let mut push = waiting("req_00000000000000000000000001", "pending", PAGE);
            push["subject"] = json!("git_push");
            Answer::json(push)
        }
        "GET /v1/waiting/req_00000000000000000000000001/diff" => Answer::json(part(0, 20, Some(20))),
        "GET /v1/waiting/req_00000000000000000000000001/diff?from=20" => Answer::json(part(20, 36, None)),
        _ => Answer::missing("request_unknown", "there is no such approval request"),
    });
    let mut terminal = Terminal::sized(&host, &["approve", "req_00000000000000000000000001"], 80, 24);
    terminal.reply("approve, reject, details, quit? ", "details");
    terminal.wait_for("DIFF");
    terminal.reply("more lines: Enter for more, back for the question -- ", "approve");
    terminal.reply("approve, reject, details, quit? ", "details");
    terminal.reply("back for the question -- ", "");
    terminal.wait_for("added 35");
    terminal.wait_for("7 more lines; the digest covers them");
    terminal.reply("approve, reject, details, quit? ", "quit");
    assert_eq!(terminal.end(), 1);
    assert_eq!(decisions(&host), [], "a yes below the diff is not at the question");
    let (code, out, _) = host.ironctl(&["why", "req_00000000000000000000000001", "--diff"]);
    let end = format!("7 more lines; the digest covers them: {}\n", digest("diff"));
    assert_eq!((code, out), (0, lines(0, 36) + &end));
}
