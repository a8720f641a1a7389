//! Model endpoints over the API: add after a test, list, test, set as the default, remove.
//!
//! Only an owner decides on the destination of a secret. An endpoint whose test fails leaves no trace, not even the key that came with it.
//! See `registry::models`, `calls::model_socket::endpoints`.

mod details;

pub use details::{set, show};

use super::auth::Current;
use super::handler::{Answer, Api, Body, Caller, Reply};
use crate::gateway::decide;
use crate::gateway::waiting::Gateway;
use crate::registry::models::{self, EndpointRequest, Stored, settings};
use crate::registry::people::{record_refusal, refuse};
use crate::registry::policy::Policy;
use crate::registry::secrets::{self, PREFIX, SecretName};
use crate::registry::{self, Giver, Person};
use axum::Json;
use axum::extract::{Path, State};
use ironclaw_contract::seam::change::{ChangeKind, Settings};
use ironclaw_model::endpoint::{Endpoints, Prices, Probe, Spec};
use ironclaw_model::fault::Fault;
use ironclaw_model::profile;
use ironclaw_operator::DenialCode;
use ironclaw_operator::{EndpointSettings, KeptModel, LedgerEvent, Model, ModelPreset, NewModel, TestedModel};
use ironclaw_state::keys::SecretText;
use ironclaw_state::{ReadTx, WriteTx};
use ironclaw_store::record::Record;
use ironclaw_store::refusal::{Decide, Denied, Refusal};
use std::convert::Infallible;
use std::sync::Arc;

/// Characters of an endpoint's reply to its test.
const SAID_CHARACTERS_MAX: usize = 200;

/// The ledger event for a refused change.
const REFUSED: LedgerEvent = LedgerEvent::ModelChangeRefused;

/// `GET /v1/models`
pub async fn list(State(api): State<Api>) -> Reply<Vec<Model>> {
    let mut models = api.state().read(all).await?;
    add_faults(&api.models.current(), &mut models);
    Ok(Json(models))
}

/// `GET /v1/presets`: the well-known providers and local servers.
pub async fn presets() -> Reply<Vec<ModelPreset>> {
    let preset = |profile: &profile::Profile| {
        Some(ModelPreset {
            name: profile.name.clone(),
            kind: profile.kind,
            base_url: profile.base_url.clone()?,
            key_variable: profile.key_variable.clone(),
            model: profile.model.clone(),
        })
    };
    Ok::<_, Answer>(Json(profile::all().iter().filter_map(preset).collect()))
}

/// `POST /v1/models`: tests the endpoint unless the request says otherwise, then keeps it with its key in one change.
pub async fn add(
    Caller { api, person: by, current: Current(current), .. }: Caller,
    Body(mut new): Body<NewModel>,
) -> Reply<KeptModel> {
    let value = new.key_value.take().map(|value| secrets::value(value.take())).transpose()?;
    let (test, replace, default) = (new.test, new.replace, new.default);
    let spec = models::read(wanted(new))?;
    let key = spec.key.as_deref().map(secrets::named).transpose()?;
    if value.is_some() && key.is_none() {
        let refusal = Refusal::new(DenialCode::SecretName, "the key needs the name of a secret to keep it in");
        return Err(refusal.into());
    }
    let mut wanted_endpoint = NewEndpoint { spec, key, value, replace, default };
    // Checks before the test, so that a request that cannot be kept sends nothing.
    let (named, brings_value) = (wanted_endpoint.key.clone(), wanted_endpoint.value.is_some());
    let (gateway, asks, spec) = (Arc::clone(&api.gateway), by.clone(), wanted_endpoint.spec.clone());
    let checked = api.state().read(move |tx| {
        check_may_set(tx, &gateway.now().policy, &asks, &spec.name, replace, default)?;
        check(tx, &spec, replace, named.as_ref(), brings_value)
    });
    match checked.await {
        Ok(()) => {}
        Err(Denied::Refused(refusal)) => return Err(noted(&api, &by, refusal).await),
        Err(Denied::Failed(error)) => return Err(error.into()),
    }
    let tested = if test { Some(test_first(&api, &by, &wanted_endpoint).await?) } else { None };
    // After the test, because a local server states the size of a loaded model only.
    let context_stated_at = ask_for_context(&api, &mut wanted_endpoint).await;
    let (record, gateway) = (Arc::clone(&api.record), Arc::clone(&api.gateway));
    let giver = Giver { person: by.id, token: Some(current) };
    let kept = change(&api, move |tx| {
        // A refusal rolls back as well: the key is not kept without its endpoint.
        let moved = keep(tx, &record, &gateway, &giver, &wanted_endpoint).map_err(Denied::Failed)?;
        Ok(KeptModel { model: one(tx, &wanted_endpoint.spec.name)?, tested, context_stated_at, moved })
    });
    Ok(Json(kept.await?))
}

/// An endpoint to keep, with its key.
struct NewEndpoint {
    spec: Spec,
    /// The secret that holds its key.
    key: Option<SecretName>,
    /// The value of that secret, if it came with the request.
    value: Option<SecretText>,
    replace: bool,
    default: bool,
}

impl NewEndpoint {
    async fn key_to_send(&self, api: &Api) -> Result<Option<SecretText>, Answer> {
        match &self.value {
            Some(value) => Ok(Some(SecretText::new(value.expose().to_owned()))),
            None => stored_key(api, self.key.clone()).await,
        }
    }
}

/// Asks the server how many tokens its model reads, unless the operator said it. Returns the place of the answer. The setting of a server
/// that does not say it, or says a number outside of the bounds, stays absent, and so does the one of a server whose key cannot be read.
async fn ask_for_context(api: &Api, wanted_endpoint: &mut NewEndpoint) -> Option<String> {
    let NewEndpoint { spec, .. } = &*wanted_endpoint;
    if spec.settings.context_tokens.is_some() {
        return None;
    }
    let key = wanted_endpoint.key_to_send(api).await.ok()?;
    let stated = api.models.stated_context(spec.clone(), key).await?;
    let stated_settings = EndpointSettings { context_tokens: Some(stated.tokens), ..spec.settings.clone() };
    settings::check(&spec.name, spec.kind, &stated_settings).ok()?;
    wanted_endpoint.spec.settings = stated_settings;
    Some(stated.path)
}

/// Sends one small request to an endpoint that is not kept yet.
async fn test_first(api: &Api, by: &Person, wanted_endpoint: &NewEndpoint) -> Result<TestedModel, Answer> {
    let sent = wanted_endpoint.key_to_send(api).await?;
    match api.models.try_out(wanted_endpoint.spec.clone(), sent).await {
        Ok(probe) => Ok(view_of_test(&wanted_endpoint.spec.name, &probe)),
        Err(error) => Err(noted(api, by, failed(&error, &wanted_endpoint.spec, false)).await),
    }
}

/// Keeps an endpoint with its key, and makes it the default if that is wanted. Returns the agents that move to it.
///
/// # Errors
/// [`Undone`] if one part is refused or fails.
fn keep(
    tx: &mut WriteTx<'_>,
    record: &Record,
    gateway: &Gateway,
    by: &Giver,
    wanted_endpoint: &NewEndpoint,
) -> Result<Vec<String>, Undone> {
    let NewEndpoint { spec, key, value, replace, default } = wanted_endpoint;
    // Other people may have decided meanwhile: an agent may use the endpoint by now.
    let Some(person) = registry::person_by_id(tx, by.person)? else {
        let words = "the person who asks no longer exists";
        return Err(Refusal::new(DenialCode::PersonUnknown, words).into());
    };
    check_may_set(tx, &gateway.now().policy, &person, &spec.name, *replace, *default)?;
    if let (Some(value), Some(key)) = (value, key) {
        secrets::set(tx, &record.wrapping, key, value, by.person)?;
    }
    models::keep(tx, spec, *replace, by.person)?;
    if !default {
        return Ok(Vec::new());
    }
    let moved = agents_that_move(tx, &spec.name)?;
    let wanted = Settings { default_model: Some(spec.name.clone()), ..Settings::default() };
    gateway.apply_at_once(tx, by, None, wanted)?;
    Ok(moved)
}

/// `DELETE /v1/models/{model}`
pub async fn remove(Caller { api, person: by, .. }: Caller, Path(model): Path<String>) -> Reply<Model> {
    let removed = change(&api, move |tx| {
        let removed = models::known(tx, &model).and_then(|()| {
            let before = one(tx, &model)?;
            models::remove(tx, &model, by.id).map(|()| before)
        });
        removed.map_err(|denied| denied.noted(|refusal| record_refusal(tx, REFUSED, by.id, refusal)).widen())
    });
    Ok(Json(removed.await?))
}

/// `POST /v1/models/{model}/default`
pub async fn set_default(
    Caller { api, person: by, current: Current(current), .. }: Caller,
    Path(model): Path<String>,
) -> Reply<KeptModel> {
    let (gateway, giver) = (Arc::clone(&api.gateway), Giver { person: by.id, token: Some(current) });
    // Not `decide`, since a refusal must roll back.
    let set = api.state().write(move |tx| {
        let moved = agents_that_move(tx, &model)?;
        let wanted = Settings { default_model: Some(model.clone()), ..Settings::default() };
        gateway.apply_at_once(tx, &giver, None, wanted)?;
        let model = one(tx, &model)?;
        Ok::<_, Denied<ironclaw_store::error::Error>>(KeptModel { model, tested: None, context_stated_at: None, moved })
    });
    match set.await {
        Ok(kept) => Ok(Json(kept)),
        Err(Denied::Refused(refusal)) => Err(noted(&api, &by, refusal).await),
        Err(Denied::Failed(error)) => Err(error.into()),
    }
}

/// Returns the agents that move to this endpoint once it is the default.
fn agents_that_move(tx: &ReadTx<'_>, name: &str) -> Result<Vec<String>, ironclaw_state::Error> {
    let follows = |agent: &registry::Agent| agent.follows_default && agent.model != name;
    Ok(registry::agents(tx)?.into_iter().filter(follows).map(|agent| agent.name).collect())
}

/// Checks that the policy lets one person change the default endpoint, or replace an endpoint in use.
///
/// # Errors
/// Refuses a person who needs the approval of others for that.
fn check_may_set(
    tx: &ReadTx<'_>,
    policy: &Policy,
    by: &Person,
    name: &str,
    replace: bool,
    default: bool,
) -> Result<(), Denied> {
    let kind = ChangeKind::Settings;
    let direct = decide::check_direct(policy.rule(kind), kind, by).map(drop);
    let is_replaced = replace && models::find(tx, name)?.is_some() && models::is_in_use(tx, name)?;
    let hint = match (is_replaced, default) {
        (true, _) => "add it under another name, and propose it to each agent: `ironctl agent set AGENT --model NAME`",
        (false, true) => "add it without making it the default, and propose that: `ironctl model default NAME`",
        (false, false) => return Ok(()),
    };
    direct.map_err(|refusal| refusal.hint(hint).into())
}

/// `POST /v1/models/{model}/test`: sends one small request to this endpoint, without its fallbacks.
pub async fn test(State(api): State<Api>, Path(model): Path<String>) -> Reply<TestedModel> {
    let find = move |tx: &ReadTx<'_>| {
        models::known(tx, &model)?;
        Ok::<_, Denied>(models::find(tx, &model)?)
    };
    let spec = match api.state().read(find).await? {
        Some(stored) => Spec { fallbacks: Vec::new(), ..stored.spec },
        None => Spec::builtin(),
    };
    let key = spec.key.as_deref().map(secrets::named).transpose()?;
    let key = stored_key(&api, key).await?;
    match api.models.try_out(spec.clone(), key).await {
        Ok(probe) => Ok(Json(view_of_test(&spec.name, &probe))),
        Err(error) => Err(failed(&error, &spec, true).into()),
    }
}

/// The answer to a change that was rolled back.
struct Undone(Answer);

impl<E: Into<Answer>> From<E> for Undone {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

/// Applies a change of the record together with the open endpoints. Opens them before the commit and puts them in place after it, even if
/// the caller has gone.
async fn change<T: Send + 'static>(
    api: &Api,
    make: impl FnOnce(&mut WriteTx<'_>) -> Result<T, Denied<Undone>> + Send + 'static,
) -> Result<T, Answer> {
    let api = api.clone();
    let changing = tokio::spawn(async move {
        let _alone = api.models.changing.lock().await;
        let models = Arc::clone(&api.models);
        let changed = api.state().decide(move |tx| {
            let made = make(tx)?;
            let opened = models.open_recorded(tx).map_err(|error| match error {
                ironclaw_store::error::Error::Model(error) => {
                    Refusal::new(DenialCode::ModelUnusable, error.sentence()).into()
                }
                error => Undone::from(error),
            });
            Ok::<_, Denied<Undone>>((made, opened.map_err(Denied::Failed)?))
        });
        let (made, opened) = changed.await?;
        api.models.put(opened);
        Ok(made)
    });
    match changing.await {
        Ok(Ok(made)) => Ok(made),
        Ok(Err(Denied::Refused(refusal))) => Err(refusal.into()),
        Ok(Err(Denied::Failed(Undone(answer)))) => Err(answer),
        Err(error) => Err(Answer::task_ended(&error)),
    }
}

fn wanted(new: NewModel) -> EndpointRequest {
    EndpointRequest {
        name: new.name,
        kind: new.kind,
        base_url: new.base_url,
        model: new.model,
        key: new.key,
        fallbacks: new.fallbacks,
        prices: Prices { input: new.input_price_micros, output: new.output_price_micros },
        streams: new.streams,
        takes_images: new.images,
        settings: new.settings,
    }
}

/// Refuses an endpoint that could not be kept, as far as the record knows before the test.
fn check(
    tx: &ReadTx<'_>,
    spec: &Spec,
    replace: bool,
    key: Option<&SecretName>,
    brings_value: bool,
) -> Result<(), Denied> {
    if !replace && models::find(tx, &spec.name)?.is_some() {
        return Err(models::exists(&spec.name).into());
    }
    for fallback in &spec.fallbacks {
        models::known(tx, fallback)?;
    }
    match (key, key.map(|key| secrets::find(tx, key)).transpose()?.flatten().is_some()) {
        (Some(key), true) if brings_value => Err(secrets::exists(key).into()),
        (Some(key), false) if !brings_value => Err(secrets::unknown(key).into()),
        (Some(_) | None, _) => Ok(()),
    }
}

/// Records a refusal in the ledger, and returns its answer.
async fn noted(api: &Api, by: &Person, refusal: Refusal) -> Answer {
    let by = by.id;
    let Err(denied) = api.state().decide(move |tx| refuse::<Infallible>(tx, REFUSED, by, refusal)).await;
    denied.into()
}

async fn stored_key(api: &Api, key: Option<SecretName>) -> Result<Option<SecretText>, Answer> {
    let Some(name) = key else { return Ok(None) };
    let record = Arc::clone(&api.record);
    let wanted = name.clone();
    let found = api.state().read(move |tx| secrets::get(tx, &record.wrapping, &wanted)).await?;
    Ok(Some(found.ok_or_else(|| secrets::unknown(&name))?))
}

/// Returns the refusal for a failed test: the reason, the reply of the provider, and a hint; `kept` if the record has the endpoint.
fn failed(error: &ironclaw_model::Error, spec: &Spec, kept: bool) -> Refusal {
    let sentence = error.sentence();
    // The remedy after the colon is for a kept endpoint, and would mislead before that.
    let why = if kept { sentence.as_str() } else { sentence.split(": ").next().unwrap_or_default() };
    let said = match error {
        ironclaw_model::Error::Failed(tried) => tried.failures.last().and_then(|failure| failure.detail.for_operator()),
        ironclaw_model::Error::Unreadable { .. }
        | ironclaw_model::Error::Script { .. }
        | ironclaw_model::Error::Spec { .. } => None,
    };
    let said = said.map(|said| format!(" (it said: {said})")).unwrap_or_default();
    let end = if kept { "" } else { "; nothing was kept" };
    let refusal = Refusal::new(DenialCode::ModelTestFailed, format!("the test failed: {why}{said}{end}"));
    let fault = match error {
        ironclaw_model::Error::Failed(tried) => tried.failures.last().map(|failure| failure.fault),
        ironclaw_model::Error::Unreadable { .. }
        | ironclaw_model::Error::Script { .. }
        | ironclaw_model::Error::Spec { .. } => None,
    };
    refusal.hint(remedy(fault, spec, kept))
}

/// Returns the remedy for a failed test.
fn remedy(fault: Option<Fault>, spec: &Spec, kept: bool) -> String {
    let place = spec.base_url.as_ref().map_or("its script", url::Url::as_str);
    let model = &spec.model;
    let key = match &spec.key {
        Some(key) if kept => format!("the key, {PREFIX}{key}"),
        Some(_) => "the key".to_owned(),
        None => "whether it needs a key".to_owned(),
    };
    let Some(fault) = fault else { return format!("check the address {place}, the model {model:?}, and {key}") };
    match fault {
        Fault::Silent | Fault::Stalled | Fault::Late => {
            "its server took longer than a test may: wait until it has loaded the model and try again, or keep the endpoint \
             untested with `--no-test`"
                .to_owned()
        }
        Fault::KeyWanted => format!(
            "give it a key: `--key-env VARIABLE`, or `ironctl secret set {}` and then `--key {PREFIX}{}`{}",
            spec.name,
            spec.name,
            if kept { ", both with `ironctl model add --replace`" } else { "" }
        ),
        Fault::NoKey | Fault::KeyUnreadable | Fault::KeyUnusable | Fault::KeyRefused => format!("check {key}"),
        Fault::Unreachable
        | Fault::Forbidden
        | Fault::Closed
        | Fault::PublicPlain
        | Fault::Untrusted
        | Fault::Redirected => format!("check the address {place}, and that a server for this API listens there"),
        Fault::OtherApi => format!("add it with the other `--kind`: the server at {place} has the format of the other API"),
        Fault::ModelUnknown | Fault::NoTools | Fault::BadCall | Fault::ContextTooLong => {
            format!("check the model {model:?} and the address {place}")
        }
        Fault::NoCredit
        | Fault::RateLimited { .. }
        | Fault::Overloaded { .. }
        | Fault::ServerError { .. }
        | Fault::ConversationFails { .. } => {
            format!("the server at {place} cannot answer now: try again later")
        }
        Fault::Absent
        | Fault::Broken
        | Fault::Cut
        | Fault::BadRequest(_)
        | Fault::Malformed
        | Fault::UnclearCalls
        | Fault::UnknownEnd
        | Fault::TooLarge
        | Fault::Truncated
        | Fault::Withheld
        | Fault::Script
        | Fault::OverCeiling => format!("check the address {place}, the model {model:?}, and {key}"),
    }
}

/// Adds the reason to each endpoint that cannot be used.
fn add_faults(endpoints: &Endpoints, models: &mut [Model]) {
    for model in models {
        model.broken = endpoints.broken().find(|(name, _)| *name == model.name).map(|(_, why)| why.to_owned());
    }
}

/// Returns a warning for each endpoint that cannot be used, for `status`.
pub fn broken(api: &Api) -> Vec<String> {
    let endpoints = api.models.current();
    let broken = endpoints.broken();
    broken.map(|(name, why)| format!("model endpoint {name} cannot be used: {why} (`ironctl model list`)")).collect()
}

fn all(tx: &ReadTx<'_>) -> Result<Vec<Model>, ironclaw_state::Error> {
    let (agents, default) = (registry::agents(tx)?, models::default(tx)?);
    let stored = models::models(tx)?.into_iter();
    let mut shown: Vec<Model> = stored.map(|Stored { spec, created_at, .. }| view(spec, Some(created_at))).collect();
    shown.push(view(Spec::builtin(), None));
    for model in &mut shown {
        model.default = model.name == default;
        let users = agents.iter().filter(|agent| agent.model == model.name);
        model.agents = users.map(|agent| agent.name.clone()).collect();
    }
    Ok(shown)
}

fn one(tx: &ReadTx<'_>, name: &str) -> Result<Model, ironclaw_state::Error> {
    let found = all(tx)?.into_iter().find(|model| model.name == name);
    found.ok_or_else(|| ironclaw_state::Error::Stored(format!("model endpoint {name} vanished while it was looked at")))
}

fn view(spec: Spec, created_at: Option<i64>) -> Model {
    Model {
        name: spec.name,
        kind: spec.kind,
        base_url: spec.base_url.map(String::from),
        model: spec.model,
        key: spec.key.map(|key| format!("{PREFIX}{key}")),
        fallbacks: spec.fallbacks,
        input_price_micros: spec.prices.input,
        output_price_micros: spec.prices.output,
        streams: spec.streams,
        images: spec.takes_images,
        settings: spec.settings,
        default: false,
        agents: Vec::new(),
        broken: None,
        created_at: created_at.map(ironclaw_ledger::rfc3339),
    }
}

fn view_of_test(name: &str, probe: &Probe) -> TestedModel {
    TestedModel {
        name: name.to_owned(),
        took_ms: u64::try_from(probe.took.as_millis()).unwrap_or(u64::MAX),
        input_tokens: probe.usage.input_tokens,
        output_tokens: probe.usage.output_tokens,
        said: probe.output.text.trim().chars().take(SAID_CHARACTERS_MAX).collect(),
    }
}
