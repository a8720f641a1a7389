//! Asks a host about model endpoints and secrets.
//!
//! Hears no value of a secret: they go one way. See `commands::model` and `commands::secret`.

use super::{Client, PATIENCE, TEST_PATIENCE, parse, segment, written};
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

    /// Adds a model endpoint; the host tests it first, if it is to.
    pub async fn add_model(&self, model: &NewModel) -> Result<KeptModel, Error> {
        parse(&self.ask(Method::POST, "models", Some(written(model)?), TEST_PATIENCE).await?)
    }

    /// Makes the host send one small request to an endpoint.
    pub async fn test_model(&self, name: &str) -> Result<TestedModel, Error> {
        let path = format!("models/{}/test", segment(name));
        parse(&self.ask(Method::POST, &path, None, TEST_PATIENCE).await?)
    }

    /// Makes an endpoint the default.
    pub async fn default_model(&self, name: &str) -> Result<KeptModel, Error> {
        let path = format!("models/{}/default", segment(name));
        parse(&self.ask(Method::POST, &path, None, PATIENCE).await?)
    }

    /// Removes a model endpoint.
    pub async fn remove_model(&self, name: &str) -> Result<Model, Error> {
        let path = format!("models/{}", segment(name));
        parse(&self.ask(Method::DELETE, &path, None, PATIENCE).await?)
    }

    /// Returns every secret, without values.
    pub async fn secrets(&self) -> Result<Vec<Secret>, Error> {
        self.get("secrets").await
    }

    /// Stores a secret.
    pub async fn set_secret(&self, secret: &NewSecret) -> Result<Secret, Error> {
        self.post("secrets", secret).await
    }

    /// Gives a secret another value.
    pub async fn rotate_secret(&self, name: &str, value: &NewSecretValue) -> Result<Secret, Error> {
        self.post(&format!("secrets/{}/rotate", segment(name)), value).await
    }

    /// Removes a secret.
    pub async fn remove_secret(&self, name: &str) -> Result<Secret, Error> {
        let path = format!("secrets/{}", segment(name));
        parse(&self.ask(Method::DELETE, &path, None, PATIENCE).await?)
    }
}
