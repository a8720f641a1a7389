//! Requests over https, to servers with the certificates beside this file.
//!
//! Each is for one name and its own authority, valid from 2020 to 2120, with its key: of P-256, and no authority for others (`CA:FALSE`).
//! `openssl ca -selfsign -startdate 20200101000000Z -enddate 21200101000000Z` made them.

use super::*;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};

/// The name that a client asked for, and its request.
type Seen = (Option<String>, String);

/// A server with a certificate for one name; `seen` has each connection that was opened.
struct Secure {
    port: u16,
    authority: reqwest::Certificate,
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// A certificate for one name with its key, as PEM.
const PAGE: &[u8] = include_bytes!("page.example.pem");
/// The same for another name.
const OTHER: &[u8] = include_bytes!("other.example.pem");

impl Secure {
    fn start(pem: &[u8]) -> Self {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let own = CertificateDer::from_pem_slice(pem).expect("a certificate");
        let key = PrivateKeyDer::from_pem_slice(pem).expect("a key");
        let authority = reqwest::Certificate::from_der(&own).expect("a certificate");
        let config = ServerConfig::builder().with_no_client_auth().with_single_cert(vec![own], key).expect("a pair");
        let (config, seen) = (Arc::new(config), Arc::new(Mutex::new(Vec::new())));
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let requests = Arc::clone(&seen);
        std::thread::spawn(move || {
            while let Ok((socket, _)) = listener.accept() {
                let mut stream =
                    StreamOwned::new(ServerConnection::new(Arc::clone(&config)).expect("a server"), socket);
                let mut request = vec![0; 4096];
                let length = stream.read(&mut request).unwrap_or_default();
                let request = String::from_utf8_lossy(&request[..length]).into_owned();
                requests.lock().expect("no panic").push((stream.conn.server_name().map(str::to_owned), request));
                let _ = stream.write_all(page("secure").as_bytes());
                stream.conn.send_close_notify();
                let _ = stream.flush();
            }
        });
        Self { port, authority, seen }
    }

    /// Asks for the page of `page.example`, with a credential.
    async fn fetch(&self, reach: Reach, authority: Option<&reqwest::Certificate>) -> Result<Fetched, NotFetched> {
        let fetcher = trusting(reach, &Names::of(&[&["127.0.0.1"]]), authority);
        let (secret, url) = (SecretText::new("12345678".to_owned()), format!("https://page.example:{}/", self.port));
        let credential =
            Some(Credential { host: "page.example", port: self.port, form: Form::Bearer, secret: &secret });
        fetcher.fetch(Request { credential, ..get(&url) }, Limits::default()).await
    }

    fn requests(&self) -> Vec<String> {
        self.seen.lock().expect("no panic").iter().map(|(_, request)| request.clone()).collect()
    }
}

#[tokio::test]
async fn name_of_the_url_is_that_of_the_certificate() {
    let server = Secure::start(PAGE);
    let answer = server.fetch(Reach::DangerousLoopback, Some(&server.authority)).await.expect("an answer");
    assert_eq!(answer.body, b"secure");
    let (name, request) = server.seen.lock().expect("no panic").remove(0);
    assert_eq!(name.as_deref(), Some("page.example"));
    assert!(request.contains("authorization: Bearer 12345678"), "{request}");
    assert!(request.contains(&format!("host: page.example:{}", server.port)), "{request}");
}

#[tokio::test]
async fn certificate_of_another_name_gets_no_credential() {
    let server = Secure::start(OTHER);
    for authority in [Some(&server.authority), None] {
        let found = server.fetch(Reach::DangerousLoopback, authority).await;
        let Err(NotFetched::Failed(failed)) = found else { panic!("{found:?}") };
        assert_eq!((failed.failure, failed.may_have_arrived), (Failure::Untrusted, false));
    }
    assert!(server.requests().iter().all(String::is_empty));
}

#[tokio::test]
async fn trusted_certificate_on_loopback_is_refused() {
    let server = Secure::start(PAGE);
    let found = server.fetch(Reach::Public, Some(&server.authority)).await;
    assert!(matches!(found, Err(NotFetched::Refused(Refused::Address(_)))), "{found:?}");
    assert!(server.requests().is_empty());
}
