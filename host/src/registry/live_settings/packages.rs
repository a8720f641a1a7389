//! The settings of packages: the clients, their sources, and the limits.
//!
//! Never reads the machine. See [`crate::reach::packages`].

use std::path::{Path, PathBuf};
use std::time::Duration;

/// The programs of the machine that a client's jail sees.
pub const PROGRAMS: &str = "/usr";

ironclaw_operator::settings! {
    /// `[packages]`: the clients, their sources, and the limits.
    pub struct Config for packages {
        /// The client that fetches packages of apt.
        apt: Option<PathBuf> = None, Optional {
            rule: "a path below `/usr`", instead: "`/usr/bin/apt-get`", example: "\"/usr/path/to/apt-get\"",
        }, Live;
        /// The client that fetches packages of npm.
        npm: Option<PathBuf> = None, Optional {
            rule: "a path below `/usr`", instead: "`/usr/bin/npm`", example: "\"/usr/path/to/npm\"",
        }, Live;
        /// The client that fetches packages of PyPI.
        pip: Option<PathBuf> = None, Optional {
            rule: "a path below `/usr`", instead: "`/usr/bin/pip3`", example: "\"/usr/path/to/npm\"",
        }, Live;
        /// The file that apt reads instead of the sources of the machine.
        apt_sources: Option<PathBuf> = None, Optional {
            rule: "an absolute path that ends in `.list` or `.sources`", instead: "the sources of the machine",
            example: "\"/path/to/own.sources\"",
        }, Live;
        /// The registry that npm asks.
        npm_registry: Option<String> = None, Optional {
            rule: "an address with http or https", instead: "the registry of npm",
            example: "\"https://registry.example/npm/\"",
        }, Live;
        /// The index that pip asks.
        pypi_index: Option<String> = None, Optional {
            rule: "an address with http or https", instead: "the index of PyPI",
            example: "\"https://index.example/simple/\"",
        }, Live;
        /// The proxy of the clients; they inherit no variable of the environment.
        proxy: Option<String> = None, Optional {
            rule: "an address with http or https, without a password", instead: "no proxy",
            example: "\"http://proxy.example:3128/\"",
        }, Live;
        // By default names over TCP, and what registries use.
        /// TCP ports that the clients may connect to, beside those of the proxy, the registry and the index.
        ports: Vec<u16> = vec![53, 80, 443], Rule("at most 8 ports, none of them 0"), Live;
        /// The longest time of fetching for one change, all runs of clients together.
        fetch_seconds_max: u64 = 600, Range(1, 86_400, "seconds"), Live;
        /// The most bytes of the packages of one agent or MCP server.
        layer_bytes_max: u64 = 1 << 30, Range(1 << 20, 1 << 40, "bytes"), Live;
        /// The most files, directories and links of the packages of one agent or MCP server.
        layer_files_max: u64 = 200_000, Range(16, 10_000_000, "files"), Live;
    }
}

impl Config {
    /// Checks the rules in words.
    ///
    /// # Errors
    /// Returns a sentence with the name of the setting.
    pub fn check(&self) -> Result<(), String> {
        for (name, client) in [("apt", &self.apt), ("npm", &self.npm), ("pip", &self.pip)] {
            if client.as_ref().is_some_and(|path| !path.starts_with(PROGRAMS) || has_parent(path)) {
                return Err(format!(
                    "packages.{name} must be a path below {PROGRAMS}: its jail sees no other programs"
                ));
            }
        }
        if let Some(sources) = &self.apt_sources {
            let known = sources.extension().is_some_and(|extension| extension == "list" || extension == "sources");
            if !sources.is_absolute() || !known {
                return Err("packages.apt_sources must be an absolute path that ends in .list or .sources".to_owned());
            }
        }
        let addresses =
            [("npm_registry", &self.npm_registry), ("pypi_index", &self.pypi_index), ("proxy", &self.proxy)];
        for (name, address) in addresses {
            if address.as_deref().is_some_and(|address| port_of(address).is_none()) {
                return Err(format!("packages.{name} must be an address such as https://registry.example/"));
            }
        }
        if self.ports.len() > 8 || self.ports.contains(&0) {
            return Err("packages.ports must be at most 8 ports, and none of them 0".to_owned());
        }
        Ok(())
    }

    /// Returns the client for apt.
    pub fn apt(&self) -> &Path {
        self.apt.as_deref().unwrap_or(Path::new("/usr/bin/apt-get"))
    }

    /// Returns the client for npm.
    pub fn npm(&self) -> &Path {
        self.npm.as_deref().unwrap_or(Path::new("/usr/bin/npm"))
    }

    /// Returns the client for pypi.
    pub fn pip(&self) -> &Path {
        self.pip.as_deref().unwrap_or(Path::new("/usr/bin/pip3"))
    }

    /// Returns every port that a client may connect to.
    pub fn all_ports(&self) -> Vec<u16> {
        let named = [&self.npm_registry, &self.pypi_index, &self.proxy]
            .into_iter()
            .flatten()
            .filter_map(|address| port_of(address));
        let mut ports: Vec<u16> = self.ports.iter().copied().chain(named).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
    }

    /// Returns the longest time of all fetching for one change.
    pub fn fetch_time_max(&self) -> Duration {
        Duration::from_secs(self.fetch_seconds_max)
    }
}

fn has_parent(path: &Path) -> bool {
    path.components().any(|part| part == std::path::Component::ParentDir)
}

/// Returns the port of an http or https address without a password.
fn port_of(address: &str) -> Option<u16> {
    let url = url::Url::parse(address).ok()?;
    let plain = matches!(url.scheme(), "http" | "https") && url.username().is_empty() && url.password().is_none();
    (plain && url.has_host()).then(|| url.port_or_known_default()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_setting_is_refused_with_its_name() {
        let path = |path: &str| Some(PathBuf::from(path));
        let text = |text: &str| Some(text.to_owned());
        let default = Config::default;
        for (config, name) in [
            (Config { apt: path("/opt/apt"), ..default() }, "packages.apt"),
            (Config { npm: path("npm"), ..default() }, "packages.npm"),
            (Config { npm: path("/usr/../home/x/npm"), ..default() }, "packages.npm"),
            (Config { apt_sources: path("own.list"), ..default() }, "packages.apt_sources"),
            (Config { apt_sources: path("/etc/passwd"), ..default() }, "packages.apt_sources"),
            (Config { npm_registry: text("registry"), ..default() }, "packages.npm_registry"),
            (Config { npm_registry: text("file:///etc"), ..default() }, "packages.npm_registry"),
            (Config { pip: path("pip"), ..default() }, "packages.pip"),
            (Config { pypi_index: text("simple"), ..default() }, "packages.pypi_index"),
            (Config { proxy: text("http://user:word@proxy/"), ..default() }, "packages.proxy"),
            (Config { ports: vec![0], ..default() }, "packages.ports"),
            (Config { ports: vec![1; 9], ..default() }, "packages.ports"),
        ] {
            let what = config.check().expect_err(name);
            assert!(what.contains(name), "{what}");
        }
        default().check().expect("the defaults");
    }

    #[test]
    fn clients_reach_the_ports_of_registry_proxy_and_settings() {
        let config = Config {
            npm_registry: Some("http://127.0.0.1:4873/npm/".into()),
            pypi_index: Some("http://127.0.0.1:3141/simple/".into()),
            proxy: Some("http://proxy.example:3128".into()),
            ports: vec![443, 80],
            ..Config::default()
        };
        assert_eq!(config.all_ports(), [80, 443, 3128, 3141, 4873]);
    }
}
