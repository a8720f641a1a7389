//! The payload of the change `schedule`: a prompt that an agent gets at given times.
//!
//! Never decides about a schedule and never computes a time: the host does. See [`crate::seam::change`] and [`crate::seam::bounds`].

use super::field::{each_once, names, text};
use super::limits::{FLOWS_MAX, IDENTITY_BYTES_MAX, INSTRUCTIONS_BYTES_MAX, NAME_BYTES_MAX, PATH_BYTES_MAX};
use super::message::word;
use crate::ids::{PersonId, ScheduleId};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

word!(/// The treatment of times that passed while the host was stopped.
CatchUp {
    /// No run for a passed time.
    Skip = "skip",
    /// One run, for the last of them.
    Once = "once",
    /// A run for each of them, in order, up to a bound of the host.
    All = "all",
});

word!(/// The author of the prompt of a schedule.
WrittenBy {
    /// A person typed it.
    Person = "person",
    /// A model wrote it.
    Model = "model",
});

word!(/// The context of the runs of a schedule.
RunContext {
    /// Each run sees its own prompt and nothing of an earlier run.
    Fresh = "fresh",
    /// The runs of the schedule continue one conversation.
    Continue = "continue",
});

/// A schedule of one agent: a new one, or with `id` the change of one. The change of one leaves absent fields as they are.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// The schedule to change; absent: a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<ScheduleId>,
    /// Its name, which no other schedule of its creator with the agent has; absent: the first words of the prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The text that the agent gets at each time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// A cron expression of five fields, in the time of `zone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cron: Option<String>,
    /// A period, such as `90m`, `daily` or `1w`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub every: Option<String>,
    /// One time: RFC 3339, or a local time of `zone`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// A name of the IANA time zone database; absent: the zone of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    /// The treatment of passed times; absent: [`CatchUp::Skip`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<CatchUp>,
    /// Classes of calls and names of tools that a run may use beside reading; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub may: Option<Vec<String>>,
    /// The receivers to which a run may send without a question, with the directories whose text may go there; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<Vec<Flow>>,
    /// The context of its runs; absent: [`RunContext::Fresh`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<RunContext>,
    /// The conversation that gets the replies; absent: that of the creator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<ReplyTo>,
    /// The time from which periods count, RFC 3339. The host fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The person on whose behalf it runs. The host fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub creator: Option<PersonId>,
    /// The author of the prompt. The host fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub written_by: Option<WrittenBy>,
}

/// A way out of a run: one tool, one destination, and the directories whose text may go there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// The agent's name for the destination.
    pub to: String,
    /// The directories, each granted to the agent read-only; absent: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<FlowSource>,
    /// The tool. The host fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The identity at the destination. The host fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recipient: Option<String>,
    /// The thread of the destination, if it has one. The host fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

/// A granted directory whose text a flow lets out.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowSource {
    /// Its path in the jail, such as `/notes`, or its path on the machine.
    pub directory: String,
    /// Its path on the machine. The host fills it in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
}

/// A conversation of the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReplyTo {
    /// Name of the channel.
    pub channel: String,
    /// Address on that channel.
    pub address: String,
    /// Thread at that address; absent: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thread: Option<String>,
}

impl Schedule {
    pub(super) fn within_bounds(&self) -> Result<(), String> {
        let Self {
            id,
            name,
            prompt,
            cron,
            every,
            at,
            zone,
            catch_up,
            may,
            flows,
            context,
            reply_to,
            from,
            creator: _,
            written_by: _,
        } = self;
        let times = [("cron", cron), ("every", every), ("at", at)];
        let given = times.iter().filter(|(_, time)| time.is_some()).count();
        if given > 1 {
            return Err("it has one of cron, every and at".to_owned());
        }
        if id.is_none() && (given == 0 || prompt.is_none()) {
            return Err("a new schedule has a prompt and one of cron, every and at".to_owned());
        }
        let is_empty = prompt.is_none() && given == 0 && zone.is_none() && catch_up.is_none();
        let is_empty = is_empty && name.is_none() && may.is_none() && flows.is_none() && context.is_none();
        if is_empty && reply_to.is_none() {
            let fields = "name, prompt, cron, every, at, zone, catch_up, may, flows, context or reply_to";
            return Err(format!("it is empty: set {fields}"));
        }
        if prompt.as_ref().is_some_and(|prompt| prompt.trim().is_empty()) {
            return Err("prompt is empty".to_owned());
        }
        text("prompt", prompt.as_deref().unwrap_or("-"), INSTRUCTIONS_BYTES_MAX)?;
        for (field, value) in times.into_iter().chain([("name", name), ("zone", zone), ("from", from)]) {
            text(field, value.as_deref().unwrap_or("-"), NAME_BYTES_MAX)?;
        }
        names("a class or tool", may.as_deref().unwrap_or_default())?;
        flows_within_bounds(flows.as_deref().unwrap_or_default())?;
        let Some(ReplyTo { channel, address, thread }) = reply_to else { return Ok(()) };
        text("channel", channel, NAME_BYTES_MAX)?;
        text("address", address, IDENTITY_BYTES_MAX)?;
        text("thread", thread.as_deref().unwrap_or("-"), NAME_BYTES_MAX)
    }
}

fn flows_within_bounds(flows: &[Flow]) -> Result<(), String> {
    if flows.len() > FLOWS_MAX {
        return Err(format!("flows has at most {FLOWS_MAX} entries"));
    }
    for (at, Flow { to, from, tool, recipient, thread }) in flows.iter().enumerate() {
        if flows[..at].iter().any(|earlier| earlier.to == *to) {
            return Err("flows names a destination twice".to_owned());
        }
        for (field, value) in [("tool", tool), ("thread", thread)] {
            text(field, value.as_deref().unwrap_or("-"), NAME_BYTES_MAX)?;
        }
        text("to", to, NAME_BYTES_MAX)?;
        text("recipient", recipient.as_deref().unwrap_or("-"), NAME_BYTES_MAX + 1 + IDENTITY_BYTES_MAX)?;
        let directories: Vec<String> = from.iter().map(|source| source.directory.clone()).collect();
        each_once(&directories, "directories in a flow", "a directory", "has a path of", PATH_BYTES_MAX)?;
        for FlowSource { source, .. } in from {
            text("source", source.as_deref().unwrap_or("-"), PATH_BYTES_MAX)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::change::{self, Change, ChangeKind, Payload};
    use serde_json::{Value, json};

    fn parse(payload: Value) -> Result<Change, change::Error> {
        Change::parse(ChangeKind::Schedule, &Payload::try_from(payload).expect("an object or a list"))
    }

    #[test]
    fn schedules_are_strict_and_bounded_and_read_back() {
        for payload in [
            json!({"prompt": "water", "cron": "0 8 * * *"}),
            json!({"prompt": "water", "every": "1d", "zone": "Europe/Berlin", "catch_up": "once", "may": ["write"]}),
            json!({"prompt": "water", "at": "2030-01-01T08:00", "reply_to": {"channel": "desk", "address": "7"}}),
            json!({"id": "sch_00000000000000000000000001", "may": []}),
            json!({"id": "sch_00000000000000000000000001", "flows": []}),
            json!({"prompt": "report", "every": "1w", "name": "monday", "context": "continue"}),
            json!({"prompt": "report", "every": "1w", "flows": [{"to": "me", "from": [{"directory": "/notes"}]}]}),
        ] {
            let change = parse(payload.clone()).expect("a schedule");
            assert_eq!(change.payload().value(), &payload);
        }
        for payload in [
            json!({}),
            json!([]),
            json!({"prompt": "water"}),
            json!({"cron": "0 8 * * *"}),
            json!({"prompt": " ", "cron": "0 8 * * *"}),
            json!({"prompt": "x".repeat(32 * 1024 + 1), "every": "1d"}),
            json!({"prompt": "water", "cron": "0 8 * * *", "every": "1d"}),
            json!({"prompt": "water", "every": "1d", "catch_up": "later"}),
            json!({"prompt": "water", "every": "1d", "may": ["write", "write"]}),
            json!({"prompt": "water", "every": "1d", "reply_to": "desk:7"}),
            json!({"id": "sch_00000000000000000000000001"}),
            json!({"id": "chg_00000000000000000000000001", "may": []}),
            json!({"prompt": "water", "every": "1d", "name": ""}),
            json!({"prompt": "water", "every": "1d", "context": "old"}),
            json!({"prompt": "water", "every": "1d", "flows": [{"to": ""}]}),
            json!({"prompt": "water", "every": "1d", "flows": [{"to": "me"}, {"to": "me", "from": [{"directory": "/a"}]}]}),
            json!({"prompt": "water", "every": "1d", "flows": [{"to": "me", "from": ["/notes"]}]}),
            json!({"prompt": "water", "every": "1d", "flows": [{"to": "a"}, {"to": "b"}, {"to": "c"}, {"to": "d"}, {"to": "e"}]}),
        ] {
            assert!(parse(payload.clone()).is_err(), "{payload}");
        }
    }
}
