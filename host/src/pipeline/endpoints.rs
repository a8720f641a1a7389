//! Opens the model endpoints that stand in the record, gives each its key in the last moment, and tries one out.
//!
//! Never keeps a key: it is read when a request is about to be made, and gone when that is over. Next: `model::endpoint`,
//! `registry::models`.

use super::{Core, Error};
use crate::registry::models;
use crate::secrets::{self, SecretName};
use ironclaw_model::endpoint::{self, Candidate, Endpoint, Endpoints, Probe, Spec};
use ironclaw_state::Tx;
use ironclaw_state::keys::SecretText;
use std::sync::{Arc, PoisonError};

impl Core {
    /// Opens the model endpoints as this transaction has them, before it stands; [`Self::put_endpoints`] puts them in place behind it.
    ///
    /// # Errors
    /// [`Error::Model`] says why the operator's script cannot be used.
    pub fn open_endpoints(&self, tx: &Tx<'_>) -> Result<Endpoints, Error> {
        Ok(endpoint::open_stored(&self.config.model, models::specs(tx)?)?)
    }

    /// Puts these model endpoints in the place of those that are open.
    pub fn put_endpoints(&self, opened: Endpoints) {
        *self.endpoints.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(opened);
    }
}

/// The endpoints of a chain, each with its key; one whose key cannot be had is asked for nothing, and says so.
///
/// # Errors
/// A sentence for the person when the record cannot be read.
pub(super) async fn with_keys(core: &Arc<Core>, chain: Vec<Arc<Endpoint>>) -> Result<Vec<Candidate>, String> {
    if chain.iter().all(|endpoint| endpoint.spec.key.is_none()) {
        return Ok(chain.into_iter().map(|endpoint| Candidate { endpoint, key: None }).collect());
    }
    let with_secrets = Arc::clone(core);
    let read = core.state.read(move |tx| {
        let candidate = |endpoint: Arc<Endpoint>| match key_of(tx, &with_secrets, &endpoint.spec) {
            Ok(key) => Ok(Candidate { endpoint, key }),
            Err(secrets::Error::State(error)) => Err(error),
            // Others may be asked without it.
            Err(error) => {
                tracing::error!(model = endpoint.spec.name, %error, "the key of a model endpoint cannot be had");
                Ok(Candidate { endpoint: Arc::new(endpoint.locked()), key: None })
            }
        };
        chain.into_iter().map(candidate).collect()
    });
    read.await.map_err(|error: ironclaw_state::Error| {
        tracing::error!(%error, "the keys of model endpoints cannot be read");
        "the host cannot read the keys of its model endpoints".to_owned()
    })
}

fn key_of(tx: &Tx<'_>, core: &Core, spec: &Spec) -> Result<Option<SecretText>, secrets::Error> {
    let Some(Ok(name)) = spec.key.as_deref().map(str::parse::<SecretName>) else { return Ok(None) };
    secrets::get(tx, &core.wrapping, &name)
}

/// Makes one small request to an endpoint of this spec, whether or not it stands in the record.
///
/// # Errors
/// `model::Error::Failed` says why it gave nothing; the key stands in none of it.
pub async fn try_out(core: &Core, spec: Spec, key: Option<SecretText>) -> Result<Probe, ironclaw_model::Error> {
    let name = spec.name.clone();
    // Opened for itself, so that what went wrong lately with the one in use is not held against it.
    let opened = endpoint::open(&core.config.model, vec![spec])?;
    let why = "it was opened and is not there".to_owned();
    let endpoint = opened.get(&name).cloned().ok_or(ironclaw_model::Error::Spec { name, why })?;
    Endpoint::probe(&Candidate { endpoint, key }).await
}
