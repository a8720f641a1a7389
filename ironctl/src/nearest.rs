//! The known word that is most similar to a mistyped one.
//!
//! See `commands::chat::slash`. The host suggests names of its own objects.

/// Returns the known word that is most similar to an unknown one; `None` if its similarity (0 to 1) is below the minimum.
pub fn nearest<'a>(unknown: &str, known: impl Iterator<Item = &'a str>, similarity_min: f64) -> Option<&'a str> {
    let similarity = |word: &str| strsim::jaro_winkler(word, unknown);
    let found = known.max_by(|a, b| similarity(a).total_cmp(&similarity(b)));
    found.filter(|word| similarity(word) >= similarity_min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistyped_word_finds_the_nearest_and_another_finds_none() {
        let find = |unknown| nearest(unknown, ["assistant", "nova"].into_iter(), 0.8);
        assert_eq!(find("asistant"), Some("assistant"));
        assert_eq!(find("nvoa"), Some("nova"));
        assert_eq!(find("zebra"), None);
        assert_eq!(nearest("assistant", std::iter::empty(), 0.8), None);
    }
}
