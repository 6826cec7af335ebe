//! Where the next page of a list of sandboxes starts, as text that means nothing to anybody else.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use belljar_core::Cursor;
use belljar_types::Timestamp;

/// The text for a place in the list.
pub fn page_token(cursor: &Cursor) -> String {
    URL_SAFE_NO_PAD.encode(format!("{}.{}", cursor.created_at.0, cursor.id))
}

/// The place in the list, if the text is one of ours.
pub fn page_cursor(token: &str) -> Option<Cursor> {
    let text = String::from_utf8(URL_SAFE_NO_PAD.decode(token).ok()?).ok()?;
    let (at, id) = text.split_once('.')?;
    Some(Cursor { created_at: Timestamp(at.parse().ok()?), id: id.parse().ok()? })
}

#[cfg(test)]
mod tests {
    use belljar_types::SandboxId;

    use super::*;

    #[test]
    fn a_page_goes_on_where_the_last_one_ended() {
        let at = Cursor { created_at: Timestamp(12), id: SandboxId::random() };
        assert_eq!(page_cursor(&page_token(&at)), Some(at));
        for wrong in ["", "x", "MTI", "!!"] {
            assert_eq!(page_cursor(wrong), None, "{wrong}");
        }
    }
}
