//! The lines on the review page about directories in a jail.

use super::super::Page;
use crate::gateway::review_page::effects::Effects;
use ironclaw_contract::seam::change::Mount;

impl Page for Vec<Mount> {
    fn effects(&self, agent: &str, page: &mut Effects<'_>) {
        if self.is_empty() {
            return page.add(format!("Remove the access of {agent} to all directories of this machine."));
        }
        let writable = self.iter().filter(|mount| mount.read_only == Some(false)).count();
        let directories = if self.len() == 1 { "directory" } else { "directories" };
        let access = if writable == 0 { "read only".to_owned() } else { format!("{writable} writable") };
        page.add(format!("Give {agent} access to {} {directories} of this machine ({access}).", self.len()));
        page.add("This is the complete list. Access to any other directory ends.".to_owned());
        for Mount { source, target, read_only } in self {
            let source = page.show(source);
            let target = match target {
                Some(target) => page.show(target),
                None => "the last part of its path".to_owned(),
            };
            let unset = if read_only.is_none() { " (writing was not requested)" } else { "" };
            match read_only {
                Some(false) => {
                    page.add(format!("READ and WRITE {source}; the agent sees it at {target}."));
                    page.warn(format!(
                        "The agent can WRITE to {source}: it can change, delete and read everything in that directory."
                    ));
                }
                Some(true) | None => {
                    page.add(format!("READ everything in {source}; the agent sees it at {target}{unset}."));
                }
            }
        }
    }
}
