//! Who is asking: a token of a person, over a socket whose other end is this user's.
//!
//! The peer's uid is a second factor and never the identity: a child process has the same one. Next: `api`.

use super::{Answer, Api};
use crate::refusal::Refusal;
use crate::registry::{self, Person, Role};
use axum::extract::connect_info::Connected;
use axum::extract::{ConnectInfo, Request, State};
use axum::http::Method;
use axum::http::header::AUTHORIZATION;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::serve::IncomingStream;
use ironclaw_contract::canonical::Digest;
use subtle::ConstantTimeEq;
use tokio::net::UnixListener;

/// What the kernel says about the other end of a connection.
#[derive(Debug, Clone, Copy)]
pub struct Peer {
    uid: Option<u32>,
    pid: Option<i32>,
}

impl Connected<IncomingStream<'_, UnixListener>> for Peer {
    fn connect_info(stream: IncomingStream<'_, UnixListener>) -> Self {
        let peer = stream.io().peer_cred().ok();
        Self { uid: peer.map(|peer| peer.uid()), pid: peer.and_then(|peer| peer.pid()) }
    }
}

/// Lets a request pass with the person whose token it carries.
pub async fn require(
    State(api): State<Api>,
    ConnectInfo(peer): ConnectInfo<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    let header = request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let acts = request.method() != Method::GET && !request.uri().path().ends_with("/messages");
    match authenticate(&api, peer, header, acts).await {
        Ok(person) => {
            request.extensions_mut().insert(person);
            next.run(request).await
        }
        Err(answer) => {
            api.note_refusal().await;
            answer.into_response()
        }
    }
}

async fn authenticate(api: &Api, peer: Peer, header: Option<String>, acts: bool) -> Result<Person, Answer> {
    let me = nix::unistd::geteuid().as_raw();
    if !peer.uid.is_some_and(|uid| uid == me || uid == 0) {
        return Err(Refusal::operator("forbidden", "this socket serves its own user only").into());
    }
    // Root is the operating system's, and what it may look at we may not.
    if peer.uid != Some(0) && !same_user_namespace(peer.pid) {
        return Err(Refusal::operator("forbidden", "a process in another user namespace is not served").into());
    }
    let missing = || {
        let refusal = Refusal::operator("unauthorized", "the request carries no valid token");
        Answer::from(refusal.hint("ironctl sends the one in `owner.token` of the home"))
    };
    let token = header.as_deref().and_then(|header| header.strip_prefix("Bearer ")).ok_or_else(missing)?;
    let given = Digest::of(token.as_bytes());
    let tokens = api.pipeline.core().state.read(|tx| registry::tokens(tx)).await?;
    let mut found = None;
    for (digest, person) in tokens {
        if bool::from(digest.as_bytes().ct_eq(given.as_bytes())) {
            found = Some(person);
        }
    }
    let person = found.ok_or_else(missing)?;
    match person.role {
        Role::Owner | Role::Admin => Ok(person),
        Role::Member if !acts => Ok(person),
        Role::Member => Err(Refusal::operator("forbidden", "a member talks to agents and changes nothing").into()),
    }
}

fn same_user_namespace(peer: Option<i32>) -> bool {
    let namespace = |who: &str| std::fs::read_link(format!("/proc/{who}/ns/user")).ok();
    let ours = namespace("self");
    let theirs = peer.and_then(|pid| namespace(&pid.to_string()));
    ours.is_some() && ours == theirs
}
