//! The command that registers a server again with another login, for a hint.
//!
//! Pure. Its words are texts of servers and issuers, so it is made only if a shell reads each as one word.

use super::discovery::SHOWN_CHARACTERS_MAX;
use crate::registry::mcp::issuer;
use ironclaw_contract::seam::change::{McpHeader, McpOauth, McpRegister};

/// Returns the command that adds a server at a URL; `None` if a word of it has a meaning for a shell.
pub(super) fn adding(server: &McpRegister) -> Option<String> {
    let McpRegister { name, url, headers, tools, oauth, .. } = server;
    let mut words = vec!["ironctl".to_owned(), "mcp".to_owned(), "add".to_owned(), name.clone()];
    let mut option = |option: &str, value: &str| words.extend([format!("--{option}"), value.to_owned()]);
    option("url", url.as_deref()?);
    for McpHeader { name, secret, scheme } in headers {
        match scheme {
            None => option("header", &format!("{name}=secret:{secret}")),
            Some(scheme) => option("header", &format!("'{name}={scheme} secret:{secret}'")),
        }
    }
    for tool in tools {
        option("tool", &tool.name);
    }
    if let Some(oauth) = oauth {
        let McpOauth { issuer, scopes, client_id, client_secret } = &**oauth;
        let name = issuer::name_in(issuer);
        option("oauth", name);
        scopes.iter().for_each(|scope| option("scope", scope));
        client_id.iter().for_each(|id| option("client-id", id));
        client_secret.iter().for_each(|secret| option("client-secret", &format!("secret:{secret}")));
        if name != issuer {
            words.push("--accept-unannounced-s256".to_owned());
        }
    }
    words.iter().all(|word| is_plain(word)).then(|| words.join(" "))
}

/// Returns whether a shell reads a text as one word without a meaning of its own. A text in quotation marks has one blank, of a scheme.
fn is_plain(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@%+=,".contains(&byte);
    let text = match text.strip_prefix('\'').and_then(|text| text.strip_suffix('\'')) {
        Some(quoted) => quoted.replacen(' ', "", 1),
        None => text.to_owned(),
    };
    (1..=SHOWN_CHARACTERS_MAX).contains(&text.len()) && text.bytes().all(plain)
}
