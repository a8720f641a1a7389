//! The words by which servers refuse a prompt because of its size, and the numbers in them.

use super::TOKENS;
use regex::Regex;
use std::sync::LazyLock;

/// Words of a refusal because of the size, in lower case.
const REFUSALS: [&str; 34] = [
    "cannot exceed max context",
    "context length exceeded",
    "context length of only",
    "context limit",
    "context window",
    "context_length_exceeded",
    "contextwindowexceeded",
    "current length is",
    "exceed context limit",
    "exceed_context_size",
    "exceeded model token limit",
    "exceeds context length",
    "exceeds the available context size",
    "exceeds the context",
    "exceeds the maximum number of tokens",
    "input is too long",
    "input length and `max_tokens` exceed",
    "input length exceeds",
    "longer than the model's context length",
    "max_new_tokens` must be <=",
    "maximum context length",
    "maximum context size",
    "maximum prompt length",
    "model_context_window_exceeded",
    // The template of a server that dropped the beginning of the prompt.
    "no user query found",
    "prompt exceeds max length",
    "prompt is too long",
    "range of input length should be",
    "reached context length",
    "request_too_large",
    "string_above_max_length",
    "tokens in the prompt cannot exceed",
    "too many tokens in the prompt",
    "too many total text bytes",
];

/// The places of the number of tokens that a model reads, in words in lower case. The first that is found counts.
static PLACES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let places = [
        r"with ([\d,_]+) maximum context length",
        r"maximum (?:context|prompt) (?:length|size)(?: is| of|:)? *([\d,_]+)",
        r"context length of(?: only)? ([\d,_]+)",
        r"context length \(([\d,_]+)",
        r"available context size \(([\d,_]+)",
        r"context (?:window|limit)(?: of|:| is)? *([\d,_]+) *(?:tokens|$|[.);])",
        r"exceed context limit:[^>]*> *([\d,_]+)",
        r"tokens > ([\d,_]+) maximum",
        r"maximum number of tokens allowed *\(?([\d,_]+)",
        r"n_ctx\W{1,4}([\d,_]+)",
        r"max_new_tokens` must be <= ([\d,_]+)",
        r"tokens in the prompt cannot exceed ([\d,_]+)",
        r"while limit is ([\d,_]+)",
        r"model token limit: *([\d,_]+)",
        r"range of input length should be \[\d+, *([\d,_]+)\]",
    ];
    places.iter().map(|place| Regex::new(place).expect("a fixed pattern")).collect()
});

/// Returns whether these words, in lower case, refuse a prompt because of its size.
pub fn is_refusal(words: &str) -> bool {
    REFUSALS.iter().any(|refusal| words.contains(refusal))
}

/// Returns the tokens that a model reads, if these words of its server say so.
pub fn stated(words: &str) -> Option<u64> {
    let words = words.to_lowercase();
    let number = |place: &Regex| {
        let digits: String = place.captures(&words)?.get(1)?.as_str().chars().filter(char::is_ascii_digit).collect();
        digits.parse().ok().filter(|tokens| TOKENS.contains(tokens))
    };
    PLACES.iter().find_map(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Refusals by size in the words of servers, and the number that they state.
    const SIZES: [(&str, Option<u64>); 31] = [
        (
            "This model's maximum context length is 8192 tokens. However, your messages resulted in 9031 tokens.",
            Some(8192),
        ),
        (
            "This model's maximum context length is 4096 tokens. However, you requested 5120 tokens (96 in the messages).",
            Some(4096),
        ),
        (
            "This endpoint's maximum context length is 131,072 tokens. However, you requested about 200031 tokens.",
            Some(131_072),
        ),
        (
            "Prompt contains 40031 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
            Some(32_768),
        ),
        (
            "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 5000.",
            Some(4096),
        ),
        ("The input (5031 tokens) is longer than the model's context length (4096 tokens).", Some(4096)),
        ("The prompt is too long: 9031, model maximum context length: 8191", Some(8191)),
        ("prompt is too long: 210031 tokens > 200000 maximum", Some(200_000)),
        (
            "input length and `max_tokens` exceed context limit: 190031 + 20000 > 200000, decrease input length",
            Some(200_000),
        ),
        ("The input token count (1200031) exceeds the maximum number of tokens allowed (1048576).", Some(1_048_576)),
        ("the request exceeds the available context size (4096 tokens), try increasing it", Some(4096)),
        ("request (5031 tokens) exceeds the available context size (4096 tokens), try increasing it", Some(4096)),
        ("the request exceeds the available context size. try increasing the context size (n_ctx: 4096)", Some(4096)),
        ("exceed_context_size_error \"n_prompt_tokens\":5031,\"n_ctx\":4096", Some(4096)),
        ("Requested tokens (5031) exceed context window of 4096", Some(4096)),
        (
            "Trying to keep the first 5031 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.",
            Some(4096),
        ),
        ("Reached context length of 4096 tokens with this model", Some(4096)),
        (
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 5031 `inputs` tokens",
            Some(4097),
        ),
        ("too many tokens: total number of tokens in the prompt cannot exceed 4081 - received 5031.", Some(4081)),
        (
            "Please reduce the length of the messages or completion. Current length is 9031 while limit is 8192",
            Some(8192),
        ),
        ("This model's maximum prompt length is 131072 but the request contains 537812 tokens.", Some(131_072)),
        ("Invalid request: Your request exceeded model token limit: 8192", Some(8192)),
        ("Range of input length should be [1, 30720]", Some(30_720)),
        ("Your input exceeds the context window of this model. Please adjust your input and try again.", None),
        ("invalid params, context window exceeds limit (2013)", None),
        ("the input length exceeds the context length", None),
        ("Input is too long for requested model.", None),
        ("Prompt exceeds max length", None),
        ("context_length_exceeded", None),
        ("Error rendering prompt with jinja template: No user query found in messages.", None),
        ("This model's maximum context length is 4 tokens", None),
    ];

    #[test]
    fn refusals_by_size_are_recognised_with_their_number() {
        for (words, tokens) in SIZES {
            assert!(is_refusal(&words.to_lowercase()), "{words}");
            assert_eq!(stated(words), tokens, "{words}");
        }
    }

    #[test]
    fn other_refusals_with_numbers_are_no_sizes() {
        for words in [
            "max_tokens: 9000 > 8192, which is the maximum allowed number of output tokens",
            "Rate limit reached for tokens per min (TPM): Limit 30000, Used 29000, Requested 4096",
            "Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 8000",
            "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
            "You exceeded your current quota, please check your plan",
            "model 'x' not found",
            "Too many tokens, please wait before trying again.",
        ] {
            assert!(!is_refusal(&words.to_lowercase()), "{words}");
            assert_eq!(stated(words), None, "{words}");
        }
    }
}
