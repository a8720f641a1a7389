//! The section of a page that shows where a call has its effect: hosts, grants, secrets, addresses, servers.
//!
//! Shows no two reaches alike: each fact has lines of its own behind a fixed word, a text of others is in quotes, and a fact without lines
//! is in a digest among the identifiers. See [`crate::gateway::review_page`].

use super::standing::Standing;
use super::{Directory, Facts, Message, Reach, Reached, RegisteredChannel, SentRequest, ServerTool};
use crate::gateway::review_page::Page;
use crate::registry::mcp::{Credential, Login, Place, Registration, issuer};
use crate::registry::secrets::{Version, Versioned};
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_contract::seam::change::McpVariable;
use ironclaw_judge::egress::{Commands, Grant};
use ironclaw_text::visible;
use serde::Serialize;

/// The words in place of a list without entries.
const NONE: &str = "none";

/// Writes what a person has to read before a yes: where values go, with which secrets, and what the call can change on this machine.
pub fn put_needed(page: &mut Page, facts: &Facts) {
    let mut section = Section { page };
    match facts.reach() {
        Reach::Request(sent) => {
            if let Some(secret) = &sent.secret {
                section.sentence(&format!("It carries the secret {}.", visible::name(secret.name.as_str())));
            }
        }
        Reach::Command { hosts, tunnels } => section.command(hosts, tunnels),
        Reach::Push(host) => section.push(host.as_deref()),
        Reach::Message(message) => section.message(message),
        Reach::Server(tool) => section.server_in_short(tool),
        Reach::Session { directories } => {
            for Directory { source, .. } in directories.iter().filter(|directory| !directory.read_only) {
                section.sentence(&format!("It can change the directory {} of this machine.", visible::name(source)));
            }
        }
        Reach::Nowhere => section.line("nowhere: the tool, its address or its file is gone"),
    }
}

/// Writes the facts that [`put_needed`] leaves out.
pub fn put_details(page: &mut Page, facts: &Facts) {
    let mut section = Section { page };
    match facts.reach() {
        Reach::Request(request) => section.request(request),
        Reach::Server(tool) => section.server(tool),
        Reach::Session { directories } => section.session(directories),
        Reach::Command { .. } | Reach::Push(_) | Reach::Message(_) | Reach::Nowhere => {}
    }
}

/// Writes the section for all calls with the same control fields.
pub fn put_standing(page: &mut Page, standing: &Standing) {
    page.heading("WHERE THEY HAVE THEIR EFFECT");
    let mut section = Section { page };
    match standing {
        Standing::Host(host) => section.push(host.as_deref()),
        Standing::Channel(channel) => section.channel(channel.as_ref()),
        Standing::Server(Some(registration)) => section.registration(registration),
        Standing::Server(None) => section.line("nowhere: there is no such server"),
        Standing::Tool => section.line("as the manifest of the tool says"),
    }
}

/// Writes the digests of facts that the section does not write out: the version of a grant, and the forms of a tool and its server.
pub fn put_digests(page: &mut Page, facts: &Facts) {
    match facts.reach() {
        Reach::Request(sent) => {
            let grant = sent.grant.as_ref().map_or(NONE.to_owned(), |grant| digest(grant).to_string());
            page.put("  ", &format!("grant of the host: {grant}"));
        }
        Reach::Server(tool) => {
            page.put("  ", &format!("confirmed form of the tool: {}", tool.pin));
            page.put("  ", &format!("registration of the server: {}", digest(&tool.registration)));
        }
        Reach::Command { .. } | Reach::Push(_) | Reach::Message(_) | Reach::Session { .. } | Reach::Nowhere => {}
    }
}

fn digest(fact: &impl Serialize) -> Digest {
    Digest::of(&canonical::to_vec(fact))
}

struct Section<'p> {
    page: &'p mut Page,
}

impl Section<'_> {
    fn line(&mut self, words: &str) {
        self.page.put("  ", words);
    }

    fn sentence(&mut self, words: &str) {
        self.page.sentence("  ", words);
    }

    /// Writes a line of a list, or of an entry of one.
    fn entry(&mut self, words: &str) {
        self.page.put("    ", words);
    }

    fn detail(&mut self, words: &str) {
        self.page.put("      ", words);
    }

    fn request(&mut self, sent: &SentRequest) {
        let SentRequest { request, body: _, grant: _, secret } = sent;
        let url = request.url();
        self.line(&format!("host: {}, port {}", visible::name(url.host().as_str()), url.port()));
        self.line(&format!("secret of this host: {}", carried(secret.as_ref(), "as a bearer token")));
    }

    fn command(&mut self, hosts: &[Reached], tunnels: &[Grant]) {
        self.line("The command can reach these hosts, with any request that their grants have.");
        self.line(if hosts.is_empty() { "hosts: none" } else { "hosts:" });
        for host in hosts {
            self.reached(host);
        }
        self.line(if tunnels.is_empty() { "tunnels: none" } else { "tunnels, which this host cannot read:" });
        for tunnel in tunnels {
            self.entry(&host_of(tunnel));
            self.detail(&format!("bytes that it sends: at most {}", tunnel.upload_bytes_max()));
        }
    }

    fn session(&mut self, directories: &[Directory]) {
        self.line("stays on this machine: it acts in the jail of its conversation, and on the notes and schedules of its agent");
        self.line(if directories.is_empty() {
            "directories of the machine: none"
        } else {
            "directories of the machine:"
        });
        for Directory { source, target, read_only } in directories {
            let access = if *read_only { "read-only" } else { "read and write" };
            self.entry(&format!("{} as {}, {access}", visible::name(source), visible::name(target)));
        }
    }

    fn push(&mut self, host: Option<&Reached>) {
        self.line(if host.is_none() { "host: none is granted" } else { "host:" });
        if let Some(host) = host {
            self.reached(host);
        }
    }

    fn reached(&mut self, host: &Reached) {
        let Reached { grant, secret } = host;
        self.entry(&host_of(grant));
        let methods: Vec<String> = grant.methods().iter().map(ToString::to_string).collect();
        self.detail(&format!("methods: {}", methods.join(", ")));
        for path in grant.paths() {
            self.detail(&format!("path: {}", visible::name(&path.to_string())));
        }
        self.detail(&format!("bytes of a body: at most {}", grant.upload_bytes_max()));
        let form = match grant.commands() {
            Some(Commands::Git) => "as the password of git",
            Some(Commands::Npm | Commands::Pip | Commands::Other | Commands::Tunnel) | None => "as a bearer token",
        };
        self.detail(&format!("secret of this host: {}", carried(secret.as_ref(), form)));
    }

    fn message(&mut self, message: &Message) {
        let Message { to, channel, registered, address, thread, receiver, file } = message;
        match receiver {
            Some(agent) => self.line(&format!("stays on this machine: it goes to the agent {agent}")),
            None => self.line("leaves this machine"),
        }
        self.line(&format!("to: {}", visible::name(to)));
        self.line(&format!("channel: {}", visible::name(channel)));
        self.channel(registered.as_ref());
        self.line(&format!("address: {}", visible::name(address)));
        self.line(&format!("thread: {}", if thread.is_empty() { NONE.to_owned() } else { visible::name(thread) }));
        if let Some(file) = file {
            let (name, kind) = (visible::name(&file.name), visible::name(&file.media_type));
            self.line(&format!("file: {name}"));
            self.line(&format!("type of the file: {kind}"));
            self.line(&format!("bytes of the file: {}", file.bytes));
            self.line(&format!("digest of the file: {}", file.digest));
        }
    }

    fn channel(&mut self, registered: Option<&RegisteredChannel>) {
        match registered {
            Some(RegisteredChannel { url, generation }) => {
                self.line(&format!("channel sends to: {}", visible::name(url)));
                self.line(&format!("registration of the channel: {generation}"));
            }
            None => self.line("channel is part of this host"),
        }
    }

    fn server(&mut self, tool: &ServerTool) {
        let ServerTool { server, tool, pin: _, registration } = tool;
        self.line("A yes fixes the call, and not the data that the server holds.");
        self.line(&format!("server: {}", visible::name(server)));
        self.line(&format!("tool of the server: {}", visible::name(tool)));
        self.registration(registration);
    }

    /// Writes where a server runs, and what it has of this machine.
    fn server_in_short(&mut self, tool: &ServerTool) {
        let registration = &tool.registration;
        let described = &registration.described;
        let server = visible::name(&tool.server);
        self.sentence(&match (registration.place(), &described.url) {
            (Place::JailWithoutNetwork, _) => {
                format!("{server} runs in a jail without a network: no value leaves this machine.")
            }
            (Place::JailWithHosts, _) => {
                let hosts: Vec<String> = described.hosts.iter().map(|host| visible::name(&host.host)).collect();
                format!("{server} runs in a jail that reaches {}: each value may leave this machine.", hosts.join(", "))
            }
            (Place::Remote, Some(url)) => {
                format!("{server} is at {}: each value leaves this machine.", visible::name(url))
            }
            (Place::Remote, None) => format!("{server} is not on this machine: each value leaves it."),
        });
        for mount in described.mounts.iter().filter(|mount| mount.read_only == Some(false)) {
            self.sentence(&format!("It can change the directory {} of this machine.", visible::name(&mount.source)));
        }
        for Credential { secret, .. } in &registration.credentials {
            self.sentence(&format!("It has the secret {}.", visible::name(secret.name.as_str())));
        }
        if let Some(oauth) = &described.oauth {
            self.sentence(&format!("It acts with the account at {}.", visible::name(issuer::name_in(&oauth.issuer))));
        }
    }

    fn registration(&mut self, registration: &Registration) {
        let described = &registration.described;
        self.line(match registration.place() {
            Place::JailWithoutNetwork => {
                "runs on this machine, in a jail without a network: no argument leaves the machine"
            }
            Place::JailWithHosts => {
                "runs on this machine, in a jail that reaches the hosts below: each argument may leave the machine"
            }
            Place::Remote => "runs at an address outside of this host: each argument leaves it",
        });
        if let Some(url) = &described.url {
            self.line(&format!("address: {}", visible::name(url)));
        }
        for word in &described.command {
            self.line(&format!("command: {}", visible::name(word)));
        }
        for host in &described.hosts {
            let port = host.port.map_or(NONE.to_owned(), |port| port.to_string());
            self.line(&format!("host: {}, port {port}", visible::name(&host.host)));
        }
        for mount in &described.mounts {
            let access = if mount.read_only == Some(false) { "read and write" } else { "read" };
            self.line(&format!("directory of this machine: {} ({access})", visible::name(&mount.source)));
        }
        for McpVariable { variable, text, .. } in &described.environment {
            if let Some(text) = text {
                self.line(&format!("variable {}: {}", visible::name(variable), visible::name(text)));
            }
        }
        for Credential { place, secret } in &registration.credentials {
            self.line(&format!("secret of this host: {}", carried(Some(secret), &visible::name(place))));
        }
        if let Some(oauth) = &described.oauth {
            let login = match registration.login {
                Login::None => "no person is logged in".to_owned(),
                Login::Since { begun_at } => format!("login of {}", ironclaw_ledger::rfc3339(begun_at)),
            };
            self.line(&format!("account at {}: {login}", visible::name(issuer::name_in(&oauth.issuer))));
            if issuer::name_in(&oauth.issuer) != oauth.issuer {
                self.line("people accepted that this issuer does not announce S256");
            }
        }
    }
}

fn host_of(grant: &Grant) -> String {
    let used = match grant.commands() {
        Some(commands) => format!(", for {}", commands.name()),
        None => String::new(),
    };
    format!("* {}, port {}{used}", visible::name(grant.host().as_str()), grant.port())
}

/// Returns the words for a secret that is sent along; never its value.
fn carried(secret: Option<&Versioned>, form: &str) -> String {
    let Some(Versioned { name, version }) = secret else { return NONE.to_owned() };
    let version = match version {
        Version::Missing => "which is not stored".to_owned(),
        Version::Stored { changed_at } => format!("stored {}", ironclaw_ledger::rfc3339(*changed_at)),
        Version::Credential { modified_at, nanoseconds } => {
            format!("a credential of systemd of {modified_at}.{nanoseconds:09}")
        }
    };
    format!("{}, {form}, {version}", visible::name(name.as_str()))
}
