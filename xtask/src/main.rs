//! Chores that keep the house rules.

fn main() {}
