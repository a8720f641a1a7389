//! The server over streamable HTTP on loopback.

use crate::behave::{Behave, unasked};
use crate::{Arguments, Server};
use axum::body::{Body, to_bytes};
use axum::extract::{Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::serve::ListenerExt;
use axum::{Json, Router};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::net::TcpListener;

/// Bytes of a request.
const REQUEST_BYTES_MAX: usize = 4 << 20;

/// Whether the tools were listed.
static LISTED: AtomicBool = AtomicBool::new(false);

/// Serves until the process ends. Prints `http://127.0.0.1:PORT/mcp`.
pub(crate) async fn serve(server: Server, port: u16) -> Result<(), Box<dyn std::error::Error>> {
    let arguments = server.arguments.clone();
    let address = arguments.listen.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST));
    let make = move || Ok(server.clone());
    let service = StreamableHttpService::new(
        make,
        Arc::new(LocalSessionManager::default()),
        match arguments.listen {
            None => StreamableHttpServerConfig::default(),
            Some(_) => StreamableHttpServerConfig::default().disable_allowed_hosts(),
        },
    );
    let app = Router::new().route_service("/mcp", service).layer(from_fn_with_state(arguments, misbehave));
    let listener = TcpListener::bind(SocketAddr::from((address, port))).await?;
    writeln!(std::io::stdout(), "http://{}/mcp", listener.local_addr()?)?;
    // Without a delay of small packets, which would be most of the time of a call.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    axum::serve(listener, app).await?;
    Ok(())
}

/// The misbehaviours that only HTTP has, or that differ over HTTP.
async fn misbehave(State(arguments): State<Arguments>, request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        return next.run(request).await;
    }
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, REQUEST_BYTES_MAX).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let is_call = message["method"] == "tools/call";
    let authorization = head.headers.get(header::AUTHORIZATION).cloned();
    let answer = next.run(Request::from_parts(head, Body::from(body))).await;
    match arguments.behave {
        Behave::Unauthorized if is_call => {
            // The tool acts before the first byte of the answer is read.
            let _ = to_bytes(answer.into_body(), REQUEST_BYTES_MAX).await;
            let challenge = "Bearer resource_metadata=\"https://example.com/.well-known/oauth-protected-resource\"";
            (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, challenge)]).into_response()
        }
        Behave::Leak if message["method"] == "tools/list" && LISTED.swap(true, Ordering::SeqCst) => {
            let words = format!("the key {authorization:?} is too old");
            let error = json!({"code": -32001, "message": words});
            Json(json!({"jsonrpc": "2.0", "id": message["id"], "error": error})).into_response()
        }
        Behave::Unasked if is_call => {
            let result = json!({"content": [{"type": "text", "text": "asked"}], "isError": false});
            let asked = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            let events = format!("data: {}\n\ndata: {asked}\n\n", unasked());
            ([(header::CONTENT_TYPE, "text/event-stream")], events).into_response()
        }
        _ => answer,
    }
}
