//! The words by which servers name a fault, in lower case.
//!
//! Each text is so narrow that no other fault has it. See [`super`].

/// The model, or its server, takes no tools.
pub(super) const NO_TOOLS: &[&str] = &[
    "does not support tools",
    "does not support function calling",
    "does not support tool",
    "support tool use",
    "requires --jinja",
    "requires --enable-auto-tool-choice",
    "tool use is not supported",
];

/// The server cannot read a call that its own model made.
pub(super) const BAD_CALL: &[&str] = &[
    "tool_use_failed",
    "failed_generation",
    "failed to call a function",
    "error parsing tool call",
    "failed to parse tool call",
    "failed to parse tool_call",
    "error in extracting tool call",
    "error extracting tool call",
    "invalid tool call generated",
    "tool call parsing failed",
    "tool call validation failed",
    "failed to parse input at pos",
    "malformed_function_call",
    "malformed_tool_call",
    "malformed function call",
    "malformed tool call",
    "model produced invalid",
    "model generated invalid",
    "failed to generate tool call",
    "failed to generate a tool call",
    "hermes tool parser",
];

/// A call of a model.
pub(super) const CALL: &[&str] = &["tool call", "tool_call", "toolcall", "function call", "function_call"];
/// What a server does with a call that it cannot read.
pub(super) const UNREAD: &[&str] = &["parse", "parsing", "malformed", "invalid json", "valid json", "unterminated"];
/// The conversation that was sent: a complaint about it is none about a new call.
pub(super) const SENT: &[&str] = &["messages[", "messages.", "in messages", "\"messages\"", "tool_call_id"];

/// The account is used up.
pub(super) const CREDIT: &[&str] = &[
    "insufficient_quota",
    "credit balance is too low",
    "insufficient balance",
    "insufficient_balance",
    "insufficient credit",
    "insufficient_credit",
    "insufficient funds",
    "not enough credit",
    "requires more credits",
    "out of credits",
    "no credits",
    "used all available credits",
    "spending limit",
    "billing_hard_limit",
    "billing hard limit",
    "billing_not_active",
    "billing_error",
    "payment required",
    "arrearage",
    "exceeded_current_quota",
    "any credits",
    "included credits",
    "credit limit",
    "balance is insufficient",
    "overdue",
    "api usage limits",
    "budget has been exceeded",
    "budget_exceeded",
    "exceededbudget",
    "payment method",
    "free tier of the model has been exhausted",
    "余额不足",
    "额度不足",
    "欠费",
];

/// The request is longer than the server takes at once; a number in the words is none of the model.
pub(super) const TOO_LARGE: &[&str] = &["request too large", "request_too_large"];

/// The provider's filter refused the prompt or the answer.
pub(super) const FILTER: &[&str] = &[
    "content_filter",
    "content filter",
    "content_policy",
    "content policy",
    "content management policy",
    "responsibleaipolicy",
    "contentpolicyviolation",
    "prohibited_content",
    "blocked by safety",
    "safety system",
    "content_moderation",
    "requires moderation",
    "data_inspection_failed",
    "was flagged",
    "been flagged",
    "invalid_prompt",
    "usage policy",
    "usage policies",
    "content exists risk",
    "considered high risk",
    "inappropriate content",
    "sensitive content",
    "敏感内容",
    "违规",
    "guardrail",
];

/// The key is refused or missing.
pub(super) const KEY: &[&str] = &[
    "invalid api key",
    "invalid api-key",
    "invalid_api_key",
    "invalidapikey",
    "incorrect api key",
    "incorrect_api_key",
    "api key not valid",
    "api_key_invalid",
    "api key expired",
    "api_key_expired",
    "api key is invalid",
    "api key provided",
    "provide an api key",
    "no api key",
    "missing api key",
    "invalid x-api-key",
    "invalid subscription key",
    "no auth credentials",
    "no cookie auth credentials",
    "authentication_error",
    "authenticationerror",
    "authentication fails",
    "unauthenticated",
    "unrecognizedclientexception",
    "invalidsignatureexception",
    "expiredtokenexception",
    "invalid api token",
    "invalid bearer token",
    "invalid proxy server token",
    "authentication error",
    "authentication failed",
    "unauthorized",
    "expired key",
    "expired_key",
    "token expired",
    "token has expired",
    "wrong api key",
    "wrong_api_key",
    "login fail",
    "无效的令牌",
    "令牌无效",
    "身份验证",
    "security token included in the request is invalid",
];

/// The rate limit is reached.
pub(super) const RATE: &[&str] = &[
    "rate_limit",
    "rate limit",
    "rate-limit",
    "ratelimit",
    "call volume quota",
    "too many requests",
    "too_many_requests",
    "throttlingexception",
    "throttled",
    "resource_exhausted",
    "resource exhausted",
    "requests per minute",
    "tokens per minute",
    "quota exceeded",
    "rate exceeded",
    "rate limiting",
    "limit_requests",
    "requests list",
    "high concurrency",
    "max organization concurrency",
    "usage limit",
    "trial key",
    "too many tokens, please wait",
    "过于频繁",
    "速率限制",
    "并发",
];

/// The server has too much to do, or its model is not loaded yet.
pub(super) const OVERLOAD: &[&str] = &[
    "overloaded",
    "at capacity",
    "over capacity",
    "no capacity",
    "capacity exceeded",
    "server is busy",
    "server busy",
    "model is busy",
    "model busy",
    "engine is busy",
    "too busy",
    "high traffic",
    "服务器繁忙",
    "负载已饱和",
    "temporarily unavailable",
    "loading model",
    "model is loading",
    "currently loading",
    "no healthy upstream",
    "no available server",
    "no instances available",
    "modelnotreadyexception",
    "serviceunavailableexception",
    "high demand",
];

/// The model does not exist.
pub(super) const MODEL: &[&str] = &[
    "model_not_found",
    "modelnotfound",
    "is not a valid model",
    "invalid model",
    "invalid_model",
    "model not found",
    "model not exist",
    "deploymentnotfound",
    "unknown model",
    "unknown_model",
    "model identifier is invalid",
    "no models loaded",
    "unable to access model",
    "model_not_available",
    "模型不存在",
];

/// A provider serves this account, place or organisation not yet, or never; another key changes nothing.
pub(super) const NOT_SERVED: &[&str] = &[
    "country",
    "countries",
    "region",
    "territory",
    "location is not supported",
    "must be verified",
    "verify your organization",
    "terms of",
    "accept the license",
    "gated",
];

/// The request has a fault of its own, in the words of a template or a check. A server that says so works.
pub(super) const UNFIT: &[&str] = &[
    "invalid",
    "unexpected role",
    "must alternate",
    "should alternate",
    "must be",
    "must have",
    "must not",
    "not permitted",
    "not supported",
    "unsupported",
    "is required",
    "field required",
    "missing required",
    "bad input",
    "bad request",
    "bad_request",
    "is blank",
    "template",
    "cannot be empty",
    "does not match",
    "validation error",
];

/// The fault of a server beside such words: it may work soon.
pub(super) const UNWELL: &[&str] =
    &["upstream", "internal", "unavailable", "timeout", "timed out", "invalid response", "try again", "server_error"];

/// Types and codes that mean a status, for bodies that came with status 200.
const STATUSES: [(&str, u16); 22] = [
    ("invalid_request_message_order", 400),
    ("template_error", 422),
    ("invalid_request_error", 400),
    ("invalid_argument", 400),
    ("failed_precondition", 400),
    ("validationexception", 400),
    ("badrequesterror", 400),
    ("authentication_error", 401),
    ("unauthenticated", 401),
    ("permission_error", 403),
    ("permission_denied", 403),
    ("accessdeniedexception", 403),
    ("not_found_error", 404),
    ("not_found", 404),
    ("resourcenotfoundexception", 404),
    ("modeltimeoutexception", 408),
    ("request_too_large", 413),
    ("rate_limit_error", 429),
    ("service_unavailable", 503),
    ("unavailable", 503),
    ("overloaded_error", 529),
    ("api_error", 500),
];

/// Returns the status that a type or a code of an error means.
pub(super) fn status(recognised: &str) -> Option<u16> {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let words: Vec<&str> = recognised.split(|letter: char| !is_word(letter)).collect();
    STATUSES.iter().find(|(word, _)| words.contains(word)).map(|(_, status)| *status)
}
