//! Empty target: cargo requires one before it fetches a package's dependencies.
