//! A stand-in for an issuer of tokens, and an MCP server that takes its tokens, on one port of loopback.
//!
//! The pages are as RFC 8414, RFC 9728, RFC 7591 and RFC 9207 describe them; a field of [`Behaviour`] breaks one rule.

use axum::Json;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use url::{Url, form_urlencoded};

/// The rules that the stand-in breaks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Behaviour {
    /// Without S256.
    pub(crate) plain_challenges: bool,
    /// Its document redirects.
    pub(crate) redirects: bool,
    /// The address for the browser names another issuer.
    pub(crate) names_other: bool,
    /// Seconds of an access token.
    pub(crate) lifetime: Option<u64>,
    /// Refuses each renewal.
    pub(crate) refuses_renewals: bool,
    /// The time from the new tokens of a renewal until its answer.
    pub(crate) renewal_takes: Duration,
    /// The server acts on a call of `count`, and refuses its token then.
    pub(crate) acts_and_refuses: bool,
    /// The server answers a request for its tools with an error that has the token.
    pub(crate) lists_nothing: bool,
    /// The only way in which its clients prove themselves, with [`SECRET`].
    pub(crate) client_method: Option<&'static str>,
    /// Does not revoke tokens.
    pub(crate) keeps_tokens: bool,
    /// The scopes that the server names.
    pub(crate) scopes: &'static [&'static str],
    /// The names of the issuer.
    pub(crate) names: Names,
    /// Has a page of HTML at each address without another page, and its document at the last place.
    pub(crate) has_pages: bool,
    /// Fields in place of those of its document.
    pub(crate) document: Option<Value>,
    /// Fields in place of those of its answer with tokens; null removes one.
    pub(crate) tokens: Option<Value>,
    /// Its answers with tokens are forms.
    pub(crate) answers_forms: bool,
    /// The access tokens are JWTs, which end after the lifetime.
    pub(crate) makes_jwts: bool,
    /// Answers each renewal in this way.
    pub(crate) renewal: Option<Renewal>,
}

/// An answer to a renewal.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Renewal {
    pub(crate) status: u16,
    pub(crate) media_type: &'static str,
    pub(crate) body: &'static str,
}

/// The names of an issuer: each makes one from its origin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Names {
    /// In the document of the server.
    pub(crate) server: fn(&str) -> String,
    /// In its own document.
    pub(crate) document: fn(&str) -> String,
    /// In the address for the browser.
    pub(crate) browser: fn(&str) -> String,
}

impl Default for Names {
    fn default() -> Self {
        Self { server: str::to_owned, document: str::to_owned, browser: str::to_owned }
    }
}

/// The secret of a client, with characters that a form encodes.
pub(crate) const SECRET: &str = "indigo 1+1:2";

#[derive(Default)]
struct Book {
    /// The challenge and the address for the browser of each code.
    codes: HashMap<String, (String, String)>,
    access: Option<String>,
    refresh: Option<String>,
    made: u32,
    renewals: u32,
    revocations: u32,
    acts: u32,
    reads: u32,
}

#[derive(Clone)]
struct Shared {
    origin: String,
    behaviour: Behaviour,
    book: Arc<Mutex<Book>>,
}

/// A running stand-in, which ends with the value.
pub(crate) struct Issuer {
    /// The issuer.
    pub(crate) origin: String,
    /// The MCP server.
    pub(crate) server: String,
    shared: Shared,
    _runtime: tokio::runtime::Runtime,
}

impl Issuer {
    pub(crate) fn start(behaviour: Behaviour) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let listener = runtime.block_on(tokio::net::TcpListener::bind("127.0.0.1:0")).expect("a port");
        let origin = format!("http://{}", listener.local_addr().expect("an address"));
        let shared = Shared { origin: origin.clone(), behaviour, book: Arc::default() };
        let app = Router::new()
            .route("/.well-known/oauth-protected-resource/mcp", get(resource))
            .route("/.well-known/oauth-authorization-server", get(first))
            .route("/.well-known/openid-configuration", get(about))
            .route("/.well-known/oauth-protected-resource", get(resource))
            .route("/moved", get(about))
            .route("/register", post(register))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/revoke", post(revoke))
            .route("/mcp", post(mcp))
            .with_state(shared.clone());
        runtime.spawn(async move { axum::serve(listener, app).await });
        Self { server: format!("{origin}/mcp"), origin, shared, _runtime: runtime }
    }

    /// Opens a page of the issuer as a browser whose person agrees, and returns the address to which it leads.
    pub(crate) fn browse(&self, page: &str) -> String {
        let page: Url = page.parse().expect("a URL");
        let asked: HashMap<String, String> = page.query_pairs().into_owned().collect();
        assert!(page.as_str().starts_with(&self.origin), "{page}");
        agree(&self.shared, &asked)
    }

    /// Makes the server refuse the present token.
    pub(crate) fn end_access(&self) {
        self.shared.book().access = None;
    }
    pub(crate) fn access(&self) -> String {
        self.shared.book().access.clone().expect("a token")
    }
    pub(crate) fn renewals(&self) -> u32 {
        self.shared.book().renewals
    }
    pub(crate) fn revocations(&self) -> u32 {
        self.shared.book().revocations
    }

    /// Returns whether it takes the present tokens.
    pub(crate) fn has_tokens(&self) -> bool {
        self.shared.book().access.is_some()
    }

    /// Returns the number of calls of `peek` that the server answered.
    pub(crate) fn reads(&self) -> u32 {
        self.shared.book().reads
    }

    /// Returns the number of calls on which the server acted.
    pub(crate) fn acts(&self) -> u32 {
        self.shared.book().acts
    }
}

impl Shared {
    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().expect("no panic while locked")
    }
}

async fn resource(State(shared): State<Shared>) -> Json<Value> {
    let Shared { origin, behaviour, .. } = shared;
    let resource = format!("{origin}/mcp");
    let issuer = (behaviour.names.server)(&origin);
    Json(json!({ "resource": resource, "authorization_servers": [issuer], "scopes_supported": behaviour.scopes }))
}

/// The first place of the document.
async fn first(state: State<Shared>) -> Response {
    match state.0.behaviour.has_pages {
        true => ([(header::CONTENT_TYPE, "text/html")], "<!DOCTYPE html><p>Welcome</p>").into_response(),
        false => about(state).await,
    }
}

async fn about(State(shared): State<Shared>) -> Response {
    let Shared { origin, behaviour, .. } = shared;
    if behaviour.redirects {
        return (StatusCode::FOUND, [(header::LOCATION, format!("{origin}/moved"))]).into_response();
    }
    let challenges = if behaviour.plain_challenges { "plain" } else { "S256" };
    let document = json!({
        "issuer": (behaviour.names.document)(&origin),
        "authorization_endpoint": format!("{origin}/authorize"),
        "token_endpoint": format!("{origin}/token"),
        "registration_endpoint": format!("{origin}/register"),
        "revocation_endpoint": format!("{origin}/revoke"),
        "code_challenge_methods_supported": [challenges],
        "token_endpoint_auth_methods_supported": [behaviour.client_method.unwrap_or("none")],
        "authorization_response_iss_parameter_supported": true,
    });
    Json(with_fields(document, behaviour.document.as_ref())).into_response()
}

/// Returns an object with other fields in place of its own.
fn with_fields(mut object: Value, fields: Option<&Value>) -> Value {
    for (name, value) in fields.and_then(Value::as_object).into_iter().flatten() {
        object[name] = value.clone();
    }
    object
}

async fn register(State(shared): State<Shared>, Json(client): Json<Value>) -> Response {
    let method = shared.behaviour.client_method;
    let is_right = client["token_endpoint_auth_method"] == method.unwrap_or("none");
    let status = if is_right { StatusCode::CREATED } else { StatusCode::BAD_REQUEST };
    let secret = method.map(|_| SECRET);
    let about = json!({ "client_id": "client", "client_secret": secret, "redirect_uris": client["redirect_uris"] });
    (status, Json(about)).into_response()
}

/// Returns whether a request has the id and the secret of the client in the one right place.
fn is_client(shared: &Shared, headers: &HeaderMap, form: &HashMap<String, String>) -> bool {
    let fields = ["client_id", "client_secret"].map(|name| form.get(name).map(String::as_str));
    let pair = form_urlencoded::byte_serialize(b"client").chain([":"]);
    let pair: String = pair.chain(form_urlencoded::byte_serialize(SECRET.as_bytes())).collect();
    let basic = format!("Basic {}", base64::engine::general_purpose::STANDARD.encode(pair));
    let header = headers.get(header::AUTHORIZATION).map(|value| value.to_str().expect("ASCII"));
    match shared.behaviour.client_method {
        Some("client_secret_basic") => (fields, header) == ([None, None], Some(&basic)),
        Some(_) => (fields, header) == ([Some("client"), Some(SECRET)], None),
        None => (fields, header) == ([Some("client"), None], None),
    }
}

async fn authorize(State(shared): State<Shared>, Query(asked): Query<HashMap<String, String>>) -> Response {
    (StatusCode::FOUND, [(header::LOCATION, agree(&shared, &asked))]).into_response()
}

fn agree(shared: &Shared, asked: &HashMap<String, String>) -> String {
    let field = |name: &str| asked.get(name).cloned().unwrap_or_default();
    let wanted = (field("response_type"), field("client_id"), field("code_challenge_method"), field("resource"));
    let right = ("code".to_owned(), "client".to_owned(), "S256".to_owned(), format!("{}/mcp", shared.origin));
    assert_eq!(wanted, right);
    let mut book = shared.book();
    book.made += 1;
    let code = format!("code-{}", book.made);
    book.codes.insert(code.clone(), (field("code_challenge"), field("redirect_uri")));
    let own = (shared.behaviour.names.browser)(&shared.origin);
    let issuer = if shared.behaviour.names_other { "https://other.example" } else { &own };
    let mut address: Url = field("redirect_uri").parse().expect("a URL");
    address
        .query_pairs_mut()
        .append_pair("code", &code)
        .append_pair("state", &field("state"))
        .append_pair("iss", issuer);
    address.into()
}

async fn token(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let form: HashMap<String, String> = form_urlencoded::parse(&body).into_owned().collect();
    let is_renewal = form.get("grant_type").is_some_and(|kind| kind == "refresh_token");
    let answer = issue(&shared, &headers, &form);
    if is_renewal {
        tokio::time::sleep(shared.behaviour.renewal_takes).await;
    }
    answer
}

fn issue(shared: &Shared, headers: &HeaderMap, form: &HashMap<String, String>) -> Response {
    let field = |name: &str| form.get(name).cloned().unwrap_or_default();
    let refused = || (StatusCode::BAD_REQUEST, Json(json!({ "error": "invalid_grant" }))).into_response();
    let mut book = shared.book();
    let is_good = match field("grant_type").as_str() {
        "authorization_code" => book.codes.remove(&field("code")).is_some_and(|(challenge, redirect)| {
            let of = URL_SAFE_NO_PAD.encode(Sha256::digest(field("code_verifier").as_bytes()));
            challenge == of && redirect == field("redirect_uri")
        }),
        "refresh_token" => {
            book.renewals += 1;
            if let Some(Renewal { status, media_type, body }) = shared.behaviour.renewal {
                let status = StatusCode::from_u16(status).expect("a status");
                return (status, [(header::CONTENT_TYPE, media_type)], body).into_response();
            }
            !shared.behaviour.refuses_renewals && book.refresh.as_deref() == Some(&field("refresh_token"))
        }
        _ => false,
    };
    if !is_good || !is_client(shared, headers, form) || field("resource") != format!("{}/mcp", shared.origin) {
        return refused();
    }
    book.made += 1;
    let lifetime = shared.behaviour.lifetime.unwrap_or(3600);
    let access = match shared.behaviour.makes_jwts {
        false => format!("zinnober-{}", book.made),
        true => {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970");
            let claims = json!({ "exp": now.as_secs() + lifetime, "jti": book.made }).to_string();
            format!("e30.{}.zinnober", URL_SAFE_NO_PAD.encode(claims))
        }
    };
    let refresh = format!("karmin-{}", book.made);
    let answer = json!({
        "access_token": access,
        "refresh_token": refresh,
        "token_type": "Bearer",
        "expires_in": lifetime,
    });
    let answer = with_fields(answer, shared.behaviour.tokens.as_ref());
    (book.access, book.refresh) = (Some(access), Some(refresh));
    if !shared.behaviour.answers_forms {
        return Json(answer).into_response();
    }
    let fields = answer.as_object().expect("an object").iter().filter(|(_, value)| !value.is_null());
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let pairs = fields.map(|(name, value)| (name.clone(), text(value)));
    let form = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish();
    ([(header::CONTENT_TYPE, "application/x-www-form-urlencoded; charset=utf-8")], form).into_response()
}

async fn revoke(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let form: HashMap<String, String> = form_urlencoded::parse(&body).into_owned().collect();
    let mut book = shared.book();
    book.revocations += 1;
    if shared.behaviour.keeps_tokens || !is_client(&shared, &headers, &form) {
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    if book.refresh.as_ref() == form.get("token") {
        (book.access, book.refresh) = (None, None);
    }
    StatusCode::OK
}

/// The MCP server: `echo` gives a text back, `leak` the header with the token, `fail` an error with it, `count` acts,
/// and `peek` reads.
async fn mcp(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> Response {
    let given = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let refused = || {
        let origin = &shared.origin;
        let challenge = format!("Bearer resource_metadata=\"{origin}/.well-known/oauth-protected-resource/mcp\"");
        (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)]).into_response()
    };
    let wanted = shared.book().access.clone().map(|access| format!("Bearer {access}"));
    if wanted.as_deref() != Some(&given) {
        return refused();
    }
    let asked: Value = serde_json::from_slice(&body).expect("JSON");
    let Some(id) = asked.get("id") else { return StatusCode::ACCEPTED.into_response() };
    let tool = |name: &str| json!({ "name": name, "description": "A tool.", "inputSchema": { "type": "object", "properties": {} } });
    let text = |text: &str| json!({ "content": [{ "type": "text", "text": text }], "isError": false });
    let result =
        match (asked["method"].as_str().unwrap_or_default(), asked["params"]["name"].as_str().unwrap_or_default()) {
            ("initialize", _) => json!({
                "protocolVersion": "2025-06-18",
                "capabilities": { "tools": {} },
                "serverInfo": { "name": "stand-in", "version": "1" },
            }),
            ("tools/list", _) if !shared.behaviour.lists_nothing => {
                json!({ "tools": [tool("leak"), tool("fail"), tool("count"), tool("peek")] })
            }
            ("tools/call", "leak") => text(&format!("you sent {given}")),
            ("tools/call", "peek") => {
                shared.book().reads += 1;
                text("seen")
            }
            ("tools/call", "count") => {
                shared.book().acts += 1;
                if shared.behaviour.acts_and_refuses {
                    return refused();
                }
                text("counted")
            }
            (method, _) => {
                let error = json!({ "code": -32000, "message": format!("no {method} for {given}") });
                return Json(json!({ "jsonrpc": "2.0", "id": id, "error": error })).into_response();
            }
        };
    Json(json!({ "jsonrpc": "2.0", "id": id, "result": result })).into_response()
}
