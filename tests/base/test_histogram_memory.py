"""A histogram that is no longer needed is gone at once: a soak makes ten thousand of them."""

import gc
import weakref

import pytest

from cliffwatch.base.histogram import Histogram


@pytest.mark.parametrize("make", [Histogram, lambda: Histogram.decode(Histogram().encode())])
def test_a_histogram_is_freed_without_the_garbage_collector(make: type[Histogram]) -> None:
    gc.disable()
    try:
        histogram = make()
        hdr = weakref.ref(histogram._hdr)
        del histogram
        assert hdr() is None
    finally:
        gc.enable()
