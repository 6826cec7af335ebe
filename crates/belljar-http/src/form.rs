//! Forms with files (`multipart/form-data`), taken apart as they come: nothing is copied, and no more is asked for than is given on.
//!
//! ```text
//! --B CRLF Content-Disposition: form-data; name="file"; filename="a" CRLF CRLF …content… CRLF --B CRLF … CRLF --B--
//!   └ the delimiter is CRLF --B; before the first one its CRLF is taken as said
//! ```

mod parameters;

use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use axum::http::{HeaderMap, header};
use bytes::{Buf, Bytes};
use futures_util::StreamExt;
use futures_util::stream::{self, BoxStream, Fuse};
use memchr::memmem::{self, Finder};

use crate::extract::content_type_is;
use parameters::parameter;

/// What a file of a form may say about itself.
const LARGEST_HEAD: usize = 16 << 10;
/// Twice and more what the standard allows.
const LONGEST_BOUNDARY: usize = 200;

/// Bytes from a client, or why there are no more.
pub type FormContent = BoxStream<'static, Result<Bytes, String>>;

/// A form.
pub struct Form(Arc<Mutex<Reader>>);

/// One field of a form. Its content need not be read.
pub struct FormField {
    /// What it is called.
    pub name: Option<String>,
    /// What the file in it is called.
    pub file_name: Option<String>,
    /// What is in it.
    pub content: FormContent,
}

impl Form {
    /// `None` if what its headers say is not a form.
    pub fn new(headers: &HeaderMap, content: FormContent) -> Option<Self> {
        let kind = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
        let boundary = parameter(kind, "boundary").filter(|boundary| (1..=LONGEST_BOUNDARY).contains(&boundary.len()))?;
        let form = content_type_is(headers, "multipart/form-data") && !boundary.contains(['\r', '\n']);
        form.then(|| Self(Arc::new(Mutex::new(Reader::new(&boundary, content)))))
    }

    /// The next field. What is left of the one before is passed over.
    pub async fn next(&mut self) -> Result<Option<FormField>, String> {
        let mut content = pieces(&self.0);
        while let Some(piece) = content.next().await {
            piece?;
        }
        let Some(head) = std::future::poll_fn(|cx| lock(&self.0).poll_head(cx)).await? else { return Ok(None) };
        let disposition =
            head.lines().filter_map(|line| line.split_once(':')).find(|(name, _)| name.eq_ignore_ascii_case("content-disposition"));
        let said = |name| disposition.and_then(|(_, value)| parameter(value, name));
        Ok(Some(FormField { name: said("name"), file_name: said("filename"), content }))
    }
}

fn lock(reader: &Mutex<Reader>) -> std::sync::MutexGuard<'_, Reader> {
    reader.lock().unwrap_or_else(PoisonError::into_inner)
}

fn pieces(reader: &Arc<Mutex<Reader>>) -> FormContent {
    let reader = Arc::clone(reader);
    stream::poll_fn(move |cx| lock(&reader).poll_piece(cx)).boxed()
}

#[derive(PartialEq)]
enum Place {
    /// In the content of a field, or in what stands before the first.
    Content,
    /// After a delimiter.
    Head,
    End,
}

struct Reader {
    source: Fuse<FormContent>,
    delimiter: Finder<'static>,
    /// What came and was not looked at.
    rest: Bytes,
    /// How much of the delimiter came at the end of what was looked at.
    begun: usize,
    head: Vec<u8>,
    place: Place,
}

impl Reader {
    fn new(boundary: &str, source: FormContent) -> Self {
        let delimiter = Finder::new(&format!("\r\n--{boundary}")).into_owned();
        Self { source: source.fuse(), delimiter, rest: Bytes::new(), begun: 2, head: Vec::new(), place: Place::Content }
    }

    /// The next piece of the field that is being read.
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, String>>> {
        while self.place == Place::Content {
            if let Err(error) = ready!(self.poll_rest(cx)) {
                self.place = Place::End;
                return Poll::Ready(Some(Err(error)));
            }
            let piece = if self.begun > 0 { self.go_on_with_delimiter() } else { self.until_delimiter() };
            if !piece.is_empty() {
                return Poll::Ready(Some(Ok(piece)));
            }
        }
        Poll::Ready(None)
    }

    /// A delimiter that was begun is one now, or needs more, or was content.
    fn go_on_with_delimiter(&mut self) -> Bytes {
        let delimiter = self.delimiter.needle();
        let wanted = &delimiter[self.begun..];
        let length = wanted.len().min(self.rest.len());
        if self.rest[..length] != wanted[..length] {
            let content = Bytes::copy_from_slice(&delimiter[..self.begun]);
            self.begun = 0;
            return content;
        }
        self.rest.advance(length);
        self.begun += length;
        if self.begun == delimiter.len() {
            self.leave_content();
        }
        Bytes::new()
    }

    /// Content up to the delimiter, or to where one may begin.
    fn until_delimiter(&mut self) -> Bytes {
        let delimiter = self.delimiter.needle();
        if let Some(end) = self.delimiter.find(&self.rest) {
            let content = self.rest.split_to(end);
            self.rest.advance(delimiter.len());
            self.leave_content();
            return content;
        }
        // A delimiter has a CR at its beginning and nowhere else, so only the last one can begin one.
        let end = memchr::memrchr(b'\r', &self.rest).filter(|at| delimiter.starts_with(&self.rest[*at..])).unwrap_or(self.rest.len());
        self.begun = self.rest.len() - end;
        let content = self.rest.split_to(end);
        self.rest.clear();
        content
    }

    fn leave_content(&mut self) {
        (self.begun, self.place) = (0, Place::Head);
    }

    /// What stands between a delimiter and the content after it; `None` after the last.
    fn poll_head(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<String>, String>> {
        while self.place == Place::Head {
            ready!(self.poll_rest(cx))?;
            let had = self.head.len();
            let take = self.rest.len().min(LARGEST_HEAD - had);
            self.head.extend_from_slice(&self.rest[..take]);
            if self.head.starts_with(b"--") {
                self.place = Place::End;
            } else if let Some(end) = memmem::find(&self.head, b"\r\n\r\n") {
                self.rest.advance(end + 4 - had);
                self.place = Place::Content;
                return Poll::Ready(self.take_head(end).map(Some));
            } else if self.head.len() == LARGEST_HEAD {
                return Poll::Ready(Err(format!("a field says more than {LARGEST_HEAD} bytes about itself")));
            } else {
                self.rest.advance(take);
            }
        }
        // What follows is nobody's, but it must have been taken before an answer, or the client could not be heard again.
        self.rest.clear();
        while let Some(more) = ready!(self.source.poll_next_unpin(cx)) {
            more?;
        }
        Poll::Ready(Ok(None))
    }

    fn take_head(&mut self, length: usize) -> Result<String, String> {
        let mut head = std::mem::take(&mut self.head);
        head.truncate(length);
        let head = String::from_utf8(head).map_err(|_| "what a field says about itself is not UTF-8")?;
        let (padding, lines) = head.split_once("\r\n").unwrap_or((&head, ""));
        if padding.trim_matches([' ', '\t']).is_empty() {
            Ok(lines.to_owned())
        } else {
            Err("a boundary is followed by something else than a new line".to_owned())
        }
    }

    /// Sees to it that there is something in `rest`.
    fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), String>> {
        while self.rest.is_empty() {
            match ready!(self.source.poll_next_unpin(cx)) {
                Some(Ok(piece)) => self.rest = piece,
                Some(Err(error)) => return Poll::Ready(Err(error)),
                None => return Poll::Ready(Err("it ends before its last boundary".to_owned())),
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
#[path = "form/tests.rs"]
mod tests;
