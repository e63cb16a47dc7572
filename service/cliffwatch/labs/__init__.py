"""Extensions of the service: aging drives, bundles, import formats, what-if. Only `server` and `cli` import them."""
