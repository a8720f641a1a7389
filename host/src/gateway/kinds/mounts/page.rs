//! The lines on the review page about directories in a jail.

use super::super::Page;
use crate::gateway::review_page::effects::Effects;
use ironclaw_contract::seam::change::Mount;

impl Page for Vec<Mount> {
    fn effects(&self, agent: &str, page: &mut Effects<'_>) {
        if self.is_empty() {
            return page.say(format!("{agent} would have no directory of this machine in its jail."));
        }
        let many = match self.len() {
            1 => "1 directory of this machine in its jail, and no other".to_owned(),
            many => format!("{many} directories of this machine in its jail, and no others"),
        };
        page.say(format!("{agent} would have {many}:"));
        for Mount { source, target, read_only } in self {
            let source = page.show(source);
            let target = match target {
                Some(target) => format!("at {}", page.show(target)),
                None => "at a place named like it".to_owned(),
            };
            match read_only {
                Some(true) => page.say(format!("It could READ everything in {source}, {target}.")),
                Some(false) => page.warn(format!(
                    "It could WRITE to {source}, {target}: change and delete everything there, and read it."
                )),
                None => page.say(format!(
                    "It could READ everything in {source}, {target}; nothing is said about writing, and then it cannot."
                )),
            }
        }
    }
}
