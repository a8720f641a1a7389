//! The secrets that entries need: those that the host has, and those that a person types or lets the file give.
//!
//! Never prints a value. See [`crate::secret_input`].

use super::entry::{Needed, Plan, Use};
use crate::at::At;
use crate::client::Client;
use crate::failure::Error;
use crate::secret_input;
use ironclaw_operator::{NewSecret, routes};
use ironclaw_text::shell::quoted;
use std::io::{self, IsTerminal};
use std::sync::Mutex;

/// The secrets of the host by name.
pub struct Stored {
    names: Mutex<Vec<String>>,
    /// Whether a missing one gets the value in the file without a question.
    from_file: bool,
}

impl Stored {
    /// Asks the host for the names. A caller who may not see them learns of a missing one from the refusal of its change.
    pub async fn read(client: &Client, from_file: bool) -> Result<Self, Error> {
        let names = match client.call(routes::SECRETS, []).await {
            Ok(secrets) => secrets.into_iter().map(|secret| secret.name).collect(),
            Err(Error::Refused(_)) => Vec::new(),
            Err(error) => return Err(error),
        };
        Ok(Self { names: Mutex::new(names), from_file })
    }

    fn has(&self, name: &str) -> bool {
        self.names.lock().unwrap_or_else(std::sync::PoisonError::into_inner).iter().any(|known| known == name)
    }

    /// Returns the names of secrets that the host does not have.
    pub fn missing<'a>(&self, plan: &'a Plan) -> Vec<&'a str> {
        plan.secrets.iter().map(|needed| needed.secret.as_str()).filter(|name| !self.has(name)).collect()
    }

    /// Stores the secrets that the host does not have. Returns the reason why one is missing still.
    pub async fn ensure(&self, at: &At, client: &Client, plan: &mut Plan) -> Result<Option<String>, Error> {
        for Needed { secret, at: of, value } in &mut plan.secrets {
            if self.has(secret) {
                continue;
            }
            let place = match of {
                Use::Variable(variable) => format!("variable {variable}"),
                Use::Header { name, .. } => format!("header {name}"),
            };
            let what = format!("the value of secret:{secret}, {place} of {}", plan.entry);
            let given = match (value.take(), io::stdin().is_terminal() && !at.out.is_json()) {
                (Some(value), _) if self.from_file => Some(value),
                (value, true) => secret_input::read_or(&what, value)?,
                (_, false) => None,
            };
            let Some(value) = given else {
                let remedy = format!("ironctl secret set {}", quoted(secret));
                return Ok(Some(format!("it needs secret:{secret} for the {place}: {remedy}, then import it again")));
            };
            match client.post(routes::SET_SECRET, [], &NewSecret { name: secret.clone(), value }).await {
                Ok(_) => self.names.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push(secret.clone()),
                Err(error) => return super::reason(error).map(Some),
            }
        }
        Ok(None)
    }
}
