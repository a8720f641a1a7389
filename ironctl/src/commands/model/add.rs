//! `ironctl model add`: fills in the values of a preset, asks for a missing key, and sends the endpoint to the host.
//!
//! Uses a key of the environment only with `--key-env`, and stores nothing itself. See `host/src/api/models.rs`, which tests an
//! endpoint before it adds it.

use super::notice::{context_notice, default_notice, test_result};
use super::settings;
use crate::at::At;
use crate::client::Client;
use crate::commands::usage;
use crate::failure::Error;
use crate::probe;
use crate::secret_input::{self, Typed};
use ironclaw_operator::{KeptModel, ModelPreset, NewModel, SecretValue, routes};
use std::env;

/// Options of `ironctl model add`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl model add openai --default\n  ironctl model add ollama --model llama3.2 --default\n  ironctl model add lab --kind openai --base-url http://10.0.0.7:8000/v1 --model qwen3 --fallback openai\n  ironctl model add anthropic --key-env ANTHROPIC_API_KEY --price-in 3 --price-out 15"
)]
pub struct Args {
    /// Name of the endpoint; the name of a preset fills in its values (see `ironctl model presets`)
    name: String,
    /// Protocol: openai (Chat Completions of any server), anthropic (Messages), or scripted
    #[arg(long)]
    kind: Option<String>,
    /// Base URL of the API, without the path of a request [e.g. http://127.0.0.1:8000/v1]
    #[arg(long, value_name = "URL")]
    base_url: Option<String>,
    /// Name of the model at the provider [default: as in the preset, or the first model of a local server]
    #[arg(long, value_name = "ID")]
    model: Option<String>,
    /// Stored secret with the key [default: prompt for it, and store it under the name of the endpoint]
    #[arg(long, value_name = "secret:NAME", conflicts_with_all = ["key_env", "no_key"])]
    key: Option<String>,
    /// Environment variable with the key, which is stored
    #[arg(long, value_name = "VARIABLE", conflicts_with = "no_key")]
    key_env: Option<String>,
    /// The endpoint needs no key
    #[arg(long)]
    no_key: bool,
    /// Endpoint to use if this one cannot answer; repeatable, in order
    #[arg(long = "fallback", value_name = "NAME")]
    fallbacks: Vec<String>,
    /// Price of a million input tokens, in your currency
    #[arg(long, value_name = "PRICE", value_parser = price, requires = "price_out")]
    price_in: Option<u64>,
    /// Price of a million output tokens
    #[arg(long, value_name = "PRICE", value_parser = price, requires = "price_in")]
    price_out: Option<u64>,
    /// Request whole answers, not streams
    #[arg(long)]
    no_stream: bool,
    /// The model takes images: send it the pictures of `chat --file`
    #[arg(long)]
    images: bool,
    /// Make it the default, for new agents and for agents that follow the default
    #[arg(long)]
    default: bool,
    /// Fill in the values of this preset, under another name
    #[arg(long, value_name = "PRESET")]
    preset: Option<String>,
    #[command(flatten)]
    settings: settings::Options,
    /// Replace the endpoint of this name
    #[arg(long)]
    replace: bool,
    /// Add it without a test
    #[arg(long)]
    no_test: bool,
}

pub async fn run(at: &At, client: &Client, args: Args) -> Result<(), Error> {
    let presets = client.call(routes::PRESETS, []).await?;
    let preset = preset_of(&args, &presets)?;
    let Some(kind) = args.kind.clone().or_else(|| preset.map(|preset| preset.kind.to_string())) else {
        let known: Vec<&str> = presets.iter().map(|preset| preset.name.as_str()).collect();
        let why = match known.contains(&args.name.as_str()) {
            true => format!(
                "--base-url names another server than the preset {0}; for its other values add --preset {0}",
                args.name
            ),
            false => format!("{} is not a preset", args.name),
        };
        return Err(Error::usage(
            format!("the kind of {} is missing: {why}", args.name),
            format!("name it with --kind openai, anthropic or scripted; or use a preset: {}", known.join(", ")),
        ));
    };
    // Without a URL, the preset with the name of the kind applies.
    let preset = preset.or_else(|| presets.iter().find(|one| args.base_url.is_none() && one.name == kind));
    let base_url = args.base_url.clone().or_else(|| preset.map(|preset| preset.base_url.clone()));
    let model = match args.model.clone().or_else(|| preset?.model.clone()) {
        None => first_model(at, base_url.as_deref()).await?,
        named => named,
    };
    // The address no longer shows the preset.
    let profile = args.preset.clone().filter(|_| args.base_url.is_some());
    let (key, key_value) = match &base_url {
        None => (args.key.clone(), None),
        Some(base_url) => key_of(at, client, &args, preset, base_url).await?,
    };
    let wanted = NewModel {
        name: args.name,
        kind,
        base_url,
        model,
        key,
        key_value,
        fallbacks: args.fallbacks,
        input_price_micros: args.price_in.unwrap_or(0),
        output_price_micros: args.price_out.unwrap_or(0),
        streams: !args.no_stream,
        images: args.images,
        settings: args.settings.settings(profile),
        default: args.default,
        replace: args.replace,
        test: !args.no_test,
    };
    if wanted.test {
        let place = wanted.base_url.as_deref().unwrap_or(&wanted.kind);
        at.out.remark(format!("sending a small request to {place}"))?;
    }
    let kept = client.post(routes::ADD_MODEL, [], &wanted).await?;
    print(at, client, &kept).await
}

/// Prints the added endpoint, the result of its test, and a missing price.
async fn print(at: &At, client: &Client, kept: &KeptModel) -> Result<(), Error> {
    at.out.json(kept)?;
    if let Some(tested) = &kept.tested {
        at.out.line(test_result(tested))?;
    }
    let model = &kept.model;
    let key = model.key.as_deref().map(|key| format!(" with {key}")).unwrap_or_default();
    let place = model.base_url.as_deref().map(|url| format!(" at {url}")).unwrap_or_default();
    let what = if model.model.is_empty() { model.kind.name() } else { &model.model };
    if let Some(notice) = context_notice(kept) {
        at.out.line(notice)?;
    }
    let images = if model.images { ", takes images" } else { "" };
    at.out.line(format!("added model endpoint {}: {what}{place}{key}{images}", model.name))?;
    for agent in &model.agents {
        if usage::unpriced(client, agent).await?.contains(&model.name) {
            usage::remark_unpriced(at.out, std::slice::from_ref(&model.name))?;
            break;
        }
    }
    match model.default {
        true => at.out.line(default_notice(kept)),
        false => at.out.remark(format!("use it: ironctl agent set AGENT --model {}", model.name)),
    }
}

/// Returns the named preset, or the preset with the name of the endpoint.
fn preset_of<'a>(args: &Args, presets: &'a [ModelPreset]) -> Result<Option<&'a ModelPreset>, Error> {
    let find = |name: &str| presets.iter().find(|preset| preset.name == name);
    match &args.preset {
        Some(name) => match find(name) {
            Some(preset) => Ok(Some(preset)),
            None => {
                let known: Vec<&str> = presets.iter().map(|preset| preset.name.as_str()).collect();
                Err(Error::usage(format!("there is no preset {name}"), format!("known: {}", known.join(", "))))
            }
        },
        // A named URL means another server than the one of the preset.
        None if args.base_url.is_some() => Ok(None),
        None => Ok(find(&args.name).filter(|preset| args.kind.as_ref().is_none_or(|kind| kind == preset.kind.name()))),
    }
}

/// Returns the first model of a server on this machine; for another server the model must be named.
async fn first_model(at: &At, base_url: Option<&str>) -> Result<Option<String>, Error> {
    let Some(base_url) = base_url else { return Ok(None) };
    match probe::first_model(base_url).await {
        Some(model) => {
            at.out.remark(format!("using {model}, the first model at {base_url}"))?;
            Ok(Some(model))
        }
        None if base_url.starts_with("http://") => {
            Err(Error::failed("model_id_missing", format!("no model is named, and {base_url} lists none"))
                .hinting("start the server, or name the model: --model ID"))
        }
        None => Err(Error::usage("no model is named", "use the name of the provider: --model ID")),
    }
}

/// Returns the name of the secret with the key, and its value if it must be stored now.
async fn key_of(
    at: &At,
    client: &Client,
    args: &Args,
    preset: Option<&ModelPreset>,
    base_url: &str,
) -> Result<(Option<String>, Option<SecretValue>), Error> {
    if args.key.is_some() {
        return Ok((args.key.clone(), None));
    }
    let own = format!("secret:{}", args.name);
    if let Some(variable) = &args.key_env {
        return match env::var(variable) {
            Ok(key) if !key.is_empty() => Ok((Some(own), Some(SecretValue::new(key.trim().to_owned())))),
            _ => Err(Error::usage(format!("{variable} is not set"), "set it, or omit --key-env to be prompted")),
        };
    }
    let needs_key = match preset {
        Some(preset) => preset.key_variable.is_some(),
        None => base_url.starts_with("https://"),
    };
    if args.no_key || !needs_key {
        return Ok((None, None));
    }
    if client.call(routes::SECRETS, []).await?.iter().any(|secret| secret.name == args.name) {
        at.out.remark(format!("using the stored key {own}"))?;
        return Ok((Some(own), None));
    }
    let variable = preset.and_then(|preset| preset.key_variable.as_deref());
    if let Some(variable) = variable.filter(|variable| env::var_os(variable).is_some_and(|value| !value.is_empty())) {
        at.out.remark(format!("{variable} is set but not used; to use it: --key-env {variable}"))?;
    }
    let typed = if args.no_test { Typed::Twice } else { Typed::Once };
    let value = secret_input::read(&format!("the key of {} (--no-key if it needs none)", args.name), typed)?;
    Ok((Some(own), Some(value)))
}

/// Parses a price such as `2.5`, in millionths.
fn price(text: &str) -> Result<u64, String> {
    let price = usage::micros(text).filter(|_| !text.ends_with('.'));
    price.ok_or_else(|| format!("{text} is not a price such as 3 or 0.25"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn price_is_in_millionths_and_never_rounded() {
        assert_eq!(price("3"), Ok(3_000_000));
        assert_eq!(price("0.25"), Ok(250_000));
        assert_eq!(price("15.000001"), Ok(15_000_001));
        for none in ["", "-1", "1.", ".5", "1,5", "1e3", "0.0000001", "99999999999999999999", "three"] {
            assert!(price(none).is_err(), "{none}");
        }
    }
}
