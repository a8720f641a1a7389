//! The arguments of a `schedule_task` call: a prompt with one instant, a recurrence, or a recurrence from an instant on.
//!
//! Never books a run and never computes the next one. See `gateway::kinds` for the change that they become.

use super::action::{check_bound, shaped};
use crate::registry::tools::SCHEDULE_TASK;
use ironclaw_calendar::{Kind, Recurrence, Zone};
use ironclaw_contract::seam::change::{Change, Schedule};
use ironclaw_contract::seam::limits::{ARGUMENTS_BYTES_MAX, ENTRIES_MAX, NAME_BYTES_MAX};
use serde::Deserialize;
use serde_json::{Map, Value};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScheduleTask {
    prompt: String,
    run_at: Option<String>,
    recurrence: Option<String>,
    zone: Option<String>,
    #[serde(default)]
    may: Vec<String>,
}

/// Reads the change that a call asks for. Its times have a form that the host reads.
///
/// # Errors
/// A sentence for the model that names the field and the accepted forms.
pub(super) fn read(arguments: Map<String, Value>) -> Result<Change, String> {
    let task: ScheduleTask = shaped(arguments)?;
    check_bounds(&task)?;
    let ScheduleTask { prompt, run_at, recurrence, zone, may } = task;
    let read_zone = zone.as_deref().map_or(Ok(Zone::utc()), Zone::parse).map_err(|error| error.to_string())?;
    if let Some(run_at) = &run_at {
        // The check of the change refuses a time in the past.
        Recurrence::at(run_at, &read_zone, i64::MIN).map_err(|error| format!("run_at: {error}"))?;
    }
    let schedule = Schedule { prompt: Some(prompt), zone, may: Some(may), ..Schedule::default() };
    let Some(recurrence) = recurrence else {
        let at = Some(run_at.ok_or("schedule_task needs run_at or recurrence")?);
        return Ok(Change::Schedule(Schedule { at, ..schedule }));
    };
    let kind = Recurrence::repeated(&recurrence).map_err(|error| format!("recurrence: {error}"))?.kind();
    let text = Some(run_at.map_or_else(|| recurrence.clone(), |run_at| format!("{recurrence} from {run_at}")));
    Ok(Change::Schedule(match kind {
        Kind::Cron => Schedule { cron: text, ..schedule },
        Kind::Every => Schedule { every: text, ..schedule },
        Kind::At => Schedule { at: text, ..schedule },
    }))
}

fn check_bounds(task: &ScheduleTask) -> Result<(), String> {
    let within = |field, length, min, max| check_bound(SCHEDULE_TASK, field, length, min, max);
    within("prompt", task.prompt.len(), 1, ARGUMENTS_BYTES_MAX)?;
    for (field, text) in [("run_at", &task.run_at), ("recurrence", &task.recurrence), ("zone", &task.zone)] {
        within(field, text.as_ref().map_or(1, String::len), 1, NAME_BYTES_MAX)?;
    }
    within("may", task.may.len(), 0, ENTRIES_MAX)?;
    task.may.iter().try_for_each(|entry| within("may", entry.len(), 1, NAME_BYTES_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read_times(run_at: Option<&str>, recurrence: Option<&str>) -> Result<Value, String> {
        let arguments = json!({ "prompt": "p", "run_at": run_at, "recurrence": recurrence });
        let Value::Object(arguments) = arguments else { unreachable!("it is an object") };
        Ok(read(arguments)?.payload().value().clone())
    }

    #[test]
    fn unreadable_schedule_is_refused() {
        for recurrence in ["banana", "", "every day", "0 8 * *", "60 8 * * *", "*/0 * * * *", "30s", "0 8 31 2 *"] {
            let refused = read_times(None, Some(recurrence)).expect_err(recurrence);
            assert!(refused.contains("recurrence"), "{refused}");
        }
        for run_at in ["tomorrow", "2026-11-22", "2026-13-22T08:00:00Z", "1795000000"] {
            assert!(read_times(Some(run_at), None).expect_err(run_at).contains("run_at"), "{run_at}");
        }
        assert!(read_times(None, None).is_err());
        for (run_at, recurrence, field) in [
            ("tomorrow", "daily", "run_at"),
            ("2030-01-01T00:00:00Z", "every day", "recurrence"),
            ("2030-01-01T00:00:00Z", "1d from 2030-01-01T00:00:00Z", "recurrence"),
        ] {
            assert!(
                read_times(Some(run_at), Some(recurrence)).expect_err(run_at).contains(field),
                "{run_at} {recurrence}"
            );
        }
        let long = read_times(None, Some(&"x".repeat(10_000))).expect_err("no recurrence");
        assert!(long.len() < 400, "{}", long.len());
        let Value::Object(zone) = json!({ "prompt": "p", "recurrence": "daily", "zone": "Mars" }) else {
            unreachable!()
        };
        assert!(read(zone).expect_err("a zone").contains("zone"));
    }

    #[test]
    fn task_becomes_a_change_of_the_same_times() {
        let first = "2030-01-01T00:00:00Z";
        for (recurrence, field) in [("daily", "every"), ("15m", "every"), ("0 8 * * mon-fri", "cron")] {
            assert_eq!(read_times(None, Some(recurrence)).expect("readable")[field], recurrence);
            let payload = read_times(Some(first), Some(recurrence)).expect("readable");
            assert_eq!((&payload[field], &payload["at"]), (&json!(format!("{recurrence} from {first}")), &Value::Null));
        }
        assert_eq!(read_times(Some(first), None).expect("readable")["at"], first);
    }
}
