//! Generations: host and agents are updated at different times, so each says what range it speaks and the highest common one is used.
//!
//! A generation is added when a verb is: the table below says in which one each verb came. Fields are added to bodies without one.

use minicbor::{Decode, Encode};

/// The generations that this version of Belljar speaks.
pub const SPOKEN: Generations = Generations { oldest: 1, newest: 2 };

/// A range of generations, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Encode, Decode)]
pub struct Generations {
    /// The oldest that is understood.
    #[n(0)]
    pub oldest: u16,
    /// The newest that is understood.
    #[n(1)]
    pub newest: u16,
}

impl Generations {
    /// The newest generation both sides speak.
    pub fn common(self, other: Self) -> Option<u16> {
        let newest = self.newest.min(other.newest);
        (newest >= self.oldest.max(other.oldest)).then_some(newest)
    }
}

macro_rules! verbs {
    ($($number:literal $name:ident since $since:literal, $words:literal;)*) => {
        /// What an agent can be asked.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u16)]
        pub enum Verb {
            $(#[doc = $words] $name = $number,)*
        }

        impl Verb {
            /// All verbs, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The verb with this number.
            pub fn from_number(number: u16) -> Option<Self> {
                match number {
                    $($number => Some(Self::$name),)*
                    _ => None,
                }
            }

            /// The first generation that has it.
            pub fn since(self) -> u16 {
                match self {
                    $(Self::$name => $since,)*
                }
            }

            /// What it does, to complete "while trying to …".
            pub fn words(self) -> &'static str {
                match self {
                    $(Self::$name => $words,)*
                }
            }
        }
    };
}

verbs! {
    1 Hello since 1, "say hello";
    2 Start since 1, "start a process";
    3 Processes since 1, "list processes";
    4 Attach since 1, "read a process's output";
    5 Wait since 1, "wait for a process";
    6 WriteStdin since 1, "write standard input";
    7 CloseStdin since 1, "close standard input";
    8 Signal since 1, "signal a process";
    9 Resize since 1, "resize a terminal";
    10 ReadFile since 1, "read a file";
    11 WriteFile since 1, "write a file";
    12 Stat since 1, "look at a file";
    13 List since 1, "list a directory";
    14 MakeDirectory since 1, "make a directory";
    15 Rename since 1, "rename a file";
    16 Remove since 1, "remove a file";
    17 SetMode since 1, "change a file's mode";
    18 SetOwner since 1, "change a file's owner";
    19 GetXattr since 1, "read an extended attribute";
    20 SetXattr since 1, "set an extended attribute";
    21 Watch since 1, "watch a directory";
    22 Search since 1, "search files";
    23 Ports since 1, "list listening ports";
    24 Connect since 1, "connect to a port";
    25 Metrics since 1, "read metrics";
    26 Renew since 1, "renew its identity";
    27 Wishes since 2, "hear what programs inside ask for";
    28 AnswerWish since 2, "answer a program inside";
}

impl Verb {
    /// Its number on the wire.
    pub fn number(self) -> u16 {
        self as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_common_generation_is_used() {
        let range = |oldest, newest| Generations { oldest, newest };
        assert_eq!(range(1, 3).common(range(2, 5)), Some(3));
        assert_eq!(range(2, 5).common(range(1, 3)), Some(3));
        assert_eq!(range(1, 1).common(range(2, 5)), None);
    }

    #[test]
    fn every_verb_is_found_by_its_number_and_spoken() {
        for verb in Verb::ALL {
            assert_eq!(Verb::from_number(verb.number()), Some(*verb));
            assert!((1..=SPOKEN.newest).contains(&verb.since()));
        }
        assert_eq!(Verb::from_number(0), None);
    }
}
