//! The golden files in `tests/golden`. `IRONCLAW_GOLDEN=write cargo test -p ironctl` rewrites them.
//!
//! See [`check`].

use snapbox::data::DataFormat;
use snapbox::{Assert, Data, assert::Action};
use std::fs;
use std::path::Path;

/// Compares a text with the golden file of this name.
pub fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let writes = std::env::var("IRONCLAW_GOLDEN").is_ok_and(|value| value == "write");
    if writes {
        fs::create_dir_all(path.parent().expect("a name has a directory")).expect("a directory of golden files");
    }
    let action = if writes { Action::Overwrite } else { Action::Verify };
    Assert::new().action(action).eq(text, Data::read_from(&path, Some(DataFormat::Text)).raw());
}
