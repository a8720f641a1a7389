//! The question to a server how many tokens its model reads: prompt and output together.
//!
//! Asks only at the places of the profile of the endpoint, and a server that does not say it is no error. See [`crate::profile`].

use super::profile::{self, ContextPlace, Profile};
use super::spec::Spec;
use reqwest::Method;
use serde_json::{Value, json};
use url::Url;

/// The fewest and the most tokens that are believed.
const TOKENS_MIN: u64 = 256;
const TOKENS_MAX: u64 = 100_000_000;

/// The size of a context, as a server stated it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatedContext {
    pub tokens: u64,
    /// The path of the answer that has it.
    pub path: String,
}

/// A request that reads something, beside those for outputs.
#[derive(Debug)]
pub struct Question {
    pub method: Method,
    pub url: Url,
    pub body: Vec<u8>,
}

/// Returns the questions to the server of an endpoint, each with its place.
pub fn questions(spec: &Spec) -> Vec<(&'static ContextPlace, Question)> {
    let (Some(profile), Some(base)) = (profile::used_by(spec), &spec.base_url) else { return Vec::new() };
    let question = |place: &'static ContextPlace| (place, question(place, profile, base, &spec.model));
    profile.context.iter().map(question).collect()
}

fn question(place: &ContextPlace, profile: &Profile, base: &Url, model: &str) -> Question {
    // A server behind a proxy has its root below a path.
    let usual = profile.base_url.as_deref().and_then(|usual| Url::parse(usual).ok());
    let usual = usual.as_ref().map_or("", |usual| usual.path());
    let root = base.path().trim_end_matches('/').strip_suffix(usual).unwrap_or_default();
    let mut url = base.clone();
    url.set_path(&format!("{root}{}", place.path));
    match &place.post {
        Some(field) => Question { method: Method::POST, url, body: json!({ field: model }).to_string().into_bytes() },
        None => Question { method: Method::GET, url, body: Vec::new() },
    }
}

/// Reads the tokens of this model from an answer; `None` if it does not have them.
pub fn read(place: &ContextPlace, answer: &Value, model: &str) -> Option<StatedContext> {
    let about = match &place.list {
        None => answer,
        Some(list) => {
            // A name without a tag is the one with the tag `latest`.
            let latest = format!("{model}:latest");
            let is_model = |name: &str| name == model || name == latest;
            let names = |entry: &Value| place.names.iter().any(|name| entry[name].as_str().is_some_and(is_model));
            answer.pointer(list)?.as_array()?.iter().find(|entry| names(entry))?
        }
    };
    let value = about.pointer(&place.tokens)?;
    let tokens = match &place.parameter {
        None => value.as_u64()?,
        Some(parameter) => {
            let words = value.as_str()?.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
            words
                .filter(|words| words.first() == Some(&parameter.as_str()))
                .find_map(|words| words.get(1)?.parse().ok())?
        }
    };
    (TOKENS_MIN..=TOKENS_MAX).contains(&tokens).then(|| StatedContext { tokens, path: place.path.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::Kind;

    /// Returns what a server with these answers states, with the path that has it.
    fn stated(profile: &str, base: &str, answers: &[(&str, Value)]) -> Option<(u64, String)> {
        let settings = ironclaw_operator::EndpointSettings { profile: Some(profile.to_owned()), ..Default::default() };
        let base_url = Some(Url::parse(base).expect(base));
        let spec = Spec { kind: Kind::Openai, base_url, model: "small".to_owned(), settings, ..Spec::builtin() };
        questions(&spec).into_iter().find_map(|(place, question)| {
            let (_, answer) = answers.iter().find(|(path, _)| *path == question.url.path())?;
            read(place, answer, &spec.model).map(|stated| (stated.tokens, stated.path))
        })
    }

    #[test]
    fn each_kind_of_server_states_the_tokens_in_use() {
        let listed = |entry: Value| json!({ "data": [{ "id": "other", "max_model_len": 1 }, entry] });
        let loaded = json!({ "models": [{ "name": "small:latest", "model": "small:latest", "context_length": 8192 }] });
        let old = json!({ "models": [{ "name": "small:latest" }] });
        let shown = json!({ "parameters": "stop \"a\"\nnum_ctx                        16384", "model_info": { "llama.context_length": 131_072 } });
        let largest = json!({ "model_info": { "llama.context_length": 131_072 } });
        let props = json!({ "default_generation_settings": { "n_ctx": 4096 } });
        let (ps, show) = ("/api/ps", "/api/show");
        for (profile, base, answers, tokens) in [
            ("ollama", "http://127.0.0.1:1/v1", vec![(ps, loaded.clone()), (show, shown.clone())], Some(8192)),
            ("ollama", "http://127.0.0.1:1/v1", vec![(ps, old), (show, shown)], Some(16384)),
            ("ollama", "http://127.0.0.1:1", vec![(show, largest)], None),
            ("ollama", "https://a.example/gpu/v1/", vec![("/gpu/api/ps", loaded)], Some(8192)),
            ("llamacpp", "http://127.0.0.1:1/v1", vec![("/props", props)], Some(4096)),
            (
                "vllm",
                "http://127.0.0.1:1/v1",
                vec![("/v1/models", listed(json!({ "id": "small", "max_model_len": 32_768 })))],
                Some(32_768),
            ),
            ("vllm", "http://127.0.0.1:1/v1", vec![("/v1/models", listed(json!({ "id": "small" })))], None),
            (
                "lmstudio",
                "http://127.0.0.1:1/v1",
                vec![(
                    "/api/v0/models",
                    listed(json!({ "id": "small", "max_context_length": 99_999, "loaded_context_length": 4096 })),
                )],
                Some(4096),
            ),
            ("lmstudio", "http://127.0.0.1:1/v1", vec![("/api/v0/models", json!([]))], None),
            (
                "openrouter",
                "https://openrouter.ai/api/v1",
                vec![("/api/v1/models", listed(json!({ "id": "small", "context_length": 200_000 })))],
                Some(200_000),
            ),
            (
                "groq",
                "https://api.groq.com/openai/v1",
                vec![("/openai/v1/models", listed(json!({ "id": "small", "context_window": 131_072 })))],
                Some(131_072),
            ),
            (
                "vllm",
                "http://127.0.0.1:1/v1",
                vec![("/v1/models", listed(json!({ "id": "small", "max_model_len": 1 })))],
                None,
            ),
            (
                "vllm",
                "http://127.0.0.1:1/v1",
                vec![("/v1/models", listed(json!({ "id": "small", "max_model_len": -1 })))],
                None,
            ),
            ("openai", "https://api.openai.com/v1", vec![("/v1/models", json!({}))], None),
        ] {
            let found = stated(profile, base, &answers).map(|(tokens, _)| tokens);
            assert_eq!(found, tokens, "{profile} {answers:?}");
        }
    }
}
