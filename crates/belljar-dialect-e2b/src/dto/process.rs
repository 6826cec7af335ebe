//! Messages of `process.Process`, in proto3's JSON.

use std::collections::BTreeMap;

use serde::Deserialize as _;

/// `Start`.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Start {
    pub(crate) process: Config,
    pub(crate) pty: Option<Pty>,
    pub(crate) tag: Option<String>,
    pub(crate) stdin: Option<bool>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Config {
    pub(crate) cmd: String,
    pub(crate) args: Vec<String>,
    pub(crate) envs: BTreeMap<String, String>,
    pub(crate) cwd: Option<String>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Pty {
    pub(crate) size: PtySizeDto,
}

#[derive(Debug, Default, Clone, Copy, serde::Deserialize)]
#[serde(default)]
pub(crate) struct PtySizeDto {
    pub(crate) cols: u32,
    pub(crate) rows: u32,
}

/// Which process.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Selector {
    pub(crate) pid: Option<u32>,
    pub(crate) tag: Option<String>,
}

/// `Connect` and `CloseStdin`.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct OfProcess {
    #[serde(default)]
    pub(crate) process: Selector,
}

/// `SendInput`.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct SendInput {
    #[serde(default)]
    pub(crate) process: Selector,
    #[serde(default)]
    pub(crate) input: Input,
}

/// Bytes for standard input or for the terminal.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct Input {
    #[serde(deserialize_with = "base64_bytes")]
    pub(crate) stdin: Option<Vec<u8>>,
    #[serde(deserialize_with = "base64_bytes")]
    pub(crate) pty: Option<Vec<u8>>,
}

/// One message of `StreamInput`.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct StreamInput {
    pub(crate) start: Option<OfProcess>,
    pub(crate) data: Option<InputData>,
    pub(crate) keepalive: Option<serde_json::Value>,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default)]
pub(crate) struct InputData {
    pub(crate) input: Input,
}

/// `SendSignal`.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct SendSignal {
    #[serde(default)]
    pub(crate) process: Selector,
    /// By name or by number: proto3's JSON takes both.
    #[serde(default)]
    pub(crate) signal: serde_json::Value,
}

/// `Update`.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Update {
    #[serde(default)]
    pub(crate) process: Selector,
    pub(crate) pty: Option<Pty>,
}

/// Bytes in base64, padded or not, in either alphabet, as proto3's JSON allows.
fn base64_bytes<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Vec<u8>>, D::Error> {
    use base64::Engine as _;
    use base64::alphabet::STANDARD;
    use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
    const EITHER: GeneralPurpose =
        GeneralPurpose::new(&STANDARD, GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent));
    let Some(text) = Option::<String>::deserialize(deserializer)? else { return Ok(None) };
    let text = text.replace('-', "+").replace('_', "/");
    EITHER.decode(text).map(Some).map_err(|_| serde::de::Error::custom("this is not base64"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_come_in_any_base64() {
        for text in ["aGk/", "aGk_"] {
            let input: Input = serde_json::from_str(&format!(r#"{{"stdin":"{text}"}}"#)).unwrap();
            assert_eq!(input.stdin.as_deref(), Some(b"hi?".as_slice()));
        }
        let input: Input = serde_json::from_str(r#"{"pty":"aA"}"#).unwrap();
        assert_eq!(input.pty.as_deref(), Some(b"h".as_slice()));
        assert!(serde_json::from_str::<Input>(r#"{"stdin":"!"}"#).is_err());
    }
}
