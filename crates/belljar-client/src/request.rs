//! One request: its parameters, its sending, and the reading of its answer or refusal.

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt, TryStreamExt};
use reqwest::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use reqwest::{Body, Response, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::{ClientError, ProblemBody};

/// A refusal is a few words; whoever sends more is not Belljar.
const MOST_OF_A_PROBLEM: usize = 64 << 10;
/// The largest answer that is read whole.
const MOST_OF_AN_ANSWER: usize = 256 << 20;
/// The longest line of a stream of lines.
const MOST_OF_A_LINE: usize = 20 << 20;

/// A request that is being put together.
pub(crate) struct Asking {
    builder: reqwest::RequestBuilder,
    url: String,
}

impl Asking {
    pub(crate) fn new(builder: reqwest::RequestBuilder, url: String) -> Self {
        Self { builder, url }
    }

    pub(crate) fn query<T: Serialize + ?Sized>(self, query: &T) -> Self {
        Self { builder: self.builder.query(query), ..self }
    }

    pub(crate) fn json<T: Serialize + ?Sized>(self, body: &T) -> Self {
        Self { builder: self.builder.json(body), ..self }
    }

    pub(crate) fn bytes(self, body: impl Into<Body>) -> Self {
        Self { builder: self.builder.header(CONTENT_TYPE, "application/octet-stream").body(body), ..self }
    }

    pub(crate) fn header(self, name: &'static str, value: &str) -> Self {
        Self { builder: self.builder.header(name, value), ..self }
    }

    pub(crate) fn accept(self, kind: &'static str) -> Self {
        Self { builder: self.builder.header(ACCEPT, kind), ..self }
    }

    /// Sends it; a refusal is an error.
    pub(crate) async fn send(self) -> Result<Answer, ClientError> {
        let url = self.url;
        let response =
            self.builder.send().await.map_err(|source| ClientError::Unreachable { url: url.clone(), source: source.without_url() })?;
        if response.status().is_success() {
            return Ok(Answer { response, url });
        }
        Err(refusal(response, url).await)
    }

    /// Sends it and reads the answer as JSON.
    pub(crate) async fn fetch<T: DeserializeOwned>(self) -> Result<T, ClientError> {
        self.send().await?.json().await
    }

    /// Sends it; the answer has nothing in it that matters.
    pub(crate) async fn done(self) -> Result<(), ClientError> {
        self.send().await?.whole(MOST_OF_AN_ANSWER).await.map(drop)
    }
}

/// The server's yes.
pub(crate) struct Answer {
    response: Response,
    url: String,
}

impl Answer {
    pub(crate) fn length(&self) -> Option<u64> {
        self.response.content_length()
    }

    pub(crate) async fn json<T: DeserializeOwned>(self) -> Result<T, ClientError> {
        let url = self.url.clone();
        let body = self.whole(MOST_OF_AN_ANSWER).await?;
        serde_json::from_slice(&body).map_err(|error| ClientError::Answer { url, detail: error.to_string() })
    }

    async fn whole(self, most: usize) -> Result<Bytes, ClientError> {
        let url = self.url.clone();
        let mut all = BytesMut::new();
        let mut pieces = std::pin::pin!(self.pieces());
        while let Some(piece) = pieces.try_next().await? {
            if all.len() + piece.len() > most {
                return Err(ClientError::Answer { url, detail: format!("it has more than {most} bytes") });
            }
            all.extend_from_slice(&piece);
        }
        Ok(all.freeze())
    }

    /// The body as it comes.
    pub(crate) fn pieces(self) -> impl Stream<Item = Result<Bytes, ClientError>> + Send + 'static {
        let url = self.url;
        self.response.bytes_stream().map_err(move |_| ClientError::CutShort { url: url.clone() })
    }

    /// The body as lines of JSON, as they come. Empty lines, which keep a quiet connection alive, are given as `None`.
    pub(crate) fn lines<T: DeserializeOwned + Send + 'static>(self) -> impl Stream<Item = Result<Option<T>, ClientError>> + Send + 'static {
        let url = self.url.clone();
        let state = (Box::pin(self.pieces()), BytesMut::new(), url);
        futures_util::stream::try_unfold(state, |(mut pieces, mut buffer, url)| async move {
            let mut searched = 0;
            loop {
                if let Some(end) = buffer.iter().skip(searched).position(|byte| *byte == b'\n') {
                    let line = buffer.split_to(searched + end + 1);
                    let item = parse_line(line.trim_ascii(), &url)?;
                    return Ok(Some((item, (pieces, buffer, url))));
                }
                searched = buffer.len();
                if searched > MOST_OF_A_LINE {
                    return Err(ClientError::Answer { url, detail: "a line has no end".to_owned() });
                }
                match pieces.next().await {
                    Some(piece) => buffer.extend_from_slice(&piece?),
                    None if buffer.trim_ascii().is_empty() => return Ok(None),
                    None => return Err(ClientError::CutShort { url }),
                }
            }
        })
    }
}

fn parse_line<T: DeserializeOwned>(line: &[u8], url: &str) -> Result<Option<T>, ClientError> {
    if line.is_empty() {
        return Ok(None);
    }
    match serde_json::from_slice(line) {
        Ok(item) => Ok(Some(item)),
        Err(error) => Err(ClientError::Answer { url: url.to_owned(), detail: error.to_string() }),
    }
}

async fn refusal(response: Response, url: String) -> ClientError {
    let status = response.status();
    let retry_after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok()?.parse().ok());
    let body = Answer { response, url: url.clone() }.whole(MOST_OF_A_PROBLEM).await.unwrap_or_default();
    match serde_json::from_slice::<ProblemBody>(&body) {
        Ok(problem) => ClientError::Refused(Box::new(problem)),
        Err(_) if status == StatusCode::SERVICE_UNAVAILABLE || status == StatusCode::BAD_GATEWAY => {
            ClientError::Refused(Box::new(ProblemBody {
                status: status.as_u16(),
                code: "stopping".to_owned(),
                detail: format!("something between here and the server answered {status}"),
                field: None,
                retry_after,
                request_id: None,
            }))
        }
        Err(_) => ClientError::Answer { url, detail: format!("{status}, without a problem body; is this a Belljar server?") },
    }
}
