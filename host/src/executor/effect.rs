//! The effect of a judged call by its source: a request over the network, a command that reaches it, a message to a destination, or a
//! call of a tool of an MCP server.
//!
//! Takes a proof that the call may run, and sends exactly the arguments that were hashed. See [`crate::turns::calls::http`] and
//! [`crate::mcp`].

use super::{Executor, Place, send};
use crate::error::Error;
use crate::git_push;
use crate::jail_network::{GrantedHost, Reach, Traffic};
use crate::mcp::{self, Open};
use crate::network_command::{self, Order};
use crate::registry::mcp as catalogue;
use crate::requests::Permitted;
use crate::secrets::{self, SecretName};
use crate::session::store;
use crate::tools::catalogue::OfServer;
use crate::tools::{GIT_PUSH, NETWORK_COMMAND, SEND_FILE, SEND_MESSAGE};
use crate::turns::calls::{self, Call, ResultBody, http};
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::operator::LedgerEvent;
use ironclaw_judge::egress::Request;
use ironclaw_ledger::Entry;
use ironclaw_model::fetch::{Credential, Form, Limits};
use ironclaw_state::ReadTx;
use ironclaw_state::keys::SecretText;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;

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
    Mcp {
        /// The server and the tool.
        of_server: OfServer,
        /// The name of the tool for the agent.
        name: String,
        /// The arguments.
        arguments: Map<String, Value>,
    },
}

/// A request over the network with its secret.
pub(super) struct HttpEffect {
    request: Request,
    body: Option<String>,
    host: String,
    port: u16,
    secret: Option<SecretText>,
}

/// The connection for a call of an MCP server, or the reason why there is none.
pub(super) type Connection = Option<Result<Arc<Open>, String>>;

impl Effect {
    /// Adds the place of the effect to the entry of its start.
    pub(super) fn note(&self, entry: Entry) -> Entry {
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
            Self::Mcp { of_server, .. } => entry.with("host", format!("mcp:{}", of_server.server)),
        }
    }

    /// Reads the effect of a judged call. A request without a grant, which people approved, has no secret.
    pub(super) fn of(
        executor: &Executor,
        tx: &ReadTx<'_>,
        permitted: &Permitted,
        (place, agent, call): (&Place, AgentId, &Call),
        network: &http::Network,
    ) -> Result<Self, Error> {
        let id = permitted.call();
        let changed = || ironclaw_state::Error::Stored(format!("{id} changed after its judgement"));
        let arguments: Value = serde_json::from_str(&call.arguments).map_err(|_| changed())?;
        let Value::Object(arguments) = arguments else { return Err(changed().into()) };
        let terms = catalogue::terms(tx, agent, &call.tool)?.ok_or_else(changed)?;
        if let Some(of_server) = terms.of_server {
            return Ok(Self::Mcp { of_server, name: call.tool.clone(), arguments });
        }
        if call.tool == SEND_MESSAGE || call.tool == SEND_FILE {
            let row = calls::find(tx, id)?.ok_or_else(changed)?;
            let order = send::Order::of(tx, (place.session, agent), (call, row.output), &arguments)?;
            let order = order.ok_or_else(changed)?;
            return Ok(Self::Send(Box::new(order)));
        }
        let secret_of = |name: &SecretName| {
            let found = secrets::get(tx, &executor.record.wrapping, name).map_err(|_| changed())?;
            found.ok_or_else(changed)
        };
        if call.tool == NETWORK_COMMAND || call.tool == GIT_PUSH {
            let granted = network.grants.iter().filter(|grant| grant.commands().is_some() && !grant.is_tunnel());
            let granted = granted.map(|grant| {
                let secret = grant.secret().map(secret_of).transpose()?;
                Ok(GrantedHost { grant: grant.clone(), secret })
            });
            let hosts = granted.collect::<Result<Vec<_>, ironclaw_state::Error>>()?;
            let session = store::find(tx, place.session)?.ok_or_else(changed)?;
            let loopback = network.loopback;
            if call.tool == GIT_PUSH {
                let arguments = git_push::Arguments::read(&arguments).map_err(|_| changed())?;
                return Ok(Self::Push(Box::new(git_push::Order { session, arguments, hosts, loopback })));
            }
            let (command, seconds) = network_command::arguments(&arguments).map_err(|_| changed())?;
            let tunnels = network.grants.iter().filter(|grant| grant.is_tunnel()).cloned().collect();
            let reach = Reach { hosts: Arc::new(hosts), tunnels, loopback };
            return Ok(Self::Command(Box::new(Order { session, command, seconds, reach })));
        }
        let (request, body) = http::request(&arguments, network).map_err(|_| changed())?;
        let (host, port) = (request.url().host().to_string(), request.url().port());
        let allowed = http::allowed(&request, network).ok().filter(|_| !permitted.is_without_grant());
        let granted = allowed.and_then(|allowed| allowed.grant().secret().cloned());
        let secret = granted.as_ref().map(secret_of).transpose()?;
        Ok(Self::Http(Box::new(HttpEffect { request, body, host, port, secret })))
    }
}

impl Executor {
    /// Returns the connection for a call of an MCP server, whose last listing is in the record then, within the time that is left. `None`
    /// for any other call.
    pub(super) async fn connection(&self, place: &Place, left: Duration) -> Result<Connection, Error> {
        let (session, call) = (place.session, place.call);
        let look = self.record.state.read(move |tx| {
            let Some(row) = calls::find(tx, call)? else { return Ok(None) };
            let Some(session) = store::find(tx, session)? else { return Ok(None) };
            let terms = catalogue::terms(tx, session.agent, &row.tool)?;
            Ok::<_, ironclaw_state::Error>(terms.and_then(|terms| terms.of_server).map(|of| (session.agent, of.server)))
        });
        match look.await? {
            Some((agent, server)) => {
                let ready = timeout(left, self.servers.ready(&server, agent)).await;
                Ok(Some(ready.unwrap_or_else(|_| Err("it did not answer in the time that is left".to_owned()))))
            }
            None => Ok(None),
        }
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
            Effect::Mcp { of_server: OfServer { server, tool, .. }, name, arguments } => match connection {
                Some(Ok(open)) => {
                    let running = self.turns.running_calls.begin(place.turn, place.call, name);
                    let (result, traffic) = open.call(tool, arguments.clone(), left, &running).await;
                    drop(running);
                    if let Some(traffic) = traffic {
                        self.note_traffic(place, traffic).await;
                    }
                    result
                }
                Some(Err(words)) => mcp::not_reached(server, &words),
                None => mcp::not_reached(server, "it has no connection"),
            },
        }
    }

    async fn run_command(&self, place: &Place, order: &Order, left: Duration) -> ResultBody {
        let fetcher = Arc::clone(self.fetchers.of(order.reach.loopback));
        let (result, traffic) = network_command::run(&*self.command_jails, fetcher, order, left).await;
        self.note_traffic(place, traffic).await;
        result
    }

    /// Records the requests of a call to the gateway of its jail.
    async fn note_traffic(&self, place: &Place, traffic: Traffic) {
        let codes: BTreeSet<_> = traffic.refused.iter().map(|refused| refused.code.name()).collect();
        let entry = Entry::new(LedgerEvent::CallNetwork)
            .with("call", place.call)
            .with("requests", traffic.requests)
            .with("tunnels", traffic.tunnels)
            .with("refused", traffic.refusals)
            .with("sent_bytes", traffic.sent_bytes)
            .with("received_bytes", traffic.received_bytes)
            .with("hosts", traffic.hosts.into_iter().collect::<Vec<_>>().join(" "))
            .with("codes", codes.into_iter().collect::<Vec<_>>().join(" "));
        self.note(place, entry).await;
    }

    async fn push(&self, place: &Place, order: &git_push::Order, left: Duration) -> ResultBody {
        let fetcher = self.fetchers.of(order.loopback);
        let (result, sent) = git_push::run(&*self.command_jails, fetcher, order, left).await;
        let entry = Entry::new(LedgerEvent::CallPush)
            .with("call", place.call)
            .with("requests", sent.requests)
            .with("sent_bytes", sent.bytes);
        let entry = match sent.digest {
            Some(digest) => entry.with("digest", digest),
            None => entry,
        };
        self.note(place, entry).await;
        result
    }

    /// Records what a call did on the network.
    async fn note(&self, place: &Place, entry: Entry) {
        let entry = entry.session(place.session).turn(place.turn);
        let note = self.record.state.write(move |tx| entry.append(tx).map(drop).map_err(Error::from));
        if let Err(error) = note.await {
            tracing::error!(call = %place.call, %error, "cannot record the requests of a call");
        }
    }

    async fn fetch(&self, effect: &HttpEffect, left: Duration) -> ResultBody {
        let HttpEffect { request, body, host, port, secret } = effect;
        let credential = secret.as_ref().map(|secret| Credential { host, port: *port, form: Form::Bearer, secret });
        let method = request.method().to_string().parse().expect("a method of the closed list");
        let sent = ironclaw_model::fetch::Request {
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
        match self.fetchers.of(loopback).fetch(sent, limits).await {
            Ok(fetched) => http::answer(&fetched),
            Err(error) => http::no_answer(&error),
        }
    }
}
