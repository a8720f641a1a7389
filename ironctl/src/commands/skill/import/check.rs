//! `ironctl skill import --check`: counts, and writes no package.

use super::shown;
use super::taken::{Scratch, Taken};
use super::wanted::Wanted;
use crate::at::At;
use crate::failure::Error;
use serde_json::{Value, json};

/// The counts of all skills.
#[derive(Default)]
struct Counts {
    imported: usize,
    refused: usize,
    moved: usize,
    remarks: usize,
    edits: usize,
    dead: usize,
    absent: usize,
}

pub(super) fn run(at: &At, wanted: &[Wanted<'_>], scratch: &mut Scratch) -> Result<(), Error> {
    let mut counts = Counts::default();
    let mut skills: Vec<Value> = Vec::new();
    for wanted in wanted {
        let taken = Taken::new(wanted, scratch).and_then(|taken| taken.refuse_errors().map(|()| taken));
        match taken {
            Ok(taken) => {
                counts.add(&taken);
                show(at, wanted, &taken)?;
                let mut value = shown::as_json(&taken, None);
                value["directory"] = json!(wanted.object);
                skills.push(value);
            }
            Err(error) => {
                counts.refused += 1;
                let reason = error.reason();
                at.out.line(format!("refused: {}: {reason}", wanted.object.display()))?;
                skills.push(json!({ "directory": wanted.object, "refused": reason }));
            }
        }
    }
    let Counts { imported, refused, moved, remarks, edits, dead, absent } = counts;
    at.out.json(&json!({
        "imported": imported,
        "refused": refused,
        "moved": moved,
        "remarks": remarks,
        "edits": edits,
        "dead": dead,
        "absent": absent,
        "skills": skills,
    }))?;
    at.out.line(format!(
        "imported: {imported}, refused: {refused}, moved: {moved}, changes: {remarks}, rewritten lines: {edits}, \
         dead paths: {dead}, paths that are not in the skill: {absent}"
    ))?;
    match refused + dead {
        0 => Ok(()),
        _ => {
            let message = format!("{refused} skills would be refused, and {dead} paths would be dead");
            Err(Error::failed("skill_import", message).hinting("the reason is beside each of them"))
        }
    }
}

impl Counts {
    fn add(&mut self, taken: &Taken) {
        self.imported += 1;
        self.moved += taken.imported.moved.len();
        self.remarks += taken.imported.remarks.len();
        self.edits += taken.imported.edits.len();
        self.dead += taken.imported.dead.len();
        self.absent += taken.imported.absent.len();
    }
}

fn show(at: &At, wanted: &Wanted<'_>, taken: &Taken) -> Result<(), Error> {
    let imported = &taken.imported;
    let (moved, changes) = (imported.moved.len(), imported.remarks.len());
    at.out.line(format!(
        "{} {}: moved: {moved}, changes: {changes}, dead paths: {} ({})",
        imported.name,
        imported.version,
        imported.dead.len(),
        wanted.object.display()
    ))?;
    for lost in &imported.dead {
        at.out.line(format!("  dead path: {}:{}: {}", lost.file, lost.line, lost.target))?;
    }
    Ok(())
}
