//! The failures of an endpoint, with a sentence for people about each.
//!
//! Never puts a provider's words into a sentence, because sentences reach logs and the ledger. An operator sees the words
//! separately, without the key: in a test, and as the last words of an endpoint. See [`crate::remote`].

use super::Usage;
use std::fmt;
use std::time::Duration;

/// Characters of a provider's words that are kept.
const DETAIL_CHARS_MAX: usize = 500;
/// The failure of an endpoint whose calls have two readings.
const UNCLEAR_CALLS: &str = "sent calls of tools whose parts cannot be told apart, so nothing ran: add it again with `--no-stream`, or \
     update its server";
/// The failure of an endpoint whose answer with calls ends for an unknown reason.
const UNKNOWN_END: &str = "ended an answer with calls of tools for a reason that this host does not know, so nothing ran: send the \
     message again, or give the agent another model";
/// The failure of an endpoint that was added with the wrong kind.
const OTHER_API: &str = "answers in the format of the other API: add it again with the other `--kind`, openai for Chat Completions or \
     anthropic for Messages";
/// Endpoints that a sentence names; it counts the others.
const NAMED_MAX: usize = 3;

/// The failure of one request to an endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The endpoint does not exist.
    Absent,
    /// The endpoint in the record is not valid.
    Broken,
    /// No server accepted a connection in time, or the host name has no address.
    Unreachable,
    /// The URL is plain http, and no address is loopback or private.
    PublicPlain,
    /// The addresses are link-local or of a cloud's metadata service.
    Forbidden,
    /// The TLS handshake failed, mostly because this machine does not trust the certificate.
    Untrusted,
    /// The server closed the connection before an answer began.
    Closed,
    /// The server did not begin to answer in time.
    Silent,
    /// The server paused too long in the middle of its answer.
    Stalled,
    /// The deadline of the whole answer has passed.
    Late,
    /// The connection ended in the middle of the answer.
    Cut,
    /// The key is not set on this host.
    NoKey,
    /// The key is stored and cannot be read.
    KeyUnreadable,
    /// The key has characters that a header cannot carry.
    KeyUnusable,
    /// The server requires a key, and none is configured.
    KeyWanted,
    /// The server refused the key (401, 403).
    KeyRefused,
    /// The account has no credit or quota left.
    NoCredit,
    /// The rate limit is reached (429).
    RateLimited {
        /// The wait that the server requested.
        retry_after: Option<Duration>,
    },
    /// The server is overloaded (503, 529).
    Overloaded {
        /// The wait that the server requested.
        retry_after: Option<Duration>,
    },
    /// The server had an internal error.
    ServerError {
        status: u16,
        /// The wait that the server requested.
        retry_after: Option<Duration>,
    },
    /// The server had an internal error at each attempt with this conversation, and none with a shorter one or with another.
    ConversationFails { status: u16 },
    /// The server refused a call that its own model made, or announced one and sent none, also at the second attempt.
    BadCall,
    /// The server redirected the request (3xx); the host never follows redirects.
    Redirected,
    /// The server does not know the model, or does not have the API at this address (404).
    ModelUnknown,
    /// The model does not support tools, or the server was started without them.
    NoTools,
    /// The conversation exceeds the context of the model.
    ContextTooLong,
    /// The server refused the request for another reason, with this status.
    BadRequest(u16),
    /// The answer has the format of the other API.
    OtherApi,
    /// The answer cannot be parsed.
    Malformed,
    /// The parts of the calls in the answer cannot be told apart.
    UnclearCalls,
    /// The answer has calls, and the host does not know the reason of its end.
    UnknownEnd,
    /// The answer exceeds the limit of an output.
    TooLarge,
    /// The answer reached the limit of tokens before it was usable.
    Truncated,
    /// The provider withheld the answer.
    Withheld,
    /// The script has no answer, or its rule fails on purpose.
    Script,
    /// The endpoint was not asked, because earlier attempts left too little of a ceiling.
    OverCeiling,
}

impl Fault {
    /// Returns a stable code, for counters and the ledger.
    pub const fn code(self) -> &'static str {
        match self {
            Self::Absent => "absent",
            Self::Broken => "broken",
            Self::Unreachable => "unreachable",
            Self::PublicPlain => "public_plain",
            Self::Forbidden => "forbidden_address",
            Self::Untrusted => "untrusted",
            Self::Closed => "closed",
            Self::Silent => "silent",
            Self::Stalled => "stalled",
            Self::Late => "late",
            Self::Cut => "cut",
            Self::NoKey => "no_key",
            Self::KeyUnreadable => "key_unreadable",
            Self::KeyUnusable => "key_unusable",
            Self::KeyWanted => "key_wanted",
            Self::KeyRefused => "key_refused",
            Self::NoCredit => "no_credit",
            Self::RateLimited { .. } => "rate_limited",
            Self::Overloaded { .. } => "overloaded",
            Self::ServerError { .. } => "server_error",
            Self::ConversationFails { .. } => "conversation_fails",
            Self::BadCall => "bad_call",
            Self::Redirected => "redirected",
            Self::ModelUnknown => "model_unknown",
            Self::NoTools => "no_tools",
            Self::ContextTooLong => "context_too_long",
            Self::BadRequest(_) => "bad_request",
            Self::OtherApi => "other_api",
            Self::Malformed => "malformed",
            Self::UnclearCalls => "unclear_calls",
            Self::UnknownEnd => "unknown_end",
            Self::TooLarge => "too_large",
            Self::Truncated => "truncated",
            Self::Withheld => "withheld",
            Self::Script => "script",
            Self::OverCeiling => "over_ceiling",
        }
    }

    /// Returns whether a retry may succeed. A slow server gets no retry: it may still work on the first request, which has its price.
    pub const fn is_transient(self) -> bool {
        match self {
            Self::Unreachable
            | Self::Closed
            | Self::Cut
            | Self::RateLimited { .. }
            | Self::Overloaded { .. }
            | Self::ServerError { .. } => true,
            Self::Absent
            | Self::Broken
            | Self::PublicPlain
            | Self::Forbidden
            | Self::Untrusted
            | Self::Silent
            | Self::Stalled
            | Self::Late
            | Self::NoKey
            | Self::KeyUnreadable
            | Self::KeyUnusable
            | Self::KeyWanted
            | Self::KeyRefused
            | Self::NoCredit
            | Self::ConversationFails { .. }
            | Self::BadCall
            | Self::Redirected
            | Self::ModelUnknown
            | Self::NoTools
            | Self::ContextTooLong
            | Self::BadRequest(_)
            | Self::OtherApi
            | Self::Malformed
            | Self::UnclearCalls
            | Self::UnknownEnd
            | Self::TooLarge
            | Self::Truncated
            | Self::Withheld
            | Self::Script
            | Self::OverCeiling => false,
        }
    }

    /// Returns whether the failure is due to the endpoint and not to this request.
    pub const fn is_endpoint_failure(self) -> bool {
        let is_unfit =
            matches!(self, Self::Untrusted | Self::Silent | Self::Stalled | Self::OtherApi | Self::Malformed);
        self.is_transient() || is_unfit
    }

    /// Returns whether the endpoint may have made a part of an output, which has its price.
    pub const fn may_have_cost(self) -> bool {
        match self {
            Self::Closed
            | Self::Silent
            | Self::Stalled
            | Self::Late
            | Self::Cut
            | Self::BadCall
            | Self::OtherApi
            | Self::Malformed
            | Self::UnclearCalls
            | Self::UnknownEnd
            | Self::TooLarge
            | Self::Truncated
            | Self::Withheld => true,
            Self::Absent
            | Self::Broken
            | Self::Unreachable
            | Self::PublicPlain
            | Self::Forbidden
            | Self::Untrusted
            | Self::NoKey
            | Self::KeyUnreadable
            | Self::KeyUnusable
            | Self::KeyWanted
            | Self::KeyRefused
            | Self::NoCredit
            | Self::RateLimited { .. }
            | Self::Overloaded { .. }
            | Self::ServerError { .. }
            | Self::ConversationFails { .. }
            | Self::Redirected
            | Self::ModelUnknown
            | Self::NoTools
            | Self::ContextTooLong
            | Self::BadRequest(_)
            | Self::Script
            | Self::OverCeiling => false,
        }
    }

    /// Returns the wait that the server requested.
    pub const fn retry_after(self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after }
            | Self::Overloaded { retry_after }
            | Self::ServerError { retry_after, .. } => retry_after,
            _ => None,
        }
    }
}

/// Words of a provider: without the key, shortened, and without characters that could control a terminal.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Detail(String);

impl Detail {
    /// Makes a detail of these words; the key is removed first.
    pub fn new(words: &str, key: Option<&str>) -> Self {
        let words = match key {
            Some(key) if !key.is_empty() => words.replace(key, "[key]"),
            Some(_) | None => words.to_owned(),
        };
        let safe = |letter: char| if letter.is_control() || is_invisible(letter) { ' ' } else { letter };
        let mut kept: String = words.trim().chars().map(safe).take(DETAIL_CHARS_MAX).collect();
        if words.trim().chars().nth(DETAIL_CHARS_MAX).is_some() {
            kept.push('…');
        }
        Self(kept)
    }

    /// Returns the words, only for an operator.
    pub fn for_operator(&self) -> Option<&str> {
        (!self.0.is_empty()).then_some(self.0.as_str())
    }
}

/// Returns whether a character changes the direction of text or has no width.
const fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

impl fmt::Debug for Detail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Detail")
    }
}

/// The failure of one endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Name of the endpoint on this host.
    pub endpoint: String,
    /// The provider's name of its model.
    pub model: String,
    /// Name of the secret that holds its key.
    pub key: Option<String>,
    /// The failure of the last attempt.
    pub fault: Fault,
    /// Number of attempts.
    pub tries: u32,
    /// Words of the provider.
    pub detail: Detail,
}

impl Failure {
    /// Returns the failure and its remedy, in one sentence.
    pub fn sentence(&self) -> String {
        let name = &self.endpoint;
        let test = format!("`ironctl model test {name}`");
        let rotates = |key: &str| format!("`ironctl secret rotate {key}` sets another");
        let what = match self.fault {
            Fault::Absent => return format!("there is no model endpoint `{name}`: `ironctl model list` shows all"),
            Fault::Broken => {
                format!("is not valid in the record: add it again with `--replace`, or `ironctl model remove {name}`")
            }
            Fault::Unreachable => format!("cannot be reached: check that its server runs, and try {test}"),
            Fault::PublicPlain => {
                "uses plain http to an address that is not private: give it a base URL with https".to_owned()
            }
            Fault::Forbidden => {
                "has a host name with link-local addresses or those of a cloud's metadata service, which are never asked: \
                 give it another base URL".to_owned()
            }
            Fault::Untrusted => "has no certificate that this machine trusts, or no TLS".to_owned(),
            Fault::Closed => format!("closed the connection before it began to answer: try {test}"),
            Fault::Silent => "did not begin to answer in time".to_owned(),
            Fault::Stalled => "stopped in the middle of its answer".to_owned(),
            Fault::Late => "did not finish its answer in time".to_owned(),
            Fault::Cut => "ended the connection in the middle of its answer".to_owned(),
            Fault::NoKey => self.key_problem("has no key here", |key| format!("`ironctl secret set {key}` sets it")),
            Fault::KeyUnreadable => match &self.key {
                Some(key) => format!("has the key secret:{key}, which the host cannot read: see its log"),
                None => "has a key that the host cannot read: see its log".to_owned(),
            },
            Fault::KeyUnusable => self.key_problem("has a key with characters that a request cannot carry", rotates),
            Fault::KeyWanted => {
                "needs a key and has none: add it again with `--key-env VARIABLE` or `--key secret:NAME`".to_owned()
            }
            Fault::KeyRefused => self.key_problem("did not accept its key", rotates),
            Fault::NoCredit => "has no credit left: add credit at its provider".to_owned(),
            Fault::RateLimited { retry_after } => format!("has reached its rate limit{}", when_again(retry_after)),
            Fault::Overloaded { retry_after } => format!("is overloaded{}", when_again(retry_after)),
            Fault::ServerError { status, .. } => format!("had an internal error (status {status}): try again later"),
            Fault::ConversationFails { .. } | Fault::BadCall => self.failed_conversation(),
            Fault::Redirected => "answered with a redirect, which is never followed: give it the new base URL".to_owned(),
            Fault::ModelUnknown => format!("does not know the model `{}`, or its base URL is wrong", self.model),
            Fault::NoTools => format!("has a model without support for tools (`{}`): give it another model", self.model),
            Fault::ContextTooLong => self.too_long(),
            Fault::BadRequest(status) => format!("refused the request (status {status}): {}", self.shows_words()),
            Fault::OtherApi => OTHER_API.to_owned(),
            Fault::Malformed => format!("gave an answer that cannot be read: {}", self.shows_words()),
            Fault::UnclearCalls => UNCLEAR_CALLS.to_owned(),
            Fault::UnknownEnd => UNKNOWN_END.to_owned(),
            Fault::TooLarge => "gave an answer over the limit, which was discarded".to_owned(),
            Fault::Truncated => {
                format!("reached its limit of tokens before its answer was usable: raise it with `ironctl model set {name} --output N`")
            }
            Fault::Withheld => "withheld its answer: its provider does not allow it".to_owned(),
            Fault::Script => "has no answer in its script".to_owned(),
            Fault::OverCeiling => {
                "was not asked, because earlier attempts left too little of a ceiling: `ironctl usage` shows it".to_owned()
            }
        };
        format!("the model endpoint `{name}` {what}")
    }

    /// Returns the problem with the size of a prompt, and the remedies.
    fn too_long(&self) -> String {
        format!(
            "does not accept a conversation of this length: raise the context length of its server (`num_ctx` at Ollama, `-c` at \
             llama.cpp, `--max-model-len` at vLLM), or run `ironctl model set {} --context TOKENS` with the tokens that its model reads",
            self.endpoint
        )
    }

    /// Returns the command that shows the words of the server. Its test is a small request, so it says nothing about a refusal that
    /// depends on the conversation.
    fn shows_words(&self) -> String {
        let name = &self.endpoint;
        match self.detail.for_operator() {
            Some(_) => format!("`ironctl model show {name}` shows what it said"),
            None => format!("try `ironctl model test {name}`"),
        }
    }

    /// Returns the failure of one conversation, and what helps.
    fn failed_conversation(&self) -> String {
        let (name, shows) = (&self.endpoint, self.shows_words());
        match self.fault {
            Fault::BadCall => {
                format!(
                    "refused or lost a call that its own model made, twice: ask in other words, or give it another model; {shows}"
                )
            }
            _ => format!(
                "fails with this conversation, and answers a shorter one or another: begin a new conversation with `/new`, or set \
                 what its model reads with `ironctl model set {name} --context TOKENS`; {shows}"
            ),
        }
    }

    /// Returns the problem with the key, and the remedy if the name of the key is known.
    fn key_problem(&self, what: &str, remedy: impl Fn(&str) -> String) -> String {
        match &self.key {
            Some(key) => format!("{what}: {}", remedy(key)),
            None => what.to_owned(),
        }
    }
}

/// Returns the end of a sentence about a limit. A requested pause is a part of the failure and not of the remedy behind the colon.
fn when_again(retry_after: Option<Duration>) -> String {
    match retry_after {
        Some(wait) => format!(", and requests a pause of {}", spoken(wait)),
        None => ": try again later".to_owned(),
    }
}

/// Formats a duration for people.
fn spoken(wait: Duration) -> String {
    match wait.as_secs() {
        0 | 1 => "a second".to_owned(),
        seconds @ 2..=119 => format!("{seconds} seconds"),
        seconds @ 120..=7199 => format!("{} minutes", seconds.div_ceil(60)),
        seconds => format!("{} hours", seconds.div_ceil(3600)),
    }
}

/// The failures of all endpoints of a chain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failed {
    /// One failure for each endpoint, in order.
    pub failures: Vec<Failure>,
    /// Usage of the failed attempts, as far as it is known.
    pub usage: Usage,
}

impl Failed {
    /// Returns the failures and their remedies, for people, logs and the ledger.
    pub fn sentence(&self) -> String {
        let mut sentences: Vec<String> = self.failures.iter().take(NAMED_MAX).map(Failure::sentence).collect();
        if self.failures.len() > NAMED_MAX {
            sentences.push(format!("{} more failed", self.failures.len() - NAMED_MAX));
        }
        if sentences.is_empty() { "there is no model endpoint to ask".to_owned() } else { sentences.join("; ") }
    }

    /// Returns the code of the first fault.
    pub fn code(&self) -> &'static str {
        self.failures.first().map_or(Fault::Absent, |failure| failure.fault).code()
    }
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence())
    }
}

#[cfg(test)]
mod tests;
