//! `cliffwatch-load`: the load generators in one program, a subcommand each.

fn main() {}
