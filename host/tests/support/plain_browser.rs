//! A browser without scripts: it follows the forms of the console's pages, and keeps the cookie.
//!
//! Reads pages by the ids and the names that the templates have. See `console::plain`.

use super::host_fixture::{TestHost, WAIT_MAX};
use super::tls_site;
use rustls::{ClientConnection, StreamOwned};
use serde_json::Value;
use std::io::{self, Read, Write};
use std::net::TcpStream;

/// A page as the browser got it.
#[derive(Debug)]
pub(crate) struct Page {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Page {
    /// Returns the value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let line = self.head.lines().find(|line| line.to_ascii_lowercase().starts_with(&format!("{name}:")))?;
        Some(line.split_once(':').expect("a header").1.trim())
    }

    /// Returns the code of the refusal on the page.
    pub(crate) fn code(&self) -> Option<&str> {
        between(&self.body, "data-code=\"", "\"").filter(|code| !code.is_empty())
    }

    /// Returns the value of the hidden field of this name in the first form whose action ends so.
    pub(crate) fn field(&self, form: &str, name: &str) -> Option<String> {
        let form = &self.body[self.body.find(form)?..];
        let form = &form[..form.find("</form>")?];
        between(form, &format!("name=\"{name}\" value=\""), "\"").map(str::to_owned)
    }

    /// Returns the token of the forms.
    pub(crate) fn token(&self) -> String {
        between(&self.body, "data-csrf=\"", "\"").unwrap_or_default().to_owned()
    }
}

/// Returns the text between two marks.
pub(crate) fn between<'a>(text: &'a str, begin: &str, end: &str) -> Option<&'a str> {
    let rest = &text[text.find(begin)? + begin.len()..];
    Some(&rest[..rest.find(end)?])
}

/// A browser at the console of one host.
#[derive(Debug, Clone)]
pub(crate) struct PlainBrowser {
    /// `http://LABEL.localhost:PORT`
    pub(crate) origin: String,
    pub(crate) cookie: String,
}

/// Returns a new code of the owner: `url`, `code` and `expires_at`.
pub(crate) fn new_code(host: &TestHost) -> Value {
    host.ctl(&["--json", "console", "--print"]).ok().json()
}

impl PlainBrowser {
    /// Returns a browser at the address of a code, without a session.
    pub(crate) fn at(code: &Value) -> Self {
        let url = code["url"].as_str().expect("a url");
        Self { origin: url.trim_end_matches('/').to_owned(), cookie: String::new() }
    }

    /// Signs the owner in.
    pub(crate) fn sign_in(host: &TestHost) -> Self {
        Self::sign_in_with(&new_code(host))
    }

    /// Signs in with a code.
    pub(crate) fn sign_in_with(code: &Value) -> Self {
        Self::try_sign_in(code).expect("an answer")
    }

    /// Signs in with a code at a host that may die.
    pub(crate) fn try_sign_in(code: &Value) -> io::Result<Self> {
        let mut browser = Self::at(code);
        let body = format!("code={}", code["code"].as_str().expect("a code"));
        let headers = [("origin", browser.origin.as_str()), ("content-type", "application/x-www-form-urlencoded")];
        let page = browser.try_ask("POST", "/sign-in", &headers, body.as_bytes())?;
        assert_eq!((page.status, page.header("location")), (303, Some("/inbox")), "{page:?}");
        browser.keep_cookie(&page);
        Ok(browser)
    }

    /// Keeps the cookie that a page sets.
    pub(crate) fn keep_cookie(&mut self, page: &Page) {
        let set = page.header("set-cookie").expect("a cookie");
        assert!(set.contains("; HttpOnly") && set.contains("; SameSite=Strict") && !set.contains("Domain"), "{set}");
        self.cookie = set.split(';').next().expect("split gives one").to_owned();
    }

    pub(crate) fn get(&self, path: &str) -> Page {
        self.ask("GET", path, &[], b"")
    }

    /// Posts a form without a token.
    pub(crate) fn post(&self, path: &str, fields: &[(&str, &str)]) -> Page {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let headers = [("origin", self.origin.as_str()), ("content-type", "application/x-www-form-urlencoded")];
        self.ask("POST", path, &headers, body.as_bytes())
    }

    /// Posts a form with the token of the session, as a page does.
    pub(crate) fn submit(&self, path: &str, fields: &[(&str, &str)]) -> Page {
        let token = self.get("/why").token();
        self.post(path, &[&[("csrf", token.as_str())], fields].concat())
    }

    /// Posts a form with files, as the page of a conversation does.
    pub(crate) fn submit_parts(&self, path: &str, fields: &[(&str, &str)], files: &[(&str, &[u8])]) -> Page {
        let (token, boundary) = (self.get("/why").token(), "----------------boundary");
        let mut body = Vec::new();
        for (name, value) in [&[("csrf", token.as_str())], fields].concat() {
            write!(body, "--{boundary}\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
                .expect("memory");
        }
        for (name, bytes) in files {
            write!(
                body,
                "--{boundary}\r\nContent-Disposition: form-data; name=\"files\"; filename=\"{name}\"\r\n\
                 Content-Type: application/octet-stream\r\n\r\n"
            )
            .expect("memory");
            body.extend_from_slice(bytes);
            body.extend_from_slice(b"\r\n");
        }
        write!(body, "--{boundary}--\r\n").expect("memory");
        let kind = format!("multipart/form-data; boundary={boundary}");
        self.ask("POST", path, &[("origin", self.origin.as_str()), ("content-type", &kind)], &body)
    }

    /// Sends a request with these headers besides `Host` and the cookie. A header of the list replaces one of these.
    pub(crate) fn ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Page {
        self.try_ask(method, path, headers, body).expect("an answer")
    }

    /// Sends a request to a host that may die. Fails without a whole answer.
    pub(crate) fn try_ask(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> io::Result<Page> {
        let mut stream = self.try_begin(method, path, headers, body)?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let (head, body) = answer.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
        let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
        let status = status.ok_or(io::ErrorKind::InvalidData)?;
        Ok(Page { status, head: head.to_owned(), body: body.to_owned() })
    }

    /// Posts a form with the token of the session to a host that may die. Fails without a whole answer.
    pub(crate) fn try_submit(&self, path: &str, fields: &[(&str, &str)]) -> io::Result<Page> {
        let token = self.try_ask("GET", "/why", &[], b"")?.token();
        let fields = [&[("csrf", token.as_str())], fields].concat();
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let headers = [("origin", self.origin.as_str()), ("content-type", "application/x-www-form-urlencoded")];
        self.try_ask("POST", path, &headers, body.as_bytes())
    }

    /// Sends a request with TLS to this port, and returns the answer. Trusts only the certificate of `tls_site`.
    pub(crate) fn ask_encrypted(&self, port: u16, request: &str) -> String {
        let name = "localhost".try_into().expect("a name");
        let client = ClientConnection::new(tls_site::client_config(), name).expect("a client");
        let tcp = TcpStream::connect(("127.0.0.1", port)).expect("the console answers");
        let mut stream = StreamOwned::new(client, tcp);
        stream.write_all(request.as_bytes()).expect("sent");
        let mut answer = Vec::new();
        // The server may close without the last alert.
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// Sends a request, and returns the connection.
    pub(crate) fn begin(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
        self.try_begin(method, path, headers, body).expect("the console answers")
    }

    fn try_begin(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> io::Result<TcpStream> {
        let host = self.origin.split_once("://").expect("an origin").1;
        let port = host.rsplit(':').next().expect("a port");
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}"))?;
        stream.set_read_timeout(Some(WAIT_MAX))?;
        let mut head = format!("{method} {path} HTTP/1.1\r\nconnection: close\r\ncontent-length: {}\r\n", body.len());
        let own = [("host", host), ("cookie", self.cookie.as_str())];
        let is_given = |name: &str| headers.iter().any(|header| header.0 == name);
        for (name, value) in own.into_iter().filter(|header| !is_given(header.0) && !header.1.is_empty()) {
            head += &format!("{name}: {value}\r\n");
        }
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{head}\r\n").as_bytes())?;
        stream.write_all(body)?;
        Ok(stream)
    }
}
