//! Lets Python find the modules of a skill: `sys.path` in blocks of code, `PYTHONPATH` in commands.

use super::line::{Fence, Language};
use crate::author::foreign::reference::Layout;

/// Returns the directory of a module of the skill that a line imports, once for each block.
pub(super) fn path_of_import(line: &str, fence: &mut Fence, layout: &Layout) -> Option<String> {
    if !matches!(fence.language, Language::Python | Language::None) {
        return None;
    }
    if let Some(path) = line.split("sys.path.insert(0, \"").nth(1).and_then(|rest| rest.split('"').next()) {
        fence.paths.push(path.to_owned());
    }
    let module = imported(line.trim_start())?;
    let path = directory(module, layout)?;
    if fence.paths.contains(&path) {
        return None;
    }
    fence.paths.push(path.clone());
    Some(path)
}

/// Returns the module that a statement imports.
fn imported(statement: &str) -> Option<&str> {
    let rest = statement.strip_prefix("from ").or_else(|| statement.strip_prefix("import "))?;
    let end = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.'))).unwrap_or(rest.len());
    Some(&rest[..end]).filter(|module| !module.is_empty() && !module.starts_with('.'))
}

/// Returns the directory, as an agent sees it, in which Python finds a module of the skill.
fn directory(module: &str, layout: &Layout) -> Option<String> {
    let first = module.split('.').next().unwrap_or(module);
    let path = module.replace('.', "/");
    let tried = [format!("{path}.py"), path, format!("{first}.py"), first.to_owned()];
    let named = tried.iter().find_map(|tried| layout.find("", tried).filter(|named| !named.differs))?;
    let new = layout.new_path(&named);
    let root = new.strip_suffix(named.path.as_str())?.trim_end_matches('/');
    Some(layout.shown(root))
}

/// Returns a command that runs modules of the skill (`-m`, `-c`) with the directory of these modules; `None` for any other line.
pub(super) fn with_path(line: &str, layout: &Layout) -> Option<String> {
    if line.contains("PYTHONPATH=") {
        return None;
    }
    let (at, name) = ["python3 ", "python "].iter().find_map(|name| Some((line.find(name)?, name)))?;
    let arguments = line[at + name.len()..].trim_start();
    let module = if let Some(rest) = arguments.strip_prefix("-m ") {
        rest.trim_start().split(|c: char| c.is_whitespace() || c == '`').next()
    } else if let Some(rest) = arguments.strip_prefix("-c ") {
        imported(rest.trim_start_matches(['"', '\'', ' ']))
    } else {
        None
    }?;
    let path = directory(module, layout)?;
    Some(format!("{}PYTHONPATH={path} {}", &line[..at], &line[at..]))
}
