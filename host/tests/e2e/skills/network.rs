//! A source on the network: a good one, and ones that redirect, answer without an end, or never.

use super::{SkillFixture, TEXT, WITH_COMMANDS};
use crate::support::host_fixture::{Build, wait_for};
use crate::support::site;
use ironclaw_contract::canonical::Digest;
use ironclaw_skill::author;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};

/// Starts a server on loopback. Below `/good/` it serves the files of a directory. Returns its port.
fn serve(directory: PathBuf) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming().flatten() {
            let mut line = String::new();
            let _ = BufReader::new(&stream).read_line(&mut line);
            let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
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
                // It never answers.
                _ => held.push(stream),
            }
        }
    });
    port
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

/// Writes the signed index of the source, with a revoked version.
fn index(fixture: &SkillFixture, serial: u64, revoked: &str) {
    let file = fixture.source().join("weather-1.0.0.skill");
    let bytes = std::fs::read(file).expect("read");
    let text = format!(
        "{{\"revoked\":{{\"keys\":[],\"skills\":[{revoked}]}},\"serial\":{serial},\"skills\":[{{\"bytes\":{},\"description\":\"x\",\
         \"digest\":\"{}\",\"file\":\"weather-1.0.0.skill\",\"name\":\"weather\",\"version\":\"1.0.0\"}}]}}\n",
        bytes.len(),
        Digest::of(&bytes)
    );
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
    let port = serve(fixture.source());
    for (name, code) in
        [("moved", "skill_source_failed"), ("huge", "skill_too_large"), ("never", "skill_source_failed")]
    {
        host.ctl(&["skill", "source", "add", name, &format!("http://127.0.0.1:{port}/{name}/")]).ok();
        fixture.add("weather").refused(code);
        host.ctl(&["skill", "source", "remove", name]).ok();
    }
    fixture.publish("weather", "1.0.0", WITH_COMMANDS, TEXT);
    index(&fixture, 1, "");
    host.ctl(&["skill", "source", "add", "good", &format!("http://127.0.0.1:{port}/good")]).ok();
    fixture.add("weather").ok();
    assert!(host.say("a", "run cat /skills/weather/SKILL.md").contains("heron"));
    // The signed index revokes the version: running sessions lose it.
    index(&fixture, 2, "{\"name\":\"weather\",\"version\":\"1.0.0\"}");
    host.ctl(&["skill", "list", "--agent", "a", "--outdated"]).ok();
    assert_eq!(fixture.skills()[0]["state"], "revoked");
    wait_for("a session without it", || !host.say("a", "run cat /skills/weather/SKILL.md").contains("heron"));
    assert_eq!(host.entries("skill.revoked").len(), 1);
}
