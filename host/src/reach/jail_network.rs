//! The network of a jail: a gateway of the host, which is the only peer in the network namespace of the jail.
//!
//! Never gives a jail a secret. Ends with the jail. See [`gateway`] for the requests that the host makes, [`inside`] for those that a
//! command makes over TLS, and [`tunnel`] for connections that a program makes by itself.

pub(crate) mod address;
mod authority;
mod certificate;
mod client_hello;
mod fetchers;
mod gateway;
mod hosts;
mod inside;
pub mod roots;
pub(crate) mod route;
mod suggestion;
mod traffic;
pub mod trust;
mod tunnel;

pub use address::PORT;
pub use authority::Authority;
pub use fetchers::Fetchers;
pub use gateway::Gateway;
pub use hosts::{GrantedHost, OfCommand, Reach};
pub use traffic::Traffic;
pub use trust::Trust;

use roots::Roots;

/// Returns the variables with which a program finds the tunnels of its gateway, and the certificates that the machine trusts.
pub fn tunnel_variables() -> Vec<(String, String)> {
    let roots = Roots::find();
    address::proxy().into_iter().chain(roots.iter().flat_map(Roots::variables)).collect()
}
