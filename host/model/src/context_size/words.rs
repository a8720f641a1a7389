//! The words by which servers refuse a prompt because of its size, and the numbers in them.

use super::TOKENS;
use regex::Regex;
use std::sync::LazyLock;

/// Fewest tokens that are a bound on outputs; other numbers in the words of a server are something else.
const OUTPUT_TOKENS_MIN: u32 = 16;

/// Words of a refusal because of the size, in lower case.
const REFUSALS: [&str; 49] = [
    "cannot exceed max context",
    "context is full",
    "context length exceeded",
    "context length is only",
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
    "free space in the kv cache",
    "input is too long",
    "input length and `max_tokens` exceed",
    "input length exceeds",
    "kv cache full",
    "kv cache is full",
    "longer than the model's context length",
    "max sequence length exceeded",
    "max_new_tokens` must be <=",
    // A prompt that leaves nothing for the output, at vLLM.
    "max_tokens must be at least 1, got -",
    "maximum context length",
    "maximum context size",
    "maximum prompt length",
    "maximum supported sequence length",
    "model_context_window_exceeded",
    // The template of a server that dropped the beginning of the prompt.
    "no user query found",
    "out of context",
    "prompt exceeds max length",
    "prompt is too long",
    "range of input length should be",
    "reached context length",
    "request_too_large",
    "request body too large",
    "request entity too large",
    "string_above_max_length",
    "tokens in the prompt cannot exceed",
    "too many tokens in the prompt",
    "too many total text bytes",
    "überschreitet das kontextfenster",
    "上下文长度",
    "输入长度",
    "超过最大长度",
];

/// The places of the number of tokens that a model reads, in words in lower case. The first that is found counts.
static PLACES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let places = [
        r"with ([\d,_]+) maximum context length",
        r"maximum (?:context|prompt) (?:length|size)(?: is| of|:)? *([\d,_]+)",
        r"context length (?:of|is)(?: only)? ([\d,_]+)",
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
        r"maximum (?:model length|supported sequence length) (?:of|is)(?: just)? ([\d,_]+)",
        r"maximum (?:allowed|input) length \(([\d,_]+)",
        r"exceeds max(?:imum)?(?:_\w+| context length| input length)? ([\d,_]+)",
        r"must (?:have|be) less than ([\d,_]+) tokens",
        r"exceeds? the (?:limit|maximum) of ([\d,_]+)",
        r"exceeds? (?:the )?(?:max|total|maximum) tokens? limit ([\d,_]+)",
        r"(?:exceed the total tokens|exceeded model|max token) limit:? ([\d,_]+)",
        r"max size: ([\d,_]+) tokens",
        r"limit for this model is ([\d,_]+)",
        r"max_(?:seq|model)_len\w*\W{1,3}(?:of )?\(?([\d,_]+)",
        r"(?:limit|maximum) of ([\d,_]+) (?:input )?tokens(?:$|[^ ]| [^p])",
        r"(?:session_len|max_context_len|max context length) ([\d,_]+)",
        r"max_length \(([\d,_]+)",
        r"context window limit \(([\d,_]+)",
        r"(?:prompt|context|inputs?) [a-z ]{1,24}:? *\(?[\d,_]+ *>=? *([\d,_]+)",
        r"too long:? [\d,_]+ tokens, max ([\d,_]+)",
    ];
    places.iter().map(|place| Regex::new(place).expect("a fixed pattern")).collect()
});

/// Parts of a request whose size has nothing to do with the context, and options, which are no subject of a refusal by size.
static OTHERS: LazyLock<Regex> = LazyLock::new(|| {
    let others =
        r"max_(?:\w+_)?tokens|(?:completion|output|new|access|auth\w*|refresh|bearer) tokens?|input should be|response";
    Regex::new(others).expect("a fixed pattern")
});

/// A prompt, or what it is made of, and within the sentence that it is too much.
static SUBJECT_IS_TOO_MUCH: LazyLock<Regex> = LazyLock::new(|| {
    let subject = r"\b(?:prompts?|inputs?|(?:\w+_)?tokens?|context|n_ctx|n_keep|(?:max_)?seq(?:uence)?[_ ]?len(?:gth)?|session_len|conversation)\b";
    let is_too_much = r"(?:exceed\w*|too (?:long|many|big|large)|(?:longer|greater|larger|more) than|less than [\d,_]+ tokens|>=|overflow\w*)";
    Regex::new(&format!("{subject}[^.!?]{{0,80}}{is_too_much}")).expect("a fixed pattern")
});

/// The same with the subject behind it.
static IS_MORE_THAN: LazyLock<Regex> = LazyLock::new(|| {
    let subject = r"(?:context|input tokens?|prompt|token limit|tokens? allowed|sequence length|n_ctx)";
    let more = format!(
        r"(?:exceed\w*|longer than|greater than|more than) (?:[a-z'_-]+ ){{0,6}}{subject}|\bmessages? (?:[a-z]+ ){{0,4}}too long"
    );
    Regex::new(&more).expect("a fixed pattern")
});

/// A request for a shorter conversation.
static SHORTER: LazyLock<Regex> = LazyLock::new(|| {
    let shorter = r"(?:reduce|shorten|decrease) (?:the )?(?:length|size|number) of (?:the |your )?(?:input|prompt|messages|conversation)";
    Regex::new(shorter).expect("a fixed pattern")
});

/// Words of other limits: on time, on money, and on files.
const OTHER_LIMITS: [&str; 25] = [
    "array too long",
    "audio",
    "balance",
    "billing",
    "budget",
    "credit",
    "daily",
    "document",
    "expired",
    "file",
    "image size",
    "image exceed",
    "image is",
    "images exceed",
    "monthly",
    "per day",
    "per hour",
    "per min",
    "per month",
    "per second",
    "please wait",
    "quota",
    "rate limit",
    "rate_limit",
    "weekly",
];

/// Returns whether these words, in lower case, refuse a prompt because of its size, in a form that is known.
pub fn is_refusal(words: &str) -> bool {
    REFUSALS.iter().any(|refusal| words.contains(refusal))
}

/// Returns whether these words, in lower case, say that a prompt is too long, in whatever form. They may name another fault too, which
/// precedes this one.
pub fn is_about_size(words: &str) -> bool {
    if OTHER_LIMITS.iter().any(|limit| words.contains(limit)) {
        return false;
    }
    let words = OTHERS.replace_all(words, " ");
    [&SUBJECT_IS_TOO_MUCH, &IS_MORE_THAN, &SHORTER].iter().any(|rule| rule.is_match(&words))
}

/// Returns the tokens that a model reads, if these words of its server say so.
pub fn stated(words: &str) -> Option<u64> {
    number(&PLACES, words).filter(|tokens| TOKENS.contains(tokens))
}

/// The places of the largest output that a server accepts, in words in lower case.
static OUTPUT_PLACES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let places = [
        r"max\w*tokens\W{1,4}\d+ > ([\d,_]+)",
        r"at most ([\d,_]+) (?:completion|output) tokens",
        r"range of max\w*tokens (?:is|should be) \[\d+, *([\d,_]+)\]",
        r"max\w*tokens\W{1,3}must be (?:<=|less than or equal to|at most|between \d+ and|in \[\d+,) *`?([\d,_]+)",
        r"maximum (?:value for|allowed)[^\d.]{1,40}([\d,_]+)",
    ];
    places.iter().map(|place| Regex::new(place).expect("a fixed pattern")).collect()
});

/// Returns the tokens of the largest output that a server accepts, if its words say so.
pub fn stated_output(words: &str) -> Option<u32> {
    number(&OUTPUT_PLACES, words)
        .and_then(|tokens| u32::try_from(tokens).ok())
        .filter(|tokens| *tokens >= OUTPUT_TOKENS_MIN)
}

/// Returns the number at the first of these places that the words have.
fn number(places: &[Regex], words: &str) -> Option<u64> {
    let words = words.to_lowercase();
    let number = |place: &Regex| {
        let digits: String = place.captures(&words)?.get(1)?.as_str().chars().filter(char::is_ascii_digit).collect();
        digits.parse().ok()
    };
    places.iter().find_map(number)
}

#[cfg(test)]
mod tests;
