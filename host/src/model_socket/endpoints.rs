//! Opens the model endpoints that stand in the record, gives each its key in the last moment, and tries one out.
//!
//! Never keeps a key: it is read when a request is about to be made, and gone when that is over. Next: `model::endpoint`,
//! `registry::models`.

use crate::error::Error;
use crate::record::Record;
use crate::registry::models;
use crate::secrets::{self, SecretName};
use ironclaw_model::endpoint::{self, Candidate, Endpoint, Endpoints, Probe, Spec};
use ironclaw_state::ReadTx;
use ironclaw_state::keys::{SecretText, WrappingKey};
use std::sync::{Arc, PoisonError, RwLock};
use tokio::sync::Mutex;

/// The model endpoints of this host.
pub struct Models {
    config: ironclaw_model::Config,
    /// By name; replaced as a whole when an operator changes one.
    open: RwLock<Arc<Endpoints>>,
    /// Held while endpoints change, so that those that are open are those that were recorded last.
    pub changing: Mutex<()>,
}

impl Models {
    /// Opens the endpoints of these specs, each with the reason why it cannot be opened, where the record has one.
    ///
    /// # Errors
    /// The operator's script cannot be used.
    pub fn open(
        config: ironclaw_model::Config,
        specs: Vec<(Spec, Option<String>)>,
    ) -> Result<Self, ironclaw_model::Error> {
        let opened = endpoint::open_stored(&config, specs)?;
        Ok(Self { config, open: RwLock::new(Arc::new(opened)), changing: Mutex::default() })
    }

    /// Returns the endpoints as they are now.
    pub fn now(&self) -> Arc<Endpoints> {
        Arc::clone(&self.open.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// Opens the endpoints as this transaction has them; [`Self::put`] puts them in place once it is committed.
    ///
    /// # Errors
    /// [`Error::Model`] says why the operator's script cannot be used.
    pub fn open_anew(&self, tx: &ReadTx<'_>) -> Result<Endpoints, Error> {
        Ok(endpoint::open_stored(&self.config, models::specs(tx)?)?)
    }

    /// Puts these endpoints in the place of those that are open.
    pub fn put(&self, opened: Endpoints) {
        *self.open.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(opened);
    }

    /// Makes one small request to an endpoint of this spec, which need not be recorded.
    ///
    /// # Errors
    /// [`ironclaw_model::Error::Failed`] says why it gave nothing; the key is in none of it.
    pub async fn try_out(&self, spec: Spec, key: Option<SecretText>) -> Result<Probe, ironclaw_model::Error> {
        let name = spec.name.clone();
        // Opened for itself, so that what went wrong lately with the one in use is not held against it.
        let opened = endpoint::open(&self.config, vec![spec])?;
        let why = "it was opened and is not there".to_owned();
        let endpoint = opened.get(&name).cloned().ok_or(ironclaw_model::Error::Spec { name, why })?;
        Endpoint::probe(&Candidate { endpoint, key }).await
    }
}

/// Returns the endpoints of a chain, each with its key; one whose key cannot be read is not asked, and says so.
///
/// # Errors
/// A sentence for the person when the record cannot be read.
pub(crate) async fn with_keys(record: &Arc<Record>, chain: Vec<Arc<Endpoint>>) -> Result<Vec<Candidate>, String> {
    if chain.iter().all(|endpoint| endpoint.spec.key.is_none()) {
        return Ok(chain.into_iter().map(|endpoint| Candidate { endpoint, key: None }).collect());
    }
    let with_secrets = Arc::clone(record);
    let read = record.state.read(move |tx| {
        let candidate = |endpoint: Arc<Endpoint>| match key_of(tx, &with_secrets.wrapping, &endpoint.spec) {
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

fn key_of(tx: &ReadTx<'_>, wrapping: &WrappingKey, spec: &Spec) -> Result<Option<SecretText>, secrets::Error> {
    let Some(Ok(name)) = spec.key.as_deref().map(str::parse::<SecretName>) else { return Ok(None) };
    secrets::get(tx, wrapping, &name)
}
