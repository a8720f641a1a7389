//! The API as an OpenAPI 3.1 document.
//!
//! The host serves the committed copy. A test generates the document from the routes and the types of their handlers, and compares it with
//! the copy; `IRONCLAW_GOLDEN=write` rewrites the copy. See `api::routes`.

use super::handler::{Answer, Reply};
use axum::Json;
use serde::Serialize;
use serde_json::Value;
use std::sync::LazyLock;

#[cfg(test)]
mod generated;

const COPY: &str = include_str!("../../../docs/openapi.json");

/// The document, in OpenAPI's own format.
#[derive(Clone, Serialize)]
#[cfg_attr(test, derive(utoipa::ToSchema), schema(value_type = Object))]
#[serde(transparent)]
pub struct Document(Value);

/// `GET /openapi.json`
pub async fn document() -> Reply<Document> {
    static DOCUMENT: LazyLock<Document> =
        LazyLock::new(|| Document(serde_json::from_str(COPY).expect("a test compares the copy with a document")));
    Ok::<_, Answer>(Json(DOCUMENT.clone()))
}
