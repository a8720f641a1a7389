//! The routes of the API: method, path, least role, purpose and handler.
//!
//! Each route needs a role and a sentence. Tests also derive the schemas of request and answer from the types of the handler, so a handler
//! whose types have no schema does not compile in tests. See [`crate::api`] for the list, `api::openapi` for the document.

use super::Api;
use super::auth::require_role;
use super::body::REQUEST_BYTES_MAX;
#[cfg(test)]
pub use super::shapes::{Described, Shapes};
use crate::registry::Role;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::handler::Handler;
use axum::routing::{self, MethodRouter};

/// The paths that need no token; authentication lets only these pass without one.
pub const OPEN_TO_ALL: [&str; 2] = ["/healthz", "/readyz"];

/// A handler. In tests, its types must have schemas.
#[cfg(not(test))]
pub trait Described<D> {}

#[cfg(not(test))]
impl<H> Described<()> for H {}

/// One path with one method.
pub struct Route {
    /// The path, with its parameters in braces.
    pub path: &'static str,
    /// The least role that may use it; `None` if it needs no token.
    pub needs: Option<Role>,
    /// Bytes of a body.
    pub bytes_max: usize,
    /// The part that only the document of the API shows.
    #[cfg(test)]
    pub entry: Entry,
    handler: MethodRouter<Api>,
}

/// The part of a route that only the document of the API shows.
#[cfg(test)]
pub struct Entry {
    /// `GET POST DELETE`.
    pub method: &'static str,
    /// One sentence on the use of the route.
    pub about: &'static str,
    /// Schemas of its request and answer.
    pub shapes: Shapes,
}

impl Route {
    fn new<H, D>(method: &'static str, path: &'static str, about: &'static str, handler: MethodRouter<Api>) -> Self
    where
        H: Described<D>,
    {
        #[cfg(not(test))]
        let _ = (method, about);
        Self {
            path,
            needs: None,
            bytes_max: REQUEST_BYTES_MAX,
            #[cfg(test)]
            entry: Entry { method, about, shapes: H::shapes() },
            handler,
        }
    }

    fn for_role(self, needs: Role) -> Self {
        Self { needs: Some(needs), ..self }
    }

    /// Returns the route with a larger bound on the bytes of its body.
    pub fn up_to(self, bytes_max: usize) -> Self {
        Self { bytes_max, ..self }
    }
}

/// `GET`
pub fn get<H, T, D>(path: &'static str, needs: Role, about: &'static str, handler: H) -> Route
where
    H: Handler<T, Api> + Described<D>,
    T: 'static,
{
    Route::new::<H, D>("GET", path, about, routing::get(handler)).for_role(needs)
}

/// `GET` without a token. The answer of its handler must not depend on a person, an agent or a session.
pub fn open_to_all<H, T, D>(path: &'static str, about: &'static str, handler: H) -> Route
where
    H: Handler<T, Api> + Described<D>,
    T: 'static,
{
    assert!(OPEN_TO_ALL.contains(&path), "the list that the look at tokens goes by has {path}");
    Route::new::<H, D>("GET", path, about, routing::get(handler))
}

/// `POST`
pub fn post<H, T, D>(path: &'static str, needs: Role, about: &'static str, handler: H) -> Route
where
    H: Handler<T, Api> + Described<D>,
    T: 'static,
{
    Route::new::<H, D>("POST", path, about, routing::post(handler)).for_role(needs)
}

/// `DELETE`
pub fn delete<H, T, D>(path: &'static str, needs: Role, about: &'static str, handler: H) -> Route
where
    H: Handler<T, Api> + Described<D>,
    T: 'static,
{
    Route::new::<H, D>("DELETE", path, about, routing::delete(handler)).for_role(needs)
}

/// Returns the router of these routes, each behind its role.
pub fn router(routes: Vec<Route>) -> Router<Api> {
    routes.into_iter().fold(Router::new(), |router, route| {
        let handler = match route.needs {
            Some(needs) => route.handler.route_layer(axum::middleware::from_fn_with_state(needs, require_role)),
            None => route.handler,
        };
        router.route(route.path, handler.layer(DefaultBodyLimit::max(route.bytes_max)))
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn router_has_only_the_routes_of_the_list() {
        let sources = [
            include_str!("../api.rs"),
            include_str!("routes.rs").split("#[cfg(test)]\nmod tests").next().expect("split gives one"),
        ];
        let calls = |call: &str| sources.iter().map(|source| source.matches(call).count()).sum::<usize>();
        assert_eq!(calls(".route("), 1, "the one that puts a route of the list behind its role");
        for other in [".nest(", ".merge(", "route_service(", "fallback_service("] {
            assert_eq!(calls(other), 0, "{other}");
        }
    }
}
