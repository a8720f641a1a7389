//! The sockets of the API, of webhooks and of the console, and the file that announces them.

use super::error::Error;
use super::socket_directory;
use crate::api::port::{self, ConsolePort, Port, Socket};
use crate::daemon::config::Config;
use crate::reach::jail_network::trust;
use ironclaw_operator::Run;
use ironclaw_state::home::{self, Home};
use std::path::{Path, PathBuf};
use tokio::net::UnixListener;

pub(super) struct Paths {
    /// The private directory of the sockets.
    pub runtime: PathBuf,
    /// The socket of the API.
    pub socket: PathBuf,
}

impl Paths {
    /// Makes the directory of the sockets.
    pub fn choose(home: &Home, config: &Config) -> Result<Self, Error> {
        let runtime = socket_directory::directory(home)?;
        let socket = config.api.socket.clone().unwrap_or_else(|| runtime.join("api.sock"));
        Ok(Self { runtime, socket })
    }

    /// Removes the socket of the API and the certificates of gateways, and the directory if it is empty.
    pub fn remove(&self) {
        let _ = std::fs::remove_file(&self.socket);
        // The local page of `ironctl console`, whose code is over.
        let _ = std::fs::remove_file(self.socket.with_file_name("console.html"));
        let _ = std::fs::remove_dir_all(trust::directory(&self.runtime));
        let _ = std::fs::remove_dir(&self.runtime);
    }
}

pub(super) struct Sockets {
    /// The API, for this user.
    pub listener: Socket,
    /// The API's loopback port.
    pub port: Option<Port>,
    /// The loopback port of webhooks.
    pub hooks: Option<Port>,
    /// The port of the console, if the settings name one.
    pub console: Option<ConsolePort>,
}

impl Sockets {
    /// Opens the socket of the API, then the ports of the settings.
    pub async fn open(config: &Config, paths: &Paths) -> Result<Self, Error> {
        let listener = port::unix(listen(&paths.socket)?);
        let port = open_port("api.listen", &config.api.listen, port::For::Api).await?;
        let hooks = open_port("webhook.listen", &config.webhook.listen, port::For::Hooks).await?;
        let unopened = |source| Error::Listen { address: config.console.listen.clone(), source };
        let console = config.console.open().await.map_err(unopened)?;
        Ok(Self { listener, port, hooks, console })
    }

    /// Returns the address of the API's port.
    pub fn listens(&self) -> Option<String> {
        self.port.as_ref().and_then(Port::address).map(|address| address.to_string())
    }
}

/// Writes the run file, which leads commands to the host.
pub(super) fn announce(home: &Home, paths: &Paths, listen: Option<String>) -> Result<(), Error> {
    let run = Run {
        pid: std::process::id(),
        socket: paths.socket.display().to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        listen,
    };
    let run = serde_json::to_vec(&run).expect("plain fields");
    Ok(home::write_private(&home.run_file(), &run)?)
}

fn listen(socket: &Path) -> Result<UnixListener, Error> {
    use std::os::unix::fs::PermissionsExt;
    let refuse = |source: std::io::Error| Error::Runtime { path: socket.to_owned(), why: source.to_string() };
    use std::os::unix::fs::FileTypeExt;
    match socket.symlink_metadata() {
        Ok(found) if found.file_type().is_socket() => std::fs::remove_file(socket).map_err(refuse)?,
        Ok(_) => return Err(refuse(std::io::Error::other("another file has this path, and it is not a socket"))),
        Err(_) => {}
    }
    let listener = UnixListener::bind(socket).map_err(refuse)?;
    std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o600)).map_err(refuse)?;
    Ok(listener)
}

/// Opens the loopback port of this setting, if it names one.
async fn open_port(name: &str, listen: &str, what: port::For) -> Result<Option<Port>, Error> {
    // The settings refuse other addresses.
    let Ok(Some(address)) = port::parse(name, listen) else { return Ok(None) };
    let opened = port::open(address, what).await;
    opened.map(Some).map_err(|source| Error::Listen { address: address.to_string(), source })
}
