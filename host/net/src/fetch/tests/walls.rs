//! The addresses that no request for an agent reaches, by the way that leads there.

use super::*;
use crate::reach::Special;

/// Expects that a name with this address, and the address in a URL, is refused.
async fn is_refused(kind: Special, address: &'static str) {
    let names = Names::of(&[&[address]]);
    let by_name = refused(&public(&names), get("https://page.example/")).await;
    assert_eq!(by_name, Refused::Address(AddressRefused::Special(kind)), "{address}");
    assert_eq!(names.asked(), ["page.example"]);

    let host = if address.contains(':') { format!("[{address}]") } else { address.to_owned() };
    let url = Url::parse(&format!("https://{host}/")).expect("a URL");
    let in_url = refused(&public(&names), get(url.as_str())).await;
    assert_eq!(in_url, Refused::Address(AddressRefused::Special(kind)), "{address}");
    assert_eq!(names.asked().len(), 1);

    let names = Names::of(&[&[address]]);
    let in_tunnel = public(&names).connect("page.example", 443, CONNECT_TIME_MAX).await;
    let expected = NotFetched::Refused(Refused::Address(AddressRefused::Special(kind)));
    assert_eq!(in_tunnel.err(), Some(expected), "{address}");
    assert_eq!(names.asked(), ["page.example"]);
}

#[tokio::test]
async fn name_that_resolves_to_a_special_address_is_refused() {
    for (kind, addresses) in [
        (Special::Loopback, &["127.0.0.1", "127.8.8.8", "::1"][..]),
        (Special::Private, &["10.0.0.1", "172.16.0.1", "192.168.1.1", "fd00::1"]),
        (Special::LinkLocal, &["169.254.169.254", "169.254.0.1", "fe80::1"]),
        (Special::Metadata, &["168.63.129.16", "100.100.100.200", "fd00:ec2::254"]),
        (Special::Shared, &["100.64.0.1", "100.127.255.254"]),
        (Special::Multicast, &["224.0.0.1", "239.1.2.3", "ff02::1"]),
        (Special::Benchmark, &["198.18.0.1", "2001:2::1"]),
        (Special::Documentation, &["192.0.2.1", "203.0.113.9", "2001:db8::1", "3fff::1"]),
        (Special::Nat64, &["64:ff9b::7f00:1", "64:ff9b::808:808", "64:ff9b:1::a00:1"]),
        (Special::SixToFour, &["2002:7f00:1::", "2002:808:808::1", "192.88.99.1"]),
        (Special::Teredo, &["2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2"]),
        (Special::Mapped, &["::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:8.8.8.8"]),
        (Special::Compatible, &["::127.0.0.1", "::8.8.8.8"]),
        (Special::Unspecified, &["0.0.0.0", "0.0.0.1", "::"]),
        (Special::Broadcast, &["255.255.255.255"]),
        (Special::SiteLocal, &["fec0::1"]),
        (Special::Reserved, &["240.0.0.1", "100::1"]),
    ] {
        for address in addresses {
            is_refused(kind, address).await;
        }
    }
}

#[tokio::test]
async fn localhost_is_refused_without_asking_dns() {
    for host in ["localhost", "x.localhost", "localhost."] {
        let names = Names::of(&[&["8.8.8.8"]]);
        let found = refused(&public(&names), get(&format!("https://{host}/"))).await;
        assert_eq!(found, Refused::Address(AddressRefused::Special(Special::Loopback)), "{host}");
        assert!(names.asked().is_empty());
    }
}

#[tokio::test]
async fn address_in_another_spelling_is_not_sent() {
    let names = Names::default();
    for host in ["2130706433", "0177.0.0.1", "0x7f000001", "127.1", "[::FFFF:127.0.0.1]", "１２７.0.0.1", "LOCALHOST"]
    {
        let url = format!("https://{host}/");
        assert_eq!(refused(&public(&names), get(&url)).await, Refused::NotCanonical, "{host}");
    }
    assert!(names.asked().is_empty());
}

#[tokio::test]
async fn url_with_tricks_is_not_sent() {
    let names = Names::default();
    for url in [
        "https://page.example@127.0.0.1/",
        "https://user:pass@page.example/",
        r"https://page.example\@127.0.0.1/",
        "https://page.example/a/../b",
        "https://page.example/#a",
        "https://page.example:443/",
        "https://page.\texample/",
        "https://PAGE.example/",
        "https:page.example",
        "ftp://page.example/",
        "file:///etc/passwd",
        "http://page.example/",
        "",
    ] {
        let found = refused(&public(&names), get(url)).await;
        assert!(matches!(found, Refused::NotCanonical | Refused::User | Refused::PlainHttp), "{url}: {found:?}");
    }
    assert!(names.asked().is_empty());
}

#[tokio::test]
async fn redirect_to_loopback_is_not_followed() {
    let target = Server::answering(page("inside")).await;
    for location in
        [target.url("127.0.0.1", "/x"), target.url("localhost", "/x"), format!("//127.0.0.1:{}/x", target.port)]
    {
        let server = Server::answering(redirect(&location)).await;
        let names = Names::of(&[&["127.0.0.1"]]);
        let answer = fetched(&near(&names), get(&server.url("page.example", "/"))).await;
        assert_eq!((answer.status, answer.end), (302, End::Whole));
        let next = answer.redirect.expect("a target");
        assert!(next.ends_with("/x"), "{next}");
        // The judgement of the next request is that of any request.
        let judged = refused(&public(&names), get(&next.replace("http:", "https:"))).await;
        assert_eq!(judged, Refused::Address(AddressRefused::Special(Special::Loopback)));
        assert_eq!(refused(&public(&names), get(&next)).await, Refused::PlainHttp);
    }
    assert!(target.requests().is_empty());
}

#[tokio::test]
async fn redirect_to_a_special_address_is_not_followed() {
    for host in
        ["10.0.0.1", "169.254.169.254", "100.64.0.1", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "[::ffff:127.0.0.1]"]
    {
        let location = Url::parse(&format!("https://{host}/latest")).expect("a URL");
        let server = Server::answering(redirect(location.as_str())).await;
        let answer = fetched(&near(&Names::default()), get(&server.url("127.0.0.1", "/"))).await;
        assert_eq!(answer.redirect.as_deref(), Some(location.as_str()));
        let judged = refused(&near(&Names::default()), get(location.as_str())).await;
        assert!(matches!(judged, Refused::Address(AddressRefused::Special(_))), "{host}: {judged:?}");
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn redirect_in_another_spelling_is_shown_as_the_address() {
    for (spelled, read) in [
        ("http://2130706433/", "http://127.0.0.1/"),
        ("http://0177.0.0.1/", "http://127.0.0.1/"),
        ("http://0x7f.1/", "http://127.0.0.1/"),
        (r"\\127.0.0.1\x", "http://127.0.0.1/x"),
        ("http://page.example@127.0.0.1/", "http://page.example@127.0.0.1/"),
    ] {
        let server = Server::answering(redirect(spelled)).await;
        let answer = fetched(&near(&Names::default()), get(&server.url("127.0.0.1", "/"))).await;
        assert_eq!(answer.redirect.as_deref(), Some(read), "{spelled}");
    }
}

#[tokio::test]
async fn second_dns_answer_is_not_used() {
    let server = Server::answering(page("first")).await;
    let names = Names::of(&[&["127.0.0.1"], &["10.0.0.1"]]);
    let fetcher = near(&names);
    assert_eq!(fetched(&fetcher, get(&server.url("page.example", "/"))).await.body, b"first");
    assert_eq!(names.asked(), ["page.example"]);
    // The next request asks again, and is refused by the answer that it gets.
    let next = refused(&fetcher, get(&server.url("page.example", "/"))).await;
    assert_eq!(next, Refused::Address(AddressRefused::Special(Special::Private)));
    assert_eq!((names.asked().len(), server.requests().len()), (2, 1));
}

#[tokio::test]
async fn kept_connection_is_not_used_by_the_next_request() {
    let server = Server::start(vec![page("first").into_bytes()], Duration::from_secs(5)).await;
    let names = Names::of(&[&["127.0.0.1"], &["192.168.0.1"]]);
    let fetcher = near(&names);
    assert_eq!(fetched(&fetcher, get(&server.url("page.example", "/"))).await.body, b"first");
    refused(&fetcher, get(&server.url("page.example", "/"))).await;
}

#[tokio::test]
async fn mixed_answer_of_dns_reaches_admitted_addresses_only() {
    let server = Server::answering(page("admitted")).await;
    let names = Names::of(&[&["10.0.0.1", "169.254.169.254", "127.0.0.1", "::ffff:127.0.0.1"]]);
    let answer = fetched(&near(&names), get(&server.url("page.example", "/"))).await;
    assert_eq!((answer.body, names.asked().len()), (b"admitted".to_vec(), 1));
    let names = Names::of(&[&["10.0.0.1", "127.0.0.1", "fe80::1"]]);
    assert!(matches!(refused(&public(&names), get("https://page.example/")).await, Refused::Address(_)));
}

#[tokio::test]
async fn plain_http_reaches_loopback_alone_even_in_tests() {
    let names = Names::of(&[&["8.8.8.8"]]);
    let found = refused(&near(&names), get("http://page.example/")).await;
    assert_eq!(found, Refused::Address(AddressRefused::Public));
    assert_eq!(refused(&near(&names), get("http://8.8.8.8/")).await, Refused::Address(AddressRefused::Public));
    assert_eq!(refused(&public(&names), get("http://127.0.0.1/")).await, Refused::PlainHttp);
}

#[tokio::test]
async fn unknown_name_is_a_failure_that_sent_nothing() {
    let failed = public(&Names::default()).fetch(get("https://page.example/"), Limits::default()).await;
    let Err(NotFetched::Failed(failed)) = failed else { panic!("{failed:?}") };
    assert_eq!((failed.failure, failed.may_have_arrived), (Failure::Unreachable, false));
}
