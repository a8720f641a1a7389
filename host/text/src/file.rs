//! The names and the types of files that people and agents send.
//!
//! A type comes from the content, never from a name. A name with characters that a screen does not show as they are is refused, and
//! never repaired. See [`crate::visible`] for a name in a sentence.

use crate::confusable::is_unseen;

/// Bytes of a name.
pub const NAME_BYTES_MAX: usize = 255;

/// Characters of a plain name, without its ending.
const STEM_CHARACTERS_MAX: usize = 80;

/// Characters of the ending of a plain name.
const ENDING_CHARACTERS_MAX: usize = 16;

/// The type of a text.
pub const TEXT: &str = "text/plain";

/// The type of a content that is not known.
const BYTES: &str = "application/octet-stream";

/// The type of an archive, which many formats of documents are.
const ZIP: &str = "application/zip";

/// The types that have first bytes of their own.
const KNOWN: [(&[u8], &str); 8] = [
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"%PDF-", "application/pdf"),
    (b"PK\x03\x04", ZIP),
    (b"PK\x05\x06", ZIP),
    (b"\x1f\x8b", "application/gzip"),
];

/// The type of an image with its first bytes in two parts.
const WEBP: &str = "image/webp";

/// Types of texts that do not begin with `text/`.
const TEXTS: [&str; 4] = ["application/json", "application/xml", "application/yaml", "image/svg+xml"];

/// Types of documents that are archives and do not begin with `application/vnd.`.
const ARCHIVES: [&str; 2] = ["application/epub+zip", "application/java-archive"];

/// Checks the name of a file that another person or an agent chose.
///
/// # Errors
/// Half a sentence with the reason.
pub fn check_name(name: &str) -> Result<(), &'static str> {
    let is_blank = |c: char| c.is_whitespace() || c.is_control() || is_unseen(c);
    if name.chars().all(is_blank) {
        return Err("it has no visible character");
    }
    if matches!(name, "." | "..") {
        return Err("it names a directory");
    }
    if name.contains('/') {
        return Err("it has a slash");
    }
    if name.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')) {
        return Err("it has a control character");
    }
    if name.chars().any(is_direction_mark) {
        return Err("it has a character that changes the direction of text");
    }
    if name.len() > NAME_BYTES_MAX {
        return Err("it is longer than 255 bytes");
    }
    Ok(())
}

/// Returns whether a character changes the direction of the text around it.
const fn is_direction_mark(c: char) -> bool {
    matches!(c, '\u{61c}' | '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Returns a name of plain letters, digits, dots, dashes and underscores; from the second try on it has a number.
pub fn plain_name(name: &str, number: usize) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_');
    let plain: String = name.chars().map(|c| if is_plain(c) { c } else { '-' }).collect();
    let plain = plain.trim_start_matches(['.', '-']);
    let (stem, ending) = match plain.rsplit_once('.') {
        Some((stem, ending)) if !stem.is_empty() && ending.len() <= ENDING_CHARACTERS_MAX => {
            (stem, format!(".{ending}"))
        }
        _ => (plain, String::new()),
    };
    let stem = &stem[..stem.len().min(STEM_CHARACTERS_MAX)];
    let stem = if stem.is_empty() { "file" } else { stem };
    if number == 1 { format!("{stem}{ending}") } else { format!("{stem}-{number}{ending}") }
}

/// Returns the media type of a content, from its first bytes.
pub fn media_type(bytes: &[u8]) -> &'static str {
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return WEBP;
    }
    match KNOWN.iter().find(|(magic, _)| bytes.starts_with(magic)) {
        Some((_, kind)) => kind,
        None if !bytes.contains(&0) && std::str::from_utf8(bytes).is_ok() => TEXT,
        None => BYTES,
    }
}

/// Returns whether a declared media type fits the content. A type without first bytes of its own fits any content that is not known.
pub fn is_of_type(bytes: &[u8], declared: &str) -> bool {
    let declared = declared.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let is_text = declared.starts_with("text/") || TEXTS.contains(&declared.as_str());
    match media_type(bytes) {
        found if found == declared => true,
        TEXT => is_text,
        ZIP => declared.starts_with("application/vnd.") || ARCHIVES.contains(&declared.as_str()),
        BYTES => !is_text && declared != WEBP && KNOWN.iter().all(|(_, known)| *known != declared),
        _ => false,
    }
}

/// Returns whether a media type is one of the images that models take.
pub fn is_image(media_type: &str) -> bool {
    media_type.starts_with("image/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_that_hides_or_leaves_its_directory_is_refused() {
        let long = "n".repeat(NAME_BYTES_MAX + 1);
        let outside = ["", " ", ".", "..", "../x", "a/b", "/", "a\nb", "a\0", "\u{7}", "\u{202e}"];
        let hidden = ["\u{200e}\u{200f}\u{2067}", "gpj.\u{202e}exe", "a\u{2066}b", "\u{200b}\u{feff}", "a\u{2028}b"];
        for name in [&outside[..], &hidden, &[&long]].concat() {
            assert!(check_name(name).is_err(), "{name:?}");
        }
        for name in ["a", "my photo.png", "Grüße.pdf", "..a", "שלום.txt", "👨‍👩‍👧.png", "a:b"] {
            assert_eq!(check_name(name), Ok(()), "{name:?}");
        }
    }

    #[test]
    fn plain_name_has_no_other_characters_and_is_short() {
        for (name, number, expected) in [
            ("photo.png", 1, "photo.png"),
            ("photo.png", 2, "photo-2.png"),
            ("Grüße an Bob.pdf", 1, "Gr--e-an-Bob.pdf"),
            ("../../etc/passwd", 1, "etc-passwd"),
            (".bashrc", 1, "bashrc"),
            ("-rf", 3, "rf-3"),
            ("\u{202e}gpj.exe\n", 1, "gpj.exe-"),
            ("…", 1, "file"),
        ] {
            assert_eq!(plain_name(name, number), expected, "{name:?}");
        }
        let long = plain_name(&format!("{}.{}", "n".repeat(300), "e".repeat(300)), 7);
        assert_eq!(long.len(), STEM_CHARACTERS_MAX + 2);
    }

    #[test]
    fn media_type_comes_from_the_content() {
        for (bytes, kind) in [
            (b"\x89PNG\r\n\x1a\nrest".as_slice(), "image/png"),
            (b"\xff\xd8\xff\xe0", "image/jpeg"),
            (b"GIF89a..", "image/gif"),
            (b"RIFF\x10\0\0\0WEBPVP8 ", "image/webp"),
            (b"RIFF\x10\0\0\0WAVEfmt ", "application/octet-stream"),
            (b"%PDF-1.7\n", "application/pdf"),
            (b"PK\x03\x04..", "application/zip"),
            (b"\x1f\x8b\x08", "application/gzip"),
            ("grüße\n".as_bytes(), TEXT),
            (b"", TEXT),
            (b"a\0b", "application/octet-stream"),
            (b"\xff\xfe", "application/octet-stream"),
        ] {
            assert_eq!(media_type(bytes), kind, "{bytes:?}");
            assert!(is_of_type(bytes, kind), "{bytes:?}");
        }
    }

    #[test]
    fn declared_type_of_another_content_does_not_fit() {
        let png = b"\x89PNG\r\n\x1a\n".as_slice();
        for (bytes, declared, fits) in [
            (png, "IMAGE/png; q=1", true),
            (png, "image/jpeg", false),
            (png, "text/plain", false),
            (b"a,b", "text/csv", true),
            (b"{}", "application/json", true),
            (b"MZ is a text", "image/png", false),
            (b"MZ\0\0", "image/png", false),
            (b"MZ\0\0", "text/plain", false),
            (b"MZ\0\0", "application/x-msdownload", true),
            (b"PK\x03\x04", "application/vnd.oasis.opendocument.text", true),
            (b"PK\x03\x04", "application/pdf", false),
        ] {
            assert_eq!(is_of_type(bytes, declared), fits, "{bytes:?} {declared}");
        }
    }
}
