//! The times of a `schedule_task` call: one instant, a recurrence, or a recurrence from an instant on.
//!
//! Never books a run and never computes the next one. See `turns::calls::judge`, and `gateway::kinds` for the change that it becomes.

use ironclaw_calendar::{Kind, Recurrence, Zone};
use ironclaw_contract::seam::action::ScheduleTask;
use ironclaw_contract::seam::change::{Change, Schedule};

/// Checks that a task has a time in a form that the host reads.
///
/// # Errors
/// A sentence for the model that names the field and the accepted forms.
pub(super) fn check(task: &ScheduleTask) -> Result<(), String> {
    let zone = task.zone.as_deref().map_or(Ok(Zone::utc()), Zone::parse).map_err(|error| error.to_string())?;
    if task.run_at.is_none() && task.recurrence.is_none() {
        return Err("schedule_task needs run_at or recurrence".to_owned());
    }
    if let Some(run_at) = &task.run_at {
        // The check of the change refuses a time in the past.
        Recurrence::at(run_at, &zone, i64::MIN).map_err(|error| format!("run_at: {error}"))?;
    }
    if let Some(recurrence) = &task.recurrence {
        Recurrence::repeated(recurrence).map_err(|error| format!("recurrence: {error}"))?;
    }
    Ok(())
}

/// Returns the change that a task asks for.
pub fn scheduled(task: &ScheduleTask) -> Change {
    let ScheduleTask { prompt, run_at, recurrence, zone, may } = task.clone();
    let kind = recurrence.as_deref().and_then(|text| Recurrence::repeated(text).ok()).map(|found| found.kind());
    let (text, at) = match (recurrence, run_at) {
        (Some(recurrence), Some(run_at)) => (Some(format!("{recurrence} from {run_at}")), None),
        (recurrence, run_at) => (recurrence, run_at),
    };
    let of_kind = |wanted: Kind| text.clone().filter(|_| kind == Some(wanted));
    Change::Schedule(Schedule {
        prompt: Some(prompt),
        cron: of_kind(Kind::Cron),
        every: of_kind(Kind::Every),
        at,
        zone,
        may: Some(may),
        ..Schedule::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    fn checked(run_at: Option<&str>, recurrence: Option<&str>) -> Result<(), String> {
        let text = |text: Option<&str>| text.map(str::to_owned);
        let task = ScheduleTask {
            prompt: "p".into(),
            run_at: text(run_at),
            recurrence: text(recurrence),
            ..ScheduleTask::default()
        };
        check(&task)
    }

    #[test]
    fn unreadable_schedule_is_refused() {
        for recurrence in ["banana", "", "every day", "0 8 * *", "60 8 * * *", "*/0 * * * *", "30s", "0 8 31 2 *"] {
            let refused = checked(None, Some(recurrence)).expect_err(recurrence);
            assert!(refused.contains("recurrence"), "{refused}");
        }
        for run_at in ["tomorrow", "2026-11-22", "2026-13-22T08:00:00Z", "1795000000"] {
            assert!(checked(Some(run_at), None).expect_err(run_at).contains("run_at"), "{run_at}");
        }
        assert!(checked(None, None).is_err());
        for (run_at, recurrence, field) in [
            ("tomorrow", "daily", "run_at"),
            ("2030-01-01T00:00:00Z", "every day", "recurrence"),
            ("2030-01-01T00:00:00Z", "1d from 2030-01-01T00:00:00Z", "recurrence"),
        ] {
            assert!(
                checked(Some(run_at), Some(recurrence)).expect_err(run_at).contains(field),
                "{run_at} {recurrence}"
            );
        }
        let long = checked(None, Some(&"x".repeat(10_000))).expect_err("no recurrence");
        assert!(long.len() < 400, "{}", long.len());
        let zone = ScheduleTask {
            prompt: "p".into(),
            recurrence: Some("daily".into()),
            zone: Some("Mars".into()),
            ..ScheduleTask::default()
        };
        assert!(check(&zone).expect_err("a zone").contains("zone"));
    }

    #[test]
    fn task_becomes_a_change_of_the_same_times() {
        for (recurrence, field) in [("daily", "every"), ("15m", "every"), ("0 8 * * mon-fri", "cron")] {
            let task =
                ScheduleTask { prompt: "p".into(), recurrence: Some(recurrence.into()), ..ScheduleTask::default() };
            check(&task).expect("readable");
            assert_eq!(scheduled(&task).payload().value()[field], recurrence);
            let first = "2030-01-01T00:00:00Z";
            let both = ScheduleTask { run_at: Some(first.into()), ..task };
            check(&both).expect("readable");
            let payload = scheduled(&both).payload().value().clone();
            assert_eq!((&payload[field], &payload["at"]), (&format!("{recurrence} from {first}").into(), &Value::Null));
        }
        assert_eq!(checked(Some("2030-01-01T00:00:00Z"), None), Ok(()));
    }
}
