//! Tests with a server on loopback. Each server counts its connections.

mod answers;
mod certificates;
mod credentials;
mod walls;

use super::*;
use ironclaw_text::secret::SecretText;
use reqwest::Method;
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

/// A server that gives every request one answer, and keeps the requests.
struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Starts one with the text of an answer; the connection is closed behind it.
    async fn answering(answer: impl Into<Vec<u8>>) -> Self {
        Self::start(vec![answer.into()], Duration::ZERO).await
    }

    /// Starts one that sends its answer in pieces, and waits this time behind each.
    async fn start(answer: Vec<Vec<u8>>, wait: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        tokio::spawn(async move {
            while let Ok((mut connection, _)) = listener.accept().await {
                let mut request = vec![0; 64 << 10];
                let length = connection.read(&mut request).await.unwrap_or_default();
                seen.lock().expect("no panic").push(String::from_utf8_lossy(&request[..length]).into_owned());
                for piece in &answer {
                    let _ = connection.write_all(piece).await;
                    tokio::time::sleep(wait).await;
                }
            }
        });
        Self { port, requests }
    }

    fn url(&self, host: &str, path: &str) -> String {
        format!("http://{host}:{}{path}", self.port)
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().expect("no panic").clone()
    }
}

/// A resolver that gives its answers one after the other, and keeps the names.
#[derive(Clone, Default)]
struct Names {
    answers: Arc<Mutex<VecDeque<Vec<&'static str>>>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Names {
    fn of(answers: &[&[&'static str]]) -> Self {
        let answers = answers.iter().map(|answer| answer.to_vec()).collect();
        Self { answers: Arc::new(Mutex::new(answers)), asked: Arc::default() }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic").clone()
    }
}

impl Lookup for Names {
    fn look_up(&self, name: String) -> Pin<Box<dyn Future<Output = io::Result<Vec<SocketAddr>>> + Send>> {
        self.asked.lock().expect("no panic").push(name);
        let found = self.answers.lock().expect("no panic").pop_front().unwrap_or_default();
        let found = found.iter().map(|text| SocketAddr::new(text.parse().expect("an address"), 0)).collect();
        Box::pin(async move { Ok(found) })
    }
}

fn public(names: &Names) -> Fetcher {
    trusting(Reach::Public, names, None)
}

fn near(names: &Names) -> Fetcher {
    trusting(Reach::DangerousLoopback, names, None)
}

/// Makes a fetcher that trusts this authority alone. The machine may have no certificates.
fn trusting(reach: Reach, names: &Names, authority: Option<&reqwest::Certificate>) -> Fetcher {
    let fetcher = Fetcher::over(reach, Arc::new(names.clone()));
    let client = single_use(Resolver::over(reach, Arc::new(names.clone())));
    let client = client.https_only(true).tls_certs_only(authority.cloned());
    fetcher.secure.set(client.build().ok()).expect("the first use");
    fetcher
}

fn get(url: &str) -> Request<'_> {
    Request { method: Method::GET, url, headers: Vec::new(), body: None, credential: None }
}

fn page(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: Text/Plain; charset=utf-8\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

fn redirect(to: &str) -> String {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
}

async fn fetched(fetcher: &Fetcher, request: Request<'_>) -> Fetched {
    fetcher.fetch(request, Limits::default()).await.expect("an answer")
}

async fn refused(fetcher: &Fetcher, request: Request<'_>) -> Refused {
    match fetcher.fetch(request, Limits::default()).await {
        Err(NotFetched::Refused(refused)) => refused,
        other => panic!("{other:?}"),
    }
}
