//! How an agent says no: a code for programs, words for people, and the field when the request itself was wrong.

use belljar_types::Invalid;
use minicbor::{Decode, Encode};

/// Why a call was not done. Codes are never reused; a client takes one that it does not know for [`FailureCode::Refused`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum FailureCode {
    /// The kernel or the policy inside said no; see `errno`.
    Refused = 1,
    /// A field is wrong.
    Invalid = 2,
    /// No such process.
    NoProcess = 3,
    /// No such verb in the generation that is spoken.
    UnknownVerb = 4,
}

/// The body of a failure frame.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct Failure {
    /// A [`FailureCode`].
    #[n(0)]
    pub code: u16,
    /// Linux error number, 0 if there is none.
    #[n(1)]
    pub errno: i32,
    /// What happened.
    #[n(2)]
    pub message: String,
    /// The wrong field.
    #[n(3)]
    pub field: Option<String>,
    /// What was expected of it.
    #[n(4)]
    pub expected: Option<String>,
}

impl Failure {
    /// The kernel or the policy said no.
    pub fn refused(errno: i32, message: impl Into<String>) -> Self {
        Self { code: FailureCode::Refused as u16, errno, message: message.into(), field: None, expected: None }
    }

    /// A plain failure of this code.
    pub fn of(code: FailureCode, message: impl Into<String>) -> Self {
        Self { code: code as u16, errno: 0, message: message.into(), field: None, expected: None }
    }

    /// The code, if this side knows it.
    pub fn known_code(&self) -> FailureCode {
        match self.code {
            2 => FailureCode::Invalid,
            3 => FailureCode::NoProcess,
            4 => FailureCode::UnknownVerb,
            _ => FailureCode::Refused,
        }
    }
}

impl From<Invalid> for Failure {
    fn from(invalid: Invalid) -> Self {
        Self {
            code: FailureCode::Invalid as u16,
            errno: 0,
            message: invalid.got,
            field: Some(invalid.field),
            expected: Some(invalid.expected),
        }
    }
}
