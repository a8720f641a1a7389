//! A server of git repositories on loopback: `git http-backend` behind a small HTTP server, and the repositories for it.
//!
//! For tests of commands that reach the network. They need git.

use super::needs::needs;
use super::tls_site::server_config;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use tempfile::TempDir;

/// The first byte of a TLS connection.
const TLS_HANDSHAKE: u8 = 22;

/// A server of the bare repositories below a directory, over http and https on one port. It takes pushes too.
pub(crate) struct GitSite {
    pub(crate) port: u16,
    /// Its certificate for `localhost`, which is its own authority, as PEM.
    pub(crate) certificate: String,
    root: TempDir,
    seen: Arc<Mutex<Vec<String>>>,
}

impl GitSite {
    pub(crate) fn start() -> Self {
        Self::start_at("127.0.0.1:0")
    }

    pub(crate) fn start_at(address: &str) -> Self {
        needs("git");
        let root = tempfile::tempdir().expect("a directory");
        let listener = TcpListener::bind(address).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let seen = Arc::<Mutex<Vec<String>>>::default();
        let (place, kept) = (root.path().to_owned(), Arc::clone(&seen));
        let (config, certificate) = server_config();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                serve_either(&config, stream, &place, &kept);
            }
        });
        Self { port, certificate, root, seen }
    }

    /// Makes a repository with one commit of this file.
    pub(crate) fn repository(&self, name: &str, file: &str, text: &str) -> PathBuf {
        let (bare, work) = (self.root.path().join(name), self.root.path().join(format!("{name}.work")));
        std::fs::create_dir_all(bare.parent().expect("a parent")).expect("made");
        git(self.root.path(), &["init", "--quiet", "--bare", bare.to_str().expect("text")]);
        git(&bare, &["config", "http.receivepack", "true"]);
        git(self.root.path(), &["init", "--quiet", work.to_str().expect("text")]);
        std::fs::write(work.join(file), text).expect("written");
        git(&work, &["add", file]);
        git(&work, &["commit", "--quiet", "--message", "first"]);
        git(&work, &["push", "--quiet", bare.to_str().expect("text"), "HEAD:refs/heads/main"]);
        git(&bare, &["symbolic-ref", "HEAD", "refs/heads/main"]);
        bare
    }

    /// Returns the first lines of the requests so far, each with its authorization.
    pub(crate) fn seen(&self) -> Vec<String> {
        self.seen.lock().expect("a list").clone()
    }
}

/// Runs git with an author and without settings of this machine.
pub(crate) fn git(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .current_dir(directory)
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-c", "safe.directory=*"])
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .expect("git runs");
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Answers one request, over TLS if the client begins so.
fn serve_either(config: &Arc<ServerConfig>, stream: TcpStream, root: &Path, seen: &Mutex<Vec<String>>) {
    let mut first = [0];
    if !stream.peek(&mut first).is_ok_and(|read| read == 1) {
        return;
    }
    if first[0] != TLS_HANDSHAKE {
        return serve(stream, root, seen);
    }
    let server = ServerConnection::new(Arc::clone(config)).expect("a server");
    let mut stream = StreamOwned::new(server, stream);
    serve(&mut stream, root, seen);
    stream.conn.send_close_notify();
    // The client may have gone.
    let _ = stream.flush();
}

/// Answers one request by `git http-backend`, as a program of CGI (RFC 3875).
fn serve(stream: impl Read + Write, root: &Path, seen: &Mutex<Vec<String>>) {
    let mut reader = BufReader::new(stream);
    let mut headers: Vec<(String, String)> = Vec::new();
    let mut first = String::new();
    if reader.read_line(&mut first).unwrap_or(0) == 0 {
        return;
    }
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a header");
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let header = |wanted: &str| headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str());
    let length: usize = header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body).expect("the body");
    let mut words = first.split_whitespace();
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let authorization = header("authorization").unwrap_or("no authorization");
    seen.lock().expect("a list").push(format!("{method} {target} {authorization}"));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut child = Command::new("git")
        .args(["-c", "safe.directory=*", "http-backend"])
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", header("content-type").unwrap_or_default())
        .env("CONTENT_LENGTH", length.to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding").unwrap_or_default())
        .env("GIT_PROTOCOL", header("git-protocol").unwrap_or_default())
        .env("REMOTE_USER", "ada")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("git runs");
    child.stdin.take().expect("its input").write_all(&body).expect("passed");
    let answer = child.wait_with_output().expect("an answer").stdout;
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").expect("headers") + 4;
    let head = String::from_utf8_lossy(&answer[..end]);
    let status = head.lines().find_map(|line| line.strip_prefix("Status: ")).unwrap_or("200 OK");
    let kept: String = head
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("Status:"))
        .map(|line| format!("{line}\r\n"))
        .collect();
    let head =
        format!("HTTP/1.1 {status}\r\n{kept}content-length: {}\r\nconnection: close\r\n\r\n", answer.len() - end);
    // The client may have gone.
    let stream = reader.get_mut();
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&answer[end..]));
}
