//! The requests about model endpoints and secrets.
//!
//! Sends values of secrets, and never receives one. See `commands::model` and `commands::secret`.

use super::{Client, REQUEST_TIMEOUT, TEST_TIMEOUT, parse, segment, to_body};
use crate::failure::Error;
use hyper::Method;
use ironclaw_contract::operator::{
    KeptModel, Model, ModelPreset, NewModel, NewSecret, NewSecretValue, Secret, TestedModel,
};

impl Client {
    /// Returns every model endpoint.
    pub async fn models(&self) -> Result<Vec<Model>, Error> {
        self.get("models").await
    }

    /// Returns the providers and local servers that the host knows by name.
    pub async fn presets(&self) -> Result<Vec<ModelPreset>, Error> {
        self.get("presets").await
    }

    /// Adds a model endpoint; the host tests it first if the request says so.
    pub async fn add_model(&self, model: &NewModel) -> Result<KeptModel, Error> {
        parse(&self.ask(Method::POST, "models", Some(to_body(model)?), TEST_TIMEOUT).await?)
    }

    /// Makes the host send a small request to an endpoint.
    pub async fn test_model(&self, name: &str) -> Result<TestedModel, Error> {
        let path = format!("models/{}/test", segment(name));
        parse(&self.ask(Method::POST, &path, None, TEST_TIMEOUT).await?)
    }

    /// Makes an endpoint the default.
    pub async fn default_model(&self, name: &str) -> Result<KeptModel, Error> {
        let path = format!("models/{}/default", segment(name));
        parse(&self.ask(Method::POST, &path, None, REQUEST_TIMEOUT).await?)
    }

    /// Removes a model endpoint.
    pub async fn remove_model(&self, name: &str) -> Result<Model, Error> {
        let path = format!("models/{}", segment(name));
        parse(&self.ask(Method::DELETE, &path, None, REQUEST_TIMEOUT).await?)
    }

    /// Returns every secret, without values.
    pub async fn secrets(&self) -> Result<Vec<Secret>, Error> {
        self.get("secrets").await
    }

    /// Stores a secret.
    pub async fn set_secret(&self, secret: &NewSecret) -> Result<Secret, Error> {
        self.post("secrets", secret).await
    }

    /// Replaces the value of a secret.
    pub async fn rotate_secret(&self, name: &str, value: &NewSecretValue) -> Result<Secret, Error> {
        self.post(&format!("secrets/{}/rotate", segment(name)), value).await
    }

    /// Removes a secret.
    pub async fn remove_secret(&self, name: &str) -> Result<Secret, Error> {
        let path = format!("secrets/{}", segment(name));
        parse(&self.ask(Method::DELETE, &path, None, REQUEST_TIMEOUT).await?)
    }
}
