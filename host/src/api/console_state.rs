//! The state of the console: where it answers, the codes that are valid, the open streams and the shown pages.
//!
//! Only in memory, except for its address. Serves nothing: see [`super::console`].

pub mod codes;
pub mod shown_pages;
pub mod streams;

use super::connections::Connections;
use super::port::ConsolePort;
use crate::registry::{Token, TokenState};
use codes::Codes;
use shown_pages::ShownPages;
use std::sync::{Mutex, PoisonError, RwLock};
use streams::Streams;
use tokio::sync::MutexGuard;
use tokio::task::JoinHandle;

/// The place at which the console answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The origin, as a browser writes it.
    pub origin: String,
}

impl Place {
    /// Returns whether browsers reach it by TLS only.
    pub fn is_https(&self) -> bool {
        self.origin.starts_with("https://")
    }
}

/// The console of this host.
pub struct Console {
    /// The origin of the settings; `None` for one of its own on loopback.
    origin: Option<String>,
    /// The port of the settings, until it is served.
    port: Mutex<Option<ConsolePort>>,
    pub codes: Codes,
    pub streams: Streams,
    pub shown: ShownPages,
    place: RwLock<Option<Place>>,
    serving: tokio::sync::Mutex<Option<Serving>>,
}

/// The server of the console.
pub struct Serving {
    pub task: JoinHandle<std::io::Result<()>>,
    pub connections: Connections,
}

impl Console {
    /// Returns a console that does not answer yet; `origin` and `port` are those of the settings.
    pub fn new(origin: &str, port: Option<ConsolePort>) -> Self {
        Self {
            origin: Some(origin.to_owned()).filter(|origin| !origin.is_empty()),
            port: Mutex::new(port),
            codes: Codes::default(),
            streams: Streams::default(),
            shown: ShownPages::default(),
            place: RwLock::default(),
            serving: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the place, once the console answers.
    pub fn place(&self) -> Option<Place> {
        self.place.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Sets the place; `own` is its own origin on loopback.
    pub fn set_place(&self, own: String) -> Place {
        let place = Place { origin: self.origin.clone().unwrap_or(own) };
        *self.place.write().unwrap_or_else(PoisonError::into_inner) = Some(place.clone());
        place
    }

    /// Returns whether the settings name a port that is not served yet.
    pub fn is_configured(&self) -> bool {
        self.port.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Takes the port of the settings, once.
    pub fn take_port(&self) -> Option<ConsolePort> {
        self.port.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Locks the server, so that only one is started.
    pub async fn server(&self) -> MutexGuard<'_, Option<Serving>> {
        self.serving.lock().await
    }

    /// Withdraws the admission of connections whose token is not among the live ones.
    pub async fn withdraw(&self, tokens: &[Token]) {
        let is_live = |id: &_| tokens.iter().any(|token| token.id == *id && token.state == TokenState::Live);
        if let Some(serving) = self.serving.lock().await.as_ref() {
            serving.connections.withdraw_unless(is_live);
        }
    }

    /// Waits until the open requests are answered, while the host stops.
    pub async fn end(&self) {
        if let Some(serving) = self.serving.lock().await.take() {
            let _ = serving.task.await;
        }
    }
}
