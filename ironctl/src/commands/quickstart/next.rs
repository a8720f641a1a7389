//! Commands to type for a real model, once the script has answered.
//!
//! Never uses what it finds: of a server it reads the list of models, of a key it sees that there is one. See [`crate::probe`]
//! and `crate::commands::model::add`.

use crate::commands::At;
use crate::failure::Error;
use crate::home::Home;
use crate::probe;
use ironclaw_contract::operator::ModelPreset;
use serde::Serialize;
use std::env;
use std::path::Path;

/// Variable that names the home.
const HOME_VARIABLE: &str = "IRONCLAW_HOME";

/// The command for a real model, and what was found that speaks for it.
#[derive(Debug, Serialize)]
pub struct Next {
    /// The command to type.
    pub command: String,
    /// The finding on this machine; empty when there was none.
    pub found: String,
}

/// Looks for a server on this machine first, because it asks for no key and sends nothing away; then for a key.
pub async fn find(at: &At, presets: &[ModelPreset]) -> Vec<Next> {
    let me = own_command(&at.home);
    let mut found: Vec<Next> = Vec::new();
    for (preset, model) in probe::local_servers(presets).await {
        let ModelPreset { name, base_url, .. } = preset;
        found.push(Next {
            command: format!("{me} model add {name} --model {model} --default"),
            found: format!("a model server answers at {base_url} and has {model}"),
        });
    }
    for preset in presets {
        let Some(variable) = preset.key_variable.as_deref() else { continue };
        if env::var_os(variable).is_some_and(|value| !value.is_empty()) {
            let model = if preset.model.is_some() { "" } else { " --model ID" };
            found.push(Next {
                command: format!("{me} model add {}{model} --key-env {variable} --default", preset.name),
                found: format!("{variable} is set here"),
            });
        }
    }
    if found.is_empty() {
        found.push(Next { command: format!("{me} model add openai --default"), found: String::new() });
    }
    found
}

/// Tells it.
pub fn tell(at: &At, agent: &str, found: &[Next]) -> Result<(), Error> {
    at.out.line("\nThat was a script, not an AI model. For a real one, type:")?;
    for next in found {
        at.out.line(format!("  {}", next.command))?;
    }
    let seen: Vec<&str> = found.iter().map(|next| next.found.as_str()).filter(|seen| !seen.is_empty()).collect();
    if seen.is_empty() {
        return at.out.line(format!(
            "It asks for the key. Or anthropic, openrouter, … in place of openai; for a server on this machine, \
             ollama, llamacpp, vllm or lmstudio: `{} model presets`.",
            own_command(&at.home)
        ));
    }
    at.out.line(format!(
        "Found, and not used: {}. {agent} goes over to it, because it follows the default.",
        seen.join("; ")
    ))
}

/// Returns how this program was called, so that a shown command can be typed unchanged.
pub fn own_command(home: &Home) -> String {
    let called = env::args().next().filter(|name| is_plain(name)).unwrap_or_else(|| "ironctl".to_owned());
    let usual = Home::resolve(env::var_os(HOME_VARIABLE).map(Into::into));
    let elsewhere = |path: &Path| usual.as_ref().is_ok_and(|usual| usual.path() != path);
    match home.path().to_str().filter(|path| elsewhere(home.path()) && is_plain(path)) {
        Some(path) => format!("{called} --home {path}"),
        None => called,
    }
}

fn is_plain(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-/".contains(&b))
}
