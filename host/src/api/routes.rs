//! The entry of a route of the API: path, least role, purpose and handler.
//!
//! Each route needs a role and a sentence. Tests compare the types of the handler with those of the route, and derive the schemas of
//! request and answer from them: a handler of other types, or of types without a schema, does not compile in tests. See `api::paths`
//! for the list, `api::openapi` for the document.

use super::auth::{OPEN_TO_ALL, require_role};
use super::body::REQUEST_BYTES_MAX;
use super::handler::Api;
#[cfg(test)]
pub use super::shapes::{Described, Shapes};
use crate::registry::Role;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter, on};
use ironclaw_operator::routes::{self as contract, Method};

/// A handler with this body and this answer. In tests, its types must be these, and have schemas.
#[cfg(not(test))]
pub trait Described<Body, Answer, D> {}

#[cfg(not(test))]
impl<H, Body, Answer> Described<Body, Answer, ()> for H {}

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
    pub method: Method,
    /// One sentence on the use of the route.
    pub about: &'static str,
    /// Schemas of its request and answer.
    pub shapes: Shapes,
}

impl Route {
    /// Returns the route with a larger bound on the bytes of its body.
    pub fn up_to(self, bytes_max: usize) -> Self {
        Self { bytes_max, ..self }
    }
}

/// Returns the entry of a route for callers of this role.
pub fn route<const NAMES: usize, B, A, H, T, D>(
    served: contract::Route<NAMES, B, A>,
    needs: Role,
    about: &'static str,
    handler: H,
) -> Route
where
    H: Handler<T, Api> + Described<B, A, D>,
    T: 'static,
{
    Route { needs: Some(needs), ..without_role(served, about, handler) }
}

/// Returns the entry of a route that needs no token. The answer of its handler must not depend on a person, an agent or a session.
pub fn open_to_all<A, H, T, D>(served: contract::Route<0, (), A>, about: &'static str, handler: H) -> Route
where
    H: Handler<T, Api> + Described<(), A, D>,
    T: 'static,
{
    assert!(OPEN_TO_ALL.contains(&served.path), "the list that the look at tokens goes by has {}", served.path);
    without_role(served, about, handler)
}

fn without_role<const NAMES: usize, B, A, H, T, D>(
    served: contract::Route<NAMES, B, A>,
    about: &'static str,
    handler: H,
) -> Route
where
    H: Handler<T, Api> + Described<B, A, D>,
    T: 'static,
{
    let method = match served.method {
        Method::Get => MethodFilter::GET,
        Method::Post => MethodFilter::POST,
        Method::Patch => MethodFilter::PATCH,
        Method::Delete => MethodFilter::DELETE,
    };
    #[cfg(not(test))]
    let _ = about;
    Route {
        path: served.path,
        needs: None,
        bytes_max: REQUEST_BYTES_MAX,
        #[cfg(test)]
        entry: Entry { method: served.method, about, shapes: H::shapes() },
        handler: on(method, handler),
    }
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
