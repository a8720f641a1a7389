//! The facts of a call as the record has them now.
//!
//! Judges nothing, and reads a secret only by its name and version. See [`crate::calls::executor`] for the effect that is made from them.

use super::{Directory, Facts, Message, Reach, Reached, RegisteredChannel, SentRequest, ServerTool};
use crate::channels::outbound::delivery::sent_files;
use crate::registry::secrets;
use crate::registry::tools::SEND_FILE;
use crate::registry::tools::catalogue::OfServer;
use crate::registry::tools::{self, OutsideTool, Place};
use crate::registry::{channels, destinations, egress, mcp, mounts};
use crate::sessions::store;
use crate::turns::calls::http::{self, Network};
use ironclaw_contract::ids::{AgentId, CallId, SessionId};
use ironclaw_judge::egress::{CanonicalUrl, Commands, Grant, Loopback};
use ironclaw_state::{Error, ReadTx};
use serde_json::{Map, Value};

/// The call whose facts are read.
#[derive(Debug, Clone, Copy)]
pub struct Reading<'a> {
    /// The session that made it.
    pub session: SessionId,
    /// The agent of the session.
    pub agent: AgentId,
    pub call: CallId,
    /// The tool by its name for a model.
    pub tool: &'a str,
    /// The arguments, exactly as hashed.
    pub arguments: &'a Map<String, Value>,
    /// Whether hosts of this machine may be granted.
    pub loopback: Loopback,
    /// True if people are asked about it as a request that no grant covers. It gets nothing of a grant that came later.
    pub is_without_grant: bool,
}

impl Facts {
    /// Reads the facts of a call.
    pub fn read(tx: &ReadTx<'_>, reading: &Reading<'_>) -> Result<Self, Error> {
        let (tool, arguments) = (reading.tool.to_owned(), reading.arguments.clone());
        let reach = match mcp::terms(tx, reading.agent, reading.tool)? {
            Some(terms) => match terms.of_server {
                Some(of_server) => reading.server_tool(tx, of_server)?,
                None => reading.built_in(tx)?,
            },
            None => Reach::Nowhere,
        };
        Ok(Self { tool, arguments, reach })
    }
}

impl Reading<'_> {
    fn built_in(&self, tx: &ReadTx<'_>) -> Result<Reach, Error> {
        match tools::find(self.tool).map(|tool| tool.place) {
            Some(Place::Outside(OutsideTool::HttpFetch)) => self.request(tx),
            Some(Place::Outside(OutsideTool::NetworkCommand)) => self.command(tx),
            Some(Place::Outside(OutsideTool::GitPush)) => self.push(tx),
            Some(Place::Outside(OutsideTool::SendMessage | OutsideTool::SendFile)) => self.message(tx),
            Some(Place::Jail) => self.jail(tx),
            Some(Place::Record(_) | Place::Row) => Ok(Reach::Session { directories: Vec::new() }),
            None => Ok(Reach::Nowhere),
        }
    }

    fn jail(&self, tx: &ReadTx<'_>) -> Result<Reach, Error> {
        let directories = mounts::list_for_agent(tx, self.agent)?.into_iter().map(|mount| Directory {
            source: mount.source.display().to_string(),
            target: mount.target,
            read_only: mount.read_only,
        });
        Ok(Reach::Session { directories: directories.collect() })
    }

    fn text(&self, name: &str) -> &str {
        self.arguments.get(name).and_then(Value::as_str).unwrap_or_default()
    }

    fn request(&self, tx: &ReadTx<'_>) -> Result<Reach, Error> {
        let grants = match self.is_without_grant {
            true => Vec::new(),
            false => egress::grants_of(tx, self.agent, self.loopback)?,
        };
        let network = Network { grants, loopback: self.loopback, ..Network::default() };
        let Ok((request, body)) = http::request(self.arguments, &network) else { return Ok(Reach::Nowhere) };
        // A grant with a secret lists paths, so no typed word decides about the secret.
        let covering = http::allowed(&request, &network).ok();
        let named = covering.and_then(|allowed| allowed.grant().secret().cloned());
        let secret = named.map(|name| secrets::versioned(tx, name)).transpose()?;
        let request = request.with_secret(secret.as_ref().map(|secret| secret.name.clone()));
        let grant = network.grants.into_iter().find(|grant| grant.is_of(request.url()));
        Ok(Reach::Request(Box::new(SentRequest { request, body, grant, secret })))
    }

    /// Returns the grants for commands, without those of tunnels.
    fn gateway_grants(&self, tx: &ReadTx<'_>) -> Result<Vec<Grant>, Error> {
        let mut grants = egress::grants_of(tx, self.agent, self.loopback)?;
        grants.retain(|grant| grant.commands().is_some() && !grant.is_tunnel());
        Ok(grants)
    }

    fn command(&self, tx: &ReadTx<'_>) -> Result<Reach, Error> {
        let hosts = self.gateway_grants(tx)?.into_iter().map(|grant| reached(tx, grant));
        let hosts = hosts.collect::<Result<_, Error>>()?;
        let mut tunnels = egress::grants_of(tx, self.agent, self.loopback)?;
        tunnels.retain(Grant::is_tunnel);
        Ok(Reach::Command { hosts, tunnels })
    }

    fn push(&self, tx: &ReadTx<'_>) -> Result<Reach, Error> {
        let grants = self.gateway_grants(tx)?;
        let Ok(url) = CanonicalUrl::parse_for(self.text("url"), self.loopback, &grants) else {
            return Ok(Reach::Nowhere);
        };
        let is_of_url = |grant: &Grant| grant.commands() == Some(Commands::Git) && grant.is_of(&url);
        let host = grants.into_iter().find(is_of_url);
        Ok(Reach::Push(host.map(|grant| reached(tx, grant)).transpose()?.map(Box::new)))
    }

    /// Returns the address of a message, which the host wrote into the arguments; none if it is not that of the conversation, or the host no
    /// longer has the copy of the file. The judgement compares it with the destination.
    fn message(&self, tx: &ReadTx<'_>) -> Result<Reach, Error> {
        let (recipient, thread) = (self.text("recipient"), self.text("thread").to_owned());
        let Some((channel, address)) = recipient.split_once(':') else { return Ok(Reach::Nowhere) };
        let file = match self.tool {
            SEND_FILE => sent_files::find(tx, self.call)?,
            _ => None,
        };
        let has_file = file.as_ref().is_some_and(|file| file.digest.to_string() == self.text("digest"));
        let is_conversation = !self.arguments.contains_key("to");
        let origin = store::find(tx, self.session)?.map(|session| session.origin);
        let is_of_origin =
            origin.is_some_and(|origin| origin.recipient().as_deref() == Some(recipient) && origin.thread_id == thread);
        if has_file != (self.tool == SEND_FILE) || is_conversation && !is_of_origin {
            return Ok(Reach::Nowhere);
        }
        let to = if is_conversation { "this conversation" } else { self.text("to") }.to_owned();
        let receiver = (channel == destinations::AGENT).then(|| address.parse::<AgentId>().ok()).flatten();
        let registered = channels::find(tx, channel)?.map(RegisteredChannel::from);
        let (channel, address) = (channel.to_owned(), address.to_owned());
        Ok(Reach::Message(Box::new(Message { to, channel, registered, address, thread, receiver, file })))
    }

    fn server_tool(&self, tx: &ReadTx<'_>, of_server: OfServer) -> Result<Reach, Error> {
        let OfServer { server, tool, pin } = of_server;
        Ok(match mcp::registration(tx, &server)? {
            Some(registration) => Reach::Server(Box::new(ServerTool { server, tool, pin, registration })),
            None => Reach::Nowhere,
        })
    }
}

/// Returns the granted host of an address, with its secret.
pub(super) fn reached_at(
    tx: &ReadTx<'_>,
    agent: AgentId,
    written: &str,
    loopback: Loopback,
) -> Result<Option<Reached>, Error> {
    let grants = egress::grants_of(tx, agent, loopback)?;
    let Ok(url) = CanonicalUrl::parse_for(written, loopback, &grants) else { return Ok(None) };
    let found = grants.into_iter().find(|grant| grant.is_of(&url));
    found.map(|grant| reached(tx, grant)).transpose()
}

fn reached(tx: &ReadTx<'_>, grant: Grant) -> Result<Reached, Error> {
    let secret = grant.secret().cloned().map(|name| secrets::versioned(tx, name)).transpose()?;
    Ok(Reached { grant, secret })
}
