//! The host is killed after each step of an installation, an upgrade and a removal of a skill, and continues.

use super::{POINTS, SkillFixture, TEXT, WITH_COMMANDS};
use crate::support::host_fixture::{Build, wait_for};

/// The steps of an approved change.
const OF_A_CHANGE: [&str; 3] = ["approved", "change_prepared", "change_applied"];

/// Runs a command whose host dies at a fail point, starts the host again, and repeats the command until it is done.
fn kill_at(fixture: &mut SkillFixture, point: &str, command: &[&str], is_done: impl Fn(&SkillFixture) -> bool) {
    fixture.host.kill_host();
    fixture.host.up_failing_at(point);
    // The host dies during the command.
    let _ = fixture.host.ctl(command);
    wait_for("the end of the host", || fixture.host.pid().is_none());
    fixture.host.up();
    wait_for(point, || {
        is_done(fixture) || {
            fixture.host.ctl(command);
            is_done(fixture)
        }
    });
}

fn has(fixture: &SkillFixture, name: &str, version: &str) -> bool {
    fixture.skills().iter().any(|skill| skill["name"] == name && skill["version"] == version)
}
fn entries(fixture: &SkillFixture, what: &str, name: &str) -> usize {
    fixture.host.entries(what).iter().filter(|entry| entry["data"]["skill"] == name).count()
}

#[test]
fn killed_at_each_step_of_a_skill_it_continues() {
    let mut fixture = SkillFixture::new(Build::Failpoints);
    let points: Vec<&str> = POINTS.into_iter().chain(OF_A_CHANGE).collect();
    let name_of = |point: &str| point.replace('_', "-");
    for point in &points {
        let name = &name_of(point);
        fixture.publish(name, "1.0.0", WITH_COMMANDS, TEXT);
        let add = ["--json", "skill", "add", name, "--agent", "a", "--yes"];
        kill_at(&mut fixture, point, &add, |fixture| has(fixture, name, "1.0.0"));
        assert_eq!(entries(&fixture, "skill.installed", name), 1, "{point}");
    }
    for point in points {
        assert!(fixture.host.say("a", &format!("use skill {}", name_of(point))).contains("heron"), "{point}");
    }
    fixture.host.ctl(&["audit", "verify"]).ok();
}

#[test]
fn killed_at_each_step_of_upgrade_and_removal_it_continues() {
    let mut fixture = SkillFixture::new(Build::Failpoints);
    let upgrade = ["--json", "skill", "upgrade", "weather", "--agent", "a", "--yes"];
    let remove = ["--json", "skill", "remove", "weather", "--agent", "a", "--yes"];
    fixture.publish("weather", "1.0.0", WITH_COMMANDS, TEXT);
    for (at, point) in OF_A_CHANGE.into_iter().enumerate() {
        fixture.add("weather@1.0.0").ok();
        let newer = format!("1.{}.0", at + 1);
        fixture.publish("weather", &newer, "[grants]\ntools = [\"http_fetch\"]\n", "The word is crane.");
        kill_at(&mut fixture, point, &upgrade, |fixture| has(fixture, "weather", &newer));
        let tools = |fixture: &SkillFixture| (fixture.has_tool("run_command"), fixture.has_tool("http_fetch"));
        assert_eq!(tools(&fixture), (false, true), "{point}: the grants of the new version alone");
        if at == 0 {
            assert!(fixture.host.say("a", "use skill weather").contains("crane"), "{point}");
        }
        kill_at(&mut fixture, point, &remove, |fixture| fixture.skills().is_empty());
        assert_eq!(tools(&fixture), (false, false), "{point}");
        let done = (entries(&fixture, "skill.installed", "weather"), entries(&fixture, "skill.removed", "weather"));
        assert_eq!(done, (2 * (at + 1), at + 1), "{point}");
    }
    fixture.host.ctl(&["audit", "verify"]).ok();
}
