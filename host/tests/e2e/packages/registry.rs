//! A package source for apt and a registry for npm, served on loopback.
//!
//! Never opens a connection. See `packages`.

use super::run;
use crate::support::jail_fixture;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sha2::{Digest, Sha256, Sha512};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

type Files = Arc<Mutex<HashMap<String, Vec<u8>>>>;

/// A file server on loopback that runs until the test process ends.
pub(crate) struct Registry {
    pub(crate) port: u16,
    files: Files,
    connections: Arc<AtomicUsize>,
    is_closed: Arc<AtomicBool>,
    is_silent: Arc<AtomicBool>,
}

impl Registry {
    pub(crate) fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let registry = Self {
            port,
            files: Files::default(),
            connections: Arc::default(),
            is_closed: Arc::default(),
            is_silent: Arc::default(),
        };
        let (files, connections) = (Arc::clone(&registry.files), Arc::clone(&registry.connections));
        let (is_closed, is_silent) = (Arc::clone(&registry.is_closed), Arc::clone(&registry.is_silent));
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for stream in listener.incoming().flatten() {
                connections.fetch_add(1, Ordering::SeqCst);
                if is_closed.load(Ordering::SeqCst) {
                    continue;
                }
                if is_silent.load(Ordering::SeqCst) {
                    held.push(stream);
                    continue;
                }
                let files = Arc::clone(&files);
                // Clients keep several connections open, so each connection has a thread. The result is the client's concern.
                std::thread::spawn(move || serve(stream, &files));
            }
        });
        registry
    }

    /// Returns the number of connections so far.
    pub(crate) fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }

    /// Closes every new connection, or serves connections again.
    pub(crate) fn set_closed(&self, is_closed: bool) {
        self.is_closed.store(is_closed, Ordering::SeqCst);
    }

    /// Accepts connections without an answer, or answers again.
    pub(crate) fn set_silent(&self, is_silent: bool) {
        self.is_silent.store(is_silent, Ordering::SeqCst);
    }

    fn put(&self, path: &str, content: Vec<u8>) {
        self.files.lock().expect("not poisoned").insert(path.to_owned(), content);
    }

    /// Publishes archives for apt.
    pub(crate) fn offer(&self, archives: &[PathBuf]) {
        let mut index = String::new();
        for archive in archives {
            let content = std::fs::read(archive).expect("an archive");
            let control = run(Command::new("dpkg-deb").arg("--field").arg(archive));
            let name = archive.file_name().and_then(|name| name.to_str()).expect("a name");
            let digest: String = Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
            index +=
                &format!("{}\nFilename: ./{name}\nSize: {}\nSHA256: {digest}\n\n", control.trim_end(), content.len());
            self.put(&format!("/apt/./{name}"), content);
        }
        self.put("/apt/./Packages", index.into_bytes());
    }

    /// Publishes a package for npm. If one of its scripts runs, the script leaves a file in its directory and at `ran`.
    pub(crate) fn publish(&self, name: &str, ran: &Path) {
        self.publish_with(name, ran, &json!({ name: "cli.js" }), &json!({}));
    }

    /// Publishes a package for npm with these programs and dependencies.
    pub(crate) fn publish_with(&self, name: &str, ran: &Path, programs: &Value, needs: &Value) {
        let directory = jail_fixture::directory();
        let package = directory.path().join("package");
        std::fs::create_dir(&package).expect("a directory");
        let script = format!("echo ran > ran; echo ran > {}", ran.display());
        let mut manifest = json!({
            "name": name, "version": "1.2.3", "bin": programs, "dependencies": needs,
            "scripts": { "preinstall": script, "install": script, "postinstall": script, "prepare": script },
        });
        std::fs::write(package.join("package.json"), manifest.to_string()).expect("written");
        std::fs::write(package.join("cli.js"), "#!/usr/bin/env node\nconsole.log('hello')\n").expect("written");
        run(Command::new("tar")
            .args(["-C"])
            .arg(directory.path())
            .args(["-czf", "x.tgz", "package"])
            .current_dir(directory.path()));
        let content = std::fs::read(directory.path().join("x.tgz")).expect("an archive");
        manifest["dist"] = json!({
            "tarball": format!("http://127.0.0.1:{}/npm/{name}.tgz", self.port),
            "integrity": format!("sha512-{}", STANDARD.encode(Sha512::digest(&content))),
        });
        let index = json!({ "name": name, "dist-tags": { "latest": "1.2.3" }, "versions": { "1.2.3": manifest } });
        self.put(&format!("/npm/{name}"), index.to_string().into_bytes());
        self.put(&format!("/npm/{name}.tgz"), content);
    }
}

fn serve(stream: TcpStream, files: &Files) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let mut request = String::new();
        let mut line = String::new();
        while reader.read_line(&mut line).ok()? > 0 && !line.trim().is_empty() {
            if request.is_empty() {
                request.clone_from(&line);
            }
            line.clear();
        }
        let path = request.split(' ').nth(1)?.to_owned();
        let found = files.lock().ok()?.get(&path).cloned();
        let (status, body) = found.map_or(("404 Not Found", Vec::new()), |body| ("200 OK", body));
        write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\n\r\n", body.len()).ok()?;
        stream.write_all(&body).ok()?;
    }
}
