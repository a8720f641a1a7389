//! The text of a certificate (RFC 5280) in DER: an authority, or a server of one host.
//!
//! Never reads a certificate, and never makes a key. See [`super::authority`].

use std::net::IpAddr;

/// Tags of ASN.1 (X.690).
mod tag {
    pub(super) const BOOLEAN: u8 = 1;
    pub(super) const INTEGER: u8 = 2;
    pub(super) const BIT_STRING: u8 = 3;
    pub(super) const OCTET_STRING: u8 = 4;
    pub(super) const OBJECT: u8 = 6;
    pub(super) const UTF8: u8 = 12;
    pub(super) const UTC_TIME: u8 = 23;
    pub(super) const SEQUENCE: u8 = 0x30;
    pub(super) const SET: u8 = 0x31;
    /// `[0]` with a value of its own: the version, and the identifier of a key.
    pub(super) const VERSION: u8 = 0xa0;
    pub(super) const EXTENSIONS: u8 = 0xa3;
    pub(super) const KEY_IDENTIFIER: u8 = 0x80;
    pub(super) const DNS_NAME: u8 = 0x82;
    pub(super) const IP_ADDRESS: u8 = 0x87;
}

/// Numbers of objects, without tag and length.
mod object {
    pub(super) const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
    pub(super) const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
    pub(super) const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
    pub(super) const COMMON_NAME: &[u8] = &[0x55, 4, 3];
    pub(super) const SUBJECT_KEY_IDENTIFIER: &[u8] = &[0x55, 0x1d, 14];
    pub(super) const KEY_USAGE: &[u8] = &[0x55, 0x1d, 15];
    pub(super) const SUBJECT_ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 17];
    pub(super) const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 19];
    pub(super) const AUTHORITY_KEY_IDENTIFIER: &[u8] = &[0x55, 0x1d, 35];
    pub(super) const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 37];
    pub(super) const SERVER_AUTHENTICATION: &[u8] = &[0x2b, 6, 1, 5, 5, 7, 3, 1];
}

/// A jail may have any clock, and no certificate outlives the host process that made it.
const NOT_BEFORE: &str = "200101000000Z";
const NOT_AFTER: &str = "491231235959Z";
/// The name of the issuer.
const AUTHORITY: &str = "IronClaw gateway authority";
/// The subject of a server; clients read its other names.
const SERVER: &str = "IronClaw gateway";
/// Bytes of the identifier of a key.
pub(super) const IDENTIFIER_BYTES: usize = 20;
pub(super) const SERIAL_BYTES: usize = 16;

/// A public key of P-256, uncompressed, with its identifier.
#[derive(Debug, Clone)]
pub(super) struct PublicKey {
    pub(super) point: Vec<u8>,
    pub(super) identifier: [u8; IDENTIFIER_BYTES],
}

/// The owner of a certificate.
#[derive(Debug, Clone, Copy)]
pub(super) enum Owner<'a> {
    Authority,
    /// The server of a host: a name, or an address with the brackets of a URL.
    Server(&'a str),
}

/// Returns the part of a certificate that its issuer signs.
pub(super) fn unsigned(serial: [u8; SERIAL_BYTES], owner: Owner<'_>, key: &PublicKey, issuer: &PublicKey) -> Vec<u8> {
    let subject = match owner {
        Owner::Authority => AUTHORITY,
        Owner::Server(_) => SERVER,
    };
    sequence(&[
        encode(tag::VERSION, &encode(tag::INTEGER, &[2])),
        integer(serial),
        algorithm(),
        name(AUTHORITY),
        sequence(&[encode(tag::UTC_TIME, NOT_BEFORE.as_bytes()), encode(tag::UTC_TIME, NOT_AFTER.as_bytes())]),
        name(subject),
        public_key(&key.point),
        encode(tag::EXTENSIONS, &sequence(&extensions(owner, key, issuer))),
    ])
}

/// Joins the signed part of a certificate with its signature.
pub(super) fn signed(unsigned: &[u8], signature: &[u8]) -> Vec<u8> {
    sequence(&[unsigned.to_vec(), algorithm(), bits(signature)])
}

fn extensions(owner: Owner<'_>, key: &PublicKey, issuer: &PublicKey) -> Vec<Vec<u8>> {
    let of_key = extension(object::SUBJECT_KEY_IDENTIFIER, false, &encode(tag::OCTET_STRING, &key.identifier));
    let issued_by = sequence(&[encode(tag::KEY_IDENTIFIER, &issuer.identifier)]);
    let issued_by = extension(object::AUTHORITY_KEY_IDENTIFIER, false, &issued_by);
    // A string of bits begins with the number of unused bits at its end.
    let usage = |unused, bits| extension(object::KEY_USAGE, true, &encode(tag::BIT_STRING, &[unused, bits]));
    match owner {
        Owner::Authority => {
            // It issues certificates of servers only.
            let constraints = sequence(&[encode(tag::BOOLEAN, &[0xff]), encode(tag::INTEGER, &[0])]);
            let sign_certificates = usage(2, 0b0000_0100);
            vec![extension(object::BASIC_CONSTRAINTS, true, &constraints), sign_certificates, of_key, issued_by]
        }
        Owner::Server(host) => {
            let digital_signature = usage(7, 0b1000_0000);
            let purposes = sequence(&[encode(tag::OBJECT, object::SERVER_AUTHENTICATION)]);
            vec![
                extension(object::BASIC_CONSTRAINTS, true, &sequence(&[])),
                digital_signature,
                extension(object::EXTENDED_KEY_USAGE, false, &purposes),
                extension(object::SUBJECT_ALTERNATIVE_NAME, false, &sequence(&[alternative_name(host)])),
                of_key,
                issued_by,
            ]
        }
    }
}

fn alternative_name(host: &str) -> Vec<u8> {
    match host.trim_start_matches('[').trim_end_matches(']').parse() {
        Ok(IpAddr::V4(address)) => encode(tag::IP_ADDRESS, &address.octets()),
        Ok(IpAddr::V6(address)) => encode(tag::IP_ADDRESS, &address.octets()),
        Err(_) => encode(tag::DNS_NAME, host.as_bytes()),
    }
}

fn extension(number: &[u8], is_critical: bool, value: &[u8]) -> Vec<u8> {
    let critical = if is_critical { encode(tag::BOOLEAN, &[0xff]) } else { Vec::new() };
    sequence(&[encode(tag::OBJECT, number), critical, encode(tag::OCTET_STRING, value)])
}

fn algorithm() -> Vec<u8> {
    sequence(&[encode(tag::OBJECT, object::ECDSA_WITH_SHA256)])
}

fn name(common: &str) -> Vec<u8> {
    let common = sequence(&[encode(tag::OBJECT, object::COMMON_NAME), encode(tag::UTF8, common.as_bytes())]);
    sequence(&[encode(tag::SET, &common)])
}

fn public_key(point: &[u8]) -> Vec<u8> {
    let algorithm = sequence(&[encode(tag::OBJECT, object::EC_PUBLIC_KEY), encode(tag::OBJECT, object::P256)]);
    sequence(&[algorithm, bits(point)])
}

/// Returns whole bytes as a string of bits.
fn bits(bytes: &[u8]) -> Vec<u8> {
    encode(tag::BIT_STRING, &[&[0], bytes].concat())
}

/// Returns a positive number whose first byte is not zero.
fn integer(mut bytes: [u8; SERIAL_BYTES]) -> Vec<u8> {
    bytes[0] = bytes[0] & 0x7f | 0x40;
    encode(tag::INTEGER, &bytes)
}

fn sequence(parts: &[Vec<u8>]) -> Vec<u8> {
    encode(tag::SEQUENCE, &parts.concat())
}

fn encode(tag: u8, value: &[u8]) -> Vec<u8> {
    let length = value.len();
    let mut out = vec![tag];
    match u8::try_from(length) {
        Ok(short @ 0..0x80) => out.push(short),
        Ok(short) => out.extend([0x81, short]),
        // A certificate has no value over 64 KiB: a name of a host has 253 bytes.
        Err(_) => out.extend([0x82, (length >> 8) as u8, length as u8]),
    }
    out.extend_from_slice(value);
    out
}
