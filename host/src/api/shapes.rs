//! Schemas of requests and answers, from the types of the handlers. Tests generate the API's document from them.

use super::backup::BackupFile;
use super::body::{Body, RawBody};
use super::files::content::FileContent;
use super::handler::{Answer, Caller};
use super::health::Exposition;
use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::sse::Sse;
use ironclaw_operator::routes::Raw;
use std::future::Future;
use utoipa::ToSchema;
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{Array, ArrayItems, Schema};

/// The schemas of a handler.
#[derive(Default)]
pub struct Shapes {
    /// The schema of the query, an object; each property is a parameter.
    pub query: Option<RefOr<Schema>>,
    /// The content type and the schema of the body.
    pub body: Option<(&'static str, Named)>,
    /// The status, content type and schemas of a successful answer.
    pub answer: Option<(StatusCode, &'static str, Vec<Named>)>,
    /// Every schema that the others refer to, by name.
    pub components: Vec<(String, RefOr<Schema>)>,
}

/// A schema that may be a component.
pub struct Named {
    /// Its name among the components.
    pub name: String,
    /// The schema, of one element for a list.
    pub schema: RefOr<Schema>,
    /// True for a list of it.
    pub list: bool,
}

impl Named {
    /// Returns true if it is among the components. Other schemas are written in place.
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

/// A handler with this body and this answer, whose types have schemas.
pub trait Described<Body, Answer, D> {
    fn shapes() -> Shapes;
}

/// An argument of a handler.
pub trait RequestPart {
    /// The type of the body, if it reads the body.
    type Body;

    /// Adds the schema of the part that it reads.
    fn note(_: &mut Shapes) {}
}

impl RequestPart for Caller {
    type Body = ();
}

impl<T> RequestPart for State<T> {
    type Body = ();
}

impl<T> RequestPart for Path<T> {
    type Body = ();
}

impl<T: ToSchema> RequestPart for Query<T> {
    type Body = ();

    fn note(shapes: &mut Shapes) {
        shapes.query = Some(T::schema());
    }
}

impl<T: ToSchema> RequestPart for Body<T> {
    type Body = T;

    fn note(shapes: &mut Shapes) {
        shapes.body = Some(("application/json", shapes.named::<T>()));
    }
}

impl RequestPart for RawBody {
    type Body = Raw;

    fn note(shapes: &mut Shapes) {
        shapes.body = Some(("application/octet-stream", shapes.named::<String>()));
    }
}

/// The answer of a handler.
pub trait ResponseType {
    /// Its type in the contract.
    type Answer;

    fn note(shapes: &mut Shapes);
}

impl<T: ToSchema> ResponseType for Result<Json<T>, Answer> {
    type Answer = T;

    fn note(shapes: &mut Shapes) {
        let answer = vec![shapes.named::<T>()];
        shapes.answer = Some((StatusCode::OK, "application/json", answer));
    }
}

/// The status 202 of the handlers that only record a message.
impl<T: ToSchema> ResponseType for Result<(StatusCode, Json<T>), Answer> {
    type Answer = T;

    fn note(shapes: &mut Shapes) {
        let answer = vec![shapes.named::<T>()];
        shapes.answer = Some((StatusCode::ACCEPTED, "application/json", answer));
    }
}

impl ResponseType for Result<Exposition, Answer> {
    type Answer = Raw;

    fn note(shapes: &mut Shapes) {
        let answer = vec![shapes.named::<String>()];
        shapes.answer = Some((StatusCode::OK, "application/openmetrics-text", answer));
    }
}

impl ResponseType for Result<BackupFile, Answer> {
    type Answer = Raw;

    fn note(shapes: &mut Shapes) {
        Result::<FileContent, Answer>::note(shapes);
    }
}

impl ResponseType for Result<FileContent, Answer> {
    type Answer = Raw;

    fn note(shapes: &mut Shapes) {
        let answer = vec![shapes.named::<String>()];
        shapes.answer = Some((StatusCode::OK, "application/octet-stream", answer));
    }
}

/// The stages of a message, its partial answer and the progress of its calls, then the message.
impl<S> ResponseType for Result<Sse<S>, Answer> {
    type Answer = Raw;

    fn note(shapes: &mut Shapes) {
        use ironclaw_operator::{CallProgress, Draft, MessageView, Stage};
        let (stage, draft) = (shapes.named::<Stage>(), shapes.named::<Draft>());
        let answer = vec![stage, draft, shapes.named::<CallProgress>(), shapes.named::<MessageView>()];
        shapes.answer = Some((StatusCode::OK, "text/event-stream", answer));
    }
}

/// The last argument is the one that reads the body.
macro_rules! described {
    ($($argument:ident)* => $body:ty) => {
        impl<Handler, Fut, Out, $($argument,)*> Described<$body, Out::Answer, (Out, $($argument,)*)> for Handler
        where
            Handler: Fn($($argument),*) -> Fut,
            Fut: Future<Output = Out>,
            Out: ResponseType,
            $($argument: RequestPart,)*
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
described!(=> ());
described!(A => A::Body);
described!(A B => B::Body);
described!(A B C => C::Body);
described!(A B C D => D::Body);
described!(A B C D E => E::Body);
described!(A B C D E F => F::Body);
