//! The traffic of one jail: its counts, its tunnels, and the state that all its connections share.
//!
//! Sends nothing. See [`super::gateway`] and [`super::tunnel`].

use super::address::name;
use super::fetchers::Fetchers;
use super::hosts::{GrantedHost, OfCommand, Reach};
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode};
use axum::response::Response;
use ironclaw_judge::egress::{Grant, Loopback};
use ironclaw_operator::DenialCode;
use ironclaw_text::lookalike;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Refused requests in a report.
const REFUSED_MAX: usize = 32;
/// The refused requests that a result names.
const REFUSALS_SHOWN_MAX: usize = 8;
/// Longest time of a request of a jail without an end.
const WHOLE_TIME_MAX: Duration = Duration::from_secs(120);

/// The requests of a program.
#[derive(Debug, Clone, Default)]
pub struct Traffic {
    pub requests: u64,
    /// Those of them that asked for a granted tunnel.
    pub tunnels: u64,
    pub refusals: u64,
    /// Bytes of bodies that were sent, and those in tunnels.
    pub sent_bytes: u64,
    /// Bytes of bodies that the command got, and those in tunnels.
    pub received_bytes: u64,
    /// The asked hosts, by name.
    pub hosts: BTreeSet<String>,
    /// The first refused requests.
    pub refused: Vec<RefusedRequest>,
    /// The granted hosts for which a program did not accept the certificate of the gateway.
    pub distrusted: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedRequest {
    /// The method and the path, as the command wrote them; of a tunnel, also the reason.
    pub what: String,
    pub code: DenialCode,
    /// The next step; empty if there is none.
    pub hint: String,
}

impl Traffic {
    /// Returns a line for each of the first refused requests, for the result of a call.
    pub fn refusals_shown(&self) -> String {
        let mut text = String::new();
        for refused in self.refused.iter().take(REFUSALS_SHOWN_MAX) {
            let RefusedRequest { what, code, hint } = refused;
            let hint = if hint.is_empty() { String::new() } else { format!("; {hint}") };
            let _ = writeln!(text, "[the gateway refused {}: {code}{hint}]", lookalike::neutralise(what));
        }
        if self.refusals > REFUSALS_SHOWN_MAX as u64 {
            let _ = writeln!(text, "[the gateway refused {} requests]", self.refusals);
        }
        for host in &self.distrusted {
            let _ = writeln!(
                text,
                "[a program did not accept the certificate of the gateway for {host}: let it trust the file that SSL_CERT_FILE names]"
            );
        }
        text
    }
}

/// A granted host, with the bytes that the command has sent there in all its tunnels.
pub(super) struct Tunnel {
    pub(super) grant: Grant,
    sent_bytes: AtomicU64,
}

impl Tunnel {
    fn new(grant: &Grant) -> Self {
        Self { grant: grant.clone(), sent_bytes: AtomicU64::new(0) }
    }

    /// Forgets the bytes that were sent.
    pub(super) fn count_anew(&self) {
        self.sent_bytes.store(0, Ordering::Relaxed);
    }

    /// Counts bytes before they are sent; returns whether the grant admits them.
    pub(super) fn admits(&self, bytes: usize) -> bool {
        let bytes = bytes as u64;
        self.sent_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= self.grant.upload_bytes_max()
    }
}

/// The state that all connections of a jail share.
pub(super) struct Shared {
    pub(super) hosts: Arc<Vec<GrantedHost>>,
    pub(super) tunnels: Vec<Arc<Tunnel>>,
    pub(super) loopback: Loopback,
    pub(super) command: Option<OfCommand>,
    pub(super) fetchers: Arc<Fetchers>,
    until: Option<Instant>,
    /// True after the end of the jail.
    pub(super) is_over: watch::Sender<bool>,
    traffic: Mutex<Traffic>,
}

impl Shared {
    /// Makes the state of a jail without a connection. `until` is the end of the jail, if that is known.
    pub(super) fn new(reach: &Reach, fetchers: Arc<Fetchers>, until: Option<Instant>) -> Self {
        Self {
            hosts: Arc::clone(&reach.hosts),
            tunnels: reach.tunnels.iter().map(|grant| Arc::new(Tunnel::new(grant))).collect(),
            loopback: reach.loopback,
            command: reach.command.clone(),
            fetchers,
            until,
            is_over: watch::Sender::new(false),
            traffic: Mutex::default(),
        }
    }

    pub(super) fn traffic(&self) -> MutexGuard<'_, Traffic> {
        self.traffic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the time that is left for a request.
    pub(super) fn left(&self) -> Duration {
        self.until.map_or(WHOLE_TIME_MAX, |until| until.saturating_duration_since(Instant::now()))
    }

    /// Returns the name of the agent for a command of an operator.
    pub(super) fn agent(&self) -> &str {
        self.command.as_ref().map_or("AGENT", |command| &command.agent)
    }

    /// Records that a program did not accept the certificate for the host at this place of the list.
    pub(super) fn record_distrust(&self, at: usize) {
        self.traffic().distrusted.insert(name(&self.hosts[at].grant));
    }

    pub(super) fn record_refusal(&self, what: String, code: DenialCode, hint: &str) {
        let mut traffic = self.traffic();
        traffic.refusals += 1;
        // The hosts of a server are part of its registration.
        let is_for_person = self.command.is_some() || code == DenialCode::EgressTunnelSni;
        let hint = if is_for_person { hint.to_owned() } else { String::new() };
        let refused = RefusedRequest { what, code, hint };
        if traffic.refused.len() < REFUSED_MAX && !traffic.refused.contains(&refused) {
            traffic.refused.push(refused);
        }
    }
}

pub(super) fn plain(status: StatusCode, text: &str) -> Response {
    let mut response = Response::new(Body::from(text.to_owned()));
    *response.status_mut() = status;
    response.headers_mut().insert("content-type", HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}
