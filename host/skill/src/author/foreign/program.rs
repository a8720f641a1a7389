//! Recognises programs and documents by their first bytes and their names, wherever they are.

use super::tree::File;
use crate::path::DIRECTORY_OF_SCRIPTS;

/// Endings of programs and of the modules that they load.
const CODE: [&str; 29] = [
    "py", "sh", "bash", "zsh", "fish", "js", "mjs", "cjs", "ts", "mts", "cts", "tsx", "jsx", "rb", "pl", "pm", "php",
    "lua", "r", "ps1", "go", "rs", "java", "kts", "swift", "awk", "tcl", "jl", "scpt",
];
/// Endings of texts for readers, whose references are rewritten.
const DOCUMENTS: [&str; 7] = ["md", "mdx", "markdown", "txt", "rst", "mdc", "adoc"];
/// Endings of other files that no system runs.
const DATA: [&str; 20] = [
    "json", "yaml", "yml", "toml", "xml", "xsd", "html", "css", "csv", "png", "jpg", "jpeg", "gif", "svg", "pdf",
    "docx", "xlsx", "pptx", "ttf", "woff2",
];
/// Bytes of the name of an interpreter.
const INTERPRETER_BYTES_MAX: usize = 32;
const ELF: &[u8] = b"\x7fELF";

/// Returns the ending of a path in lower case.
pub(super) fn ending(path: &str) -> String {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or(String::new(), |(_, ending)| ending.to_lowercase())
}

pub(super) fn is_document(path: &str) -> bool {
    DOCUMENTS.contains(&ending(path).as_str())
}

/// Returns whether a system can run the file by its name.
pub(super) fn runs_alone(path: &str, file: &File) -> bool {
    let is_data = is_document(path) || DATA.contains(&ending(path).as_str());
    file.bytes.starts_with(b"#!") && !is_document(path) || file.bytes.starts_with(ELF) || file.may_run && !is_data
}

/// Returns whether the file is a program or a module of one.
pub(super) fn is_code(path: &str, file: &File) -> bool {
    CODE.contains(&ending(path).as_str()) || runs_alone(path, file)
}

/// Returns whether an agent may run the file: it is code, or in the directory of programs and no other known file.
pub(super) fn is_program(path: &str, file: &File) -> bool {
    let is_other = is_document(path) || DATA.contains(&ending(path).as_str());
    is_code(path, file) || path.starts_with(DIRECTORY_OF_SCRIPTS) && !is_other
}

/// Returns the program that runs a file, if its first line or its ending names one.
pub(super) fn interpreter(path: &str, file: &File) -> Option<String> {
    if file.bytes.starts_with(b"#!") {
        let first = file.bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let words = String::from_utf8_lossy(&first[2..]).into_owned();
        let mut words = words.split_whitespace().map(|word| word.rsplit('/').next().unwrap_or(word));
        let word = words.find(|word| *word != "env" && !word.starts_with('-'))?;
        let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '+' | '.');
        return (word.len() <= INTERPRETER_BYTES_MAX && word.chars().all(is_plain)).then(|| word.to_owned());
    }
    let name = match ending(path).as_str() {
        "py" => "python3",
        "sh" => "sh",
        "bash" => "bash",
        "js" | "mjs" | "cjs" => "node",
        "rb" => "ruby",
        "pl" => "perl",
        "php" => "php",
        "lua" => "lua",
        "r" => "Rscript",
        _ => return None,
    };
    Some(name.to_owned())
}
