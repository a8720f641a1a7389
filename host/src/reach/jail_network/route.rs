//! The judgement of one request of a command to the gateway: the granted host, the request that the host sends, or a refusal.
//!
//! A request names its host as the first part of a path of the gateway, or by its own name, as programs name it to a proxy. Pure. Never
//! sends a request. See [`ironclaw_judge::egress`].

use super::address::{PORT, name, origin};
use super::hosts::{GrantedHost, HTTP_PORT, HTTPS_PORT};
use super::suggestion::{self, Wanted};
use crate::turns::calls::http;
use axum::http::HeaderMap;
use axum::http::request::Parts;
use axum::http::uri::Authority;
use ironclaw_judge::egress::{Commands, Loopback, Request, RequestText, judge};
use ironclaw_operator::DenialCode;
use ironclaw_store::refusal::Refusal;
use std::collections::BTreeMap;

/// The last part of the path of a push of git, and the service of its beginning.
const PUSH: &str = "git-receive-pack";

/// The way in which a request names its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Naming {
    /// As the first part of a path of the gateway.
    Path,
    /// By its own name.
    Name,
}

/// The granted host of a request.
pub(super) struct Target<'h> {
    pub(super) host: &'h GrantedHost,
    /// The URL that the request means there.
    pub(super) url: String,
    pub(super) naming: Naming,
}

/// Returns the granted host that a plain request names.
pub(super) fn target<'h>(parts: &Parts, hosts: &'h [GrantedHost], agent: &str) -> Result<Target<'h>, Refusal> {
    match parts.uri.authority().filter(|authority| !is_gateway(authority)) {
        Some(authority) => {
            let port = port(parts, authority);
            match hosts.iter().find(|host| host.is_at(authority.host(), port)) {
                Some(host) => by_name(parts, host),
                None => {
                    let wanted = Wanted { host: authority.host(), port, client: client(&parts.headers) };
                    Err(suggestion::no_grant(hosts, &wanted, agent))
                }
            }
        }
        None => by_path(parts, hosts),
    }
}

/// Returns the name and version of a program, as it says; empty if it says nothing.
pub(super) fn client(headers: &HeaderMap) -> &str {
    headers.get("user-agent").and_then(|value| value.to_str().ok()).unwrap_or_default()
}

fn is_gateway(authority: &Authority) -> bool {
    matches!(authority.host(), "127.0.0.1" | "localhost") && authority.port_u16() == Some(PORT)
}

fn port(parts: &Parts, authority: &Authority) -> u16 {
    let usual = if parts.uri.scheme_str() == Some("https") { HTTPS_PORT } else { HTTP_PORT };
    authority.port_u16().unwrap_or(usual)
}

fn by_path<'h>(parts: &Parts, hosts: &'h [GrantedHost]) -> Result<Target<'h>, Refusal> {
    let path = parts.uri.path();
    let (named, rest) = path[1..].split_once('/').unwrap_or((&path[1..], ""));
    // A program may encode the colon before a port.
    let named = named.replace("%3A", ":").replace("%3a", ":");
    let found = hosts.iter().find(|host| name(&host.grant).eq_ignore_ascii_case(&named));
    let Some(host) = found else {
        let granted: Vec<_> = hosts.iter().map(|host| name(&host.grant)).collect();
        let words =
            format!("the first part of the path is no host that is granted for commands ({})", granted.join(", "));
        return Err(Refusal::new(DenialCode::EgressNewHost, words));
    };
    Ok(Target { host, url: url(parts, host, rest)?, naming: Naming::Path })
}

/// Returns the target of a request to this host, whose path is that of the host.
pub(super) fn by_name<'h>(parts: &Parts, host: &'h GrantedHost) -> Result<Target<'h>, Refusal> {
    let path = parts.uri.path();
    let url = url(parts, host, path.strip_prefix('/').unwrap_or_default())?;
    Ok(Target { host, url, naming: Naming::Name })
}

/// Returns the URL of a path of a host.
fn url(parts: &Parts, host: &GrantedHost, rest: &str) -> Result<String, Refusal> {
    let rest = match host.grant.commands() {
        // npm encodes the slash in the name of a scoped package. The registry takes both forms, and a template takes no encoded slash.
        Some(Commands::Npm) => rest.replace("%2f", "/").replace("%2F", "/"),
        _ => rest.to_owned(),
    };
    let query = parts.uri.query();
    if rest.ends_with(PUSH) || query.is_some_and(|query| query.contains(PUSH)) {
        let words = "git can fetch and clone here, and no command pushes";
        let hint = "push with the tool git_push, which needs a grant with --push";
        return Err(Refusal::new(DenialCode::EgressPush, words).hint(hint));
    }
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    Ok(format!("{}{rest}{query}", origin(&host.grant)))
}

/// Returns the request that a grant for commands admits.
pub(super) fn admitted(
    parts: &Parts,
    host: &GrantedHost,
    url: &str,
    body: &[u8],
    loopback: Loopback,
    agent: &str,
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
    let request = Request::for_grants(&text, body, loopback, [&host.grant])
        .map_err(|error| Refusal::new(DenialCode::EgressNewPath, error.to_string()))?;
    let request = request.with_secret(host.grant.secret().cloned());
    match judge(std::slice::from_ref(&host.grant), &request, &|_| false) {
        Ok(_) => Ok(request),
        Err(missing) => {
            let code = http::code_of(&missing);
            Err(Refusal::new(code, missing.sentence()).hint(suggestion::for_request(&host.grant, &missing, agent)))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use ironclaw_judge::egress::{Grant, GrantText};

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

    fn request(method: &str, uri: &str) -> Parts {
        axum::http::Request::builder().method(method).uri(uri).body(()).expect("a request").into_parts().0
    }

    fn judged(method: &str, uri: &str, body: &[u8]) -> Result<String, Refusal> {
        let (parts, hosts) = (request(method, uri), hosts());
        let Target { host, url, .. } = target(&parts, &hosts, "a")?;
        let request = admitted(&parts, host, &url, body, Loopback::Refused, "a")?;
        Ok(request.url().to_string())
    }

    #[test]
    fn request_beyond_the_grants_is_refused_by_name() {
        for (method, uri, bytes, code) in [
            ("GET", "/evil.example/x", 0, DenialCode::EgressNewHost),
            ("GET", "/github.com:8443/a/b/info/refs?service=git-upload-pack", 0, DenialCode::EgressNewHost),
            ("GET", "/140.82.121.4/a/b/info/refs?service=git-upload-pack", 0, DenialCode::EgressNewHost),
            ("GET", "http://evil.example/a/b/info/refs?service=git-upload-pack", 0, DenialCode::EgressNewHost),
            ("GET", "http://github.com@evil.example/a/b/git-upload-pack", 0, DenialCode::EgressNewHost),
            ("GET", "http://github.com.evil.example/a/b/git-upload-pack", 0, DenialCode::EgressNewHost),
            ("GET", "http://github.com:8080/a/b/info/refs?service=git-upload-pack", 0, DenialCode::EgressNewHost),
            (
                "GET",
                "http://127.0.0.1:81/github.com/a/b/info/refs?service=git-upload-pack",
                0,
                DenialCode::EgressNewHost,
            ),
            ("GET", "http://github.com/other/b/info/refs?service=git-upload-pack", 0, DenialCode::EgressNewPath),
            ("GET", "/github.com/other/b/info/refs?service=git-upload-pack", 0, DenialCode::EgressNewPath),
            ("GET", "/github.com/a/../other/info/refs?service=git-upload-pack", 0, DenialCode::EgressNewPath),
            ("GET", "/github.com/a%2fb/info/refs?service=git-upload-pack", 0, DenialCode::EgressNewPath),
            ("GET", "/github.com/a/b/info/refs?service=git-receive-pack", 0, DenialCode::EgressPush),
            ("POST", "/github.com/a/b/git-receive-pack", 1, DenialCode::EgressPush),
            ("POST", "/github.com/a/b/git-upload-pack", 101, DenialCode::EgressUpload),
            ("PUT", "/github.com/a/b/git-upload-pack", 1, DenialCode::EgressNewMethod),
        ] {
            let judged = judged(method, uri, &vec![b'x'; bytes]).map_err(|refusal| refusal.code);
            assert_eq!(judged, Err(code), "{method} {uri}");
        }
    }

    #[test]
    fn granted_request_names_its_host() {
        const REFERENCES: &str = "a/b.git/info/refs?service=git-upload-pack";
        for host in [
            "/github.com",
            "/GitHub.com",
            "http://127.0.0.1:8129/github.com",
            "http://localhost:8129/github.com",
            "http://github.com",
            "http://GitHub.com.",
            "http://github.com:80",
            "http://github.com:443",
            "https://github.com",
            "https://github.com:443",
            "http://ada@github.com",
        ] {
            let judged = judged("GET", &format!("{host}/{REFERENCES}"), b"").map_err(|refusal| refusal.code);
            assert_eq!(judged, Ok(format!("https://github.com/{REFERENCES}")), "{host}");
        }
        let judged = |method, uri: &str, bytes| judged(method, uri, &vec![b'x'; bytes]).map_err(|refusal| refusal.code);
        let packed = judged("POST", "/github.com/a/b/git-upload-pack", 100);
        assert_eq!(packed, Ok("https://github.com/a/b/git-upload-pack".to_owned()));
        let scoped = judged("GET", "http://registry.npmjs.org/@scope%2fname", 0);
        assert_eq!(scoped, Ok("https://registry.npmjs.org/@scope/name".to_owned()));
    }

    #[test]
    fn request_inside_a_connection_goes_to_its_host_alone() {
        let host = host("github.com", Commands::Git, &["/a/b/info/refs"]);
        for uri in ["/a/b/info/refs", "https://evil.example/a/b/info/refs", "http://127.0.0.1:8129/a/b/info/refs"] {
            let target = by_name(&request("GET", uri), &host).expect("a path");
            assert_eq!(target.url, "https://github.com/a/b/info/refs", "{uri}");
        }
    }

    #[test]
    fn refusal_names_the_command_that_adds_to_the_grant() {
        for (uri, command) in [
            (
                "/github.com/eve/c.git/info/refs?service=git-upload-pack",
                "github.com --commands git --method GET --method POST --path '/a/{repo}' --path /eve/c.git --upload-bytes-max 100",
            ),
            (
                "http://registry.npmjs.org/-/v1/search?text=x",
                "registry.npmjs.org --commands npm --method GET --method POST --path '/{scope}/{package}' \
                 --path '/-/v1/search?text=x' --upload-bytes-max 100",
            ),
        ] {
            let refusal = judged("GET", uri, b"").expect_err("refused");
            assert_eq!(refusal.hint, format!("an operator can grant it: ironctl egress grant a {command}"));
        }
    }
}
