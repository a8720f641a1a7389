//! The model endpoints of the operator, the default endpoint, and the endpoint of each agent.
//!
//! Never opens an endpoint and never holds a key: an endpoint names the secret with the key. See [`ironclaw_model::endpoint`] and
//! `crate::calls::model_socket::endpoints`.

pub mod settings;

use super::agents;
use crate::registry::secrets::{self, SecretName};
use ironclaw_contract::ids::PersonId;
use ironclaw_ledger::Entry;
use ironclaw_model::endpoint::{EndpointSettings, Kind, Prices, Spec};
use ironclaw_model::scripted;
use ironclaw_net::check_url;
use ironclaw_operator::{Bound, DenialCode};
use ironclaw_operator::{DEFAULT_MODEL, LedgerEvent};
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::refusal::{Denied, Refusal};
use ironclaw_store::tables::endpoint_words;
use ironclaw_store::tables::facts::{self, Fact};
use ironclaw_store::tables::models::{self as table, Model};
use ironclaw_text::excerpt::{quoted, start};
use url::Url;

/// Endpoints of one host, besides the built-in one.
const MODELS_MAX: usize = 64;

/// Fallbacks of one endpoint.
const FALLBACKS_MAX: usize = 7;

/// Characters of a provider's name for a model.
const MODEL_CHARACTERS_MAX: usize = 200;

/// Bytes of an address.
const URL_BYTES_MAX: usize = 1024;

/// The highest price of a million tokens, in millionths of the currency: a million of the currency.
const PRICE_MAX: u64 = 1_000_000_000_000;

/// An endpoint in the record.
#[derive(Debug, Clone)]
pub struct Stored {
    pub spec: Spec,
    /// The column with a value that this version cannot read, if any; then the endpoint is not usable.
    pub unreadable: Option<&'static str>,
    /// The time of its creation, milliseconds since the epoch.
    pub created_at: i64,
}

/// The unchecked properties of an endpoint, from an operator.
#[derive(Debug, Clone, Default)]
pub struct EndpointRequest {
    pub name: String,
    /// Its kind, which is its protocol.
    pub kind: String,
    pub base_url: Option<String>,
    /// The provider's name for the model.
    pub model: Option<String>,
    /// The secret that holds its key, with or without `secret:`.
    pub key: Option<String>,
    pub fallbacks: Vec<String>,
    /// The prices of its tokens.
    pub prices: Prices,
    /// `true` if requests ask for streams.
    pub streams: bool,
    /// `true` if its model takes images.
    pub takes_images: bool,
    /// What is set for it in place of the settings of the host and of the profile.
    pub settings: EndpointSettings,
}

/// Checks the properties of an endpoint and returns its specification, without the record.
///
/// # Errors
/// A refusal that names the first error.
pub fn read(wanted: EndpointRequest) -> Result<Spec, Refusal> {
    let EndpointRequest { name, kind, base_url, model, key, fallbacks, prices, streams, takes_images, settings } =
        wanted;
    if !secrets::is_name(&name) {
        let refusal =
            Refusal::new(DenialCode::ModelName, format!("{} is not a valid name of a model endpoint", quoted(name)));
        return Err(refusal.hint("use 1 to 64 characters of a-z, 0-9, - and _, starting with a letter or a digit"));
    }
    if [scripted::NAME, DEFAULT_MODEL].contains(&name.as_str()) {
        let refusal = Refusal::new(DenialCode::ModelName, format!("the name {name} is reserved for the host"));
        return Err(refusal.hint("choose another name"));
    }
    let kind = kind_of(&kind)?;
    if prices.input.max(prices.output) > PRICE_MAX {
        let message = format!("a price of {name} is above the limit of the host");
        return Err(Refusal::new(DenialCode::PriceMalformed, message));
    }
    check_fallbacks(&name, &fallbacks)?;
    settings::check(&name, kind, &settings)?;
    if kind == Kind::Scripted {
        if base_url.is_some() || model.is_some() || key.is_some() || takes_images {
            let message = "an endpoint of kind scripted has no address, no model and no key, and takes no images";
            return Err(Refusal::new(DenialCode::ModelMalformed, message));
        }
        let model = String::new();
        return Ok(Spec {
            name,
            kind,
            base_url: None,
            model,
            key: None,
            fallbacks,
            prices,
            streams,
            takes_images,
            settings,
        });
    }
    let Some(base_url) = base_url else {
        let refusal = Refusal::new(DenialCode::UrlMissing, format!("model endpoint {name} has no address"));
        return Err(refusal.hint("set its address: --base-url URL"));
    };
    let base_url = read_url(&base_url).map_err(|why| {
        let refusal = Refusal::new(DenialCode::UrlRefused, format!("the address of {name} is refused: {why}"));
        refusal.hint("use https://…, or http://… on this machine or in a private network")
    })?;
    let model = model.unwrap_or_default();
    if model.is_empty() || model.chars().count() > MODEL_CHARACTERS_MAX || model.chars().any(char::is_control) {
        let message = format!("the model of {name} is missing, too long, or has control characters");
        let refusal = Refusal::new(DenialCode::ModelIdMalformed, message);
        return Err(refusal.hint("use the provider's name for it: --model ID"));
    }
    let key = key.map(|key| secrets::named(&key)).transpose()?.map(|key| key.as_str().to_owned());
    Ok(Spec { name, kind, base_url: Some(base_url), model, key, fallbacks, prices, streams, takes_images, settings })
}

fn check_fallbacks(name: &str, fallbacks: &[String]) -> Result<(), Refusal> {
    if fallbacks.len() > FALLBACKS_MAX {
        let bound = Bound::new(format!("fallbacks of {name}"), FALLBACKS_MAX, fallbacks.len(), "name fewer fallbacks");
        return Err(Refusal::over(DenialCode::FallbacksTooMany, bound));
    }
    let twice = |at: usize, fallback: &String| fallbacks[..at].contains(fallback);
    match fallbacks.iter().enumerate().find(|(at, fallback)| *fallback == name || twice(*at, fallback)) {
        None => Ok(()),
        Some((_, fallback)) => Err(Refusal::new(
            DenialCode::FallbackTwice,
            format!("{} would be asked twice in the chain of {name}", quoted(fallback)),
        )),
    }
}

fn kind_of(text: &str) -> Result<Kind, Refusal> {
    text.parse().map_err(|_| {
        let shown = start(text, 32);
        let refusal = Refusal::new(DenialCode::KindUnknown, format!("there is no kind of model endpoint {shown:?}"));
        refusal.hint("use openai (any Chat Completions endpoint), anthropic, or scripted")
    })
}

/// Parses an address that may receive prompts and a key.
fn read_url(text: &str) -> Result<Url, String> {
    if text.len() > URL_BYTES_MAX {
        return Err(format!("it is longer than {URL_BYTES_MAX} bytes"));
    }
    let url: Url = text.parse().map_err(|error| format!("it is not a URL ({error})"))?;
    check_url(&url)?;
    Ok(url)
}

/// Returns every stored endpoint, by name.
pub fn models(tx: &ReadTx<'_>) -> Result<Vec<Stored>, ironclaw_state::Error> {
    Ok(table::all(tx)?.into_iter().map(stored_model).collect())
}

/// Converts a row. A row that this version cannot read keeps its name, so that it can be removed and the others can be used.
fn stored_model(row: Model) -> Stored {
    let kind = kind_of(&row.kind).ok();
    let url = row.base_url.map(|text| text.parse::<Url>().ok());
    let (input, output) = (u64::try_from(row.input_price).ok(), u64::try_from(row.output_price).ok());
    let unreadable = match (kind, &url, input, output) {
        (None, _, _, _) => Some("kind"),
        (_, Some(None), _, _) => Some("base_url"),
        (_, _, None, _) => Some("input_price"),
        (_, _, _, None) => Some("output_price"),
        (Some(_), Some(Some(_)) | None, Some(_), Some(_)) => None,
    };
    let spec = Spec {
        name: row.name,
        // Without an address it never gets a request.
        kind: kind.filter(|_| unreadable.is_none()).unwrap_or(Kind::Openai),
        base_url: url.flatten().filter(|_| unreadable.is_none()),
        model: row.model,
        key: row.secret,
        fallbacks: row.fallbacks,
        prices: Prices { input: input.unwrap_or_default(), output: output.unwrap_or_default() },
        streams: row.streams,
        takes_images: row.takes_images,
        settings: row.settings,
    };
    Stored { spec, unreadable, created_at: row.created_at }
}

/// Returns the specification of every stored endpoint, with the reason if it is not usable.
pub fn specs(tx: &ReadTx<'_>) -> Result<Vec<(Spec, Option<String>)>, ironclaw_state::Error> {
    let why = |column| format!("column {column} of the record has a value that this version cannot read");
    Ok(models(tx)?.into_iter().map(|model| (model.spec, model.unreadable.map(why))).collect())
}

/// Returns the stored endpoint of this name.
pub fn find(tx: &ReadTx<'_>, name: &str) -> Result<Option<Stored>, ironclaw_state::Error> {
    Ok(models(tx)?.into_iter().find(|model| model.spec.name == name))
}

/// Checks that there is an endpoint of this name.
///
/// # Errors
/// Refuses an unknown name, and lists the endpoints.
pub fn known(tx: &ReadTx<'_>, name: &str) -> Result<(), Denied> {
    let mut names: Vec<String> = models(tx)?.into_iter().map(|model| model.spec.name).collect();
    names.push(scripted::NAME.to_owned());
    if names.iter().any(|known| known == name) {
        return Ok(());
    }
    let refusal = Refusal::new(DenialCode::ModelUnknown, format!("there is no model endpoint {}", quoted(name)));
    Err(refusal.hint(format!("known: {}; `ironctl model add` makes one", names.join(", "))).into())
}

/// Returns the refusal for a taken name.
pub fn exists(name: &str) -> Refusal {
    let refusal = Refusal::new(DenialCode::ModelExists, format!("there is a model endpoint {name} already"));
    refusal.hint("choose another name, or replace it with --replace")
}

/// Returns the name of the default endpoint.
pub fn default(tx: &ReadTx<'_>) -> Result<String, ironclaw_state::Error> {
    Ok(facts::get(tx, Fact::DefaultModel)?.unwrap_or_else(|| scripted::NAME.to_owned()))
}

/// Stores an endpoint; with `replace`, it replaces the one of the same name.
///
/// # Errors
/// Refuses a taken name, an endpoint beyond the bound, and an unknown fallback or secret.
pub fn keep(tx: &mut WriteTx<'_>, spec: &Spec, replace: bool, by: PersonId) -> Result<(), Denied> {
    let all = models(tx)?;
    let before = all.iter().find(|model| model.spec.name == spec.name);
    if before.is_some() && !replace {
        return Err(exists(&spec.name).into());
    }
    if before.is_none() && all.len() >= MODELS_MAX {
        let remedy = "remove some: `ironctl model list`, `ironctl model remove`";
        let bound = Bound::new("model endpoints of this host", MODELS_MAX, all.len(), remedy);
        return Err(Refusal::over(DenialCode::ModelsTooMany, bound).into());
    }
    for fallback in &spec.fallbacks {
        known(tx, fallback)?;
    }
    if let Some(key) = spec.key.as_deref().and_then(|key| key.parse::<SecretName>().ok())
        && secrets::find(tx, &key)?.is_none()
    {
        return Err(secrets::unknown(&key).into());
    }
    let created_at = before.map_or(tx.now(), |before| before.created_at);
    let what = if before.is_some() { LedgerEvent::ModelChanged } else { LedgerEvent::ModelAdded };
    let price = |price: u64| i64::try_from(price).expect("prices are bounded where they are read");
    let base_url = spec.base_url.as_ref().map(Url::as_str);
    table::delete(tx, &spec.name)?;
    let row = Model {
        name: spec.name.clone(),
        kind: spec.kind.name().to_owned(),
        base_url: base_url.map(str::to_owned),
        model: spec.model.clone(),
        secret: spec.key.clone(),
        input_price: price(spec.prices.input),
        output_price: price(spec.prices.output),
        streams: spec.streams,
        takes_images: spec.takes_images,
        settings: spec.settings.clone(),
        created_at,
        fallbacks: spec.fallbacks.clone(),
    };
    table::insert(tx, &row)?;
    Entry::new(what)
        .with("name", spec.name.clone())
        .with("kind", spec.kind.name())
        .with("base_url", base_url)
        .with("model", spec.model.clone())
        .with("secret", spec.key.clone())
        .with("fallbacks", spec.fallbacks.clone())
        .with("settings", settings::recorded(&spec.settings))
        .with("by", by)
        .append(tx)?;
    Ok(())
}

/// Returns the name of a requested endpoint, and whether the request was for the default.
///
/// # Errors
/// Refuses an endpoint that does not exist.
pub fn choose(tx: &ReadTx<'_>, wanted: Option<&str>) -> Result<(String, bool), Denied> {
    match wanted {
        None | Some(DEFAULT_MODEL) => Ok((default(tx)?, true)),
        Some(name) => known(tx, name).map(|()| (name.to_owned(), false)),
    }
}

/// Returns whether requests may reach this endpoint: it is an agent's, the default, or a fallback.
pub fn is_in_use(tx: &ReadTx<'_>, name: &str) -> Result<bool, ironclaw_state::Error> {
    let behind = |model: &Stored| model.spec.fallbacks.iter().any(|fallback| fallback == name);
    Ok(default(tx)? == name || agents(tx)?.iter().any(|agent| agent.model == name) || models(tx)?.iter().any(behind))
}

/// Removes an unused endpoint.
///
/// # Errors
/// Refuses an unknown endpoint, the built-in one, the default, and one that agents or other endpoints use.
pub fn remove(tx: &mut WriteTx<'_>, name: &str, by: PersonId) -> Result<(), Denied> {
    known(tx, name)?;
    let in_use = |message: String, hint: String| Err(Refusal::new(DenialCode::ModelInUse, message).hint(hint).into());
    if name == scripted::NAME {
        return in_use("the endpoint scripted is built into the host and cannot be removed".to_owned(), String::new());
    }
    let users: Vec<String> = agents(tx)?.into_iter().filter(|agent| agent.model == name).map(|one| one.name).collect();
    let behind = models(tx)?.into_iter().filter(|model| model.spec.fallbacks.iter().any(|fallback| fallback == name));
    let behind: Vec<String> = behind.map(|model| model.spec.name).collect();
    if default(tx)? == name {
        let hint = "make another one the default first: `ironctl model default scripted`".to_owned();
        return in_use(format!("model endpoint {name} is the default"), hint);
    }
    if let [first, ..] = users.as_slice() {
        let hint = format!("give them another one first: `ironctl agent set {first} --model default`");
        return in_use(format!("model endpoint {name} is in use by agent {}", users.join(", ")), hint);
    }
    if !behind.is_empty() {
        let hint = "replace these without it first: `ironctl model add … --replace`".to_owned();
        return in_use(format!("model endpoint {name} is the fallback of {}", behind.join(", ")), hint);
    }
    table::delete(tx, name)?;
    endpoint_words::delete_of_endpoint(tx, name)?;
    Entry::new(LedgerEvent::ModelRemoved).with("name", name).with("by", by).append(tx)?;
    Ok(())
}

/// Returns the users of a secret, for people: `model openai`.
pub fn using_secret(tx: &ReadTx<'_>, name: &SecretName) -> Result<Vec<String>, ironclaw_state::Error> {
    Ok(table::with_secret(tx, name.as_str())?.into_iter().map(|model| format!("model {model}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> EndpointRequest {
        EndpointRequest {
            name: "local".to_owned(),
            kind: "openai".to_owned(),
            base_url: Some("http://127.0.0.1:11434/v1".to_owned()),
            model: Some("llama3.2".to_owned()),
            ..EndpointRequest::default()
        }
    }

    #[track_caller]
    fn refused(wanted: EndpointRequest, code: DenialCode) {
        assert_eq!(read(wanted).expect_err(code.name()).code, code);
    }

    #[test]
    fn malformed_endpoint_properties_are_refused_by_name() {
        for name in ["", "Local", "scripted", "default", "a b", "-a"] {
            refused(EndpointRequest { name: name.to_owned(), ..wanted() }, DenialCode::ModelName);
        }
        refused(EndpointRequest { kind: "azure".to_owned(), ..wanted() }, DenialCode::KindUnknown);
        refused(EndpointRequest { base_url: None, ..wanted() }, DenialCode::UrlMissing);
        for model in [None, Some(String::new()), Some("a\nb".to_owned()), Some("m".repeat(201))] {
            refused(EndpointRequest { model, ..wanted() }, DenialCode::ModelIdMalformed);
        }
        refused(EndpointRequest { key: Some("sk-Zinnober".to_owned()), ..wanted() }, DenialCode::SecretName);
        for fallbacks in [vec!["local".to_owned()], vec!["a".to_owned(), "a".to_owned()]] {
            refused(EndpointRequest { fallbacks, ..wanted() }, DenialCode::FallbackTwice);
        }
        refused(EndpointRequest { fallbacks: vec!["a".to_owned(); 8], ..wanted() }, DenialCode::FallbacksTooMany);
        refused(
            EndpointRequest { prices: Prices { input: PRICE_MAX + 1, output: 0 }, ..wanted() },
            DenialCode::PriceMalformed,
        );
        refused(EndpointRequest { kind: "scripted".to_owned(), ..wanted() }, DenialCode::ModelMalformed);
        let script = EndpointRequest { base_url: None, model: None, kind: "scripted".to_owned(), ..wanted() };
        refused(EndpointRequest { takes_images: true, ..script }, DenialCode::ModelMalformed);
        let spec = read(EndpointRequest { key: Some("secret:local".to_owned()), ..wanted() }).expect("an endpoint");
        assert_eq!((spec.kind, spec.key.as_deref()), (Kind::Openai, Some("local")));
    }

    #[test]
    fn an_address_that_a_key_must_not_go_to_is_refused() {
        for far in [
            "http://8.8.8.8/v1",
            "http://169.254.169.254/v1",
            "ftp://127.0.0.1/",
            "https://user:word@api.example.com/",
            "https://api.example.com/v1?key=a",
            "api.example.com",
            "",
        ] {
            refused(EndpointRequest { base_url: Some(far.to_owned()), ..wanted() }, DenialCode::UrlRefused);
        }
    }
}
