//! What programs inside ask of the host, and its answers.

use belljar_types::{GuestPath, Invalid, KeepWish, WishId};
use minicbor::bytes::{ByteArray, ByteVec};
use minicbor::{Decode, Encode};

/// A file that somebody inside asks to have kept.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct WishBody {
    /// Its name, drawn by the agent.
    #[n(0)]
    pub id: ByteArray<16>,
    /// Where the file is.
    #[n(1)]
    pub path: ByteVec,
    /// Who asks.
    #[n(2)]
    pub user: String,
    /// What to call it.
    #[n(3)]
    pub name: Option<String>,
    /// What it is.
    #[n(4)]
    pub media_type: Option<String>,
}

impl TryFrom<WishBody> for KeepWish {
    type Error = Invalid;
    fn try_from(body: WishBody) -> Result<Self, Invalid> {
        let wish = Self {
            id: WishId(body.id.into()),
            path: GuestPath::new(Vec::from(body.path))?,
            user: body.user.parse()?,
            name: body.name,
            media_type: body.media_type,
        };
        wish.validate()
    }
}

/// What became of a wish.
#[derive(Debug, Clone, PartialEq, Eq, Encode, Decode)]
pub struct AnswerWish {
    /// Which.
    #[n(0)]
    pub id: ByteArray<16>,
    /// The artifact, if the file was kept.
    #[n(1)]
    pub artifact: Option<String>,
    /// Why not, in words for people.
    #[n(2)]
    pub refusal: Option<String>,
}
