//! The certificate authority of the gateways of commands: a command speaks TLS with the true name of a granted host, and the gateway
//! answers in its place.
//!
//! Lives in the memory of one host process. Only jails of commands trust it, and their one peer is the gateway, so its certificates are
//! worth nothing elsewhere. Its key never leaves the host. See [`super::certificate`] and [`super::inside`].

use super::certificate::{IDENTIFIER_BYTES, Owner, PublicKey, SERIAL_BYTES, signed, unsigned};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use std::fmt;
use std::sync::Arc;

/// Characters of a line of PEM.
const LINE_CHARACTERS: usize = 64;

/// A key that could not be made.
#[derive(Debug, thiserror::Error)]
#[error("the system gives no random numbers for the certificates of gateways")]
pub struct NoKey;

/// The authority of one host process.
pub struct Authority {
    key: EcdsaKeyPair,
    own: PublicKey,
    /// The key of all servers, and its public part.
    server_key: PrivatePkcs8KeyDer<'static>,
    server: PublicKey,
    certificate: Vec<u8>,
    random: SystemRandom,
}

impl fmt::Debug for Authority {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

impl Authority {
    /// Makes one with new keys.
    ///
    /// # Errors
    /// Fails if the system gives no random numbers.
    pub fn new() -> Result<Self, NoKey> {
        let random = SystemRandom::new();
        let (_, key) = key_pair(&random)?;
        let (server_key, server_pair) = key_pair(&random)?;
        let (own, server) = (public(&key), public(&server_pair));
        let mut authority = Self { key, own, server_key, server, certificate: Vec::new(), random };
        authority.certificate = authority.issue(Owner::Authority, &authority.own)?;
        Ok(authority)
    }

    /// Returns its certificate as PEM.
    pub fn pem(&self) -> String {
        let text = STANDARD.encode(&self.certificate);
        let lines: Vec<_> = text.as_bytes().chunks(LINE_CHARACTERS).map(String::from_utf8_lossy).collect();
        format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", lines.join("\n"))
    }

    /// Returns the settings of a server that answers for a host: a name, or an address with the brackets of a URL.
    ///
    /// # Errors
    /// Fails if the system gives no random numbers.
    pub(super) fn server(&self, host: &str) -> Result<Arc<ServerConfig>, NoKey> {
        let certificate = self.issue(Owner::Server(host), &self.server)?;
        let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("the provider has the default versions")
            .with_no_client_auth()
            .with_single_cert(
                vec![CertificateDer::from(certificate)],
                PrivateKeyDer::Pkcs8(self.server_key.clone_key()),
            );
        let mut config = config.expect("the key is the one in the certificate");
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }

    fn issue(&self, owner: Owner<'_>, key: &PublicKey) -> Result<Vec<u8>, NoKey> {
        let mut serial = [0; SERIAL_BYTES];
        self.random.fill(&mut serial).map_err(|_| NoKey)?;
        let unsigned = unsigned(serial, owner, key, &self.own);
        let signature = self.key.sign(&self.random, &unsigned).map_err(|_| NoKey)?;
        Ok(signed(&unsigned, signature.as_ref()))
    }
}

fn key_pair(random: &SystemRandom) -> Result<(PrivatePkcs8KeyDer<'static>, EcdsaKeyPair), NoKey> {
    let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, random).map_err(|_| NoKey)?;
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, document.as_ref(), random);
    Ok((document.as_ref().to_vec().into(), pair.map_err(|_| NoKey)?))
}

fn public(key: &EcdsaKeyPair) -> PublicKey {
    let point = key.public_key().as_ref().to_vec();
    let mut identifier = [0; IDENTIFIER_BYTES];
    identifier.copy_from_slice(&digest(&SHA256, &point).as_ref()[..IDENTIFIER_BYTES]);
    PublicKey { point, identifier }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustls::pki_types::pem::PemObject;
    use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConnection};

    /// Returns whether a client that trusts this authority accepts a server for `host` under `name`.
    fn is_accepted(authority: &Authority, host: &str, name: &str) -> bool {
        let mut roots = RootCertStore::empty();
        let pem = authority.pem();
        roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).expect("PEM")).expect("an authority");
        let client = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = name.to_owned().try_into().expect("a name");
        let mut client = ClientConnection::new(Arc::new(client), name).expect("a client");
        let mut server = ServerConnection::new(authority.server(host).expect("a key")).expect("a server");
        let mut bytes = Vec::new();
        while client.is_handshaking() {
            client.write_tls(&mut bytes).expect("bytes");
            server.read_tls(&mut std::mem::take(&mut bytes).as_slice()).expect("bytes");
            server.process_new_packets().expect("a hello");
            server.write_tls(&mut bytes).expect("bytes");
            client.read_tls(&mut std::mem::take(&mut bytes).as_slice()).expect("bytes");
            if client.process_new_packets().is_err() {
                return false;
            }
        }
        true
    }

    #[test]
    fn certificate_is_valid_for_its_host_and_authority_alone() {
        let authority = Authority::new().expect("keys");
        let long = format!("{}.example.org", vec!["a".repeat(60); 3].join("."));
        for host in ["registry.npmjs.org", "127.0.0.1", "localhost", &long] {
            assert!(is_accepted(&authority, host, host), "{host}");
            assert!(!is_accepted(&authority, host, "evil.example"), "{host}");
        }
        assert!(is_accepted(&authority, "[::1]", "::1"));
        let other = Authority::new().expect("keys");
        assert_ne!(other.pem(), authority.pem());
    }
}
