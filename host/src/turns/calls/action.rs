//! The action of a call that goes out as a row.
//!
//! Never judges a call: see [`super::judge`].

use super::output_body::Call;
use super::schedule;
use crate::registry::tools;
use ironclaw_contract::seam::action::Action;
use ironclaw_contract::seam::change::ChangeKind;
use ironclaw_text::excerpt::quoted;
use serde_json::{Map, Value};

/// Returns the action of a recorded call, which its row must repeat exactly.
///
/// # Errors
/// When its arguments are not a valid action; the message gives the reason.
pub fn action_of(call: &Call) -> Result<Action, String> {
    match serde_json::from_str(&call.arguments) {
        Ok(Value::Object(arguments)) => action_in(&call.tool, arguments),
        Ok(_) => Err("the arguments are not an object".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Returns the action of a tool with these arguments.
///
/// # Errors
/// As [`action_of`].
pub fn action_in(tool: &str, mut object: Map<String, Value>) -> Result<Action, String> {
    let name = match tool {
        tools::REQUEST_CHANGE => {
            let kind = object.remove("kind").and_then(|kind| kind.as_str().map(str::to_owned));
            // A kind of change or a skill, because the sandbox writes no row for the names of other actions.
            match kind.ok_or("kind is missing: name the kind of change")?.as_str() {
                tools::SKILL_INSTALL => tools::SKILL_INSTALL.to_owned(),
                kind => kind_of(kind)?.name().to_owned(),
            }
        }
        other => other.to_owned(),
    };
    if object.contains_key("action") {
        return Err("unknown field `action`".to_owned());
    }
    object.insert("action".to_owned(), name.into());
    let action = Action::parse(&Value::Object(object).to_string()).map_err(|error| error.to_string())?;
    if let Action::ScheduleTask(task) = &action {
        schedule::check(task)?;
    }
    Ok(action)
}

fn kind_of(name: &str) -> Result<ChangeKind, String> {
    name.parse().ok().filter(|kind: &ChangeKind| kind.is_for_agents()).ok_or_else(|| {
        let kinds: Vec<_> = ChangeKind::for_agents().map(ChangeKind::name).chain([tools::SKILL_INSTALL]).collect();
        let shown = quoted(name);
        format!("kind {shown} is not a kind of change that an agent may request: use one of {}", kinds.join(", "))
    })
}
