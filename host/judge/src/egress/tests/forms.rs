//! Properties of the canonical form and of templates, over random texts.

use super::{checked, none};
use crate::egress::{CanonicalUrl, Loopback, Request, RequestText, Template, UrlError, judge};
use proptest::prelude::*;
use url::{Host, Url};

/// Texts that are nearly URLs, from the pieces by which clients differ.
fn near_url() -> impl Strategy<Value = String> {
    let hosts = [
        "example.com",
        "EXAMPLE.com.",
        "localhost",
        "127.0.0.1",
        "0x7f.1",
        "2130706433",
        "[::1]",
        "[::ffff:7f00:1]",
        "xn--pple-43d.com",
    ];
    let others = [
        "https://", "http://", "HTTPS:", "//", "/", "\\", "@", ":", ":443", ":80", ":8443", "?", "#", "&", "=", ";",
        ".", "..", "/../", "/./", "%2e", "%2E%2e", "%2f", "%5c", "%25", "%41", "%c3%bc", "%zz", "%", "%00", "a", "B",
        "ü", "。", "１", "\t", "\n", " ", "'", "\"", "<", "|", "^", "{", "}", "*", "+", "~", "$",
    ];
    let piece = prop::sample::select([&hosts[..], &others].concat());
    let pieces = prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat());
    prop_oneof![pieces.clone(), pieces.prop_map(|rest| format!("https://example.com/{rest}")), any::<String>()]
}

/// Paths and queries from the pieces that a template must tell apart.
fn near_path() -> impl Strategy<Value = String> {
    let pieces = [
        "/", "/", "a", "repos", "issues", ".", "..", "%2e", "%2E", "%2f", "%2F", "%5c", "%252f", "%25", "..;", ";x=y",
        "%00", "%0a", "?", "&", "q=", "=", "+", "ü", "／", "．", "7", ":", "@", ",", "%2C",
    ];
    let piece = prop::sample::select([&pieces[..], &["%ef%bc%8f"]].concat());
    let pieces = prop::collection::vec(piece, 0..14).prop_map(|pieces| format!("/{}", pieces.concat()));
    prop_oneof![pieces, (near_slot(), near_slot()).prop_map(|(one, other)| format!("/repos/{one}/issues/{other}"))]
}

/// Short texts for one slot.
fn near_slot() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "a", "a", "7", ".", "..", "%2e", "%2F", "%5c", "%25", "..;", ";x", "%0a", "ü", "%C3%BC", "／", "．", ",",
        "%2C", "@", "%40", "/",
    ]);
    prop::collection::vec(piece, 1..3).prop_map(|pieces| pieces.concat())
}

fn parse(text: &str) -> Option<CanonicalUrl> {
    CanonicalUrl::parse(text, Loopback::DangerousAllowed).ok()
}

fn dialled(url: &CanonicalUrl) -> Url {
    Url::parse(url.as_str()).expect("a canonical URL is a URL")
}

#[test]
fn canonical_form_of_known_urls() {
    for (written, canonical) in [
        ("HTTPS://Example.COM:443", "https://example.com/"),
        ("https://example.com:8443/?#x", "https://example.com:8443/"),
        ("https://example.com/a/./b/../c", "https://example.com/a/c"),
        ("https://example.com/a/%2e%2E/../c/.%2e/d", "https://example.com/d"),
        ("https://example.com/%7euser/%41%2fb%2c,", "https://example.com/~user/A%2Fb%2C,"),
        ("https://example.com/b\u{fc}cher?q=\u{fc}'%41#frag", "https://example.com/b%C3%BCcher?q=%C3%BC%27A"),
        ("https://b\u{fc}cher.example/", "https://xn--bcher-kva.example/"),
        ("https://example.com/a[b]|c^d?x[]=1", "https://example.com/a%5Bb%5D%7Cc%5Ed?x%5B%5D=1"),
        ("https://example.com//a//", "https://example.com//a//"),
    ] {
        assert_eq!(super::url(written).as_str(), canonical, "{written}");
        assert_eq!(super::url(canonical).as_str(), canonical);
    }
    for bad in ["https://example.com/%", "https://example.com/%zz", "https://example.com/?%4"] {
        assert_eq!(CanonicalUrl::parse(bad, Loopback::Refused), Err(UrlError::Percent), "{bad}");
    }
    let long = format!("https://example.com/{}", "\u{fc}".repeat(4000));
    assert!(matches!(CanonicalUrl::parse(&long, Loopback::Refused), Err(UrlError::TooLong(24_020))));
}

#[test]
fn value_has_one_spelling_in_a_path() {
    let template: Template = "/repos/{a}".parse().expect("a template");
    let fills = |slot: &str| template.fill(&super::url(&format!("https://example.com/repos/{slot}"))).is_ok();
    for good in ["a,b", "me@x", "%C3%BC", "\u{fc}", "a%20b", "%5Ba%5D", "%7Ea", "v1.2"] {
        assert!(fills(good), "{good}");
    }
    for bad in
        ["a%2Cb", "me%40x", "a%2Fb", "a%5Cb", "a%25b", "a%252Fb", "", "%00", "a%0Ab", "%FF", "..;", ";x", "%EF%BC%8F"]
    {
        assert!(!fills(bad), "{bad}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn canonical_form_is_a_fixed_point(text in near_url()) {
        if let Some(url) = parse(&text) {
            prop_assert_eq!(parse(url.as_str()), Some(url.clone()), "{}", text);
            let is_usual = |c: char| c.is_ascii_alphanumeric() || "-._~:/?[]@!$&'()*+,;=%".contains(c);
            prop_assert!(url.as_str().chars().all(is_usual), "{}", url);
        }
    }

    #[test]
    fn canonical_url_has_the_host_that_is_dialled(text in near_url()) {
        if let Some(url) = parse(&text) {
            let client = dialled(&url);
            prop_assert_eq!(client.as_str(), url.as_str());
            prop_assert_eq!(client.host_str(), Some(url.host().as_str()));
            prop_assert_eq!(client.port_or_known_default(), Some(url.port()));
            prop_assert_eq!(client.path(), url.path());
            prop_assert_eq!(client.query(), url.query());
            prop_assert!(client.username().is_empty() && client.password().is_none() && client.fragment().is_none());
            // The written text leads a client to the same place.
            let written = Url::parse(&text).expect("it was parsed before");
            prop_assert_eq!(written.host(), client.host());
            prop_assert_eq!(written.port_or_known_default(), client.port_or_known_default());
        }
    }

    #[test]
    fn address_is_never_a_canonical_host(text in near_url()) {
        if let Ok(url) = CanonicalUrl::parse(&text, Loopback::Refused) {
            let client = dialled(&url);
            let is_name = matches!(client.host(), Some(Host::Domain(name)) if name.contains('.') && !name.ends_with('.'));
            prop_assert!(is_name && client.scheme() == "https", "{}", url);
        }
    }

    #[test]
    fn template_takes_no_dot_segment_and_no_slash(path in near_path()) {
        let Some(url) = parse(&format!("https://example.com{path}")) else { return Ok(()) };
        for template in ["/repos/{a}", "/{a}/repos", "/repos/{a}/issues/{b}", "/repos/{a}?q={q}", "/a/{a}/{b}/{c}"] {
            let template: Template = template.parse().expect(template);
            let Ok(slots) = template.fill(&url) else { continue };
            for slot in slots {
                let is_in_path = slot.range.end <= url.as_str().len() - url.query().map_or(0, |query| query.len() + 1);
                let value = slot.value.as_str();
                prop_assert!(!value.is_empty() && !value.chars().any(char::is_control));
                if is_in_path {
                    prop_assert!(!matches!(value, "." | "..") && !value.starts_with("..;"), "{}", url);
                    prop_assert!(!value.contains(['/', '\\', '%', '／']), "{}", url);
                }
            }
            let raw = url.path().to_ascii_lowercase();
            prop_assert!(!raw.contains("%2f") && !raw.contains("%5c") && !raw.contains("/../") && !raw.ends_with("/.."));
        }
    }

    #[test]
    fn equal_slots_in_a_path_mean_an_equal_path(value in near_slot(), coded in prop::collection::vec(any::<bool>(), 12)) {
        let template: Template = "/repos/{a}".parse().expect("a template");
        let other: String = value.bytes().zip(coded.into_iter().chain(std::iter::repeat(false)))
            .map(|(byte, coded)| if coded || !byte.is_ascii() { format!("%{byte:02x}") } else { char::from(byte).to_string() })
            .collect();
        let url = |slot: &str| parse(&format!("https://example.com/repos/{slot}"));
        let (Some(one), Some(other)) = (url(&value), url(&other)) else { return Ok(()) };
        if let (Ok(left), Ok(right)) = (template.fill(&one), template.fill(&other)) {
            prop_assert_eq!(left[0].value == right[0].value, one.path() == other.path(), "{} {}", one, other);
        }
    }

    #[test]
    fn written_template_is_read_back(path in near_path()) {
        if let Ok(template) = path.parse::<Template>() {
            prop_assert_eq!(template.to_string().parse::<Template>(), Ok(template));
        }
    }

    #[test]
    fn proposal_admits_its_request_and_no_other(one in near_path(), other in near_path()) {
        let request = |path: &str| {
            let text = RequestText { method: "GET".to_owned(), url: format!("https://example.com{path}"), ..RequestText::default() };
            Request::check(&text, Loopback::Refused).ok()
        };
        let (Some(one), Some(other)) = (request(&one), request(&other)) else { return Ok(()) };
        let missing = judge(&[], &one, &none).expect_err("no grant");
        if let Some(grant) = missing.proposal() {
            let grants = [checked(grant)];
            prop_assert!(judge(&grants, &one, &none).is_ok(), "{}", one);
            // Parameters have no order.
            let parts = |request: &Request| {
                let mut query: Vec<_> = request.url().query().unwrap_or_default().split('&').map(str::to_owned).collect();
                query.sort();
                (request.url().path().to_owned(), query)
            };
            prop_assert_eq!(judge(&grants, &other, &none).is_ok(), parts(&one) == parts(&other), "{} {}", one, other);
        }
    }

    #[test]
    fn two_requests_have_two_texts(one in near_path(), other in near_path(), secret in any::<bool>()) {
        let request = |path: &str, secret: bool| {
            let secret = secret.then(|| "key".to_owned());
            let text = RequestText { method: "GET".to_owned(), url: format!("https://example.com{path}"), secret, ..RequestText::default() };
            Request::check(&text, Loopback::Refused).ok()
        };
        if let (Some(one), Some(other)) = (request(&one, secret), request(&other, false)) {
            prop_assert_eq!(one == other, one.to_string() == other.to_string());
        }
    }
}
