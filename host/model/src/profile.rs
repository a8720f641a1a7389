//! The profiles of providers and local servers: presets, known quirks, and the place where a server states the size of a context.
//!
//! Never has a price, because prices change, and never a key. The profiles are data: `data/providers.toml`. See [`crate::quirks`] for the
//! names and values of quirks, and [`crate::stated_context`] for the question to a server.

use super::quirks::Values;
use super::spec::{Kind, Spec};
use serde::Deserialize;
use std::sync::LazyLock;
use url::Url;

/// A well-known provider or server.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Its name on the command line.
    pub name: String,
    pub kind: Kind,
    /// The address of the preset; `None` if each account has its own.
    #[serde(default)]
    pub base_url: Option<String>,
    /// The usual environment variable of its key; `None` for a server without a key.
    #[serde(default)]
    pub key_variable: Option<String>,
    /// A default model; `None` if it depends on the installation or the account.
    #[serde(default)]
    pub model: Option<String>,
    /// Hosts of its endpoints.
    #[serde(default)]
    hosts: Vec<String>,
    /// The port of a local server.
    #[serde(default)]
    port: Option<u16>,
    /// The quirks that are known.
    #[serde(default)]
    pub quirks: Values,
    /// The places where its server states the size of a context, in the order of the questions.
    #[serde(default)]
    pub context: Vec<ContextPlace>,
    /// The setting of a local server that bounds the context, in words.
    #[serde(default)]
    pub context_setting: Option<String>,
}

/// A place where a server states the tokens that a model reads.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContextPlace {
    /// The path, from the root of the server.
    pub path: String,
    /// The field of a request that names the model; without it, the request is a GET.
    #[serde(default)]
    pub post: Option<String>,
    /// The pointer to a list with an entry for each model; without it, the answer is about one model.
    #[serde(default)]
    pub list: Option<String>,
    /// The fields of an entry that name its model.
    #[serde(default)]
    pub names: Vec<String>,
    /// The pointer to the number, in the entry or in the answer.
    pub tokens: String,
    /// The name in front of the number, if the pointer leads to a text of names and values.
    #[serde(default)]
    pub parameter: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    provider: Vec<Profile>,
}

static ALL: LazyLock<Vec<Profile>> = LazyLock::new(|| {
    let file: File = toml::from_str(include_str!("../data/providers.toml")).expect("a test reads the profiles");
    file.provider
});

/// Returns all profiles: providers first, then local servers.
pub fn all() -> &'static [Profile] {
    &ALL
}

/// Returns the profile with exactly this name.
pub fn find(name: &str) -> Option<&'static Profile> {
    all().iter().find(|profile| profile.name == name)
}

/// Returns the profile that an endpoint has: the named one, or the one of its address.
pub fn used_by(spec: &Spec) -> Option<&'static Profile> {
    match &spec.settings.profile {
        Some(name) => find(name),
        None => recognise(spec.base_url.as_ref()?),
    }
}

/// Returns the profile of an address.
pub fn recognise(base: &Url) -> Option<&'static Profile> {
    let host = base.host_str()?.trim_end_matches('.').to_ascii_lowercase();
    let is_below =
        |suffix: &String| host.strip_suffix(suffix.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
    // Plain http leads to this machine or a private network only.
    let is_near = base.scheme() == "http" && ironclaw_net::check_url(base).is_ok();
    let port = base.port_or_known_default();
    all().iter().find(|profile| {
        profile.hosts.iter().any(is_below) || (is_near && profile.port.is_some() && profile.port == port)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quirks::Quirk;
    use std::collections::HashSet;
    use std::path::Path;

    #[test]
    fn profiles_are_valid_and_each_recognises_its_own_address() {
        let names: HashSet<&str> = all().iter().map(|profile| profile.name.as_str()).collect();
        assert_eq!(names.len(), all().len());
        for profile in all() {
            assert_eq!(find(&profile.name), Some(profile));
            assert!(profile.kind != Kind::Scripted && profile.port.is_some() == profile.hosts.is_empty());
            for host in &profile.hosts {
                let near = Url::parse(&format!("https://{host}/v1")).expect(host);
                let below = Url::parse(&format!("https://eu.{host}/v1")).expect(host);
                assert_eq!((recognise(&near), recognise(&below)), (Some(profile), Some(profile)), "{host}");
                let other = Url::parse(&format!("https://not{host}/v1")).expect(host);
                assert_eq!(recognise(&other), None, "{other}");
            }
            let Some(base_url) = &profile.base_url else { continue };
            let url = Url::parse(base_url).expect(base_url);
            assert_eq!(recognise(&url), Some(profile), "{base_url}");
            let is_local = url.host_str() == Some("127.0.0.1");
            assert_eq!((url.scheme() == "http", profile.key_variable.is_none()), (is_local, is_local), "{base_url}");
        }
        assert_eq!(find("OpenAI"), None);
    }

    #[test]
    fn addresses_without_a_preset_are_recognised() {
        for (url, name) in [
            ("https://codestral.mistral.ai/v1", Some("mistral")),
            ("https://API.OPENAI.COM./v1", Some("openai")),
            ("https://my-resource.openai.azure.com/openai/v1", Some("azure")),
            ("https://api.deepseek.com/anthropic", Some("deepseek")),
            ("http://192.168.1.4:11434/v1", Some("ollama")),
            ("http://localhost:1234/v1", Some("lmstudio")),
            ("http://[::1]:8000/v1", Some("vllm")),
            ("https://models.example:11434/v1", None),
            ("https://api.openai.com.example/v1", None),
            ("https://example.com/api.openai.com", None),
            ("http://127.0.0.1:11435/v1", None),
        ] {
            let found = recognise(&Url::parse(url).expect(url)).map(|profile| profile.name.as_str());
            assert_eq!(found, name, "{url}");
        }
    }

    const BEGIN: &str = "<!-- providers: begin; made from `host/model/data/providers.toml` by `IRONCLAW_GOLDEN=write cargo test manual_lists` -->\n";
    const END: &str = "<!-- providers: end -->\n";

    #[test]
    fn manual_lists_every_profile() {
        let mut now = "\n| profile | address | limit of an output | usage of a stream | ids of calls | key | thoughts sent back | context stated in |\n|---|---|---|---|---|---|---|---|\n".to_owned();
        for profile in all() {
            let Profile { name, kind, base_url, hosts, quirks, context, .. } = profile;
            let address = base_url.clone().unwrap_or_else(|| format!("https://….{}", hosts.join(", https://….")));
            let cell = |quirk: Quirk| match (quirk.applies(*kind), quirks.get(quirk)) {
                (false, _) => "as the API".to_owned(),
                (true, Some(value)) => format!("`{value}`"),
                (true, None) if quirk.is_learned() => "learned".to_owned(),
                (true, None) => format!("`{}`", Values::default_of(*kind).get(quirk).expect("a default")),
            };
            let cells = [Quirk::LimitField, Quirk::StreamUsage, Quirk::CallIds, Quirk::KeyHeader, Quirk::Thoughts]
                .map(cell)
                .join(" | ");
            let stated: Vec<String> = context.iter().map(|place| format!("`{}`", place.path)).collect();
            now += &format!("| `{name}` | `{address}` | {cells} | {} |\n", stated.join(", "));
        }
        now.push('\n');
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/operate/models.md");
        let page = std::fs::read_to_string(&path).expect("the page of models");
        let (before, rest) = page.split_once(BEGIN).expect("the page has the mark at which the table begins");
        let (committed, after) = rest.split_once(END).expect("the page has the mark at which the table ends");
        if std::env::var("IRONCLAW_GOLDEN").is_ok_and(|value| value == "write") {
            std::fs::write(&path, format!("{before}{BEGIN}{now}{END}{after}")).expect("written");
            return;
        }
        assert!(committed == now, "docs/operate/models.md is out of date; IRONCLAW_GOLDEN=write rewrites it");
    }

    #[test]
    fn a_profile_with_an_unknown_quirk_or_field_is_refused() {
        let row = "[[provider]]\nname = 'a'\nkind = 'openai'\n";
        assert!(toml::from_str::<File>(row).is_ok());
        for more in ["quirks = { limit = 'a' }", "quirks = { limit_field = 'a' }", "price = 1", "kind = 'b'"] {
            assert!(toml::from_str::<File>(&format!("{row}{more}")).is_err(), "{more}");
        }
    }
}
