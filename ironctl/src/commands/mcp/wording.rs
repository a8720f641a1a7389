//! Sentences about an MCP server: its state, its names and texts, and the next command.
//!
//! Never prints a text of a server as it came: control, hidden and reordering characters become codes. See [`ironclaw_text::visible`].

use crate::output::Output;
use ironclaw_operator::{McpListed, McpLoginState, McpServer, McpServerState, McpServerTool};
use ironclaw_text::shell::quoted;
use ironclaw_text::visible;

/// Columns of a line with a text of a server, if the terminal is not narrower.
const COLUMNS_MAX: usize = 80;

/// Least columns of such a text.
const COLUMNS_MIN: usize = 20;

/// The start of a line with a text of a server.
const BAR: &str = "    | ";

/// The start of such a line that is written from right to left. Its first word keeps the bar in its place.
const BAR_TO_LEFT: &str = "    | ⟦right to left⟧ ";

/// Returns a sentence about a server that needs the operator; `None` if it needs none.
pub fn attention(server: &McpServer) -> Option<String> {
    if let Some(needed) = login_needed(server) {
        return Some(needed);
    }
    let failure = server.failure.as_ref().map(|why| format!("the host cannot reach it: {}", prose(why)));
    let changed =
        (server.state == McpServerState::Changed).then(|| "it lists something else than people confirmed".to_owned());
    let sentences: Vec<String> = [changed, failure].into_iter().flatten().collect();
    (!sentences.is_empty()).then(|| sentences.join("; "))
}

/// Returns the URL of a server, or its command as words of a shell.
pub fn place(server: &McpServer) -> String {
    if server.command.is_empty() {
        return server.url.clone();
    }
    let words: Vec<_> = server.command.iter().map(|word| quoted(word)).collect();
    words.join(" ")
}

/// Returns the command that shows or removes the defect of a server.
pub fn repair(server: &McpServer) -> String {
    let verb = if needs_login(server) { "login" } else { "test" };
    format!("ironctl mcp {verb} {}", quoted(&server.name))
}

/// Returns whether a person has to log in before the host can use a server.
pub fn needs_login(server: &McpServer) -> bool {
    server.login.as_ref().is_some_and(|login| login.state == McpLoginState::Needed)
}

/// Returns a sentence about the login that a server needs; `None` if it needs none.
pub fn login_needed(server: &McpServer) -> Option<String> {
    let login = server.login.as_ref().filter(|_| needs_login(server))?;
    let reason = login.reason.as_ref().map(|why| format!(", because its login ended: {}", prose(why)));
    Some(format!("a person has to log in at it{}", reason.unwrap_or_default()))
}

/// Returns [`attention`] with the name of the server and the next command.
pub fn attention_with_repair(server: &McpServer) -> Option<String> {
    attention(server).map(|sentence| format!("MCP server {}: {sentence}: {}", name(&server.name), repair(server)))
}

/// Returns the meaning of the state of a server.
pub fn state(server: &McpServer) -> &'static str {
    match server.state {
        McpServerState::New => "new: the host has no listing of it",
        McpServerState::Proposed => "proposed: people did not confirm its tools",
        McpServerState::Confirmed => "confirmed: it lists what people confirmed",
        McpServerState::Changed => "changed: it lists something else than people confirmed",
    }
}

/// Returns the command that confirms the listing of a server.
pub fn confirmation(server: &McpServer, has_manifest: bool) -> Option<String> {
    let digest = server.digest.as_ref()?;
    let manifest = if has_manifest { " --manifest FILE" } else { " --proposed" };
    Some(format!("ironctl mcp confirm {} --digest {digest}{manifest}", quoted(&server.name)))
}

/// Counts the tools whose listing differs from the confirmed one: `1 new, 2 changed`; empty if none does. An unfit tool is never new.
pub fn differences(tools: &[McpServerTool]) -> String {
    let is_new = |tool: &McpServerTool| tool.listed == McpListed::New;
    let compared = || tools.iter().filter(|tool| tool.unfit.is_none() || !is_new(tool));
    let count = |word: McpListed| match compared().filter(|tool| tool.listed == word).count() {
        0 => None,
        count => Some(format!("{count} {word}")),
    };
    let counts: Vec<String> =
        [McpListed::New, McpListed::Changed, McpListed::Gone].into_iter().filter_map(count).collect();
    counts.join(", ")
}

/// Returns a name that a server chose: unchanged if it has plain characters only, else in quotes with codes.
pub fn name(text: &str) -> String {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte));
    if is_plain { text.to_owned() } else { visible::name(text) }
}

/// Returns a text with words of a server on one line.
pub fn prose(text: &str) -> String {
    visible::line(text).text
}

/// Returns a text of a server as lines behind a bar, which fit on the terminal, so that no line looks like one of the host.
pub fn quotation(out: Output, text: &str) -> Vec<String> {
    let columns = out.columns().unwrap_or(COLUMNS_MAX).min(COLUMNS_MAX);
    let mut lines = Vec::new();
    for line in text.trim_end().split('\n') {
        let visible::Line { text, is_right_to_left } = visible::line(line);
        let bar = if is_right_to_left { BAR_TO_LEFT } else { BAR };
        let room = columns.saturating_sub(bar.chars().count()).max(COLUMNS_MIN);
        lines.extend(broken(&text, room).into_iter().map(|part| format!("{bar}{part}").trim_end().to_owned()));
    }
    lines
}

/// Breaks a line at spaces into parts of at most so many columns; a longer word is broken too.
fn broken(text: &str, columns_max: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split_inclusive(' ') {
        let width: usize = word.trim_end().chars().map(visible::columns).sum();
        if used > 0 && used + width > columns_max {
            lines.push(String::new());
            used = 0;
        }
        for character in word.chars() {
            let width = visible::columns(character);
            if used + width > columns_max && character == ' ' {
                continue;
            }
            if used + width > columns_max && !visible::is_combining(character) {
                lines.push(String::new());
                used = 0;
            }
            lines.last_mut().expect("it begins with one line").push(character);
            used += width;
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_a_server_stays_behind_the_bar() {
        let text = format!("{} EFFECT\n{}\r\u{1b}[2J\u{200b}\u{202e}x", "word ".repeat(30), "w".repeat(200));
        let lines = quotation(Output::new(false), &text);
        assert!(lines.len() > 5, "{lines:?}");
        for line in &lines {
            let columns: usize = line.chars().map(visible::columns).sum();
            assert!(line.starts_with("    |") && columns <= COLUMNS_MAX, "{line}");
            assert!(!line.contains(['\r', '\n', '\u{1b}', '\u{200b}', '\u{202e}']), "{line:?}");
        }
        assert!(lines.concat().contains("⟦"), "codes are visible");
        assert_eq!(quotation(Output::new(false), ""), ["    |"]);
    }

    #[test]
    fn name_with_other_characters_is_quoted() {
        assert_eq!(name("list_events.v2"), "list_events.v2");
        assert_eq!(name("a b"), "\"a b\"");
        assert!(!name("a\u{202e}b").contains('\u{202e}'));
        assert_eq!(name(""), "\"\"");
    }
}
