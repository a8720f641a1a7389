//! The requests of `http_fetch`: their arguments, their place among the grants of an agent, and their results for a model.
//!
//! Pure. Never sends a request: `calls::executor` does. See [`ironclaw_judge::egress`].

use super::result_body::ResultBody;
use ironclaw_judge::call::Granted;
use ironclaw_judge::egress::{Allowed, Category, Grant, Loopback, Missing, Request, RequestText, judge};
use ironclaw_judge::provenance::typed::Typed;
use ironclaw_net::fetch::{End, Failure, Fetched, NotFetched, RANGE, Refused};
use ironclaw_net::reach::AddressRefused;
use ironclaw_operator::DenialCode;
use ironclaw_store::tables::turns::CallOutcome;
use ironclaw_text::lookalike;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Bytes of a page that a model gets.
pub const PAGE_BYTES_MAX: usize = 96 * 1024;

/// The hosts that an agent has, and the values that a person typed.
#[derive(Debug, Clone, Default)]
pub struct Network {
    pub grants: Vec<Grant>,
    /// True if hosts of this machine may be granted.
    pub loopback: Loopback,
    /// The values that the turn's person typed in the messages of the turn.
    pub typed: Typed,
}

/// The arguments of a call, as a model writes them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    method: Option<String>,
    url: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<String>,
}

/// A request with the answer of the grants.
pub struct Looked {
    /// The answer for the judgement.
    pub granted: Granted,
    /// For a request without a grant: the difference, and the command that grants it. Quotes the request.
    pub detail: String,
}

/// Reads the arguments of a call as a request. It carries the secret of the grant of its host, if there is one.
///
/// # Errors
/// The first part that the host does not send, in words.
pub fn request(arguments: &Map<String, Value>, network: &Network) -> Result<(Request, Option<String>), String> {
    let read = Arguments::deserialize(arguments).map_err(|error| error.to_string())?;
    let Arguments { method, url, headers, body } = read;
    let method = method.unwrap_or_else(|| "GET".to_owned());
    let text = RequestText { method, url, headers, body, secret: None };
    let body = text.body.as_deref().map(str::as_bytes);
    let request =
        Request::for_grants(&text, body, network.loopback, &network.grants).map_err(|error| error.to_string())?;
    let secret =
        network.grants.iter().find(|grant| grant.is_of(request.url())).and_then(|grant| grant.secret().cloned());
    if secret.is_some() && request.headers().any(|(header, _)| header.name() == RANGE) {
        return Err(Refused::Range.to_string());
    }
    Ok((request.with_secret(secret), text.body))
}

/// Reads the arguments as [`request`] does, and writes them as they are sent: the address and the headers in their one form. So people and
/// models read what a server gets.
///
/// # Errors
/// As [`request`]; the arguments stay then.
pub fn write_as_sent(
    arguments: &mut Map<String, Value>,
    network: &Network,
) -> Result<(Request, Option<String>), String> {
    let (request, body) = request(arguments, network)?;
    arguments.insert("url".to_owned(), json!(request.url().as_str()));
    if arguments.contains_key("headers") {
        let headers: BTreeMap<&str, &str> = request.headers().map(|(header, value)| (header.name(), value)).collect();
        arguments.insert("headers".to_owned(), json!(headers));
    }
    Ok((request, body))
}

/// Compares a request with the grants.
pub fn compare_with_grants(request: &Request, network: &Network) -> Looked {
    match allowed(request, network) {
        Ok(allowed) => Looked { granted: Granted::As(allowed.class()), detail: String::new() },
        Err(missing) => {
            let code = code_of(&missing);
            let detail = format!("{}; {}", missing.sentence(), missing.next_step("AGENT"));
            Looked { granted: Granted::Missing(code), detail }
        }
    }
}

/// Returns the grant that admits a request.
///
/// # Errors
/// The difference to the closest grant.
pub fn allowed<'g>(request: &Request, network: &'g Network) -> Result<Allowed<'g>, Missing> {
    judge(&network.grants, request, &|value| network.typed.has(value))
}

/// Returns the code of the first difference to the grants.
pub fn code_of(missing: &Missing) -> DenialCode {
    missing.categories().first().map_or(DenialCode::EgressNewHost, |category| code(*category))
}

const fn code(category: Category) -> DenialCode {
    match category {
        Category::NewHost => DenialCode::EgressNewHost,
        Category::NewMethod => DenialCode::EgressNewMethod,
        Category::NewPath => DenialCode::EgressNewPath,
        Category::CredentialReachesFurther => DenialCode::EgressCredential,
        Category::UploadTooLarge => DenialCode::EgressUpload,
    }
}

/// Returns the result of an answer for a model: status, headers and page.
pub fn answer(fetched: &Fetched) -> ResultBody {
    let headers: BTreeMap<&str, &str> = fetched.headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let mut told = json!({ "status": fetched.status, "headers": headers });
    match std::str::from_utf8(&fetched.body) {
        Ok(text) => told["body"] = text.into(),
        Err(error) if fetched.is_truncated() && error.error_len().is_none() => {
            let text = String::from_utf8_lossy(&fetched.body[..error.valid_up_to()]);
            told["body"] = text.into();
        }
        Err(_) => told["body_left_out"] = format!("{} bytes that are no text", fetched.body.len()).into(),
    }
    if let Some(target) = &fetched.redirect {
        told["redirect"] = format!("{target} (not followed: ask for it with another call)").into();
    }
    if fetched.is_truncated() {
        told["cut"] = cut(fetched.end).into();
    }
    ResultBody::new(
        fetched.status < 400,
        lookalike::neutralise(&ironclaw_contract::canonical::to_string(&told)).into_owned(),
    )
}

const fn cut(end: End) -> &'static str {
    match end {
        End::Whole => "",
        End::Limit => "the page is longer than the limit",
        End::Time => "the page did not arrive in time",
        End::Broken => "the connection broke",
        End::Encoded => "the page is compressed and was left out",
    }
}

/// Returns the code of the refusal of a judged request.
pub fn refusal_code(refused: &Refused) -> DenialCode {
    match refused {
        Refused::Address(AddressRefused::Differs { .. }) => DenialCode::ShownDiffers,
        _ => DenialCode::EgressNewHost,
    }
}

/// Returns the result of a request without an answer.
pub fn no_answer(error: &NotFetched) -> ResultBody {
    let text = match error {
        NotFetched::Refused(refused) => match refusal_code(refused) {
            code @ DenialCode::ShownDiffers => format!("refused ({code}): {refused}; nothing was sent"),
            _ => format!("refused: {refused}; nothing was sent"),
        },
        NotFetched::Failed(failed) => {
            let why = match failed.failure {
                Failure::Unreachable => "the host cannot be reached",
                Failure::Untrusted => "the certificate of the host is not trusted",
                Failure::Late => "the host did not answer in time",
                Failure::Broken => "the connection broke before an answer",
            };
            let outcome = CallOutcome::without_answer(failed.may_have_arrived);
            let text = match failed.may_have_arrived {
                true => format!("unknown: {why}; it is unknown if the request arrived"),
                false => format!("failed: {why}; nothing was sent"),
            };
            return ResultBody::with_outcome(outcome, text);
        }
    };
    ResultBody::failed(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_judge::egress::GrantText;

    fn written(loopback: Loopback, arguments: Value) -> Result<Value, String> {
        let Value::Object(mut arguments) = arguments else { panic!("an object") };
        let network = Network { loopback, ..Network::default() };
        let (request, _) = write_as_sent(&mut arguments, &network)?;
        assert_eq!(arguments["url"], json!(request.url().as_str()), "the page has the address of the request");
        Ok(Value::Object(arguments))
    }

    #[test]
    fn address_that_clients_read_in_different_ways_is_refused() {
        let marks = ["https://user@a.example/", "https://a.example\\@b.example/", "https://a.example/%zz"];
        let blanks = ["https://a.exa\tmple/", "https://a.example/\n", " https://a.example/"];
        let parts = ["//a.example/", "https:a.example", "https://a.example./", "http://a.example/"];
        let addresses = ["https://127.1/", "https://0177.0.0.1/", "https://2130706433/", "https://0x7f.1/"];
        let near = ["https://[::ffff:127.0.0.1]/", "https://１２７.1/", "https://localhost/"];
        for url in [&marks[..], &blanks, &parts, &addresses, &near].concat() {
            assert!(written(Loopback::Refused, json!({ "url": url })).is_err(), "{url}");
        }
    }

    #[test]
    fn part_of_a_page_with_a_secret_is_refused() {
        let grant = |secret: Option<&str>| {
            let text = GrantText {
                host: "a.example".to_owned(),
                paths: vec!["/docs/{page}".to_owned()],
                secret: secret.map(str::to_owned),
                ..GrantText::default()
            };
            Network { grants: vec![Grant::check(&text, Loopback::Refused).expect("a grant")], ..Network::default() }
        };
        let arguments = json!({ "url": "https://a.example/docs/x", "headers": { "Range": "bytes=0-18" } });
        let arguments = arguments.as_object().expect("an object");
        assert!(request(arguments, &grant(Some("forge"))).is_err(), "two parts could have the secret");
        assert!(request(arguments, &grant(None)).is_ok());
    }

    #[test]
    fn address_is_written_as_it_is_sent() {
        for (url, sent) in [
            ("https://a.example", "https://a.example/"),
            ("HTTPS://A.Example:443/x", "https://a.example/x"),
            ("https://a.example/docs/../../admin/delete", "https://a.example/admin/delete"),
            ("https://a.example/docs/%2e%2E/./admin", "https://a.example/admin"),
            ("https://a.example/%7euser/%c3%a9?q=%3d#part", "https://a.example/~user/%C3%A9?q=%3D"),
            ("https://a.example/é?", "https://a.example/%C3%A9"),
            ("https://bücher.example/", "https://xn--bcher-kva.example/"),
            ("https://example.com。evil.example/", "https://example.com.evil.example/"),
            ("https://example.com．evil.example/", "https://example.com.evil.example/"),
            ("https://example.com｡evil.example/", "https://example.com.evil.example/"),
            ("https://ａ.example/", "https://a.example/"),
        ] {
            let made = written(Loopback::Refused, json!({ "url": url })).expect(url);
            assert_eq!(made, json!({ "url": sent }), "{url}");
            assert_eq!(written(Loopback::Refused, made.clone()), Ok(made), "it stays");
        }
        for url in ["http://127.1:80/a", "http://0177.0.0.1/a", "http://2130706433/a", "http://0x7f.0x1/a"] {
            let made = written(Loopback::DangerousAllowed, json!({ "url": url })).expect(url);
            assert_eq!(made["url"], "http://127.0.0.1/a", "{url}");
        }
        let headers = json!({ "method": "GET", "url": "https://a.example/", "headers": { "Accept": " text/html " } });
        let made = written(Loopback::Refused, headers).expect("a request");
        assert_eq!((&made["headers"], &made["method"]), (&json!({ "accept": "text/html" }), &json!("GET")));
    }
}
