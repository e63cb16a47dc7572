//! Byte ranges as pages.

use std::ops::Range;

/// A range of bytes as pages: the page of which a part is touched at its start, the pages that lie wholly in it, and the
/// page of which a part is touched at its end. A range inside one page has only a head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PageSpan {
    /// The page touched in part at the start.
    pub head: Option<PagePart>,
    /// Pages touched wholly.
    pub whole: Range<u64>,
    /// The page touched in part at the end.
    pub tail: Option<PagePart>,
}

/// A part of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PagePart {
    /// Which page.
    pub page: u64,
    /// How much of it.
    pub size_bytes: u64,
}

impl PageSpan {
    /// The pages of `size_bytes` (not 0) at `offset_bytes`.
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
