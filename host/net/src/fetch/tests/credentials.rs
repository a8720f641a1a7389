//! The credential of a request: its one host, and its echo.

use super::*;

const SECRET: &str = "ghp_1234/5678+abcd";

fn with<'a>(secret: &'a SecretText, host: &'a str, port: u16, form: Form<'a>, url: &'a str) -> Request<'a> {
    Request { credential: Some(Credential { host, port, form, secret }), ..get(url) }
}

fn secret() -> SecretText {
    SecretText::new(SECRET.to_owned())
}

/// Returns the answer of a server whose answer has the secret.
async fn echoed(answer: String, body_bytes_max: usize) -> Fetched {
    let server = Server::answering(answer).await;
    let (secret, url) = (secret(), server.url("127.0.0.1", "/"));
    let request = with(&secret, "127.0.0.1", server.port, Form::Bearer, &url);
    let limits = Limits { body_bytes_max, ..Limits::default() };
    near(&Names::default()).fetch(request, limits).await.expect("an answer")
}

#[tokio::test]
async fn credential_reaches_the_granted_host_in_its_form() {
    let server = Server::answering(page("ok")).await;
    let (secret, url) = (secret(), server.url("127.0.0.1", "/"));
    for form in [Form::Bearer, Form::Basic { user: "me" }, Form::Header("Private-Token")] {
        fetched(&near(&Names::default()), with(&secret, "127.0.0.1", server.port, form, &url)).await;
    }
    let requests = server.requests();
    assert!(requests[0].contains("\r\nauthorization: Bearer ghp_1234/5678+abcd\r\n"), "{}", requests[0]);
    assert!(requests[1].contains("\r\nauthorization: Basic bWU6Z2hwXzEyMzQvNTY3OCthYmNk\r\n"), "{}", requests[1]);
    assert!(requests[2].contains("\r\nprivate-token: ghp_1234/5678+abcd\r\n"), "{}", requests[2]);
}

#[tokio::test]
async fn credential_is_not_sent_to_another_host_or_port() {
    let server = Server::answering(page("ok")).await;
    let secret = secret();
    let names = Names::of(&[&["127.0.0.1"]]);
    for (host, port) in [
        ("api.example", server.port),
        ("127.0.0.1", server.port + 1),
        ("127.0.0.2", server.port),
        ("127.0.0.1.", server.port),
        ("", server.port),
    ] {
        let url = server.url("127.0.0.1", "/");
        let found = refused(&near(&names), with(&secret, host, port, Form::Bearer, &url)).await;
        assert_eq!(found, Refused::CredentialElsewhere { granted: host.to_owned() });
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn credential_is_not_sent_after_a_redirect() {
    let target = Server::answering(page("other")).await;
    let server = Server::answering(redirect(&target.url("127.0.0.1", "/x"))).await;
    let (secret, url) = (secret(), server.url("127.0.0.1", "/"));
    let fetcher = near(&Names::default());
    let answer = fetched(&fetcher, with(&secret, "127.0.0.1", server.port, Form::Bearer, &url)).await;
    let next = answer.redirect.expect("a target");
    let found = refused(&fetcher, with(&secret, "127.0.0.1", server.port, Form::Bearer, &next)).await;
    assert_eq!(found, Refused::CredentialElsewhere { granted: "127.0.0.1".to_owned() });
    assert!(target.requests().is_empty());
    fetched(&fetcher, get(&next)).await;
    assert!(!target.requests()[0].contains("authorization"));
}

#[tokio::test]
async fn credential_in_a_header_of_the_request_is_refused() {
    let secret = secret();
    let url = "https://127.0.0.1/";
    for name in
        ["Host", "Content-Length", "Transfer-Encoding", "TE", "Connection", "Proxy-Authorization", "Accept", "a b", ""]
    {
        let form = Form::Header(name);
        let found = refused(&near(&Names::default()), with(&secret, "127.0.0.1", 443, form, url)).await;
        assert_eq!(found, Refused::Header(name.to_owned()));
    }
    let broken = SecretText::new("ghp_1234\r\nx: y".to_owned());
    let found = refused(&near(&Names::default()), with(&broken, "127.0.0.1", 443, Form::Bearer, url)).await;
    assert_eq!(found, Refused::Header("authorization".to_owned()));
    let short = SecretText::new("1234567".to_owned());
    let found = refused(&near(&Names::default()), with(&short, "127.0.0.1", 443, Form::Bearer, url)).await;
    assert_eq!(found, Refused::SecretTooShort);
}

#[tokio::test]
async fn part_of_an_answer_is_never_asked_with_a_credential() {
    let server = Server::answering(page("ok")).await;
    let (secret, url) = (secret(), server.url("127.0.0.1", "/"));
    for name in ["range", "Range"] {
        let mut request = with(&secret, "127.0.0.1", server.port, Form::Bearer, &url);
        request.headers.push((name, "bytes=0-18"));
        assert_eq!(refused(&near(&Names::default()), request).await, Refused::Range, "{name}");
    }
    assert!(server.requests().is_empty());
    let mut request = get(&url);
    request.headers.push(("range", "bytes=0-18"));
    fetched(&near(&Names::default()), request).await;
    assert!(server.requests()[0].contains("\r\nrange: bytes=0-18\r\n"));
}

#[tokio::test]
async fn credential_echoed_in_the_body_is_removed() {
    for form in [
        SECRET,
        "Z2hwXzEyMzQvNTY3OCthYmNk",
        "bWU6Z2hwXzEyMzQvNTY3OCthYmNk",
        "ghp_1234%2F5678%2Babcd",
        "ghp_1234%2f5678+abcd",
        "ghp_1234\\/5678\\u002babcd",
        "6768705f313233342f353637382b61626364",
    ] {
        let answer = echoed(page(&format!("you sent {form}, thanks")), 1000).await;
        let body = String::from_utf8(answer.body).expect("text");
        assert!(
            body.starts_with("you sent ") && body.ends_with(", thanks") && body.contains(REMOVED),
            "{form}: {body}"
        );
        assert!(!body.contains(&form[8..]) && answer.removed == 1, "{form}: {body}");
    }
}

#[tokio::test]
async fn credential_echoed_at_the_limit_is_removed() {
    for keep in 6..5 + SECRET.len() {
        let answer = echoed(page(&format!("sent {SECRET} and more")), keep).await;
        let expected = format!("sent {REMOVED}");
        assert_eq!(String::from_utf8_lossy(&answer.body), expected[..expected.len().min(keep)], "{keep}");
        assert_eq!(answer.end, End::Limit);
    }
    // A body that only its marks make too long is cut as well.
    let body = "ab3defgh".repeat(10);
    let server = Server::answering(page(&body)).await;
    let (secret, url) = (SecretText::new("ab3defgh".to_owned()), server.url("127.0.0.1", "/"));
    let request = with(&secret, "127.0.0.1", server.port, Form::Bearer, &url);
    let limits = Limits { body_bytes_max: 80, ..Limits::default() };
    let answer = near(&Names::default()).fetch(request, limits).await.expect("an answer");
    assert!(answer.body.len() <= 80 && !answer.body.windows(8).any(|part| part == b"ab3defgh"));
}

#[tokio::test]
async fn credential_in_two_pieces_at_the_limit_is_removed() {
    let (first, second) = SECRET.split_at(4);
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n".to_owned();
    let pieces = [format!("{head}sent {first}"), format!("{second}{}", "x".repeat(482 - second.len() + 9))];
    let server = Server::start(pieces.map(String::into_bytes).to_vec(), Duration::from_millis(50)).await;
    let (secret, url) = (secret(), server.url("127.0.0.1", "/"));
    let request = with(&secret, "127.0.0.1", server.port, Form::Bearer, &url);
    let limits = Limits { body_bytes_max: 8, ..Limits::default() };
    let answer = near(&Names::default()).fetch(request, limits).await.expect("an answer");
    assert_eq!((String::from_utf8_lossy(&answer.body).as_ref(), answer.end), ("sent [se", End::Limit));
}

#[tokio::test]
async fn credential_echoed_in_a_broken_body_is_removed() {
    for part in 1..SECRET.len() {
        let body = format!("{}{}", "x".repeat(400), &SECRET[..part]);
        let answer = echoed(format!("HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{body}"), 1000).await;
        assert_eq!(answer.end, End::Broken);
        assert!(answer.body.iter().all(|byte| *byte == b'x') && answer.body.len() > 50, "{part}");
    }
}

#[tokio::test]
async fn credential_echoed_in_headers_is_removed() {
    let head = "HTTP/1.1 302 Found\r\ncontent-length: 0\r\n";
    let location = "location: http://127.0.0.1/?t=ghp_1234%2F5678%2Babcd\r\n";
    let answer = echoed(format!("{head}{location}etag: \"{SECRET}\"\r\nlink: <{SECRET}>\r\n\r\n"), 1000).await;
    let all = format!("{answer:?}");
    assert!(!all.contains("5678") && all.matches("removed").count() >= 4, "{all}");
}

#[test]
fn secret_is_in_no_debug_text() {
    let (secret, url) = (secret(), "https://127.0.0.1/");
    let request = with(&secret, "127.0.0.1", 443, Form::Bearer, url);
    assert!(!format!("{request:?}").contains("ghp"));
    let (_, headers) = check::check(&request, Reach::DangerousLoopback).expect("a request");
    assert!(!format!("{headers:?}").contains("ghp"));
}
