//! The host as a client of an issuer: its registration, and its requests with the id and the secret of the registration.
//!
//! Sends the secret to the addresses in the document of the issuer only. See [`super::token`] for the answers.

use super::discovery::{Discovered, Http};
use crate::registry::mcp::login::{ClientSecret, ClientSecretValue, IssuerClient};
use crate::registry::secrets::SecretName;
use ironclaw_net::fetch::{Credential, Form};
use ironclaw_state::keys::SecretText;
use serde_json::{Value, json};
use url::{Url, form_urlencoded};

/// The ways in which the host proves that it is its client, best first.
const METHODS: [&str; 3] = ["none", "client_secret_basic", "client_secret_post"];

/// The way of a registration that names none, as in RFC 7591.
const METHOD_DEFAULT: &str = "client_secret_basic";

/// Bytes of an id, and of a secret.
const TEXT_BYTES_MAX: usize = 4096;

/// Bytes of a secret that can be sent in a header.
const SECRET_BYTES_MIN: usize = 8;

/// The secret of a client for one request.
pub(super) struct Proof {
    pub(super) text: SecretText,
    /// Whether it is sent in a header, and not in the form.
    pub(super) in_header: bool,
}

/// Returns the client whose id people approved, with the secret that they named.
pub(super) fn approved(found: &Discovered, id: String, secret: Option<SecretName>) -> Result<IssuerClient, String> {
    let takes = |method: &str| found.client_methods.as_ref().is_none_or(|list| list.iter().any(|one| one == method));
    let [_, basic, post] = METHODS.map(takes);
    match secret {
        None => Ok(issuer_client(found, id, None)),
        Some(_) if !basic && !post => Err("it takes no secret of a client".to_owned()),
        Some(name) => {
            let value = ClientSecretValue::Named(name);
            Ok(issuer_client(found, id, Some(ClientSecret { value, in_header: basic })))
        }
    }
}

fn issuer_client(found: &Discovered, id: String, secret: Option<ClientSecret>) -> IssuerClient {
    IssuerClient { id, secret, token_endpoint: found.token.clone(), revocation_endpoint: found.revocation.clone() }
}

/// Registers the host at an issuer.
pub(super) async fn register(http: &Http<'_>, found: &Discovered, redirect_uri: &str) -> Result<IssuerClient, String> {
    let Some(endpoint) = &found.registration else {
        return Err("it registers no clients; register IronClaw there and name its id with --client-id".to_owned());
    };
    let asked = asked(found.client_methods.as_deref())?;
    let about = json!({
        "client_name": "IronClaw",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": asked,
    });
    let (status, answer) = http.post(endpoint, "application/json", about.to_string(), None).await?;
    if !(200..300).contains(&status) {
        return Err(format!("it refused to register the host, with HTTP status {status}"));
    }
    read(found, asked, answer)
}

/// Returns the way that the host asks for. Many issuers without a list take clients without a secret.
fn asked(supported: Option<&[String]>) -> Result<&'static str, String> {
    let takes = |method: &&str| supported.is_none_or(|list| list.iter().any(|one| one == method));
    let found = METHODS.into_iter().find(takes);
    found.ok_or_else(|| "it takes only clients that prove themselves in a way that the host does not know".to_owned())
}

fn read(found: &Discovered, asked: &'static str, mut answer: Value) -> Result<IssuerClient, String> {
    let named = answer["token_endpoint_auth_method"].as_str().map(str::to_owned);
    let mut take = |field: &str| match answer[field].take() {
        Value::String(text) => Some(SecretText::new(text)),
        _ => None,
    };
    let (id, secret) = (take("client_id"), take("client_secret"));
    let has_default = secret.is_some() && found.client_methods.is_none();
    let method = named.as_deref().unwrap_or(if has_default { METHOD_DEFAULT } else { asked });
    let id = id.map(|id| id.expose().to_owned()).filter(|id| (1..=TEXT_BYTES_MAX).contains(&id.len()));
    let id = id.ok_or("its registration has no id of a client")?;
    let secret = match method {
        "none" => None,
        "client_secret_basic" | "client_secret_post" => {
            let fits = |text: &SecretText| (SECRET_BYTES_MIN..=TEXT_BYTES_MAX).contains(&text.expose().len());
            let text = secret.filter(fits).ok_or("its registration has no secret that can be sent")?;
            Some(ClientSecret { value: ClientSecretValue::Issued(text), in_header: method == "client_secret_basic" })
        }
        _ => return Err("its registration asks for a proof that the host does not know".to_owned()),
    };
    Ok(issuer_client(found, id, secret))
}

/// Sends a form as a client, once. With its secret in a header, the form has neither its id nor its secret.
pub(super) async fn post(
    http: &Http<'_>,
    endpoint: &Url,
    client: &IssuerClient,
    proof: Option<&Proof>,
    form: &[(&str, &str)],
) -> Result<(u16, Value), String> {
    let encoded = |text: &str| form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>();
    let (in_header, in_form) = match proof {
        Some(proof) if proof.in_header => (Some(proof), None),
        in_form => (None, in_form),
    };
    let id = in_header.is_none().then_some(("client_id", client.id.as_str()));
    let secret = in_form.map(|secret| ("client_secret", secret.text.expose()));
    let fields = form.iter().copied().chain(id).chain(secret);
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
    let header = in_header.map(|secret| (encoded(&client.id), SecretText::new(encoded(secret.text.expose()))));
    let credential = header.as_ref().map(|(user, secret)| Credential {
        host: endpoint.host_str().unwrap_or_default(),
        port: endpoint.port_or_known_default().unwrap_or_default(),
        form: Form::Basic { user },
        secret,
    });
    http.post(endpoint, "application/x-www-form-urlencoded", body, credential).await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(client_methods: Option<&[&str]>) -> Discovered {
        let url = || "https://login.example/x".parse::<Url>().expect("a URL");
        Discovered {
            authorization: url(),
            token: url(),
            registration: Some(url()),
            revocation: None,
            client_methods: client_methods.map(|list| list.iter().map(|one| (*one).to_owned()).collect()),
            names_issuer: true,
        }
    }

    #[test]
    fn issuer_decides_the_use_of_a_named_secret() {
        let (basic, post) = ("client_secret_basic", "client_secret_post");
        for (supported, expected) in [
            (None, Some(true)),
            (Some(&["none", basic, post][..]), Some(true)),
            (Some(&[post]), Some(false)),
            (Some(&["none"]), None),
        ] {
            let name = "client".parse().expect("a name");
            let client = approved(&found(supported), "c".to_owned(), Some(name)).ok();
            assert_eq!(
                client.and_then(|client| client.secret).map(|secret| secret.in_header),
                expected,
                "{supported:?}"
            );
        }
    }

    /// Returns the way of the client after an answer of an issuer with these ways; `None` if it is refused.
    fn way(supported: Option<&[&str]>, answer: Value) -> Option<&'static str> {
        let found = found(supported);
        let asked = asked(found.client_methods.as_deref()).ok()?;
        let client = read(&found, asked, answer).ok()?;
        Some(match client.secret {
            None => "none",
            Some(ClientSecret { in_header: true, .. }) => "basic",
            Some(_) => "post",
        })
    }

    #[test]
    fn registration_decides_the_use_of_its_secret() {
        let plain = || json!({ "client_id": "c" });
        let with = |method: Option<&str>| {
            let mut answer = json!({ "client_id": "c", "client_secret": "s3cret-of-host" });
            answer["token_endpoint_auth_method"] = method.into();
            answer
        };
        let (basic, post) = ("client_secret_basic", "client_secret_post");
        for (supported, answer, expected) in [
            (None, plain(), Some("none")),
            (None, with(None), Some("basic")),
            (None, with(Some(post)), Some("post")),
            (Some(&["none"][..]), with(None), Some("none")),
            (Some(&[post, basic]), with(None), Some("basic")),
            (Some(&[post]), with(None), Some("post")),
            (Some(&[basic, "none"]), with(Some(basic)), Some("basic")),
            (Some(&[basic]), plain(), None),
            (Some(&[basic]), json!({ "client_id": "c", "client_secret": "short" }), None),
            (Some(&[basic]), with(Some("private_key_jwt")), None),
            (Some(&["private_key_jwt"]), plain(), None),
            (None, json!({}), None),
        ] {
            assert_eq!(way(supported, answer.clone()), expected, "{supported:?} {answer}");
        }
    }
}
