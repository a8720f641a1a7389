//! Finds the known word that a person probably meant.
//!
//! See [`crate::client`] and `commands::chat::slash`.

/// Returns the known word that is most like an unknown one; none below this likeness, from 0 to 1.
pub fn nearest<'a>(unknown: &str, known: impl Iterator<Item = &'a str>, likeness_min: f64) -> Option<&'a str> {
    let likeness = |word: &str| strsim::jaro_winkler(word, unknown);
    let found = known.max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
    found.filter(|word| likeness(word) >= likeness_min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistyped_word_finds_the_nearest_and_a_strange_one_none() {
        let find = |unknown| nearest(unknown, ["assistant", "nova"].into_iter(), 0.8);
        assert_eq!(find("asistant"), Some("assistant"));
        assert_eq!(find("nvoa"), Some("nova"));
        assert_eq!(find("nobody"), None);
        assert_eq!(nearest("assistant", std::iter::empty(), 0.8), None);
    }
}
