//! The packages that have a browser, and those that need one.
//!
//! Their names decide about the jail: a browser gets shared memory and a policy of the host. See [`ironclaw_jail::browser`].

use ironclaw_contract::seam::change::Packages;

/// The packages of apt with a browser.
const BROWSERS: [&str; 3] = ["chromium", "firefox-esr", "firefox"];
/// The package of apt with a browser that reads no policy, so the gateway refuses each of its connections.
const WITHOUT_POLICY: &str = "chromium-headless-shell";
/// The packages of npm and PyPI that start a browser. Their own download of one is a build step, which never runs.
const DRIVERS: [&str; 9] = [
    "@playwright/mcp",
    "@playwright/test",
    "chrome-devtools-mcp",
    "patchright",
    "playwright",
    "playwright-core",
    "puppeteer",
    "puppeteer-core",
    "selenium-webdriver",
];

/// Returns whether packages have a browser.
pub fn has(packages: &Packages) -> bool {
    packages.apt.iter().any(|name| BROWSERS.contains(&bare(name)))
}

/// Returns the browser among the packages that names no server in clear, if there is one.
pub fn unread(packages: &Packages) -> Option<&'static str> {
    packages.apt.iter().any(|name| bare(name) == WITHOUT_POLICY).then_some(WITHOUT_POLICY)
}

/// Returns the packages that start a browser, if none of the packages has one.
pub fn without(packages: &Packages) -> Vec<&str> {
    let all = packages.npm.iter().chain(&packages.pypi).map(|name| bare(name));
    if has(packages) { Vec::new() } else { all.filter(|name| DRIVERS.contains(name)).collect() }
}

/// Returns the name of a package without its version.
fn bare(name: &str) -> &str {
    let end = name.char_indices().skip(1).find(|(_, c)| matches!(c, '@' | '='));
    end.map_or(name, |(end, _)| &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn browser_is_found_by_the_names_of_packages() {
        let packages = |apt: &[&str], npm: &[&str], pypi: &[&str]| {
            let own = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
            Packages { apt: own(apt), npm: own(npm), pypi: own(pypi) }
        };
        for (apt, npm, pypi, is_there, lacking) in [
            (&["chromium"][..], &["@playwright/mcp@0.0.41"][..], &[][..], true, &[][..]),
            (&["chromium=156.0"], &[], &[], true, &[]),
            (&[], &["@playwright/mcp@0.0.41"], &[], false, &["@playwright/mcp"]),
            (&["jq"], &["puppeteer"], &["playwright==1.58"], false, &["puppeteer", "playwright"]),
            (&["chromium-driver"], &["cowsay"], &[], false, &[]),
            (&["chromium-headless-shell"], &["puppeteer"], &[], false, &["puppeteer"]),
        ] {
            let packages = packages(apt, npm, pypi);
            assert_eq!((has(&packages), &without(&packages)[..]), (is_there, lacking), "{packages:?}");
            assert_eq!(unread(&packages).is_some(), apt.iter().any(|name| name.ends_with("shell")), "{packages:?}");
        }
    }
}
