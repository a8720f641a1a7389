//! The model endpoints that read less than the host would send, for the status.

use super::handler::Api;
use crate::turns::context::reading;
use ironclaw_model::endpoint::Spec;
use ironclaw_operator::SmallContext;
use ironclaw_state::ReadTx;
use ironclaw_store::error::Error;
use std::sync::Arc;

/// Returns what the host learned about the contexts of the open endpoints, by name, and adds a warning about each.
pub async fn all(api: &Api, warnings: &mut Vec<String>) -> Result<Vec<SmallContext>, Error> {
    let models = Arc::clone(&api.models);
    let found = api.record.state.read(move |tx| {
        let (mut found, endpoints) = (Vec::new(), models.current());
        for spec in endpoints.names().filter_map(|name| endpoints.get(name)).map(|endpoint| &endpoint.spec) {
            found.extend(learned(tx, spec)?);
        }
        Ok::<_, Error>(found)
    });
    let found = found.await?;
    warnings.extend(found.iter().map(|small| small.sentence.clone()));
    Ok(found)
}

/// Returns what the host learned about the context of an endpoint.
pub fn learned(tx: &ReadTx<'_>, spec: &Spec) -> Result<Option<SmallContext>, Error> {
    let size = reading::learned(tx, spec)?;
    Ok(size.map(|size| SmallContext {
        model: spec.name.clone(),
        tokens: size.tokens,
        sentence: reading::sentence(spec, &size),
        learned_at: ironclaw_ledger::rfc3339(size.learned_at),
    }))
}
