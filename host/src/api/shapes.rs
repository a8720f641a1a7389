//! Schemas of requests and answers, read off the types of the handlers. Tests make the document of the API of them.

use super::Answer;
use super::body::Body;
use super::watching::Exposition;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::sse::Sse;
use axum::{Extension, Json};
use std::future::Future;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{Array, ArrayItems, Schema};

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
