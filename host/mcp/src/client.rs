//! One connection to one server, with limits in time and bytes on each request.
//!
//! Never sends a request twice; a call that fails says whether it may have arrived. See [`crate::protocol`].

use crate::answer::{Answer, Asked, NotAnswered};
use crate::limits::{CallLimits, Limits};
use crate::listing::{Listing, Pages};
use crate::protocol::{Protocol, Request};
use crate::server::ServerInfo;
use crate::traffic::METHOD_NOT_FOUND;
use crate::wire::Wire;
use crate::{Error, Progress, http, streams};
use reqwest::header::HeaderMap;
use serde_json::{Map, Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::watch;
use tokio::time::timeout;
use url::Url;

/// A connection to a server. Dropping it ends the connection.
pub struct Client {
    protocol: Protocol,
    server: ServerInfo,
    limits: Limits,
}

impl Client {
    /// Connects over streamable HTTP.
    ///
    /// `headers` go with every request and may have secrets. `http` decides on addresses, proxies and TLS; it must not follow
    /// redirects (`Policy::none`) nor retry. No stream for messages outside of a request is opened.
    ///
    /// # Errors
    /// [`Error::Address`] for a URL that is not http or https, or has a user or password. [`Error::Unreachable`],
    /// [`Error::Refused`], [`Error::Late`] and the failures of the protocol.
    pub async fn over_http(url: Url, headers: HeaderMap, http: reqwest::Client, limits: Limits) -> Result<Self, Error> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Error::Address(format!("{} is no scheme of HTTP; use https", url.scheme())));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(Error::Address("it has a user or a password; use a header".to_owned()));
        }
        let wire = http::connect(url, headers, http, limits.answer_bytes_max);
        Self::start(wire, limits).await
    }

    /// Connects over a pair of streams: `read` gives the server's lines, `write` takes ours. One line is one message. A line over
    /// `answer_bytes_max` ends the connection.
    ///
    /// # Errors
    /// [`Error::Gone`] if a stream ends, [`Error::TooLarge`], [`Error::Late`] and the failures of the protocol.
    pub async fn over_streams(
        read: impl AsyncRead + Send + Unpin + 'static,
        write: impl AsyncWrite + Send + Unpin + 'static,
        limits: Limits,
    ) -> Result<Self, Error> {
        let wire = streams::connect(read, write, limits.answer_bytes_max);
        Self::start(wire, limits).await
    }

    async fn start(wire: Wire, limits: Limits) -> Result<Self, Error> {
        let started = timeout(limits.begin, Protocol::start(wire, limits.era)).await;
        let (protocol, server) = started.map_err(|_| Error::Late)??;
        Ok(Self { protocol, server, limits })
    }

    /// Returns the server as it described itself at the start.
    pub const fn server(&self) -> &ServerInfo {
        &self.server
    }

    /// Lists all tools, page by page, and clears [`Self::has_changed`]. A server without tools has an empty list. A cursor that leads
    /// nowhere ends the list; [`Listing::cut`] has the reason.
    ///
    /// # Errors
    /// [`Error::TooManyTools`], [`Error::TooLarge`], [`Error::Late`], and the failures of a request.
    pub async fn list(&self) -> Result<Listing, Error> {
        timeout(self.limits.whole, self.pages()).await.map_err(|_| Error::Late)?
    }

    async fn pages(&self) -> Result<Listing, Error> {
        self.protocol.traffic().clear_changed();
        let mut pages = Pages::new(&self.limits, self.server.era);
        let mut cursor = None;
        loop {
            let sent = self.protocol.send(Request::List { cursor }).await?;
            let page = match sent.result().await {
                Err(Error::Answered { code, .. }) if pages.refused(code) => {
                    return Ok(pages.finish(self.server.clone()));
                }
                Err(Error::Answered { code: METHOD_NOT_FOUND, .. }) => json!({"tools": []}),
                page => page?,
            };
            cursor = pages.add(page)?;
            if cursor.is_none() {
                return Ok(pages.finish(self.server.clone()));
            }
        }
    }

    /// Calls a tool once. If the time is over, or the future is dropped, the server gets `notifications/cancelled`.
    ///
    /// # Errors
    /// The failure, and whether the call may have arrived. An error of JSON-RPC is [`Error::Answered`]; a result that the server
    /// marks as an error is an [`Answer`].
    pub async fn call(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        limits: CallLimits,
    ) -> Result<Answer, NotAnswered> {
        self.call_watched(tool, arguments, limits, watch::Sender::new(None)).await
    }

    /// Calls a tool once, as [`Self::call`] does. `newest` gets each report of the server about this call, and nothing after its end.
    ///
    /// # Errors
    /// Those of [`Self::call`].
    pub async fn call_watched(
        &self,
        tool: &str,
        arguments: Map<String, Value>,
        limits: CallLimits,
        newest: watch::Sender<Option<Progress>>,
    ) -> Result<Answer, NotAnswered> {
        let unsent = |error| NotAnswered { error, may_have_arrived: false, refused: Vec::new() };
        if let Some(error) = self.protocol.traffic().ended() {
            return Err(unsent(error));
        }
        let arguments = Value::Object(arguments);
        if arguments.to_string().len() > limits.argument_bytes_max {
            return Err(unsent(Error::ArgumentsTooLarge { bytes_max: limits.argument_bytes_max }));
        }
        let Value::Object(arguments) = arguments else {
            return Err(unsent(Error::protocol("the arguments are no object")));
        };
        let asked = self.ask(Request::Call { tool: tool.to_owned(), arguments, newest }, limits.answer_bytes_max);
        match timeout(limits.whole, asked).await.unwrap_or(Err(Error::Late)) {
            Ok(answer) => Ok(answer),
            Err(error) => {
                let may_have_arrived = !matches!(error, Error::Unreachable(_));
                Err(NotAnswered { error, may_have_arrived, refused: self.protocol.traffic().asked() })
            }
        }
    }

    async fn ask(&self, request: Request, answer_bytes_max: usize) -> Result<Answer, Error> {
        let traffic = self.protocol.traffic();
        traffic.begin_call();
        let result = self.protocol.send(request).await?.result().await?;
        let bytes = result.to_string().len();
        if bytes > answer_bytes_max {
            return Err(Error::TooLarge { bytes_max: answer_bytes_max });
        }
        Answer::read(result, bytes, traffic.asked())
    }

    /// Returns the requests that the server made during the last call or another one at the same time, at most 4, also if the future of
    /// the call was dropped. They were refused.
    pub fn refused(&self) -> Vec<Asked> {
        self.protocol.traffic().asked()
    }

    /// Returns whether the server said, since the last listing, that its tools changed.
    pub fn has_changed(&self) -> bool {
        self.protocol.traffic().has_changed()
    }

    /// Returns whether the connection ended. A closed connection does not open again.
    pub fn is_closed(&self) -> bool {
        self.protocol.is_closed()
    }

    /// Ends the connection: closes the streams, or deletes the session over HTTP.
    pub async fn close(self) {
        self.protocol.close().await;
    }
}
