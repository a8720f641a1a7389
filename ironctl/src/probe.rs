//! The search for model servers on this machine and for their models.
//!
//! Never connects to another machine, never sends a key, and requests only the list of models. See `commands::quickstart` and
//! `commands::model::add`.

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::header::HOST;
use hyper::{Request, StatusCode};
use hyper_util::rt::TokioIo;
use ironclaw_operator::ModelPreset;
use serde::Deserialize;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Time for a connection to this machine.
const CONNECT_TIMEOUT: Duration = Duration::from_millis(200);

/// Time for the list of models.
const LIST_TIMEOUT: Duration = Duration::from_secs(2);

/// Bytes of a list of models.
const LIST_BYTES_MAX: usize = 1024 * 1024;

/// Characters of the name of a model in a command.
const NAME_CHARACTERS_MAX: usize = 200;

#[derive(Deserialize)]
struct List {
    data: Vec<Listed>,
}

#[derive(Deserialize)]
struct Listed {
    id: String,
}

/// Returns the presets of local servers that answer, each with the first model of its list.
pub async fn local_servers(presets: &[ModelPreset]) -> Vec<(ModelPreset, String)> {
    let local = presets.iter().filter(|preset| preset.key_variable.is_none()).cloned();
    let asked: Vec<_> = local
        .map(|preset| tokio::spawn(async move { first_model(&preset.base_url).await.map(|model| (preset, model)) }))
        .collect();
    let mut found = Vec::new();
    for asked in asked {
        // A panicked task counts as no server.
        found.extend(asked.await.ok().flatten());
    }
    found
}

/// Returns the first model of a server on this machine; `None` for another address, or if no such server answers.
pub async fn first_model(base_url: &str) -> Option<String> {
    let (authority, path) = split(base_url)?;
    let asked = timeout(LIST_TIMEOUT, list(authority, path)).await.ok()??;
    asked.data.into_iter().map(|listed| listed.id).find(|id| is_plain(id))
}

/// Splits `http://127.0.0.1:11434/v1` into `127.0.0.1:11434` and `/v1`; `None` for another machine.
fn split(base_url: &str) -> Option<(SocketAddr, &str)> {
    let rest = base_url.strip_prefix("http://")?;
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let authority = authority.replace("localhost", "127.0.0.1");
    let address: SocketAddr = authority.parse().ok().filter(|address: &SocketAddr| address.ip().is_loopback())?;
    Some((address, path.trim_end_matches('/')))
}

async fn list(address: SocketAddr, path: &str) -> Option<List> {
    let stream = timeout(CONNECT_TIMEOUT, TcpStream::connect(address)).await.ok()?.ok()?;
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.ok()?;
    // An error of the connection is also an error of the request.
    tokio::spawn(async move { drop(connection.await) });
    let request = Request::get(format!("{path}/models")).header(HOST, address.to_string());
    let response = sender.send_request(request.body(Empty::<Bytes>::new()).ok()?).await.ok()?;
    if response.status() != StatusCode::OK {
        return None;
    }
    let body = Limited::new(response.into_body(), LIST_BYTES_MAX).collect().await.ok()?.to_bytes();
    serde_json::from_slice(&body).ok()
}

/// Returns whether a name is safe unquoted in a command: a server must not insert text into a suggested command.
fn is_plain(name: &str) -> bool {
    (1..=NAME_CHARACTERS_MAX).contains(&name.len())
        && name.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '/')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-:/@+".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_addresses_of_this_machine_are_accepted() {
        let (address, path) = split("http://127.0.0.1:11434/v1").expect("this machine");
        assert_eq!((address.to_string().as_str(), path), ("127.0.0.1:11434", "/v1"));
        assert!(split("http://localhost:8080/v1/").is_some_and(|(_, path)| path == "/v1"));
        assert!(split("http://[::1]:8080").is_some_and(|(_, path)| path.is_empty()));
        for far in
            ["https://127.0.0.1:1/v1", "http://10.0.0.1:80/v1", "http://example.com:80/v1", "http://127.0.0.1/v1"]
        {
            assert!(split(far).is_none(), "{far}");
        }
    }

    #[test]
    fn unsafe_model_name_is_skipped() {
        for plain in ["llama3.2", "qwen2.5-coder:7b", "/models/a.gguf", "org/name@main"] {
            assert!(is_plain(plain), "{plain}");
        }
        for odd in ["", "a b", "a;b", "$(id)", "`id`", "-rf", "--default", "a\nb", "a'b", "a\"b", "ä"] {
            assert!(!is_plain(odd), "{odd}");
        }
    }
}
