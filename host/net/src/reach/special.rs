//! The addresses that are not of the public Internet, by kind (RFC 6890 and the registries of IANA).
//!
//! Never trusts a form that hides another address: mapped, compatible, NAT64, 6to4 and Teredo are kinds of their own, also with a
//! public address inside. See [`crate::reach`].

use super::{METADATA_V4, METADATA_V6};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};

ironclaw_contract::words! {
    /// The kind of an address that a request for an agent does not reach.
    pub enum Special {
        Loopback = "loopback",
        /// RFC 1918, or unique local.
        Private = "private",
        LinkLocal = "link-local",
        /// A metadata service of a cloud outside of the link-local range.
        Metadata = "a metadata service",
        /// Shared by a carrier (100.64.0.0/10).
        Shared = "shared by a carrier",
        /// No address, or an address of "this network".
        Unspecified = "unspecified",
        Broadcast = "broadcast",
        Multicast = "multicast",
        Benchmark = "for benchmarks",
        Documentation = "for documentation",
        /// An IPv4 address behind a NAT64 gateway.
        Nat64 = "a NAT64 form",
        /// An IPv4 address behind a 6to4 relay, or the relay.
        SixToFour = "a 6to4 form",
        /// An IPv4 address behind a Teredo relay.
        Teredo = "a Teredo form",
        /// An IPv4 address in `::ffff:0:0/96`.
        Mapped = "an IPv4-mapped form",
        /// An IPv4 address in `::/96`.
        Compatible = "an IPv4-compatible form",
        /// Site-local IPv6, which is deprecated.
        SiteLocal = "site-local",
        /// Reserved in another way.
        Reserved = "reserved",
        /// An address of an interface of this machine.
        Own = "an address of this machine",
    }
}

impl Special {
    /// Returns the kind of an address; `None` for an address of the public Internet. It does not know the addresses of this machine.
    pub fn classify(address: IpAddr) -> Option<Self> {
        match address {
            IpAddr::V4(address) => classify_v4(address),
            IpAddr::V6(address) => classify_v6(address),
        }
    }
}

/// Returns whether an interface of this machine has this address: the kernel binds a socket to its own addresses only. An error of
/// another kind counts as yes.
pub fn is_own(address: IpAddr) -> bool {
    match UdpSocket::bind((address, 0)) {
        Ok(_) => true,
        // Without IPv6 the family is not supported, and the address is not reached either.
        Err(error) => !matches!(error.kind(), io::ErrorKind::AddrNotAvailable | io::ErrorKind::Unsupported),
    }
}

fn classify_v4(address: Ipv4Addr) -> Option<Special> {
    let [a, b, c, _] = address.octets();
    Some(match (a, b, c) {
        (0, ..) => Special::Unspecified,
        _ if METADATA_V4.contains(&address) => Special::Metadata,
        (10, ..) | (172, 16..=31, _) | (192, 168, _) => Special::Private,
        (100, 64..=127, _) => Special::Shared,
        (127, ..) => Special::Loopback,
        (169, 254, _) => Special::LinkLocal,
        (192, 0, 0) => Special::Reserved,
        (192, 0, 2) | (198, 51, 100) | (203, 0, 113) => Special::Documentation,
        (192, 88, 99) => Special::SixToFour,
        (198, 18..=19, _) => Special::Benchmark,
        (224..=239, ..) => Special::Multicast,
        _ if address.is_broadcast() => Special::Broadcast,
        (240.., ..) => Special::Reserved,
        _ => return None,
    })
}

fn classify_v6(address: Ipv6Addr) -> Option<Special> {
    let segments = address.segments();
    Some(match segments {
        _ if address.is_unspecified() => Special::Unspecified,
        _ if address.is_loopback() => Special::Loopback,
        _ if METADATA_V6.contains(&address) => Special::Metadata,
        [0, 0, 0, 0, 0, 0xffff, ..] => Special::Mapped,
        [0, 0, 0, 0, 0, 0, ..] => Special::Compatible,
        [0x64, 0xff9b, ..] => Special::Nat64,
        [0xfc00..=0xfdff, ..] => Special::Private,
        [0xfe80..=0xfebf, ..] => Special::LinkLocal,
        [0xfec0..=0xfeff, ..] => Special::SiteLocal,
        [0xff00..=0xffff, ..] => Special::Multicast,
        [0x2001, 0, ..] => Special::Teredo,
        [0x2001, 2, 0, ..] => Special::Benchmark,
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Special::Documentation,
        [0x2001, 0..=0x1ff, ..] => Special::Reserved,
        [0x2002, ..] => Special::SixToFour,
        // The only global unicast addresses that are assigned.
        [0x2000..=0x3fff, ..] => return None,
        _ => Special::Reserved,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_special_address_has_its_kind() {
        use Special as S;
        for (kind, addresses) in [
            (S::Loopback, &["127.0.0.1", "127.255.255.255", "::1"][..]),
            (S::Private, &["10.0.0.0", "10.255.255.255", "172.16.0.1", "172.31.255.255", "192.168.0.1"]),
            (S::Private, &["fc00::1", "fdff::1"]),
            (S::LinkLocal, &["169.254.0.1", "169.254.169.254", "fe80::1", "febf::1"]),
            (S::Metadata, &["168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd20:ce::254"]),
            (S::Shared, &["100.64.0.0", "100.127.255.255"]),
            (S::Unspecified, &["0.0.0.0", "0.1.2.3", "::"]),
            (S::Broadcast, &["255.255.255.255"]),
            (S::Multicast, &["224.0.0.1", "239.255.255.255", "ff02::1", "ff0e::1"]),
            (S::Benchmark, &["198.18.0.1", "198.19.255.255", "2001:2::1"]),
            (S::Documentation, &["192.0.2.1", "198.51.100.1", "203.0.113.1", "2001:db8::1", "3fff:fff::1"]),
            (S::Nat64, &["64:ff9b::7f00:1", "64:ff9b::8.8.8.8", "64:ff9b:1::1"]),
            (S::SixToFour, &["2002:7f00:1::1", "2002:808:808::1", "192.88.99.1"]),
            (S::Teredo, &["2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001::1"]),
            (S::Mapped, &["::ffff:127.0.0.1", "::ffff:8.8.8.8"]),
            (S::Compatible, &["::127.0.0.1", "::8.8.8.8", "::2"]),
            (S::SiteLocal, &["fec0::1", "feff::1"]),
            (S::Reserved, &["240.0.0.1", "255.255.255.254", "192.0.0.8"]),
            (S::Reserved, &["100::1", "5f00::1", "2001:20::1", "4000::1", "::ffff:0:1:2"]),
        ] {
            for address in addresses {
                assert_eq!(Special::classify(address.parse().expect(address)), Some(kind), "{address}");
            }
        }
    }

    #[test]
    fn public_address_has_no_kind() {
        let near_private = ["9.255.255.255", "11.0.0.0", "172.15.255.255", "172.32.0.0", "192.167.255.255"];
        let near_others = ["100.63.255.255", "100.128.0.0", "198.17.255.255", "198.20.0.0", "223.255.255.255"];
        let v6 = ["2606:4700::1111", "2001:200::1", "2001:4860:4860::8888", "3fff:1000::1"];
        for address in [&["8.8.8.8", "1.0.0.1"][..], &near_private, &near_others, &v6].concat() {
            assert_eq!(Special::classify(address.parse().expect(address)), None, "{address}");
        }
    }

    #[test]
    fn address_of_this_machine_is_found() {
        assert!(is_own("127.0.0.1".parse().expect("an address")));
        for other in ["8.8.8.8", "192.0.2.1", "2001:db8::1"] {
            assert!(!is_own(other.parse().expect(other)), "{other}");
        }
    }
}
