//! `ironctl model`: adds, lists, tests and removes model endpoints, and says which is the default.
//!
//! Never asks a provider itself and never holds a key longer than it takes to hand it to the host. See
//! [`crate::commands::model::add`], [`crate::commands::agent`] for which agent uses which.

mod add;

use super::{At, propose};
use crate::failure::Error;
use crate::output::Output;
use clap::Subcommand;
use ironclaw_contract::operator::{ChangeKind, KeptModel, Model, TestedModel};
use serde_json::json;

/// What to do with model endpoints.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Add an endpoint: tested first, kept only if it answers
    Add(Box<add::Args>),
    /// List the endpoints
    #[command(after_help = "Example:\n  ironctl model list")]
    List,
    /// List the providers and local servers that `add` knows by name
    #[command(after_help = "Example:\n  ironctl model presets")]
    Presets,
    /// Make one small request to an endpoint
    #[command(after_help = "Example:\n  ironctl model test openai")]
    Test {
        /// Its name
        name: String,
    },
    /// Give an endpoint to every agent for which none was chosen, and to new ones
    #[command(after_help = "Example:\n  ironctl model default openai")]
    Default {
        /// Its name
        name: String,
    },
    /// Remove an endpoint that nobody uses
    #[command(after_help = "Example:\n  ironctl model remove openai --yes")]
    Remove {
        /// Its name
        name: String,
        /// Do it without asking
        #[arg(long)]
        yes: bool,
    },
}

/// Does it.
pub async fn run(at: &At, action: Action) -> Result<(), Error> {
    let client = at.client()?;
    match action {
        Action::Add(args) => add::run(at, &client, *args).await,
        Action::List => {
            let models = client.models().await?;
            at.out.json(&models)?;
            table(at.out, models)
        }
        Action::Presets => {
            let presets = client.presets().await?;
            at.out.json(&presets)?;
            let rows = presets.into_iter().map(|preset| {
                let key = preset.key_variable.map_or("none", |_| "asked for");
                [preset.name, preset.kind, preset.model.unwrap_or_default(), preset.base_url, key.to_owned()]
            });
            at.out.table(["PRESET", "KIND", "MODEL", "WHERE", "KEY"], rows)
        }
        Action::Test { name } => {
            at.out.remark(format!("asking {name} for one small output"))?;
            let tested = client.test_model(&name).await?;
            at.out.json(&tested)?;
            at.out.line(said(&tested))
        }
        Action::Default { name } => {
            let kept = match client.default_model(&name).await {
                Ok(kept) => kept,
                Err(refused) => {
                    let settings = json!({ "default_model": name });
                    return Err(propose::instead(at, &client, refused, ChangeKind::Settings, None, settings).await);
                }
            };
            at.out.json(&kept)?;
            at.out.line(default(&kept))
        }
        Action::Remove { name, yes } => {
            at.out.confirm(&format!("remove model endpoint {name}"), yes)?;
            let model = client.remove_model(&name).await?;
            at.out.json(&model)?;
            at.out.line(format!("removed model endpoint {}", model.name))?;
            match model.key {
                Some(key) => at.out.remark(format!("its key is still stored: {key}")),
                None => Ok(()),
            }
        }
    }
}

/// Returns the answer of an endpoint to its test.
fn said(tested: &TestedModel) -> String {
    let TestedModel { name, took_ms, input_tokens, output_tokens, said } = tested;
    let words = if said.is_empty() { "no words".to_owned() } else { format!("{said:?}") };
    format!("{name} answered in {took_ms} ms ({input_tokens} tokens in, {output_tokens} out): {words}")
}

/// Returns that an endpoint is the default, and the agents that use it now because of that.
fn default(kept: &KeptModel) -> String {
    let name = &kept.model.name;
    match kept.moved.as_slice() {
        [] => format!("{name} is the default now"),
        moved => format!("{name} is the default now, also for {}", moved.join(", ")),
    }
}

fn table(out: Output, models: Vec<Model>) -> Result<(), Error> {
    let broken: Vec<String> = models
        .iter()
        .filter_map(|model| model.broken.as_ref().map(|why| format!("{} cannot be asked: {why}", model.name)))
        .collect();
    let rows = models.into_iter().map(|model| {
        [
            model.name,
            if model.broken.is_some() { "broken".to_owned() } else { model.kind },
            model.model,
            model.base_url.unwrap_or_default(),
            model.key.unwrap_or_default(),
            model.fallbacks.join(" "),
            if model.default { "default".to_owned() } else { String::new() },
            model.agents.join(" "),
        ]
    });
    out.table(["NAME", "KIND", "MODEL", "WHERE", "KEY", "FALLBACKS", "DEFAULT", "AGENTS"], rows)?;
    broken.into_iter().try_for_each(|why| out.remark(why))
}
