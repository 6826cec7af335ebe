//! How much of a suite runs: a quick slice by default, the counts the project promises with `BELLJAR_FULL=1`. Same code either way.

/// Whether the full counts were asked for.
pub fn full() -> bool {
    std::env::var_os("BELLJAR_FULL").is_some_and(|value| value != "0")
}

/// `quick` normally, `full` with `BELLJAR_FULL=1`.
pub fn scaled(quick: u64, full_count: u64) -> u64 {
    if full() { full_count } else { quick }
}

/// Repeatable chance: the seed is printed, and `BELLJAR_SEED` plays it again.
pub struct Dice {
    state: u64,
}

impl Dice {
    /// A die for one test, seeded by `BELLJAR_SEED` or by the clock.
    pub fn new(test: &str) -> Self {
        let seed = std::env::var("BELLJAR_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(|| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            u64::from(now.subsec_nanos()) ^ now.as_secs()
        });
        #[expect(clippy::print_stdout, reason = "the harness shows it beside the failure, where whoever plays it again looks for it")]
        {
            println!("{test}: BELLJAR_SEED={seed}");
        }
        Self::seeded(seed)
    }

    /// Chance that begins with this number: for whoever runs beside others and must not depend on who is faster.
    pub fn seeded(seed: u64) -> Self {
        Self { state: seed | 1 }
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        // xorshift64*: quality is no concern, being repeatable is.
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        (self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % bound.max(1)
    }
}
