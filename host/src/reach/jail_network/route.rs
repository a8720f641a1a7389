//! The judgement of one request of a command to the gateway: the granted host, the request that the host sends, or a refusal.
//!
//! Pure. Never sends a request. See [`ironclaw_judge::egress`].

use super::address::{name, origin};
use super::hosts::GrantedHost;
use crate::turns::calls::http;
use axum::http::request::Parts;
use ironclaw_contract::operator::DenialCode;
use ironclaw_judge::egress::{Commands, Grant, Loopback, Request, RequestText, judge};
use ironclaw_store::refusal::Refusal;
use std::collections::BTreeMap;

/// The last part of the path of a push of git, and the service of its beginning.
const PUSH: &str = "git-receive-pack";

/// Returns the granted host that a request names, and the URL that it means there.
pub(super) fn target<'h>(parts: &Parts, hosts: &'h [GrantedHost]) -> Result<(&'h GrantedHost, String), Refusal> {
    let path = parts.uri.path();
    if parts.uri.authority().is_some() || parts.method.as_str() == "CONNECT" {
        let words = "the gateway is no proxy: write http://127.0.0.1:8129/HOST/PATH";
        return Err(Refusal::new(DenialCode::EgressNewHost, words));
    }
    let (named, rest) = path[1..].split_once('/').unwrap_or((&path[1..], ""));
    // pip encodes the colon before a port.
    let named = named.replace("%3A", ":").replace("%3a", ":");
    let found = hosts.iter().find(|host| name(&host.grant).eq_ignore_ascii_case(&named));
    let Some(host) = found else {
        let granted: Vec<_> = hosts.iter().map(|host| name(&host.grant)).collect();
        let words =
            format!("the first part of the path is no host that is granted for commands ({})", granted.join(", "));
        return Err(Refusal::new(DenialCode::EgressNewHost, words));
    };
    let rest = match host.grant.commands() {
        // npm encodes the slash in the name of a scoped package. The registry takes both forms, and a template takes no encoded slash.
        Some(Commands::Npm) => rest.replace("%2f", "/").replace("%2F", "/"),
        _ => rest.to_owned(),
    };
    let query = parts.uri.query();
    if rest.ends_with(PUSH) || query.is_some_and(|query| query.contains(PUSH)) {
        let words = "git can fetch and clone here; the tool git_push pushes, with a grant that has --push";
        return Err(Refusal::new(DenialCode::EgressPush, words));
    }
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    Ok((host, format!("{}{rest}{query}", origin(&host.grant))))
}

/// Returns the request that a grant for commands admits.
pub(super) fn admitted(
    parts: &Parts,
    host: &GrantedHost,
    url: &str,
    body: &[u8],
    loopback: Loopback,
) -> Result<Request, Refusal> {
    let kind = parts.headers.get("content-type").and_then(|value| value.to_str().ok());
    let body = (!body.is_empty()).then_some(body);
    let headers = body.map(|_| ("content-type".to_owned(), kind.unwrap_or("application/octet-stream").to_owned()));
    let text = RequestText {
        method: parts.method.to_string(),
        url: url.to_owned(),
        headers: headers.into_iter().collect::<BTreeMap<_, _>>(),
        body: None,
        secret: None,
    };
    let request = Request::with_body(&text, body, loopback)
        .map_err(|error| Refusal::new(DenialCode::EgressNewPath, error.to_string()))?;
    let request = request.with_secret(host.grant.secret().cloned());
    match judge(std::slice::from_ref(&host.grant), &request, &|_| false) {
        Ok(_) => Ok(request),
        Err(missing) => {
            let code = http::code_of(&missing);
            let step = format!("{} --commands {}", missing.next_step("AGENT"), used(&host.grant));
            Err(Refusal::new(code, missing.sentence()).hint(step))
        }
    }
}

fn used(grant: &Grant) -> &'static str {
    grant.commands().unwrap_or(Commands::Other).name()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use ironclaw_judge::egress::GrantText;

    /// Returns a host that is granted for commands, with GET and POST.
    pub(crate) fn host(name: &str, commands: Commands, paths: &[&str]) -> GrantedHost {
        let text = GrantText {
            host: name.to_owned(),
            methods: vec!["GET".to_owned(), "POST".to_owned()],
            paths: paths.iter().map(|&path| path.to_owned()).collect(),
            upload_bytes_max: Some(100),
            commands: Some(commands),
            ..GrantText::default()
        };
        GrantedHost { grant: Grant::check(&text, Loopback::Refused).expect("a grant"), secret: None }
    }

    fn hosts() -> Vec<GrantedHost> {
        vec![
            host(
                "github.com",
                Commands::Git,
                &["/a/{repo}/info/refs?service=git-upload-pack", "/a/{repo}/git-upload-pack"],
            ),
            host("registry.npmjs.org", Commands::Npm, &["/{scope}/{package}"]),
        ]
    }

    fn judged(method: &str, uri: &str, body: &[u8]) -> Result<String, DenialCode> {
        let request = axum::http::Request::builder().method(method).uri(uri).body(()).expect("a request");
        let (parts, ()) = request.into_parts();
        let hosts = hosts();
        let (host, url) = target(&parts, &hosts).map_err(|refusal| refusal.code)?;
        let request = admitted(&parts, host, &url, body, Loopback::Refused).map_err(|refusal| refusal.code)?;
        Ok(request.url().to_string())
    }

    #[test]
    fn request_beyond_the_grants_is_refused_by_name() {
        for (method, uri, bytes, code) in [
            ("GET", "/evil.example/x", 0, DenialCode::EgressNewHost),
            ("GET", "/github.com:8443/a/b/info/refs?service=git-upload-pack", 0, DenialCode::EgressNewHost),
            ("GET", "/140.82.121.4/a/b/info/refs?service=git-upload-pack", 0, DenialCode::EgressNewHost),
            ("GET", "http://github.com/a/b/info/refs?service=git-upload-pack", 0, DenialCode::EgressNewHost),
            ("CONNECT", "github.com:443", 0, DenialCode::EgressNewHost),
            ("GET", "/github.com/other/b/info/refs?service=git-upload-pack", 0, DenialCode::EgressNewPath),
            ("GET", "/github.com/a/../other/info/refs?service=git-upload-pack", 0, DenialCode::EgressNewPath),
            ("GET", "/github.com/a%2fb/info/refs?service=git-upload-pack", 0, DenialCode::EgressNewPath),
            ("GET", "/github.com/a/b/info/refs?service=git-receive-pack", 0, DenialCode::EgressPush),
            ("POST", "/github.com/a/b/git-receive-pack", 1, DenialCode::EgressPush),
            ("POST", "/github.com/a/b/git-upload-pack", 101, DenialCode::EgressUpload),
            ("PUT", "/github.com/a/b/git-upload-pack", 1, DenialCode::EgressNewMethod),
        ] {
            assert_eq!(judged(method, uri, &vec![b'x'; bytes]), Err(code), "{method} {uri}");
        }
    }

    #[test]
    fn granted_request_names_its_host() {
        for (method, uri, bytes, url) in [
            (
                "GET",
                "/github.com/a/b.git/info/refs?service=git-upload-pack",
                0,
                "https://github.com/a/b.git/info/refs?service=git-upload-pack",
            ),
            ("POST", "/github.com/a/b/git-upload-pack", 100, "https://github.com/a/b/git-upload-pack"),
            ("GET", "/registry.npmjs.org/@scope%2fname", 0, "https://registry.npmjs.org/@scope/name"),
        ] {
            assert_eq!(judged(method, uri, &vec![b'x'; bytes]), Ok(url.to_owned()), "{method} {uri}");
        }
    }
}
