//! A package source for apt, a registry for npm and an index for pip, served on loopback.
//!
//! Never opens a connection. A test that publishes for a client runs this client, and so it needs the client. See `packages`.

use super::run;
use crate::support::jail_fixture;
use crate::support::needs::needs;
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
    /// Its name in the addresses that it gives out.
    host: &'static str,
    files: Files,
    connections: Arc<AtomicUsize>,
    is_closed: Arc<AtomicBool>,
    is_silent: Arc<AtomicBool>,
}

impl Registry {
    pub(crate) fn new() -> Self {
        Self::named("127.0.0.1")
    }

    /// Starts one that gives out addresses with this name of loopback.
    pub(crate) fn named(host: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let registry = Self {
            port,
            host,
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

    pub(crate) fn put(&self, path: &str, content: Vec<u8>) {
        self.files.lock().expect("not poisoned").insert(path.to_owned(), content);
    }

    /// Publishes archives for apt.
    pub(crate) fn offer(&self, archives: &[PathBuf]) {
        needs("apt-get");
        needs("dpkg-deb");
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
    pub(crate) fn publish_with(&self, name: &str, ran: &Path, programs: &Value, dependencies: &Value) {
        let script = "#!/usr/bin/env node\nconsole.log('hello')\n";
        self.publish_script(name, ran, programs, dependencies, script);
    }

    /// Publishes a package for npm whose `cli.js` is this script.
    pub(crate) fn publish_script(&self, name: &str, ran: &Path, programs: &Value, dependencies: &Value, cli: &str) {
        needs("npm");
        needs("tar");
        let directory = jail_fixture::directory();
        let package = directory.path().join("package");
        std::fs::create_dir(&package).expect("a directory");
        let script = format!("echo ran > ran; echo ran > {}", ran.display());
        let mut manifest = json!({
            "name": name, "version": "1.2.3", "bin": programs, "dependencies": dependencies,
            "scripts": { "preinstall": script, "install": script, "postinstall": script, "prepare": script },
        });
        std::fs::write(package.join("package.json"), manifest.to_string()).expect("written");
        std::fs::write(package.join("cli.js"), cli).expect("written");
        run(Command::new("tar")
            .args(["-C"])
            .arg(directory.path())
            .args(["-czf", "x.tgz", "package"])
            .current_dir(directory.path()));
        let content = std::fs::read(directory.path().join("x.tgz")).expect("an archive");
        manifest["dist"] = json!({
            "tarball": format!("http://{}:{}/npm/{name}.tgz", self.host, self.port),
            "integrity": format!("sha512-{}", STANDARD.encode(Sha512::digest(&content))),
        });
        // An older version, for ranges.
        let mut older = manifest.clone();
        older["version"] = json!("1.1.0");
        let versions = json!({ "1.1.0": older, "1.2.3": manifest });
        // Yarn takes no version that is younger than a day or has no time.
        let time = json!({ "1.1.0": "2024-01-01T00:00:00.000Z", "1.2.3": "2024-02-01T00:00:00.000Z" });
        let index = json!({ "name": name, "dist-tags": { "latest": "1.2.3" }, "versions": versions, "time": time });
        self.put(&format!("/npm/{name}"), index.to_string().into_bytes());
        self.put(&format!("/npm/{name}.tgz"), content);
    }
}

impl Registry {
    /// Publishes a wheel for pip: one module with this source, whose function `main` is the program of the name.
    pub(crate) fn publish_wheel(&self, name: &str, source: &str) {
        self.publish_wheel_with(name, source, "");
    }

    /// Publishes a wheel for pip with these further lines of metadata.
    pub(crate) fn publish_wheel_with(&self, name: &str, source: &str, more: &str) {
        self.publish_program(name, name, source, more);
    }

    /// Publishes a wheel for pip with a program of another name.
    pub(crate) fn publish_program(&self, name: &str, program: &str, source: &str, more: &str) {
        needs("pip3");
        needs("python3");
        let directory = jail_fixture::directory();
        let metadata = format!("{name}-1.2.3.dist-info");
        let files = [
            (format!("{name}.py"), source.to_owned()),
            (format!("{metadata}/METADATA"), format!("Metadata-Version: 2.1\nName: {name}\nVersion: 1.2.3\n{more}")),
            (
                format!("{metadata}/WHEEL"),
                "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n".to_owned(),
            ),
            (format!("{metadata}/entry_points.txt"), format!("[console_scripts]\n{program} = {name}:main\n")),
            (format!("{metadata}/RECORD"), String::new()),
        ];
        std::fs::create_dir(directory.path().join(&metadata)).expect("a directory");
        for (file, text) in &files {
            std::fs::write(directory.path().join(file), text).expect("written");
        }
        let wheel = format!("{name}-1.2.3-py3-none-any.whl");
        let names = [format!("{name}.py"), metadata];
        run(Command::new("python3").args(["-m", "zipfile", "-c", &wheel]).args(names).current_dir(directory.path()));
        self.put_file_of_pip(name, &wheel, std::fs::read(directory.path().join(&wheel)).expect("a wheel"));
    }

    /// Publishes a source package for pip, which only a build step could turn into a wheel.
    pub(crate) fn publish_source(&self, name: &str) {
        needs("pip3");
        self.put_file_of_pip(name, &format!("{name}-1.2.3.tar.gz"), source_archive(&format!("{name}-1.2.3")));
    }

    /// Publishes a wheel that requires a source archive by its address.
    pub(crate) fn publish_wheel_with_source(&self, name: &str) {
        self.put("/files/evil-1.tar.gz", source_archive("evil-1"));
        let more = format!("Requires-Dist: evil @ http://127.0.0.1:{}/files/evil-1.tar.gz\n", self.port);
        self.publish_wheel_with(name, "def main(): pass\n", &more);
    }

    fn put_file_of_pip(&self, name: &str, file: &str, content: Vec<u8>) {
        let digest: String = Sha256::digest(&content).iter().map(|byte| format!("{byte:02x}")).collect();
        let page =
            format!("<!DOCTYPE html><html><body><a href=\"/files/{file}#sha256={digest}\">{file}</a></body></html>");
        self.put(&format!("/simple/{}/", name.replace('_', "-")), page.into_bytes());
        self.put(&format!("/files/{file}"), content);
    }
}

/// Returns a source archive with this directory. Its build step needs nothing but python3.
fn source_archive(name: &str) -> Vec<u8> {
    needs("tar");
    let directory = jail_fixture::directory();
    let source = directory.path().join(name);
    std::fs::create_dir(&source).expect("a directory");
    let project = "[build-system]\nrequires = []\nbuild-backend = \"backend\"\nbackend-path = [\".\"]\n";
    for (file, text) in [("pyproject.toml", project), ("backend.py", "raise SystemExit('the build step ran')\n")] {
        std::fs::write(source.join(file), text).expect("written");
    }
    let archive = directory.path().join("archive.tar.gz");
    run(Command::new("tar").arg("-czf").arg(&archive).arg(name).current_dir(directory.path()));
    std::fs::read(&archive).expect("an archive")
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
        // pip takes a page of an index only with its type.
        let media_type = match path.as_str() {
            path if path.starts_with("/simple/") => "text/html",
            path if path.starts_with("/npm/") && !path.ends_with(".tgz") => "application/json",
            _ => "application/octet-stream",
        };
        let length = body.len();
        write!(stream, "HTTP/1.1 {status}\r\nContent-Type: {media_type}\r\nContent-Length: {length}\r\n\r\n").ok()?;
        stream.write_all(&body).ok()?;
    }
}
