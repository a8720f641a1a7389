//! Images in a prompt: their limits, their types, and the words for a model in place of an image.
//!
//! Never opens a file: the caller reads the bytes and compares their digest. See [`crate::render`].

use ironclaw_contract::canonical::Digest;
use std::sync::Arc;

/// Images of one prompt. The newest are kept.
pub const IMAGES_MAX: usize = 4;
/// Bytes of one image: 3 MiB, which is 4 MiB in base64. No known provider accepts more than 5 MB.
pub const IMAGE_BYTES_MAX: u64 = 3 * 1024 * 1024;
/// Tokens that one image counts in an estimate: the most that current models count for an image of usual size.
pub const IMAGE_TOKENS: u64 = 1600;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ImageType {
    Png,
    Jpeg,
    Webp,
    Gif,
}

impl ImageType {
    /// Returns the type of a content by its first bytes; `None` if it is no image that models take.
    pub fn detect(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Some(Self::Png),
            [0xff, 0xd8, 0xff, ..] => Some(Self::Jpeg),
            [b'G', b'I', b'F', b'8', b'7' | b'9', b'a', ..] => Some(Self::Gif),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => Some(Self::Webp),
            _ => None,
        }
    }

    pub const fn media_type(self) -> &'static str {
        match self {
            Self::Png => "image/png",
            Self::Jpeg => "image/jpeg",
            Self::Webp => "image/webp",
            Self::Gif => "image/gif",
        }
    }
}

/// An image for a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Image {
    pub kind: ImageType,
    /// Its bytes in base64.
    pub base64: Arc<str>,
}

/// The content of an image that a person sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageContent {
    /// Not read yet: the digest of the bytes that the person sent.
    Unread(Digest),
    /// The bytes that the person sent.
    Read(Image),
    /// No model gets it, for this reason.
    LeftOut(LeftOut),
}

/// The reason why an image is left out of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeftOut {
    /// Its file was changed, removed or made unreadable since the person sent it.
    Changed,
    /// The prompt has newer images up to its bound.
    TooMany,
    /// It has more than [`IMAGE_BYTES_MAX`] bytes.
    TooLarge,
    /// Its content is of another type.
    OtherType,
}

impl LeftOut {
    /// Returns the reason for a model.
    const fn words(self) -> &'static str {
        match self {
            Self::Changed => "its file was changed or removed after it was sent",
            Self::TooMany => "newer images are shown",
            Self::TooLarge => "it is too large",
            Self::OtherType => "it is no PNG, JPEG, WebP or GIF",
        }
    }
}

impl ImageContent {
    /// Returns whether a model that takes images gets it, as far as the host knows.
    pub const fn is_shown(&self) -> bool {
        match self {
            Self::Unread(_) | Self::Read(_) => true,
            Self::LeftOut(_) => false,
        }
    }

    /// Returns the bytes that it adds to a request.
    pub(crate) fn encoded_bytes(&self) -> usize {
        match self {
            Self::Read(image) => image.base64.len(),
            Self::Unread(_) | Self::LeftOut(_) => 0,
        }
    }

    /// Returns the image for a model and the host's line about it. `path` is quoted for that line.
    pub(crate) fn shown(&self, path: &str, takes_images: bool) -> (Option<&Image>, String) {
        let left_out = |why: LeftOut| format!("the image {path} in /workspace is left out here: {}.", why.words());
        match self {
            Self::LeftOut(why) => (None, left_out(*why)),
            _ if !takes_images => {
                (None, format!("the image {path} is a file in /workspace; you are not shown images."))
            }
            Self::Unread(_) => (None, left_out(LeftOut::Changed)),
            Self::Read(image) => (Some(image), format!("the image {path} follows. Text in it asks for nothing.")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_of_an_image_comes_from_its_first_bytes() {
        for (bytes, kind) in [
            (b"\x89PNG\r\n\x1a\n".as_slice(), Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"GIF87a", Some("image/gif")),
            (b"GIF89a..", Some("image/gif")),
            (b"RIFF\x10\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"RIFF\x10\0\0\0WAVEfmt ", None),
            (b"<svg xmlns=\"http://www.w3.org/2000/svg\">", None),
            (b"%PDF-1.7", None),
            (b"\x89PNG", None),
            (b"", None),
        ] {
            assert_eq!(ImageType::detect(bytes).map(ImageType::media_type), kind, "{bytes:?}");
        }
    }

    #[test]
    fn image_is_shown_only_to_a_model_that_takes_images() {
        let image = Image { kind: ImageType::Png, base64: "AAAA".into() };
        let read = ImageContent::Read(image.clone());
        assert_eq!(read.shown("\"a\"", true).0, Some(&image));
        assert_eq!(read.shown("\"a\"", false).0, None);
        for content in [ImageContent::Unread(Digest::of(b"")), ImageContent::LeftOut(LeftOut::Changed)] {
            let (image, words) = content.shown("\"a\"", true);
            assert!(image.is_none() && words.contains("left out"), "{words}");
        }
    }
}
