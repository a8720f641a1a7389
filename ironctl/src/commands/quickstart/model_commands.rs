//! The commands that add a real model, for the end of `ironctl quickstart`.
//!
//! Never adds a model and never reads a key: it lists the models of a local server and checks that a variable is set. See
//! [`crate::probe`] and `crate::commands::model::add`.

use crate::at::At;
use crate::failure::Error;
use crate::own_command::own_command;
use crate::probe;
use ironclaw_operator::ModelPreset;
use serde::Serialize;
use std::env;

/// A command that adds a real model.
#[derive(Debug, Serialize)]
pub struct ModelCommand {
    /// The command to type.
    pub command: String,
    /// The reason on this machine; empty if there is none.
    pub found: String,
}

/// Returns commands for local servers, which need no key and send no data to another machine, then for keys.
pub async fn find(at: &At, presets: &[ModelPreset]) -> Vec<ModelCommand> {
    let me = own_command(&at.home);
    let mut found: Vec<ModelCommand> = Vec::new();
    for (preset, model) in probe::local_servers(presets).await {
        let ModelPreset { name, base_url, .. } = preset;
        found.push(ModelCommand {
            command: format!("{me} model add {name} --model {model} --default"),
            found: format!("a model server answers at {base_url} and has {model}"),
        });
    }
    for preset in presets {
        let Some(variable) = preset.key_variable.as_deref() else { continue };
        if env::var_os(variable).is_some_and(|value| !value.is_empty()) {
            let model = if preset.model.is_some() { "" } else { " --model ID" };
            found.push(ModelCommand {
                command: format!("{me} model add {}{model} --key-env {variable} --default", preset.name),
                found: format!("{variable} is set"),
            });
        }
    }
    if found.is_empty() {
        found.push(ModelCommand { command: format!("{me} model add openai --default"), found: String::new() });
    }
    found
}

/// Prints the commands and their reasons.
pub fn print(at: &At, agent: &str, commands: &[ModelCommand]) -> Result<(), Error> {
    at.out.line("\nThe answer came from a script, not from an AI model. To add a model, type:")?;
    for one in commands {
        at.out.line(format!("  {}", one.command))?;
    }
    let seen: Vec<&str> = commands.iter().map(|one| one.found.as_str()).filter(|seen| !seen.is_empty()).collect();
    if seen.is_empty() {
        return at.out.line(format!(
            "It asks for the key. In place of openai, use anthropic, openrouter, …, or for a\n\
             server on this machine ollama, llamacpp, vllm or lmstudio. All names:\n  {} model presets",
            own_command(&at.home)
        ));
    }
    at.out.line(format!(
        "Found but not used: {}. {agent} will use a new default, because it follows the default.",
        seen.join("; ")
    ))
}
