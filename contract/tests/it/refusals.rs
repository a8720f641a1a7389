//! `docs/refusals.md` lists every code of a refusal. `IRONCLAW_GOLDEN=write` rewrites it.

use ironclaw_operator::DenialCode;
use std::fmt::Write;
use std::path::Path;

const HEAD: &str = "# Refusals

The host refuses a request with one of these codes. The body of such an answer is `{\"error\": {\"code\", \"message\", \"hint\"}}`:
`message` names the object, and `hint` says what to do. Scripts compare codes; the messages may change. `ironctl --json` prints the
same body to standard error, and has codes of its own for what it finds out without the host.

| code | HTTP | meaning |
|---|---|---|
";

#[test]
fn manual_lists_every_code_of_a_refusal() {
    let mut now = HEAD.to_owned();
    for code in DenialCode::ALL {
        writeln!(now, "| `{code}` | {} | {} |", code.status(), code.meaning()).expect("text grows");
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/refusals.md");
    if std::env::var("IRONCLAW_GOLDEN").is_ok_and(|value| value == "write") {
        std::fs::write(&path, &now).expect("written");
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == now, "docs/refusals.md is out of date; IRONCLAW_GOLDEN=write rewrites it");
}
