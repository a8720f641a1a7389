//! The templates of well-known MCP servers: the class and the rules of their tools, written by reading what each tool does.
//!
//! A template permits nothing, because people confirm what it proposes. It holds for a server by its package or its origin, never by what
//! the server says, and for a tool by the digest of its whole definition, never by its name. See [`super::proposal`].

use super::server::Tools;
use super::{Error, InputType, Manifest, Rule};
use crate::place::Mistake;
use ironclaw_contract::canonical::Digest;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::slice;
use std::sync::LazyLock;

/// The files of the templates.
const SOURCES: [&str; 21] = [
    include_str!("../../templates/brave-search.toml"),
    include_str!("../../templates/calculator.toml"),
    include_str!("../../templates/code-runner.toml"),
    include_str!("../../templates/context7.toml"),
    include_str!("../../templates/everything.toml"),
    include_str!("../../templates/exa.toml"),
    include_str!("../../templates/fetch.toml"),
    include_str!("../../templates/filesystem.toml"),
    include_str!("../../templates/git.toml"),
    include_str!("../../templates/github.toml"),
    include_str!("../../templates/memory.toml"),
    include_str!("../../templates/notion.toml"),
    include_str!("../../templates/playwright.toml"),
    include_str!("../../templates/postgres.toml"),
    include_str!("../../templates/puppeteer.toml"),
    include_str!("../../templates/sequential-thinking.toml"),
    include_str!("../../templates/slack.toml"),
    include_str!("../../templates/sqlite.toml"),
    include_str!("../../templates/tavily.toml"),
    include_str!("../../templates/text-editor.toml"),
    include_str!("../../templates/time.toml"),
];

/// The templates. A test reads each file, so none is left out.
static ALL: LazyLock<Vec<Template>> =
    LazyLock::new(|| SOURCES.iter().filter_map(|text| Template::parse(text).ok()).collect());

/// The place that a server comes from, by its registration.
#[derive(Debug, Clone, Copy, Default)]
pub struct Identity<'a> {
    /// The packages that the registration names, as `REGISTRY:NAME` without a version.
    pub packages: &'a [String],
    /// The first word of the command.
    pub program: Option<&'a str>,
    /// The names of the variables of the command.
    pub variables: &'a [String],
    /// The origin of the URL.
    pub origin: Option<&'a str>,
}

/// The template of one server.
#[derive(Debug)]
pub struct Template {
    file: File,
    /// The rules of each tool, of all versions.
    tools: BTreeMap<String, Manifest>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    name: String,
    /// Each package that is this server.
    #[serde(default)]
    packages: Vec<String>,
    /// Packages that may be named beside it.
    #[serde(default)]
    beside: Vec<String>,
    /// The programs of the packages that are this server.
    #[serde(default)]
    programs: Vec<String>,
    /// The variables that they may get.
    #[serde(default)]
    variables: Vec<String>,
    #[serde(default)]
    origins: Vec<String>,
    /// The versions whose definitions were read.
    versions: Vec<String>,
    /// The digests of the definitions for which the rules hold, by tool.
    digests: BTreeMap<String, BTreeSet<Digest>>,
    #[serde(default)]
    tool: Vec<Manifest>,
}

/// Returns the template of a server: its registration names one package of the template and a program of it, with no other package and no
/// other variable than the template permits; or an origin of it.
pub fn known(identity: &Identity<'_>) -> Option<&'static Template> {
    ALL.iter().find(|template| template.is_of_server(identity))
}

/// Returns the template whose server a listing looks like: it has a definition of it, or at least half of its names, and two.
///
/// The identity of the server is not asked: a caller does so with [`known`] first.
pub fn resembled(entries: &[Value]) -> Option<&'static Template> {
    let alike = ALL.iter().filter_map(|template| Some((template.likeness(entries)?, template)));
    alike.max_by_key(|(likeness, _)| *likeness).map(|(_, template)| template)
}

/// Returns the digest of a definition: of all fields of an entry of a listing with sorted keys, as the pin of the host covers them.
pub fn digest(entry: &Value) -> Digest {
    Digest::of(entry.to_string().as_bytes())
}

impl Template {
    /// Returns its name for people.
    pub fn name(&self) -> &str {
        &self.file.name
    }

    /// Returns the manifest of a tool as an operator could give it, for a definition that the template knows; `None` for any other.
    pub fn manifest(&self, entry: &Value) -> Option<Manifest> {
        let tool = self.tool_of(entry)?;
        let strict = Tools::strictest(self.name(), slice::from_ref(entry)).manifests.remove(&tool.name)?;
        let rule = |name: String| {
            let mut rule = *tool.arguments.get(&name)?;
            if rule.rule == Rule::Floor {
                rule.kind = rule.kind.or(Some(InputType::Any));
            }
            Some((name, rule))
        };
        // The rules are those of all versions, and an argument can be missing in one.
        let arguments = strict.arguments.into_keys().map(rule).collect::<Option<_>>()?;
        let manifest = Manifest { arguments, floors: strict.floors, ..tool.clone() };
        manifest.check().is_ok().then_some(manifest)
    }

    /// Returns the packages that are its server, and the versions whose definitions were read, for people.
    pub fn read_versions(&self) -> (&[String], &[String]) {
        (&self.file.packages, &self.file.versions)
    }

    fn parse(text: &str) -> Result<Self, Error> {
        let mut file: File = toml::from_str(text).map_err(|error| Mistake::new(text, &error))?;
        let mut tools = BTreeMap::new();
        for manifest in std::mem::take(&mut file.tool) {
            manifest.check()?;
            let name = manifest.name.clone();
            if tools.insert(name.clone(), manifest).is_some() {
                return Err(Error::Twice(name));
            }
        }
        Ok(Self { file, tools })
    }

    fn is_of_server(&self, identity: &Identity<'_>) -> bool {
        match (identity.packages, identity.program, identity.origin) {
            ([], None, Some(origin)) => self.file.origins.iter().any(|known| known == origin),
            (packages, Some(program), None) => {
                // Any other package could replace the files of this one.
                let mut named = packages.iter().filter(|package| !self.file.beside.contains(package));
                let is_alone =
                    named.next().is_some_and(|one| self.file.packages.contains(one)) && named.next().is_none();
                // A variable such as NODE_OPTIONS brings other code into the program.
                let is_plain = identity.variables.iter().all(|variable| self.file.variables.contains(variable));
                is_alone && is_plain && self.file.programs.iter().any(|known| known == program)
            }
            _ => false,
        }
    }

    /// Returns the rules for a definition.
    fn tool_of(&self, entry: &Value) -> Option<&Manifest> {
        let name = entry["name"].as_str()?;
        let is_known = self.file.digests.get(name)?.contains(&digest(entry));
        self.tools.get(name).filter(|_| is_known)
    }

    /// Returns how many definitions and names of the template a listing has; `None` if it does not look like it.
    fn likeness(&self, entries: &[Value]) -> Option<(usize, usize)> {
        let names: BTreeSet<&str> = entries.iter().filter_map(|entry| entry["name"].as_str()).collect();
        let named = self.tools.keys().filter(|name| names.contains(name.as_str())).count();
        let equal = entries.iter().filter(|entry| self.tool_of(entry).is_some()).count();
        let is_alike = equal > 0 || named >= 2 && named * 2 >= self.tools.len();
        is_alike.then_some((equal, named))
    }
}

#[cfg(test)]
mod tests;
