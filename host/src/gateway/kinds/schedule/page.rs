//! The sentences of a schedule on the review page.

use super::super::kind::Page;
use super::{BESIDE, LACKING, asked, series};
use crate::gateway::review_page::effects::Effects;
use ironclaw_contract::seam::change::{CatchUp, Flow, FlowSource, RunContext, Schedule, WrittenBy};
use ironclaw_judge::Class;
use serde_json::Value;
use std::borrow::Cow;

/// The first times on the page.
const TIMES: usize = 3;

impl Page for Schedule {
    fn effects(&self, agent: &str, page: &mut Effects<'_>) {
        let verb = if self.id.is_some() { "Change a schedule of" } else { "Give a schedule to" };
        page.add(format!("{verb} {agent}: it gets the prompt below at its times, without a message of a person."));
        put_times(self, page);
        page.add(match self.catch_up {
            None | Some(CatchUp::Skip) => "Times that pass while the host is stopped are skipped.".to_owned(),
            Some(CatchUp::Once) => "After a stop of the host, the last passed time runs once.".to_owned(),
            Some(CatchUp::All) => "After a stop of the host, up to 24 passed times run one after another.".to_owned(),
        });
        if let Some(reply_to) = &self.reply_to {
            let place = page.show(&format!("{}:{}", reply_to.channel, reply_to.address));
            page.add(format!("Its replies go to {place}."));
        }
        put_context(self, page);
        put_list(self, page);
        put_flows(self, page);
        put_asked(self, page);
        if self.written_by == Some(WrittenBy::Model) {
            page.warn("A MODEL wrote the prompt. It may contain words of strangers.".to_owned());
        }
    }

    fn explained<'f>(&self, facts: &'f Value) -> Cow<'f, Value> {
        if [LACKING, BESIDE].iter().all(|fact| facts.get(fact).is_none()) {
            return Cow::Borrowed(facts);
        }
        let mut names = facts.clone();
        if let Some(names) = names.as_object_mut() {
            names.retain(|fact, _| ![LACKING, BESIDE].contains(&fact.as_str()));
        }
        Cow::Owned(names)
    }
}

/// Writes the first times, counted from the time of the request.
fn put_times(schedule: &Schedule, page: &mut Effects<'_>) {
    let Some(series) = series(schedule) else { return };
    let first = series.due_between(series.anchor, i64::MAX, TIMES);
    let times: Vec<String> = first.iter().map(|due| series.zone.local(*due)).collect();
    page.add(format!("First times, in the zone {}: {}.", series.zone.name(), times.join(", ")));
}

fn put_context(schedule: &Schedule, page: &mut Effects<'_>) {
    page.add(
        match schedule.context {
            None | Some(RunContext::Fresh) => {
                "Each run begins anew: it sees the prompt, and nothing of an earlier run."
            }
            Some(RunContext::Continue) => "Its runs continue one conversation: each sees the earlier ones.",
        }
        .to_owned(),
    );
}

/// Writes each way out with the directories whose text may go there.
fn put_flows(schedule: &Schedule, page: &mut Effects<'_>) {
    for Flow { to, from, tool, recipient, thread } in schedule.flows.iter().flatten() {
        let place = page.show(recipient.as_deref().unwrap_or_default());
        let thread =
            thread.as_deref().map(|thread| format!(" in the thread {}", page.show(thread))).unwrap_or_default();
        let (to, tool) = (page.show(to), page.show(tool.as_deref().unwrap_or_default()));
        let directory = |source: &FlowSource| {
            let FlowSource { directory, source } = source;
            format!("{} ({})", page.show(directory), page.show(source.as_deref().unwrap_or_default()))
        };
        let directories: Vec<String> = from.iter().map(directory).collect();
        page.add(format!("WITHOUT A QUESTION a run may send to {to} by {tool}: to the address {place}{thread}."));
        page.add(match directories.is_empty() {
            true => "After it read text of others, it may not send there.".to_owned(),
            false => format!(
                "Text of these directories may go there: {}. After it read any other text of others, it may not send there.",
                directories.join(", ")
            ),
        });
    }
}

/// Warns if the prompt asks for more than a run may do, and proposes the options for it.
fn put_asked(schedule: &Schedule, page: &mut Effects<'_>) {
    let beside =
        Effects::texts(&page.facts[BESIDE]).into_iter().filter_map(|class| class.parse::<Class>().ok()).collect();
    for class in asked::beyond(schedule, beside).iter() {
        let options = match class {
            Class::Send if asked::is_typed(schedule) => {
                "add --send-to DESTINATION --from DIRECTORY, --reply-to CHANNEL:ADDRESS for its answer, or --may send"
            }
            Class::Send => "--may send permits it",
            Class::Write => "add --may write, unless its answer is all that it writes",
            Class::Exec | Class::Read | Class::Trade | Class::Ask => "add --may exec or the name of the tool",
        };
        page.warn(format!(
            "The prompt seems to ask for calls of the class {class}, and a run MAY NOT make them: {options}."
        ));
    }
    let lacking = Effects::texts(&page.facts[LACKING]);
    if !lacking.is_empty() {
        let lacking = page.list(lacking);
        page.warn(format!("The prompt seems to need what the agent DOES NOT HAVE: {lacking}."));
    }
    if asked::may_send(schedule) {
        // Only a flow names directories whose text may leave.
        let flows = match schedule.flows.as_ref().is_some_and(|flows| !flows.is_empty()) {
            true => "by the flows below",
            false => "by a flow, and this schedule has none",
        };
        page.add(format!("Once a run has read text of others, it may send only {flows}."));
    }
}

fn put_list(schedule: &Schedule, page: &mut Effects<'_>) {
    let may = schedule.may.as_deref().unwrap_or_default();
    if may.is_empty() {
        let beside =
            if schedule.flows.as_ref().is_some_and(|flows| !flows.is_empty()) { " beside the flows below" } else { "" };
        return page.add(format!("A run may read and answer. It may call nothing else{beside}."));
    }
    let list = page.list(may.iter().map(String::as_str));
    page.add(format!("A run may read and answer, and WITHOUT A QUESTION it may use: {list}."));
    page.add("It may use nothing else: no person is asked during a run.".to_owned());
    if may.iter().any(|entry| entry != Class::Write.name()) {
        page.warn("Each run can act OUTSIDE of the conversation, and no person sees it before.".to_owned());
    }
}
