//! A login that waits for a person: the page for a browser, and the check of the address to which the issuer sends the browser back.
//!
//! Pure but for randomness. The issuer is checked before the state, and a wrong address leaves the login waiting.

use super::discovery::shown;
use super::token::known;
use crate::registry::mcp::issuer::{ApprovedIssuer, IssuerName};
use crate::registry::mcp::login::IssuerClient;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ironclaw_contract::ids::PersonId;
use ironclaw_contract::seam::change::McpRegister;
use ironclaw_operator::DenialCode;
use ironclaw_store::refusal::Refusal;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use url::Url;

/// The path of the address for the browser.
const CALLBACK: &str = "/callback";

/// The host of an authorization page that gives a token for renewals only with these fields, whatever the scopes. Others ignore them.
const OFFLINE: (&str, [(&str, &str); 2]) = ("accounts.google.com", [("access_type", "offline"), ("prompt", "consent")]);

/// Bytes of a state, and of a verifier.
const RANDOM_BYTES: usize = 32;

/// A login that waits.
pub(super) struct Attempt {
    /// The person who began it.
    pub(super) by: PersonId,
    /// The server as people approved it.
    pub(super) described: McpRegister,
    /// Whether the issuer names itself in each address.
    pub(super) names_issuer: bool,
    pub(super) state: String,
    pub(super) verifier: String,
    pub(super) redirect_uri: String,
    pub(super) client: IssuerClient,
    /// The end of the wait, in milliseconds since the epoch.
    pub(super) until: i64,
}

/// A verifier, which only the host has, and its challenge, which the issuer gets first.
pub(super) struct Pair {
    pub(super) verifier: String,
    pub(super) challenge: String,
}

impl Pair {
    pub(super) fn new() -> Self {
        let verifier = random();
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
        Self { verifier, challenge }
    }
}

/// Returns an unpredictable text of visible ASCII.
pub(super) fn random() -> String {
    let mut bytes = [0; RANDOM_BYTES];
    getrandom::fill(&mut bytes).expect("Linux has a source of randomness since its start");
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Refuses an address for the browser that is not on this machine.
pub(super) fn check_redirect(text: &str) -> Result<(), Refusal> {
    let url = text.parse::<Url>().ok();
    let is_ours = |url: &Url| {
        let plain = format!("http://127.0.0.1:{}{CALLBACK}", url.port().unwrap_or_default());
        url.port().is_some() && plain == text
    };
    match url.as_ref().is_some_and(is_ours) {
        true => Ok(()),
        false => {
            let refusal =
                Refusal::new(DenialCode::McpLoginAddress, "the address for the browser is not on this machine");
            Err(refusal.hint(format!("use http://127.0.0.1:PORT{CALLBACK}")))
        }
    }
}

/// Returns the refusal of a login that failed.
pub(super) fn failed(server: &str, why: &str) -> Refusal {
    Refusal::new(DenialCode::McpLogin, format!("the login at MCP server {server} failed: {why}"))
        .hint(format!("`ironctl mcp login {server}` tries again"))
}

/// Returns the refusal of an answer for which no login waits.
pub(super) fn unknown(server: &str) -> Refusal {
    let refusal = Refusal::new(DenialCode::McpLoginUnknown, format!("no login of yours at MCP server {server} waits"));
    refusal.hint(format!("begin one: ironctl mcp login {server}"))
}

/// Returns whether a login waits after this refusal of an address, because the address may be of another party.
pub(super) fn waits_after(refusal: &Refusal) -> bool {
    matches!(refusal.code, DenialCode::McpLoginAddress | DenialCode::McpIssuer)
}

impl Attempt {
    /// Returns the page of the issuer for a browser.
    pub(super) fn page(&self, mut endpoint: Url, scopes: &[String], resource: &Url, challenge: &str) -> Url {
        endpoint
            .query_pairs_mut()
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client.id)
            .append_pair("redirect_uri", &self.redirect_uri)
            .append_pair("state", &self.state)
            .append_pair("code_challenge", challenge)
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", resource.as_str());
        if !scopes.is_empty() {
            endpoint.query_pairs_mut().append_pair("scope", &scopes.join(" "));
        }
        let (host, fields) = OFFLINE;
        if endpoint.host_str() == Some(host) {
            endpoint.query_pairs_mut().extend_pairs(fields);
        }
        endpoint
    }

    /// Returns the code in the address to which the issuer sent the browser.
    pub(super) fn code(&self, address: &str, now: i64) -> Result<String, Refusal> {
        let server = &self.described.name;
        if now >= self.until {
            return Err(unknown(server));
        }
        let wrong = |why: &str| {
            let message = format!("the address is not of the login at {server}: {why}");
            let refusal = Refusal::new(DenialCode::McpLoginAddress, message);
            refusal.hint("paste the whole address to which the page of the issuer led")
        };
        let url: Url = address.trim().parse().map_err(|_| wrong("it is not a URL"))?;
        if address.trim().split('?').next() != Some(self.redirect_uri.as_str()) {
            return Err(wrong("it begins differently"));
        }
        let once = |name: &str| {
            let mut values = url.query_pairs().filter(|(key, _)| key == name).map(|(_, value)| value.into_owned());
            match (values.next(), values.next()) {
                (_, Some(_)) => Err(wrong("it has a field twice")),
                (value, None) => Ok(value),
            }
        };
        let approved = ApprovedIssuer::for_login(self.described.oauth.as_deref()).map(|issuer| issuer.name);
        let is_approved = |named: &str| approved.is_some() && IssuerName::parse(named).ok() == approved;
        match once("iss")?.filter(|named| !named.is_empty()) {
            Some(issuer) if is_approved(&issuer) => {}
            None if !self.names_issuer => {}
            named => {
                let named = named.map_or_else(|| "no issuer".to_owned(), |named| shown(&named));
                let approved = approved.map_or_else(|| "no issuer".to_owned(), |approved| approved.to_string());
                let message = format!("the address names {named}, and the login is of {approved}");
                return Err(Refusal::new(DenialCode::McpIssuer, message));
            }
        }
        let state = once("state")?.unwrap_or_default();
        if !bool::from(state.as_bytes().ct_eq(self.state.as_bytes())) {
            return Err(wrong("it has another state"));
        }
        if let Some(error) = once("error")? {
            return Err(failed(server, &format!("the issuer answers {}", known(&error))));
        }
        once("code")?.filter(|code| !code.is_empty()).ok_or_else(|| wrong("it has no code"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_contract::seam::change::McpOauth;

    fn attempt() -> Attempt {
        let oauth = McpOauth { issuer: "https://login.example".to_owned(), ..McpOauth::default() };
        Attempt {
            by: PersonId::new(),
            described: McpRegister { name: "n".to_owned(), oauth: Some(Box::new(oauth)), ..McpRegister::default() },
            names_issuer: true,
            state: "right".to_owned(),
            verifier: random(),
            redirect_uri: "http://127.0.0.1:5000/callback".to_owned(),
            client: IssuerClient {
                id: "c".to_owned(),
                secret: None,
                token_endpoint: "https://login.example/token".parse().expect("a URL"),
                revocation_endpoint: None,
            },
            until: 1000,
        }
    }

    #[test]
    fn answer_of_another_login_is_refused() {
        let iss = "iss=https%3A%2F%2Flogin.example";
        let at = |rest: &str| format!("http://127.0.0.1:5000/callback?{rest}");
        let good = at(&format!("code=abc&state=right&{iss}"));
        assert_eq!(attempt().code(&good, 999).expect("a code"), "abc");
        for same in ["https%3A%2F%2Flogin.example%2F", "HTTPS%3A%2F%2FLogin.example%3A443"] {
            let address = at(&format!("code=abc&state=right&iss={same}"));
            assert_eq!(attempt().code(&address, 0).expect("a code"), "abc", "{same}");
        }
        for (address, now, code) in [
            (good.clone(), 1000, DenialCode::McpLoginUnknown),
            (at("code=abc&state=right"), 0, DenialCode::McpIssuer),
            (at("code=abc&state=right&iss=https%3A%2F%2Fevil.example"), 0, DenialCode::McpIssuer),
            (at("code=abc&state=right&iss=https%3A%2F%2Flogin.example%2Fx"), 0, DenialCode::McpIssuer),
            (at("code=abc&state=right&iss=https%3A%2F%2Flogin.example%3A444"), 0, DenialCode::McpIssuer),
            (at("code=abc&state=right&iss="), 0, DenialCode::McpIssuer),
            (at("code=abc&state=wrong&iss=https%3A%2F%2Fevil.example"), 0, DenialCode::McpIssuer),
            (at(&format!("code=abc&state=wrong&{iss}")), 0, DenialCode::McpLoginAddress),
            (at(&format!("code=abc&{iss}")), 0, DenialCode::McpLoginAddress),
            (at(&format!("state=right&{iss}")), 0, DenialCode::McpLoginAddress),
            (at(&format!("code=a&code=b&state=right&{iss}")), 0, DenialCode::McpLoginAddress),
            (good.replace("5000", "5001"), 0, DenialCode::McpLoginAddress),
            ("abc".to_owned(), 0, DenialCode::McpLoginAddress),
            (at(&format!("error=access_denied&state=right&{iss}")), 0, DenialCode::McpLogin),
        ] {
            let refusal = attempt().code(&address, now).expect_err(&address);
            assert_eq!(refusal.code, code, "{address}");
            assert!(!refusal.message.contains("abc"), "{refusal}");
        }
    }

    #[test]
    fn page_asks_for_renewals_where_scopes_cannot() {
        let resource = "https://calendar.example/mcp".parse().expect("a URL");
        let page = |endpoint: &str| {
            let endpoint = endpoint.parse().expect("a URL");
            attempt().page(endpoint, &["events".to_owned()], &resource, "c").to_string()
        };
        let page_of_google = page("https://accounts.google.com/o/oauth2/v2/auth");
        assert!(page_of_google.ends_with("&scope=events&access_type=offline&prompt=consent"), "{page_of_google}");
        let other = page("https://login.example/authorize?tenant=1");
        assert!(other.contains("?tenant=1&response_type=code") && !other.contains("access_type"), "{other}");
    }

    #[test]
    fn address_for_the_browser_is_on_this_machine() {
        assert!(check_redirect("http://127.0.0.1:5000/callback").is_ok());
        for text in [
            "http://127.0.0.1/callback",
            "https://127.0.0.1:5000/callback",
            "http://evil.example:5000/callback",
            "http://127.0.0.1:5000/callback?x=1",
            "http://a@127.0.0.1:5000/callback",
            "nothing",
        ] {
            assert!(check_redirect(text).is_err(), "{text}");
        }
    }

    #[test]
    fn challenge_is_the_hash_of_the_verifier() {
        let Pair { verifier, challenge } = Pair::new();
        assert_eq!(verifier.len(), 43);
        assert_eq!(challenge, URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes())));
        assert_ne!(random(), random());
    }
}
