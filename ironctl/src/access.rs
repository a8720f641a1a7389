//! The transport to a host and the token for it: those of the home, or those that the caller names.
//!
//! Never sends a token to another machine, and never takes a token from the command line. See [`crate::client`].

use crate::failure::Error;
use crate::home::{self, Home};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Bytes of a token file.
const TOKEN_BYTES_MAX: u64 = 4096;

/// The environment variable with a token.
pub const TOKEN_VARIABLE: &str = "IRONCLAW_TOKEN";

/// The transport and the token that the caller names.
#[derive(Debug, Clone, Default)]
pub struct Access {
    api: Option<String>,
    token_file: Option<PathBuf>,
}

/// The address of a host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    Socket(PathBuf),
    /// A loopback port: `127.0.0.1:8787`.
    Port(String),
}

impl Access {
    pub fn new(api: Option<String>, token_file: Option<PathBuf>) -> Self {
        Self { api, token_file }
    }

    /// Returns the loopback port that the caller names, if any.
    pub fn port(&self) -> Result<Option<Transport>, Error> {
        self.api.as_deref().map(port).transpose()
    }

    /// Returns whether the caller names a token. Otherwise the token of the owner in the home is used.
    pub fn names_token(&self) -> bool {
        self.token_file.is_some() || std::env::var(TOKEN_VARIABLE).is_ok_and(|token| !token.is_empty())
    }

    /// Returns the token of the named file, else of the environment, else of the owner in the home.
    pub fn token(&self, home: &Home) -> Result<String, Error> {
        if let Some(path) = &self.token_file {
            return from_file(path);
        }
        match std::env::var(TOKEN_VARIABLE) {
            Ok(token) if !token.is_empty() => Ok(token.trim().to_owned()),
            _ => home.token(),
        }
    }
}

/// Parses a URL such as `http://127.0.0.1:8787`; refuses an address of another machine.
fn port(url: &str) -> Result<Transport, Error> {
    let wrong = |why: &str| Error::usage(format!("cannot use {url}: {why}"), "name it as --api http://127.0.0.1:8787");
    let Some(rest) = url.strip_prefix("http://") else { return Err(wrong("it does not begin with http://")) };
    let authority = rest.strip_suffix('/').unwrap_or(rest);
    let Some((host, number)) = authority.rsplit_once(':') else { return Err(wrong("it names no port")) };
    if !["127.0.0.1", "localhost", "[::1]"].contains(&host) {
        return Err(wrong("the token would leave this machine unencrypted; use ssh -L for another machine"));
    }
    match number.parse::<u16>() {
        Ok(number) if number > 0 => Ok(Transport::Port(authority.to_owned())),
        _ => Err(wrong("it names no port")),
    }
}

fn from_file(path: &Path) -> Result<String, Error> {
    let unreadable = || Error::failed("token_unreadable", format!("cannot read {}", path.display()));
    let read = || -> io::Result<(u32, String)> {
        let file = home::open_file(path)?;
        let mode = file.metadata()?.mode() & 0o777;
        let mut text = String::new();
        file.take(TOKEN_BYTES_MAX).read_to_string(&mut text)?;
        Ok((mode, text))
    };
    let (mode, text) = read().map_err(|cause| unreadable().because(cause))?;
    if mode & 0o077 != 0 {
        return Err(Error::failed("token_open", format!("{} has mode {mode:04o}: others can read it", path.display()))
            .hinting(format!("chmod 600 {}", path.display())));
    }
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_goes_only_to_a_loopback_port() {
        assert_eq!(port("http://127.0.0.1:8787").expect("loopback"), Transport::Port("127.0.0.1:8787".to_owned()));
        assert_eq!(port("http://[::1]:1/").expect("loopback"), Transport::Port("[::1]:1".to_owned()));
        for url in [
            "https://127.0.0.1:8787",
            "http://192.168.1.2:8787",
            "http://evil.example:80",
            "http://127.0.0.1",
            "http://127.0.0.1:0",
            "http://localhost.evil.example:80",
            "http://a@127.0.0.1:80",
            "http://127.0.0.1:80/x",
            "127.0.0.1:80",
        ] {
            assert!(port(url).is_err(), "{url}");
        }
    }

    #[test]
    fn token_that_others_can_read_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("token");
        std::fs::write(&path, "ict_1\n").expect("written");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).expect("set");
        assert_eq!(from_file(&path).expect_err("open").report().expect("reported").error.code, "token_open");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("set");
        assert_eq!(from_file(&path).expect("private"), "ict_1");
    }
}
