//! Bad grants, each refused by its name.

use super::{checked, get, text};
use crate::egress::{
    Category, Commands, Grant, GrantError, GrantText, HostError, Loopback, Method, SecretName, Template, TemplateError,
    judge,
};
use std::net::IpAddr;

fn refused(text: &GrantText) -> GrantError {
    let error = Grant::check(text, Loopback::Refused).expect_err("no grant");
    let sentence = error.to_string();
    assert!(!sentence.ends_with('.') && !sentence.chars().any(char::is_control), "{sentence}");
    error
}

fn refused_host(host: &str) -> HostError {
    match refused(&GrantText { host: host.to_owned(), ..text(&[], &["/a"]) }) {
        GrantError::Host(error) => error,
        other => panic!("{host}: {other:?}"),
    }
}

#[test]
fn host_with_a_wildcard_is_refused() {
    for host in ["*", "*.example.com", "api.*.com", "*:443"] {
        assert_eq!(refused_host(host), HostError::Wildcard(host.to_owned()));
    }
}

#[test]
fn text_that_is_no_host_is_refused_by_its_kind() {
    assert_eq!(refused_host("me@example.com"), HostError::User);
    for url in ["https://example.com", "example.com/", "example.com?a", r"example.com\a"] {
        assert_eq!(refused_host(url), HostError::Url(url.to_owned()));
    }
    assert_eq!(refused_host("example.com:443"), HostError::Port("example.com:443".to_owned()));
    assert_eq!(refused_host("example.com."), HostError::LastDot("example.com".to_owned()));
    assert_eq!(refused_host("localhost"), HostError::Localhost("localhost".to_owned()));
    assert_eq!(refused_host("intranet"), HostError::OneLabel("intranet".to_owned()));
    for (host, bad) in [("a_b.example", '_'), ("a b.example", ' '), ("a%2eb.example", '%'), ("a\tb.example", '\t')] {
        assert_eq!(refused_host(host), HostError::Character(bad), "{host}");
    }
    for host in ["", ".", "a..example", "-a.example", "a-.example", "xn--\u{fc}.example", "[::1"] {
        refused_host(host);
    }
}

#[test]
fn address_as_host_is_refused_in_every_spelling() {
    for (host, expected) in [
        ("127.0.0.1", "127.0.0.1"),
        ("8.8.8.8", "8.8.8.8"),
        ("2130706433", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("[::1]", "::1"),
        ("[::ffff:1.2.3.4]", "::ffff:1.2.3.4"),
    ] {
        let expected: IpAddr = expected.parse().expect(expected);
        assert_eq!(refused_host(host), HostError::Address { written: host.to_owned(), address: expected });
    }
}

#[test]
fn host_in_another_script_is_kept_as_ascii() {
    let grant = super::grant("Bücher.Example", &[], &["/a"]);
    assert_eq!(grant.host().as_str(), "xn--bcher-kva.example");
}

#[test]
fn template_that_matches_everything_is_refused() {
    for path in ["/{a}", "/{a}/{b}", "/{a}/", "/{a}?q={q}"] {
        let error = path.parse::<Template>().expect_err(path);
        assert_eq!(error, TemplateError::MatchesEverything(path.to_owned()));
    }
    for path in ["/**", "/*", "/a/*", "/a?*", "/a?q=*"] {
        assert!(matches!(path.parse::<Template>(), Err(TemplateError::Wildcard(_))), "{path}");
    }
}

#[test]
fn malformed_template_is_refused_by_its_kind() {
    let refused = |path: &str| path.parse::<Template>().expect_err(path);
    for path in ["", "a", "https://example.com/a"] {
        assert_eq!(refused(path), TemplateError::NoSlash(path.to_owned()));
    }
    for path in ["/a/../b", "/a/.", "/%2e%2E/a", "/.%2e"] {
        assert_eq!(refused(path), TemplateError::DotSegment, "{path}");
    }
    for path in ["/a%2fb", "/a%5Cb"] {
        assert_eq!(refused(path), TemplateError::EncodedSlash(path[1..].to_owned()));
    }
    assert_eq!(refused("/a//b"), TemplateError::EmptySegment);
    assert_eq!(refused("/a#b"), TemplateError::Fragment);
    for part in ["v{n}", "{n}.json", "{a}{b}", "{", "}a{"] {
        assert!(matches!(refused(&format!("/a/{part}")), TemplateError::PartOfSegment(_)), "{part}");
    }
    for name in ["", "A", "1", "a-b", "a b", "a\u{430}", "{a"] {
        refused(&format!("/a/{{{name}}}"));
    }
    assert_eq!(refused("/a/{n}/{n}"), TemplateError::SlotTwice("n".to_owned()));
    assert_eq!(refused("/a/{n}?q={n}"), TemplateError::SlotTwice("n".to_owned()));
    assert_eq!(refused("/a?q={n}&q={m}"), TemplateError::ParameterTwice("q".to_owned()));
    for path in ["/a?", "/a?&", "/a?={n}"] {
        assert_eq!(refused(path), TemplateError::NoParameter, "{path}");
    }
    assert!(matches!(refused("/a%zz"), TemplateError::Percent(_)));
    assert!(matches!(refused("/a b"), TemplateError::Character(_)));
    assert!(matches!(refused(&format!("/{}", "a".repeat(2000))), TemplateError::TooLong(2001)));
}

#[test]
fn other_bad_fields_are_refused_by_name() {
    for method in ["CONNECT", "TRACE", "get", "OPTIONS", ""] {
        assert!(matches!(refused(&text(&[method], &["/a"])), GrantError::Method(_)), "{method}");
    }
    assert_eq!(refused(&GrantText { port: Some(0), ..text(&[], &["/a"]) }), GrantError::PortZero);
    assert_eq!(refused(&text(&["GET", "POST"], &[])), GrantError::NeedsPath(Method::Post));
    let secret = |name: &str, paths| GrantText { secret: Some(name.to_owned()), ..text(&[], paths) };
    assert_eq!(refused(&secret("key", &[])), GrantError::SecretNeedsPath);
    for name in ["", "A Value!", "-a", "ghp_ABCdef"] {
        let GrantError::Secret(error) = refused(&secret(name, &["/a"])) else { panic!("{name}") };
        assert!(name.is_empty() || !error.to_string().contains(name));
    }
    let upload = |bytes, methods| GrantText { upload_bytes_max: Some(bytes), ..text(methods, &["/a"]) };
    assert_eq!(refused(&upload(u64::MAX, &["POST"])), GrantError::Upload(u64::MAX));
    assert_eq!(refused(&upload(1, &["GET"])), GrantError::BodyBytesWithoutBody);
    let many: Vec<_> = (0..65).map(|n| format!("/a{n}")).collect();
    assert_eq!(refused(&GrantText { paths: many, ..text(&[], &[]) }), GrantError::Paths(65));
    assert!(serde_json::from_str::<GrantText>(r#"{"host": "a.example", "hosts": []}"#).is_err());
}

#[test]
fn written_grant_is_read_back() {
    let text: GrantText = toml::from_str(
        r#"
        host = "API.example.com"
        methods = ["POST", "GET", "POST"]
        paths = ["/repos/{owner}/issues?state={state}&page={page?}&raw", "/repos/{owner}/issues?state={state}&page={page?}&raw", "/"]
        secret = "secret:github"
        "#,
    )
    .expect("a grant");
    let grant = checked(&text);
    assert_eq!(grant.methods().iter().copied().collect::<Vec<_>>(), [Method::Get, Method::Post]);
    assert_eq!((grant.paths().len(), grant.port(), grant.upload_bytes_max()), (2, 443, 65_536));
    assert_eq!(grant.secret().map(SecretName::as_str), Some("github"));
    assert_eq!(checked(&grant.text()), grant);
    assert_eq!(grant.text().paths[0], text.paths[0]);
}

#[test]
fn only_registry_of_npm_has_templates_of_slots_alone() {
    let of = |commands| GrantText { commands, ..text(&[], &["/{package}", "/{scope}/{package}"]) };
    assert!(Grant::check(&of(Some(Commands::Npm)), Loopback::Refused).is_ok());
    for commands in [None, Some(Commands::Git), Some(Commands::Pip), Some(Commands::Other)] {
        assert!(
            matches!(refused(&of(commands)), GrantError::Template(TemplateError::MatchesEverything(_))),
            "{commands:?}"
        );
    }
    let without_path = GrantText { commands: Some(Commands::Pip), ..text(&[], &[]) };
    assert_eq!(refused(&without_path), GrantError::CommandsNeedPath);
}

#[test]
fn tunnel_has_no_part_of_a_request() {
    let tunnel = || GrantText { commands: Some(Commands::Tunnel), ..text(&[], &[]) };
    let grant = checked(&tunnel());
    assert!(grant.is_tunnel() && grant.methods().is_empty() && grant.paths().is_empty());
    assert_eq!(grant.upload_bytes_max(), 65_536);
    assert_eq!(checked(&grant.text()), grant);
    let of = |methods: &[&str], paths: &[&str]| GrantText { commands: Some(Commands::Tunnel), ..text(methods, paths) };
    assert_eq!(refused(&of(&["GET"], &[])), GrantError::TunnelHas("methods"));
    assert_eq!(refused(&of(&[], &["/a"])), GrantError::TunnelHas("paths"));
    let with_secret = GrantText { secret: Some("github".to_owned()), ..tunnel() };
    assert_eq!(refused(&with_secret), GrantError::TunnelHas("a secret"));
    for port in [53, 853] {
        assert_eq!(refused(&GrantText { port: Some(port), ..tunnel() }), GrantError::TunnelPort(port));
    }
    let address = GrantText { host: "127.0.0.1".to_owned(), port: Some(443), ..tunnel() };
    let refused = Grant::check(&address, Loopback::DangerousAllowed).expect_err("an address");
    assert!(matches!(refused, GrantError::TunnelAddress(_)), "{refused}");
}

#[test]
fn request_of_the_host_never_uses_a_tunnel() {
    let grant = checked(&GrantText { commands: Some(Commands::Tunnel), ..text(&[], &[]) });
    let missing = judge(&[grant], &get("https://api.example.com/"), &|_| true).expect_err("no grant");
    assert_eq!(missing.categories(), [Category::NewHost]);
}
