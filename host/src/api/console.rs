//! The console: pages in which a person decides, talks and stops from a browser.
//!
//! A face of the API: each page calls the same functions as a route, and there is no second way to decide. It has a listener, an origin and
//! a kind of token of its own, so that no cookie reaches the API and no token of a program a page. See `console::guard` for the rules of
//! every request, `console::sign_in` for the way in.

mod address;
mod decision;
mod fields;
mod guard;
mod inbox;
mod live;
mod pages;
mod said;
mod session;
mod sign_in;
mod status;
mod talk;
mod typed;
mod visit;
mod why;
mod words;

use super::auth::{Peer, require_role};
use super::body::{MESSAGE_BYTES_MAX, REQUEST_BYTES_MAX};
use super::console_state::codes::{self, Holder};
use super::console_state::{Place, Serving};
use super::handler::{Answer, Api, Body, Caller, Reply};
use super::port::{self, ConsolePort};
use super::tls::Identity;
use crate::registry::Giver;
use crate::registry::Role::{self, Admin, Member};
use axum::extract::DefaultBodyLimit;
use axum::http::StatusCode;
use axum::routing::{MethodRouter, get, post};
use axum::serve::Listener;
use axum::{Json, Router};
use ironclaw_operator::{ConsoleCode, DenialCode, NewConsoleCode};
use ironclaw_state::WriteTx;
use ironclaw_store::refusal::Refusal;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use tokio::time::Instant;

ironclaw_operator::settings! {
    /// `[console]`
    pub struct Config for console {
        /// The console listens on this address from the start, e.g. 127.0.0.1:8799; empty waits for `ironctl console`. Another address than
        /// one of loopback needs `certificate` and `key`.
        listen: String = String::new(), Rule("an address with a port, or empty"), Restart;
        /// The address of the console behind a proxy with TLS or with `certificate`, e.g. https://console.example; empty is an address of
        /// its own on loopback.
        origin: String = String::new(), Rule("an https address without a path, or empty"), Restart;
        /// The file of the certificate of `origin`, PEM, with its chain.
        certificate: Option<PathBuf> = None, Optional {
            rule: "a path", instead: "plain http, on loopback only", example: "\"/etc/letsencrypt/live/console.example/fullchain.pem\"",
        }, Restart;
        /// The file of its key, PEM.
        key: Option<PathBuf> = None, Optional {
            rule: "a path", instead: "plain http, on loopback only", example: "\"/etc/letsencrypt/live/console.example/privkey.pem\"",
        }, Restart;
    }
}

impl Config {
    /// Parses the address; `None` if `ironctl console` opens one.
    ///
    /// # Errors
    /// Returns a sentence about the mistake, also for an address that other machines reach in plain http.
    pub fn address(&self) -> Result<Option<SocketAddr>, String> {
        match self.certificate {
            None => {
                port::parse("console.listen", &self.listen).map_err(|error| match self.listen.parse::<SocketAddr>() {
                    Ok(_) => format!("{error}; with console.certificate and console.key, the console itself has TLS"),
                    Err(_) => error,
                })
            }
            Some(_) if self.listen.is_empty() => Ok(None),
            Some(_) => self.listen.parse().map(Some).map_err(|_| {
                format!("console.listen is {:?}: expected an address such as 0.0.0.0:8443 or [::]:8443", self.listen)
            }),
        }
    }

    /// Refuses an origin that is none or plain, and settings that do not fit together.
    ///
    /// # Errors
    /// Returns a sentence about the mistake.
    pub fn check(&self) -> Result<(), String> {
        let is_origin = self.origin.starts_with("https://")
            && url::Url::parse(&self.origin).is_ok_and(|url| url.origin().ascii_serialization() == self.origin);
        if !self.origin.is_empty() && !is_origin {
            return Err(format!(
                "console.origin is {:?}: expected an address such as https://console.example, in lower case and without a path; plain \
                 http is for loopback only",
                self.origin
            ));
        }
        if self.origin.is_empty() && self.address()?.is_some_and(|address| address.port() == 80) {
            return Err(
                "console.listen has the port 80, which browsers leave out of an address: take another one".to_owned()
            );
        }
        if !self.origin.is_empty() && self.listen.is_empty() {
            return Err("console.origin needs console.listen: browsers or the proxy lead to that address".to_owned());
        }
        match (&self.certificate, &self.key) {
            (None, None) => Ok(()),
            (Some(_), Some(_)) if !self.origin.is_empty() => Ok(()),
            (Some(_), Some(_)) => {
                Err("console.certificate needs console.origin: the name in the certificate".to_owned())
            }
            (Some(_), None) => Err("console.certificate needs console.key".to_owned()),
            (None, Some(_)) => Err("console.key needs console.certificate".to_owned()),
        }
    }

    /// Opens the port of the settings, if they name one.
    ///
    /// # Errors
    /// When the certificate cannot be read, or the system does not give the address.
    pub async fn open(&self) -> io::Result<Option<ConsolePort>> {
        // The settings refuse other addresses.
        let Ok(Some(address)) = self.address() else { return Ok(None) };
        match (&self.certificate, &self.key) {
            (Some(certificate), Some(key)) => port::open_console(address, Identity::read(certificate, key)?).await,
            _ => port::open_plain_console(address).await,
        }
        .map(Some)
    }
}

/// Answers from now on, if the console does not yet. Returns the place.
async fn open(api: &Api) -> Result<Place, Answer> {
    let mut server = api.console.server().await;
    if let Some(place) = api.console.place() {
        return Ok(place);
    }
    let port = match api.console.take_port() {
        Some(port) => port,
        None => free_port(api).await?,
    };
    let number = port.local_addr().map_or(0, |address| address.port());
    let address = api.state().write(move |tx: &mut WriteTx<'_>| address::keep(tx, number)).await?;
    let connections = port.connections();
    let app = router(api.clone()).into_make_service_with_connect_info::<Peer>();
    let served = axum::serve(port, app).with_graceful_shutdown(api.about.shutdown.stopped());
    *server = Some(Serving { task: tokio::spawn(served.into_future()), connections });
    tracing::info!(port = number, "the console answers");
    Ok(api.console.set_place(address.origin()))
}

/// Answers from the start if the settings name a port, or if a browser has a session and tries again.
pub(super) async fn open_at_start(api: &Api) {
    let has_session = api.state().read(address::has_session).await.unwrap_or_default();
    if (api.console.is_configured() || has_session)
        && let Err(answer) = open(api).await
    {
        tracing::warn!(why = answer.failure.error.message, "the console does not answer");
    }
}

/// Opens the port that the console had before, or another one if that is taken. The console then gets another name.
async fn free_port(api: &Api) -> Result<ConsolePort, Answer> {
    let before = api.state().read(address::find).await?.map_or(0, |address| address.port);
    let open = |number: u16| port::open_plain_console(SocketAddr::from(([127, 0, 0, 1], number)));
    match open(before).await {
        Ok(port) => Ok(port),
        Err(_) => open(0).await.map_err(|error| Answer::broken(&error)),
    }
}

/// `POST /v1/console/codes`: a code for the caller, which is valid once, within a minute.
pub async fn issue_code(
    Caller { api, person, current, .. }: Caller,
    Body(NewConsoleCode { new_origin }): Body<NewConsoleCode>,
) -> Reply<ConsoleCode> {
    let mut place = open(&api).await?;
    if new_origin {
        if !person.role.covers(Role::Owner) {
            let message = format!("{} is {} and a new origin needs an owner", person.name, person.role);
            return Err(Refusal::new(DenialCode::RoleTooLow, message).into());
        }
        let by = person.id;
        let address = api.state().write(move |tx: &mut WriteTx<'_>| address::replace(tx, by)).await?;
        api.people_changed();
        api.console.codes.clear();
        place = api.console.set_place(address.origin());
    }
    let giver = Giver { person: person.id, token: Some(current.0) };
    let code = api.console.codes.issue(Holder { person, giver }, Instant::now())?;
    let until = ironclaw_state::wall_clock() + i64::try_from(codes::VALID.as_millis()).unwrap_or(i64::MAX);
    Ok(Json(ConsoleCode {
        url: format!("{}/", place.origin),
        code: code.to_string(),
        expires_at: ironclaw_ledger::rfc3339(until),
    }))
}

/// One path of the console: the least role that may use it (`None` needs no session), and the handler.
struct Page(&'static str, Option<Role>, MethodRouter<Api>);

fn pages() -> Vec<Page> {
    vec![
        Page("/", None, get(sign_in::home)),
        Page(guard::SIGN_IN, None, post(sign_in::sign_in)),
        Page("/style.css", None, get(pages::style)),
        Page("/script.js", None, get(pages::script)),
        Page("/favicon.ico", None, get(|| async { StatusCode::NO_CONTENT })),
        Page("/sign-out", Some(Member), post(sign_in::sign_out)),
        Page("/confirm", Some(Member), post(sign_in::confirm)),
        Page("/live", Some(Member), get(live::inbox)),
        Page("/inbox", Some(Member), get(inbox::list)),
        Page("/waiting/{id}", Some(Member), get(decision::show)),
        Page("/waiting/{id}/together", Some(Member), get(decision::together)),
        Page("/waiting/{id}/decision", Some(Member), post(decision::decide)),
        Page("/conversations", Some(Member), get(talk::list).post(talk::open)),
        Page("/conversations/{session}", Some(Member), get(talk::show)),
        Page("/conversations/{session}/live", Some(Member), get(live::conversation)),
        Page(
            "/conversations/{session}/messages",
            Some(Member),
            post(talk::send).layer(DefaultBodyLimit::max(MESSAGE_BYTES_MAX)),
        ),
        Page("/conversations/{session}/cancel", Some(Member), post(talk::cancel)),
        Page("/files/{call}", Some(Member), get(talk::file)),
        Page("/status", Some(Member), get(status::show)),
        Page("/status/stop", Some(Admin), post(status::stop)),
        Page("/status/resume", Some(Admin), post(status::resume)),
        Page("/why", Some(Member), get(why::show)),
    ]
}

fn router(api: Api) -> Router {
    let put = |router: Router<Api>, Page(path, needs, handler): Page| {
        let handler = match needs {
            Some(role) => handler
                .route_layer(axum::middleware::from_fn_with_state(role, require_role))
                .route_layer(axum::middleware::from_fn(session::require)),
            None => handler,
        };
        router.route(path, handler)
    };
    pages()
        .into_iter()
        .fold(Router::new(), put)
        .fallback(|| async { Answer::from(Refusal::new(DenialCode::NotFound, "there is no such page")) })
        .layer(axum::middleware::from_fn_with_state(api.clone(), session::enter))
        .layer(DefaultBodyLimit::max(REQUEST_BYTES_MAX))
        .with_state(api)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origin_of_the_settings_is_https_without_a_path() {
        let check = |origin: &str| {
            Config { origin: origin.to_owned(), listen: "127.0.0.1:8799".to_owned(), ..Config::default() }.check()
        };
        for good in ["", "https://console.example", "https://console.example:8443"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        let without = Config { origin: "https://console.example".to_owned(), ..Config::default() };
        assert!(without.check().is_err(), "a proxy needs a fixed port");
        for wrong in [
            "http://console.example",
            "https://console.example/",
            "https://console.example/path",
            "https://Console.example",
            "https://console.example:443",
            "https://user@console.example",
            "https://",
            "console.example",
        ] {
            assert!(check(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn address_of_other_machines_needs_a_certificate() {
        let of = |listen: &str, has_certificate: bool| {
            let path = |name: &str| has_certificate.then(|| PathBuf::from(name));
            let listen = listen.to_owned();
            Config { listen, origin: "https://c.example".to_owned(), certificate: path("c"), key: path("k") }
        };
        assert!(of("0.0.0.0:8443", false).address().is_err() && of("192.168.1.2:80", false).address().is_err());
        assert!(of("0.0.0.0:8443", true).address().is_ok_and(|address| address.is_some()));
        assert!(of("127.0.0.1:8799", false).address().is_ok() && of("localhost", true).address().is_err());
        assert_eq!(of("0.0.0.0:8443", true).check(), Ok(()));
        let half = Config { key: None, ..of("0.0.0.0:8443", true) };
        assert!(half.check().is_err());
        let nameless = Config { origin: String::new(), ..of("0.0.0.0:8443", true) };
        assert!(nameless.check().is_err());
    }

    #[test]
    fn each_path_without_a_session_is_one_of_the_sign_in() {
        let open: Vec<&str> = pages().into_iter().filter(|page| page.1.is_none()).map(|page| page.0).collect();
        assert_eq!(open, ["/", "/sign-in", "/style.css", "/script.js", "/favicon.ico"]);
    }
}
