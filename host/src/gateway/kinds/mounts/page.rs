//! The lines on the review page about directories in a jail.

use super::super::kind::Page;
use super::own_directory;
use crate::gateway::review_page::effects::Effects;
use ironclaw_contract::seam::change::Mount;
use serde_json::Value;

impl Page for Vec<Mount> {
    fn effects(&self, agent: &str, page: &mut Effects<'_>) {
        let before = page.before.as_array().map_or(&[][..], Vec::as_slice);
        let had: Vec<&str> = before.iter().filter_map(|mount| mount["source"].as_str()).collect();
        if self.is_empty() {
            return page
                .add(format!("Remove the access of {agent} to all directories of this machine: {}.", page.list(had)));
        }
        let writable = self.iter().filter(|mount| mount.read_only == Some(false)).count();
        let directories = if self.len() == 1 { "directory" } else { "directories" };
        let access = match writable {
            0 => "read only".to_owned(),
            all if all == self.len() => "read and write".to_owned(),
            some => format!("{some} of them read and write"),
        };
        page.add(format!("Give {agent} access to {} {directories} of this machine ({access}).", self.len()));
        let lost: Vec<&str> =
            had.iter().copied().filter(|was| !self.iter().any(|mount| mount.source == *was)).collect();
        match (had.is_empty(), lost.is_empty()) {
            (true, _) => page.add("The agent has no directory of this machine now.".to_owned()),
            (false, true) => page.add("It keeps all directories that it has now.".to_owned()),
            (false, false) => page.add(format!("Its access to these directories ENDS: {}.", page.list(lost))),
        }
        for mount in self {
            put_mount(page, mount, now(before, &mount.source));
        }
        own_directory::put_ended(page);
        own_directory::put_known_since(page);
        if writable > 0 {
            page.add(
                "With a directory that it may write, its calls of write_file and run_command need a request that asks for `write`, or for \
                 their own class. Otherwise they wait for a person."
                    .to_owned(),
            );
        }
    }
}

/// Returns the present access to a source, for the end of a sentence.
fn now(before: &[Value], source: &str) -> &'static str {
    let is_read_only =
        before.iter().find(|mount| mount["source"].as_str() == Some(source)).map(|mount| &mount["read_only"]);
    match is_read_only.map(|is_read_only| is_read_only.as_bool()) {
        None => "",
        Some(Some(false)) => " (now: read and write)",
        Some(Some(true) | None) => " (now: read)",
    }
}

fn put_mount(page: &mut Effects<'_>, Mount { source, target, read_only, mine }: &Mount, now: &str) {
    let source = page.show(source);
    let target = match target {
        Some(target) => page.show(target),
        None => "the last part of its path".to_owned(),
    };
    let unset = if read_only.is_none() { " (writing was not requested)" } else { "" };
    match read_only {
        Some(false) => {
            page.add(format!("READ and WRITE {source}{now}; the agent sees it at {target}."));
            page.warn(format!(
                "The agent can WRITE to {source}: it can change and delete everything in that directory and its subdirectories."
            ));
        }
        Some(true) | None => {
            page.add(format!("READ everything in {source}{now}; the agent sees it at {target}{unset}."));
        }
    }
    page.warn(format!(
        "The agent can READ everything in {source} and its subdirectories; what it reads can reach its model and the people who talk to it."
    ));
    if *mine == Some(true) {
        page.add(format!(
            "Text in {source} counts as text of the person who asks for this, and not as text of others."
        ));
        page.warn(format!(
            "If another person or program can put a file into {source}, such as a download, a saved mail or a shared folder, its text can STEER \
             the agent without a question."
        ));
    }
}
