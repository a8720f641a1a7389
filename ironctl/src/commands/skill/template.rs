//! `ironctl skill new`.

use crate::at::At;
use crate::failure::Error;
use ironclaw_skill::Name;
use serde_json::json;
use std::fs;
use std::path::PathBuf;

/// Writes the directory of a new skill.
pub fn run(at: &At, name: &str, dir: Option<PathBuf>) -> Result<(), Error> {
    let name: Name =
        name.parse().map_err(|what: &str| Error::usage(format!("the name {name:?} is not valid"), what))?;
    let directory = dir.unwrap_or_default().join(name.as_ref());
    let failed = |cause| Error::failed("skill_file", format!("cannot make {}", directory.display())).because(cause);
    fs::create_dir(&directory).map_err(|cause| failed(cause).hinting("choose another name, or --dir DIR"))?;
    for (file, text) in [
        (ironclaw_skill::MANIFEST, format!("name = \"{name}\"\nversion = \"0.1.0\"\n")),
        (ironclaw_skill::INSTRUCTIONS, instructions(&name)),
    ] {
        fs::write(directory.join(file), text).map_err(failed)?;
    }
    at.out.json(&json!({ "name": name, "directory": directory }))?;
    at.out.line(format!("made {}", directory.display()))?;
    at.out.remark(format!("write SKILL.md, then check it with `ironctl skill lint {}`", directory.display()))
}

fn instructions(name: &Name) -> String {
    format!(
        "---\nname: {name}\ndescription: Replace this with one sentence about what the skill does and when it is useful.\n---\n\
         # {name}\n\n1. Write the steps for the agent.\n\n\
         Put programs into scripts/, long texts into references/ and templates into assets/.\n"
    )
}
