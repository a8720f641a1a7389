//! The names in the patterns of a language: `{filler}` is a list or a pattern that the lexicon defines.
//!
//! Compiles no pattern. See [`super::Pattern`].

/// Names within names of a pattern.
const DEPTH_MAX: usize = 12;

/// Returns a pattern with each name in braces replaced.
///
/// # Errors
/// The first name that is not defined.
pub(super) fn expand<'a>(pattern: &str, named: impl Fn(&str) -> Option<&'a str>) -> Result<String, String> {
    let mut pattern = pattern.to_owned();
    for _ in 0..DEPTH_MAX {
        let Some(expanded) = expand_once(&pattern, &named)? else { break };
        pattern = expanded;
    }
    Ok(pattern)
}

/// Replaces each name in braces once; returns `None` if there is none.
fn expand_once<'a>(pattern: &str, named: impl Fn(&str) -> Option<&'a str>) -> Result<Option<String>, String> {
    let (mut expanded, mut rest, mut found) = (String::new(), pattern, false);
    while let Some(at) = rest.find('{') {
        let (before, after) = rest.split_at(at);
        let name = after[1..].split('}').next().unwrap_or_default();
        expanded.push_str(before);
        if name.starts_with(|next: char| next.is_ascii_lowercase()) {
            expanded.push_str(named(name).ok_or(name)?);
            rest = &after[name.len() + 2..];
            found = true;
        } else {
            expanded.push('{');
            rest = &after[1..];
        }
    }
    expanded.push_str(rest);
    Ok(found.then_some(expanded))
}
