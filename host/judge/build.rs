//! Makes the tables of the lexicon from `data/lexicon.toml`, so that a host reads no text when it starts.
//!
//! Never decides what a word means. See `src/scope/lexicon/source.rs`.

#[path = "src/scope/lexicon/names.rs"]
mod names;
// The build only makes what the program searches.
#[allow(dead_code)]
#[path = "src/scope/lexicon/needed.rs"]
mod needed;
#[path = "src/scope/lexicon/required.rs"]
mod required;
#[path = "src/scope/lexicon/source.rs"]
mod source;

use std::error::Error;
use std::path::Path;

const LEXICON: &str = "data/lexicon.toml";

fn main() -> Result<(), Box<dyn Error>> {
    for path in [LEXICON, "src/scope/lexicon"] {
        println!("cargo::rerun-if-changed={path}");
    }
    let source = source::Source::parse(&std::fs::read_to_string(LEXICON)?)?;
    let tables = Path::new(&std::env::var("OUT_DIR")?).join("lexicon_tables.rs");
    Ok(std::fs::write(tables, source.to_rust())?)
}
