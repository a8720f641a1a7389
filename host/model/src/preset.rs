//! The presets of well-known providers and local servers: address, protocol, and environment variable of the key.
//!
//! Never has a price, because prices change, and never a key. See [`crate::endpoint`] for the endpoints.

use super::spec::Kind;

/// A well-known provider or server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Preset {
    /// Its name on the command line.
    pub name: &'static str,
    pub kind: Kind,
    pub base_url: &'static str,
    /// The usual environment variable of its key; `None` for a server without a key.
    pub key_variable: Option<&'static str>,
    /// A default model; `None` if it depends on the installation or the account.
    pub model: Option<&'static str>,
}

impl Preset {
    /// Returns whether it is a server on the same machine.
    pub const fn is_local(&self) -> bool {
        self.key_variable.is_none()
    }
}

/// All presets: providers first, then local servers.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "anthropic",
        kind: Kind::Anthropic,
        base_url: "https://api.anthropic.com",
        key_variable: Some("ANTHROPIC_API_KEY"),
        model: Some("claude-sonnet-4-5"),
    },
    provider("openai", "https://api.openai.com/v1", "OPENAI_API_KEY", Some("gpt-5-mini")),
    provider("openrouter", "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", Some("openrouter/auto")),
    provider("groq", "https://api.groq.com/openai/v1", "GROQ_API_KEY", None),
    provider("mistral", "https://api.mistral.ai/v1", "MISTRAL_API_KEY", Some("mistral-large-latest")),
    provider("deepseek", "https://api.deepseek.com/v1", "DEEPSEEK_API_KEY", Some("deepseek-chat")),
    provider("gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "GEMINI_API_KEY", None),
    provider("together", "https://api.together.xyz/v1", "TOGETHER_API_KEY", None),
    provider("xai", "https://api.x.ai/v1", "XAI_API_KEY", None),
    local("ollama", "http://127.0.0.1:11434/v1"),
    local("llamacpp", "http://127.0.0.1:8080/v1"),
    local("vllm", "http://127.0.0.1:8000/v1"),
    local("lmstudio", "http://127.0.0.1:1234/v1"),
];

const fn provider(
    name: &'static str,
    base_url: &'static str,
    key_variable: &'static str,
    model: Option<&'static str>,
) -> Preset {
    Preset { name, kind: Kind::Openai, base_url, key_variable: Some(key_variable), model }
}

const fn local(name: &'static str, base_url: &'static str) -> Preset {
    Preset { name, kind: Kind::Openai, base_url, key_variable: None, model: None }
}

/// Returns the preset with exactly this name.
pub fn find(name: &str) -> Option<&'static Preset> {
    PRESETS.iter().find(|preset| preset.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use url::Url;

    #[test]
    fn presets_have_unique_names_and_only_local_ones_use_http() {
        let names: HashSet<&str> = PRESETS.iter().map(|preset| preset.name).collect();
        assert_eq!(names.len(), PRESETS.len());
        for preset in PRESETS {
            let url = Url::parse(preset.base_url).expect(preset.name);
            let local = url.host_str() == Some("127.0.0.1");
            assert_eq!((local, preset.is_local()), (url.scheme() == "http", local), "{}", preset.name);
            assert_eq!(find(preset.name), Some(preset));
        }
        assert_eq!(find("OpenAI"), None);
    }
}
