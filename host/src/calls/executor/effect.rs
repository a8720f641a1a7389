//! The effect of a judged call by its source: a request over the network, a command that reaches it, a message to a destination, or a
//! call of a tool of an MCP server.
//!
//! Takes a proof that the call may run, and sends exactly the arguments that were hashed. See [`crate::turns::calls::http`] and
//! [`crate::reach::mcp`].

use super::{Executor, Place, send};
use crate::gateway::requests::Permitted;
use crate::gateway::requests::facts::{Reach, Reached, SentRequest, ServerTool};
use crate::reach::git_push;
use crate::reach::jail_network::{self, GrantedHost, OfCommand, Traffic};
use crate::reach::mcp::{self, Called, Open};
use crate::reach::network_command::{self, Order};
use crate::registry::mcp as catalogue;
use crate::registry::secrets::{self, Versioned};
use crate::registry::{self, egress};
use crate::sessions::store;
use crate::turns::calls::{self, ResultBody, ServerAnswer, http};
use ironclaw_contract::ids::AgentId;
use ironclaw_judge::egress::{Grant, Request};
use ironclaw_ledger::Entry;
use ironclaw_net::fetch::{Credential, Form, Limits};
use ironclaw_operator::LedgerEvent;
use ironclaw_state::ReadTx;
use ironclaw_state::keys::SecretText;
use ironclaw_store::error::Error;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, timeout};

/// A call that is marked as running.
pub(super) enum Effect {
    /// A request over the network.
    Http(Box<HttpEffect>),
    /// A command that reaches the network.
    Command(Box<Order>),
    /// A push of commits.
    Push(Box<git_push::Order>),
    /// A message or a file to a destination or into the conversation.
    Send(Box<send::Order>),
    /// A call of a tool of an MCP server.
    Mcp(Box<ServerCall>),
}

/// A call of a tool of an MCP server.
pub(super) struct ServerCall {
    tool: ServerTool,
    /// The name of the tool for the agent.
    name: String,
    arguments: Map<String, Value>,
    /// Whether the tool only reads, as people confirmed it.
    only_reads: bool,
}

impl ServerCall {
    /// Returns the name of the tool on its server.
    pub(super) fn tool_name(&self) -> &str {
        &self.tool.tool
    }

    /// Returns the server, by whatever name it is registered.
    pub(super) fn origin(&self) -> String {
        catalogue::origin(&self.tool.registration.described)
    }

    /// Returns the answer of the server with the service that gave it.
    fn answer(&self, content: Option<Value>) -> ServerAnswer {
        let service = catalogue::service(&self.tool.registration.described);
        ServerAnswer { content, origin: self.origin(), service, pin: self.tool.pin }
    }

    pub(super) const fn arguments(&self) -> &Map<String, Value> {
        &self.arguments
    }
}

/// A request over the network with its secret.
pub(super) struct HttpEffect {
    request: Request,
    body: Option<String>,
    host: String,
    port: u16,
    secret: Option<SecretText>,
    /// The grant of its host.
    grant: Option<Grant>,
}

/// The connection for a call.
pub(super) enum Connection {
    /// The call is not of an MCP server.
    NotNeeded,
    Ready(Arc<Open>),
    /// The reason why the server cannot be reached.
    Unreachable(String),
}

impl Connection {
    /// Returns the open connection.
    pub(super) const fn open(&self) -> Option<&Arc<Open>> {
        match self {
            Self::Ready(open) => Some(open),
            Self::NotNeeded | Self::Unreachable(_) => None,
        }
    }
}

impl Effect {
    /// Adds the hosts of the effect to the entry of its start.
    pub(super) fn with_hosts(&self, entry: Entry) -> Entry {
        match self {
            Self::Http(http) => entry.with("host", http.host.clone()),
            Self::Command(order) => {
                let hosts = order.reach.hosts.iter().map(|host| &host.grant).chain(&order.reach.tunnels);
                let hosts = hosts.map(|grant| grant.host().to_string());
                entry.with("host", hosts.collect::<Vec<_>>().join(" "))
            }
            Self::Push(order) => {
                let hosts = order.hosts.iter().map(|host| host.grant.host().to_string());
                entry.with("host", hosts.collect::<Vec<_>>().join(" "))
            }
            Self::Send(order) => entry.with("host", format!("channel:{}", order.channel)),
            Self::Mcp(call) => {
                entry.with("host", format!("mcp:{}", call.tool.server)).with("server_tool", call.tool.tool.clone())
            }
        }
    }

    /// Returns the granted hosts that the effect certainly sends a request to. A command chooses its hosts itself.
    pub(super) fn requested_hosts(&self) -> Vec<String> {
        match self {
            Self::Http(http) => vec![http.host.clone()],
            Self::Push(order) => order.hosts.iter().map(|host| host.grant.host().to_string()).collect(),
            Self::Command(_) | Self::Send(_) | Self::Mcp(_) => Vec::new(),
        }
    }

    /// Makes the effect of a permitted call from its facts, and from nothing else but the values of the secrets that they name.
    pub(super) fn from_permitted(
        executor: &Executor,
        tx: &ReadTx<'_>,
        permitted: &Permitted,
        place: &Place,
        agent: AgentId,
    ) -> Result<Self, Error> {
        let (id, facts) = (permitted.call(), permitted.facts());
        let changed = || ironclaw_state::Error::Stored(format!("{id} changed after its judgement"));
        let session = || store::find(tx, place.session)?.ok_or_else(changed);
        let loopback = executor.settings.now().host_policy.egress.loopback();
        let value_of = |secret: &Versioned| {
            let found = secrets::get(tx, &executor.record.wrapping, &secret.name).map_err(|_| changed())?;
            found.ok_or_else(changed)
        };
        let granted = |reached: &Reached| {
            let secret = reached.secret.as_ref().map(value_of).transpose()?;
            Ok::<_, ironclaw_state::Error>(GrantedHost { grant: reached.grant.clone(), secret })
        };
        Ok(match facts.reach() {
            Reach::Request(sent) => {
                let SentRequest { request, body, grant, secret } = &**sent;
                let (host, port) = (request.url().host().to_string(), request.url().port());
                let secret = secret.as_ref().map(value_of).transpose()?;
                let (request, body, grant) = (request.clone(), body.clone(), grant.clone());
                Self::Http(Box::new(HttpEffect { request, body, host, port, secret, grant }))
            }
            Reach::Command { hosts, tunnels } => {
                let hosts = hosts.iter().map(granted).collect::<Result<Vec<_>, _>>()?;
                let (command, seconds) = network_command::arguments(facts.arguments()).map_err(|_| changed())?;
                let authority = Arc::clone(&executor.authority);
                let agent = registry::agent_by_id(tx, agent)?.ok_or_else(changed)?.name;
                let of_command = Some(OfCommand { agent, authority });
                let (hosts, tunnels) = (Arc::new(hosts), tunnels.clone());
                let reach = jail_network::Reach { hosts, tunnels, loopback, command: of_command };
                Self::Command(Box::new(Order { session: session()?, command, seconds, reach }))
            }
            Reach::Push(host) => {
                let hosts = host.iter().map(|host| granted(host)).collect::<Result<Vec<_>, _>>()?;
                let arguments = git_push::Arguments::read(facts.arguments()).map_err(|_| changed())?;
                Self::Push(Box::new(git_push::Order { session: session()?, arguments, hosts, loopback }))
            }
            Reach::Message(message) => {
                let output = calls::find(tx, id)?.ok_or_else(changed)?.output;
                Self::Send(Box::new(send::Order::to_address(id, output, agent, facts, message)))
            }
            Reach::Server(tool) => Self::Mcp(Box::new(ServerCall {
                tool: ServerTool::clone(tool),
                name: facts.tool().to_owned(),
                arguments: facts.arguments().clone(),
                only_reads: catalogue::only_reads(tx, agent, facts.tool(), &tool.pin)?,
            })),
            // Its model makes such a call again, and the host runs none later.
            Reach::Session { .. } | Reach::Nowhere => return Err(changed().into()),
        })
    }
}

impl Executor {
    /// Returns the connection for a call within the time that is left. The last listing of its server is in the record then.
    pub(super) async fn connection(&self, place: &Place, left: Duration) -> Result<Connection, Error> {
        let (session, call) = (place.session, place.call);
        let called = self.record.state.read(move |tx| {
            let Some(row) = calls::find(tx, call)? else { return Ok(None) };
            let Some(session) = store::find(tx, session)? else { return Ok(None) };
            let terms = catalogue::terms(tx, session.agent, &row.tool)?;
            Ok::<_, ironclaw_state::Error>(
                terms.and_then(|terms| terms.of_server).map(|tool| (session.agent, tool.server)),
            )
        });
        let Some((agent, server)) = called.await? else { return Ok(Connection::NotNeeded) };
        Ok(match timeout(left, self.servers.ready(&server, agent)).await {
            Ok(Ok(open)) => Connection::Ready(open),
            Ok(Err(why)) => Connection::Unreachable(why),
            Err(_) => Connection::Unreachable("it did not answer in the time that is left".to_owned()),
        })
    }

    /// Makes the effect happen, once, and returns its result.
    pub(super) async fn act(
        &self,
        place: &Place,
        effect: &Effect,
        connection: Connection,
        left: Duration,
    ) -> ResultBody {
        match effect {
            Effect::Command(order) => self.run_command(place, order, left).await,
            Effect::Push(order) => self.push(place, order, left).await,
            Effect::Send(order) => self.send(order, left).await,
            Effect::Http(http) => self.fetch(http, left).await,
            Effect::Mcp(call) => self.call_server(place, call, connection, left).await,
        }
    }

    async fn call_server(
        &self,
        place: &Place,
        call: &ServerCall,
        connection: Connection,
        left: Duration,
    ) -> ResultBody {
        let ServerCall { tool: ServerTool { server, tool, registration, .. }, name, arguments, .. } = call;
        let open = match connection {
            Connection::Ready(open) if open.is_with(registration) => open,
            Connection::Ready(_) => {
                let words = "its registration, its login or a secret of it changed while the call began";
                return mcp::not_reached(server, words);
            }
            Connection::Unreachable(why) => return mcp::not_reached(server, &why),
            Connection::NotNeeded => return mcp::not_reached(server, "it has no connection"),
        };
        let running = self.turns.running_calls.begin(place.turn, place.call, name);
        let begun = Instant::now();
        let Called { mut result, mut content, traffic } = open.call(tool, arguments.clone(), left, &running).await;
        // A server at a URL, which has a login, has no gateway with traffic.
        let left = left.saturating_sub(begun.elapsed());
        if let Some(renewed) = self.renewed(place, call, &open, left).await {
            let left = left.saturating_sub(begun.elapsed());
            Called { result, content, .. } = renewed.call(tool, arguments.clone(), left, &running).await;
        }
        drop(running);
        if let Some(traffic) = traffic {
            self.record_traffic(place, traffic).await;
        }
        result.answer = Some(Box::new(call.answer(content)));
        result
    }

    /// Returns a connection with a new token for a call that only reads, whose server refused the token of `refused`. A call that may act
    /// is sent once.
    async fn renewed(&self, place: &Place, call: &ServerCall, refused: &Open, left: Duration) -> Option<Arc<Open>> {
        if !call.only_reads || !refused.is_refused() {
            return None;
        }
        let Ok(Connection::Ready(renewed)) = self.connection(place, left).await else { return None };
        let ServerTool { pin, registration, .. } = &call.tool;
        if !renewed.is_with(registration) || !refused.has_another_token(&renewed) {
            return None;
        }
        // The server may list something else now.
        let (session, name, pin) = (place.session, call.name.clone(), *pin);
        let look = self.record.state.read(move |tx| match store::find(tx, session)? {
            Some(session) => catalogue::only_reads(tx, session.agent, &name, &pin),
            None => Ok(false),
        });
        look.await.ok()?.then_some(renewed)
    }

    async fn run_command(&self, place: &Place, order: &Order, left: Duration) -> ResultBody {
        let fetchers = Arc::clone(&self.fetchers);
        let (result, traffic) = network_command::run(&*self.command_jails, fetchers, order, left).await;
        self.record_traffic(place, traffic).await;
        result
    }

    /// Records the requests of a call to the gateway of its jail.
    async fn record_traffic(&self, place: &Place, traffic: Traffic) {
        let codes: BTreeSet<_> = traffic.refused.iter().map(|refused| refused.code.name()).collect();
        let hosts: Vec<String> = traffic.hosts.into_iter().collect();
        let entry = Entry::new(LedgerEvent::CallNetwork)
            .with("call", place.call)
            .with("requests", traffic.requests)
            .with("tunnels", traffic.tunnels)
            .with("refused", traffic.refusals)
            .with("sent_bytes", traffic.sent_bytes)
            .with("received_bytes", traffic.received_bytes)
            .with("hosts", hosts.join(" "))
            .with("codes", codes.into_iter().collect::<Vec<_>>().join(" "));
        self.record_network_use(place, entry, hosts).await;
    }

    async fn push(&self, place: &Place, order: &git_push::Order, left: Duration) -> ResultBody {
        let (result, sent) = git_push::run(&*self.command_jails, &self.fetchers, order, left).await;
        let entry = Entry::new(LedgerEvent::CallPush)
            .with("call", place.call)
            .with("requests", sent.requests)
            .with("sent_bytes", sent.bytes);
        let entry = match sent.digest {
            Some(digest) => entry.with("digest", digest),
            None => entry,
        };
        self.record_network_use(place, entry, Vec::new()).await;
        result
    }

    /// Records what a call did on the network, and the use of the grants of these hosts.
    async fn record_network_use(&self, place: &Place, entry: Entry, hosts: Vec<String>) {
        let (entry, session) = (entry.session(place.session).turn(place.turn), place.session);
        let recorded = self.record.state.write(move |tx| {
            if !hosts.is_empty() {
                let agent = store::agent_of(tx, session)?.id;
                hosts.iter().try_for_each(|host| egress::record_use(tx, agent, host))?;
            }
            entry.append(tx).map(drop).map_err(Error::from)
        });
        if let Err(error) = recorded.await {
            tracing::error!(call = %place.call, %error, "cannot record the requests of a call");
        }
    }

    async fn fetch(&self, effect: &HttpEffect, left: Duration) -> ResultBody {
        let HttpEffect { request, body, host, port, secret, grant } = effect;
        let credential = secret.as_ref().map(|secret| Credential { host, port: *port, form: Form::Bearer, secret });
        let method = request.method().to_string().parse().expect("a method of the closed list");
        let sent = ironclaw_net::fetch::Request {
            method,
            url: request.url().as_str(),
            headers: request.headers().map(|(header, value)| (header.name(), value)).collect(),
            body: body.clone().map(String::into_bytes),
            credential,
        };
        let limits = Limits::default();
        let limits = Limits {
            begin: limits.begin.min(left),
            whole: limits.whole.min(left),
            body_bytes_max: http::PAGE_BYTES_MAX,
        };
        let loopback = self.settings.now().host_policy.egress.loopback();
        match self.fetchers.for_grant(grant.as_ref(), loopback).fetch(sent, limits).await {
            Ok(fetched) => http::answer(&fetched),
            Err(error) => http::no_answer(&error),
        }
    }
}
