//! Random pairs of calls, grants, secrets and hosts: pages and digests differ exactly where the facts do.

use super::*;
use crate::gateway::requests::page::{effect, put_facts};
use crate::gateway::review_page::Page;
use crate::registry::secrets::Version;
use ironclaw_contract::ids::AgentId;
use ironclaw_contract::seam::change::{McpHost, McpOauth, McpRegister, McpVariable, Mount};
use ironclaw_contract::seam::egress::Commands;
use ironclaw_judge::Class;
use ironclaw_judge::egress::{GrantText, Loopback, RequestText};
use serde_json::json;

/// The pairs of one run.
const PAIRS: u64 = 1_000;

/// Numbers that repeat for a seed (SplitMix64).
pub(in crate::gateway::requests) struct Random(pub(in crate::gateway::requests) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).expect("below the bound")
    }

    fn one<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len())].clone()
    }

    /// Returns a text that imitates lines of a page, or a plain one.
    fn text(&mut self) -> String {
        self.one(&[
            "a",
            "b",
            "a\" b",
            "a\n  grant: none",
            "none",
            "",
            "a  b",
            "\u{430}",
            "⟦U+0430⟧",
            "host: \"a\"",
            "a, port 443",
            "e\u{301}",
            "é",
        ])
        .to_owned()
    }

    fn name(&mut self) -> String {
        self.one(&["a.example", "b.example", "xn--bcher-kva.example"]).to_owned()
    }

    fn versioned(&mut self) -> Versioned {
        let name = self.one(&["forge", "other"]).parse().expect("a name");
        let version = self.one(&[
            Version::Missing,
            Version::Stored { changed_at: 1_795_000_000_000 },
            Version::Stored { changed_at: 1_795_000_000_001 },
            Version::Credential { modified_at: 1_795_000_000, nanoseconds: 0 },
        ]);
        Versioned { name, version }
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        (self.below(2) == 1).then(|| make(self))
    }

    fn grant(&mut self, commands: Option<Commands>) -> Grant {
        let is_tunnel = commands == Some(Commands::Tunnel);
        let methods = self.one(&[vec!["GET"], vec!["GET", "POST"], vec!["POST"]]);
        let paths = self.one(&[vec!["/a"], vec!["/a", "/b"], vec!["/a/{x}"]]);
        let words = |words: Vec<&str>| words.into_iter().map(str::to_owned).collect::<Vec<_>>();
        let has_body = is_tunnel || methods.contains(&"POST");
        let text = GrantText {
            host: self.name(),
            port: self.one(&[None, Some(8443)]),
            methods: if is_tunnel { Vec::new() } else { words(methods) },
            paths: if is_tunnel { Vec::new() } else { words(paths) },
            secret: self.maybe(|random| random.one(&["forge", "other"]).to_owned()).filter(|_| !is_tunnel),
            upload_bytes_max: self.one(&[None, Some(10)]).filter(|_| has_body),
            commands,
        };
        Grant::check(&text, Loopback::Refused).expect("a grant")
    }

    fn reached(&mut self) -> Reached {
        let commands = self.one(&[Commands::Git, Commands::Npm, Commands::Other]);
        let grant = self.grant(Some(commands));
        let secret = grant.secret().cloned().map(|name| Versioned { name, ..self.versioned() });
        Reached { grant, secret }
    }

    fn arguments(&mut self) -> Map<String, Value> {
        let mut all = Map::new();
        for _ in 0..self.below(3) {
            let value = match self.below(4) {
                0 => json!(self.below(2)),
                1 => json!([self.text(), self.text()]),
                2 => json!({ self.text(): self.text() }),
                _ => json!(self.text()),
            };
            all.insert(self.one(&["text", "url", "a\nb"]).to_owned(), value);
        }
        all
    }

    fn sent_request(&mut self, arguments: &mut Map<String, Value>) -> SentRequest {
        let url = format!("https://{}/{}", self.name(), self.one(&["a", "b", "a/b"]));
        let (method, body) = self.one(&[("GET", None), ("POST", Some("x")), ("POST", Some("y"))]);
        let headers = body.map(|_| ("content-type".to_owned(), "text/plain".to_owned()));
        let text = RequestText {
            method: method.to_owned(),
            url,
            headers: headers.into_iter().collect(),
            body: body.map(str::to_owned),
            secret: None,
        };
        let request = Request::check(&text, Loopback::Refused).expect("a request");
        // The request is read from the arguments, so both are of one call.
        *arguments = Map::new();
        arguments.insert("method".to_owned(), json!(text.method));
        arguments.insert("url".to_owned(), json!(request.url().as_str()));
        arguments.insert("headers".to_owned(), json!(text.headers));
        arguments.insert("body".to_owned(), json!(text.body));
        let secret = self.maybe(Self::versioned);
        let request = request.with_secret(secret.as_ref().map(|secret| secret.name.clone()));
        SentRequest { request, body: text.body, grant: self.maybe(|random| random.grant(None)), secret }
    }

    fn message(&mut self) -> Message {
        let file = self.maybe(|random| SentFile {
            name: random.text(),
            media_type: random.text(),
            bytes: random.next() % 2,
            digest: Digest::of(random.text().as_bytes()),
        });
        Message {
            to: self.text(),
            channel: self.text(),
            registered: self.maybe(|random| RegisteredChannel { url: random.text(), generation: random.one(&[1, 2]) }),
            address: self.text(),
            thread: self.text(),
            receiver: self.one(&[None, Some(agent())]),
            file,
        }
    }

    fn registration(&mut self) -> Registration {
        use crate::registry::mcp::{Credential, Login};
        let host = |random: &mut Self| McpHost {
            host: random.name(),
            port: random.one(&[None, Some(8443)]),
            upload_bytes_max: random.one(&[None, Some(10)]),
        };
        let oauth = |random: &mut Self| {
            Box::new(McpOauth {
                issuer: random.text(),
                scopes: Vec::new(),
                client_id: random.maybe(Self::text),
                client_secret: None,
            })
        };
        let described = McpRegister {
            name: self.text(),
            url: self.maybe(Self::text),
            command: (0..self.below(3)).map(|_| self.text()).collect(),
            environment: (0..self.below(2))
                .map(|_| McpVariable { variable: self.text(), secret: None, text: self.maybe(Self::text) })
                .collect(),
            mounts: (0..self.below(2))
                .map(|_| Mount {
                    source: self.text(),
                    target: None,
                    read_only: self.one(&[None, Some(false)]),
                    mine: None,
                })
                .collect(),
            hosts: (0..self.below(3)).map(|_| host(self)).collect(),
            oauth: self.maybe(oauth),
            ..McpRegister::default()
        };
        let credential = |random: &mut Self| Credential { place: random.text(), secret: random.versioned() };
        let credentials = (0..self.below(2)).map(|_| credential(self)).collect();
        Registration {
            described,
            layer: self.one(&[None, Some(Digest::of(b"layer"))]),
            credentials,
            login: self.one(&[Login::None, Login::Since { begun_at: 1 }, Login::Since { begun_at: 2 }]),
            addresses: self.one(&[Vec::new(), vec!["10.0.0.7".parse().expect("an address")]]),
        }
    }

    fn directory(&mut self) -> Directory {
        let (source, target, read_only) = (self.text(), self.text(), self.below(2) == 0);
        Directory { source, target, read_only }
    }

    pub(in crate::gateway::requests) fn facts(&mut self) -> Facts {
        let mut arguments = self.arguments();
        let (tool, reach) = match self.below(7) {
            0 => ("http_fetch", Reach::Request(Box::new(self.sent_request(&mut arguments)))),
            1 => {
                let hosts = (0..self.below(3)).map(|_| self.reached()).collect();
                let tunnels = (0..self.below(2)).map(|_| self.grant(Some(Commands::Tunnel))).collect();
                ("network_command", Reach::Command { hosts, tunnels })
            }
            2 => ("git_push", Reach::Push(self.maybe(Self::reached).map(Box::new))),
            3 => (self.one(&["send_message", "send_file"]), Reach::Message(Box::new(self.message()))),
            4 => {
                let (server, tool) = (self.text(), self.text());
                let (pin, registration) = (Digest::of(self.text().as_bytes()), self.registration());
                ("a__look", Reach::Server(Box::new(ServerTool { server, tool, pin, registration })))
            }
            5 => ("write_file", Reach::Session { directories: (0..self.below(3)).map(|_| self.directory()).collect() }),
            _ => ("http_fetch", Reach::Nowhere),
        };
        Facts { tool: tool.to_owned(), arguments, reach }
    }

    /// Returns the same facts with one fact changed at random, or with none changed.
    fn changed(&mut self, facts: &Facts) -> Facts {
        let mut other = facts.clone();
        match &mut other.reach {
            Reach::Request(sent) => match self.below(3) {
                0 => sent.secret = self.maybe(Self::versioned),
                1 => sent.grant = self.maybe(|random| random.grant(None)),
                _ => return self.facts(),
            },
            Reach::Command { hosts, tunnels } => match self.below(4) {
                0 => hosts.push(self.reached()),
                1 => drop(hosts.pop()),
                2 => tunnels.push(self.grant(Some(Commands::Tunnel))),
                _ => drop(tunnels.pop()),
            },
            Reach::Push(host) => *host = self.maybe(Self::reached).map(Box::new),
            Reach::Message(message) => {
                let new = self.message();
                match self.below(7) {
                    0 => message.to = new.to,
                    1 => message.channel = new.channel,
                    2 => message.registered = new.registered,
                    3 => message.address = new.address,
                    4 => message.thread = new.thread,
                    5 => message.receiver = new.receiver,
                    _ => message.file = new.file,
                }
            }
            Reach::Server(tool) => {
                let new = self.registration();
                let described = &mut tool.registration.described;
                match self.below(10) {
                    0 => described.url = new.described.url,
                    1 => described.command = new.described.command,
                    2 => described.hosts = new.described.hosts,
                    3 => described.environment = new.described.environment,
                    4 => described.mounts = new.described.mounts,
                    5 => described.oauth = new.described.oauth,
                    6 => tool.registration.layer = new.layer,
                    7 => tool.registration.credentials = new.credentials,
                    8 => tool.registration.login = new.login,
                    _ => tool.tool = self.text(),
                }
            }
            Reach::Session { directories } => match self.below(2) {
                0 => directories.push(self.directory()),
                _ => drop(directories.pop()),
            },
            Reach::Nowhere => other.arguments = self.arguments(),
        }
        other
    }
}

/// Returns the facts of a call in the jail of a session.
pub(in crate::gateway::requests) fn of_session(arguments: Map<String, Value>) -> Facts {
    Facts { tool: "write_file".to_owned(), arguments, reach: Reach::Session { directories: Vec::new() } }
}

fn agent() -> AgentId {
    static AGENT: std::sync::LazyLock<AgentId> = std::sync::LazyLock::new(AgentId::new);
    *AGENT
}

/// Returns the part of a page that the facts decide.
fn page(facts: &Facts) -> String {
    let mut page = Page::default();
    page.sentence("  ", &effect(facts.tool(), None, Class::Send, facts.arguments()));
    put_facts(&mut page, facts);
    page.finish()
}

#[test]
fn pages_and_digests_differ_exactly_where_facts_do() {
    let mut random = Random(42);
    let (mut equal, mut different) = (0, 0);
    for pair in 0..PAIRS {
        let one = random.facts();
        let other = match pair % 4 {
            0 => random.facts(),
            1 => one.clone(),
            _ => random.changed(&one),
        };
        let is_same = one == other;
        assert_eq!(one.digest() == other.digest(), is_same, "{one:?}\n{other:?}");
        assert_eq!(page(&one) == page(&other), is_same, "{}\n{}\n{one:?}\n{other:?}", page(&one), page(&other));
        equal += u64::from(is_same);
        different += u64::from(!is_same);
    }
    assert!(equal > PAIRS / 5 && different > PAIRS / 3, "{equal} equal, {different} different");
}

#[test]
fn value_stays_only_with_a_server_without_a_network() {
    let mut random = Random(7);
    for _ in 0..200 {
        let facts = random.facts();
        let stays = match facts.reach() {
            Reach::Server(tool) => {
                let described = &tool.registration.described;
                described.url.is_none() && described.hosts.is_empty()
            }
            Reach::Message(message) => message.receiver.is_some(),
            Reach::Session { .. } => true,
            Reach::Request(_) | Reach::Command { .. } | Reach::Push(_) | Reach::Nowhere => false,
        };
        assert_eq!(facts.leaves_machine(), !stays, "{facts:?}");
    }
}
