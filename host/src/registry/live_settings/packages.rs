//! The settings of packages: the clients, their sources, and the limits.
//!
//! Never reads the machine. See [`crate::reach::packages`].

use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The programs of the machine that a client's jail sees.
pub const PROGRAMS: &str = "/usr";

/// `[packages]`: the clients, their sources, and the limits. Read by `config`, checked by [`Config::check`].
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// The client for `apt`, a path below `/usr`; `None`: `/usr/bin/apt-get`.
    pub apt: Option<PathBuf>,
    /// The client for `npm`, a path below `/usr`; `None`: `/usr/bin/npm`.
    pub npm: Option<PathBuf>,
    /// The client for `pypi`, a path below `/usr`; `None`: `/usr/bin/pip3`.
    pub pip: Option<PathBuf>,
    /// A `.list` or `.sources` file that apt reads in place of the machine's sources, an absolute path; `None`: the machine's.
    pub apt_sources: Option<PathBuf>,
    /// The registry that npm uses in place of its own, an address with http or https; `None`: npm's own.
    pub npm_registry: Option<String>,
    /// The index that pip uses in place of its own, an address with http or https; `None`: pip's own.
    pub pypi_index: Option<String>,
    /// The proxy of the clients, an address; `None`: no proxy, since the clients inherit no environment of the host.
    pub proxy: Option<String>,
    /// TCP ports that the clients may connect to, besides those of the proxy, the registry and the index; at most 8.
    pub ports: Vec<u16>,
    /// Longest time of all fetching for one change, in seconds; 1 to 86400.
    pub fetch_seconds_max: u64,
    /// Bytes of all files of a layer; 1 MiB to 1 TiB.
    pub layer_bytes_max: u64,
    /// Files, directories and links of a layer; 16 to 10000000.
    pub layer_files_max: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            apt: None,
            npm: None,
            pip: None,
            apt_sources: None,
            npm_registry: None,
            pypi_index: None,
            proxy: None,
            ports: vec![53, 80, 443], // names over TCP, and what registries use
            fetch_seconds_max: 600,
            layer_bytes_max: 1 << 30,
            layer_files_max: 200_000,
        }
    }
}

impl Config {
    /// Checks the settings.
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
        if !(1..=86_400).contains(&self.fetch_seconds_max) {
            return Err("packages.fetch_seconds_max must be 1 to 86400".to_owned());
        }
        let (bytes, files) = (1 << 20..=1 << 40, 16..=10_000_000);
        if !bytes.contains(&self.layer_bytes_max) || !files.contains(&self.layer_files_max) {
            return Err(
                "packages.layer_bytes_max must be at least 1 MiB and at most 1 TiB, and packages.layer_files_max \
                        16 to 10000000"
                    .to_owned(),
            );
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
            (Config { fetch_seconds_max: 0, ..default() }, "packages.fetch_seconds_max"),
            (Config { layer_bytes_max: 0, ..default() }, "packages.layer_bytes_max"),
            (Config { layer_files_max: 1, ..default() }, "packages.layer_files_max"),
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
