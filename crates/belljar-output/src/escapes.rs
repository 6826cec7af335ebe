//! What a terminal would obey instead of showing: escape sequences, control characters, and characters that are not seen but change how others
//! are. Kept, shown or stripped, as asked.
//!
//! ```text
//!   ground ─ESC─► escape ─[─► csi ─final─► ground
//!                    └─ ] P X ^ _ ─► string ─BEL, ST, CAN, line break, too long─► ground
//! ```
//! A string that never ends would swallow all that follows; so a line break ends it too, and so does its length.

/// What to do with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Escapes {
    /// Leave them as they came. Not for a terminal, and not for a model.
    Keep,
    /// Take them out.
    #[default]
    Strip,
    /// Write them so that they can be seen: `\u{1b}[31m`.
    Show,
}

/// The longest string sequence that is taken for one.
const LONGEST_STRING: usize = 1024;

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Ground,
    Escape,
    /// After `ESC` and an intermediate character, one more ends it.
    Intermediate,
    Csi,
    String {
        length: usize,
        escape: bool,
    },
}

/// The escapes of one stream.
pub(crate) struct Escaping {
    how: Escapes,
    state: State,
    /// A carriage return whose line feed may come.
    returned: bool,
    pub(crate) found: u64,
}

impl Escaping {
    pub(crate) fn new(how: Escapes) -> Self {
        Self { how, state: State::Ground, returned: false, found: 0 }
    }

    pub(crate) fn push(&mut self, text: &str, out: &mut String) {
        match self.how {
            Escapes::Keep => out.push_str(text),
            Escapes::Show => text.chars().for_each(|c| self.show(c, out)),
            Escapes::Strip => text.chars().for_each(|c| self.strip(c, out)),
        }
    }

    pub(crate) fn finish(&mut self, out: &mut String) {
        if std::mem::take(&mut self.returned) {
            out.push('\n');
        }
    }

    fn show(&mut self, c: char, out: &mut String) {
        if c == '\n' || c == '\t' || !is_control(c) {
            out.push(c);
        } else {
            self.found += 1;
            out.push_str(&format!("\\u{{{:x}}}", c as u32));
        }
    }

    fn strip(&mut self, c: char, out: &mut String) {
        self.state = match (self.state, c) {
            (State::Ground, '\u{1b}') => self.begin(State::Escape),
            (State::Ground, '\u{9b}') => self.begin(State::Csi),
            (State::Ground, '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}') => self.begin(State::String { length: 0, escape: false }),
            (State::Ground, c) => self.ground(c, out),
            (State::Escape, '[') => State::Csi,
            (State::Escape, ']' | 'P' | 'X' | '^' | '_') => State::String { length: 0, escape: false },
            (State::Escape, '\u{1b}') => State::Escape,
            (State::Escape, ' '..='/') => State::Intermediate,
            // A line break or a letter that no sequence has is text that somebody tried to hide.
            (State::Escape | State::Intermediate | State::Csi, '\n') => self.ground('\n', out),
            (State::Escape | State::Intermediate, _) => State::Ground,
            (State::Csi, ' '..='?') => State::Csi,
            (State::Csi, '\u{1b}') => State::Escape,
            (State::Csi, '@'..='~' | '\u{18}' | '\u{1a}') => State::Ground,
            (State::Csi, c) => self.ground(c, out),
            (State::String { .. }, '\u{7}' | '\u{9c}' | '\u{18}' | '\u{1a}') | (State::String { escape: true, .. }, '\\') => State::Ground,
            (State::String { .. }, '\n') => self.ground('\n', out),
            (State::String { length, .. }, _) if length >= LONGEST_STRING => self.ground(c, out),
            (State::String { length, .. }, c) => State::String { length: length + 1, escape: c == '\u{1b}' },
        };
    }

    fn begin(&mut self, state: State) -> State {
        self.found += 1;
        state
    }

    fn ground(&mut self, c: char, out: &mut String) -> State {
        let returned = std::mem::take(&mut self.returned);
        match c {
            '\r' => {
                // What comes next would be written over what stands there: it gets a line of its own instead.
                if returned {
                    self.found += 1;
                }
                self.returned = true;
                return State::Ground;
            }
            '\n' => {}
            _ if returned => {
                self.found += 1;
                out.push('\n');
            }
            _ => {}
        }
        if c == '\n' || c == '\t' || !is_control(c) {
            out.push(c);
        } else {
            self.found += 1;
        }
        State::Ground
    }
}

/// Characters that are obeyed or hidden, not shown.
fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}
