//! The rules for calls of tools that need a person.
//!
//! A rule says who decides on a call, and never whether a call needs a decision. See [`ironclaw_judge::call`] for the reasons to ask.

use super::{Bounds, Rule, WrittenRule, rule};
use crate::registry::Role;
use crate::registry::tools;
use ironclaw_judge::manifest::server;
use ironclaw_judge::{Class, Classes};
use std::collections::BTreeMap;
use std::fmt;

/// The bound on the wait of a call for a decision.
const EXPIRES_HOURS_MAX: u32 = 24;

/// The classes that a rule can name. A call of the class `ask` asks a person itself.
const DECIDED: [Class; 5] = [Class::Read, Class::Write, Class::Send, Class::Exec, Class::Trade];

/// The beginning of the part of a new home's policy about calls.
const TEMPLATE: &str = "
# For tool calls that need a person: [call.CLASS], where CLASS is one of
# read write send exec trade, and [tool.NAME] for one tool. A tool's rule
# extends the rule of the class; [default] does not hold for calls.
# Without a rule: roles = [\"owner\", \"admin\"] (\"member\" is possible too), approvals = 1,
# requester_may_approve = true, expires_hours = 24 (at most 24).
";

/// Examples for the policy of a new home: the people that they are for, and the rules.
const EXAMPLES: [(&str, &str); 2] = [
    ("one owner", "[call.send]\nexpires_hours = 2\n[call.trade]\nexpires_hours = 1\n"),
    (
        "three people (owner, admin, member), where another person confirms what leaves",
        "[call.send]\nroles = [\"owner\", \"admin\", \"member\"]\nrequester_may_approve = false\n\
         [call.trade]\napprovals = 2\n\
         [tool.http_fetch]\nroles = [\"owner\", \"admin\"]\n",
    ),
];

/// Returns the part of a new home's policy about calls, as comments.
pub(super) fn template() -> String {
    let examples = EXAMPLES.iter().map(|(people, example)| {
        let lines: String = example.lines().map(|line| format!("# {line}\n")).collect();
        format!("#\n# For {people}:\n{lines}")
    });
    TEMPLATE.to_owned() + &examples.collect::<String>()
}

/// The calls of one table of the policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Calls {
    OfClass(Class),
    OfTool(String),
}

impl fmt::Display for Calls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfClass(class) => write!(f, "call.{class}"),
            Self::OfTool(tool) => write!(f, "tool.{tool}"),
        }
    }
}

/// A rule for each class of calls, and for each tool that the policy names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CallRules {
    /// The classes that the policy names.
    named: Classes,
    classes: BTreeMap<Class, Rule>,
    /// The rules of named tools, by their names for a model.
    tools: BTreeMap<String, NamedTool>,
}

/// The rules of a named tool.
#[derive(Debug, Clone, PartialEq, Eq)]
struct NamedTool {
    /// The name in the policy: for a tool of a server its full name, or that for a model.
    written: String,
    /// A rule for every class that a call can have.
    rules: BTreeMap<Class, Rule>,
}

impl CallRules {
    pub(super) fn rule(&self, class: Class, tool: &str) -> &Rule {
        &self.tools.get(tool).map_or(&self.classes, |named| &named.rules)[&class]
    }

    /// Returns the table of the policy that applies to a call of this class and tool; `None` if the defaults hold.
    pub(super) fn table(&self, class: Class, tool: &str) -> Option<Calls> {
        match self.tools.get(tool) {
            Some(named) => Some(Calls::OfTool(named.written.clone())),
            None => self.named.has(class).then_some(Calls::OfClass(class)),
        }
    }

    /// Returns the rule of each class, and of each named tool for the classes that its calls can have.
    pub(super) fn all(&self) -> impl Iterator<Item = (Calls, Class, &Rule)> {
        let of_classes = DECIDED.into_iter().map(|class| (Calls::OfClass(class), class, &self.classes[&class]));
        let of_tools = self.tools.values().flat_map(|NamedTool { written, rules }| {
            classes_of(written)
                .iter()
                .map(|class| (Calls::OfTool(written.clone()), class, &rules[&class]))
                .collect::<Vec<_>>()
        });
        of_classes.chain(of_tools)
    }
}

/// Returns the classes that the calls of a tool can have and a rule can name.
pub fn decided_classes(tool: &str) -> impl Iterator<Item = Class> {
    let classes = classes_of(tool);
    DECIDED.into_iter().filter(move |class| classes.has(*class))
}

fn classes_of(tool: &str) -> Classes {
    match tools::manifest(tool) {
        Some(manifest) => manifest.classes(),
        // People choose the class of a tool of a server when they confirm it.
        None if server::meant(tool).is_some() => Classes::new(&DECIDED),
        None => Classes::NONE,
    }
}

/// Reads the rules of `[call.CLASS]` and `[tool.NAME]`.
///
/// # Errors
/// Names the table and the setting that is wrong, with what to write.
pub(super) fn compile(
    of_classes: &BTreeMap<String, WrittenRule>,
    of_tools: &BTreeMap<String, WrittenRule>,
) -> Result<CallRules, String> {
    let bounds = Bounds { has_members: true, expires_hours_max: EXPIRES_HOURS_MAX };
    let roles = vec![Role::Owner, Role::Admin];
    let usual = Rule { roles, approvals: 1, requester_may_approve: true, expires_hours: EXPIRES_HOURS_MAX };
    let mut classes: BTreeMap<Class, Rule> = Class::ALL.into_iter().map(|class| (class, usual.clone())).collect();
    let mut named = Classes::NONE;
    for (name, written) in of_classes {
        let class = class_of(name)?;
        named = named.with(class);
        classes.insert(class, rule(&Calls::OfClass(class).to_string(), written, &usual, bounds)?);
    }
    let mut tools = BTreeMap::new();
    for (name, written) in of_tools {
        let tool = tool_of(name)?;
        let of = Calls::OfTool(name.clone()).to_string();
        let rules = classes.iter().map(|(class, of_class)| Ok((*class, rule(&of, written, of_class, bounds)?)));
        let named = NamedTool { written: name.clone(), rules: rules.collect::<Result<_, String>>()? };
        if let Some(other) = tools.insert(tool, named) {
            return Err(format!("{of}: tool.{} is the same tool: remove one of them", other.written));
        }
    }
    Ok(CallRules { named, classes, tools })
}

fn class_of(name: &str) -> Result<Class, String> {
    DECIDED.into_iter().find(|class| class.name() == name).ok_or_else(|| {
        let known: Vec<&str> = DECIDED.iter().map(|class| class.name()).collect();
        let what = match name.parse() {
            Ok(class @ Class::Ask) => format!("no person decides on a call of the class {class}"),
            _ => format!("there is no class {name:?}"),
        };
        format!("call.{name}: {what}: use one of {}", known.join(", "))
    })
}

/// Returns the name of a tool for a model.
fn tool_of(name: &str) -> Result<String, String> {
    let built_in = tools::find(name).map(|tool| tool.name.to_owned());
    built_in.or_else(|| server::meant(name)).ok_or_else(|| {
        let known: Vec<&str> = tools::builtin().iter().map(|tool| tool.name).collect();
        format!("tool.{name}: there is no tool {name:?}: use one of {}, or SERVER__TOOL", known.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::parse;
    use super::super::{Policy, template};
    use super::*;
    use ironclaw_contract::seam::change::ChangeKind;

    #[test]
    fn wrong_rule_of_calls_is_refused_with_what_to_write() {
        for (text, why) in [
            ("[call.delete]\napprovals = 1", "call.delete: there is no class \"delete\": use one of read, write, send"),
            ("[call.Send]\napprovals = 1", "call.Send"),
            ("[call.ask]\napprovals = 1", "no person decides on a call of the class ask"),
            (
                "[tool.m__list_all]\napprovals = 1\n[tool.\"m__list.all\"]\napprovals = 1",
                "the same tool: remove one of them",
            ),
            ("[tool.\"a b__c\"]\napprovals = 1", "there is no tool \"a b__c\""),
            ("[tool.rm]\napprovals = 1", "tool.rm: there is no tool \"rm\": use one of read_file"),
            ("[call.send]\napprovals = 0", "call.send.approvals must be 1 to 8: a person always decides"),
            ("[call.send]\napprovals = 9", "1 to 8"),
            ("[call.send]\nroles = []", "call.send.roles is empty: name owner, admin, member or several of them"),
            ("[call.send]\nroles = [\"guest\"]", "unknown role"),
            ("[call.send]\nroles = [\"member\", \"member\"]", "twice"),
            ("[call.send]\nexpires_hours = 0", "call.send.expires_hours must be 1 to 24"),
            ("[call.send]\nexpires_hours = 25", "call.send.expires_hours must be 1 to 24"),
            ("[tool.http_fetch]\nexpires_hours = 168", "tool.http_fetch.expires_hours must be 1 to 24"),
            ("[tool.http_fetch]\napprovals = 0", "tool.http_fetch.approvals"),
            ("[call.send]\naproval = 2", "did you mean `approvals`?"),
            ("[calls.send]\napprovals = 2", "did you mean `call`?"),
            ("[call]\nsend = 2", "expected"),
        ] {
            let error = parse(text).expect_err(text);
            assert!(error.contains(why), "{text}: {error}");
        }
    }

    #[test]
    fn rule_of_a_tool_wins_over_its_class_and_the_default() {
        let text = "[default]\napprovals = 3\n[call.send]\napprovals = 2\nroles = [\"member\"]\n\
                    [tool.http_fetch]\nroles = [\"owner\"]\n";
        let policy = parse(text).expect("a policy");
        let send = policy.call_rule(Class::Send, "send_message");
        assert_eq!((send.approvals, send.roles.as_slice(), send.expires_hours), (2, &[Role::Member][..], 24));
        let fetch = policy.call_rule(Class::Send, "http_fetch");
        assert_eq!((fetch.approvals, fetch.roles.as_slice()), (2, &[Role::Owner][..]), "it extends its class");
        let read = policy.call_rule(Class::Read, "http_fetch");
        assert_eq!((read.approvals, read.roles.as_slice()), (1, &[Role::Owner][..]));
        let usual = policy.call_rule(Class::Exec, "an_unknown_tool");
        assert_eq!((usual.approvals, usual.requester_may_approve, usual.expires_hours), (1, true, 24));
        assert_eq!(usual.roles, [Role::Owner, Role::Admin]);
        assert_eq!(policy.call_rule(Class::Ask, "http_fetch").roles, [Role::Owner]);
        let table = |class, tool| policy.call_table(class, tool).map(|calls| calls.to_string());
        assert_eq!(table(Class::Read, "http_fetch").as_deref(), Some("tool.http_fetch"));
        assert_eq!(table(Class::Send, "send_message").as_deref(), Some("call.send"));
        assert_eq!(table(Class::Exec, "run_command"), None);
        let decided = |tool| decided_classes(tool).collect::<Vec<_>>();
        assert_eq!(decided("http_fetch"), [Class::Read, Class::Send]);
        assert_eq!((decided("run_command"), decided("request_capability_change")), (vec![Class::Exec], Vec::new()));
    }

    #[test]
    fn rule_names_a_tool_of_a_server_by_its_full_name() {
        for (written, tool) in [("mail__send a letter", "send a letter"), ("mail__list.all", "list.all")] {
            let policy = parse(&format!("[tool.\"{written}\"]\napprovals = 2\n")).expect("a policy");
            let name = server::name_for_model("mail", tool);
            assert_eq!(policy.call_rule(Class::Send, &name).approvals, 2, "{written}");
            let table = policy.call_table(Class::Send, &name).map(|calls| calls.to_string());
            assert_eq!(table, Some(format!("tool.{written}")));
        }
    }

    #[test]
    fn digest_of_a_rule_differs_by_rule_class_and_tool() {
        let (one, two) = (Policy::default(), parse("[call.send]\napprovals = 2\n").expect("a policy"));
        let of = |policy: &Policy, class, tool| policy.call_rule(class, tool).call_digest(class, tool);
        let usual = of(&one, Class::Send, "http_fetch");
        assert_eq!(usual, of(&one, Class::Send, "http_fetch"));
        assert_ne!(usual, of(&two, Class::Send, "http_fetch"));
        assert_ne!(usual, of(&one, Class::Read, "http_fetch"));
        assert_ne!(usual, of(&one, Class::Send, "send_message"));
        assert_ne!(usual, one.rule(ChangeKind::Egress).digest(ChangeKind::Egress));
        let policies = ["", "[call.send]\napprovals = 2\n", "[tool.http_fetch]\napprovals = 2\n"];
        let digests: std::collections::BTreeSet<String> =
            policies.iter().map(|text| parse(text).expect("a policy").digest().to_string()).collect();
        assert_eq!(digests.len(), policies.len());
    }

    #[test]
    fn each_example_of_the_template_is_a_policy() {
        let template = template();
        for (_, example) in EXAMPLES {
            let commented: String = example.lines().map(|line| format!("# {line}\n")).collect();
            assert!(template.contains(&commented), "{commented}");
            assert_ne!(parse(example).expect("a policy"), Policy::default(), "{example}");
        }
    }
}
