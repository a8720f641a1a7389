//! The prices of an endpoint, and the cost of tokens at these prices.
//!
//! Never counts tokens: [`crate::remote`] does. See [`crate::endpoint`].

/// Prices in millionths of a currency for a million tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Prices {
    /// Price of input tokens.
    pub input: u64,
    /// Price of output tokens.
    pub output: u64,
}

impl Prices {
    /// Returns the cost of these tokens, in millionths. It is rounded up, so that rounding never exceeds a ceiling.
    pub fn cost(self, input_tokens: u64, output_tokens: u64) -> u64 {
        let of = |price: u64, tokens: u64| u128::from(price) * u128::from(tokens);
        let sum = of(self.input, input_tokens).saturating_add(of(self.output, output_tokens));
        u64::try_from(sum.div_ceil(1_000_000)).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn costs_are_rounded_up_and_never_wrap() {
        let prices = Prices { input: 3_000_000, output: 15_000_000 };
        assert_eq!(prices.cost(1_000_000, 0), 3_000_000);
        assert_eq!(Prices { input: 1, output: 0 }.cost(1, 0), 1);
        assert_eq!(Prices { input: u64::MAX, output: u64::MAX }.cost(u64::MAX, u64::MAX), u64::MAX);
    }
}
