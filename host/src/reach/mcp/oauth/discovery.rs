//! The documents of a server and of its issuer: RFC 9728 and RFC 8414, or the one of OpenID Connect.
//!
//! Never follows a redirect. Every address in a document is https, or on this machine if the server is. See [`super::Logins`].

use crate::registry::mcp::address;
use crate::registry::mcp::issuer::{ApprovedIssuer, IssuerName};
use ironclaw_net::fetch::{Credential, End, Fetched, Fetcher, Limits, Request};
use ironclaw_text::excerpt::start;
use ironclaw_text::json;
use reqwest::Method;
use serde_json::Value;
use std::time::Duration;
use url::Url;

/// The bounds of one request.
const LIMITS: Limits =
    Limits { begin: Duration::from_secs(10), whole: Duration::from_secs(15), body_bytes_max: 64 * 1024 };

/// Values of a document.
const DOCUMENT_VALUES_MAX: usize = 4096;

/// Entries of a list in a document.
const ENTRIES_MAX: usize = 64;

/// Characters of a text of an issuer in a refusal.
pub(super) const SHOWN_CHARACTERS_MAX: usize = 200;

/// The requests that the login at one server may make.
pub(super) struct Http<'a> {
    pub(super) fetcher: &'a Fetcher,
    /// Whether the server is on this machine.
    pub(super) is_near: bool,
}

/// The addresses of an issuer.
#[derive(Debug)]
pub(super) struct Discovered {
    pub(super) authorization: Url,
    pub(super) token: Url,
    pub(super) registration: Option<Url>,
    pub(super) revocation: Option<Url>,
    /// The ways in which its clients prove themselves, if it names them.
    pub(super) client_methods: Option<Vec<String>>,
    /// Whether it names itself in the address for the browser.
    pub(super) names_issuer: bool,
}

impl Http<'_> {
    /// Parses an address of a document.
    fn address(&self, text: &str) -> Result<Url, String> {
        let url = address::parse(text).map_err(|why| format!("an address of it cannot be used: {why}"))?;
        match url.scheme() == "https" || self.is_near {
            true => Ok(url),
            false => Err("an address of it is plain http".to_owned()),
        }
    }

    /// Returns a document, or `None` if there is none at this place. Many servers have a page of HTML at each address.
    async fn get(&self, url: &Url) -> Result<Option<Value>, String> {
        match self.send(Method::GET, url, None, None).await? {
            Fetched { status: 200, body, end: End::Whole, .. } if is_object(&body) => {
                json::read(&body, DOCUMENT_VALUES_MAX)
                    .map(Some)
                    .map_err(|unread| format!("{url} cannot be read: {unread}"))
            }
            Fetched { status: 200 | 400..=428 | 430..=499, end: End::Whole, .. } => Ok(None),
            Fetched { status, .. } => Err(format!("{url} has HTTP status {status}")),
        }
    }

    /// Sends a body, and returns the status with the answer: an object, or the fields of a form; null if it is neither.
    pub(super) async fn post(
        &self,
        url: &Url,
        media_type: &str,
        body: String,
        credential: Option<Credential<'_>>,
    ) -> Result<(u16, Value), String> {
        let answer = self.send(Method::POST, url, Some((media_type, body)), credential).await?;
        match answer.end {
            End::Whole => Ok((answer.status, fields(&answer.body))),
            _ => Err("its answer is too long or ends early".to_owned()),
        }
    }

    async fn send(
        &self,
        method: Method,
        url: &Url,
        body: Option<(&str, String)>,
        credential: Option<Credential<'_>>,
    ) -> Result<Fetched, String> {
        let mut headers = vec![("accept", "application/json")];
        headers.extend(body.as_ref().map(|(media_type, _)| ("content-type", *media_type)));
        let body = body.as_ref().map(|(_, body)| body.clone().into_bytes());
        let request = Request { method, url: url.as_str(), headers, body, credential };
        let answer = self.fetcher.fetch(request, LIMITS).await;
        let answer =
            answer.map_err(|error| format!("{} cannot be reached: {error}", url.origin().ascii_serialization()))?;
        match answer.redirect {
            None => Ok(answer),
            Some(_) => Err(format!("{} redirects, which the host does not follow", url.origin().ascii_serialization())),
        }
    }
}

/// The login that a server names.
pub(super) struct Named {
    pub(super) issuers: Vec<String>,
    /// The scopes of its refusal, or else of its document.
    pub(super) scopes: Vec<String>,
}

/// Returns the login that a server names in its document. `challenge` is the header of its refusal.
pub(super) async fn resource(http: &Http<'_>, server: &Url, challenge: Option<&str>) -> Result<Named, String> {
    let named = challenge.and_then(|challenge| parameter(challenge, "resource_metadata"));
    let places = match named {
        Some(named) => vec![http.address(&named)?],
        None => vec![well_known(server, "oauth-protected-resource"), {
            let mut root = server.clone();
            root.set_path("/");
            well_known(&root, "oauth-protected-resource")
        }],
    };
    for place in places {
        let Some(document) = http.get(&place).await? else { continue };
        if !document["resource"].as_str().is_some_and(|resource| covers(resource, server)) {
            return Err("its document is about another server".to_owned());
        }
        let issuers = texts(&document["authorization_servers"]).unwrap_or_default();
        let asked = challenge.and_then(|challenge| parameter(challenge, "scope"));
        let scopes = match asked {
            Some(asked) => asked.split_ascii_whitespace().map(str::to_owned).collect(),
            None => texts(&document["scopes_supported"]).unwrap_or_default(),
        };
        return Ok(Named { issuers, scopes });
    }
    Err("it names no issuer".to_owned())
}

/// The reason why an issuer cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unfit {
    /// It does not announce S256, and people did not accept that.
    Unannounced,
    Other(String),
}

impl From<String> for Unfit {
    fn from(why: String) -> Self {
        Self::Other(why)
    }
}

/// Returns the addresses of an issuer, which announces S256 unless people accepted that it does not.
pub(super) async fn issuer(http: &Http<'_>, issuer: &ApprovedIssuer) -> Result<Discovered, Unfit> {
    let url = http.address(issuer.name.as_str())?;
    let mut below = url.clone();
    below.set_path(&format!("{}/.well-known/openid-configuration", url.path().trim_end_matches('/')));
    for place in [well_known(&url, "oauth-authorization-server"), well_known(&url, "openid-configuration"), below] {
        let Some(document) = http.get(&place).await? else { continue };
        return read(http, issuer, &document);
    }
    Err(Unfit::Other("it has no document about itself".to_owned()))
}

fn read(http: &Http<'_>, issuer: &ApprovedIssuer, document: &Value) -> Result<Discovered, Unfit> {
    let named = text(document, "issuer").unwrap_or_default();
    if IssuerName::parse(named).as_ref() != Ok(&issuer.name) {
        return Err(Unfit::Other(format!("its document is of the issuer {:?}", shown(named))));
    }
    let challenges = texts(&document["code_challenge_methods_supported"]).unwrap_or_default();
    if !issuer.accepts_unannounced && !challenges.iter().any(|one| one == "S256") {
        return Err(Unfit::Unannounced);
    }
    let optional = |field: &str| text(document, field).map(|text| http.address(text)).transpose();
    let wanted = |field: &str| optional(field)?.ok_or_else(|| format!("its document has no {field}"));
    Ok(Discovered {
        authorization: wanted("authorization_endpoint")?,
        token: wanted("token_endpoint")?,
        registration: optional("registration_endpoint")?,
        revocation: optional("revocation_endpoint")?,
        client_methods: texts(&document["token_endpoint_auth_methods_supported"]).filter(|list| !list.is_empty()),
        names_issuer: document["authorization_response_iss_parameter_supported"] == true,
    })
}

/// Returns a text of a document; `None` if it is absent, null or empty, which issuers write for one meaning.
pub(super) fn text<'a>(document: &'a Value, field: &str) -> Option<&'a str> {
    document[field].as_str().filter(|text| !text.is_empty())
}

/// Returns the fields of an answer: an object of JSON, or a form, which some issuers send whatever the host accepts. Null if it is neither.
fn fields(body: &[u8]) -> Value {
    let is_form = || !body.is_empty() && body.iter().all(|byte| byte.is_ascii_graphic()) && body.contains(&b'=');
    match json::read(body, DOCUMENT_VALUES_MAX) {
        Ok(read) => read,
        Err(_) if is_form() && !body.starts_with(b"<") => {
            let pairs = url::form_urlencoded::parse(body).take(ENTRIES_MAX);
            pairs.map(|(name, value)| (name.into_owned(), Value::String(value.into_owned()))).collect()
        }
        Err(_) => Value::Null,
    }
}

fn is_object(body: &[u8]) -> bool {
    body.trim_ascii_start().first() == Some(&b'{')
}

/// Returns a text of an issuer on one line.
pub(super) fn shown(text: &str) -> String {
    ironclaw_text::visible::line(&start(text, SHOWN_CHARACTERS_MAX).replace(['\n', '\r'], " ")).text
}

/// Returns the texts of a list; `None` if it is not a list.
fn texts(list: &Value) -> Option<Vec<String>> {
    let texts = list.as_array()?.iter().filter_map(Value::as_str).filter(|text| !text.is_empty());
    Some(texts.map(str::to_owned).take(ENTRIES_MAX).collect())
}

/// Returns the place of a document about an address: before its path.
fn well_known(url: &Url, name: &str) -> Url {
    let mut place = url.clone();
    place.set_query(None);
    place.set_path(&format!("/.well-known/{name}{}", url.path().trim_end_matches('/')));
    place
}

/// Returns whether a resource is the server, or a place above it.
fn covers(resource: &str, server: &Url) -> bool {
    let Ok(resource) = resource.parse::<Url>() else { return false };
    let above = resource.path().trim_end_matches('/');
    let rest = server.path().strip_prefix(above);
    resource.origin() == server.origin() && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Returns the quoted value of a parameter of a challenge; `None` if it is empty.
fn parameter(challenge: &str, name: &str) -> Option<String> {
    let (_, rest) = challenge.split_once(&format!("{name}=\""))?;
    let (value, _) = rest.split_once('"')?;
    (!value.is_empty()).then(|| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn document() -> Value {
        json!({
            "issuer": "https://login.example",
            "authorization_endpoint": "https://login.example/authorize",
            "token_endpoint": "https://login.example/token",
            "code_challenge_methods_supported": ["S256"],
        })
    }

    fn approved(text: &str) -> ApprovedIssuer {
        ApprovedIssuer::parse(text).expect("an issuer")
    }

    #[test]
    fn document_of_an_issuer_is_refused_unless_safe() {
        let fetcher = Fetcher::new();
        let http = Http { fetcher: &fetcher, is_near: false };
        let issuer = approved("https://login.example");
        assert!(read(&http, &issuer, &document()).is_ok());
        for (field, value, words) in [
            ("issuer", json!("https://login.example/tenant"), "is of the issuer"),
            ("issuer", json!("https://login.example//"), "is of the issuer"),
            ("issuer", json!("https://login.example:444"), "is of the issuer"),
            ("issuer", json!("http://login.example"), "is of the issuer"),
            ("issuer", json!("https://login.example/{tenantid}/v2.0"), "is of the issuer"),
            ("issuer", Value::Null, "is of the issuer"),
            ("token_endpoint", json!("http://login.example/token"), "plain http"),
            ("token_endpoint", json!("http://127.0.0.1/token"), "plain http"),
            ("token_endpoint", json!("https://169.254.169.254/token"), "metadata"),
            ("token_endpoint", json!(""), "token_endpoint"),
            ("authorization_endpoint", Value::Null, "authorization_endpoint"),
            ("registration_endpoint", json!("ftp://login.example/x"), "neither http nor https"),
            ("revocation_endpoint", json!("http://login.example/revoke"), "plain http"),
        ] {
            let mut document = document();
            document[field] = value;
            match read(&http, &issuer, &document) {
                Err(Unfit::Other(why)) => assert!(why.contains(words), "{field}: {why}"),
                other => panic!("{field}: {other:?}"),
            }
        }
    }

    #[test]
    fn absent_field_of_an_issuer_has_any_usual_form() {
        let fetcher = Fetcher::new();
        let http = Http { fetcher: &fetcher, is_near: false };
        let mut document = document();
        document["issuer"] = json!("https://LOGIN.example:443/");
        for absent in [Value::Null, json!(""), json!([])] {
            for field in ["registration_endpoint", "revocation_endpoint", "token_endpoint_auth_methods_supported"] {
                document[field] = absent.clone();
            }
            let found = read(&http, &approved("https://login.example"), &document).expect("usable");
            assert_eq!((found.registration, found.revocation, found.client_methods), (None, None, None), "{absent}");
        }
    }

    #[test]
    fn issuer_without_s256_needs_its_acceptance() {
        let fetcher = Fetcher::new();
        let http = Http { fetcher: &fetcher, is_near: false };
        for methods in [json!(["plain"]), json!([]), json!(""), Value::Null] {
            let mut document = document();
            document["code_challenge_methods_supported"] = methods;
            let refused = read(&http, &approved("https://login.example"), &document).err();
            assert_eq!(refused, Some(Unfit::Unannounced), "{document}");
            assert!(read(&http, &approved("https://login.example#s256-unannounced"), &document).is_ok(), "{document}");
        }
    }

    #[test]
    fn documents_of_large_issuers_are_read() {
        let fetcher = Fetcher::new();
        let http = Http { fetcher: &fetcher, is_near: false };
        let google = json!({
            "issuer": "https://accounts.google.com",
            "authorization_endpoint": "https://accounts.google.com/o/oauth2/v2/auth",
            "token_endpoint": "https://oauth2.googleapis.com/token",
            "revocation_endpoint": "https://oauth2.googleapis.com/revoke",
            "token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"],
            "code_challenge_methods_supported": ["plain", "S256"],
        });
        // Its servers name it with the slash.
        assert!(read(&http, &approved("https://accounts.google.com/"), &google).is_ok());
        let tenant = "https://login.microsoftonline.com/0f5e/v2.0";
        let microsoft = json!({
            "issuer": tenant,
            "authorization_endpoint": "https://login.microsoftonline.com/0f5e/oauth2/v2.0/authorize",
            "token_endpoint": "https://login.microsoftonline.com/0f5e/oauth2/v2.0/token",
            "token_endpoint_auth_methods_supported": ["client_secret_post", "private_key_jwt", "client_secret_basic"],
            "kerberos_endpoint": null,
        });
        // It checks S256 and does not announce it.
        assert_eq!(read(&http, &approved(tenant), &microsoft).err(), Some(Unfit::Unannounced));
        assert!(read(&http, &approved(&format!("{tenant}#s256-unannounced")), &microsoft).is_ok());
        let common = approved("https://login.microsoftonline.com/common/v2.0#s256-unannounced");
        assert!(read(&http, &common, &microsoft).is_err(), "another path is another issuer");
    }

    #[test]
    fn answer_of_an_issuer_is_json_or_a_form() {
        let wanted = json!({ "access_token": "a b", "error": "" });
        assert_eq!(fields(b"access_token=a+b&error="), wanted);
        assert_eq!(fields(wanted.to_string().as_bytes()), wanted);
        for text in ["<html a=b>", "", "no", "a = b", "<p>sorry</p>"] {
            assert_eq!(fields(text.as_bytes()), Value::Null, "{text}");
        }
    }

    #[test]
    fn document_of_a_server_is_about_this_server() {
        let server: Url = "https://calendar.example/mcp".parse().expect("a URL");
        for (resource, is_it) in [
            ("https://calendar.example/mcp", true),
            ("https://calendar.example", true),
            ("https://calendar.example/m", false),
            ("https://calendar.example/mcp/other", false),
            ("https://evil.example/mcp", false),
            ("http://calendar.example/mcp", false),
            ("mcp", false),
        ] {
            assert_eq!(covers(resource, &server), is_it, "{resource}");
        }
        let place = well_known(&server, "oauth-protected-resource");
        assert_eq!(place.as_str(), "https://calendar.example/.well-known/oauth-protected-resource/mcp");
    }

    #[test]
    fn place_of_the_document_is_read_from_a_challenge() {
        let challenge = "Bearer realm=\"x\", resource_metadata=\"https://a.example/r\"";
        assert_eq!(parameter(challenge, "resource_metadata").as_deref(), Some("https://a.example/r"));
        assert_eq!(parameter("Bearer", "resource_metadata"), None);
        let challenge = "Bearer error=\"insufficient_scope\", scope=\"read write\"";
        assert_eq!(parameter(challenge, "scope").as_deref(), Some("read write"));
    }
}
