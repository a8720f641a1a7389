//! What a path of the API is: method, path, the role that it needs, what it is for, and its handler.
//!
//! Never a route without a role or without a description: both are read off the handler's own types, so that a handler whose
//! shapes have no schema does not compile. Next: `api::routes` for the list, `api::openapi` for the document.

use super::auth::require_role;
use super::body::{Body, REQUEST_BYTES_MAX};
use super::watching::Exposition;
use super::{Answer, Api};
use crate::registry::Role;
use axum::extract::{DefaultBodyLimit, Path, Query, State};
use axum::handler::Handler;
use axum::http::StatusCode;
use axum::response::sse::Sse;
use axum::routing::{self, MethodRouter};
use axum::{Extension, Json, Router};
use std::future::Future;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{Array, ArrayItems, Schema};

/// The paths that need no token; where the peer is looked at, these are the only ones that go on without.
pub const OPEN_TO_ALL: [&str; 2] = ["/healthz", "/readyz"];

/// One path with one method.
pub struct Route {
    /// `GET POST DELETE`.
    pub method: &'static str,
    /// With its parameters in braces.
    pub path: &'static str,
    /// The least role that may use it; `None` where no token is needed.
    pub needs: Option<Role>,
    /// What it is for, one line.
    pub about: &'static str,
    /// Bytes of a body that it takes.
    pub bytes_max: usize,
    /// What its handler takes and gives.
    pub shapes: Shapes,
    handler: MethodRouter<Api>,
}

/// What is read off a handler's types.
#[derive(Default)]
pub struct Shapes {
    /// The shape of the query, an object; each property is a parameter.
    pub query: Option<RefOr<Schema>>,
    /// The shape of the body that it takes.
    pub body: Option<Named>,
    /// What it answers when all is well.
    pub answer: Option<(StatusCode, &'static str, Vec<Named>)>,
    /// Every schema that the others refer to, by name.
    pub components: Vec<(String, RefOr<Schema>)>,
}

/// A shape that may have a name among the components.
pub struct Named {
    /// Name among the components.
    pub name: String,
    /// The schema, of one element where a list is meant.
    pub schema: RefOr<Schema>,
    /// Whether a list of it is meant.
    pub list: bool,
}

impl Named {
    /// Whether it stands among the components; the rest is written where it is used.
    pub fn is_component(&self) -> bool {
        match &self.schema {
            RefOr::T(Schema::Object(object)) => !object.properties.is_empty(),
            RefOr::T(Schema::AllOf(_)) => true,
            RefOr::T(_) | RefOr::Ref(_) => false,
        }
    }
}

impl Route {
    /// The same for bodies of up to so many bytes.
    pub fn up_to(self, bytes_max: usize) -> Self {
        Self { bytes_max, ..self }
    }
}

impl Shapes {
    fn named<T: ToSchema>(&mut self) -> Named {
        T::schemas(&mut self.components);
        let short = |path: &str| path.rsplit("::").next().unwrap_or(path).to_owned();
        let path = std::any::type_name::<T>();
        let element = path.strip_prefix("alloc::vec::Vec<").and_then(|rest| rest.strip_suffix('>'));
        let named = match (element, T::schema()) {
            (Some(element), RefOr::T(Schema::Array(Array { items: ArrayItems::RefOrSchema(schema), .. }))) => {
                Named { name: short(element), schema: *schema, list: true }
            }
            (_, schema) => Named { name: short(path), schema, list: false },
        };
        if named.is_component() {
            self.components.push((named.name.clone(), named.schema.clone()));
        }
        named
    }
}

/// `GET`
pub fn get<H, T, D>(path: &'static str, needs: Role, about: &'static str, handler: H) -> Route
where
    H: Handler<T, Api> + Described<D>,
    T: 'static,
{
    Route {
        method: "GET",
        path,
        needs: Some(needs),
        about,
        bytes_max: REQUEST_BYTES_MAX,
        shapes: H::shapes(),
        handler: routing::get(handler),
    }
}

/// `GET`, for whoever gets as far as the socket or the port. Its handler says nothing of anybody.
pub fn open_to_all<H, T, D>(path: &'static str, about: &'static str, handler: H) -> Route
where
    H: Handler<T, Api> + Described<D>,
    T: 'static,
{
    assert!(OPEN_TO_ALL.contains(&path), "the list that the look at tokens goes by has {path}");
    Route {
        method: "GET",
        path,
        needs: None,
        about,
        bytes_max: REQUEST_BYTES_MAX,
        shapes: H::shapes(),
        handler: routing::get(handler),
    }
}

/// `POST`
pub fn post<H, T, D>(path: &'static str, needs: Role, about: &'static str, handler: H) -> Route
where
    H: Handler<T, Api> + Described<D>,
    T: 'static,
{
    Route {
        method: "POST",
        path,
        needs: Some(needs),
        about,
        bytes_max: REQUEST_BYTES_MAX,
        shapes: H::shapes(),
        handler: routing::post(handler),
    }
}

/// `DELETE`
pub fn delete<H, T, D>(path: &'static str, needs: Role, about: &'static str, handler: H) -> Route
where
    H: Handler<T, Api> + Described<D>,
    T: 'static,
{
    Route {
        method: "DELETE",
        path,
        needs: Some(needs),
        about,
        bytes_max: REQUEST_BYTES_MAX,
        shapes: H::shapes(),
        handler: routing::delete(handler),
    }
}

/// The routes as axum wants them, each behind its role.
pub fn router(routes: Vec<Route>) -> Router<Api> {
    routes.into_iter().fold(Router::new(), |router, route| {
        let handler = match route.needs {
            Some(needs) => route.handler.route_layer(axum::middleware::from_fn_with_state(needs, require_role)),
            None => route.handler,
        };
        router.route(route.path, handler.layer(DefaultBodyLimit::max(route.bytes_max)))
    })
}

/// A handler whose types say what it takes and gives.
pub trait Described<D> {
    /// What they say.
    fn shapes() -> Shapes;
}

/// An argument of a handler.
pub trait Takes {
    /// Notes what of the request it reads.
    fn note(_: &mut Shapes) {}
}

impl<T> Takes for State<T> {}
impl<T> Takes for Extension<T> {}
impl<T> Takes for Path<T> {}

impl<T: ToSchema> Takes for Query<T> {
    fn note(shapes: &mut Shapes) {
        shapes.query = Some(T::schema());
    }
}

impl<T: ToSchema> Takes for Body<T> {
    fn note(shapes: &mut Shapes) {
        shapes.body = Some(shapes.named::<T>());
    }
}

/// What a handler answers.
pub trait Gives {
    /// Notes it.
    fn note(shapes: &mut Shapes);
}

impl<T: ToSchema> Gives for Result<Json<T>, Answer> {
    fn note(shapes: &mut Shapes) {
        let answer = vec![shapes.named::<T>()];
        shapes.answer = Some((StatusCode::OK, "application/json", answer));
    }
}

/// The one handler that answers with another code says that it has only taken something down.
impl<T: ToSchema> Gives for Result<(StatusCode, Json<T>), Answer> {
    fn note(shapes: &mut Shapes) {
        let answer = vec![shapes.named::<T>()];
        shapes.answer = Some((StatusCode::ACCEPTED, "application/json", answer));
    }
}

impl Gives for Result<Exposition, Answer> {
    fn note(shapes: &mut Shapes) {
        let answer = vec![shapes.named::<String>()];
        shapes.answer = Some((StatusCode::OK, "application/openmetrics-text", answer));
    }
}

/// The stages of a message and the words of its answer as they come, then the message.
impl<S> Gives for Result<Sse<S>, Answer> {
    fn note(shapes: &mut Shapes) {
        use ironclaw_contract::operator::{Draft, MessageView, Stage};
        let answer = vec![shapes.named::<Stage>(), shapes.named::<Draft>(), shapes.named::<MessageView>()];
        shapes.answer = Some((StatusCode::OK, "text/event-stream", answer));
    }
}

macro_rules! described {
    ($($argument:ident)*) => {
        impl<F, Fut, Out, $($argument,)*> Described<(Out, $($argument,)*)> for F
        where
            F: Fn($($argument),*) -> Fut,
            Fut: Future<Output = Out>,
            Out: Gives,
            $($argument: Takes,)*
        {
            fn shapes() -> Shapes {
                let mut shapes = Shapes::default();
                $($argument::note(&mut shapes);)*
                Out::note(&mut shapes);
                shapes
            }
        }
    };
}
described!();
described!(A);
described!(A B);
described!(A B C);
described!(A B C D);
described!(A B C D E);

#[cfg(test)]
mod tests {
    #[test]
    fn a_path_gets_into_the_router_through_the_list_alone() {
        let sources = [
            include_str!("../api.rs"),
            include_str!("routes.rs").split("#[cfg(test)]").next().expect("split gives one"),
        ];
        let calls = |call: &str| sources.iter().map(|source| source.matches(call).count()).sum::<usize>();
        assert_eq!(calls(".route("), 1, "the one that puts a route of the list behind its role");
        for other in [".nest(", ".merge(", "route_service(", "fallback_service("] {
            assert_eq!(calls(other), 0, "{other}");
        }
    }
}
