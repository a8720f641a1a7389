//! The sentences of a schedule on the review page.

use super::super::kind::Page;
use super::series;
use crate::gateway::review_page::effects::Effects;
use ironclaw_contract::seam::change::{CatchUp, Schedule, WrittenBy};
use ironclaw_judge::Class;

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
        put_list(self, page);
        if self.written_by == Some(WrittenBy::Model) {
            page.warn("A MODEL wrote the prompt. It may contain words of strangers.".to_owned());
        }
    }
}

/// Writes the first times, counted from the time of the request.
fn put_times(schedule: &Schedule, page: &mut Effects<'_>) {
    let Some(series) = series(schedule) else { return };
    let first = series.due_between(series.anchor, i64::MAX, TIMES);
    let times: Vec<String> = first.iter().map(|due| series.zone.local(*due)).collect();
    page.add(format!("First times, in the zone {}: {}.", series.zone.name(), times.join(", ")));
}

fn put_list(schedule: &Schedule, page: &mut Effects<'_>) {
    let may = schedule.may.as_deref().unwrap_or_default();
    if may.is_empty() {
        return page.add("A run may read and answer. It may call nothing else.".to_owned());
    }
    let list = page.list(may.iter().map(String::as_str));
    page.add(format!("A run may read and answer, and WITHOUT A QUESTION it may use: {list}."));
    page.add("It may use nothing else: no person is asked during a run.".to_owned());
    if may.iter().any(|entry| entry != Class::Write.name()) {
        page.warn("Each run can act OUTSIDE of the conversation, and no person sees it before.".to_owned());
    }
}
