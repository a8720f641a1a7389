//! The model endpoints of the record: opened at the start, with a key only for the time of a request.
//!
//! Never keeps a key: each request reads it and wipes it at its end. See [`ironclaw_model::endpoint`] and
//! [`crate::registry::models`].

use crate::registry::models;
use crate::registry::secrets::{self, SecretName};
use crate::turns::context::reading;
use ironclaw_model::endpoint::{self, Candidate, Endpoint, Endpoints, Probe, Spec};
use ironclaw_model::endpoint_quirks::Observation;
use ironclaw_model::stated_context::StatedContext;
use ironclaw_state::ReadTx;
use ironclaw_state::keys::{SecretText, WrappingKey};
use ironclaw_store::error::Error;
use ironclaw_store::record::Record;
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::Mutex;

/// The model endpoints of this host.
pub struct Models {
    config: ironclaw_model::Config,
    /// The endpoints by name, replaced together when an operator changes one.
    open: RwLock<Arc<Endpoints>>,
    /// Locked while endpoints change, so that the open endpoints are always the last recorded ones.
    pub changing: Mutex<()>,
}

impl Models {
    /// Opens the endpoints of these specs. A spec may come with the reason of the record why it cannot be opened. `observed` has what
    /// the answers of each showed.
    ///
    /// # Errors
    /// When the operator's script cannot be used.
    pub fn open(
        config: ironclaw_model::Config,
        specs: Vec<(Spec, Option<String>)>,
        observed: BTreeMap<String, Vec<Observation>>,
    ) -> Result<Self, ironclaw_model::Error> {
        let opened = endpoint::open_stored(&config, specs)?;
        recall(&opened, observed);
        Ok(Self { config, open: RwLock::new(Arc::new(opened)), changing: Mutex::default() })
    }

    pub fn current(&self) -> Arc<Endpoints> {
        Arc::clone(&self.open.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Opens the endpoints that this transaction reads. [`Self::put`] makes them current after the commit.
    ///
    /// # Errors
    /// [`Error::Model`] if the operator's script cannot be used.
    pub fn open_recorded(&self, tx: &ReadTx<'_>) -> Result<Endpoints, Error> {
        let opened = endpoint::open_stored(&self.config, models::specs(tx)?)?;
        recall(&opened, models::settings::observed(tx)?);
        Ok(opened)
    }

    /// Records what the answers of a chain showed, if the record does not have it yet. Endpoints that an operator has changed meanwhile
    /// are left out.
    pub(crate) async fn keep_observed(&self, record: &Record, chain: &[Arc<Endpoint>]) {
        let current = self.current();
        let is_current = |endpoint: &&Arc<Endpoint>| {
            current.get(&endpoint.spec.name).is_some_and(|current| Arc::ptr_eq(current, endpoint))
        };
        for endpoint in chain.iter().filter(is_current) {
            let (name, changes) = (endpoint.spec.name.clone(), endpoint.take_changes());
            if changes.is_empty() {
                continue;
            }
            let noted = record.state.write(move |tx| models::settings::note(tx, &name, &changes)).await;
            if let Err(error) = noted {
                // The host learns it anew after its next start.
                tracing::error!(model = endpoint.spec.name, %error, "cannot record what answers of a model endpoint showed");
            }
        }
    }

    /// Replaces the current endpoints.
    pub fn put(&self, opened: Endpoints) {
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(opened);
    }

    /// Sends one small request to an endpoint of this spec, which the record need not have.
    ///
    /// # Errors
    /// [`ironclaw_model::Error::Failed`] with the reason of the failure, without the key.
    pub async fn try_out(&self, spec: Spec, key: Option<SecretText>) -> Result<Probe, ironclaw_model::Error> {
        Endpoint::probe(&self.candidate(spec, key)?).await
    }

    /// Asks the server of an endpoint of this spec how many tokens its model reads. The record need not have the endpoint.
    pub async fn stated_context(&self, spec: Spec, key: Option<SecretText>) -> Option<StatedContext> {
        Endpoint::stated_context(&self.candidate(spec, key).ok()?).await
    }

    /// Opens an endpoint separately, so that recent failures of the current one do not count.
    fn candidate(&self, spec: Spec, key: Option<SecretText>) -> Result<Candidate, ironclaw_model::Error> {
        let name = spec.name.clone();
        let opened = endpoint::open(&self.config, vec![spec])?;
        let why = "the opened endpoint is missing".to_owned();
        let endpoint = opened.get(&name).cloned().ok_or(ironclaw_model::Error::Spec { name, why })?;
        Ok(Candidate { endpoint, key, context_tokens: None })
    }
}

/// Gives each endpoint what its answers showed.
fn recall(opened: &Endpoints, observed: BTreeMap<String, Vec<Observation>>) {
    for (name, observed) in observed {
        if let Some(endpoint) = opened.get(&name) {
            endpoint.recall(observed);
        }
    }
}

/// Returns the endpoints of a chain, each with its key and the size of its context, if the host learned it. An endpoint whose key
/// cannot be read is locked: it gets no request.
///
/// # Errors
/// A sentence for the person when the record cannot be read.
pub(crate) async fn ready(record: &Arc<Record>, chain: Vec<Arc<Endpoint>>) -> Result<Vec<Candidate>, String> {
    let with_secrets = Arc::clone(record);
    let read = record.state.read(move |tx| {
        let candidate = |endpoint: Arc<Endpoint>| {
            let context_tokens = reading::learned(tx, &endpoint.spec)?.map(|size| size.tokens);
            match key_of(tx, &with_secrets.wrapping, &endpoint.spec) {
                Ok(key) => Ok(Candidate { endpoint, key, context_tokens }),
                Err(secrets::Error::State(error)) => Err(error),
                // The other endpoints work without it.
                Err(error) => {
                    tracing::error!(model = endpoint.spec.name, %error, "cannot read the key of a model endpoint");
                    Ok(Candidate { endpoint: Arc::new(endpoint.locked()), key: None, context_tokens })
                }
            }
        };
        chain.into_iter().map(candidate).collect()
    });
    read.await.map_err(|error: ironclaw_state::Error| {
        tracing::error!(%error, "cannot read the keys of the model endpoints");
        "the host cannot read the keys of its model endpoints".to_owned()
    })
}

fn key_of(tx: &ReadTx<'_>, wrapping: &WrappingKey, spec: &Spec) -> Result<Option<SecretText>, secrets::Error> {
    let Some(Ok(name)) = spec.key.as_deref().map(str::parse::<SecretName>) else { return Ok(None) };
    secrets::get(tx, wrapping, &name)
}
