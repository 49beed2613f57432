//! Images and PDFs by their bytes: of which kind they are, and at most how many tokens a model counts them as.

/// The kinds of files, besides text, that models take.
pub const TAKEN: &[&str] = &["image/png", "image/jpeg", "image/gif", "image/webp", PDF];
/// The media type of a PDF.
pub const PDF: &str = "application/pdf";
/// The largest image or PDF, in bytes: with the third that base64 adds, it fits into what providers document for a request.
pub const LARGEST: u64 = 20 << 20;

/// An upper bound of what providers count one image as, in tokens. Read in November 2026: OpenAI divides an image into at most
/// 10,000 patches at full detail, Anthropic counts up to 4,784, Gemini 3 up to 1,120.
const MOST_OF_IMAGE: u64 = 10_000;
/// The same of one page: its text (Anthropic's documentation says up to 3,000) and its picture.
const MOST_OF_PAGE: u64 = 6_000;
/// The most pages that a provider takes in one PDF.
const MOST_PAGES: u64 = 1_000;
/// Where pages cannot be counted, there is at most one in this many bytes.
const LEAST_PAGE: u64 = 2_000;

/// Returns the media type of an image or a PDF that models take, by how its bytes begin.
pub fn taken_type(bytes: &[u8]) -> Option<&'static str> {
    let kind = binary_type(bytes);
    TAKEN.contains(&kind).then_some(kind)
}

/// Returns what bytes that are no text seem to be, by how they begin.
pub fn binary_type(bytes: &[u8]) -> &'static str {
    const STARTS: &[(&[u8], &str)] = &[
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\xff\xd8\xff", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"%PDF-", PDF),
        (b"PK\x03\x04", "application/zip"),
        (b"\x1f\x8b", "application/gzip"),
        (b"\xff\xfe", "text in UTF-16"),
        (b"\xfe\xff", "text in UTF-16"),
    ];
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return "image/webp";
    }
    STARTS.iter().find(|(start, _)| bytes.starts_with(start)).map_or("application/octet-stream", |(_, kind)| kind)
}

/// Returns how many pages a PDF has, or `None` if its list of pages is compressed.
pub fn pages(bytes: &[u8]) -> Option<u64> {
    let type_page = memchr::memmem::find_iter(bytes, b"/Type").filter(|at| {
        let rest = bytes[at + 5..].trim_ascii_start();
        rest.starts_with(b"/Page") && !rest.get(5).is_some_and(u8::is_ascii_alphanumeric)
    });
    Some(type_page.count() as u64).filter(|pages| *pages > 0)
}

/// Returns an upper bound of the tokens that a file counts as.
pub fn most_tokens(media_type: &str, bytes: u64, pages: Option<u64>) -> u64 {
    match media_type {
        PDF => pages.unwrap_or(bytes / LEAST_PAGE + 1).clamp(1, MOST_PAGES) * MOST_OF_PAGE,
        _ => MOST_OF_IMAGE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_known_by_its_bytes_and_never_by_its_name() {
        for (bytes, kind) in [
            (b"\x89PNG\r\n\x1a\n\0".as_slice(), Some("image/png")),
            (b"\xff\xd8\xff\xe0", Some("image/jpeg")),
            (b"GIF89a\x01", Some("image/gif")),
            (b"GIF8 is how they begin", None),
            (b"RIFF\x10\0\0\0WEBPVP8 ", Some("image/webp")),
            (b"RIFF\x10\0\0\0WAVEfmt ", None),
            (b"%PDF-1.7\n", Some(PDF)),
            (b"PK\x03\x04", None),
            (b"plain", None),
            (b"", None),
        ] {
            assert_eq!(taken_type(bytes), kind, "{bytes:?}");
        }
    }

    #[test]
    fn pages_are_counted_and_bounded_where_they_cannot_be() {
        let two = b"%PDF-1.4 <</Type /Pages /Count 2>> <</Type/Page /Parent 1 0 R>> <</Type /Page>>";
        assert_eq!((pages(two), pages(b"%PDF-1.7 <</Type/ObjStm>>")), (Some(2), None));
        assert_eq!(most_tokens(PDF, 100, Some(2)), 12_000);
        assert_eq!(most_tokens(PDF, 5_000, None), 18_000);
        assert_eq!(most_tokens(PDF, u64::MAX, None), 6_000_000);
        assert_eq!(most_tokens("image/png", 1 << 20, None), 10_000);
    }
}
