//! The known name that is most similar to an unknown one.
//!
//! Knows no list of names: the caller passes only those that the reader may see.

/// Characters of an unknown name that is compared. A longer one is no mistyped name.
const CHARACTERS_MAX: usize = 64;

/// Returns the known name that is most similar to an unknown one; `None` if its similarity (0 to 1) is below the minimum.
pub fn nearest<'a>(unknown: &str, known: impl Iterator<Item = &'a str>, similarity_min: f64) -> Option<&'a str> {
    if unknown.chars().nth(CHARACTERS_MAX).is_some() {
        return None;
    }
    let similarity = |name: &str| strsim::jaro_winkler(name, unknown);
    let found = known.max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    found.filter(|name| similarity(name) >= similarity_min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistyped_name_finds_the_nearest_and_another_finds_none() {
        let find = |unknown: &str| nearest(unknown, ["assistant", "nova"].into_iter(), 0.8);
        assert_eq!(find("asistant"), Some("assistant"));
        assert_eq!(find("nvoa"), Some("nova"));
        assert_eq!(find("zebra"), None);
        assert_eq!(find(&"assistant".repeat(8)), None, "a long text is not compared");
        assert_eq!(nearest("assistant", std::iter::empty(), 0.8), None);
    }
}
