//! `ironctl model set`, and the settings that `ironctl model add` takes too.
//!
//! Never checks a bound or the name of a quirk: the host does. See [`super::show`], which prints them.

use super::show;
use crate::at::At;
use crate::client::Client;
use crate::failure::Error;
use ironclaw_operator::{EndpointSetting, EndpointSettings, SettingsOfModel, routes};

/// The word that clears a setting.
const NONE: &str = "none";

/// The value that clears a quirk.
const DEFAULT: &str = "default";

/// The settings of an endpoint.
#[derive(Debug, clap::Args)]
pub struct Options {
    /// Tokens that its model reads, prompt and output together
    #[arg(long, value_name = "TOKENS")]
    context: Option<u64>,
    /// Most tokens of one output [default: model.output_tokens_max]
    #[arg(long, value_name = "TOKENS")]
    output: Option<u32>,
    /// Most bytes of the definitions of tools of MCP servers in a request; with more, the agent gets `find_tools`
    #[arg(long, value_name = "BYTES")]
    tool_definitions: Option<u64>,
    /// A quirk of its server; repeatable (see `ironctl model show`)
    #[arg(long = "quirk", value_name = "NAME=VALUE", value_parser = quirk)]
    quirks: Vec<Quirk>,
}

impl Options {
    /// Returns the settings, with the profile of a preset.
    pub fn settings(self, profile: Option<String>) -> EndpointSettings {
        EndpointSettings {
            output_tokens_max: self.output,
            context_tokens: self.context,
            tool_definitions_bytes_max: self.tool_definitions,
            profile,
            quirks: self.quirks.into_iter().map(|Quirk { name, value }| (name, value)).collect(),
        }
    }
}

/// Options of `ironctl model set`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  ironctl model set ollama --context 8192\n  ironctl model set lab --output 2048 --quirk limit_field=max_completion_tokens\n  ironctl model set lab --output none --quirk limit_field=default\n  ironctl model set lab --forget"
)]
pub struct Args {
    /// Name of the endpoint
    name: String,
    /// Tokens that its model reads, prompt and output together; none if that is not known
    #[arg(long, value_name = "TOKENS|none", value_parser = number)]
    context: Option<Number>,
    /// Most tokens of one output; none for model.output_tokens_max
    #[arg(long, value_name = "TOKENS|none", value_parser = number)]
    output: Option<Number>,
    /// Most bytes of the definitions of tools of MCP servers in a request; none for the setting of the host
    #[arg(long, value_name = "BYTES|none", value_parser = number)]
    tool_definitions: Option<Number>,
    /// Profile of its provider: the name of a preset; none for the one that its URL shows
    #[arg(long, value_name = "PRESET|none")]
    profile: Option<String>,
    /// A quirk of its server; repeatable. The value default clears it
    #[arg(long = "quirk", value_name = "NAME=VALUE", value_parser = quirk)]
    quirks: Vec<Quirk>,
    /// Forget what the host learned from its answers
    #[arg(long)]
    forget: bool,
}

pub async fn run(at: &At, client: &Client, args: Args) -> Result<(), Error> {
    let Args { name, context, output, tool_definitions, profile, quirks, forget } = args;
    let mut change = SettingsOfModel { forget, ..SettingsOfModel::default() };
    let mut clear = |setting: EndpointSetting| change.clear.push(setting.name().to_owned());
    match context {
        Some(Number::To(tokens)) => change.set.context_tokens = Some(tokens),
        Some(Number::None) => clear(EndpointSetting::Context),
        None => {}
    }
    match output {
        // A larger number is over the bound of the host in any case.
        Some(Number::To(tokens)) => change.set.output_tokens_max = Some(u32::try_from(tokens).unwrap_or(u32::MAX)),
        Some(Number::None) => clear(EndpointSetting::Output),
        None => {}
    }
    match tool_definitions {
        Some(Number::To(bytes)) => change.set.tool_definitions_bytes_max = Some(bytes),
        Some(Number::None) => clear(EndpointSetting::ToolDefinitions),
        None => {}
    }
    match profile {
        Some(profile) if profile == NONE => clear(EndpointSetting::Profile),
        profile => change.set.profile = profile,
    }
    for Quirk { name, value } in quirks {
        if value == DEFAULT {
            change.clear.push(name);
        } else {
            change.set.quirks.insert(name, value);
        }
    }
    if change == SettingsOfModel::default() {
        let options = "--context, --output, --tool-definitions, --profile, --quirk or --forget";
        return Err(Error::usage(format!("there is no setting to change of {name}"), format!("name one: {options}")));
    }
    let details = client.post(routes::SET_MODEL_SETTINGS, [&name], &change).await?;
    show::print(at, &details)
}

/// A number, or the word that clears a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Number {
    To(u64),
    None,
}

fn number(text: &str) -> Result<Number, String> {
    match text {
        NONE => Ok(Number::None),
        text => text.parse().map(Number::To).map_err(|_| format!("{text} is neither a number nor {NONE}")),
    }
}

/// A quirk with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Quirk {
    name: String,
    value: String,
}

fn quirk(text: &str) -> Result<Quirk, String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => {
            Ok(Quirk { name: name.to_owned(), value: value.to_owned() })
        }
        Some(_) | None => Err(format!("{text} is not NAME=VALUE, such as limit_field=max_completion_tokens")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_quirks_are_parsed() {
        assert_eq!((number("8192"), number("none")), (Ok(Number::To(8192)), Ok(Number::None)));
        for bad in ["", "-1", "8k", "None"] {
            assert!(number(bad).is_err(), "{bad}");
        }
        let wanted = Quirk { name: "a".to_owned(), value: "b=c".to_owned() };
        assert_eq!(quirk("a=b=c"), Ok(wanted));
        for bad in ["", "a", "a=", "=b"] {
            assert!(quirk(bad).is_err(), "{bad}");
        }
    }
}
