//! Requests against grants.

use super::{checked, get, grant, none, post, request, text, url};
use crate::Class;
use crate::egress::{Category, Grant, GrantText, Loopback, Request, RequestError, RequestText, Template, judge};

const ISSUES: &str = "/repos/{owner}/issues/{number}";

fn categories(grants: &[Grant], request: &Request) -> Vec<Category> {
    judge(grants, request, &none).expect_err("no grant").categories()
}

fn with_secret(request: Request) -> Request {
    request.with_secret(Some("key".parse().expect("a name")))
}

#[test]
fn slots_have_names_values_and_bytes() {
    let template: Template = "/r/{owner}/i/{n}?q={q}&page={page?}".parse().expect("a template");
    let url = url("https://a.example/r/J%c3%bcrgen/i/7?q=a+b%20c%2B");
    let slots = template.fill(&url).expect("filled");
    let found: Vec<_> =
        slots.iter().map(|slot| (&*slot.name, &*slot.value, &url.as_str()[slot.range.clone()])).collect();
    assert_eq!(found, [("owner", "Jürgen", "J%C3%BCrgen"), ("n", "7", "7"), ("q", "a b c+", "a+b%20c%2B")]);
}

#[test]
fn read_needs_typed_slots_or_a_typed_url() {
    let grants = [grant("api.example.com", &["GET", "HEAD"], &[ISSUES, "/fixed"])];
    let request = get("https://api.example.com/repos/acme/issues/7");
    let class = |is_typed: &dyn Fn(&str) -> bool| judge(&grants, &request, is_typed).expect("granted").class();
    assert_eq!(class(&|value| matches!(value, "acme" | "7")), Class::Read);
    assert_eq!(class(&|value| value == "https://api.example.com/repos/acme/issues/7"), Class::Read);
    assert_eq!(class(&|value| value == "acme"), Class::Send);
    assert_eq!(class(&none), Class::Send);
    let fixed = judge(&grants, &get("https://api.example.com/fixed"), &none).expect("granted").class();
    assert_eq!(fixed, Class::Read);
}

#[test]
fn typed_url_with_a_credential_is_sent() {
    let grants = [checked(&GrantText { secret: Some("key".to_owned()), ..text(&[], &[ISSUES]) })];
    let address = "https://api.example.com/repos/acme/issues/7";
    let request = with_secret(get(address));
    let class = |is_typed: &dyn Fn(&str) -> bool| judge(&grants, &request, is_typed).expect("granted").class();
    assert_eq!(class(&|value| value == address), Class::Send);
    assert_eq!(class(&|value| matches!(value, "acme" | "7")), Class::Read);
}

#[test]
fn other_methods_are_sent_even_if_all_is_typed() {
    let grants = [grant("api.example.com", &["POST", "PUT", "PATCH", "DELETE"], &[ISSUES])];
    for method in ["POST", "PUT", "PATCH", "DELETE"] {
        let request = request(&RequestText {
            method: method.to_owned(),
            url: "https://api.example.com/repos/acme/issues/7".to_owned(),
            ..RequestText::default()
        });
        assert_eq!(judge(&grants, &request, &|_| true).expect("granted").class(), Class::Send, "{method}");
    }
}

#[test]
fn header_that_carries_data_makes_a_read_a_send() {
    let grants = [grant("api.example.com", &[], &["/fixed"])];
    for (header, value, class) in [
        ("Accept", "application/json", Class::Read),
        ("accept", "application/vnd.secret", Class::Send),
        ("If-None-Match", "\"secret\"", Class::Send),
        ("if-none-match", "\"typed\"", Class::Read),
        ("range", "bytes=7-9", Class::Send),
    ] {
        let request = request(&RequestText {
            method: "GET".to_owned(),
            url: "https://api.example.com/fixed".to_owned(),
            headers: [(header.to_owned(), value.to_owned())].into(),
            ..RequestText::default()
        });
        let allowed = judge(&grants, &request, &|value| value == "\"typed\"").expect("granted");
        assert_eq!(allowed.class(), class, "{header}: {value}");
    }
}

#[test]
fn grant_without_paths_admits_typed_urls_only() {
    let grants = [grant("docs.example", &[], &[])];
    let address = "https://docs.example/page?a=b";
    let allowed = judge(&grants, &get(address), &|value| value == address).expect("typed");
    assert_eq!((allowed.class(), allowed.template()), (Class::Read, None));
    assert_eq!(allowed.slots()[0].range, 0..address.len());
    assert_eq!(categories(&grants, &get(address)), [Category::NewPath]);
    let other = get("https://docs.example/page?a=c");
    assert!(judge(&grants, &other, &|value| value == address).is_err());
    let missing = judge(&grants, &with_secret(get(address)), &|value| value == address).expect_err("a credential");
    assert_eq!(missing.categories(), [Category::NewPath, Category::CredentialReachesFurther]);
}

#[test]
fn each_difference_has_its_category() {
    let secret =
        checked(&GrantText { secret: Some("key".to_owned()), upload_bytes_max: Some(4), ..text(&["POST"], &["/a"]) });
    let grants = [secret, grant("other.example", &[], &["/x/{y}"])];
    use Category::{CredentialReachesFurther as Reach, NewHost, NewMethod, NewPath, UploadTooLarge};
    let at = |path: &str| format!("https://api.example.com{path}");
    assert_eq!(categories(&grants, &get("https://new.example/a")), [NewHost]);
    assert_eq!(categories(&grants, &get("https://api.example.com:8443/a")), [NewHost]);
    assert_eq!(categories(&grants, &with_secret(get("https://new.example/a"))), [NewHost, Reach]);
    assert_eq!(categories(&grants, &with_secret(get("https://other.example/x/1"))), [Reach]);
    assert_eq!(categories(&grants, &get(&at("/a"))), [NewMethod]);
    assert_eq!(categories(&grants, &post(&at("/b"), "1234")), [NewPath]);
    assert_eq!(categories(&grants, &with_secret(post(&at("/b"), "1234"))), [NewPath, Reach]);
    assert_eq!(categories(&grants, &post(&at("/a"), "12345")), [UploadTooLarge]);
    assert_eq!(categories(&grants, &post("https://other.example/z", "1")), [NewMethod, NewPath, UploadTooLarge]);
    assert!(judge(&grants, &with_secret(post(&at("/a"), "1234")), &none).is_ok());
}

#[test]
fn refusal_names_the_step_that_grants_this_request_alone() {
    let grants = [grant("api.example.com", &[], &[ISSUES])];
    let missing = judge(&grants, &post("https://api.example.com/it's?a=b", "12345"), &none).expect_err("no grant");
    assert!(
        missing.next_step("bot").ends_with(
            r"ironctl egress grant bot api.example.com --method POST --path '/it'\''s?a=b' --upload-bytes-max 5"
        ),
        "{}",
        missing.next_step("bot")
    );
    let json = serde_json::to_value(&missing).expect("JSON");
    assert_eq!(json["differences"][0]["category"], "new_method");
    assert_eq!(json["differences"][1]["path"], "/it's?a=b");
    let widened = [grants[0].clone(), checked(missing.proposal().expect("a grant"))];
    assert!(judge(&widened, &post("https://api.example.com/it's?a=b", "12345"), &none).is_ok());
    assert!(judge(&widened, &post("https://api.example.com/it's?a=c", "12345"), &none).is_err());
    assert!(judge(&widened, &post("https://api.example.com/it's?a=b", "123456"), &none).is_err());
}

#[test]
fn sentence_names_a_few_granted_paths() {
    let paths: Vec<_> = (0..64).map(|n| format!("/p{n}/{{a}}")).collect();
    let grants = [checked(&GrantText { paths, ..text(&[], &[]) })];
    let missing = judge(&grants, &get("https://api.example.com/x"), &none).expect_err("no grant");
    assert!(missing.sentence().contains("/p5/{a} and 58 others"), "{}", missing.sentence());
}

#[test]
fn path_without_a_template_has_no_proposal() {
    for path in ["/a%2Fb", "/a//b", "/a*b", "/a?b=1&b=2"] {
        let missing = judge(&[], &get(&format!("https://new.example{path}")), &none).expect_err(path);
        assert_eq!(missing.proposal(), None, "{path}");
        assert!(missing.next_step("bot").starts_with("no grant"), "{path}");
    }
}

#[test]
fn query_that_the_template_does_not_list_is_refused() {
    let grants = [grant("api.example.com", &["GET"], &["/s?state={state}&page={page?}&raw=1"])];
    let ok = |query: &str| judge(&grants, &get(&format!("https://api.example.com/s{query}")), &none).is_ok();
    assert!(ok("?state=open&raw=1") && ok("?raw=1&page=2&state=open"));
    for query in [
        "",
        "?state=open",
        "?state=open&raw=2",
        "?state=open&raw",
        "?state=&raw=1",
        "?state&raw=1",
        "?state=a&state=b&raw=1",
        "?state=open&raw=1&x=y",
        "?state=open&raw=1&",
        "?State=open&raw=1",
        "?state=a;x=y&raw=1",
        "?state=a%00&raw=1",
        "?state=%ff&raw=1",
    ] {
        assert!(!ok(query), "{query}");
    }
}

#[test]
fn best_grant_is_used_not_the_first() {
    let grants = [grant("api.example.com", &[], &["/a/{b}"]), grant("api.example.com", &[], &["/a/c"])];
    let allowed = judge(&grants, &get("https://api.example.com/a/c"), &none).expect("granted");
    assert_eq!(allowed.class(), Class::Read);
    assert_eq!(allowed.grant(), &grants[1]);
}

#[test]
fn request_with_a_header_of_the_host_is_refused() {
    let refused = |name: &str, value: &str| {
        let text = RequestText {
            method: "GET".to_owned(),
            url: "https://a.example/".to_owned(),
            headers: [(name.to_owned(), value.to_owned())].into(),
            ..RequestText::default()
        };
        Request::check(&text, Loopback::Refused).expect_err(name)
    };
    for name in ["Host", "authorization", "cookie", "x-forwarded-for", "transfer-encoding", "content-length", "accept "]
    {
        assert_eq!(refused(name, "x"), RequestError::Header(name.to_owned()));
    }
    for value in ["", " ", "a\r\nHost: evil.example", "a\u{0}", "é", &"a".repeat(257)] {
        assert!(matches!(refused("accept", value), RequestError::HeaderValue(_)), "{value:?}");
    }
    assert_eq!(refused("content-type", "text/plain"), RequestError::TypeWithoutBody);
}

#[test]
fn body_needs_a_method_and_a_type() {
    let check = |method: &str, headers: &[(&str, &str)]| {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let (url, body) = ("https://a.example/".to_owned(), Some("x".to_owned()));
        Request::check(&RequestText { method: method.to_owned(), url, headers, body, secret: None }, Loopback::Refused)
    };
    let plain = ("content-type", "text/plain");
    assert!(matches!(check("GET", &[plain]), Err(RequestError::BodyRefused(_))));
    assert_eq!(check("POST", &[]), Err(RequestError::NeedsType));
    assert!(matches!(check("POST", &[plain, ("Content-Type", "a/b")]), Err(RequestError::HeaderTwice(_))));
    assert!(check("POST", &[plain]).is_ok());
}
