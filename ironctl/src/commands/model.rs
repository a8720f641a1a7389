//! `ironctl model`: adds, shows, tests and removes model endpoints, sets their settings, and sets the default.
//!
//! Never connects to a provider itself, and keeps a key only until the host has it. See [`crate::commands::model::add`], and
//! [`crate::commands::agent`] for the endpoint of an agent.

mod add;
mod notice;
mod settings;
mod show;

use super::propose;
use crate::at::At;
use crate::failure::Error;
use crate::output::Output;
use clap::Subcommand;
use ironclaw_operator::{ChangeKind, Model, routes};
use notice::{default_notice, test_result};
use serde_json::json;

/// The verbs of `ironctl model`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Add an endpoint; the host tests it first and adds it only if it answers
    Add(Box<add::Args>),
    /// List endpoints
    #[command(after_help = "Example:\n  ironctl model list")]
    List,
    /// Show an endpoint: its address, its settings, and the quirks of its server with their origin
    #[command(after_help = "Example:\n  ironctl model show ollama\n  ironctl --json model show ollama")]
    Show {
        /// Name of the endpoint
        name: String,
    },
    /// Set or clear settings of an endpoint; the rest of it stays
    Set(Box<settings::Args>),
    /// List the presets of `add`: providers and local servers
    #[command(after_help = "Example:\n  ironctl model presets")]
    Presets,
    /// Send a small request to an endpoint
    #[command(after_help = "Example:\n  ironctl model test openai")]
    Test {
        /// Name of the endpoint
        name: String,
    },
    /// Set the default endpoint, for new agents and for agents that follow the default
    #[command(after_help = "Example:\n  ironctl model default openai")]
    Default {
        /// Name of the endpoint
        name: String,
    },
    /// Remove an endpoint that no agent uses
    #[command(after_help = "Example:\n  ironctl model remove openai --yes")]
    Remove {
        /// Name of the endpoint
        name: String,
        /// Remove it without a confirmation
        #[arg(long)]
        yes: bool,
    },
}

pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    let client = at.client()?;
    match action {
        Action::Add(args) => add::run(at, &client, *args).await,
        Action::List => {
            let models = client.call(routes::MODELS, []).await?;
            at.out.json(&models)?;
            table(at.out, models)
        }
        Action::Show { name } => show::run(at, &client, &name).await,
        Action::Set(args) => settings::run(at, &client, *args).await,
        Action::Presets => {
            let presets = client.call(routes::PRESETS, []).await?;
            at.out.json(&presets)?;
            let rows = presets.into_iter().map(|preset| {
                let key = preset.key_variable.map_or("none", |_| "prompted");
                [
                    preset.name,
                    preset.kind.to_string(),
                    preset.model.unwrap_or_default(),
                    preset.base_url,
                    key.to_owned(),
                ]
            });
            at.out.table(["PRESET", "KIND", "MODEL", "URL", "KEY"], rows)
        }
        Action::Test { name } => {
            at.out.remark(format!("sending a small request to {name}"))?;
            let tested = client.call(routes::TEST_MODEL, [&name]).await?;
            at.out.result(&tested, test_result(&tested))
        }
        Action::Default { name } => {
            let kept = match client.call(routes::SET_DEFAULT_MODEL, [&name]).await {
                Ok(kept) => kept,
                Err(refused) => {
                    let settings = json!({ "default_model": name });
                    return Err(propose::instead(at, &client, refused, ChangeKind::Settings, None, settings).await);
                }
            };
            at.out.result(&kept, default_notice(&kept))
        }
        Action::Remove { name, yes } => {
            at.out.confirm(&format!("remove model endpoint {name}"), yes)?;
            let model = client.call(routes::REMOVE_MODEL, [&name]).await?;
            at.out.json(&model)?;
            at.out.line(format!("removed model endpoint {}", model.name))?;
            match model.key {
                Some(key) => at.out.remark(format!("its key is still stored: {key}")),
                None => Ok(()),
            }
        }
    }
}

fn table(out: Output, models: Vec<Model>) -> Result<(), Error> {
    let broken: Vec<String> = models
        .iter()
        .filter_map(|model| model.broken.as_ref().map(|why| format!("{} cannot be used: {why}", model.name)))
        .collect();
    let rows = models.into_iter().map(|model| {
        [
            model.name,
            if model.broken.is_some() { "broken".to_owned() } else { model.kind.to_string() },
            model.model,
            model.base_url.unwrap_or_default(),
            model.key.unwrap_or_default(),
            model.fallbacks.join(" "),
            if model.default { "default".to_owned() } else { String::new() },
            model.agents.join(" "),
        ]
    });
    let columns = ["NAME", "KIND", "MODEL", "URL", "KEY", "FALLBACKS", "DEFAULT", "AGENTS"];
    out.table(columns, rows)?;
    broken.into_iter().try_for_each(|why| out.remark(why))
}
