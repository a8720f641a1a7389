//! A service on another port of loopback: its pages, and the requests that it got.
//!
//! Has no part in the console. See `foreign`.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

type Pages = Arc<Mutex<Vec<(String, String)>>>;

/// A running service. Any path without a page gets an empty one.
pub(super) struct PageServer {
    pub(super) port: u16,
    pages: Pages,
    seen: Arc<Mutex<Vec<String>>>,
}

impl PageServer {
    pub(super) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let (pages, seen) = (Pages::default(), Arc::<Mutex<Vec<String>>>::default());
        let (served, kept) = (Arc::clone(&pages), Arc::clone(&seen));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (served, kept) = (Arc::clone(&served), Arc::clone(&kept));
                // A browser opens connections ahead, and uses them later.
                std::thread::spawn(move || serve(stream, &served, &kept));
            }
        });
        Self { port, pages, seen }
    }

    /// Sets the page at a path.
    pub(super) fn put(&self, path: &str, html: &str) {
        self.pages.lock().expect("a list").push((path.to_owned(), html.to_owned()));
    }

    /// Returns the heads of the requests so far.
    pub(super) fn seen(&self) -> Vec<String> {
        self.seen.lock().expect("a list").clone()
    }
}

fn serve(mut stream: TcpStream, pages: &Pages, seen: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut head, mut length) = (String::new(), 0);
    while !head.ends_with("\r\n\r\n") {
        let from = head.len();
        if reader.read_line(&mut head).ok()? == 0 {
            return None;
        }
        if let Some(bytes) = head[from..].to_lowercase().strip_prefix("content-length:") {
            length = bytes.trim().parse().ok()?;
        }
    }
    reader.read_exact(&mut vec![0; length]).ok()?;
    let path = head.split(' ').nth(1)?.to_owned();
    let pages = pages.lock().expect("a list").clone();
    let page = pages.into_iter().find(|(of, _)| *of == path).map(|(_, page)| page).unwrap_or_default();
    seen.lock().expect("a list").push(head);
    let head = format!("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: {}\r\n", page.len());
    stream.write_all(format!("{head}connection: close\r\n\r\n{page}").as_bytes()).ok()
}
