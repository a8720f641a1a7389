//! The images of a prompt: read from the workspace, if they still have the bytes that the person sent.
//!
//! Never shows a model other bytes, because the agent may change its workspace at any moment. See [`crate::sessions::files`].

use crate::sessions::files::{FilePath, Files};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ironclaw_contract::canonical::Digest;
use ironclaw_model::image::{IMAGE_BYTES_MAX, IMAGES_MAX, Image, ImageContent, ImageType, LeftOut};
use ironclaw_model::{Part, Prompt};
use ironclaw_state::home::SessionDirectories;
use std::io::Read;

/// Leaves out all images except the newest, up to the bound of one prompt.
pub(super) fn keep_newest(parts: &mut [Part]) {
    let contents = parts.iter_mut().rev().filter_map(|part| match part {
        Part::Image { content, .. } => Some(content),
        _ => None,
    });
    for content in contents.skip(IMAGES_MAX) {
        *content = ImageContent::LeftOut(LeftOut::TooMany);
    }
}

/// Reads the images of a prompt from the workspace of its session. Blocks while it reads.
pub fn read_all(prompt: &mut Prompt, place: &SessionDirectories) {
    // Without the uid of the session, `Files` does not look for links to files of others. A link leads to no other bytes than those
    // that the person sent, because the digest is compared.
    let files = Files::open(place, None).ok().flatten();
    for part in &mut prompt.parts {
        let Part::Image { path, content } = part else { continue };
        let ImageContent::Unread(digest) = *content else { continue };
        let read = files.as_ref().ok_or(LeftOut::Changed).and_then(|files| read(files, path, digest));
        *content = read.map_or_else(ImageContent::LeftOut, ImageContent::Read);
    }
}

fn read(files: &Files, path: &str, digest: Digest) -> Result<Image, LeftOut> {
    let path = FilePath::parse(path).map_err(|_| LeftOut::Changed)?;
    let (file, bytes) = files.read(&path).map_err(|_| LeftOut::Changed)?;
    if bytes > IMAGE_BYTES_MAX {
        return Err(LeftOut::TooLarge);
    }
    let mut content = Vec::new();
    file.take(IMAGE_BYTES_MAX + 1).read_to_end(&mut content).map_err(|_| LeftOut::Changed)?;
    if Digest::of(&content) != digest {
        return Err(LeftOut::Changed);
    }
    let kind = ImageType::detect(&content).ok_or(LeftOut::OtherType)?;
    Ok(Image { kind, base64: STANDARD.encode(content).into() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ironclaw_contract::ids::SessionId;
    use ironclaw_contract::seam::socket::Purpose;
    use ironclaw_state::home::Home;
    use std::fs;
    use std::os::unix::fs::symlink;

    const PNG: &[u8] = b"\x89PNG\r\n\x1a\nimage";

    fn unread(path: &str, bytes: &[u8]) -> Part {
        Part::Image { path: path.to_owned(), content: ImageContent::Unread(Digest::of(bytes)) }
    }

    fn contents(parts: &[Part]) -> Vec<ImageContent> {
        let content = |part: &Part| match part {
            Part::Image { content, .. } => Some(content.clone()),
            _ => None,
        };
        parts.iter().filter_map(content).collect()
    }

    #[test]
    fn only_the_bytes_that_were_sent_are_read() {
        let directory = tempfile::tempdir().expect("a directory");
        let place = Home::create(&directory.path().join("home")).expect("a home").session(SessionId::new());
        let parts = [
            ("same", PNG, PNG),
            ("changed", PNG, b"\x89PNG\r\n\x1a\nanother".as_slice()),
            ("text", b"words", b"words"),
            ("link", PNG, PNG),
            ("../same", PNG, PNG),
            ("gone", PNG, PNG),
        ];
        let mut prompt = Prompt {
            purpose: Purpose::Reply,
            system: String::new(),
            tools: Vec::new(),
            parts: parts.iter().map(|(path, sent, _)| unread(path, sent)).collect(),
        };
        let mut without = prompt.clone();
        read_all(&mut without, &place);
        let changed = || ImageContent::LeftOut(LeftOut::Changed);
        assert_eq!(contents(&without.parts), vec![changed(); parts.len()], "the session has no workspace");

        fs::create_dir_all(place.workspace()).expect("made");
        for (path, _, found) in &parts[..3] {
            fs::write(place.workspace().join(path), found).expect("written");
        }
        symlink("same", place.workspace().join("link")).expect("linked");
        let large = vec![0; usize::try_from(IMAGE_BYTES_MAX).expect("small") + 1];
        fs::write(place.workspace().join("large"), &large).expect("written");
        prompt.parts.push(unread("large", &large));
        read_all(&mut prompt, &place);
        let image = Image { kind: ImageType::Png, base64: STANDARD.encode(PNG).into() };
        assert_eq!(
            contents(&prompt.parts),
            [
                ImageContent::Read(image),
                changed(),
                ImageContent::LeftOut(LeftOut::OtherType),
                changed(),
                changed(),
                changed(),
                ImageContent::LeftOut(LeftOut::TooLarge)
            ]
        );
    }

    #[test]
    fn newest_images_are_kept() {
        let mut parts: Vec<Part> = (0..=IMAGES_MAX).map(|number| unread(&number.to_string(), PNG)).collect();
        parts.insert(2, Part::Person { text: "between".to_owned() });
        keep_newest(&mut parts);
        let contents = contents(&parts);
        assert_eq!(contents[0], ImageContent::LeftOut(LeftOut::TooMany));
        assert!(contents[1..].iter().all(ImageContent::is_shown), "{contents:?}");
    }
}
