//! `ironctl model show`: prints all that the host knows about an endpoint.
//!
//! Never prints a key: an endpoint names the secret. See [`super::settings`], which changes its settings.

use crate::at::At;
use crate::client::Client;
use crate::clock;
use crate::commands::{usage, why};
use crate::failure::Error;
use ironclaw_operator::{Model, ModelDetails, ModelQuirk, routes};

pub async fn run(at: &At, client: &Client, name: &str) -> Result<(), Error> {
    print(at, &client.call(routes::MODEL, [&name]).await?)
}

/// Prints an endpoint with its settings and quirks.
pub fn print(at: &At, details: &ModelDetails) -> Result<(), Error> {
    at.out.json(details)?;
    at.out.table(["ENDPOINT", &details.model.name], rows(details))?;
    if !details.quirks.is_empty() {
        at.out.line("")?;
        at.out.table(["QUIRK", "VALUE", "FROM"], details.quirks.iter().map(quirk))?;
    }
    if let Some(small) = &details.small_context {
        at.out.line(&small.sentence)?;
    }
    why::endpoint_words(at.out, &details.last_words)
}

fn quirk(quirk: &ModelQuirk) -> [String; 3] {
    let times = [("since", &quirk.learned_at), ("expires", &quirk.expires_at)];
    let times =
        times.into_iter().filter_map(|(word, at)| Some(format!("{word} {}", clock::to_the_minute(at.as_ref()?))));
    let source = std::iter::once(quirk.source.clone()).chain(times).collect::<Vec<_>>().join(", ");
    [quirk.name.clone(), quirk.value.clone(), source]
}

fn rows(details: &ModelDetails) -> Vec<[String; 2]> {
    let Model { settings, .. } = &details.model;
    let mut rows = endpoint_rows(&details.model);
    let mut add = |what: &str, value: String| rows.push([what.to_owned(), value]);
    add("profile", details.profile.clone().unwrap_or_else(|| "none: the host does not know this provider".to_owned()));
    add("context", settings.context_tokens.map_or("not known".to_owned(), |tokens| format!("{tokens} tokens")));
    let output = settings.output_tokens_max.map(|tokens| format!("at most {tokens} tokens"));
    add("output", output.unwrap_or_else(|| "as in model.output_tokens_max".to_owned()));
    let definitions = settings.tool_definitions_bytes_max.map(|bytes| format!("at most {bytes} bytes"));
    add("tool definitions", definitions.unwrap_or_else(|| "as in turn.tools_bytes_max".to_owned()));
    rows
}

fn endpoint_rows(model: &Model) -> Vec<[String; 2]> {
    let mut rows = Vec::new();
    let mut add = |what: &str, value: String| rows.push([what.to_owned(), value]);
    add("kind", model.kind.to_string());
    if let Some(base_url) = &model.base_url {
        add("url", base_url.clone());
    }
    if !model.model.is_empty() {
        add("model", model.model.clone());
    }
    add("key", model.key.clone().unwrap_or_else(|| "none".to_owned()));
    if !model.fallbacks.is_empty() {
        add("fallbacks", model.fallbacks.join(" "));
    }
    add(
        "prices",
        match (model.input_price_micros, model.output_price_micros) {
            (0, 0) => "none".to_owned(),
            (input, output) => {
                format!("{} in, {} out, for a million tokens", usage::money(input), usage::money(output))
            }
        },
    );
    add("asks for", if model.streams { "streams" } else { "whole answers" }.to_owned());
    add("images", if model.images { "yes" } else { "no" }.to_owned());
    if model.default {
        add("default", "yes".to_owned());
    }
    if !model.agents.is_empty() {
        add("agents", model.agents.join(" "));
    }
    if let Some(broken) = &model.broken {
        add("cannot be used", broken.clone());
    }
    rows
}
