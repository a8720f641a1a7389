//! The words about a skill that was taken over, for people and for scripts.

use super::taken::{Script, Taken, Written};
use crate::at::At;
use crate::commands::skill::{pack, verify};
use crate::failure::Error;
use ironclaw_skill::author::foreign::{Edit, Lost, Moved, Remark};
use serde_json::{Value, json};

/// Lines of a script that are shown.
const SCRIPT_LINES_MAX: usize = 200;

/// Prints everything that a person who vouches for the skill has to read.
pub(super) fn show(at: &At, taken: &Taken) -> Result<(), Error> {
    let imported = &taken.imported;
    at.out.line(format!("{} {}", imported.name, imported.version))?;
    for Moved { from, to } in &imported.moved {
        at.out.line(format!("moved: {from} to {to}"))?;
    }
    for path in &imported.left_out {
        at.out.line(format!("left out: {path}"))?;
    }
    for remark in &imported.remarks {
        at.out.line(format!("changed: {remark}"))?;
    }
    for Edit { file, line, before, after } in &imported.edits {
        at.out.line(format!("path: {file}:{line}"))?;
        if let Some(before) = before {
            at.out.line(format!("  - {before}"))?;
        }
        at.out.line(format!("  + {after}"))?;
    }
    for Lost { file, line, target } in &imported.dead {
        at.out.line(format!("dead path: {file}:{line}: {target}: correct it by hand"))?;
    }
    for Lost { file, line, target } in &imported.absent {
        at.out.line(format!("not in the skill: {file}:{line}: {target}"))?;
    }
    taken.scripts.iter().try_for_each(|script| show_script(at, script))?;
    for found in &taken.references {
        at.out.line(format!("reference to the outside: {}:{}: {}", found.file, found.line, found.target))?;
    }
    taken.findings.iter().try_for_each(|finding| at.out.remark(finding.to_string()))
}

fn show_script(at: &At, Script { file, text }: &Script) -> Result<(), Error> {
    at.out.line(format!("script: {file}"))?;
    let Some(text) = text else {
        return at.out.line("  | (no text)");
    };
    for line in text.lines().take(SCRIPT_LINES_MAX) {
        at.out.line(format!("  | {line}"))?;
    }
    match text.lines().count().saturating_sub(SCRIPT_LINES_MAX) {
        0 => Ok(()),
        more => at.out.line(format!("  ({more} more lines)")),
    }
}

pub(super) fn show_written(at: &At, written: &Written) -> Result<(), Error> {
    at.out.line(verify::grants(&written.package))?;
    at.out.line(format!("packed and signed by key {}: {}", written.signer, written.file.display()))
}

/// Returns everything about a skill for a script.
pub(super) fn as_json(taken: &Taken, written: Option<&Written>) -> Value {
    let imported = &taken.imported;
    let lost = |lost: &[Lost]| -> Value {
        let list =
            lost.iter().map(|Lost { file, line, target }| json!({ "file": file, "line": line, "target": target }));
        list.collect()
    };
    let remarks = imported.remarks.iter();
    let remarks = remarks.map(|Remark { file, line, what }| json!({ "file": file, "line": line, "what": what }));
    let edits = imported.edits.iter().map(
        |Edit { file, line, before, after }| json!({ "file": file, "line": line, "before": before, "after": after }),
    );
    let references = taken.references.iter();
    let references = references.map(|one| json!({ "file": one.file, "line": one.line, "target": one.target }));
    let mut value = json!({
        "name": imported.name,
        "version": imported.version,
        "scripts": taken.scripts.iter().map(|one| json!({ "file": one.file, "text": one.text })).collect::<Vec<_>>(),
        "references": references.collect::<Vec<_>>(),
        "moved": imported.moved.iter().map(|moved| [&moved.from, &moved.to]).collect::<Vec<_>>(),
        "left_out": imported.left_out,
        "remarks": remarks.collect::<Vec<_>>(),
        "edits": edits.collect::<Vec<_>>(),
        "dead": lost(&imported.dead),
        "absent": lost(&imported.absent),
        "findings": taken.findings.iter().map(pack::as_json).collect::<Vec<_>>(),
    });
    if let Some(written) = written {
        value["file"] = json!(written.file);
        value["signature"] = json!(written.signature);
        value["signer"] = json!(written.signer);
        value["grants"] = json!(written.package.manifest.grants);
    }
    value
}
