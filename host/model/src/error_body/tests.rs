//! Tests of errors in the shapes of real servers.

use super::*;
use jiff::Timestamp;
use reqwest::header::HeaderMap;
use serde_json::json;

mod remedies;

#[test]
fn errors_of_known_servers_are_recognised() {
    let read = |status: u16, body: &str| ErrorBody::read(body.as_bytes()).fault(status, None, true);
    for (status, body, fault) in [
        (401, "", Fault::KeyRefused),
        (403, "<html>", Fault::KeyRefused),
        (404, r#"{"error":"model 'x' not found"}"#, Fault::ModelUnknown),
        (400, r#"{"error":{"message":"x is not a valid model ID","code":400}}"#, Fault::ModelUnknown),
        (400, r#"{"error":{"message":"registry.ollama.ai/library/gemma does not support tools"}}"#, Fault::NoTools),
        (500, r#"{"error":{"code":500,"message":"tools param requires --jinja flag"}}"#, Fault::NoTools),
        (429, r#"{"error":{"type":"insufficient_quota","message":"You exceeded"}}"#, Fault::NoCredit),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low"}}"#,
            Fault::NoCredit,
        ),
        (400, r#"{"error":{"code":"context_length_exceeded","message":"…"}}"#, Fault::ContextTooLong),
        (400, r#"{"error":{"message":"prompt is too long: 9 tokens > 8"}}"#, Fault::ContextTooLong),
        (400, r#"{"object":"error","message":"extra inputs","type":"bad"}"#, Fault::BadRequest(400)),
        (422, r#"{"detail":[{"loc":["body"]}]}"#, Fault::BadRequest(422)),
        (302, "", Fault::Redirected),
        (500, "oops", Fault::ServerError { status: 500, retry_after: None }),
        (503, r#"{"error":{"message":"Loading model"}}"#, Fault::Overloaded { retry_after: None }),
        (529, "", Fault::Overloaded { retry_after: None }),
    ] {
        assert_eq!(read(status, body), fault, "{status} {body}");
    }
    assert_eq!(ErrorBody::read(b"").fault(401, None, false), Fault::KeyWanted);
}

#[test]
fn complaint_about_the_limit_is_recognised() {
    let complaint = |words: &str| {
        ErrorBody::read(json!({ "error": { "message": words } }).to_string().as_bytes()).limit_complaint()
    };
    let renamed =
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    assert_eq!(complaint(renamed), Some(Complaint::LimitField));
    let vllm = "'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 4096 tokens";
    assert_eq!(complaint(vllm), Some(Complaint::LimitSize));
    assert_eq!(complaint("This model's maximum context length is 4096 tokens"), None);
}

#[test]
fn error_with_status_200_is_recognised() {
    let inside = |body: Value| ErrorBody::in_answer(&body).map(|error| error.fault_inside(true));
    assert_eq!(
        inside(json!({ "error": { "code": 429, "message": "slow" } })),
        Some(Fault::RateLimited { retry_after: None })
    );
    let overloaded = json!({ "type": "error", "error": { "type": "overloaded_error", "message": "Overloaded" } });
    assert_eq!(inside(overloaded), Some(Fault::Overloaded { retry_after: None }));
    assert_eq!(inside(json!({ "error": "broken" })), Some(Fault::ServerError { status: 500, retry_after: None }));
    assert_eq!(inside(json!({ "error": null, "choices": [] })), None);
}

#[test]
fn requested_wait_is_read_as_seconds_or_a_date() {
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
    let wait = |name: &'static str, value: &str| {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().expect("a header"));
        retry_after(&headers, now)
    };
    assert_eq!(wait("retry-after", "7"), Some(Duration::from_secs(7)));
    assert_eq!(wait("retry-after", "0.5"), Some(Duration::from_millis(500)));
    assert_eq!(wait("retry-after-ms", "250"), Some(Duration::from_millis(250)));
    assert_eq!(wait("retry-after", "Thu, 01 Jan 2026 00:01:00 GMT"), Some(Duration::from_secs(60)));
    assert_eq!(wait("retry-after", "Wed, 31 Dec 2025 00:01:00 GMT"), Some(Duration::ZERO));
    for (name, value, seconds) in [
        ("retry-after", "1s", 1),
        ("retry-after", "2 minutes", 120),
        ("retry-after", "2026-01-01T00:01:00Z", 60),
        ("retry-after", "1767225630", 30),
        ("retry-after", "1e300", 30 * 86_400),
        ("retry-after", "99999999", 30 * 86_400),
        ("x-ms-retry-after-ms", "3000", 3),
        ("retry-after-ms", "99999999999", 30 * 86_400),
    ] {
        assert_eq!(wait(name, value), Some(Duration::from_secs(seconds)), "{name}: {value}");
    }
    for odd in ["-1", "NaN", "soon", ""] {
        assert_eq!(wait("retry-after", odd), None, "{odd}");
    }
}

#[test]
fn reset_of_a_used_up_limit_is_a_wait() {
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
    for (headers, ms) in [
        (vec![("x-ratelimit-reset-requests", "2m0s"), ("x-ratelimit-reset-tokens", "300ms")], Some(300)),
        (
            vec![
                ("x-ratelimit-remaining-requests", "0"),
                ("x-ratelimit-reset-requests", "2m0s"),
                ("x-ratelimit-remaining-tokens", "5"),
                ("x-ratelimit-reset-tokens", "300ms"),
            ],
            Some(120_000),
        ),
        (vec![("x-ratelimit-reset", "1767225605000")], Some(5000)),
        (vec![("x-ratelimit-reset", "7")], Some(7000)),
        (vec![("anthropic-ratelimit-tokens-reset", "2026-01-01T00:00:09Z")], Some(9000)),
        (vec![("x-ratelimit-limit", "7")], None),
    ] {
        let named = headers.iter().map(|(name, value)| {
            (name.parse().expect("a name"), value.parse::<reqwest::header::HeaderValue>().expect("a value"))
        });
        let headers: HeaderMap = named.collect();
        assert_eq!(reset(&headers, now).map(|wait| wait.as_millis()), ms, "{headers:?}");
    }
}

#[test]
fn wait_of_a_body_counts_where_no_header_has_one() {
    let google = r#"[{"error":{"code":429,"message":"Resource has been exhausted","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34s"}]}}]"#;
    let fields = r#"{"error":{"message":"Too many requests","metadata":{"retry_after":2}}}"#;
    let text = r#"{"error":{"message":"The service is overloaded, try again in 250ms"}}"#;
    for (status, body, ms) in [(429, google, 34_000), (429, fields, 2000), (503, text, 250), (500, text, 250)] {
        let error = ErrorBody::read(body.as_bytes());
        let wait = |header| error.fault(status, header, true).retry_after();
        assert_eq!(wait(None), Some(Duration::from_millis(ms)), "{body}");
        assert_eq!(wait(Some(Duration::from_secs(1))), Some(Duration::from_secs(1)), "{body}");
    }
}

/// Status, body, fault, and a part of the words.
type Shape = (u16, &'static str, Fault, &'static str);

/// Errors of providers and servers, in the shapes that they have.
fn shapes() -> Vec<Shape> {
    let rate = Fault::RateLimited { retry_after: None };
    let busy = Fault::Overloaded { retry_after: None };
    let ill = |status| Fault::ServerError { status, retry_after: None };
    let (key, size, call) = (Fault::KeyRefused, Fault::ContextTooLong, Fault::BadCall);
    vec![
        // OpenAI and Azure
        (
            401,
            r#"{"error":{"message":"Incorrect API key provided: sk-x.","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}"#,
            key,
            "Incorrect API key",
        ),
        (
            429,
            r#"{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","code":"insufficient_quota"}}"#,
            Fault::NoCredit,
            "exceeded",
        ),
        (
            400,
            r#"{"error":{"message":"The response was filtered due to the prompt triggering Azure OpenAI's content management policy.","code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}"#,
            Fault::Withheld,
            "was filtered",
        ),
        (
            401,
            r#"{"statusCode":401,"message":"Access denied due to invalid subscription key or wrong API endpoint."}"#,
            key,
            "Access denied",
        ),
        (
            404,
            r#"{"error":{"code":"DeploymentNotFound","message":"The API deployment does not exist."}}"#,
            Fault::ModelUnknown,
            "deployment",
        ),
        // Anthropic
        (
            529,
            r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}"#,
            busy,
            "Overloaded",
        ),
        (
            400,
            r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#,
            size,
            "210000",
        ),
        (
            401,
            r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
            key,
            "x-api-key",
        ),
        // Gemini
        (
            400,
            r#"[{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]"#,
            key,
            "API key not valid",
        ),
        (
            429,
            r#"[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan.","status":"RESOURCE_EXHAUSTED"}}]"#,
            rate,
            "your plan",
        ),
        (
            503,
            r#"{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}"#,
            busy,
            "overloaded",
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}"#,
            size,
            "1200000",
        ),
        // Mistral
        (401, r#"{"message":"Unauthorized","request_id":"1"}"#, key, "Unauthorized"),
        (
            422,
            r#"{"object":"error","message":{"detail":[{"type":"missing","loc":["body","messages"],"msg":"Field required","input":{"text":"context window"}}]},"type":"invalid_request_error"}"#,
            Fault::BadRequest(422),
            "body.messages: Field required",
        ),
        (
            429,
            r#"{"object":"error","message":"Service tier capacity exceeded for this model.","type":"service_tier_capacity_exceeded","code":"3505"}"#,
            busy,
            "capacity",
        ),
        // DeepSeek
        (
            402,
            r#"{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}"#,
            Fault::NoCredit,
            "Balance",
        ),
        (
            401,
            r#"{"error":{"message":"Authentication Fails (no such user)","type":"authentication_error"}}"#,
            key,
            "Fails",
        ),
        // Groq
        (
            400,
            r#"{"error":{"message":"Failed to call a function. Please adjust your prompt.","type":"invalid_request_error","code":"tool_use_failed","failed_generation":"<function=a{}</function>"}}"#,
            call,
            "Failed to call",
        ),
        (
            413,
            r#"{"error":{"message":"Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 7000","type":"tokens","code":"rate_limit_exceeded"}}"#,
            size,
            "Requested 7000",
        ),
        // Together, xAI, Cohere
        (
            429,
            r#"{"id":"o","error":{"message":"You have reached the rate limit specific to this model","type":"model_rate_limit","param":null,"code":null}}"#,
            rate,
            "rate limit",
        ),
        (
            400,
            r#"{"code":"Client specified an invalid argument","error":"Incorrect API key provided: xa***g."}"#,
            key,
            "Incorrect API key",
        ),
        (
            403,
            r#"{"code":"The caller does not have permission","error":"Your team has either used all available credits or reached its monthly spending limit."}"#,
            Fault::NoCredit,
            "spending limit",
        ),
        (401, r#"{"id":"1","message":"invalid api token"}"#, key, "invalid api token"),
        (
            400,
            r#"{"message":"too many tokens: total number of tokens in the prompt cannot exceed the maximum context length"}"#,
            size,
            "too many tokens",
        ),
        // OpenRouter
        (
            400,
            r#"{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"{\"error\":{\"message\":\"tool_choice is not valid\"}}","provider_name":"P"}},"user_id":"u"}"#,
            Fault::BadRequest(400),
            "Provider returned error: tool_choice is not valid",
        ),
        (
            429,
            r#"{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"m:free is temporarily rate-limited upstream.","provider_name":"P"}}}"#,
            rate,
            "rate-limited upstream",
        ),
        (
            402,
            r#"{"error":{"message":"This request requires more credits, or fewer max_tokens.","code":402}}"#,
            Fault::NoCredit,
            "more credits",
        ),
        (
            403,
            r#"{"error":{"message":"P requires moderation on m. Your input was flagged for \"violence\".","code":403}}"#,
            Fault::Withheld,
            "flagged",
        ),
        // Ollama, LM Studio, llama.cpp, vLLM
        (
            500,
            r#"{"error":{"message":"error parsing tool call: raw='{\"a\":', err=unexpected end of JSON input","type":"api_error","param":null,"code":null}}"#,
            call,
            "error parsing",
        ),
        (400, r#"{"error":"registry.ollama.ai/library/m does not support tools"}"#, Fault::NoTools, "support tools"),
        (503, r#"{"error":"server busy, please try again.  maximum pending requests exceeded"}"#, busy, "server busy"),
        (
            400,
            r#"{"error":"The number of tokens to keep from the initial prompt is greater than the context length (loaded with context length of only 4096)."}"#,
            size,
            "4096",
        ),
        (
            500,
            r#"{"error":{"code":500,"message":"Failed to parse input at pos 0: <tool_call>","type":"server_error"}}"#,
            call,
            "at pos 0",
        ),
        (
            400,
            r#"{"error":{"code":400,"message":"the request exceeds the available context size (4096 tokens)","type":"exceed_context_size_error","n_ctx":4096}}"#,
            size,
            "available context",
        ),
        (503, r#"{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}"#, busy, "Loading"),
        (
            400,
            r#"{"object":"error","message":"Error in extracting tool call from response.","type":"BadRequestError","param":null,"code":400}"#,
            call,
            "extracting",
        ),
        (
            404,
            r#"{"object":"error","message":"The model `m` does not exist.","type":"NotFoundError","param":null,"code":404}"#,
            Fault::ModelUnknown,
            "does not exist",
        ),
        (
            400,
            r#"{"error":"Model generated a tool call that could not be parsed: invalid JSON"}"#,
            call,
            "could not be parsed",
        ),
        // LiteLLM and gateways like Bedrock
        (
            400,
            r#"{"error":{"message":"litellm.ContextWindowExceededError: m - {\"error\":{\"message\":\"prompt is too long\"}}","type":null,"param":null,"code":"400"}}"#,
            size,
            "litellm.ContextWindowExceededError: m: prompt is too long",
        ),
        (
            400,
            r#"{"__type":"com.amazon.coral.service#ThrottlingException","message":"Too many requests, please wait."}"#,
            rate,
            "please wait",
        ),
        (403, r#"{"Message":"User is not authorized to perform: bedrock:InvokeModel"}"#, key, "not authorized"),
        (
            503,
            r#"{"message":"Bedrock is unable to process your request.","__type":"ServiceUnavailableException"}"#,
            busy,
            "unable",
        ),
        // Other wrappings: a list of errors, an OAuth error, a text around JSON, Python, a page, a line, nothing
        (
            400,
            r#"{"errors":[{"message":"first"},{"message":"second"}],"success":false}"#,
            Fault::BadRequest(400),
            "first",
        ),
        (
            401,
            r#"{"error":"invalid_token","error_description":"The access token expired"}"#,
            key,
            "access token expired",
        ),
        (
            422,
            r#"{"detail":[{"loc":["body","tools",0],"msg":"field required","type":"value_error"}]}"#,
            Fault::BadRequest(422),
            "body.tools.0: field required",
        ),
        (400, r#"{"detail":"Not a chat model"}"#, Fault::BadRequest(400), "Not a chat model"),
        (400, r#"{"msg":"quantity"}"#, Fault::BadRequest(400), "quantity"),
        (500, r#"upstream said: {"error":{"message":"no luck"}}"#, ill(500), "upstream said: no luck"),
        (400, "{'error': {'message': 'single quotes'}}", Fault::BadRequest(400), "single quotes"),
        (
            502,
            "<html>\n<head><title>502 Bad Gateway</title></head>\n<body><h1>no</h1></body></html>",
            ill(502),
            "502 Bad Gateway",
        ),
        (500, "<!DOCTYPE html><body><h1>Application error</h1></body>", ill(500), "Application error"),
        (500, "Internal Server Error", ill(500), "Internal Server Error"),
        (
            400,
            "event: error\ndata: {\"error\":{\"message\":\"in a stream\"}}\n\n",
            Fault::BadRequest(400),
            "in a stream",
        ),
        (400, "data: [{\"error\":{\"message\":\"a list in a stream\"}}]", Fault::BadRequest(400), "a list in a stream"),
        (400, "", Fault::BadRequest(400), ""),
        (400, "[[[[[[[[[[[[[[[[\"deep\"]]]]]]]]]]]]]]]]", Fault::BadRequest(400), ""),
    ]
}

#[test]
fn errors_of_real_servers_have_their_fault_and_words() {
    for (status, body, fault, words) in shapes() {
        let error = ErrorBody::read(body.as_bytes());
        assert_eq!(error.fault(status, None, true), fault, "{status} {body}");
        assert!(error.words.contains(words) && error.words.is_empty() == words.is_empty(), "{body}: {:?}", error.words);
    }
}

#[test]
fn the_same_errors_are_found_in_an_answer_with_status_200() {
    for (status, body, fault, words) in shapes() {
        let Ok(body) = serde_json::from_str::<Value>(body) else { continue };
        let Some(error) = ErrorBody::in_answer(&body) else {
            // Without a field of an error and without a status, an object with a message may be a sign of life.
            assert!(body.get("error").is_none(), "{body}");
            continue;
        };
        assert!(error.words.contains(words), "{body}");
        // A fault that only the status of the answer names is a failure of the server here.
        let found = error.fault_inside(true);
        let from_status = matches!(fault, Fault::BadRequest(_) | Fault::ModelUnknown | Fault::ServerError { .. })
            || (fault == Fault::KeyRefused && matches!(found, Fault::ServerError { .. }));
        assert!(found == fault || from_status, "{status} {body} {found:?}");
    }
}

#[test]
fn parts_of_an_answer_are_no_error() {
    for body in [
        json!({ "choices": [{ "delta": { "content": "error" } }] }),
        json!({ "error": {}, "choices": [] }),
        json!({ "error": "", "choices": [] }),
        json!({ "type": "ping" }),
        json!({ "status": "queued", "message": "your request waits" }),
        json!({ "type": "message_start", "message": { "usage": {} } }),
        json!({ "type": "message", "content": [] }),
        json!({ "object": "chat.completion.chunk", "usage": { "prompt_tokens": 1 } }),
        json!([]),
        json!("words"),
    ] {
        assert!(ErrorBody::in_answer(&body).is_none(), "{body}");
    }
}
