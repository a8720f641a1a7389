//! The server name in the first bytes of a TLS connection.
//!
//! Pure, and bounded by the bytes that it gets. Refuses each form in which a server could read another name. See [`super::tunnel`].

use ironclaw_judge::egress::HostName;

/// Bytes in which a ClientHello must end.
pub(super) const HELLO_BYTES_MAX: usize = 16 * 1024;
/// Bytes of a record (RFC 8446, 5.1).
const RECORD_BYTES_MAX: usize = 1 << 14;
/// The type of a record with a part of the handshake.
const HANDSHAKE: u8 = 22;
/// The major version of every record since SSL 3.
const MAJOR: u8 = 3;
/// The type of a ClientHello.
const CLIENT_HELLO: u8 = 1;
/// Bytes before the body of a ClientHello: its type and its length.
const HEAD_BYTES: usize = 4;
/// The extension with the server name.
const SERVER_NAME: u16 = 0;
/// The extensions that hide the server name: ECH, and the ESNI before it.
const HIDING: [u16; 2] = [0xfe0d, 0xffce];
/// The type of a server name that is a host.
const HOST: u8 = 0;

/// The reason why the first bytes name no server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoName {
    #[error("not TLS")]
    NotTls,
    /// No ClientHello that every server reads the same way.
    #[error("a malformed ClientHello")]
    Malformed,
    /// No end of the ClientHello in the bound.
    #[error("a ClientHello that is too long")]
    TooLong,
    /// No server name, or none that is a host.
    #[error("no server name")]
    Missing,
    #[error("an encrypted ClientHello")]
    Encrypted,
}

impl NoName {
    /// Returns the next step, if there is one.
    pub(super) const fn hint(self) -> &'static str {
        match self {
            Self::Encrypted => "the managed policy EncryptedClientHelloEnabled=false of a browser switches it off",
            Self::NotTls | Self::Malformed | Self::TooLong | Self::Missing => "",
        }
    }
}

/// Returns the server name in lower case; `None` if more bytes are necessary.
pub(super) fn server_name(bytes: &[u8]) -> Result<Option<String>, NoName> {
    match joined(bytes)? {
        Some(hello) => named(&hello[HEAD_BYTES..]).map(Some),
        None if bytes.len() >= HELLO_BYTES_MAX => Err(NoName::TooLong),
        None => Ok(None),
    }
}

/// Joins the parts of the ClientHello in the records. It must end with a record.
fn joined(bytes: &[u8]) -> Result<Option<Vec<u8>>, NoName> {
    let (mut hello, mut rest) = (Vec::new(), bytes);
    loop {
        let is_handshake = rest.first().is_none_or(|kind| *kind == HANDSHAKE);
        if !is_handshake || rest.get(1).is_some_and(|major| *major != MAJOR) {
            return Err(NoName::NotTls);
        }
        let [_, _, _, high, low, after @ ..] = rest else { return Ok(None) };
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if !(1..=RECORD_BYTES_MAX).contains(&length) {
            return Err(NoName::Malformed);
        }
        let part = &after[..length.min(after.len())];
        hello.extend_from_slice(part);
        if hello.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
            return Err(NoName::NotTls);
        }
        if let [_, a, b, c, ..] = hello[..] {
            let whole = HEAD_BYTES + u32::from_be_bytes([0, a, b, c]) as usize;
            let is_whole_record = part.len() == length;
            match hello.len() {
                _ if whole > HELLO_BYTES_MAX => return Err(NoName::TooLong),
                found if found == whole && is_whole_record => return Ok(Some(hello)),
                found if found >= whole => return Err(NoName::Malformed),
                _ => {}
            }
        }
        if part.len() < length {
            return Ok(None);
        }
        rest = &after[length..];
    }
}

/// Returns the one server name in the body of a ClientHello.
fn named(body: &[u8]) -> Result<String, NoName> {
    let extensions = extensions(body).ok_or(NoName::Malformed)?;
    let mut kinds: Vec<u16> = extensions.iter().map(|(kind, _)| *kind).collect();
    kinds.sort_unstable();
    if kinds.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(NoName::Malformed);
    }
    if kinds.iter().any(|kind| HIDING.contains(kind)) {
        return Err(NoName::Encrypted);
    }
    let (_, list) = extensions.iter().find(|(kind, _)| *kind == SERVER_NAME).ok_or(NoName::Missing)?;
    let name = host_in(list).ok_or(NoName::Malformed)?.to_ascii_lowercase();
    let is_usual = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._".contains(byte);
    let is_name = (1..=HostName::CHARACTERS_MAX).contains(&name.len()) && name.iter().all(is_usual);
    String::from_utf8(name).ok().filter(|_| is_name).ok_or(NoName::Missing)
}

fn extensions(mut body: &[u8]) -> Option<Vec<(u16, &[u8])>> {
    let rest = &mut body;
    // The version and the random bytes.
    take(rest, 2 + 32)?;
    let session = short(rest)?;
    let (suites, compressions) = (long(rest)?, short(rest)?);
    if session.len() > 32 || suites.is_empty() || suites.len() % 2 != 0 || compressions.is_empty() {
        return None;
    }
    let mut all = Vec::new();
    if rest.is_empty() {
        return Some(all);
    }
    let mut list = long(rest)?;
    while !list.is_empty() {
        all.push((number(&mut list)?, long(&mut list)?));
    }
    rest.is_empty().then_some(all)
}

/// Returns the one host in a list of server names.
fn host_in(mut extension: &[u8]) -> Option<&[u8]> {
    let mut list = long(&mut extension)?;
    let kind = take(&mut list, 1)?;
    let host = long(&mut list)?;
    (kind == [HOST] && list.is_empty() && extension.is_empty()).then_some(host)
}

fn take<'b>(rest: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    let (taken, after) = rest.split_at_checked(length)?;
    *rest = after;
    Some(taken)
}

fn number(rest: &mut &[u8]) -> Option<u16> {
    take(rest, 2)?.try_into().ok().map(u16::from_be_bytes)
}

/// Takes bytes with a length of one byte before them.
fn short<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = take(rest, 1)?[0];
    take(rest, length.into())
}

/// Takes bytes with a length of two bytes before them.
fn long<'b>(rest: &mut &'b [u8]) -> Option<&'b [u8]> {
    let length = number(rest)?;
    take(rest, length.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rustls::{ClientConfig, ClientConnection, RootCertStore};
    use std::sync::Arc;

    /// Returns the first bytes of rustls as a client.
    fn of_rustls(name: &str) -> Vec<u8> {
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(RootCertStore::empty())
            .with_no_client_auth();
        let name = name.to_owned().try_into().expect("a name");
        let mut client = ClientConnection::new(Arc::new(config), name).expect("a client");
        let mut bytes = Vec::new();
        client.write_tls(&mut bytes).expect("bytes");
        bytes
    }

    fn sized(bytes: &[u8]) -> Vec<u8> {
        [&u16::try_from(bytes.len()).expect("short").to_be_bytes()[..], bytes].concat()
    }

    fn name_list(names: &[(u8, &str)]) -> Vec<u8> {
        let entries: Vec<_> =
            names.iter().map(|(kind, name)| [&[*kind][..], &sized(name.as_bytes())].concat()).collect();
        sized(&entries.concat())
    }

    fn hello(extensions: &[(u16, Vec<u8>)]) -> Vec<u8> {
        let list: Vec<_> =
            extensions.iter().map(|(kind, bytes)| [&kind.to_be_bytes()[..], &sized(bytes)].concat()).collect();
        let body = [&[3, 3][..], &[7; 32], &[0], &sized(&[0x13, 1]), &[1, 0], &sized(&list.concat())].concat();
        let length = u32::try_from(body.len()).expect("short").to_be_bytes();
        [&[CLIENT_HELLO][..], &length[1..], &body].concat()
    }

    fn records(hello: &[u8], size: usize) -> Vec<u8> {
        hello.chunks(size).flat_map(|part| [&[HANDSHAKE, MAJOR, 1][..], &sized(part)].concat()).collect()
    }

    fn granted() -> (u16, Vec<u8>) {
        (SERVER_NAME, name_list(&[(HOST, "a.example")]))
    }

    #[test]
    fn name_is_read_from_the_bytes_of_a_client() {
        let bytes = of_rustls("Files.example");
        assert_eq!(server_name(&bytes), Ok(Some("files.example".to_owned())));
        for length in 0..bytes.len() {
            assert_eq!(server_name(&bytes[..length]), Ok(None), "{length} bytes");
        }
        // Data behind it, and a name in parts over several records.
        assert_eq!(server_name(&[&bytes[..], &[23, 3, 3, 0]].concat()), Ok(Some("files.example".to_owned())));
        for size in [1, 2, 50] {
            let parts = records(&bytes[5..], size);
            assert_eq!(server_name(&parts), Ok(Some("files.example".to_owned())), "parts of {size} bytes");
        }
        assert_eq!(server_name(&of_rustls("192.0.2.1")), Err(NoName::Missing));
    }

    #[test]
    fn first_bytes_without_one_clear_name_are_refused() {
        let other = (SERVER_NAME, name_list(&[(HOST, "b.example")]));
        let of = |extensions: &[(u16, Vec<u8>)]| records(&hello(extensions), 1000);
        let mut behind = hello(&[granted()]);
        behind.extend([1, 0, 0, 0]);
        let query =
            [&[0, 29][..], b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x07example\x00\x00\x01\x00\x01"];
        for (what, bytes, why) in [
            ("http", b"GET / HTTP/1.1\r\n".to_vec(), NoName::NotTls),
            ("DNS over TCP", query.concat(), NoName::NotTls),
            ("SSL 2", vec![0x80, 46, 1, 3, 1], NoName::NotTls),
            ("an alert", vec![21, 3, 1, 0, 2, 1, 0], NoName::NotTls),
            ("another message", vec![HANDSHAKE, 3, 1, 0, 4, 2, 0, 0, 0], NoName::NotTls),
            ("an empty record", vec![HANDSHAKE, 3, 1, 0, 0], NoName::Malformed),
            ("no name", of(&[]), NoName::Missing),
            ("ECH", of(&[granted(), (0xfe0d, vec![0])]), NoName::Encrypted),
            ("ESNI", of(&[(0xffce, vec![0])]), NoName::Encrypted),
            ("two extensions", of(&[granted(), other]), NoName::Malformed),
            ("two names", of(&[(0, name_list(&[(HOST, "a.example"), (HOST, "b.example")]))]), NoName::Malformed),
            ("a name of another type", of(&[(0, name_list(&[(1, "a.example")]))]), NoName::Malformed),
            ("an empty name", of(&[(0, name_list(&[(HOST, "")]))]), NoName::Missing),
            ("a null byte", of(&[(0, name_list(&[(HOST, "a.example\0b")]))]), NoName::Missing),
            ("more in its record", records(&behind, 1000), NoName::Malformed),
            ("a long one", vec![HANDSHAKE, 3, 1, 0, 4, 1, 1, 0, 0], NoName::TooLong),
        ] {
            assert_eq!(server_name(&bytes), Err(why), "{what}");
        }
        let short = records(&hello(&[granted()]), 1);
        assert_eq!(server_name(&short), Ok(Some("a.example".to_owned())));
        let long = records(&hello(&[granted(), (21, vec![0; 4000])]), 1);
        assert_eq!(server_name(&long[..HELLO_BYTES_MAX]), Err(NoName::TooLong));
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = server_name(&bytes);
            let _ = server_name(&records(&[&[CLIENT_HELLO, 0, 0, 200][..], &bytes].concat(), 100));
        }

        #[test]
        fn changed_byte_never_gives_another_answer_than_its_text(at in 0_usize..400, to in any::<u8>(), size in 1_usize..300) {
            let mut bytes = records(&hello(&[granted(), (43, vec![2, 3, 4])]), size);
            let at = at % bytes.len();
            bytes[at] = to;
            // Each name that is found is in the bytes of the ClientHello.
            if let Ok(Some(name)) = server_name(&bytes) {
                let text = joined(&bytes).expect("read").expect("whole").to_ascii_lowercase();
                prop_assert!(text.windows(name.len()).any(|part| part == name.as_bytes()));
            }
        }
    }
}
