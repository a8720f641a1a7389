//! A source on the network: a good one, and ones that redirect, answer without an end, or never.

use super::{SkillFixture, TEXT, WITH_COMMANDS};
use crate::support::host_fixture::{Build, wait_for};
use crate::support::site;
use ironclaw_contract::canonical::Digest;
use ironclaw_skill::author;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Starts a server on loopback. Below `/good/` it serves the files of a directory. Returns its port and the number of times that the index
/// was asked for.
fn serve(directory: PathBuf) -> (u16, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming().flatten() {
            let mut line = String::new();
            let _ = BufReader::new(&stream).read_line(&mut line);
            let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
            if path.ends_with("/index.json") {
                count.fetch_add(1, Ordering::SeqCst);
            }
            match path.split('/').nth(1) {
                Some("good") => answer(stream, &directory.join(path.trim_start_matches("/good/"))),
                Some("moved") => drop((&stream).write_all(
                    b"HTTP/1.1 302 Found\r\nlocation: http://10.0.0.1/index.json\r\ncontent-length: 0\r\n\r\n",
                )),
                Some("huge") => drop(std::thread::spawn(move || {
                    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", 10_u64 << 30);
                    let _ = (&stream).write_all(head.as_bytes());
                    while (&stream).write_all(&[b' '; 65_536]).is_ok() {}
                })),
                Some("slow") => drop(std::thread::spawn(move || {
                    let _ = (&stream).write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n");
                    while (&stream).write_all(b" ").is_ok() {
                        std::thread::sleep(Duration::from_millis(100));
                    }
                })),
                // It never answers.
                _ => held.push(stream),
            }
        }
    });
    (port, asked)
}

fn answer(mut stream: TcpStream, file: &Path) {
    let answer = match std::fs::read(file) {
        Ok(bytes) => {
            [format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", bytes.len()).into_bytes(), bytes].concat()
        }
        Err(_) => b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec(),
    };
    let _ = stream.write_all(&answer);
}

/// Writes the signed index of the source with version 1.0.0 of these skills, and with a revoked version.
fn index(fixture: &SkillFixture, serial: u64, names: &[&str], revoked: &str) {
    index_with(fixture, serial, names, revoked, |text| text);
}

/// Writes an index as [`index`] does, with another text.
fn index_with(fixture: &SkillFixture, serial: u64, names: &[&str], revoked: &str, change: impl Fn(String) -> String) {
    let entry = |name: &&str| {
        let bytes = std::fs::read(fixture.source().join(format!("{name}-1.0.0.skill"))).expect("read");
        let (digest, length) = (Digest::of(&bytes), bytes.len());
        format!(
            "{{\"bytes\":{length},\"description\":\"x\",\"digest\":\"{digest}\",\"file\":\"{name}-1.0.0.skill\",\"name\":\"{name}\",\
             \"version\":\"1.0.0\"}}"
        )
    };
    let skills = names.iter().map(entry).collect::<Vec<_>>().join(",");
    let text =
        format!("{{\"revoked\":{{\"keys\":[],\"skills\":[{revoked}]}},\"serial\":{serial},\"skills\":[{skills}]}}\n");
    let text = change(text);
    let signature =
        author::sign(text.as_bytes(), &fixture.key, &format!("skill index {serial}"), false).expect("signed");
    std::fs::write(fixture.source().join("index.json"), text).expect("written");
    std::fs::write(fixture.source().join("index.json.minisig"), signature).expect("written");
}

#[test]
fn source_on_the_network_is_bounded_and_followed_nowhere() {
    let fixture = SkillFixture::new(Build::Plain);
    let host = &fixture.host;
    std::fs::write(host.home.join("config.toml"), site::LOOPBACK).expect("written");
    host.ctl(&["config", "reload"]).ok();
    host.ctl(&["skill", "source", "remove", "own"]).ok();
    let (port, asked) = serve(fixture.source());
    let source = |name: &str| format!("http://127.0.0.1:{port}/{name}/");
    for (name, code) in [("moved", "skill_source_failed"), ("huge", "skill_too_large")] {
        host.ctl(&["skill", "source", "add", name, &source(name)]).ok();
        fixture.add("weather").refused(code);
        host.ctl(&["skill", "source", "remove", name]).ok();
    }
    // Each of these two is given up after the same time, so the host waits for both at once.
    std::thread::scope(|scope| {
        for name in ["never", "slow"] {
            host.ctl(&["skill", "source", "add", name, &source(name)]).ok();
            let before = asked.load(Ordering::SeqCst);
            scope.spawn(|| fixture.add("weather").refused("skill_source_failed"));
            wait_for("the request for the index", || asked.load(Ordering::SeqCst) > before);
            host.ctl(&["skill", "source", "remove", name]).ok();
        }
    });
    fixture.publish("weather", "1.0.0", WITH_COMMANDS, TEXT);
    index(&fixture, 1, &["weather"], "");
    host.ctl(&["skill", "source", "add", "good", &format!("http://127.0.0.1:{port}/good")]).ok();
    fixture.add("weather").ok();
    assert!(host.say("a", "run cat /skills/weather/SKILL.md").contains("heron"));
    fixture.publish("heron", "1.0.0", "", TEXT);
    index(&fixture, 2, &["weather", "heron"], "");
    fixture.add("heron").ok();
    for command in [&["skill", "list", "--agent", "a", "--outdated"][..], &["skill", "show", "weather"]] {
        asked.store(0, Ordering::SeqCst);
        host.ctl(command).ok();
        assert_eq!(asked.load(Ordering::SeqCst), 1, "{command:?} reads the index once");
    }
    // Another index with a serial that was seen, and an index that describes another package.
    index(&fixture, 2, &["weather"], "");
    fixture.add("weather").refused("skill_index");
    fixture.publish("tulip", "1.0.0", "", TEXT);
    for (serial, field, wrong) in [(3, "\"bytes\":", "5"), (4, "\"digest\":", "\"sha256:WRONG\"")] {
        index_with(&fixture, serial, &["weather", "heron", "tulip"], "", |text| {
            let (before, rest) = text.rsplit_once(field).expect("the field of the last entry");
            let (_, after) = rest.split_once(',').expect("another field");
            format!("{before}{field}{},{after}", wrong.replace("sha256:WRONG", &Digest::of(b"other").to_string()))
        });
        fixture.add("tulip").refused("skill_index");
    }
    index(&fixture, 5, &["weather", "heron", "tulip"], "");
    fixture.add("tulip").ok();
    // The signed index revokes the version: running sessions lose it.
    index(&fixture, 6, &["weather"], "{\"name\":\"weather\",\"version\":\"1.0.0\"}");
    host.ctl(&["skill", "list", "--agent", "a", "--outdated"]).ok();
    let states: Vec<_> = fixture.skills().iter().map(|skill| skill["state"].clone()).collect();
    assert_eq!(states, ["trusted", "trusted", "revoked"], "heron, tulip and weather");
    wait_for("a session without it", || !host.say("a", "run cat /skills/weather/SKILL.md").contains("heron"));
    assert_eq!(host.entries("skill.revoked").len(), 1);
}
