//! Logs and traces: to standard error for people or collectors, and as OTLP where the operator says so.

use opentelemetry::trace::TracerProvider;
use opentelemetry_otlp::WithExportConfig;
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, fmt};

use crate::config::{LogConfig, LogFormat};

/// Why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub(crate) enum TelemetryError {
    /// The filter makes no sense.
    #[error("understand log.filter {filter:?}: it looks like info or info,belljar_core=debug")]
    Filter {
        /// What was given.
        filter: String,
        /// What is wrong with it.
        #[source]
        source: tracing_subscriber::filter::ParseError,
    },
    /// The exporter could not be made.
    #[error("send traces to log.otlp_endpoint {endpoint:?}")]
    Exporter {
        /// Where to.
        endpoint: String,
        /// What is wrong with it.
        #[source]
        source: opentelemetry_otlp::ExporterBuildError,
    },
}

/// Sends what is left when dropped.
pub(crate) struct Telemetry {
    traces: Option<SdkTracerProvider>,
}

impl Telemetry {
    /// Sets up logging for this process.
    pub(crate) fn start(config: &LogConfig) -> Result<Self, TelemetryError> {
        let filter =
            EnvFilter::try_new(&config.filter).map_err(|source| TelemetryError::Filter { filter: config.filter.clone(), source })?;
        let lines = match config.format {
            LogFormat::Text => {
                fmt::layer().with_writer(std::io::stderr).with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).boxed()
            }
            LogFormat::Json => fmt::layer().json().flatten_event(true).with_writer(std::io::stderr).boxed(),
        };
        let traces = config.otlp_endpoint.as_deref().map(exporter).transpose()?;
        let spans = traces.as_ref().map(|traces| tracing_opentelemetry::layer().with_tracer(traces.tracer("belljar")));
        tracing_subscriber::registry().with(filter).with(spans).with(lines).init();
        Ok(Self { traces })
    }
}

impl Drop for Telemetry {
    fn drop(&mut self) {
        if let Some(traces) = &self.traces
            && let Err(error) = traces.shutdown()
        {
            tracing::warn!(%error, "the last traces could not be sent");
        }
    }
}

fn exporter(endpoint: &str) -> Result<SdkTracerProvider, TelemetryError> {
    // Its client takes the process's TLS. If there is one already, that one is as good.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_http()
        .with_endpoint(endpoint)
        .build()
        .map_err(|source| TelemetryError::Exporter { endpoint: endpoint.to_owned(), source })?;
    let resource = Resource::builder().with_service_name("belljar").build();
    Ok(SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn traces_can_be_set_up_and_taken_down_where_the_server_does_it() {
        let traces = exporter("http://127.0.0.1:1/v1/traces").unwrap();
        drop(Telemetry { traces: Some(traces) });
    }
}
