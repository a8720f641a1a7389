//! The tools of one agent, from all sources: those built into the host, and those of MCP servers.
//!
//! Never runs a tool. See [`crate::registry::mcp`], which reads the tools of servers.

pub use super::server_tool::ServerTool;

use super::levels::{Definition, Level, Room};
use super::tool::Tool;
use super::{
    FIND_TOOLS, GIT_PUSH, NETWORK_COMMAND, READ_SKILL, RUN_COMMAND, Runs, SEND_MESSAGE, asked_tools, find, handled,
    levels, offered,
};
use ironclaw_contract::canonical::{self, Digest};
use ironclaw_judge::inputs::with_references;
use ironclaw_judge::manifest::{self, Manifest, Taken};
use ironclaw_operator::DenialCode;
use serde_json::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// The hosts that commands of an agent reach.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CommandReach {
    /// None.
    #[default]
    Jail,
    /// Those that people granted for commands.
    GrantedHosts,
    /// Those too, and a grant admits pushes.
    GrantedPushes,
}

impl CommandReach {
    /// Returns the reach by whether a host is granted, and whether pushes are.
    pub const fn new(has_hosts: bool, has_pushes: bool) -> Self {
        match (has_hosts, has_pushes) {
            (false, _) => Self::Jail,
            (true, false) => Self::GrantedHosts,
            (true, true) => Self::GrantedPushes,
        }
    }
}

/// The tools of one agent.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    enabled: Vec<String>,
    commands: CommandReach,
    of_servers: Vec<Arc<ServerTool>>,
    room: Room,
    level: Level,
    has_destinations: bool,
    has_skills: bool,
}

/// A tool by its source.
#[derive(Debug, Clone, Copy)]
pub enum Source<'a> {
    /// Built into the host.
    BuiltIn(&'static Tool),
    /// Of an MCP server.
    Server(&'a ServerTool),
}

impl Source<'_> {
    /// Returns the place of execution.
    pub const fn runs(self) -> Runs {
        match self {
            Self::BuiltIn(tool) => tool.runs(),
            Self::Server(_) => Runs::Await,
        }
    }
}

/// The terms on which people approve the calls of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct Terms {
    /// The manifest of the tool.
    pub manifest: Cow<'static, Manifest>,
    /// For a tool of an MCP server, its confirmed form.
    pub of_server: Option<OfServer>,
}

/// The confirmed form of a tool of an MCP server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OfServer {
    /// Name of the server.
    pub server: String,
    /// Its name on the server.
    pub tool: String,
    /// The pin of the confirmed listing.
    pub pin: Digest,
}

impl Terms {
    /// Returns the terms of a built-in tool.
    pub fn for_built_in(tool: &str) -> Option<Self> {
        super::manifest(tool).map(|manifest| Self { manifest: Cow::Borrowed(manifest), of_server: None })
    }

    /// Returns the digest of the manifest, and for a tool of a server also of its confirmed form.
    pub fn digest(&self) -> Digest {
        match &self.of_server {
            None => Digest::of(&canonical::to_vec(&*self.manifest)),
            Some(OfServer { server, tool, pin }) => {
                Digest::of(&canonical::to_vec(&(&*self.manifest, server, tool, pin)))
            }
        }
    }
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Offered<'a> {
    pub name: &'a str,
    pub description: Cow<'a, str>,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

impl Catalogue {
    /// Returns the catalogue of an agent with these enabled tools, this reach of its commands, and these tools of servers.
    pub fn new(enabled: &[String], commands: CommandReach, of_servers: Vec<Arc<ServerTool>>) -> Self {
        let new = Self { enabled: enabled.to_vec(), commands, of_servers, ..Self::default() };
        new.with_room(Room::default())
    }

    /// Returns the catalogue with this room for the definitions of its tools in a prompt.
    pub fn with_room(self, room: Room) -> Self {
        let level = levels::level(self.server_tools().into_iter(), room);
        Self { room, level, ..self }
    }

    /// Returns the room for the definitions of its tools.
    pub const fn room(&self) -> Room {
        self.room
    }

    /// Returns the catalogue of an agent that has destinations, or has none.
    pub fn with_destinations(self, has_destinations: bool) -> Self {
        Self { has_destinations, ..self }
    }

    /// Returns the catalogue of an agent that has skills, or has none.
    pub fn with_skills(self, has_skills: bool) -> Self {
        Self { has_skills, ..self }
    }

    /// Returns the catalogue with another manifest for the tool of a server with its name.
    #[must_use]
    pub fn with_manifest(mut self, manifest: &Manifest) -> Self {
        for tool in self.of_servers.iter_mut().filter(|tool| tool.manifest.name == manifest.name) {
            Arc::make_mut(tool).manifest = manifest.clone();
        }
        self
    }

    /// Returns whether the definitions of its tools of servers are too long for a prompt. Then a model gets two levels.
    pub fn is_large(&self) -> bool {
        self.level == Level::Found
    }

    /// Returns the tools of servers that the agent may call now.
    pub fn server_tools(&self) -> Vec<&ServerTool> {
        self.of_servers.iter().map(|tool| &**tool).filter(|tool| tool.is_current).collect()
    }

    /// Returns the tool of a name. A built-in tool is there even if the agent does not have it.
    pub fn find(&self, name: &str) -> Option<Source<'_>> {
        let of_servers =
            || self.of_servers.iter().find(|tool| tool.manifest.name == name).map(|tool| Source::Server(tool));
        find(name).map(Source::BuiltIn).or_else(of_servers)
    }

    /// Returns the name of the tool that a person means by a name for a model, or by the full name of a tool of a server.
    pub fn known_name(&self, written: &str) -> Option<String> {
        let known = |name: String| self.find(&name).is_some().then_some(name);
        known(written.to_owned()).or_else(|| manifest::server::meant(written).and_then(known))
    }

    /// Returns the manifest of a tool.
    pub fn manifest(&self, name: &str) -> Option<&Manifest> {
        match self.find(name)? {
            Source::BuiltIn(tool) => Some(&tool.manifest),
            Source::Server(tool) => Some(&tool.manifest),
        }
    }

    /// Returns the schema of the arguments of a tool.
    pub fn parameters(&self, name: &str) -> Option<&Value> {
        self.find(name).map(|found| match found {
            Source::BuiltIn(tool) => &tool.parameters,
            Source::Server(tool) => &tool.parameters,
        })
    }

    /// Returns the terms of a tool.
    pub fn terms(&self, name: &str) -> Option<Terms> {
        match self.find(name)? {
            Source::BuiltIn(tool) => Terms::for_built_in(tool.name),
            Source::Server(ServerTool { server, tool, pin, manifest, .. }) => Some(Terms {
                manifest: Cow::Owned(manifest.clone()),
                of_server: Some(OfServer { server: server.clone(), tool: tool.clone(), pin: *pin }),
            }),
        }
    }

    /// Returns whether people want to be asked about each call of a built-in tool by this agent.
    pub fn asks_always(&self, name: &str) -> bool {
        asked_tools(&self.enabled).any(|asked| asked == name)
    }

    /// Returns the reason why the agent does not have a tool, or may not call it now.
    pub fn missing(&self, name: &str) -> Option<DenialCode> {
        match self.find(name) {
            Some(Source::Server(tool)) if tool.is_current => None,
            Some(Source::Server(_)) => Some(DenialCode::CallServerChanged),
            Some(Source::BuiltIn(tool)) if self.automatic().any(|automatic| automatic.name == tool.name) => None,
            // Only a prompt depends on the room. The search shows what people confirmed.
            Some(Source::BuiltIn(tool)) if tool.name == FIND_TOOLS && !self.server_tools().is_empty() => None,
            Some(Source::BuiltIn(tool)) if offered(&self.enabled).any(|offered| offered.name == tool.name) => None,
            Some(Source::BuiltIn(_)) | None => Some(DenialCode::CallToolNotEnabled),
        }
    }

    /// Returns the tools whose definitions a model sees: all, or of a large catalogue those among `found`, the newest names first.
    pub fn offered(&self, found: &[String]) -> impl Iterator<Item = Offered<'_>> {
        let built_in = offered(&self.enabled).chain(self.automatic()).map(|tool| Offered {
            name: tool.name,
            description: tool.description.into(),
            parameters: tool.parameters_for_model(),
        });
        let all = self.server_tools();
        let whole = |bytes_max: usize| all.iter().map(|tool| Definition::new(tool, bytes_max)).collect();
        let of_servers = match self.level {
            Level::Whole => whole(usize::MAX),
            Level::Cut(bytes_max) => whole(bytes_max),
            Level::Found => levels::definitions(&all, found, self.room),
        };
        let of_servers = of_servers.into_iter().map(|Definition { tool, description }| Offered {
            name: &tool.manifest.name,
            description,
            parameters: with_references(&tool.manifest, &tool.parameters).into_owned(),
        });
        built_in.chain(of_servers)
    }

    /// Returns whether the agent has a tool with a control field whose value a person gives.
    pub fn has_inputs(&self) -> bool {
        self.of_servers.iter().any(|tool| tool.manifest.has_inputs())
    }

    /// Returns what tools of the agent take by reference.
    pub fn taken(&self) -> Vec<Taken<'_>> {
        self.server_tools().into_iter().flat_map(|tool| tool.manifest.taken(&tool.server)).collect()
    }

    /// Returns whether the agent has a tool with an effect outside of the session, so that typed values matter.
    pub fn has_outward(&self) -> bool {
        let reaches = offered(&self.enabled).any(|tool| tool.outside().is_some());
        !self.of_servers.is_empty() || self.has_network_commands() || reaches || self.has_destinations
    }

    /// Returns whether the agent may run commands, and they may reach a host.
    fn has_network_commands(&self) -> bool {
        self.commands != CommandReach::Jail && self.enabled.iter().any(|name| name == RUN_COMMAND)
    }

    /// Returns the tools that the agent has without enabling them.
    fn automatic(&self) -> impl Iterator<Item = &'static Tool> {
        let network = self.has_network_commands().then_some(NETWORK_COMMAND);
        let has_pushes = self.has_network_commands() && self.commands == CommandReach::GrantedPushes;
        let pushing = has_pushes.then_some(GIT_PUSH);
        let finding = (self.level != Level::Whole).then_some(FIND_TOOLS);
        let sending = self.has_destinations.then_some(SEND_MESSAGE);
        let skills = self.has_skills.then_some(READ_SKILL);
        network.into_iter().chain(pushing).chain(finding).chain(skills).chain(sending).filter_map(find)
    }

    /// Returns the names of the tools that the agent has without enabling them.
    pub fn automatic_names(&self) -> impl Iterator<Item = &'static str> {
        self.automatic().map(|tool| tool.name)
    }

    /// Returns the names of the built-in tools that the agent could have and does not have.
    pub fn lacking(&self) -> impl Iterator<Item = &'static str> {
        let has = |name: &str| self.enabled.iter().any(|enabled| enabled == name);
        handled().map(|tool| tool.name).filter(move |name| !has(name))
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use serde_json::json;

    /// Returns a tool of a server with one argument.
    pub(in crate::registry::tools) fn server_tool(server: &str, tool: &str, description: &str) -> ServerTool {
        let schema = json!({ "type": "object", "properties": { "text": { "type": "string" } } });
        let entry = json!({ "name": tool, "inputSchema": schema });
        let tools = manifest::server::Tools::strictest(server, &[entry]);
        ServerTool {
            server: server.to_owned(),
            tool: tool.to_owned(),
            description: description.to_owned(),
            parameters: schema,
            manifest: tools.manifests[tool].clone(),
            floored: Arc::default(),
            arguments: None,
            reading: None,
            pin: Digest::of(b"pin"),
            is_current: true,
        }
    }

    fn catalogue(count: usize) -> Catalogue {
        let tool = |n: usize| server_tool(&format!("s{}", n / 60), &format!("tool_{n}"), &"Does its work. ".repeat(12));
        Catalogue::new(&["read_file".to_owned()], CommandReach::Jail, (0..count).map(tool).map(Arc::new).collect())
    }

    #[test]
    fn small_catalogue_has_all_definitions_and_no_search() {
        let small = catalogue(60);
        assert_eq!((small.is_large(), small.offered(&[]).count()), (false, 61));
        assert_eq!(catalogue(0).missing(FIND_TOOLS), Some(DenialCode::CallToolNotEnabled));
        let small = small.with_room(Room::new(4 << 10));
        assert_eq!((small.is_large(), small.offered(&[]).count()), (true, 2), "the room is small");
    }

    #[test]
    fn large_catalogue_has_the_search_and_found_definitions() {
        let large = catalogue(300);
        let names = |found: &[String]| large.offered(found).map(|tool| tool.name.to_owned()).collect::<Vec<_>>();
        assert_eq!((large.is_large(), names(&[])), (true, vec!["read_file".to_owned(), FIND_TOOLS.to_owned()]));
        assert_eq!(names(&["s1__tool_77".to_owned()]).last().map(String::as_str), Some("s1__tool_77"));
        assert_eq!(large.missing(FIND_TOOLS), None);
        // The judgement knows the tools without a definition in the prompt.
        assert_eq!(
            (large.missing("s2__tool_130"), large.missing("s2__none")),
            (None, Some(DenialCode::CallToolNotEnabled))
        );
    }

    #[test]
    fn person_names_a_tool_by_its_full_name_too() {
        let tools = vec![Arc::new(server_tool("s", "send a letter", "Sends."))];
        let catalogue = Catalogue::new(&[], CommandReach::Jail, tools);
        let name = manifest::server::name_for_model("s", "send a letter");
        for written in ["s__send a letter", &name] {
            assert_eq!(catalogue.known_name(written).as_deref(), Some(name.as_str()), "{written}");
        }
        assert_eq!(catalogue.known_name("read_file").as_deref(), Some("read_file"));
        assert_eq!((catalogue.known_name("s__send"), catalogue.known_name("none")), (None, None));
    }

    #[test]
    fn cut_description_comes_with_the_search() {
        let tool = |n: usize| Arc::new(server_tool("s", &format!("t{n}"), &"word ".repeat(1600)));
        let long = Catalogue::new(&[], CommandReach::Jail, (0..6).map(tool).collect());
        let offered: Vec<Offered<'_>> = long.offered(&[]).collect();
        assert_eq!((offered.len(), offered[0].name, long.is_large()), (7, FIND_TOOLS, false));
        assert!(offered[1..].iter().all(|tool| (4000..8000).contains(&tool.description.len())));
        assert_eq!(Catalogue::new(&[], CommandReach::Jail, (0..4).map(tool).collect()).offered(&[]).count(), 4);
    }

    #[test]
    fn network_command_needs_a_granted_host_and_run_command() {
        for (tools, commands, is_there) in [
            (&[RUN_COMMAND.to_owned()][..], CommandReach::GrantedHosts, true),
            (&[RUN_COMMAND.to_owned()], CommandReach::Jail, false),
            (&["read_file".to_owned()], CommandReach::GrantedHosts, false),
        ] {
            let catalogue = Catalogue::new(tools, commands, Vec::new());
            assert_eq!(catalogue.missing(NETWORK_COMMAND).is_none(), is_there, "{tools:?} {commands:?}");
            assert_eq!(catalogue.offered(&[]).any(|tool| tool.name == NETWORK_COMMAND), is_there);
            assert_eq!(catalogue.has_outward(), is_there);
            assert!(catalogue.missing(GIT_PUSH).is_some());
        }
    }

    #[test]
    fn changed_tools_are_in_no_level() {
        let mut large = catalogue(300);
        Arc::make_mut(&mut large.of_servers[0]).is_current = false;
        assert_eq!((large.server_tools().len(), large.offered(&["s0__tool_0".to_owned()]).count()), (299, 2));
    }
}
