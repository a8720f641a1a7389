//! The answer of a server to a call, in words that a model can read.
//!
//! Never decodes an image or opens a link; it says what they are. See [`crate::Client::call`].

use crate::Error;
use serde_json::{Map, Value};

/// Bytes of JSON of the schema of a request of the server.
const SCHEMA_BYTES_MAX: usize = 16 << 10;
/// Requests for input of one result.
const ASKED_MAX: usize = 8;

/// The answer of a server.
#[derive(Debug, Clone, PartialEq)]
pub enum Answer {
    /// The call is over.
    Done(Output),
    /// The server asks for input before it continues. This client answers none of the requests.
    WantsInput {
        /// The requests, at most 8.
        asked: Vec<Asked>,
        /// The opaque text that a retry must send back.
        state: Option<String>,
    },
}

/// A call without an answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{error}")]
pub struct NotAnswered {
    #[source]
    pub error: Error,
    /// Whether the server may have got the call, and so may have acted. False only if no byte of it was sent.
    pub may_have_arrived: bool,
    /// The requests that the server made during this call or another one at the same time, at most 4. They were refused.
    pub refused: Vec<Asked>,
}

/// The result of a call.
#[derive(Debug, Clone, PartialEq)]
pub struct Output {
    /// The text, with a line for each content that is no text. Unchanged: it can have invisible characters.
    pub text: String,
    /// Whether the server calls it an error.
    pub is_error: bool,
    pub structured: Option<Value>,
    /// Bytes of JSON of the whole result.
    pub bytes: usize,
    /// The requests that the server made during this call or another one at the same time, at most 4. They were refused.
    pub refused: Vec<Asked>,
}

/// A request of a server for input, a sample or roots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// The server's key for the request in a result, else empty.
    pub key: String,
    /// The method, such as `elicitation/create`.
    pub method: String,
    /// The server's text. Unchanged: it can have invisible characters.
    pub message: String,
    /// The schema of the wanted input, if it has at most 16 KiB.
    pub schema: Option<Value>,
    /// The address that the server wants a person to open.
    pub url: Option<String>,
}

impl Asked {
    pub(crate) fn new(key: &str, method: &str, params: Option<&Value>) -> Self {
        let field = |name| params.and_then(|params| params.get(name));
        let text = |name| field(name).and_then(Value::as_str).map(str::to_owned);
        let schema = field("requestedSchema").filter(|schema| schema.to_string().len() <= SCHEMA_BYTES_MAX);
        Self {
            key: key.to_owned(),
            method: method.to_owned(),
            message: text("message").unwrap_or_default(),
            schema: schema.cloned(),
            url: text("url"),
        }
    }
}

impl Answer {
    /// Reads the result of `tools/call`.
    ///
    /// # Errors
    /// [`Error::Protocol`] if it has no known form.
    pub(crate) fn read(result: Value, bytes: usize, refused: Vec<Asked>) -> Result<Self, Error> {
        let Value::Object(mut result) = result else {
            return Err(Error::protocol("the result of a call is no object"));
        };
        match result.get("resultType").and_then(Value::as_str) {
            None | Some("complete") => {}
            Some("input_required") => return Self::wanted(&result),
            Some(other) => return Err(Error::protocol(format!("a result of the type {other}"))),
        }
        let contents = match result.get("content") {
            None | Some(Value::Null) => &[][..],
            Some(Value::Array(contents)) => contents,
            Some(_) => return Err(Error::protocol("the content of a result is no array")),
        };
        let text = contents.iter().map(in_words).collect::<Vec<_>>().join("\n");
        let is_error = result.get("isError").and_then(Value::as_bool).unwrap_or_default();
        let structured = result.remove("structuredContent").filter(|structured| !structured.is_null());
        Ok(Self::Done(Output { text, is_error, structured, bytes, refused }))
    }

    fn wanted(result: &Map<String, Value>) -> Result<Self, Error> {
        let requests = result.get("inputRequests").and_then(Value::as_object);
        let asked: Vec<Asked> = requests
            .into_iter()
            .flatten()
            .map(|(key, request)| {
                let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
                Asked::new(key, method, request.get("params"))
            })
            .take(ASKED_MAX + 1)
            .collect();
        if asked.len() > ASKED_MAX {
            return Err(Error::protocol(format!("a result asks for more than {ASKED_MAX} inputs")));
        }
        let state = result.get("requestState").and_then(Value::as_str).map(str::to_owned);
        Ok(Self::WantsInput { asked, state })
    }
}

/// Returns the text of a content, or a line that says what it is.
fn in_words(content: &Value) -> String {
    let text = |pointer: &str| content.pointer(pointer).and_then(Value::as_str);
    let of_type = |pointer: &str| text(pointer).unwrap_or("no type");
    // Base64 has four characters for three bytes.
    let size = |pointer: &str| text(pointer).map_or(0, |data| data.trim_end_matches('=').len() * 3 / 4);
    match text("/type") {
        Some("text") => text("/text").unwrap_or_default().to_owned(),
        Some(kind @ ("image" | "audio")) => {
            format!("[{kind} of type {}, {} bytes, left out]", of_type("/mimeType"), size("/data"))
        }
        Some("resource_link") => format!("[link to the resource {}, not opened]", of_type("/uri")),
        Some("resource") => match text("/resource/text") {
            Some(inside) => inside.to_owned(),
            None => format!(
                "[resource {} of type {}, {} bytes, left out]",
                of_type("/resource/uri"),
                of_type("/resource/mimeType"),
                size("/resource/blob")
            ),
        },
        other => format!("[content of the unknown type {}, left out]", other.unwrap_or("none")),
    }
}
