//! The listener of the console: plain on loopback, or with a certificate of the settings.
//!
//! A handshake runs on its connection and never delays another one. A renewed certificate counts from the next minute on. See
//! `api::port` for the bounds.

use axum::serve::Listener;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_rustls::server::TlsStream;
use tokio_rustls::{Accept, TlsAcceptor};

/// The time between two looks at the file of the certificate.
const LOOK_TIME: Duration = Duration::from_secs(60);

/// A certificate with its key, as the settings name them.
pub struct Identity {
    certificate: PathBuf,
    key: PathBuf,
    config: Arc<ServerConfig>,
    changed: Option<SystemTime>,
    looked: Instant,
}

impl Identity {
    /// Reads a certificate chain and its key, both in PEM.
    ///
    /// # Errors
    /// When a file cannot be read, or the key is not that of the certificate.
    pub fn read(certificate: &Path, key: &Path) -> io::Result<Self> {
        let (certificate, key) = (certificate.to_owned(), key.to_owned());
        let changed = modified(&certificate);
        let config = server(&certificate, &key)?;
        Ok(Self { certificate, key, config, changed, looked: Instant::now() })
    }

    /// Returns the configuration of a new connection; a renewed certificate that cannot be read leaves the earlier one.
    fn current(&mut self) -> Arc<ServerConfig> {
        if self.looked.elapsed() >= LOOK_TIME {
            self.looked = Instant::now();
            let changed = modified(&self.certificate);
            if changed != self.changed {
                match server(&self.certificate, &self.key) {
                    Ok(config) => (self.config, self.changed) = (config, changed),
                    Err(error) => tracing::warn!(%error, "the console keeps its earlier certificate"),
                }
            }
        }
        Arc::clone(&self.config)
    }
}

fn modified(path: &Path) -> Option<SystemTime> {
    std::fs::metadata(path).and_then(|found| found.modified()).ok()
}

fn server(certificate: &Path, key: &Path) -> io::Result<Arc<ServerConfig>> {
    let named = |path: &Path, why: &dyn std::fmt::Display| io::Error::other(format!("{}: {why}", path.display()));
    let chain = CertificateDer::pem_file_iter(certificate).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let chain = chain.map_err(|error| named(certificate, &error))?;
    let private = PrivateKeyDer::from_pem_file(key).map_err(|error| named(key, &error))?;
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_no_client_auth()
        .with_single_cert(chain, private)
        .map_err(|error| named(certificate, &error))?;
    Ok(Arc::new(config))
}

/// A TCP listener, with TLS if it has an identity.
pub struct ConsoleListener {
    listener: TcpListener,
    /// The same port of the other loopback address: a browser tries it first for a name below `localhost`.
    beside: Option<TcpListener>,
    identity: Option<Identity>,
}

impl ConsoleListener {
    pub const fn new(listener: TcpListener, beside: Option<TcpListener>, identity: Option<Identity>) -> Self {
        Self { listener, beside, identity }
    }
}

impl Listener for ConsoleListener {
    type Io = ConsoleStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (ConsoleStream, SocketAddr) {
        let (stream, from) = match &mut self.beside {
            None => Listener::accept(&mut self.listener).await,
            Some(beside) => tokio::select! {
                accepted = Listener::accept(&mut self.listener) => accepted,
                accepted = Listener::accept(beside) => accepted,
            },
        };
        let stream = match &mut self.identity {
            None => ConsoleStream::Plain(stream),
            Some(identity) => ConsoleStream::Handshake(Box::new(TlsAcceptor::from(identity.current()).accept(stream))),
        };
        (stream, from)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection, which ends its handshake before the first byte.
pub enum ConsoleStream {
    Plain(TcpStream),
    Handshake(Box<Accept<TcpStream>>),
    Encrypted(Box<TlsStream<TcpStream>>),
}

impl ConsoleStream {
    /// Waits for the end of the handshake, and returns the stream after it.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<Pin<&mut dyn Both>>> {
        match self {
            Self::Plain(stream) => Poll::Ready(Ok(Pin::new(stream))),
            Self::Encrypted(stream) => Poll::Ready(Ok(Pin::new(stream.as_mut()))),
            Self::Handshake(accept) => {
                let stream = ready!(Pin::new(accept.as_mut()).poll(context))?;
                *self = Self::Encrypted(Box::new(stream));
                self.poll_ready(context)
            }
        }
    }
}

/// Reads and writes.
trait Both: AsyncRead + AsyncWrite + Unpin {}

impl<T: AsyncRead + AsyncWrite + Unpin> Both for T {}

impl AsyncRead for ConsoleStream {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, to: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        ready!(self.get_mut().poll_ready(context))?.poll_read(context, to)
    }
}

impl AsyncWrite for ConsoleStream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.get_mut().poll_ready(context))?.poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.get_mut().poll_ready(context))?.poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.get_mut().poll_ready(context))?.poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreadable_or_foreign_key_is_refused_by_name() {
        let directory = tempfile::tempdir().expect("a directory");
        let (certificate, key) = (directory.path().join("c.pem"), directory.path().join("k.pem"));
        std::fs::write(&certificate, include_str!("../../tests/support/localhost.pem")).expect("written");
        let refused = |certificate: &Path, key: &Path| match Identity::read(certificate, key) {
            Ok(_) => panic!("it was read"),
            Err(error) => error.to_string(),
        };
        assert!(refused(&certificate, &key).contains("k.pem"), "a missing file");
        std::fs::write(&key, "no key").expect("written");
        assert!(refused(&certificate, &key).contains("k.pem"), "no key");
    }
}
