//! Answers: their bounds, and the parts that are kept.

use super::*;

async fn answer(text: impl Into<Vec<u8>>, limits: Limits) -> Result<Fetched, NotFetched> {
    let server = Server::answering(text).await;
    near(&Names::default()).fetch(get(&server.url("127.0.0.1", "/a?b=c")), limits).await
}

fn short() -> Limits {
    Limits { begin: Duration::from_millis(300), whole: Duration::from_millis(600), body_bytes_max: 100 }
}

#[tokio::test]
async fn answer_has_a_closed_list_of_headers() {
    let head = "HTTP/1.1 404 Nope\r\nSet-Cookie: a=b\r\nETag: \"1\"\r\nX-Evil: y\r\nRetry-After: 7\r\nContent-Type: TEXT/html;x=y\r\n";
    let found = answer(format!("{head}content-length: 2\r\n\r\nhi"), Limits::default()).await.expect("an answer");
    assert_eq!((found.status, &*found.body, found.end), (404, &b"hi"[..], End::Whole));
    assert_eq!(found.media_type.as_deref(), Some("text/html"));
    let names: Vec<_> = found.headers.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["content-type", "etag", "retry-after"]);
    assert!(found.final_url.ends_with("/a?b=c") && found.redirect.is_none() && !found.is_truncated());
}

#[tokio::test]
async fn host_header_is_that_of_the_url() {
    let server = Server::answering(page("ok")).await;
    let names = Names::of(&[&["127.0.0.1"]]);
    fetched(&near(&names), get(&server.url("page.example", "/a?b=c"))).await;
    let request = server.requests().remove(0);
    assert!(request.starts_with("GET /a?b=c HTTP/1.1\r\n"), "{request}");
    let lower = request.to_ascii_lowercase();
    assert_eq!(lower.matches("\r\nhost:").count(), 1);
    assert!(lower.contains(&format!("\r\nhost: page.example:{}\r\n", server.port)), "{request}");
    assert!(lower.contains("\r\naccept-encoding: identity\r\n") && !lower.contains("referer"), "{request}");
}

#[tokio::test]
async fn differing_host_header_is_refused() {
    for (name, value) in [
        ("host", "evil.example"),
        ("Host", "127.0.0.1"),
        ("authorization", "Bearer x"),
        ("cookie", "a=b"),
        ("content-length", "0"),
        ("x-forwarded-host", "evil.example"),
        ("accept", "a\r\nhost: evil.example"),
    ] {
        let request = Request { headers: vec![(name, value)], ..get("https://page.example/") };
        assert_eq!(refused(&public(&Names::default()), request).await, Refused::Header(name.to_owned()));
    }
    let twice = Request { headers: vec![("accept", "a/b"), ("Accept", "a/b")], ..get("https://page.example/") };
    assert_eq!(refused(&public(&Names::default()), twice).await, Refused::Header("Accept".to_owned()));
}

#[tokio::test]
async fn other_methods_are_refused() {
    for method in [Method::CONNECT, Method::TRACE, Method::OPTIONS] {
        let request = Request { method, ..get("https://page.example/") };
        assert_eq!(refused(&public(&Names::default()), request).await, Refused::Method);
    }
}

#[tokio::test]
async fn body_is_sent_once_and_whole() {
    let server = Server::answering(page("ok")).await;
    let url = server.url("127.0.0.1", "/");
    let headers = vec![("Content-Type", "text/plain")];
    let request = Request { method: Method::POST, headers, body: Some(b"hello".to_vec()), ..get(&url) };
    fetched(&near(&Names::default()), request).await;
    let requests = server.requests();
    assert!(
        requests.len() == 1 && requests[0].contains("content-length: 5\r\n") && requests[0].ends_with("\r\n\r\nhello")
    );
}

#[tokio::test]
async fn body_over_the_limit_is_cut() {
    for (bytes, end) in [(99, End::Whole), (100, End::Whole), (101, End::Limit), (500_000, End::Limit)] {
        let found = answer(page(&"x".repeat(bytes)), short()).await.expect("an answer");
        assert_eq!((found.body.len(), found.end), (bytes.min(100), end), "{bytes}");
    }
    let endless = format!("HTTP/1.1 200 OK\r\n\r\n{}", "x".repeat(5_000_000));
    assert_eq!(answer(endless, short()).await.expect("an answer").body.len(), 100);
}

#[tokio::test]
async fn compressed_body_is_left_out() {
    let head = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: 4\r\n\r\nabcd";
    let found = answer(head, Limits::default()).await.expect("an answer");
    assert_eq!((found.body.len(), found.end), (0, End::Encoded));
    let plain = head.replace("gzip", "identity");
    assert_eq!(answer(plain, Limits::default()).await.expect("an answer").body, b"abcd");
}

#[tokio::test]
async fn silent_server_is_left_in_time() {
    let server = Server::start(vec![Vec::new()], Duration::from_secs(60)).await;
    let begun = Instant::now();
    let found = near(&Names::default()).fetch(get(&server.url("127.0.0.1", "/")), short()).await;
    let Err(NotFetched::Failed(failed)) = found else { panic!("{found:?}") };
    assert_eq!((failed.failure, failed.may_have_arrived), (Failure::Late, true));
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn slow_body_is_left_in_time() {
    let part = b"HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\npart".to_vec();
    let server = Server::start(vec![part], Duration::from_secs(60)).await;
    let found = near(&Names::default()).fetch(get(&server.url("127.0.0.1", "/")), short()).await.expect("an answer");
    assert_eq!((&*found.body, found.end, found.status), (&b"part"[..], End::Time, 200));
}

#[tokio::test]
async fn server_that_closes_early_may_have_the_request() {
    for text in ["", "not http\r\n\r\n"] {
        let found = answer(text, Limits::default()).await;
        let Err(NotFetched::Failed(failed)) = found else { panic!("{found:?}") };
        assert_eq!((failed.failure, failed.may_have_arrived), (Failure::Broken, true), "{text}");
    }
}

#[tokio::test]
async fn server_without_a_certificate_gets_no_request() {
    let server = Server::answering(page("ok")).await;
    let (secret, url) = (SecretText::new("12345678".to_owned()), format!("https://127.0.0.1:{}/", server.port));
    let credential = Some(Credential { host: "127.0.0.1", port: server.port, form: Form::Bearer, secret: &secret });
    let found = near(&Names::default()).fetch(Request { credential, ..get(&url) }, Limits::default()).await;
    let Err(NotFetched::Failed(failed)) = found else { panic!("{found:?}") };
    assert!(!failed.may_have_arrived, "{failed:?}");
    assert!(server.requests().iter().all(|request| !request.contains("12345678")));
}

#[tokio::test]
async fn long_or_odd_header_is_left_out() {
    let long = "y".repeat(5000);
    let head =
        format!("HTTP/1.1 301 Moved\r\netag: {long}\r\nlink: a\tb\r\ncontent-type: nonsense\r\nlocation: {long}\r\n");
    let found = answer(format!("{head}content-length: 0\r\n\r\n"), Limits::default()).await.expect("an answer");
    assert_eq!((found.redirect, found.media_type), (None, None));
    assert_eq!(found.headers, [("content-type", "nonsense".to_owned())]);
}
