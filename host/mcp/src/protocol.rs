//! The border to `rmcp`: the start in either era, the ids of requests, and their cancellation.
//!
//! No other module names a type of `rmcp`. Results pass as raw JSON, because the types of `rmcp` leave out unknown fields. See
//! [`crate::client`].

use crate::server::{Era, ServerInfo};
use crate::traffic::{Response, Traffic, UNREADABLE};
use crate::wire::{Outgoing, Wire};
use crate::{Error, Progress};
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, ClientCapabilities, ClientConfig, ClientJsonRpcMessage, ClientRequest,
    CustomResult, ErrorCode, ErrorData, Implementation, ListToolsRequest, NumberOrString, PaginatedRequestParams,
    ProtocolVersion, ServerJsonRpcMessage, ServerResult,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt, PeerRequestOptions, RequestHandle, RunningService,
    RxJsonRpcMessage, ServiceError, TxJsonRpcMessage,
};
use rmcp::transport::{DynamicTransportError, Transport};
use rmcp::{ClientHandler, RoleClient};
use serde_json::{Map, Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::time::timeout;

/// The reason that a server gets with the cancellation of a request.
const GAVE_UP: &str = "the client gave up";
/// Time for the end of a connection.
const CLOSE: Duration = Duration::from_secs(5);
/// Names of versions in an error.
const VERSIONS_MAX: usize = 8;

/// A connection that is ready for requests.
pub(crate) struct Protocol {
    running: RunningService<RoleClient, Ours>,
    traffic: Arc<Traffic>,
}

/// A request to a server.
pub(crate) enum Request {
    List {
        cursor: Option<String>,
    },
    /// `newest` gets the progress.
    Call {
        tool: String,
        arguments: Map<String, Value>,
        newest: watch::Sender<Option<Progress>>,
    },
}

/// A request that was sent. Dropping it cancels it.
pub(crate) struct Sent<'a> {
    handle: Option<RequestHandle<RoleClient>>,
    traffic: &'a Traffic,
}

impl Protocol {
    /// Starts the protocol. With `era` as `None` it first tries `server/discover`, and then `initialize`.
    pub(crate) async fn start(wire: Wire, era: Option<Era>) -> Result<(Self, ServerInfo), Error> {
        let traffic = wire.traffic.clone();
        let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
        let lifecycle = match era {
            Some(Era::Session) => ClientLifecycleMode::Initialize,
            Some(Era::Stateless) => ClientLifecycleMode::Discover { preferred_versions },
            None => ClientLifecycleMode::Auto {
                preferred_versions,
                legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
            },
        };
        let running =
            Ours.serve_with_lifecycle(Pipe(wire), lifecycle).await.map_err(|error| start_error(&error, &traffic))?;
        let Some(peer) = running.peer_info() else {
            return Err(Error::protocol("the server does not say what it is"));
        };
        let version = &peer.protocol_version;
        if !ProtocolVersion::KNOWN_VERSIONS.contains(version) {
            return Err(Error::Versions(version.as_str().to_owned()));
        }
        let named = peer.server_info.as_ref();
        let server = ServerInfo {
            era: if version.has_initialize() { Era::Session } else { Era::Stateless },
            protocol: version.as_str().to_owned(),
            name: named.map(|named| named.name.clone()).unwrap_or_default(),
            version: named.map(|named| named.version.clone()).unwrap_or_default(),
            instructions: peer.instructions.clone(),
        };
        Ok((Self { running, traffic }, server))
    }

    /// Sends a request once.
    pub(crate) async fn send(&self, request: Request) -> Result<Sent<'_>, Error> {
        let request = match request {
            Request::List { cursor } => {
                let params = cursor.map(|cursor| PaginatedRequestParams::default().with_cursor(Some(cursor)));
                ClientRequest::ListToolsRequest(ListToolsRequest { params, ..ListToolsRequest::default() })
            }
            Request::Call { tool, arguments, newest } => {
                let params = CallToolRequestParams::new(tool).with_arguments(arguments);
                let mut call = CallToolRequest::new(params);
                // `rmcp` makes a token for each request while it sends it. The extension reaches `Pipe` with the request.
                call.extensions.insert(newest);
                ClientRequest::CallToolRequest(call)
            }
        };
        let sent = self.running.peer().send_cancellable_request(request, PeerRequestOptions::no_options()).await;
        let handle = sent.map_err(|error| request_error(&error, &self.traffic))?;
        Ok(Sent { handle: Some(handle), traffic: &self.traffic })
    }

    pub(crate) fn traffic(&self) -> &Traffic {
        &self.traffic
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.traffic.ended().is_some() || self.running.is_closed() || self.running.peer().is_transport_closed()
    }

    pub(crate) async fn close(mut self) {
        // The tasks of the connection end with `self` in every case.
        let _ = self.running.close_with_timeout(CLOSE).await;
    }
}

impl Sent<'_> {
    /// Waits for the result.
    pub(crate) async fn result(mut self) -> Result<Value, Error> {
        let Some(handle) = self.handle.as_mut() else {
            return Err(Error::Gone);
        };
        let answer = (&mut handle.rx).await.unwrap_or(Err(ServiceError::TransportClosed));
        // It has an answer, so there is nothing to cancel.
        self.handle = None;
        match answer {
            Ok(ServerResult::CustomResult(CustomResult(value))) => Ok(value),
            Ok(_) => Err(Error::protocol("a result of another request")),
            Err(error) => Err(request_error(&error, self.traffic)),
        }
    }
}

impl Drop for Sent<'_> {
    fn drop(&mut self) {
        if let (Some(handle), Ok(runtime)) = (self.handle.take(), tokio::runtime::Handle::try_current()) {
            runtime.spawn(async move {
                let _ = timeout(CLOSE, handle.cancel(Some(GAVE_UP.to_owned()))).await;
            });
        }
    }
}

/// The client that the server sees: it offers nothing.
struct Ours;

impl ClientHandler for Ours {
    fn get_info(&self) -> ClientConfig {
        let ours = Implementation::new("ironclaw", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), ours)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }
}

/// A connection in the form that `rmcp` drives.
struct Pipe(Wire);

impl Transport<RoleClient> for Pipe {
    type Error = Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Error>> + Send + 'static {
        let outgoing = self.0.outgoing.clone();
        async move {
            let (sent, outcome) = oneshot::channel();
            let newest = newest_of(&message);
            let message = to_value(&message)?;
            outgoing.send(Outgoing { message, sent, newest }).await.map_err(|_| Error::Gone)?;
            outcome.await.unwrap_or(Err(Error::Gone))
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        self.0.incoming.recv().await.map(to_message)
    }

    async fn close(&mut self) -> Result<(), Error> {
        self.0.incoming.close();
        Ok(())
    }
}

/// Returns the place for the progress of a call.
fn newest_of(message: &ClientJsonRpcMessage) -> Option<watch::Sender<Option<Progress>>> {
    match message {
        ClientJsonRpcMessage::Request(sent) => match &sent.request {
            ClientRequest::CallToolRequest(call) => call.extensions.get().cloned(),
            _ => None,
        },
        _ => None,
    }
}

fn to_value(message: &ClientJsonRpcMessage) -> Result<Value, Error> {
    serde_json::to_value(message).map_err(|error| Error::Protocol(format!("cannot write a message: {error}")))
}

/// Keeps a result raw, but for the two that start a connection.
fn to_message(response: Response) -> ServerJsonRpcMessage {
    let Response { id, method, content } = response;
    let error = |why: Value| {
        let error = ErrorData::new(ErrorCode(0), "an error without a code", None);
        serde_json::from_value(why).unwrap_or(error)
    };
    let id_of = NumberOrString::Number(id);
    match content {
        // `rmcp` would not try `initialize` with a server that names only older versions.
        Err(why) if method == "server/discover" && is_older(&why) => older(id_of),
        // Some older servers answer each unknown method with an empty result.
        Ok(result) if method == "server/discover" && result == json!({}) => older(id_of),
        Err(why) => ServerJsonRpcMessage::error(error(why), Some(id_of)),
        Ok(result) if method == "initialize" || method == "server/discover" => {
            let whole = json!({"jsonrpc": "2.0", "id": id, "result": result});
            serde_json::from_value(whole).unwrap_or_else(|_| {
                let why = json!({"code": 0, "message": "the answer to the first request has another form"});
                ServerJsonRpcMessage::error(error(why), Some(id_of))
            })
        }
        Ok(result) => ServerJsonRpcMessage::response(ServerResult::CustomResult(CustomResult(result)), id_of),
    }
}

fn older(id: NumberOrString) -> ServerJsonRpcMessage {
    let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "the server speaks older versions only", None);
    ServerJsonRpcMessage::error(error, Some(id))
}

/// Returns whether an error says that the server supports versions with a session only.
fn is_older(error: &Value) -> bool {
    let versions: Vec<_> = error.pointer("/data/supported").and_then(Value::as_array).into_iter().flatten().collect();
    let code = error.get("code").and_then(Value::as_i64);
    let has_stateless =
        versions.iter().any(|version| version.as_str() >= Some(ProtocolVersion::NO_INITIALIZE.as_str()));
    code == Some(ErrorCode::UNSUPPORTED_PROTOCOL_VERSION.0.into()) && !versions.is_empty() && !has_stateless
}

fn start_error(error: &ClientInitializeError, traffic: &Traffic) -> Error {
    use ClientInitializeError as Start;
    match error {
        Start::ConnectionClosed(_) => traffic.ended().unwrap_or(Error::Gone),
        Start::TransportError { error, .. } => sent_error(error),
        Start::JsonRpcError(error) => answered(error),
        Start::NoCompatibleProtocolVersion { server_supported, .. } => {
            let names = server_supported.iter().take(VERSIONS_MAX).map(ProtocolVersion::as_str);
            Error::Versions(names.collect::<Vec<_>>().join(", "))
        }
        Start::LegacyFallbackFailed { fallback, .. } => start_error(fallback, traffic),
        _ => Error::protocol("the answer to the first request has another form"),
    }
}

fn request_error(error: &ServiceError, traffic: &Traffic) -> Error {
    match error {
        ServiceError::McpError(error) => answered(error),
        ServiceError::TransportSend(error) => sent_error(error),
        ServiceError::TransportClosed => traffic.ended().unwrap_or(Error::Gone),
        ServiceError::Cancelled { .. } | ServiceError::Timeout { .. } => Error::Late,
        _ => Error::protocol("a result of another request"),
    }
}

fn sent_error(error: &DynamicTransportError) -> Error {
    error.error.downcast_ref().cloned().unwrap_or(Error::Gone)
}

fn answered(error: &ErrorData) -> Error {
    if error.code.0 == UNREADABLE {
        return Error::Unreadable(error.message.clone().into_owned());
    }
    Error::Answered { code: error.code.0.into(), message: error.message.clone().into_owned() }
}
