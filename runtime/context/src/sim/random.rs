//! Numbers that a seed determines: SplitMix64 (Steele, Lea and Flood, Fast splittable pseudorandom number generators,
//! 2014).
//!
//! Each use has a stream of its own, so that one more draw of a test does not change the schedule.

/// A stream of numbers.
#[derive(Clone, Copy, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates the stream number `stream` of a seed.
    pub fn new(seed: u64, stream: u64) -> Self {
        let mut base = Self(seed);
        let offset = Self(stream).draw();
        Self(base.draw() ^ offset)
    }

    /// Returns the next number.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `end`, which is not 0.
    pub fn below(&mut self, end: u64) -> u64 {
        // The high half of a product: biased by end / 2^64, which no test sees.
        ((u128::from(self.draw()) * u128::from(end)) >> 64) as u64
    }

    /// Returns `true` with this probability. Draws in any case.
    pub fn happens(&mut self, probability: f64) -> bool {
        // 53 bits, as many as a f64 holds: a number from 0 to below 1.
        ((self.draw() >> 11) as f64) < probability * (1u64 << 53) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first numbers of seed 1234567, as published with the generator.
    #[test]
    fn it_is_splitmix64() {
        let mut random = Random(1_234_567);
        let first = [(); 3].map(|()| random.draw());
        assert_eq!(first, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn streams_differ_and_bounds_hold() {
        let (mut first, mut second) = (Random::new(7, 0), Random::new(7, 1));
        assert_ne!(first.draw(), second.draw());
        let drawn: Vec<u64> = (0..1000).map(|_| first.below(3)).collect();
        assert!((0..3).all(|number| drawn.iter().filter(|&&other| other == number).count() > 250));
    }
}
