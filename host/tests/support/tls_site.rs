//! A TLS server on loopback with a certificate for `localhost`, which counts its connections and keeps their requests.
//!
//! For tests of tunnels. Its certificate is a file like those of the tests of `ironclaw-model`, which name the command that made them.

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// Bytes of the first record of a connection that are kept.
const HELLO_BYTES_MAX: usize = 16 << 10;
/// The words of its page.
pub(crate) const PAGE: &str = "A page about tulips.";

/// A certificate for `localhost`, which is its own authority until 2120, and its key, as PEM.
pub(crate) const LOCALHOST: &str = include_str!("localhost.pem");
pub(crate) struct TlsSite {
    pub(crate) port: u16,
    /// Its certificate, which is its own authority, as PEM.
    pub(crate) certificate: String,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    opened: AtomicUsize,
    open: AtomicUsize,
    /// Raw bytes that arrived.
    bytes: AtomicUsize,
    requests: Mutex<Vec<String>>,
    /// The extensions of the first ClientHello of each connection.
    extensions: Mutex<Vec<Vec<u16>>>,
}

/// A connection whose raw bytes are counted, with the first of them.
struct Counted(TcpStream, Arc<Counts>, Vec<u8>);

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let length = self.0.read(into)?;
        self.1.bytes.fetch_add(length, Ordering::SeqCst);
        let room = HELLO_BYTES_MAX.saturating_sub(self.2.len()).min(length);
        self.2.extend_from_slice(&into[..room]);
        Ok(length)
    }
}

impl Write for Counted {
    fn write(&mut self, from: &[u8]) -> std::io::Result<usize> {
        self.0.write(from)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl TlsSite {
    pub(crate) fn start() -> Self {
        let (config, certificate) = server_config();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let counts = Arc::<Counts>::default();
        let kept = Arc::clone(&counts);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                kept.opened.fetch_add(1, Ordering::SeqCst);
                kept.open.fetch_add(1, Ordering::SeqCst);
                let (config, counts) = (Arc::clone(&config), Arc::clone(&kept));
                std::thread::spawn(move || {
                    serve(&config, stream, &counts);
                    counts.open.fetch_sub(1, Ordering::SeqCst);
                });
            }
        });
        Self { port, certificate, counts }
    }

    /// Returns the connections so far.
    pub(crate) fn opened(&self) -> usize {
        self.counts.opened.load(Ordering::SeqCst)
    }

    /// Returns the connections that are open now.
    pub(crate) fn open(&self) -> usize {
        self.counts.open.load(Ordering::SeqCst)
    }

    /// Returns the raw bytes that arrived.
    pub(crate) fn bytes(&self) -> usize {
        self.counts.bytes.load(Ordering::SeqCst)
    }

    /// Returns the extensions of the ClientHello of each connection that sent a whole one.
    pub(crate) fn extensions(&self) -> Vec<Vec<u16>> {
        self.counts.extensions.lock().expect("a list").clone()
    }

    /// Returns the requests so far, up to 64 KiB of each.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.counts.requests.lock().expect("a list").clone()
    }
}

/// Returns a server with the certificate [`LOCALHOST`], and this certificate as PEM.
pub(crate) fn server_config() -> (Arc<ServerConfig>, String) {
    let own = CertificateDer::from_pem_slice(LOCALHOST.as_bytes()).expect("a certificate");
    let key = PrivateKeyDer::from_pem_slice(LOCALHOST.as_bytes()).expect("a key");
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![own], key)
        .expect("a pair");
    let key_at = LOCALHOST.find("-----BEGIN PRIVATE KEY-----").expect("the key is last");
    (Arc::new(config), LOCALHOST[..key_at].to_owned())
}

/// Returns the extensions of the ClientHello in the first record of a connection.
fn extensions(first: &[u8]) -> Option<Vec<u16>> {
    let [_, _, _, high, low, rest @ ..] = first else { return None };
    let hello = rest.get(..usize::from(u16::from_be_bytes([*high, *low])))?;
    // Behind type, length, version and random bytes: the session, the suites and the compressions, each with its length.
    let mut at = 4 + 2 + 32;
    at += 1 + usize::from(*hello.get(at)?);
    at += 2 + usize::from(u16::from_be_bytes([*hello.get(at)?, *hello.get(at + 1)?]));
    at += 1 + usize::from(*hello.get(at)?) + 2;
    let mut all = Vec::new();
    while let Some([a, b, c, d]) = hello.get(at..at + 4) {
        all.push(u16::from_be_bytes([*a, *b]));
        at += 4 + usize::from(u16::from_be_bytes([*c, *d]));
    }
    Some(all)
}

fn serve(config: &Arc<ServerConfig>, stream: TcpStream, counts: &Arc<Counts>) {
    let server = ServerConnection::new(Arc::clone(config)).expect("a server");
    let mut stream = StreamOwned::new(server, Counted(stream, Arc::clone(counts), Vec::new()));
    let (mut request, mut length) = (vec![0; 64 << 10], 0);
    // The client may leave at each point.
    while let Ok(read @ 1..) = stream.read(&mut request[length..]) {
        length += read;
        let text = String::from_utf8_lossy(&request[..length]);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let wanted = head.lines().find_map(|line| line.strip_prefix("Content-Length: ")?.parse().ok()).unwrap_or(0);
        if body.len() >= wanted {
            break;
        }
    }
    if let Some(extensions) = extensions(&stream.sock.2) {
        counts.extensions.lock().expect("a list").push(extensions);
    }
    if length > 0 {
        counts.requests.lock().expect("a list").push(String::from_utf8_lossy(&request[..length]).into_owned());
    }
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", PAGE.len());
    let _ = stream.write_all(format!("{head}{PAGE}").as_bytes());
    stream.conn.send_close_notify();
    let _ = stream.flush();
}

/// Returns the first bytes of a TLS client that names this server and offers `h2`.
pub(crate) fn client_hello(name: &str) -> Vec<u8> {
    let mut config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(RootCertStore::empty())
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let name = name.to_owned().try_into().expect("a name");
    let mut client = ClientConnection::new(Arc::new(config), name).expect("a client");
    let mut bytes = Vec::new();
    client.write_tls(&mut bytes).expect("bytes");
    bytes
}

/// Returns the same with an encrypted ClientHello: the extension of `h2` has its number.
pub(crate) fn client_hello_with_ech(name: &str) -> Vec<u8> {
    let mut bytes = client_hello(name);
    let h2 = [0, 16, 0, 5, 0, 3, 2, b'h', b'2'];
    let at = bytes.windows(h2.len()).position(|part| part == h2).expect("the extension");
    bytes[at..at + 2].copy_from_slice(&0xfe0d_u16.to_be_bytes());
    bytes
}

/// Returns the configuration of a client that trusts the certificate of this site alone.
pub(crate) fn client_config() -> Arc<ClientConfig> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(LOCALHOST.as_bytes()).expect("a certificate")).expect("an authority");
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}
