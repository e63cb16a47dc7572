//! Byte ranges split into pages.

use std::ops::Range;

/// Byte range split into pages: a partly covered page at the start (head), whole pages, and a partly covered page at
/// the end (tail). A range inside one page has only a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageSpan {
    /// Partly covered page at the start.
    pub head: Option<PagePart>,
    /// Wholly covered pages.
    pub whole: Range<u64>,
    /// Partly covered page at the end.
    pub tail: Option<PagePart>,
}

/// Partly covered page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PagePart {
    /// Page number.
    pub page: u64,
    /// Bytes of the page that are covered.
    pub size_bytes: u64,
}

impl PageSpan {
    /// Splits the range of `size_bytes` bytes (not 0) at `offset_bytes` into pages of `page_bytes`.
    #[must_use]
    pub(crate) fn new(offset_bytes: u64, size_bytes: u64, page_bytes: u64) -> Self {
        let end_bytes = offset_bytes + size_bytes;
        let (from, to) = (offset_bytes.div_ceil(page_bytes), end_bytes / page_bytes);
        if from > to {
            return Self { head: Some(PagePart { page: to, size_bytes }), whole: 0..0, tail: None };
        }
        Self {
            head: (offset_bytes < from * page_bytes)
                .then(|| PagePart { page: from - 1, size_bytes: from * page_bytes - offset_bytes }),
            whole: from..to,
            tail: (to * page_bytes < end_bytes).then(|| PagePart { page: to, size_bytes: end_bytes - to * page_bytes }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_falls_in_one_place() {
        let span = |offset, size| {
            let PageSpan { head, whole, tail } = PageSpan::new(offset, size, 10);
            let [head, tail] = [head, tail].map(|part| part.map(|PagePart { page, size_bytes }| (page, size_bytes)));
            (head, whole, tail)
        };
        assert_eq!(span(0, 20), (None, 0..2, None));
        assert_eq!(span(5, 20), (Some((0, 5)), 1..2, Some((2, 5))));
        assert_eq!(span(12, 3), (Some((1, 3)), 0..0, None));
        assert_eq!(span(12, 8), (Some((1, 8)), 2..2, None));
        assert_eq!(span(10, 3), (None, 1..1, Some((1, 3))));
        assert_eq!(span(8, 4), (Some((0, 2)), 1..1, Some((1, 2))));
    }
}
