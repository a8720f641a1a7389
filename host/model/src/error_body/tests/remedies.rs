//! Tests of faults whose remedy another fault would hide. See [`super`].

use super::*;

/// Errors with their status, whether they also come in an answer with status 200, the code of their fault, and a part of their words.
fn remedies() -> Vec<(Option<u16>, bool, &'static str, &'static str, &'static str)> {
    vec![
        (
            Some(403),
            false,
            r#"{"error": {"message": "Your organization must be verified to stream this model.", "type": "invalid_request_error", "param": null, "code": "unsupported_value"}}"#,
            "bad_request",
            "verified",
        ),
        (
            Some(403),
            false,
            r#"{"error": {"message": "Country, region, or territory not supported", "type": "request_forbidden", "param": null, "code": "unsupported_country_region_territory"}}"#,
            "bad_request",
            "Country",
        ),
        (
            Some(400),
            true,
            r#"{"error": {"message": "Invalid prompt: your prompt was flagged as potentially violating our usage policy.", "type": "invalid_request_error", "param": null, "code": "invalid_prompt"}}"#,
            "withheld",
            "flagged",
        ),
        (
            Some(400),
            true,
            r#"{"type": "error", "error": {"type": "invalid_request_error", "message": "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."}}"#,
            "no_credit",
            "usage limits",
        ),
        (
            Some(429),
            true,
            r#"{"error": {"code": "1302", "message": "High concurrency usage of this API, please reduce concurrency or contact customer service to increase limits"}}"#,
            "rate_limited",
            "concurrency",
        ),
        (
            Some(429),
            true,
            r#"{"error": {"code": "1308", "message": "Usage limit reached for 5 hour. Your limit will reset at 2026-11-29 12:00:00"}}"#,
            "rate_limited",
            "Usage limit",
        ),
        (
            Some(401),
            true,
            r#"{"error": {"code": "1000", "message": "Authentication Failed"}}"#,
            "key_refused",
            "Authentication Failed",
        ),
        (
            Some(400),
            true,
            r#"{"error": {"code": "1301", "message": "\u7cfb\u7edf\u68c0\u6d4b\u5230\u8f93\u5165\u6216\u751f\u6210\u5185\u5bb9\u53ef\u80fd\u5305\u542b\u4e0d\u5b89\u5168\u6216\u654f\u611f\u5185\u5bb9"}, "contentFilter": [{"level": 1, "role": "user"}]}"#,
            "withheld",
            "系统",
        ),
        (
            Some(400),
            true,
            r#"{"error": {"message": "Content Exists Risk", "type": "invalid_request_error", "code": "invalid_request_error"}}"#,
            "withheld",
            "Risk",
        ),
        (
            Some(503),
            true,
            r#"{"error": {"message": "Service is too busy. We advise users to temporarily switch to alternative LLM API service providers.", "type": "service_unavailable_error"}}"#,
            "overloaded",
            "too busy",
        ),
        (
            Some(400),
            true,
            r#"{"object": "error", "message": "Unexpected role 'user' after role 'tool'", "type": "invalid_request_message_order", "param": null, "code": "3230"}"#,
            "bad_request",
            "Unexpected role",
        ),
        (
            Some(422),
            true,
            r#"{"detail": [{"type": "string_pattern_mismatch", "loc": ["body", "messages", 2, "tool_calls", 0, "id"], "msg": "Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.", "input": "call_1"}]}"#,
            "bad_request",
            "length of 9",
        ),
        (
            Some(400),
            true,
            r#"{"object": "error", "message": "Invalid model: foo", "type": "invalid_model", "param": null, "code": "1500"}"#,
            "model_unknown",
            "Invalid model",
        ),
        (
            Some(403),
            true,
            r#"{"error": {"message": "Input was flagged", "code": 403, "metadata": {"reasons": ["violence"], "flagged_input": "x", "provider_name": "OpenAI", "model_slug": "m"}}}"#,
            "withheld",
            "flagged",
        ),
        (
            Some(404),
            true,
            r#"{"id": "x", "error": {"message": "Unable to access model x. Please visit https://api.together.ai/models", "type": "invalid_request_error", "param": null, "code": "model_not_available"}}"#,
            "model_unknown",
            "Unable to access",
        ),
        (
            Some(402),
            true,
            r#"{"id": "x", "error": {"message": "Credit limit exceeded. Please navigate to https://api.together.ai/settings/billing", "type": "credit_limit", "param": null, "code": null}}"#,
            "no_credit",
            "Credit limit",
        ),
        (
            None,
            true,
            r#"{"internalServerException": {"message": "The system encountered an unexpected error"}}"#,
            "server_error",
            "unexpected",
        ),
        (
            None,
            true,
            r#"{"throttlingException": {"message": "Too many requests, please wait"}}"#,
            "rate_limited",
            "Too many",
        ),
        (Some(401), true, r#"{"error": "Unauthorized"}"#, "key_refused", "Unauthorized"),
        (Some(400), true, r#"{"error": "invalid message content type: <nil>"}"#, "bad_request", "invalid message"),
        (Some(401), true, r#"{"error": "unauthorized"}"#, "key_refused", "unauthorized"),
        (
            Some(429),
            true,
            r#"{"error": {"message": "you (x) have reached your weekly usage limit, upgrade for higher limits", "type": "api_error"}}"#,
            "rate_limited",
            "usage limit",
        ),
        (
            Some(400),
            true,
            r#"{"error": "Error rendering prompt with jinja template: \"Conversation roles must alternate user/assistant/user/assistant/...\"."}"#,
            "bad_request",
            "jinja",
        ),
        (
            Some(422),
            true,
            r#"{"error": "Template error: invalid operation: Conversation roles must alternate", "error_type": "template_error"}"#,
            "bad_request",
            "Template",
        ),
        (
            Some(400),
            true,
            r#"{"error": {"message": "Budget has been exceeded! Current cost: 0.5, Max budget: 0.1", "type": "budget_exceeded", "param": null, "code": "400"}}"#,
            "no_credit",
            "Budget",
        ),
        (
            Some(400),
            true,
            r#"{"error": {"message": "Authentication Error - Expired Key. Key Expiry time 2026", "type": "expired_key", "code": "400"}}"#,
            "key_refused",
            "Expired Key",
        ),
        (
            Some(429),
            true,
            r#"{"error": {"code": "limit_requests", "message": "You exceeded your current requests list.", "type": "limit_requests"}}"#,
            "rate_limited",
            "exceeded",
        ),
        (
            None,
            true,
            r#"{"base_resp": {"status_code": 1004, "status_msg": "login fail: Please carry the API secret key in the Authorization field"}, "choices": null}"#,
            "key_refused",
            "login fail",
        ),
        (
            None,
            true,
            r#"{"id": "x", "choices": null, "base_resp": {"status_code": 1008, "status_msg": "insufficient balance"}}"#,
            "no_credit",
            "insufficient balance",
        ),
        (
            None,
            true,
            r#"{"base_resp": {"status_code": 1002, "status_msg": "rate limit exceeded(RPM)"}}"#,
            "rate_limited",
            "rate limit",
        ),
        (
            Some(403),
            true,
            r#"{"code": "The caller does not have permission to execute the specified operation", "error": "Your newly created team doesn't have any credits or licenses yet. You can purchase those on https://console.x.ai"}"#,
            "no_credit",
            "credits",
        ),
        (
            Some(400),
            true,
            r#"{"errors": [{"message": "AiError: Bad input: Error: oneOf at / not met", "code": 5006}], "success": false, "result": {}, "messages": []}"#,
            "bad_request",
            "Bad input",
        ),
        (
            Some(401),
            true,
            r#"{"result": null, "success": false, "errors": [{"code": 10000, "message": "Authentication error"}], "messages": []}"#,
            "key_refused",
            "Authentication error",
        ),
        (
            Some(402),
            true,
            r#"{"error": "You have exceeded your monthly included credits for Inference Providers. Subscribe to PRO"}"#,
            "no_credit",
            "credits",
        ),
        (
            Some(401),
            true,
            r#"{"message": "Wrong API Key", "type": "invalid_request_error", "param": "api_key", "code": "wrong_api_key"}"#,
            "key_refused",
            "Wrong API Key",
        ),
        (Some(429), true, r#"{"error": {"message": "Model busy, retry later"}}"#, "overloaded", "busy"),
        (
            Some(403),
            true,
            r#"{"code": 30001, "message": "Sorry, your account balance is insufficient", "data": null}"#,
            "no_credit",
            "insufficient",
        ),
        (
            Some(403),
            true,
            r#"{"error": {"code": "AccountOverdueError", "message": "The request failed because your account has an overdue balance.", "type": "Forbidden"}}"#,
            "no_credit",
            "overdue",
        ),
        (
            Some(400),
            true,
            r#"[{"error": {"code": 400, "message": "User location is not supported for the API use.", "status": "FAILED_PRECONDITION"}}]"#,
            "bad_request",
            "location",
        ),
        (
            Some(400),
            true,
            r#"{"error": {"message": "prompt token count of 130000 exceeds the limit of 128000", "code": "model_max_prompt_tokens_exceeded"}}"#,
            "context_too_long",
            "exceeds the limit",
        ),
        (
            Some(413),
            true,
            r#"{"error": {"code": "tokens_limit_reached", "message": "Request body too large for gpt-4o model. Max size: 8000 tokens.", "details": "x"}}"#,
            "context_too_long",
            "Max size",
        ),
    ]
}

#[test]
fn error_has_the_fault_that_its_words_name() {
    for (status, inside, body, code, words) in remedies() {
        let judge = |fault: Fault, error: &ErrorBody| {
            assert_eq!(fault.code(), code, "{status:?} {body}");
            assert!(error.words.contains(words), "{body}: {:?}", error.words);
        };
        if let Some(status) = status {
            let error = ErrorBody::read(body.as_bytes());
            judge(error.fault(status, None, true), &error);
        }
        if inside {
            let error = ErrorBody::in_answer(&serde_json::from_str(body).expect(body)).expect(body);
            judge(error.fault_inside(true), &error);
        }
    }
}

#[test]
fn success_of_a_provider_and_a_page_are_no_error_of_a_request() {
    let success = json!({ "base_resp": { "status_code": 0, "status_msg": "success" } });
    assert!(ErrorBody::in_answer(&success).is_none());
    let page =
        ErrorBody::read(b"<html><head><title>Home</title></head><script>var template = 'invalid'</script></html>");
    assert_eq!(page.fault_of_page(true), None);
}
