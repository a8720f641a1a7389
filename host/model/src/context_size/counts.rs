//! The counts of a server over the growing prompts of one conversation, which show that it drops a part of each.

/// Smaller counts are no counts of a whole prompt.
const TOKENS_MIN: u64 = 512;
/// Bytes by which a prompt grows before an equal count says something.
const GROWTH_BYTES_MIN: u64 = 2048;
/// Bytes for each token that is added to a prompt; only blanks have more.
const BYTES_PER_TOKEN_MAX: u64 = 32;
/// Bytes for each token of a whole prompt from which on a count is suspicious: instructions, tools and words have about four.
const SUSPICIOUS: u64 = 5;
/// The same, without an earlier count: no language has so many.
const IMPOSSIBLE: u64 = 12;
/// Sizes of contexts are multiples of one of these.
const SIZES: [u64; 2] = [512, 1000];
/// The distance from a size at which a server ends.
const NEAR: u64 = 2;

/// The largest count of a server so far, with the smallest prompt that had it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Counts {
    highest: Option<Counted>,
}

#[derive(Debug, Clone, Copy)]
struct Counted {
    bytes: u64,
    tokens: u64,
}

impl Counts {
    /// Notes the server's count for a prompt of this size. Returns the tokens that the model reads, if the count shows that the server
    /// dropped a part of the prompt: the count stays the same while the prompt grows, or is a size of a context and far too small.
    ///
    /// A server that counts only the tokens that its cache lacks counts the most at first, and then far fewer. That shows nothing.
    pub fn note(&mut self, bytes: u64, tokens: u64) -> Option<u64> {
        if tokens < TOKENS_MIN {
            return None;
        }
        let is_impossible = bytes / IMPOSSIBLE > tokens && is_size(tokens);
        let Some(highest) = self.highest else {
            self.highest = Some(Counted { bytes, tokens });
            return is_impossible.then(|| rounded(tokens));
        };
        let growth = bytes.saturating_sub(highest.bytes);
        if tokens > highest.tokens + growth / BYTES_PER_TOKEN_MAX {
            self.highest = Some(Counted { bytes, tokens });
            return is_impossible.then(|| rounded(tokens));
        }
        if bytes < highest.bytes && tokens == highest.tokens {
            self.highest = Some(Counted { bytes, tokens });
        }
        let is_flat = growth >= GROWTH_BYTES_MIN && tokens >= highest.tokens / 2 && bytes / SUSPICIOUS > tokens;
        (is_flat || is_impossible).then(|| rounded(tokens.max(highest.tokens)))
    }
}

/// Returns whether an output ended at the end of a context: the server ended it by length far in front of the bound that was asked for,
/// and prompt and output together have a size of contexts.
pub const fn is_end_of_context(input: u64, output: u64, asked: u64) -> bool {
    input > output && output + NEAR < asked && is_size(input + output)
}

/// Returns whether a count is a size of a context, or just below or above one.
const fn is_size(tokens: u64) -> bool {
    tokens >= 1000 && (rounded(tokens) != tokens || tokens.is_multiple_of(SIZES[0]) || tokens.is_multiple_of(SIZES[1]))
}

/// Returns the size of a context near this count, or the count.
pub const fn rounded(tokens: u64) -> u64 {
    let mut at = 0;
    while at < SIZES.len() {
        let size = SIZES[at];
        let nearest = (tokens + size / 2) / size * size;
        if nearest >= 1000 && nearest.abs_diff(tokens) <= NEAR {
            return nearest;
        }
        at += 1;
    }
    tokens
}

#[cfg(test)]
mod tests {
    use super::*;

    fn signs(prompts: &[(u64, u64)]) -> Vec<Option<u64>> {
        let mut counts = Counts::default();
        prompts.iter().map(|(bytes, tokens)| counts.note(*bytes, *tokens)).collect()
    }

    #[test]
    fn equal_counts_of_growing_prompts_are_a_size() {
        let seen = signs(&[(18_000, 4096), (23_000, 4096), (28_000, 4096), (33_000, 4096)]);
        assert_eq!(seen, [None, Some(4096), Some(4096), Some(4096)]);
        // Ollama drops whole messages, so its counts vary below the size.
        let seen = signs(&[(12_000, 3000), (17_000, 4010), (22_000, 3900), (27_000, 3700), (26_000, 4001)]);
        assert_eq!(seen, [None, None, Some(4010), Some(4010), Some(4010)]);
    }

    #[test]
    fn impossible_count_is_a_size_at_once_if_it_is_round() {
        assert_eq!(signs(&[(90_000, 4096)]), [Some(4096)]);
        assert_eq!(signs(&[(90_000, 4095)]), [Some(4096)]);
        assert_eq!(signs(&[(90_000, 3333)]), [None]);
    }

    #[test]
    fn honest_counts_show_nothing() {
        for (why, prompts) in [
            ("four bytes a token", vec![(16_000, 4000), (21_000, 5250), (26_000, 6500)]),
            ("a dense script", vec![(20_000, 3000), (23_000, 3400), (27_000, 3900)]),
            ("a cache that is not counted", vec![(18_000, 4500), (23_000, 1250), (28_000, 1250), (33_000, 1250)]),
            ("a summary, then other words", vec![(30_000, 9000), (12_000, 3000), (18_000, 4200), (33_000, 9100)]),
            ("the same prompt", vec![(20_000, 3500), (20_000, 3500), (20_100, 3510)]),
            ("no counts", vec![(18_000, 0), (40_000, 0), (60_000, 7), (90_000, 7)]),
            ("many blanks in one message", vec![(16_000, 4000), (20_000, 4130)]),
        ] {
            assert!(signs(&prompts).iter().all(Option::is_none), "{why}");
        }
    }

    #[test]
    fn an_output_can_end_at_the_end_of_the_context() {
        for (input, output, asked, ends) in [
            (4095, 1, 8192, true),
            (4095, 0, 8192, true),
            (4000, 96, 8192, true),
            (7990, 10, 8192, true),
            (4000, 96, 96, false),
            (4000, 50, 8192, false),
            (10, 1014, 8192, false),
        ] {
            assert_eq!(is_end_of_context(input, output, asked), ends, "{input} {output} {asked}");
        }
    }
}
