//! Tests of refusals by size in the words of servers. See [`super`].

use super::*;

/// Refusals by size in the words of servers, and the number that they state.
const SIZES: [(&str, Option<u64>); 31] = [
    ("This model's maximum context length is 8192 tokens. However, your messages resulted in 9031 tokens.", Some(8192)),
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
    ("Please reduce the length of the messages or completion. Current length is 9031 while limit is 8192", Some(8192)),
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

/// The same in further words, of which the general rule knows the kind.
const FURTHER: [(&str, Option<u64>); 42] = [
    (
        "You passed 9031 input tokens and requested 2048 output tokens. However, the model's context length is only 8192 tokens, resulting in a maximum input length of 6144 tokens. Please reduce the length of the input prompt.",
        Some(8192),
    ),
    (
        "The decoder prompt (length 9031) is longer than the maximum model length of 8192. Make sure that `max_model_len` is no smaller than the number of text tokens.",
        Some(8192),
    ),
    (
        "Requested generation length 99 is not possible! The provided prompt is 9031 tokens long, so it requires a sequence length of 9130, but the maximum supported sequence length is just 8192!",
        Some(8192),
    ),
    ("You requested 8192 output tokens. However, the model's context length is only 8192 tokens.", Some(8192)),
    ("max_tokens must be at least 1, got -839.", None),
    ("Cannot truncate prompt with n_keep (9031) >= n_ctx (8192)", Some(8192)),
    (
        "The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length",
        None,
    ),
    ("Input prompt is too big compared to KV size. Please try increasing KV size.", None),
    ("Input validation error: `inputs` must have less than 8192 tokens. Given: 9031", Some(8192)),
    ("prompt token count of 9031 exceeds the limit of 8192", Some(8192)),
    ("Total tokens of image and text exceed max message tokens", None),
    (
        "too many tokens: size limit exceeded by 1300 tokens. Try using shorter or fewer inputs. The limit for this model is 8192 tokens.",
        Some(8192),
    ),
    ("prompt length 9031 exceeds max 8192", Some(8192)),
    ("Input tokens exceeded model limit: 8192", Some(8192)),
    (
        "Input Tokens Exceeded: Number of input tokens exceeds maximum length. Please update the input to try again.",
        None,
    ),
    ("Input length (9031 tokens) exceeds the maximum allowed length (8192 tokens). Use a shorter input.", Some(8192)),
    ("Prompt is too long: 9031 > 8192", Some(8192)),
    ("context size exceeded: 9031 > 8192", Some(8192)),
    ("Prompt length 9031 is greater than max_seq_len 8192", Some(8192)),
    ("Please reduce the length of the messages or completion.", None),
    ("prompt length (9031) exceeds maximum input length (8192). Set log level to info", Some(8192)),
    ("input sequence_length (9031) is >= max_length (8192)", Some(8192)),
    ("Requested tokens too large: max context length 8192", Some(8192)),
    ("the number of input tokens 9031 cannot exceed the total tokens limit 8192 for this model", Some(8192)),
    ("BAD_REQUEST: Input token count 9031 exceeds the max token limit 8192", Some(8192)),
    ("Request body too large for gpt-4o model. Max size: 8192 tokens.", Some(8192)),
    ("The total message token length exceed model limit", None),
    ("max sequence length exceeded", None),
    (
        "AiError: The estimated number of input and maximum output tokens (9031) exceeded this model context window limit (8192).",
        Some(8192),
    ),
    ("input tokens exceed the maximum of 8192", Some(8192)),
    ("Input length exceeds the limit", None),
    ("input token length 9031 exceeds session_len 8192", Some(8192)),
    ("Inputs too long: 9031 tokens, max 8192", Some(8192)),
    ("prompt token size 9031 exceed max_context_len 8192", Some(8192)),
    ("The message you submitted was too long, please submit something shorter.", None),
    ("Your request exceeds the maximum number of input tokens", None),
    ("The prompt is longer than max_model_len of 8192", Some(8192)),
    ("failed to find free space in the KV cache, retrying with smaller batch size", None),
    ("the context is full", None),
    ("input is too large to process. increase the physical batch size", None),
    ("The request has more tokens than the limit of 8192 tokens; shorten the prompt, which is too long", Some(8192)),
    ("输入长度超过限制", None),
];

#[test]
fn refusals_by_size_in_further_words_are_recognised() {
    let is_read = |(words, tokens): &&(&str, Option<u64>)| {
        let lower = words.to_lowercase();
        (is_refusal(&lower) || is_about_size(&lower)) && stated(words) == *tokens
    };
    let missed: Vec<_> = FURTHER.iter().filter(|row| !is_read(row)).map(|(words, _)| (words, stated(words))).collect();
    assert!(missed.is_empty(), "{missed:#?}");
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
        "max_tokens is too large: 9000. This model supports at most 8192 completion tokens, whereas you provided 9000.",
        "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window`",
        "You exceeded your tokens per minute limit: 9000 > 8192",
        "Daily token limit exceeded: 900000",
        "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 5316852 bytes > 5242880 bytes",
        "Input should be less than or equal to 4096",
        "Invalid 'tools': array too long. Expected an array with maximum length 128, but got an array with length 300 instead.",
        "The access token exceeds its life of 3600 seconds",
        "tools.0.custom.input_schema: JSON schema is invalid",
        "Budget has been exceeded! Current cost: 4096, Max budget: 1000",
        "temperature must be less than 2",
        "You have reached the limit of 30000 tokens per minute",
        "The tool name is longer than 64 characters",
        "stop: number of stop sequences exceeds the maximum of 4",
    ] {
        assert!(!is_refusal(&words.to_lowercase()) && !is_about_size(&words.to_lowercase()), "{words}");
        assert_eq!(stated(words), None, "{words}");
    }
}
