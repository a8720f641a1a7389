//! The report of the kernel on a jailed process, as text.
//!
//! Uses only the report that the host reads from `/proc`, never the intended settings. `commands::status` and
//! `commands::quickstart` print it.

use ironclaw_operator::JailReport;

/// Returns the report in one line: `7 own namespaces, seccomp filter, no capabilities, …`.
pub fn summary(jail: &JailReport) -> String {
    rows(jail).into_iter().take(SUMMARY_ROWS).map(|[_, found]| found).collect::<Vec<_>>().join(", ")
}

/// The first rows are the walls; the others describe the inside of the jail.
const SUMMARY_ROWS: usize = 5;

/// Returns the report as rows of name and finding, walls first.
pub fn rows(jail: &JailReport) -> Vec<[String; 2]> {
    let seccomp = match jail.seccomp {
        0 => "NO SECCOMP".to_owned(),
        1 => "seccomp strict".to_owned(),
        _ => format!("seccomp filter ({})", jail.seccomp_filters),
    };
    let landlock =
        if jail.landlock { format!("landlock (ABI {})", jail.landlock_abi) } else { "no landlock".to_owned() };
    let capabilities = if jail.no_capabilities() { "no capabilities".to_owned() } else { held(jail) };
    let privileges = if jail.no_new_privs { "no_new_privs" } else { "NEW PRIVILEGES POSSIBLE" };
    vec![
        row("namespaces", format!("{} own namespaces", jail.own_namespaces.len())),
        row("seccomp", seccomp),
        row("capabilities", capabilities),
        row("privileges", privileges.to_owned()),
        row("landlock", landlock),
        row("own namespaces", list(&jail.own_namespaces)),
        row("interfaces", list(&jail.interfaces)),
        row("user", format!("uid {} gid {}", jail.uid, jail.gid)),
        row("root directory", list(&jail.root)),
    ]
}

fn row(name: &str, found: String) -> [String; 2] {
    [name.to_owned(), found]
}

fn list(names: &[String]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(" ") }
}

/// Formats the capability sets that are not empty, in capitals as a warning.
fn held(jail: &JailReport) -> String {
    let sets: Vec<String> = jail
        .capabilities
        .iter()
        .filter(|(_, set)| set.bytes().any(|byte| byte != b'0'))
        .map(|(name, set)| format!("{name} {set}"))
        .collect();
    if sets.is_empty() {
        return "CAPABILITIES UNKNOWN".to_owned();
    }
    format!("CAPABILITIES: {}", sets.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn missing_wall_is_shown_in_capitals() {
        let jail = JailReport {
            namespaces: BTreeMap::new(),
            own_namespaces: vec!["net".to_owned()],
            seccomp: 0,
            seccomp_filters: 0,
            capabilities: BTreeMap::from([("effective".to_owned(), "0000000000000001".to_owned())]),
            no_new_privs: false,
            landlock: false,
            landlock_abi: 0,
            interfaces: vec![],
            uid: 1,
            gid: 1,
            root: vec![],
            mounts: vec![],
        };
        assert_eq!(
            summary(&jail),
            "1 own namespaces, NO SECCOMP, CAPABILITIES: effective 0000000000000001, \
             NEW PRIVILEGES POSSIBLE, no landlock"
        );
    }
}
