//! The rules for every request to the console and every answer: no page of another origin reads it, frames it or posts to it.
//!
//! Knows no person. The token of a form is checked where the form is read: see [`super::fields`].

use axum::extract::Request;
use axum::http::header::{self, HOST, HeaderName, ORIGIN};
use axum::http::{HeaderMap, HeaderValue, Method};
use axum::response::Response;
use ironclaw_operator::DenialCode;
use ironclaw_store::refusal::Refusal;

/// The path of the sign-in, the only one that a local form may post to.
pub const SIGN_IN: &str = "/sign-in";

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");

/// The headers of every answer. `same-origin` and not `no-referrer`: with the latter, a browser sends `Origin: null` with its own forms.
const HEADERS: [(HeaderName, &str); 9] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; \
         frame-ancestors 'none'; base-uri 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-embedder-policy"), "require-corp"),
    (HeaderName::from_static("permissions-policy"), "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    (HeaderName::from_static("x-robots-tag"), "noindex"),
];

/// Checks method, `Host`, `Origin` and `Sec-Fetch-*` of a request to the console with this origin.
///
/// # Errors
/// Refuses a request that another page may have caused.
pub fn check(request: &Request, origin: &str) -> Result<(), Refusal> {
    let headers = request.headers();
    let host = origin.split_once("://").map_or(origin, |(_, host)| host);
    let in_line = request.uri().authority().is_none_or(|authority| authority.as_str() == host);
    if !in_line || single(headers, &HOST) != Some(host) {
        let refusal = Refusal::new(DenialCode::HostForeign, "the request has another host's name");
        return Err(refusal.hint("`ironctl console` opens the console at its own address"));
    }
    match *request.method() {
        Method::GET | Method::HEAD => check_get(headers),
        Method::POST => check_post(headers, origin, request.uri().path() == SIGN_IN),
        _ => Err(Refusal::new(DenialCode::MethodNotAllowed, "this page does not accept that method")),
    }
}

/// A link from elsewhere may lead to a page; the browser sends no cookie with it. Nothing else may be loaded from elsewhere.
fn check_get(headers: &HeaderMap) -> Result<(), Refusal> {
    let is = |name: &HeaderName, word: &str| single(headers, name) == Some(word);
    let is_own = !headers.contains_key(FETCH_SITE) || is(&FETCH_SITE, "same-origin") || is(&FETCH_SITE, "none");
    let is_visit = is(&FETCH_MODE, "navigate") && is(&FETCH_DEST, "document");
    if is_own || is_visit { Ok(()) } else { Err(foreign()) }
}

/// A form is posted by a page of the console. Only the sign-in takes the form of a local file, which confirms nothing yet.
fn check_post(headers: &HeaderMap, origin: &str, is_sign_in: bool) -> Result<(), Refusal> {
    let is_own_site = single(headers, &FETCH_SITE) == Some("same-origin");
    match single(headers, &ORIGIN) {
        Some(found) if found == origin && (is_own_site || !headers.contains_key(FETCH_SITE)) => Ok(()),
        Some("null") if is_sign_in => Ok(()),
        // No browser: a browser sends at least one of them with each form.
        None if !headers.contains_key(ORIGIN) && !headers.contains_key(FETCH_SITE) => Ok(()),
        Some(_) | None => Err(foreign()),
    }
}

fn foreign() -> Refusal {
    let refusal = Refusal::new(DenialCode::OriginForeign, "a page of another origin is not served");
    refusal.hint("open the console itself, and repeat the step there")
}

/// Returns the value of a header that is there exactly once.
pub fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut found = headers.get_all(name).iter();
    match (found.next(), found.next()) {
        (Some(value), None) => value.to_str().ok(),
        _ => None,
    }
}

/// Sets the headers of an answer. A page is never stored: it may show what its person alone may see.
pub fn protect(response: &mut Response) {
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::Body;

    const OWN: &str = "http://abc.localhost:8799";
    const HOST_NAME: (&str, &str) = ("host", "abc.localhost:8799");

    fn ask(method: &str, uri: &str, headers: &[(&str, &str)]) -> Result<(), DenialCode> {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        check(&request.body(Body::empty()).expect("a request"), OWN).map_err(|refusal| refusal.code)
    }

    #[test]
    fn only_the_own_host_name_is_served() {
        assert_eq!(ask("GET", "/inbox", &[HOST_NAME]), Ok(()));
        for host in [
            "localhost:8799",
            "127.0.0.1:8799",
            "abc.localhost",
            "abc.localhost:80",
            "x.abc.localhost:8799",
            "ABC.localhost:8799",
            "",
        ] {
            assert_eq!(ask("GET", "/inbox", &[("host", host)]), Err(DenialCode::HostForeign), "{host}");
        }
        assert_eq!(ask("GET", "/inbox", &[HOST_NAME, HOST_NAME]), Err(DenialCode::HostForeign));
        assert_eq!(ask("GET", "http://evil.example/inbox", &[HOST_NAME]), Err(DenialCode::HostForeign));
    }

    #[test]
    fn form_of_another_page_is_refused() {
        let post = |headers: &[(&str, &str)]| ask("POST", "/waiting/req_1/decision", &[&[HOST_NAME], headers].concat());
        let foreign = Err(DenialCode::OriginForeign);
        assert_eq!(post(&[("origin", OWN)]), Ok(()));
        assert_eq!(post(&[("origin", OWN), ("sec-fetch-site", "same-origin")]), Ok(()));
        assert_eq!(post(&[]), Ok(()), "a program, which has the token of the form");
        for origin in ["null", "http://evil.example", "https://abc.localhost:8799", "http://abc.localhost:8800", ""] {
            assert_eq!(post(&[("origin", origin)]), foreign, "{origin}");
        }
        assert_eq!(post(&[("origin", OWN), ("origin", OWN)]), foreign);
        for site in ["cross-site", "same-site", "none"] {
            assert_eq!(post(&[("origin", OWN), ("sec-fetch-site", site)]), foreign, "{site}");
            assert_eq!(post(&[("sec-fetch-site", site)]), foreign, "{site}");
        }
        assert_eq!(ask("POST", SIGN_IN, &[HOST_NAME, ("origin", "null")]), Ok(()));
        assert_eq!(ask("POST", SIGN_IN, &[HOST_NAME, ("origin", "http://evil.example")]), foreign);
        assert_eq!(ask("PUT", "/inbox", &[HOST_NAME]), Err(DenialCode::MethodNotAllowed));
    }

    #[test]
    fn only_a_link_leads_here_from_elsewhere() {
        let get = |headers: &[(&str, &str)]| ask("GET", "/inbox", &[&[HOST_NAME], headers].concat());
        let cross = ("sec-fetch-site", "cross-site");
        assert_eq!(get(&[cross, ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", "document")]), Ok(()));
        for dest in ["iframe", "image", "script", "empty", "object", "embed"] {
            let found = get(&[cross, ("sec-fetch-mode", "navigate"), ("sec-fetch-dest", dest)]);
            assert_eq!(found, Err(DenialCode::OriginForeign), "{dest}");
            assert_eq!(
                get(&[cross, ("sec-fetch-mode", "no-cors"), ("sec-fetch-dest", dest)]),
                Err(DenialCode::OriginForeign)
            );
        }
        assert_eq!(get(&[("sec-fetch-site", "same-origin"), ("sec-fetch-dest", "script")]), Ok(()));
        assert_eq!(get(&[("sec-fetch-site", "none"), ("sec-fetch-mode", "navigate")]), Ok(()));
    }
}
