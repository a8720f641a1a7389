//! The URLs of the actions of an API below a base URL.
//!
//! Never checks a base URL: see [`crate::check_url`].

use super::reading::Protocol;
use url::Url;

/// Returns the URL of an action of the API. The base URL may already have a part of the path.
pub fn api_url(base: &Url, protocol: Protocol, action: &str) -> Url {
    let mut url = base.clone();
    let path = base.path().trim_end_matches('/');
    let path = match protocol {
        Protocol::Chat => {
            let path = path.strip_suffix("/chat/completions").unwrap_or(path);
            if path.is_empty() { "/v1" } else { path }.to_owned()
        }
        Protocol::Messages => {
            let path = path.strip_suffix("/messages").unwrap_or(path);
            format!("{}/v1", path.strip_suffix("/v1").unwrap_or(path))
        }
    };
    url.set_path(&format!("{path}/{action}"));
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_base_url_may_hold_more_or_less_of_the_path() {
        let path = |base: &str, protocol, action| api_url(&Url::parse(base).expect(base), protocol, action).to_string();
        for base in ["http://[::1]:80", "http://[::1]/v1", "http://[::1]/v1/", "http://[::1]/v1/chat/completions"] {
            assert_eq!(path(base, Protocol::Chat, "chat/completions"), "http://[::1]/v1/chat/completions", "{base}");
        }
        let gateway = path("https://a.example/openai/v1", Protocol::Chat, "models");
        assert_eq!(gateway, "https://a.example/openai/v1/models");
        for base in ["https://a.example", "https://a.example/v1", "https://a.example/v1/messages"] {
            assert_eq!(path(base, Protocol::Messages, "messages"), "https://a.example/v1/messages", "{base}");
        }
    }
}
