//! A loopback port: the API for programs that cannot reach the unix socket, and another for webhooks.
//!
//! Closed unless the settings open it, and never on an address that another machine can reach. Whoever shows no valid token is cut
//! off after a moment, and at once when its place is needed: strangers cannot hold it shut. Next: `api::auth`.

use crate::registry::TokenId;
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, watch};
use tokio::time::timeout;

/// Connections at once. The next takes the place of the oldest that is not admitted; where all are, it waits.
const CONNECTIONS_MAX: usize = 64;

/// A connection on which no valid token came within this is cut off.
const ADMITTED_WITHIN: Duration = Duration::from_secs(10);

/// So long the answer to a signed request may take.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// Reads the setting of this name: empty for no port, else a loopback address with a port.
///
/// # Errors
/// A sentence that says what is wrong with it.
pub fn parse(name: &str, setting: &str) -> Result<Option<SocketAddr>, String> {
    if setting.is_empty() {
        return Ok(None);
    }
    let address: SocketAddr = setting
        .parse()
        .map_err(|_| format!("{name} is {setting:?}: expected an address such as 127.0.0.1:8787 or [::1]:8787"))?;
    if !address.ip().is_loopback() {
        return Err(format!(
            "{name} is {setting:?}: only a loopback address is opened, such as 127.0.0.1:8787; from another machine use ssh -L, or a proxy with TLS"
        ));
    }
    Ok(Some(address))
}

/// The open port.
pub struct Port {
    listener: TcpListener,
    address: SocketAddr,
    places: Places,
}

impl Port {
    /// Opens it.
    ///
    /// # Errors
    /// When the system does not give the address.
    pub async fn open(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address, places: Places::default() })
    }

    /// Everybody who is connected.
    pub fn places(&self) -> Places {
        self.places.clone()
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Listener for Port {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        // Axum's own way with errors of one connection, and with having no descriptors left.
        let (stream, from) = Listener::accept(&mut self.listener).await;
        let standing = self.places.take().await;
        let end = Box::pin(end(standing.subscribe()));
        let admission = Admission { port: self.address.port(), standing };
        (Connection { stream, admission, end, over: false, places: self.places.clone() }, from)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

/// Where a connection stands.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Standing {
    /// It has shown no valid token yet, or one that has ended.
    Stranger,
    /// Its last request carried this valid token.
    Admitted(TokenId),
    /// A signed request of its is being answered.
    Answered,
    /// Its place was needed.
    CutOff,
}

impl Standing {
    /// From here to there, unless it stands elsewhere; whether it did.
    fn change(held: &watch::Sender<Self>, from: impl FnOnce(&Self) -> bool, to: Self) -> bool {
        held.send_if_modified(|standing| {
            let changes = from(standing);
            if changes {
                *standing = to;
            }
            changes
        })
    }
}

/// Ends when the connection has to.
async fn end(mut standing: watch::Receiver<Standing>) {
    loop {
        let stands = standing.borrow_and_update().clone();
        let changed = standing.changed();
        let goes_on = match stands {
            Standing::Stranger => matches!(timeout(ADMITTED_WITHIN, changed).await, Ok(Ok(()))),
            Standing::Answered => matches!(timeout(ANSWERED_WITHIN, changed).await, Ok(Ok(()))),
            Standing::Admitted(_) => changed.await.is_ok(),
            Standing::CutOff => false,
        };
        if !goes_on {
            return;
        }
    }
}

type Held = Arc<watch::Sender<Standing>>;

/// Everybody who is connected, oldest first.
#[derive(Clone, Default)]
pub struct Places(Arc<(Mutex<Vec<Held>>, Notify)>);

impl Places {
    /// A place for a new connection, once there is one.
    async fn take(&self) -> Held {
        loop {
            if let Some(held) = self.try_take() {
                return held;
            }
            self.0.1.notified().await;
        }
    }

    /// A free place, or that of the oldest who is not admitted.
    fn try_take(&self) -> Option<Held> {
        let mut places = self.held();
        if places.len() >= CONNECTIONS_MAX {
            let is_stranger = |standing: &Standing| *standing == Standing::Stranger;
            let oldest = places.iter().position(|held| Standing::change(held, is_stranger, Standing::CutOff))?;
            places.remove(oldest);
        }
        let held = Arc::new(watch::Sender::new(Standing::Stranger));
        places.push(Arc::clone(&held));
        Some(held)
    }

    /// Takes its admission from each connection whose token is none of these.
    pub fn withdraw_unless(&self, stands: impl Fn(&TokenId) -> bool) {
        let ended = |standing: &Standing| matches!(standing, Standing::Admitted(token) if !stands(token));
        for held in self.held().iter() {
            Standing::change(held, ended, Standing::Stranger);
        }
        self.0.1.notify_one();
    }

    fn leave(&self, leaving: &Held) {
        self.held().retain(|held| !Arc::ptr_eq(held, leaving));
        self.0.1.notify_one();
    }

    fn held(&self) -> MutexGuard<'_, Vec<Held>> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whether a connection has shown a valid token.
#[derive(Debug, Clone)]
pub struct Admission {
    port: u16,
    standing: Held,
}

impl Admission {
    /// The port that it came to.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// It has, this one.
    pub fn admit(&self, token: &TokenId) {
        let other = |standing: &Standing| match standing {
            Standing::Stranger => true,
            Standing::Admitted(admitted) => admitted != token,
            Standing::Answered | Standing::CutOff => false,
        };
        Standing::change(&self.standing, other, Standing::Admitted(token.clone()));
    }

    /// Its request is signed, and is answered before its place is anybody's; the answer is the last on this connection. False when its
    /// place was needed already.
    pub fn answer(&self) -> bool {
        Standing::change(&self.standing, |standing| *standing == Standing::Stranger, Standing::Answered)
    }

    /// Its last request had none.
    pub fn withdraw(&self) {
        let admitted = |standing: &Standing| matches!(standing, Standing::Admitted(_));
        Standing::change(&self.standing, admitted, Standing::Stranger);
    }
}

impl Connected<IncomingStream<'_, Port>> for Admission {
    fn connect_info(stream: IncomingStream<'_, Port>) -> Self {
        stream.io().admission()
    }
}

/// One connection to the port.
pub struct Connection {
    stream: TcpStream,
    admission: Admission,
    end: Pin<Box<dyn Future<Output = ()> + Send>>,
    over: bool,
    places: Places,
}

impl Connection {
    /// What notes that it has shown a valid token.
    pub fn admission(&self) -> Admission {
        self.admission.clone()
    }

    /// The stream while the connection lasts. Asked for at every step: whoever only sends, and never reads what is answered,
    /// would otherwise be waited for without an end.
    fn while_it_lasts(&mut self, context: &mut Context<'_>) -> io::Result<Pin<&mut TcpStream>> {
        self.over = self.over || self.end.as_mut().poll(context).is_ready();
        if self.over { Err(io::ErrorKind::TimedOut.into()) } else { Ok(Pin::new(&mut self.stream)) }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.places.leave(&self.admission.standing);
    }
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.get_mut().while_it_lasts(context)?.poll_read(context, into)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.get_mut().while_it_lasts(context)?.poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().while_it_lasts(context)?.poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().while_it_lasts(context)?.poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_comes_takes_the_place_of_the_oldest_stranger_and_of_nobody_who_is_admitted() {
        let (places, token) = (Places::default(), "tok_0123456789abcdef".parse::<TokenId>().expect("an id"));
        let admission = |held: &Held| Admission { port: 0, standing: Arc::clone(held) };
        let held: Vec<Held> = (0..CONNECTIONS_MAX).map(|_| places.try_take().expect("free")).collect();
        admission(&held[0]).admit(&token);
        let newest = places.try_take().expect("the second makes room");
        let stands = |held: &Held| held.borrow().clone();
        assert_eq!(stands(&held[0]), Standing::Admitted(token.clone()));
        assert_eq!(stands(&held[1]), Standing::CutOff);
        assert!(held[2..].iter().chain([&newest]).all(|held| stands(held) == Standing::Stranger));
        admission(&held[1]).admit(&token);
        assert_eq!(stands(&held[1]), Standing::CutOff, "it is too late for that");
        held[2..].iter().chain([&newest]).for_each(|held| admission(held).admit(&token));
        assert!(places.try_take().is_none(), "nobody who is admitted makes room");
        places.leave(&held[5]);
        let last = places.try_take().expect("one has left");
        admission(&last).admit(&token);
        places.withdraw_unless(|_| false);
        places.try_take().expect("those whose token ended make room");
        assert_eq!(stands(&held[0]), Standing::CutOff);
    }

    #[test]
    fn whoever_is_being_answered_makes_room_for_nobody() {
        let places = Places::default();
        let held: Vec<Held> = (0..CONNECTIONS_MAX).map(|_| places.try_take().expect("free")).collect();
        let admission = |held: &Held| Admission { port: 0, standing: Arc::clone(held) };
        assert!(admission(&held[0]).answer());
        places.try_take().expect("the second makes room");
        assert_eq!((*held[0].borrow() == Standing::Answered, *held[1].borrow() == Standing::CutOff), (true, true));
        assert!(!admission(&held[1]).answer(), "it is too late for that");
    }

    #[test]
    fn only_a_loopback_address_with_a_port_is_taken() {
        let parse = |setting| parse("api.listen", setting);
        assert_eq!(parse(""), Ok(None));
        assert!(parse("127.0.0.1:8787").expect("loopback").is_some() && parse("[::1]:0").expect("loopback").is_some());
        for other in [
            "0.0.0.0:8787",
            "[::]:8787",
            "192.168.1.2:80",
            "[::ffff:127.0.0.1]:80",
            "localhost:8787",
            "8787",
            "127.0.0.1",
        ] {
            assert!(parse(other).is_err(), "{other}");
        }
    }
}
