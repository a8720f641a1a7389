//! Each spelling by which a URL leads to another host than its text shows.

use super::{none, url};
use crate::egress::{CanonicalUrl, HostError, HostName, Loopback, Missing, UrlError, judge};
use std::net::IpAddr;

fn refused(text: &str) -> UrlError {
    CanonicalUrl::parse(text, Loopback::Refused).expect_err(text)
}

#[test]
fn address_is_refused_in_every_spelling() {
    for (spelling, text, expected) in [
        ("decimal", "https://2130706433/", "127.0.0.1"),
        ("decimal", "https://2852039166/latest/meta-data", "169.254.169.254"),
        ("decimal", "https://134744072/", "8.8.8.8"),
        ("octal", "https://0177.0.0.1/", "127.0.0.1"),
        ("octal", "https://017700000001/", "127.0.0.1"),
        ("octal", "https://0251.0376.0251.0376/", "169.254.169.254"),
        ("hexadecimal", "https://0x7f000001/", "127.0.0.1"),
        ("hexadecimal", "https://0x7f.0x0.0x0.0x1/", "127.0.0.1"),
        ("hexadecimal", "https://0XA9.0376.43518/", "169.254.169.254"),
        ("short", "https://127.1/", "127.0.0.1"),
        ("short", "https://0/", "0.0.0.0"),
        ("short", "https://10.1/", "10.0.0.1"),
        ("mapped", "https://[::ffff:127.0.0.1]/", "::ffff:127.0.0.1"),
        ("mapped", "https://[::ffff:a9fe:a9fe]/", "::ffff:169.254.169.254"),
        ("mapped", "https://[::ffff:8.8.8.8]/", "::ffff:8.8.8.8"),
        ("mapped", "https://[64:ff9b::7f00:1]/", "64:ff9b::7f00:1"),
        ("public", "https://8.8.8.8/", "8.8.8.8"),
        ("public", "https://[2606:4700::1111]:8443/", "2606:4700::1111"),
        ("wide digits", "https://１２７.０.０.１/", "127.0.0.1"),
        ("wide dots", "https://127。0。0。1/", "127.0.0.1"),
        ("digits in circles", "https://①②⑦.0.0.1/", "127.0.0.1"),
    ] {
        let expected: IpAddr = expected.parse().expect(expected);
        match refused(text) {
            UrlError::Host(HostError::Address { address, .. }) => assert_eq!(address, expected, "{spelling}: {text}"),
            other => panic!("{spelling}: {text}: {other:?}"),
        }
    }
}

#[test]
fn localhost_is_refused_in_every_spelling() {
    for host in ["localhost", "LOCALHOST", "LocalHost:8443", "x.localhost", "ｌocalhost", "loc\u{ad}alhost"] {
        let error = refused(&format!("https://{host}/"));
        assert!(matches!(error, UrlError::Host(HostError::Localhost(_))), "{host}: {error:?}");
    }
    for host in ["localhost.", "127.0.0.1.", "x.localhost.:443"] {
        let error = refused(&format!("https://{host}/"));
        let is_named = matches!(error, UrlError::Host(HostError::LastDot(_) | HostError::Address { .. }));
        assert!(is_named, "{host}: {error:?}");
    }
}

#[test]
fn dot_behind_a_host_is_refused() {
    assert_eq!(refused("https://example.com./"), UrlError::Host(HostError::LastDot("example.com".to_owned())));
    for host in ["example.com..", "example..com", ".example.com", "."] {
        refused(&format!("https://{host}/"));
    }
}

#[test]
fn user_before_a_host_is_refused() {
    for text in [
        "https://user@example.com/",
        "https://user:pass@example.com/",
        "https://@example.com/",
        "https://:@example.com/",
        "https://example.com@127.0.0.1/",
        "https://example.com:443@evil.example/",
        "https://a@b@example.com/",
    ] {
        assert_eq!(refused(text), UrlError::Host(HostError::User), "{text}");
    }
    // An at sign behind the host is no user.
    assert_eq!(url("https://example.com/@me?q=a@b").host().as_str(), "example.com");
    assert_eq!(url("https://example.com?@127.0.0.1/").host().as_str(), "example.com");
    assert_eq!(url("https://example.com#@127.0.0.1/").host().as_str(), "example.com");
}

#[test]
fn backslash_is_refused() {
    for text in [
        r"https:\\example.com\",
        r"https://example.com\@127.0.0.1/",
        r"https://example.com/a\..\b",
        r"https://example.com\.evil.example/",
    ] {
        assert_eq!(refused(text), UrlError::Character('\\'), "{text}");
    }
}

#[test]
fn tab_newline_and_space_are_refused() {
    for (text, bad) in [
        ("https://exam\tple.com/", '\t'),
        ("ht\ntps://example.com/", '\n'),
        ("https://example.com/\r\nHost: evil.example", '\r'),
        (" https://example.com/", ' '),
        ("https://example.com/ ", ' '),
        ("https://example.com/\u{0}", '\u{0}'),
        ("https://example.com/\u{a0}", '\u{a0}'),
        ("https://example.com/\u{2028}", '\u{2028}'),
    ] {
        assert_eq!(refused(text), UrlError::Character(bad), "{text:?}");
    }
}

#[test]
fn encoded_host_is_refused() {
    for text in ["https://ex%61mple.com/", "https://%31%32%37.0.0.1/", "https://example.com%2f@evil.example/"] {
        assert!(matches!(refused(text), UrlError::Host(_)), "{text}");
    }
}

#[test]
fn mixed_case_is_one_host() {
    assert_eq!(url("HTTPS://API.Example.COM:443/A").as_str(), "https://api.example.com/A");
}

#[test]
fn look_alike_is_another_host() {
    let grants = [super::grant("apple.com", &[], &["/x"])];
    for (text, host) in
        [("https://\u{430}pple.com/x", "xn--pple-43d.com"), ("https://XN--pple-43d.com/x", "xn--pple-43d.com")]
    {
        assert_eq!(url(text).host().as_str(), host);
        let missing: Missing = judge(&grants, &super::get(text), &none).expect_err(text);
        assert_eq!(missing.categories(), [crate::egress::Category::NewHost]);
        assert!(missing.sentence().contains(host), "{missing:?}");
    }
    // A wide letter is the plain letter, and the text shows the plain one.
    assert_eq!(url("https://ａpple.com/x").as_str(), "https://apple.com/x");
}

#[test]
fn other_schemes_and_parts_of_a_url_are_refused() {
    for text in ["ftp://example.com/", "file:///etc/passwd", "gopher://example.com/", "data://x", "javascript://x"] {
        assert_eq!(refused(text), UrlError::Scheme, "{text}");
    }
    for text in ["https:example.com", "https:/example.com", "//example.com/", "/path", "example.com", ""] {
        assert_eq!(refused(text), UrlError::Relative, "{text}");
    }
    for text in ["https://", "https:///example.com", "https://?a", "https://#"] {
        assert_eq!(refused(text), UrlError::NoHost, "{text}");
    }
    assert_eq!(refused("http://example.com/"), UrlError::PlainHttp);
}

#[test]
fn loopback_is_allowed_by_its_setting_only() {
    let allowed = |text: &str| CanonicalUrl::parse(text, Loopback::DangerousAllowed);
    for (text, host) in [
        ("http://127.0.0.1:8080/a", "127.0.0.1"),
        ("http://2130706433:8080/a", "127.0.0.1"),
        ("http://[::1]:8080/a", "[::1]"),
        ("https://localhost:8080/a", "localhost"),
    ] {
        assert_eq!(allowed(text).expect(text).host().as_str(), host);
        refused(text);
    }
    for text in ["https://10.0.0.1/", "https://[::ffff:127.0.0.1]/", "https://169.254.169.254/", "https://0.0.0.0/"] {
        assert!(matches!(allowed(text), Err(UrlError::Host(HostError::Address { .. }))), "{text}");
    }
    assert_eq!(allowed("http://example.com/"), Err(UrlError::PlainHttp));
    assert!(HostName::parse("[::1]", Loopback::DangerousAllowed).expect("loopback").is_loopback());
}
