//! Nothing: cargo wants a target before it fetches what a package depends on.
