//! The names of the tools of MCP servers for a model.
//!
//! A name follows from the server and the full name of the tool alone, so it is the same in each listing. Rules, pages and the ledger use
//! the full name. See [`super::listed`] for two tools with one name.

use ironclaw_contract::canonical::Digest;

/// Longest name of a tool for a model, in bytes. Providers take no longer one.
const NAME_BYTES_MAX: usize = 64;

/// The text between the server and the tool in the name for a model.
const BETWEEN: &str = "__";

/// Characters of the digest at the end of a short form.
const DIGEST_CHARACTERS: usize = 12;

/// Returns the name of a server's tool for a model: the server, two underscores, the tool. A name that is too long, or has characters that
/// providers do not take, gets a short form: its beginning, and a digest of server and full name.
pub fn name_for_model(server: &str, tool: &str) -> String {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    let name = format!("{server}{BETWEEN}{}", tool.replace('.', "_"));
    let fits = !tool.is_empty() && tool.bytes().all(is_plain) && name.len() <= NAME_BYTES_MAX;
    if fits { name } else { short_form(server, tool) }
}

fn short_form(server: &str, tool: &str) -> String {
    let digest = Digest::of(full_name(server, tool).as_bytes()).to_string();
    let digest = &digest[..DIGEST_CHARACTERS];
    let room = NAME_BYTES_MAX.saturating_sub(server.len() + BETWEEN.len() + 1 + DIGEST_CHARACTERS);
    let words = tool.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut beginning = words.collect::<Vec<_>>().join("_");
    beginning.truncate(room);
    let beginning = beginning.trim_end_matches('_');
    let between = if beginning.is_empty() { "" } else { "_" };
    format!("{server}{BETWEEN}{beginning}{between}{digest}")
}

/// Returns the full name of a server's tool for people: the server, two underscores, the name on the server.
pub fn full_name(server: &str, tool: &str) -> String {
    format!("{server}{BETWEEN}{tool}")
}

/// Returns the name for a model that a person means by a full name, or by a name for a model; `None` if it is neither.
pub fn meant(name: &str) -> Option<String> {
    let (server, tool) = name.split_once(BETWEEN).filter(|(_, tool)| !tool.is_empty())?;
    let known = name_for_model(server, tool);
    is_name_for_model(&known).then_some(known)
}

/// Returns whether a name can be that of a server's tool for a model.
pub fn is_name_for_model(name: &str) -> bool {
    let is_plain = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-');
    let parts = name.split_once(BETWEEN).is_some_and(|(server, tool)| !server.is_empty() && !tool.is_empty());
    parts && name.len() <= NAME_BYTES_MAX && name.bytes().all(is_plain)
}

/// Returns whether a name for a model is that of a tool of this server.
pub fn is_of(server: &str, name: &str) -> bool {
    name.strip_prefix(server).is_some_and(|rest| rest.starts_with(BETWEEN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_that_does_not_fit_has_a_stable_short_form() {
        for (tool, beginning) in [
            ("send a letter", "mail__send_a_letter_"),
            ("späte/post", "mail__sp_te_post_"),
            ("工具", "mail__"),
            (&"long_".repeat(20), "mail__long_long_"),
        ] {
            let name = name_for_model("mail", tool);
            assert!(name.starts_with(beginning) && is_name_for_model(&name) && is_of("mail", &name), "{tool}: {name}");
            assert_eq!(name, name_for_model("mail", tool));
            assert_eq!(meant(&full_name("mail", tool)).as_deref(), Some(name.as_str()), "{tool}");
            assert_eq!(meant(&name), Some(name));
        }
        assert_eq!(name_for_model("mail", "send a letter"), "mail__send_a_letter_5550c74c6f39");
        assert_ne!(name_for_model("mail", "a b"), name_for_model("mail", "a/b"));
        assert_ne!(name_for_model("mail", "工具"), name_for_model("post", "工具"));
    }

    #[test]
    fn plain_name_stays_and_a_longest_server_leaves_room() {
        assert_eq!(name_for_model("mail", "list.all"), "mail__list_all");
        let exact = "x".repeat(NAME_BYTES_MAX - 6);
        assert_eq!(name_for_model("mail", &exact), format!("mail__{exact}"));
        let server = "s".repeat(32);
        assert_eq!(name_for_model(&server, &"t".repeat(31)).len(), NAME_BYTES_MAX);
        assert_eq!((meant("read_file"), meant("__x"), meant("a__")), (None, None, None));
    }
}
