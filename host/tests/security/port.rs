//! The loopback port: each request needs a bearer token, foreign host names and origins are refused, cookies do not count, and
//! other clients cannot block the port.
//!
//! The tests act as a browser, as another local user and as `ironctl`. See `operators`.

use crate::support::client::{Raw, exchange};
use crate::support::host_fixture::{Build, TestHost, WAIT_MAX};
use serde_json::Value;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

fn open() -> (TestHost, Raw) {
    let host = TestHost::own(Build::Plain).configured("[api]\nlisten = \"127.0.0.1:0\"\n").started();
    let raw = Raw::of(&host);
    (host, raw)
}

fn ask(port: &str, path: &str, headers: &[(&str, &str)]) -> (u16, String, Value) {
    let stream = TcpStream::connect(port).expect("the port is open");
    stream.set_read_timeout(Some(WAIT_MAX)).expect("set");
    exchange(stream, "GET", path, headers, "")
}

fn code(answer: &(u16, String, Value)) -> (u16, &str) {
    (answer.0, answer.2["error"]["code"].as_str().unwrap_or_default())
}

#[test]
fn port_opens_only_if_configured_and_only_on_loopback() {
    let host = TestHost::own(Build::Plain);
    for address in ["0.0.0.0:8787", "[::]:8787", "192.0.2.1:8787", "localhost:8787", "8787"] {
        host.configure(&format!("[api]\nlisten = \"{address}\"\n"));
        host.ctl(&["config", "check"]).refused("api.listen");
        let refused = host.ctl(&["up", "--detach"]);
        assert_eq!(refused.code, 1, "{address}: {}", refused.stderr);
    }
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address");
    host.configure(&format!("[api]\nlisten = \"{address}\"\n"));
    host.ctl(&["up", "--detach"]).refused(&format!("cannot listen on {address}"));
    host.configure("");
    host.up();
    let pid = host.pid().expect("it runs");
    assert_eq!(listening(pid), Vec::<SocketAddr>::new(), "the host listens on no port");
    host.restart_with("config.toml", "[api]\nlisten = \"127.0.0.1:0\"\n");
    let listens = listening(host.pid().expect("it runs"));
    let named: SocketAddr = Raw::of(&host).port().parse().expect("an address");
    assert_eq!(listens, [named]);
}

/// Returns the addresses on which a process listens for TCP, from `/proc`.
fn listening(pid: i32) -> Vec<SocketAddr> {
    let own: Vec<String> = std::fs::read_dir(format!("/proc/{pid}/fd"))
        .expect("the own host")
        .flatten()
        .filter_map(|fd| std::fs::read_link(fd.path()).ok())
        .filter_map(|link| Some(link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.to_owned()))
        .collect();
    let mut found = Vec::new();
    for table in ["tcp", "tcp6"] {
        let text = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")).unwrap_or_default();
        for line in text.lines().skip(1) {
            let fields: Vec<&str> = line.split_whitespace().collect();
            if fields[3] == "0A" && own.iter().any(|inode| inode == fields[9]) {
                let (address, port) = fields[1].split_once(':').expect("address:port");
                assert_eq!(address, "0100007F", "127.0.0.1");
                found.push(SocketAddr::from(([127, 0, 0, 1], u16::from_str_radix(port, 16).expect("hex"))));
            }
        }
    }
    found
}

#[test]
fn foreign_web_page_is_refused_even_with_dns_rebinding() {
    let (test_host, raw) = open();
    let port = raw.port();
    let number = port.rsplit(':').next().expect("a port");
    let bearer = format!("Bearer {}", raw.token);
    let with = |host: &str, more: &[(&str, &str)]| {
        let headers = [&[("host", host), ("authorization", bearer.as_str())], more].concat();
        ask(&port, "/v1/status", &headers)
    };
    for host in [port.clone(), format!("localhost:{number}"), format!("[::1]:{number}")] {
        assert_eq!(with(&host, &[]).0, 200, "{host}");
    }
    // The attacker's name resolves to 127.0.0.1 and the port is right. The browser takes the page for the same origin and sends no
    // Origin header.
    for host in [
        format!("rebind.example:{number}"),
        "127.0.0.1".to_owned(),
        "localhost".to_owned(),
        format!("127.0.0.1.evil.example:{number}"),
    ] {
        assert_eq!(code(&with(&host, &[])), (403, "host_foreign"), "{host}");
    }
    for origin in ["http://evil.example", "null", "https://localhost", "http://localhost:1"] {
        assert_eq!(code(&with(&port, &[("origin", origin)])), (403, "origin_foreign"), "{origin}");
    }
    assert_eq!(with(&port, &[("origin", &format!("http://{port}"))]).0, 200);
    // A preflight request for the authorization header is refused.
    let stream = TcpStream::connect(&port).expect("open");
    let headers = [
        ("host", port.as_str()),
        ("origin", "http://evil.example"),
        ("access-control-request-method", "GET"),
        ("access-control-request-headers", "authorization"),
    ];
    let preflight = exchange(stream, "OPTIONS", "/v1/status", &headers, "");
    assert_eq!(preflight.0, 403);
    for answer in [preflight, with(&port, &[]), with(&port, &[("origin", "http://evil.example")])] {
        assert!(!answer.1.contains("access-control") && !answer.1.contains("set-cookie"), "{}", answer.1);
    }
    let cookie = format!("token={}", raw.token);
    assert_eq!(code(&ask(&port, "/v1/status", &[("host", &port), ("cookie", &cookie)])), (401, "token_missing"));
    let query = format!("/v1/status?access_token={}", raw.token);
    assert_eq!(code(&ask(&port, &query, &[("host", &port)])), (401, "token_missing"));
    test_host.down();
    let noted = |what: &str| {
        test_host
            .entries("api.refused")
            .iter()
            .filter(|line| line["data"]["code"] == what)
            .all(|line| line["data"]["via"] == "loopback")
    };
    assert!(noted("host_foreign") && noted("origin_foreign"));
}

#[test]
fn repeated_failures_are_delayed_but_valid_tokens_are_not() {
    let (host, raw) = open();
    let port = raw.port();
    let made = |expires: &[&str]| {
        let arguments = [&["--json", "token", "add", "--person", "owner"], expires].concat();
        host.ctl(&arguments).ok().json()
    };
    let ended = made(&[]);
    host.ctl(&["token", "remove", ended["token"]["id"].as_str().expect("an id")]).ok();
    let ask_with =
        |token: &str| ask(&port, "/v1/agents", &[("host", &port), ("authorization", &format!("Bearer {token}"))]);
    let wrong = format!("ict_{}", "f".repeat(64));
    let mut codes = Vec::new();
    for _ in 0..200 {
        codes.push(ask_with(&wrong).0);
        assert_eq!(ask_with(&raw.token).0, 200, "the owner is never delayed");
    }
    assert_eq!(codes[0], 401);
    assert!(codes.contains(&429), "{codes:?}");
    let ended = ended["text"].as_str().expect("a token");
    assert_eq!(code(&ask_with(ended)), (401, "token_revoked"), "failures of other clients do not hide the reason");
}

#[test]
fn ironctl_uses_the_port_with_its_own_token() {
    let (host, raw) = open();
    host.agent("a");
    host.ctl(&["person", "add", "Bob"]).ok();
    let token = host.ctl(&["token", "add", "--person", "Bob"]).ok().stdout.trim().to_owned();
    let file = host.home.join("bob.token");
    std::fs::write(&file, &token).expect("written");
    let url = format!("http://{}", raw.port());
    let run = |more: &[&str], variable: Option<&str>| {
        let mut command = host.command("ironctl");
        // The home is empty, so the client has only the address and the token.
        command.args(["--home", "/nonexistent", "--api", &url]).args(more);
        if let Some(token) = variable {
            command.env("IRONCLAW_TOKEN", token);
        }
        let output = command.output().expect("ironctl runs");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    let (status, said) = run(&["chat", "a", "hello"], Some(&token));
    assert!(status == Some(0) && said.contains("Hello."), "{said}");
    let named = file.to_str().expect("UTF-8");
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o644)).expect("set");
    let (status, said) = run(&["--token-file", named, "agent", "list"], None);
    assert!(status == Some(1) && said.contains("others can read it"), "{said}");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).expect("set");
    assert_eq!(run(&["--token-file", named, "agent", "list"], None).0, Some(0));
    let (status, said) = run(&["--token-file", named, "person", "list"], None);
    assert!(status == Some(1) && said.contains("Bob is member and this needs owner"), "{said}");
    let mut command = host.command("ironctl");
    command.args(["--home", "/nonexistent", "--api", "http://192.0.2.1:80", "status"]).env("IRONCLAW_TOKEN", &token);
    assert_eq!(command.output().expect("ironctl runs").status.code(), Some(2));
}

#[test]
fn idle_connections_without_a_token_are_closed() {
    let (host, raw) = open();
    let port = raw.port();
    let mut held: Vec<TcpStream> = (0..100).map(|_| TcpStream::connect(&port).expect("open")).collect();
    // There are more connections than the port accepts. The request of the owner waits and is then served.
    let answer = ask(&port, "/v1/agents", &[("host", &port), ("authorization", &format!("Bearer {}", raw.token))]);
    assert_eq!(answer.0, 200);
    let first = &mut held[0];
    first.set_read_timeout(Some(WAIT_MAX)).expect("set");
    let mut rest = Vec::new();
    // The host closes the connection, with or without an answer.
    let _ = first.read_to_end(&mut rest);
    host.ctl(&["status"]).ok();
}

#[test]
fn client_that_never_reads_is_disconnected() {
    let (host, raw) = open();
    let port = raw.port();
    let mut stream = TcpStream::connect(&port).expect("open");
    // With a buffer below the size of a segment, the kernel of the client drops segments, takes no reset that follows them, and finds the
    // end of the connection at its next probe, after up to 108 s.
    stream.set_write_timeout(Some(WAIT_MAX)).expect("set");
    let requests = format!("GET /v1/agents HTTP/1.1\r\nhost: {port}\r\n\r\n").repeat(256);
    // The answers fill the buffers of the kernel, and then the host can neither write nor read.
    let error = loop {
        if let Err(error) = stream.write_all(requests.as_bytes()) {
            break error;
        }
    };
    assert!(matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe), "{error}");
    host.ctl(&["status"]).ok();
}

#[test]
fn connections_of_a_revoked_token_do_not_block_the_port() {
    let (host, raw) = open();
    let port = raw.port();
    host.ctl(&["person", "add", "Bob"]).ok();
    let made = host.ctl(&["--json", "token", "add", "--person", "Bob"]).ok().json();
    let bearer = format!("Bearer {}", made["text"].as_str().expect("a token"));
    // The port accepts exactly this number of connections. Each has one answered request.
    let held: Vec<TcpStream> = (0..64)
        .map(|_| {
            let mut stream = TcpStream::connect(&port).expect("open");
            stream.set_read_timeout(Some(WAIT_MAX)).expect("set");
            write!(stream, "GET /v1/agents HTTP/1.1\r\nhost: {port}\r\nauthorization: {bearer}\r\n\r\n").expect("sent");
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).expect("answered");
            assert_eq!(&answer, b"HTTP/1.1 200");
            stream
        })
        .collect();
    host.ctl(&["token", "remove", made["token"]["id"].as_str().expect("an id")]).ok();
    let owner = format!("Bearer {}", raw.token);
    assert_eq!(ask(&port, "/v1/agents", &[("host", &port), ("authorization", &owner)]).0, 200);
    for mut stream in held {
        // The host closes the connection, with or without an answer.
        let _ = stream.read_to_end(&mut Vec::new());
    }
    host.ctl(&["status"]).ok();
}
